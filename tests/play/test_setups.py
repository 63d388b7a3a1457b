"""Set-ups in sessions, matches and records: which one it was is said, both sides play it, and undo leaves it."""

import io
import json
from unittest.mock import Mock

import numpy as np
import pytest

from plyzero.commands.terminal import Terminal
from plyzero.errors import UserError
from plyzero.kits.engines.analysis import answer_queries
from plyzero.kits.engines.film import _captions
from plyzero.kits.engines.game_record import frames_of, from_moves, read_games
from plyzero.kits.engines.spelled_game import SpelledGame
from plyzero.kits.web.pages import make_page
from plyzero.kits.web.play_api import describe_position
from plyzero.play.judge import Judge
from plyzero.play.match import play_match, random_openings
from plyzero.play.player import RandomPlayer
from plyzero.play.players import Bot, find_player
from plyzero.play.session import Session
from plyzero.play.shared_games import SharedGame
from plyzero.rules.catalog import GameSpec
from tests.helpers.setups import CompiledHeaps, Heaps, ShuffledRanks, ThrownHeaps, start_of

CHESS = GameSpec("chess", start_of(ShuffledRanks))


def session(cls, seed=0):
    return Session(GameSpec("heaps", start_of(cls)), 0, rng=np.random.default_rng(seed))


def test_a_session_begins_with_a_set_up_and_says_which():
    games = [session(Heaps, seed) for seed in range(20)]
    assert len({game.moves[0] for game in games}) == 20
    for game in games:
        assert game.setup_and_rolls == (f"set-up {game.moves[0]}", [])
        assert game.last_rolls == [str(game.moves[0])]
        assert (game.first_mover, game.last_mover) == (0, None)
        game.play(game.position.legal_actions()[0])
        assert game.setup_and_rolls == ("", [])


def test_a_set_up_and_the_dice_after_it_are_said_apart():
    game = session(ThrownHeaps)
    setup, rolls = game.setup_and_rolls
    assert setup == f"set-up {game.moves[0]}"
    assert rolls in (["heads"], ["tails"])


def test_undo_never_takes_the_set_up_back():
    game = session(Heaps)
    begun = game.position.key()
    assert not game.undo()
    game.play(game.position.legal_actions()[0])
    assert game.undo()
    assert (game.position.key(), len(game.moves)) == (begun, 1)
    assert not game.undo()


@pytest.mark.parametrize("cls", [Heaps, ThrownHeaps])
def test_a_saved_game_comes_back_with_its_set_up(cls):
    game = session(cls)
    game.play(game.position.legal_actions()[0])
    again = Session.from_record(game.game, json.loads(json.dumps(game.record("bot"))))
    assert (again.moves, again.position.key()) == (game.moves, game.position.key())


def test_both_sides_play_each_set_up_of_a_match():
    played = []
    play_match(
        RandomPlayer(np.random.default_rng(0)),
        RandomPlayer(np.random.default_rng(1)),
        CHESS.start,
        games=40,
        rng=np.random.default_rng(2),
        on_game=played.append,
    )
    begun: dict[int, list[bool]] = {}
    for game in played:
        begun.setdefault(game.moves[0], []).append(game.swapped)
    assert len(begun) > 15
    assert all(sorted(sides) in ([False, True], [False, False, True, True]) for sides in begun.values())
    records = [json.dumps(game.as_json(CHESS, ("a", "b"))) for game in played]
    read = [each.record for each in read_games(records, CHESS)]
    assert [list(each.moves) for each in read] == [list(game.moves) for game in played]


def test_openings_without_moves_are_set_ups():
    openings = random_openings(CHESS.start, 0, np.random.default_rng(0), count=50)
    assert {len(each) for each in openings} == {1}
    assert len({tuple(each) for each in openings}) == 50


def test_a_set_up_with_dice_is_shared_by_both_games_of_a_pair():
    played = []
    rng = np.random.default_rng(0)
    player = RandomPlayer(rng)
    play_match(player, player, start_of(ThrownHeaps), games=10, opening_plies=0, rng=rng, on_game=played.append)
    assert len({tuple(game.moves[:2]) for game in played}) == 5


def test_the_terminal_says_the_set_up_before_the_first_move(capsys: pytest.CaptureFixture[str]):
    game = session(ThrownHeaps)
    terminal = Terminal(game, Mock(name="bot"), Mock())
    terminal.show_board()
    setup, rolls = game.setup_and_rolls
    said = capsys.readouterr().out
    assert f"{setup.capitalize()}.\nRolled: {rolls[0]}.\n" in said
    game.play(game.position.legal_actions()[0])
    terminal.show_board()
    assert "et-up" not in capsys.readouterr().out


