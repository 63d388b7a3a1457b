"""The score in the search: expected points, and the utility that prefers more of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.search.policy import utility
from plyzero.search.slots import search
from plyzero.search.storage import make_trees
from plyzero.search.tree import SLOT
from plyzero.settings import SearchSettings
from tests.helpers.toys import CompiledHarvest, Counted, Harvest

SHARES = st.floats(-1, 1, width=32)


def settings(weight: float, algorithm: str = "puct") -> SearchSettings:
    return SearchSettings(algorithm=algorithm, score_weight=weight)


def utility_of(value: float, score: float, player: int, centre: float, weight: float) -> float:
    slot = np.zeros(1, SLOT)[0]
    slot["score_centre"] = centre
    trees, _ = make_trees(Harvest(), settings(weight), slots=1, nodes=2, cache_bytes=0, leaves=1)
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


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
@pytest.mark.parametrize("start", [Harvest(20), CompiledHarvest(20)])
def test_with_a_weight_the_search_takes_more_points(start, algorithm: str):
    evaluate = Counted(start.max_score, 0.5)
    (found,) = search([start], evaluate, simulations=64, settings=settings(0.5, algorithm))
    assert found.best_action() == 2
    assert found.q[2] > found.q[1] > found.q[0]
    assert abs(found.value) <= 1
    assert found.score > 0


@pytest.mark.parametrize("weight", [0.0, 0.5])
@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
def test_plain_and_compiled_games_are_searched_alike(weight: float, algorithm: str):
    evaluate = Counted(6, 0.25)
    plain, compiled = (
        search([start], evaluate, simulations=100, settings=settings(weight, algorithm))[0]
        for start in (Harvest(), CompiledHarvest())
    )
    assert plain.visits.tolist() == compiled.visits.tolist()
    assert np.array_equal(plain.q, compiled.q, equal_nan=True)
    assert (plain.value, plain.score) == (compiled.value, compiled.score)


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
@pytest.mark.parametrize("start", [Harvest(8), CompiledHarvest(8)])
def test_without_a_weight_the_score_changes_nothing(start, algorithm: str):
    scored, unscored = (
        search([start], Counted(8, 0.3, has_score=has_score), simulations=200, settings=settings(0.0, algorithm))[0]
        for has_score in (True, False)
    )
    assert scored.visits.tobytes() == unscored.visits.tobytes()
    assert scored.q.tobytes() == unscored.q.tobytes()
    assert (scored.value, scored.draw, scored.proven) == (unscored.value, unscored.draw, unscored.proven)
    assert scored.score is not None
    assert unscored.score is None


def test_the_score_is_that_of_the_player_to_move_in_points():
    ahead = Harvest(6).play(2)
    (first, second) = search([Harvest(6), ahead], Counted(6), simulations=0)
    assert (first.score, second.score) == pytest.approx((0, -2))
    last = Harvest(2).play(1)  # the second player can lose by a point, draw, or win by one
    (found,) = search([last], Counted(2), simulations=50, settings=settings(0.0))
    assert (found.proven, found.best_action()) == (1, 2)


def test_the_value_of_a_search_stays_the_value_without_the_score():
    start = Harvest(20)
    (found,) = search([start], Counted(20, 0.0), simulations=64, settings=settings(0.5))
    assert found.value == pytest.approx(0, abs=1e-6)


def test_an_evaluator_may_leave_out_the_score():
    def evaluate(batch: EvaluationBatch) -> Evaluation:
        n = len(batch.observations)
        return Evaluation(np.zeros((n, 3), np.float32), np.tile(np.float32([0.5, 0, 0.5]), (n, 1)))

    (found,) = search([CompiledHarvest(4)], evaluate, simulations=30, settings=settings(0.5))
    assert found.score is None
