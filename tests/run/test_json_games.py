"""Import of games: what `replay export` has written comes back, and whatever is not a finished game is named."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import is_chance, move_name
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.random_game import random_move
from plyzero.run.json_games import Fault, games_to_json, import_games, json_games
from plyzero.run.records import BY_RULE, RESIGNED, TRUNCATED, Games, find_valid
from plyzero.run.replay import find_disagreement
from plyzero.run.segments import read_segment
from plyzero.search.tree import PUCT, UNPROVEN
from plyzero.settings import SearchSettings, TrainerSettings
from plyzero.trainer.targets import mixed_targets, played_moves
from tests.helpers.runs import play_segment, small_run

GAME = load_game("tic-tac-toe")
WINS = "but by the rules the game is a win of the first player"
WON = {"moves": ["a1", "b1", "a2", "b2", "a3"], "winner": "first"}


def lines_of(games: Games) -> list[bytes]:
    return [json.dumps(each).encode() for each in games_to_json(games, GAME.start)]


def imported(*lines: dict[str, Any], game: GameSpec = GAME) -> Any:
    """The games of some lines, or faults; without a list if it is one line."""
    found = list(import_games(json_games([json.dumps(each).encode() for each in lines]), game))
    assert len(found) == len(lines)
    return found if len(found) > 1 else found[0]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Games:
    """Games of self-play with openings, fast and full searches, and one that is said to be truncated."""
    run = small_run(tmp_path_factory.mktemp("run") / "r", "tic-tac-toe", "selfplay.opening_plies=3")
    games = read_segment(play_segment(run, full=60, fence=1), run.game)
    games.positions["model_step"] = np.arange(len(games.positions))
    return games


def test_what_was_exported_comes_back_and_is_exported_as_it_was(exported: Games):
    again = Games.concatenate(list(import_games(json_games(lines_of(exported)), GAME)))
    assert lines_of(again) == lines_of(exported)
    values = [value for line in lines_of(exported) for value in json.loads(line)["values"]]
    assert values == [round(float(value), 4) for value in exported.positions["root_value"]]
    assert find_valid(again, GAME.start.num_actions)[1] is None
    for field in ("id", "positions", "winner", "end", "opening_plies"):
        assert np.array_equal(again.games[field], exported.games[field])
    for field in ("action", "to_play", "num_legal", "full", "model_step"):
        assert np.array_equal(again.positions[field], exported.positions[field])
    assert np.array_equal(again.positions["search"] > 0, exported.positions["search"] > 0)
    assert np.array_equal(again.moves["action"], exported.moves["action"])
    assert np.array_equal(again.observations, exported.observations)
    assert again.observations.dtype == exported.observations.dtype
    assert exported.games["opening_plies"].sum() > 0
    assert set(exported.positions["full"]) == {0, 1}


def test_a_truncated_game_comes_back_if_it_is_as_long_as_self_play_allows(monkeypatch: pytest.MonkeyPatch):
    line = {"moves": ["a1", "b1"], "winner": None, "end": "truncated"}
    assert imported(line) == Fault(1, "the game is not over after its 2 moves")
    monkeypatch.setattr(TicTacToe, "max_plies", 2)
    found = imported(line)
    assert (found.games["winner"][0], found.games["end"][0]) == (ONGOING, TRUNCATED)
    (exported,) = map(json.loads, lines_of(found))
    assert (exported["version"], exported["winner"], exported["end"]) == (1, None, "truncated")
    targets = played_moves(found, search=SearchSettings(), trainer=TrainerSettings())
    assert not targets.is_sample.any()


def test_moves_and_result_are_enough_and_are_what_a_network_learns():
    games = imported({**WON, "opening_plies": 1})
    assert find_valid(games, 9)[1] is None
    targets = played_moves(games, search=SearchSettings(), trainer=TrainerSettings())
    assert targets.is_sample.tolist() == [False, True, True, True, True]
    assert targets.wdl[1:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    played = np.split(targets.policy, np.cumsum([9, 8, 7, 6]))
    assert [(each.sum(), each.max()) for each in played] == [(1, 1)] * 5
    legal = np.split(games.moves["action"], np.cumsum([9, 8, 7, 6]))
    assert set(games.positions["search"][1:]) == {PUCT}
    assert set(games.positions["proven"]) == {UNPROVEN}
    chosen = [int(actions[policy.argmax()]) for actions, policy in zip(legal, played, strict=True)]
    assert chosen == games.positions["action"].tolist() == [GAME.start.parse_action(name) for name in WON["moves"]]
    usual = mixed_targets(games, search=SearchSettings(), trainer=TrainerSettings(search_value_weight=0))
    assert np.array_equal(usual.is_sample, targets.is_sample)
    assert np.allclose(usual.wdl[1:], targets.wdl[1:])
    assert np.array_equal(usual.policy[9:], targets.policy[9:])


def test_rolls_are_moves_that_must_be_possible_and_no_plies():
    pig = load_game("pig(goal=10)")
    position, names, rng = pig.start, [], np.random.default_rng(0)
    while position.outcome() is None:
        move = random_move(position, rng)
        names.append((move_name(position, move), is_chance(position)))
        position = position.play(move)
    line = {"moves": [name for name, _ in names], "winner": "first" if position.outcome().winner == 0 else "second"}
    found = imported(line, game=pig)
    assert len(found.positions) == sum(not is_roll for _, is_roll in names) < len(names)
    at = [is_roll for _, is_roll in names].index(True)
    line["moves"][at] = "99"
    assert imported(line, game=pig).reason.startswith(f"move {at + 1}: expected a roll, one of ")


def test_a_player_may_have_resigned_and_a_draw_has_a_second_name():
    resigned = {"moves": ["b2", "a1", "a3"], "result": "second", "end": "resign"}
    drawn = {"moves": ["b2", "a1", "a3", "c1", "b1", "b3", "c2", "a2", "c3"], "winner": "1/2-1/2"}
    lost, even = imported(resigned, drawn)
    assert (lost.games["winner"], lost.games["end"], len(lost.positions)) == (1, RESIGNED, 3)
    assert (even.games["winner"], even.games["end"]) == (DRAW, BY_RULE)


@pytest.mark.parametrize(
    ("fields", "winner", "end"),
    [
        ({"winner": "first", "end": "resign"}, 0, "resign"),
        ({"winner": "first", "end": "adjudicated"}, 0, "resign"),
        ({"winner": "draw", "end": "adjudicated"}, DRAW, "adjudicated"),
        ({"result": "second", "resigned": True, "person": "first"}, 1, "resign"),
    ],
)
def test_a_result_that_the_final_position_does_not_show_is_kept(fields: dict[str, Any], winner: int, end: str):
    games = imported({"moves": ["b2", "a1", "a3"], **fields})
    assert (games.games["winner"], games.games["end"]) == (winner, RESIGNED)
    assert find_valid(games, 9)[1] is None
    (line,) = games_to_json(games, GAME.start)
    assert line["end"] == end
    assert imported(line).games.tobytes() == games.games.tobytes()
    assert find_disagreement(games, GAME.start) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"moves": ["a1"', "expected a JSON object: Expecting "),
        ("(;GM[1]FF[4]SZ[9];B[ee])", "this is an SGF file; expected a JSON object, such as "),
        ("{}", "expected moves, a list of names"),
        ({"moves": "a1"}, "expected moves, a list of names"),
        ({"moves": [1]}, "expected moves, a list of names"),
        ({"moves": ["a1", "a1"]}, "move 2: expected one of "),
        ({"moves": [*WON["moves"], "c3"]}, "move 6, 'c3': the game is already over"),
        ({"moves": ["a1", "b1"]}, "the game is not over after its 2 moves; the end of one that a player resigned is "),
        ({"moves": [], "winner": None}, "the game is not over after its 0 moves"),
        ({"moves": [], "winner": "draw", "end": "resign"}, "the game is not over after its 0 moves; "),
        ({"winner": "second"}, f'the winner is given as "second", {WINS}'),
        ({"winner": "draw"}, f'the winner is given as "draw", {WINS}'),
        ({"winner": None}, f"the winner is given as null, {WINS}"),
        ({"winner": [1]}, "expected the winner, one of first, second and draw, got [1]"),
        ({"game": "othello v1"}, "a game of 'othello v1', not of tic-tac-toe v1"),
        ({"opening_plies": 6}, "expected opening_plies from 0 to 5, got 6"),
        ({"opening_plies": True}, "expected opening_plies from 0 to 5, got True"),
        ({"moves": [], "end": "resign"}, "the game has no moves"),
        ({"values": [0, 0]}, "values has 2 numbers, but the game has 5 plies"),
        ({"values": [0, 0, 1.5, 0, 0]}, "values has the impossible value 1.5 at ply 3"),
        ({"values": ["0"] * 5}, "expected values, a list of numbers, one per ply"),
        ({"full": [1, 0, 0, 0, 0], "opening_plies": 1}, "full has the impossible value 1 at ply 1"),
        ({"players": [0, 1, 1, 0, 1]}, "players has the impossible value 1 at ply 3"),
        ({"models": [-1, 0, 0, 0, 0]}, "models has the impossible value -1 at ply 1"),
        ({"id": "x"}, "expected id, 16 hexadecimal digits, got 'x'"),
        ({"id": "1" * 17}, "expected id, 16 hexadecimal digits, got '11111111111111111'"),
        ({"id": 7}, "expected id, 16 hexadecimal digits, got 7"),
    ],
)
def test_what_is_not_a_finished_game_is_named_by_its_line(line: object, reason: str):
    wrong = json.dumps({**WON, **line}) if isinstance(line, dict) else line
    good = json.dumps(WON).encode()
    before, fault, after = import_games(json_games([good, b"  \n", wrong.encode(), good]), GAME)
    assert isinstance(before, Games)
    assert isinstance(after, Games)
    assert str(fault).startswith(f"line 3: {reason}")
    assert fault.reason == reason or reason.endswith(" ")


def test_luck_is_exported_where_it_is_recorded(exported: Games):
    game = next(iter(exported))
    assert "luck" not in next(games_to_json(game, GAME.start))
    luck = np.linspace(-1, 1, len(game.positions)).astype(np.float32)
    found = next(games_to_json(replace(game, luck=luck), GAME.start))
    assert found["luck"] == [round(float(each), 4) for each in luck]
    assert isinstance(imported(found), Games)
