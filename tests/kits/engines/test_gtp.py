"""GTP: every command, the form of the responses, points, dice, and what is wrong."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.engines.engine import ANALYSES, COMMANDS, Engine, is_quit
from plyzero.kits.engines.graphics import parse_request, watch_search
from plyzero.kits.engines.points import Points, spell
from plyzero.play.player import Player
from plyzero.play.players import Bot
from plyzero.rules.board import Board, Cell
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import Game, board_of
from tests.helpers.dice import PlainRace
from tests.helpers.toys import Constant, Relay, Written


class First(Player):
    """A player that plays the first legal action."""

    name = "first"

    def choose_all(self, positions):
        return [int(position.legal_actions()[0]) for position in positions]


def plain(name: str) -> GameSpec:
    """Return an included game whose rules are not compiled, which is quicker here."""
    game = load_game(name)
    return replace(game, start=game.start.as_plain_python())


def engine(name: str | GameSpec = "tic-tac-toe", player=None, **options) -> Engine:
    game = plain(name) if isinstance(name, str) else name
    return Engine(game, player or First(), rng=np.random.default_rng(0), **options)


def say(engine: Engine, *lines: str) -> list[str]:
    """Return the texts of the responses, all of which must be successful."""
    answers = [engine.answer(line) for line in lines]
    assert [answer for answer in answers if answer[:1] != "="] == []
    return [answer[1:].strip() for answer in answers]


def alternately(moves: str) -> list[str]:
    """Return the commands that play moves, black's first."""
    return [f"play {'bw'[ply % 2]} {move}" for ply, move in enumerate(moves.split())]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("protocol_version\n", "= 2\n\n"),
        ("17 protocol_version\n", "=17 2\n\n"),
        ("clear_board", "=\n\n"),
        ("3 clear_board", "=3\n\n"),
        ("4 no_such", "?4 unknown command 'no_such'; list_commands lists the known ones\n\n"),
        ("5", "?5 unknown command ''; list_commands lists the known ones\n\n"),
        *((nothing, "") for nothing in ("", "\n", "  \t\r\n", "# protocol_version\n")),
        ("\t7\tknown_command\tplay\r\n", "=7 true\n\n"),
        ("na\x07me # what it is called\n", "= plyzero\n\n"),
    ],
)
def test_a_line_and_its_response_have_the_form_of_the_protocol(line: str, answer: str):
    assert engine().answer(line) == answer


def test_the_commands_are_listed_and_known():
    asked = engine()
    listed = say(asked, "list_commands")[0].split("\n")
    assert sorted(listed) == sorted([*COMMANDS, *ANALYSES])
    assert say(asked, *(f"known_command {each}" for each in (*listed, "loadsgf"))) == ["true"] * len(listed) + ["false"]
    assert say(asked, "name", "quit") == ["plyzero", ""]
    assert say(asked, "version")[0].endswith(", tic-tac-toe v1, first")


@pytest.mark.parametrize("line", ["play b", "play b a1 a2", "genmove", "boardsize", "known_command", "time_left b 3"])
def test_a_wrong_number_of_arguments_says_what_is_expected(line: str):
    answer = engine().answer(line)
    assert answer.startswith(f"? syntax error: expected {line.split()[0]} ")
    assert answer.endswith(f"got '{line}'\n\n")


def test_a_game_is_played_taken_back_and_scored():
    asked = engine()
    board = "1 o x .\n 2 . x .\n 3 . . .\n   a b c\nwhite to move"
    assert say(asked, "play b B2", "genmove w", "genmove black", "showboard")[1:] == ["a1", "b1", board]
    assert asked.answer("final_score") == "? cannot score: the game is not over\n\n"
    assert say(asked, "play w c3", "play b b3", "final_score", "gogui-rules_final_result")[2:] == ["B+", "black wins"]
    again = say(asked, "undo", "gogui-rules_side_to_move", "play b a3", "gogui-rules_final_result")
    assert again[1:] == ["black", "", ""]
    assert say(asked, *["undo"] * 5, "gogui-rules_legal_moves")[-1] == "a1 b1 c1 a2 b2 c2 a3 b3 c3"
    assert asked.answer("undo") == "? cannot undo: nothing has been played\n\n"