def test_films_and_pages_say_the_set_up():
    frames = frames_of(from_moves(CHESS, "518 e2e3"))
    assert [(each.setup, each.rolls) for each in frames] == [("set-up 518", ()), ("", ())]
    assert [*_captions(frames, "cut")] == ["start · set-up 518", "1. first: e2e3 · cut"]
    assert '"setup": "set-up 518"' in make_page(frames, "chess", "cut off", review=None).replace('":"', '": "')
    dice = frames_of(from_moves(GameSpec("heaps", start_of(ThrownHeaps)), "7 heads"))
    assert [(each.setup, each.rolls) for each in dice] == [("set-up 7", ("heads",))]


def test_the_page_describes_a_position_with_its_set_up():
    found = describe_position(CHESS, "518 e2e3", np.random.default_rng(0))
    assert (found["setup"], found["movers"], found["rollers"]) == ("set-up 518", [None, 0], [None, None])
    assert found["moves"] == ["518", "e2e3"]
    new = describe_position(CHESS, "", np.random.default_rng(0))
    assert (new["setup"], new["at"], len(new["moves"])) == (f"set-up {new['moves'][0]}", 1, 1)
    assert len(new["legal"]) > 0
    dice = describe_position(GameSpec("heaps", start_of(ThrownHeaps)), "", np.random.default_rng(0))
    assert dice["rollers"] == [None, 0]


def test_a_game_in_two_places_begins_with_a_set_up():
    games = [SharedGame(CHESS, side=0, clock="") for _ in range(5)]
    moves = [game.describe(game.token_of(0))["moves"] for game in games]
    assert all(len(each) == 1 and each[0].isdecimal() for each in moves)
    assert len({each[0] for each in moves}) > 1


def test_analysis_takes_a_set_up_and_asks_for_one_that_is_missing():
    answers = io.StringIO()
    queries = [json.dumps({"id": "a", "moves": []}), json.dumps({"id": "b", "moves": ["518"]})]
    bot = Bot.pure_mcts(CHESS, np.random.default_rng(0), simulations=4)
    answer_queries(CHESS, Judge(bot, "pure MCTS"), io.StringIO("\n".join(queries)), answers)
    missing, found = (json.loads(line) for line in answers.getvalue().splitlines())
    expected = "chance moves after these moves; add to them the number of a set-up, from 0 to 959"
    assert missing["error"] == expected
    assert len(found["moveInfos"]) > 0


@pytest.mark.parametrize("name", ["greedy", "alphabeta:2", "mcts:8"])
@pytest.mark.parametrize("cls", [Heaps, ThrownHeaps])
def test_every_player_plays_games_with_set_ups(name, cls):
    spec = GameSpec("heaps", start_of(cls))
    player = find_player(name, spec, rng=np.random.default_rng(0))
    result = play_match(
        player, RandomPlayer(np.random.default_rng(0)), spec.start, games=4, rng=np.random.default_rng(0)
    )
    assert result.wins + result.draws + result.losses == 4


def test_a_controller_hears_the_set_up_and_may_enter_another():
    spec = GameSpec("heaps", start_of(ThrownHeaps))
    game = SpelledGame(spec, None, np.random.default_rng(0))
    assert len(game.state.session.last_rolls) == 2
    with pytest.raises(UserError, match="illegal move: expected the number of a set-up, from 0 to 4294967295, got 'x'"):
        game.enter_roll("x")
    game.enter_roll("27")
    game.enter_roll("tails")
    assert game.state.session.last_rolls == ["27", "tails"]
    assert game.position.heaps == (4, 3, 3)
    with pytest.raises(UserError, match="2 of 2 rolls after the last move have been said"):
        game.enter_roll("3")


def test_the_end_of_a_game_is_exact_behind_its_set_up():
    spec = GameSpec("heaps", start_of(CompiledHeaps))
    bot = Bot.pure_mcts(spec, np.random.default_rng(0), simulations=64)
    won, lost = (bot.search([spec.start.play(number)])[0] for number in (0, 2))  # heaps of 1, 1, 1 and of 3, 1, 1
    assert (won.value, won.plies_to_end) == (1, 3)
    assert (lost.value, lost.plies_to_end) == (-1, 4)
    with pytest.raises(ValueError, match="a set-up is due: play its number first"):
        bot.search([spec.start])
