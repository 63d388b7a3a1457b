"""Playing at the terminal: what is typed, what is shown, what is kept."""

import json
from pathlib import Path

import numpy as np
import pytest

from plyzero.commands.terminal import HELP, Terminal
from plyzero.play.agents import Agent, AgentPlayer
from plyzero.play.judge import Judge
from plyzero.play.players import Bot, find_player
from plyzero.play.session import Session
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import Outcome
from plyzero.search.slots import SearchResult
from tests.helpers import toys
from tests.helpers.cli import plyzero
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.surroundings import python

TIC_TAC_TOE = load_game("tic-tac-toe")


class Screen:
    """A terminal whose person types what a list says, and whose bot plays the moves of another list."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys):
        self.monkeypatch, self.capsys = monkeypatch, capsys
        self.begin(TIC_TAC_TOE, 0)

    def begin(self, game: GameSpec, person: int) -> None:
        bot = Bot.pure_mcts(game, np.random.default_rng(0), simulations=60)
        self.terminal = Terminal(Session(game, person), bot, lambda: Judge(bot, "a bot"))

    def types(self, *lines: str, bot: str = "") -> str:
        """Return what the screen shows when `lines` are typed, then the end of input."""
        answers, moves, as_it_is = iter(lines), bot.split(), SearchResult.best_action

        def answer(prompt: str) -> str:
            print(prompt)
            if (line := next(answers, None)) is None:
                raise EOFError
            return line

        def best_action(root: SearchResult) -> int:
            session = self.terminal.session
            if session.is_persons_turn:  # a hint, or an earlier search
                return as_it_is(root)
            answered = sum(position.to_play != session.person for position in session.positions[:-1])
            return session.position.parse_action(moves[answered])

        self.monkeypatch.setattr("builtins.input", answer)
        if bot:
            self.monkeypatch.setattr(SearchResult, "best_action", best_action)
        self.terminal.run()
        self.terminal.warming.join()
        return self.capsys.readouterr().out


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, capsys) -> Screen:
    return Screen(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("lines", "bot", "verdict"),
    [
        (["a1", "b1", "c1"], "a2 b2", "You win."),
        (["a1", "a2", "c3"], "b1 b2 b3", "The bot wins."),
        (["a1", "c1", "b2", "a2", "b3"], "b1 a3 c3 c2", "A draw."),
    ],
)
def test_the_verdict_is_the_persons(screen: Screen, lines: list[str], bot: str, verdict: str):
    assert screen.types(*lines, bot=bot).splitlines()[-3:] == [verdict, "new, undo, save FILE, load FILE or quit: ", ""]


def test_the_person_may_move_second(screen: Screen):
    screen.begin(TIC_TAC_TOE, 1)
    shown = screen.types("a1", bot="b2 c3")
    assert "tic-tac-toe: you move second; the bot is mcts:60.\n" in shown
    assert shown.index("The bot plays b2; it expects a ") < shown.index("Your move: ")
    assert "The bot plays c3" in shown


@pytest.mark.parametrize(
    ("person", "shown"),
    [(0, "You: ♟\ufe0e, in check. The bot: ♙"), (1, "You: ♙. The bot: ♟\ufe0e, in check")],
)
def test_what_both_players_have_so_far_stands_below_the_board(screen: Screen, person: int, shown: str):
    begun = load_game("chess").set_up("e4 d5 exd5 Qxd5 Nc3 Qe5+", "a test")
    session = Session(begun, person)
    screen.terminal.session = session
    screen.terminal.show_board()
    assert screen.capsys.readouterr().out == f"\n{session.position}\n{shown}\n"
    screen.begin(TIC_TAC_TOE, 0)  # which has none
    screen.terminal.show_board()
    assert screen.capsys.readouterr().out == f"\n{TIC_TAC_TOE.start}\n"


def test_a_player_who_moves_twice_is_asked_twice_and_told(screen: Screen):
    screen.begin(GameSpec("twice", toys.Written("01100", "01" * 16)), 1)
    shown = screen.types("1", "0", bot="0 1 0")
    assert (shown.count("You move again.\n"), shown.count("The bot moves again.\n")) == (1, 1)
    session = screen.terminal.session
    assert session.moves == [0, 1, 0, 1, 0]
    assert [[*session.moves] for _ in iter(session.undo, False)] == [[0, 1], [0]]


def test_what_is_neither_move_nor_command_says_what_was_expected(screen: Screen):
    shown = screen.types("a4", "fly home", "undo 2", "A1")
    sentence = "That is neither a legal move nor a command: expected one of a1 b1 c1 a2 b2 c2 a3 b3 c3, got"
    assert f"{sentence} 'a4'; help lists the commands.\n" in shown
    assert f"{sentence} 'fly home'" in shown
    assert "Expected undo without an argument.\n" in shown
    assert "The bot plays" in shown


def test_a_folder_that_is_not_there_is_not_made(screen: Screen, tmp_path: Path):
    shown = screen.types(f"save {tmp_path}/none/game.json")
    assert f"Cannot write {tmp_path}/none/game.json: there is no such directory.\n" in shown
    assert not list(tmp_path.iterdir())


def test_legal_lists_the_moves_and_help_the_commands(screen: Screen):
    shown = screen.types("legal", "help", "", "quit")
    assert "Legal: a1 b1 c1 a2 b2 c2 a3 b3 c3\n" in shown
    assert shown.count(HELP) == 2
    assert all(f"\n  {command}" in HELP for command in screen.terminal.commands if command not in ("", "help", "load"))


def test_a_hint_searches_in_the_persons_place_and_changes_nothing(screen: Screen):
    shown = screen.types("hint", "legal")
    assert "Hint: " in shown
    assert "The judge: a bot.\n" in shown
    assert "move  visits  win rate  prior  principal variation" in shown
    assert "Legal: a1 b1 c1 a2" in shown
    assert screen.terminal.session.moves == []


def test_a_proven_win_is_certain_in_the_hint(screen: Screen):
    shown = screen.types("a1", "b1", "hint", bot="a2 b2 c1")
    assert "Hint: c1; the judge expects a certain win in 1 move." in shown


def test_undo_takes_back_the_move_and_its_answer(screen: Screen):
    shown = screen.types("undo", "a1", "undo", "b2", bot="c3")
    assert "You have not moved yet; there is nothing to take back." in shown
    assert screen.terminal.session.record("")["moves"] == ["b2", "c3"]


def test_a_finished_game_can_be_taken_back_too(screen: Screen):
    shown = screen.types("a1", "b1", "c1", "undo", "legal", bot="a2 b2")
    assert "You win." in shown
    assert "Legal: c1 c2 a3 b3 c3" in shown


def test_thoughts_show_the_bots_last_search_and_every_one_after(screen: Screen):
    shown = screen.types("thoughts", "a1", "thoughts", "b1", "thoughts", bot="c3 b2")
    _, on, answered, off, unseen, again, *_ = shown.split("Your move: ")
    assert "The bot's search results are shown from now on." in on
    assert "The bot plays c3" in answered
    assert "move  visits  win rate  prior  principal variation" in answered
    assert "The bot's search results are no longer shown." in off
    assert "The bot plays b2" in unseen
    assert "visits" not in unseen
    assert "Search results before the bot's last move, shown with every move from now on:\n move" in again


def test_a_resignation_ends_the_game_and_can_be_taken_back(screen: Screen):
    shown = screen.types("a1", "resign", "b1", "resign", "undo", "quit", bot="c3")
    assert "The game is over already.\n" in shown
    assert "The bot wins by resignation.\n" in shown
    assert "The game is over: expected new, undo, save FILE, load FILE or quit, got 'b1'." in shown
    assert screen.terminal.session.outcome is None


def test_a_bot_without_a_chance_offers_to_resign_and_the_person_decides(screen: Screen, tmp_path: Path):
    file = tmp_path / "game.json"
    screen.terminal.bot = Bot("b", TIC_TAC_TOE, toys.Constant(9, 0.0, 0.02, 0.98), simulations=0)
    shown = screen.types("accept", "a1", "b1", "accept", f"save {file}", "undo", bot="c3 b2")
    before = shown.split("Your move: ")[1]
    assert "The bot has not offered to resign." in before
    assert shown.count("The bot sees no chance left: accept its resignation with `accept`, or play on.") == 1
    assert "You win by resignation." in shown
    assert screen.terminal.session.outcome is None
    record = json.loads(file.read_text())
    assert (record["result"], record["resigned"], record["end"]) == ("first", False, "resign")
    assert Session.from_record(TIC_TAC_TOE, record).outcome == Outcome(0)


def test_a_new_game_swaps_the_sides(screen: Screen):
    shown = screen.types("a1", "new", bot="c3 b2")
    assert "You move second.\n" in shown
    assert screen.terminal.session.moves == [8]


def test_a_game_that_was_saved_can_be_gone_on_with(screen: Screen, tmp_path: Path):
    file = tmp_path / "game.json"
    shown = screen.types("a1", f"save {file}", "b1", f"load {file}", f"save {file}", bot="c3 c2")
    assert f"Saved to {file}.\n" in shown
    assert f"{file} exists already and was not changed; choose another name.\n" in shown
    about = {"version": 1, "game": "tic-tac-toe v1", "person": "first", "bot": "mcts:60"}
    assert json.loads(file.read_text()) == about | {"moves": ["a1", "c3"], "result": None, "resigned": False}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([], "expected a JSON object, got []"),
        ({"game": "connect-four v1"}, "it is a game of 'connect-four v1', not of tic-tac-toe v1"),
        ({"moves": "a1"}, "expected moves as a list of action names"),
        ({"moves": ["a1", "a1"], "person": "first"}, "move 2: expected one of b1 c1 a2 b2 c2 a3 b3 c3, got 'a1'"),
    ],
)
def test_a_file_that_holds_no_game_is_refused_and_the_game_goes_on(
    screen: Screen, tmp_path: Path, fields: dict | list, sentence: str
):
    file = tmp_path / "game.json"
    file.write_text(json.dumps(fields and {"version": 1, "game": "tic-tac-toe v1", **fields}))
    shown = screen.types(f"load {file}", "load", "save", f"load {file}.none", "a1")
    assert f"Cannot load {file}: " in shown
    assert sentence in shown
    assert "Expected load FILE, such as load game.json." in shown
    assert "Expected save FILE, such as save game.json." in shown
    assert f"Cannot read {file}.none: No such file or directory. The current game goes on." in shown
    assert "The bot plays" in shown


def test_a_record_keeps_who_won(tmp_path: Path):
    session = Session(TIC_TAC_TOE, 1)
    for move in (0, 3, 1, 4, 2):
        session.play(move)
    record = session.record("the bot")
    assert (record["result"], record["person"]) == ("first", "second")
    again = Session.from_record(TIC_TAC_TOE, record)
    assert (again.moves, again.person, again.outcome) == ([0, 3, 1, 4, 2], 1, Outcome(0))
    resigned = Session(TIC_TAC_TOE, 0, resigned=0)
    assert Session.from_record(TIC_TAC_TOE, resigned.record("b")).outcome == Outcome(1)


def test_a_move_that_is_called_like_a_command_is_a_move(screen: Screen, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(TIC_TAC_TOE.start), "action_names", ("hint", *(str(n) for n in range(1, 9))))
    screen.types("hint")
    assert screen.terminal.session.moves[0] == 0


@pytest.mark.parametrize("simulations", [0, 1, 60])
def test_the_bot_answers_with_any_number_of_simulations(screen: Screen, simulations: int):
    screen.begin(TIC_TAC_TOE, 1)
    screen.terminal.bot.simulations = simulations
    assert "The bot plays" in screen.types("hint", "thoughts")


def test_an_opponent_without_a_search_plays_and_the_judge_gives_hints(screen: Screen):
    screen.terminal.bot = find_player("greedy", TIC_TAC_TOE, np.random.default_rng(0))
    printed = screen.types("a1", "hint", "thoughts", "undo", "b2")
    assert "the bot is greedy." in printed
    assert printed.count("This opponent has no search whose results could be shown.") == 1
    assert printed.count("Hint: ") == 1
    assert printed.count("The bot plays ") == 2


def test_an_opponent_that_fails_loses_the_game_and_it_can_be_taken_back(screen: Screen):
    class Lost(Agent):
        def choose(self, position):
            raise RuntimeError("no idea")

    screen.terminal.bot = AgentPlayer("lost", Lost())
    printed = screen.types("a1", "undo", "a2")
    assert printed.count("lost forfeits: RuntimeError: no idea") == 2
    assert printed.count("You win by forfeit.") == 2


NOT_COMPILED = """
import sys
from plyzero.commands import play
from plyzero.ops import child