def test_the_score_of_a_draw_and_of_a_win_by_white():
    asked = engine()
    say(asked, *alternately("b2 a1 c1 a3 a2 c2 b1 b3 c3"))
    assert say(asked, "final_score", "gogui-rules_final_result") == ["0", "draw"]
    say(asked, "clear_board")
    say(asked, *alternately("a1 b1 a2 b2 c3 b3"))
    assert say(asked, "final_score", "gogui-rules_final_result") == ["W+", "white wins"]


def test_reg_genmove_does_not_play():
    assert say(engine(), "reg_genmove b", "reg_genmove b", "gogui-rules_side_to_move") == ["a1", "a1", "black"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("play w a1", "illegal move: it is the turn of black"),
        ("genmove white", "illegal move: it is the turn of black"),
        ("play red a1", "syntax error: expected black or white, got 'red'"),
        ("play b z9", "illegal move: expected one of a1 b1 c1 a2 b2 c2 a3 b3 c3, got 'z9'"),
        ("play b pass", "illegal move: expected one of a1 b1 c1 a2 b2 c2 a3 b3 c3, got 'pass'"),
        ("play roll 6", "illegal move: 0 of 0 rolls after the last move have been said"),
        ("lz-analyze", "first does not search; start plyzero gtp with a bot to analyze"),
        ("plyzero-policy", "first does not search; start plyzero gtp with a bot to analyze"),
    ],
)
def test_what_is_refused_is_one_sentence_and_changes_nothing(line: str, sentence: str):
    asked = engine()
    assert asked.answer(f"1 {line}") == f"?1 {sentence}\n\n"
    assert say(asked, "play b a1", "undo") == ["", ""]
    assert asked.answer("undo").startswith("? cannot undo")


def test_after_the_end_there_is_nothing_but_passes_which_undo_takes_back():
    asked = engine()
    say(asked, *alternately("a1 b1 a2 b2 a3"))
    assert say(asked, "genmove w", "play b pass", "gogui-rules_legal_moves", "final_score") == ["pass", "", "", "B+"]
    assert asked.answer("play w c3").startswith("? illegal move: the game is over")
    assert asked.answer("kata-analyze") == "? the game is over; there is nothing to search\n\n"
    assert say(asked, "undo", "undo", "final_score", "undo", "gogui-rules_side_to_move")[2:] == ["B+", "", "black"]


def test_pass_is_the_action_of_that_name():
    asked = engine("go(size=3)")
    assert say(asked, "play b PASS", "play w pass", "final_score")[-1] == "W+7.5"


def test_a_board_has_its_own_size_only():
    asked = engine("connect-four")
    say(asked, "play b 4", "boardsize 7", "rectangular_boardsize 7 6", "boardsize 7")
    assert say(asked, "gogui-rules_side_to_move") == ["black"]
    assert asked.answer("boardsize 6").startswith("? unacceptable size: connect-four has 7 columns and 6 rows; ")
    assert asked.answer("boardsize x").startswith("? syntax error: expected a number")
    assert say(engine(GameSpec("relay", Relay())), "boardsize 19") == [""]


def test_the_komi_is_that_of_the_game():
    assert say(engine(), "komi 6.5") == [""]
    asked = Engine(load_game("go(size=5,komi=0.5)"), First())
    assert say(asked, "komi 0.5") == [""]
    assert asked.answer("komi 7.5").startswith("? the komi is 0.5; ")
    assert say(Engine(load_game("go(size=5)"), First()), "komi 7.5") == [""]
    assert asked.answer("komi much").startswith("? syntax error: expected a number")


def bot_of(game: GameSpec, win: float = 0.5, draw: float = 0.2, loss: float = 0.3, simulations: int = 8) -> Bot:
    return Bot("constant", game, Constant(game.start.num_actions, win, draw, loss), simulations=simulations)


