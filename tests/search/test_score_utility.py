"""The score in the search: expected points, and the utility that prefers more of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.search.policy import utility
from plyzero.search.slots import SearchSlots, search
from plyzero.search.tree import SLOT
from plyzero.settings import SearchSettings
from tests.helpers.searches import both_kinds, result_of
from tests.helpers.toys import CompiledHarvest, Counted, Harvest

SHARES = st.floats(-1, 1, width=32)


def utility_of(value: float, score: float, player: int, centre: float, weight: float) -> float:
    slot = np.zeros(1, SLOT)[0]
    slot["score_centre"] = centre
    trees = SearchSlots(Harvest(), SearchSettings(score_weight=weight), slots=1, simulations=1).trees
    return utility(value, score, player, slot, trees.settings[0])


@given(SHARES, SHARES, SHARES, st.floats(0, 1))
def test_the_utility_is_bounded_and_the_other_players_is_the_negative(value, score, centre, weight):
    own = utility_of(value, score, 0, centre, weight)
    assert -1 <= own <= 1
    assert utility_of(-value, -score, 1, centre, weight) == pytest.approx(-own)
    assert utility_of(value, centre, 0, centre, weight) == pytest.approx(value / (1 + weight))
    assert utility_of(value, score, 0, centre, 0.0) == value


def test_the_utility_of_a_lead_has_a_known_value():
    # score - s_0 = c, so atan is a quarter of π and the score counts a half
    assert utility_of(0.5, 0.35, 0, 0.25, 0.4) == pytest.approx((0.5 + 0.4 / 2) / 1.4, abs=1e-6)


@both_kinds
@pytest.mark.parametrize("start", [Harvest(20), CompiledHarvest(20)])
def test_with_a_weight_the_search_takes_more_points(start, kind: str):
    found = result_of(start, Counted(20, 0.5), 64, kind, score_weight=0.5)
    assert found.best_action() == 2
    assert found.q[2] > found.q[1] > found.q[0]
    assert abs(found.value) <= 1
    assert found.score > 0


@pytest.mark.parametrize("weight", [0.0, 0.5])
@both_kinds
def test_plain_and_compiled_games_are_searched_alike(weight: float, kind: str):
    starts, evaluate = (Harvest(), CompiledHarvest()), Counted(6, 0.25)
    np.testing.assert_equal(*(vars(result_of(start, evaluate, 100, kind, score_weight=weight)) for start in starts))


@both_kinds
@pytest.mark.parametrize("start", [Harvest(8), CompiledHarvest(8)])
def test_without_a_weight_the_score_changes_nothing(start, kind: str):
    scored, unscored = (result_of(start, Counted(8, 0.3, has_score=has), 200, kind) for has in (True, False))
    assert (scored.score is None, unscored.score) == (False, None)
    points = {"score": scored.score, "scores": scored.scores}
    np.testing.assert_equal(vars(scored), {**vars(unscored), **points})


def test_the_score_after_each_action_is_that_of_the_player_who_moves():
    found = result_of(Harvest(6), Counted(6), 60, "puct")
    assert found.scores.shape == found.actions.shape
    assert (np.diff(found.scores) > 0.5).all()  # each action takes a point more than the one before
    assert found.scores.max() > found.score  # the mean over all actions


def test_the_score_is_that_of_the_player_to_move_in_points():
    ahead = Harvest(6).play(2)
    (first, second) = search([Harvest(6), ahead], Counted(6), simulations=0)
    assert (first.score, second.score) == pytest.approx((0, -2))
    last = Harvest(2).play(1)  # the second player can lose by a point, draw, or win by one
    found = result_of(last, Counted(2), 50, "puct")
    assert (found.proven, found.best_action()) == (1, 2)


def test_the_value_of_a_search_stays_the_value_without_the_score():
    found = result_of(Harvest(20), Counted(20), 64, "puct", score_weight=0.5)
    assert found.value == pytest.approx(0, abs=1e-6)


def test_an_evaluator_may_leave_out_the_score():
    assert result_of(CompiledHarvest(4), Counted(4, has_score=False), 30, "puct", score_weight=0.5).score is None