child.start_beside = lambda *command: print("beside:", *command)
play._begin_at_once("tic-tac-toe")
from plyzero.play import players
modules = [module for name, module in sys.modules.items() if name.startswith(("plyzero.", "games."))]
print([name for module in modules for name, value in vars(module).items() if hasattr(value, "py_func")])
"""


def test_until_another_process_has_compiled_the_search_nothing_is_compiled_here(tmp_path: Path):
    """It would wait for that process: only one at a time compiles on a machine."""
    beside, _, compiled = python("-c", NOT_COMPILED, NUMBA_CACHE_DIR=str(tmp_path)).stdout.splitlines()
    assert beside == "beside: match mcts:4 random --game tic-tac-toe --games 2"
    assert compiled == "[]"


def test_until_a_run_has_a_model_pure_search_plays_and_one_sentence_says_so(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    done = plyzero("play", "tic-tac-toe", "--run", str(run.root), text="b2\nquit\n")
    assert done.stdout.count("has no model yet: until then pure MCTS plays by the same rules; start again to play") == 1
    assert "the bot is mcts:1000" in done.stdout
    assert "The bot plays " in done.stdout
    add_model(run)
    done = plyzero("play", "tic-tac-toe", "--run", str(run.root), text="quit\n")
    assert "the bot is 000001-000000012-" in done.stdout
    assert "no model yet" not in done.stdout