def test_each_colour_has_a_clock_that_the_controller_sets():
    assert say(engine(), "time_settings 60 10 1", "time_left w 60 0") == ["", ""]  # also where nobody needs it
    game = load_game("tic-tac-toe")
    asked = Engine(game, bot_of(game), most=20)

    def clocks() -> list[tuple[float, float]]:
        found = [mover.clock for mover in asked._movers if isinstance(mover, Bot)]
        return [(clock.left, clock.per_move) for clock in found if clock]

    say(asked, "time_settings 300 0 0")
    assert clocks() == [(300, 0), (300, 0)]
    say(asked, "time_left b 10 0", "time_left w 20 5")
    assert clocks() == [(10, 0), (0, 4)]
    say(asked, "genmove b")
    assert 0 <= clocks()[0][0] < 10
    say(asked, "clear_board")
    assert clocks() == [(300, 0), (300, 0)]
    say(asked, "time_settings 60 30 10")
    assert clocks() == [(60, 3), (60, 3)]
    say(asked, "time_settings 0 10 0")  # no limit
    assert clocks() == []
    assert asked._movers[0].simulations == 8
    for wrong in ("time_settings a 0 0", "time_left b -1 0", "time_left green 1 0"):
        assert asked.answer(wrong).startswith("? syntax error: expected ")


class Broken(Relay):
    """Relay, whose second move divides by zero, and whose text has an empty line."""

    def play(self, action):
        moved = copy.copy(self)
        moved.ply += 1 // (1 - self.ply)
        return moved

    def __str__(self):
        return "above\n\n\nbelow\n"


def test_an_error_of_the_rules_is_one_line_with_its_place_and_changes_nothing():
    asked = engine(GameSpec("broken", Broken()))
    say(asked, "play b 0")
    for line in ("play w 0", "genmove w"):
        answer = asked.answer(line)
        assert answer.startswith("? ZeroDivisionError: integer division or modulo by zero (test_gtp.py, line ")
        assert answer.count("\n") == 2
    assert asked.answer("showboard") == "= \nabove\n \n \nbelow\nwhite to move\n\n"


class Illegal(First):
    def choose_all(self, positions):
        return [4711]


def test_an_illegal_choice_of_the_player_is_not_played():
    asked = engine(player=Illegal())
    assert asked.answer("genmove b").startswith("? IllegalActionError: ")
    assert say(asked, "gogui-rules_side_to_move") == ["black"]


def test_quit_is_known_with_an_id_too():
    lines = ["quit", "3 quit # now", "\tquit\n", "quit_not", "play quit", "", "3"]
    assert list(map(is_quit, lines)) == [True, True, True, False, False, False, False]


def test_points_are_counted_from_the_lower_left_and_leave_out_i():
    asked = engine("othello(size=6)", points=True)
    assert say(asked, "gogui-rules_legal_moves", "gogui-rules_board_size") == ["C5 B4 E3 D2", "6"]
    assert say(asked, "genmove b", "gogui-rules_board")[1].split("\n")[1] == ". . X . . ."
    go = load_game("go(size=9)").start
    board = board_of(go)
    points = Points(board)
    names = {points.name(cell).lower(): cell.name for cell in board.cells}
    assert all(point == name for point, name in names.items())
    assert len(names) == 81


def test_a_disc_goes_to_the_point_where_it_lands():
    asked = engine("connect-four", points=True)
    assert say(asked, "play b d1", "gogui-rules_legal_moves") == ["", "A1 B1 C1 D2 E1 F1 G1"]
    assert asked.answer("play w D1").startswith("? illegal move: expected one of A1 B1 C1 D2 E1 F1 G1, got 'D1'")
    assert say(asked, "gogui-rules_board")[0].split("\n")[-1] == ". . . X . . ."
    assert len(say(asked, "gogui-rules_board")[0].split("\n")) == 7


def test_a_move_of_two_clicks_is_two_words_of_one_colour():
    asked = engine("breakthrough", points=True)
    assert say(asked, "play b A2", "gogui-rules_side_to_move", "gogui-rules_legal_moves") == ["", "black", "A3 B3"]
    assert asked.answer("genmove b").startswith("? a move has been begun with a2: ")
    assert asked.answer("play b C3").startswith("? illegal move: expected one of A3 B3, got 'C3'")
    assert "begun with a2" in say(asked, "showboard")[0]
    assert say(asked, "play b B3", "gogui-rules_side_to_move") == ["", "white"]
    undone = say(asked, "undo", "gogui-rules_legal_moves", "undo", "gogui-rules_side_to_move")
    assert undone == ["", "A3 B3", "", "black"]


