"""Points and final boards of the included games, against known answers."""

import numpy as np
import pytest

from examples.dots_and_boxes import DotsAndBoxes
from games.backgammon import BAR, CHECKERS, OFF, Backgammon
from games.go import Go
from games.othello import Othello
from plyzero.rules.random_game import random_game
from tests.helpers import toys


@pytest.mark.parametrize(
    ("moves", "komi", "lead"),
    [("c3 pass pass", 7.5, 25 - 7.5), ("pass pass", 7.5, -7.5), ("pass pass", 0, 0), ("pass pass", -3, 3)],
)
def test_points_of_go_are_area_and_komi(moves: str, komi: float, lead: float):
    end = toys.after(Go(5, komi), moves).outcome()
    assert (end.lead(0), end.score) == (lead, abs(lead))
    assert Go(5, komi).max_score == 25 + abs(komi)


def test_the_final_board_of_go_is_the_area_of_the_player_to_move():
    end = toys.after(Go(5), "c1 d1 c2 d2 c3 d3 c4 d4 c5 d5 pass pass")
    row = np.array([1, 1, 1, -1, -1]) * (1 if end.to_play == 0 else -1)
    assert np.array_equal(end.final_board(), np.tile(row, (1, 5, 1)))
    assert end.outcome().lead(0) == 5 - 7.5


@pytest.mark.parametrize(
    ("places", "points"),
    [({6: 14}, 1), ({6: 15}, 2), ({18: 15}, 2), ({19: 1, 6: 14}, 3), ({24: 15}, 3), ({BAR: 1, 6: 14}, 3)],
)
@pytest.mark.parametrize("winner", [0, 1])
def test_points_of_backgammon_are_those_of_gammon_and_backgammon(places: dict, points: int, winner: int):
    """places: place -> checkers of the loser, who has borne off the others."""
    position = Backgammon()
    record = position.record
    record["checkers"] = 0
    record["checkers"][winner, OFF] = CHECKERS
    record["checkers"][1 - winner, OFF] = CHECKERS - sum(places.values())
    for place, count in places.items():
        record["checkers"][1 - winner, place] = count
    outcome = position.outcome()
    assert (outcome.winner, outcome.score) == (winner, points)


@pytest.mark.parametrize("start", [Othello(6), DotsAndBoxes(2)])
def test_points_are_the_difference_of_the_final_board(start):
    for seed in range(20):
        end = random_game(start, np.random.default_rng(seed)).positions[-1]
        assert end.outcome().lead(end.to_play) == end.final_board().sum()
        assert end.final_board().shape == (1, *start.observation_shape[1:])