def test_the_player_says_its_move_of_two_clicks_in_two_answers():
    asked = engine("breakthrough", points=True)
    first, second = say(asked, "genmove b", "gogui-rules_side_to_move", "reg_genmove b", "genmove b")[::3]
    start = plain("breakthrough").start
    assert (first, second) == spell(start, Points(board_of(start)))[int(start.legal_actions()[0])]
    assert say(asked, "gogui-rules_side_to_move", "undo", "genmove b") == ["white", "", second]


class Promoting(Relay):
    """Four actions on a board of 2x1: two that share their cells, one that begins like them, and one without cells."""

    num_actions = 4
    names = ("a1-b1-queen", "a1-b1-rook", "a1", "resting")

    def legal_actions(self):
        return [0, 1, 2, 3] if self.ply < self.max_plies else []

    def render(self):
        return Board((Cell("a1", 0, 0), Cell("b1", 1, 0)))

    def action_name(self, action):
        return self.names[action]


def test_actions_that_points_do_not_tell_apart_go_by_their_names():
    asked = engine(GameSpec("promoting", Promoting()), points=True)
    assert say(asked, "gogui-rules_legal_moves") == [" ".join(Promoting.names)]
    assert say(asked, "play b A1-B1-ROOK", "play w resting", "gogui-rules_side_to_move") == ["", "", "black"]


def test_rows_of_hexagons_are_numbered_as_if_they_were_straight():
    points = Points(board_of(load_game("hex(size=5)").start))
    assert (points.columns, points.rows) == (5, 5)
    asked = engine("hex(size=5)", points=True)
    assert say(asked, "play b A5", "gogui-rules_board")[1].split("\n")[0] == "X . . . ."


class Large(Relay):
    def render(self):
        return Board(tuple(Cell(f"c{x}", x, 0) for x in range(26)))


@pytest.mark.parametrize(
    ("game", "has"),
    [
        (GameSpec("relay", Relay()), "relay has no board"),
        (GameSpec("race", PlainRace()), "race has no board"),
        (GameSpec("large", Large()), "large has a board of size 26, and there are points on boards up to size 25 only"),
    ],
)
def test_a_game_without_a_board_or_with_too_large_a_board_has_no_points(game, has: str):
    with pytest.raises(UserError, match=has):
        engine(game, points=True)
    assert engine(game).answer("gogui-rules_board").startswith(f"? {has}")


@pytest.mark.parametrize(
    ("name", "id_"),
    [("connect-four", "Connectfour"), ("othello(size=6)", "Othello"), ("my_module:MyGame(a=1)", "Mygame")],
)
def test_the_id_of_a_game_has_one_capital_letter(name: str, id_: str):
    assert say(engine(GameSpec(name, Relay())), "gogui-rules_game_id") == [id_]


def test_the_engine_rolls_and_shows_what_it_has_rolled():
    asked = engine("backgammon")
    (rolled,) = say(asked, "plyzero-rolls")
    assert f"rolled {rolled}" in say(asked, "showboard")[0]
    moves = 0
    while say(asked, "gogui-rules_side_to_move") == ["black"]:
        say(asked, "genmove b")
        moves += 1
    assert say(asked, "plyzero-rolls") != [""]
    assert say(asked, *["undo"] * moves, "plyzero-rolls")[-1] == rolled


def test_a_controller_can_say_what_was_rolled():
    asked = engine("backgammon")
    say(asked, "play roll 6-5")
    assert say(asked, "plyzero-rolls") == ["6-5"]
    assert asked.answer("play roll 6-4") == "? illegal move: 1 of 1 rolls after the last move have been said\n\n"
    say(asked, "play b 24/18")
    assert asked.answer("play roll 6-4").startswith("? illegal move: 0 of 0 rolls")  # a die is still to be played
    assert engine("backgammon").answer("play roll 6-6").startswith("? illegal move: expected a roll, one of 6-5 ")
    say(asked, "play b 18/13", "play roll 2-1")
    assert say(asked, "plyzero-rolls", "gogui-rules_side_to_move") == ["2-1", "white"]


class Tree(Written):
    """A game on two cells, in which player 0 wins by the second."""

    def __init__(self):
        super().__init__("0", "10")

    def render(self):
        stones = {"": ("", ""), "0": ("0", ""), "1": ("", "0")}[self.moves]
        return Board((Cell("a1", 0, 0, stones[0]), Cell("b1", 1, 0, stones[1])))

    def action_name(self, action):
        return ("a1", "b1")[action]


def searching(game: Game, **options) -> tuple[Engine, list[str]]:
    written: list[str] = []
    spec = GameSpec("tree", game)
    return engine(spec, bot_of(spec), write=written.append, has_input=lambda seconds: seconds > 0, **options), written


def test_an_analysis_gives_lines_of_info_until_input_arrives():
    asked, written = searching(Tree())
    assert asked.answer("5 kata-analyze b 10") == "\n"
    assert written[0] == "=5\n"
    best = written[1].split(" info ")[0].rstrip()
    assert re.fullmatch(r"info move b1 visits \d+ winrate 1\.0000 prior 0\.5000 order 0 pv b1", best)
    assert written[-1].endswith("\n")


def test_leela_zeros_numbers_are_in_10000ths_and_moves_can_be_limited():
    asked, written = searching(Tree(), points=True)
    assert asked.answer("lz-analyze interval 10 maxmoves 1 ownership true") == "\n"
    assert "info move B1 visits " in written[1]
    assert " winrate 10000 prior 5000 order 0 pv B1\n" in written[1]
    assert written[1].count("info") == 1
    assert asked.answer("lz-analyze w").startswith("? illegal move: it is the turn of black")
    assert len(written) == 2


def test_an_analysis_that_fails_ends_with_the_sentence():
    asked, written = searching(Broken())
    assert asked.answer("6 lz-analyze").startswith("?6 ZeroDivisionError: integer division or modulo by zero (")
    assert written == ["=6\n"]


def test_an_analysis_shows_its_result_and_ends_in_the_middle_of_a_search():
    spec, shown, waits = GameSpec("tree", Tree()), [], []

    def has_input(seconds):
        waits.append(seconds)
        return waits.count(0.25) == 3

    watch_search(bot_of(spec), spec.start, shown.append, has_input, 0.25)
    assert [result.simulations for result in shown] == [shown[0].simulations] * 3
    shown.clear()
    watch_search(bot_of(spec), spec.start, shown.append, lambda seconds: True, 0.25)
    assert shown == []


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("", (None, 1.0, 1_000_000)),
        ("B 50", ("B", 0.5, 1_000_000)),
        ("white interval 200 maxmoves 3", ("white", 2.0, 3)),
        ("100 ownership true", (None, 1.0, 1_000_000)),
    ],
)
def test_what_an_analysis_is_asked_for(text: str, request_):
    assert tuple(parse_request(text.split())) == request_


@pytest.mark.parametrize("text", ["b x", "interval 0", "interval -3", "maxmoves many", "avoid b a1,a2"])
def test_what_an_analysis_cannot_do_is_refused(text: str):
    with pytest.raises(UserError):
        parse_request(text.split())


def test_gogui_is_shown_the_policy_and_the_values():
    asked, _ = searching(Tree())
    lines = say(asked, "gogui-analyze_commands")[0].split("\n")
    assert {line.split("/")[2] for line in lines} <= set(COMMANDS)
    assert say(asked, "plyzero-policy")[0].split("\n") == [
        "INFLUENCE A1 0.500 B1 0.500",
        "LABEL A1 50 B1 50",
        "TEXT without search, black wins with 50 % and draws with 20 %",
    ]
    values = say(asked, "plyzero-values")[0]
    assert "B1 100" in values.split("\n")[1]
    assert "black wins with 100 % and draws with 0 %" in values


def test_a_bot_resigns_only_if_the_controller_allows_it_and_the_position_is_hopeless():
    game = load_game("tic-tac-toe")
    lost, even = bot_of(game, 0.02, 0.02, 0.96, simulations=0), bot_of(game, 0.1, 0.2, 0.7, simulations=0)
    assert say(engine(game, lost, resign_below=0.05), "genmove b", "showboard")[0] == "resign"
    for bot, below in ((lost, 0.0), (lost, 0.03), (even, 0.05)):
        assert say(engine(game, bot, resign_below=below), "genmove b") != ["resign"]
    asked = engine(game, lost, resign_below=0.05)
    assert say(asked, "genmove b", "play b b2", "genmove w")[::2] == ["resign", "resign"]
    assert say(asked, "reg_genmove w") != ["resign"]
