"""Chance in full: one evaluation for each roll, one backup of their expectation, and no noise of rolls after it."""

import numpy as np
import pytest

from plyzero.games.pig import HOLD, ROLL, Pig
from plyzero.search.slots import search
from plyzero.search.tree import MAX_IN_FULL, NO_NODE, UNPROVEN
from plyzero.settings import SearchSettings
from tests.helpers.dice import ManySided, PlainRace, Race, Tosses, decisions, points_of, solve_pig
from tests.helpers.searches import both_kinds, nodes_of, result_of, searched
from tests.helpers.toys import Exact, Hashed, after_move

GOAL = 20

both_games = pytest.mark.parametrize("start", [Race(), PlainRace()], ids=["compiled", "plain"])


def pig(own: int, other: int, turn: int) -> Pig:
    position = Pig(goal=GOAL)
    position.record["scores"], position.record["turn"] = (own, other), turn
    return position


@both_kinds
def test_under_a_table_the_backed_up_expectation_is_the_closed_form(kind):
    won = solve_pig(GOAL)
    table = Exact(2, lambda position: 2 * won[points_of(position)] - 1)
    positions = [pig(own, other, turn + 1) for own, other, turn in np.argwhere(won[:, :, 1:] > 0)[::37]]
    settings = SearchSettings(algorithm=kind, all_rolls=True)
    found = search(positions, table, simulations=2, settings=settings)
    checked = 0
    for position, result in zip(positions, found, strict=True):
        i, j, k = points_of(position)
        after = [1 - won[j, i, 0], *(won[i, j, k + roll] if i + k + roll < GOAL else 1.0 for roll in range(2, 7))]
        if result.visits[ROLL] == 1:
            checked += 1
            assert result.q[ROLL] == pytest.approx(2 * np.mean(after) - 1, abs=1e-6)
        if result.visits[HOLD]:
            assert result.q[HOLD] == pytest.approx(1 - 2 * won[j, i + k, 0], abs=1e-6)
    assert checked > 50


@both_kinds
@both_games
def test_a_node_in_full_is_worth_the_expectation_over_its_rolls_and_a_players_node_the_sum_of_its_moves(start, kind):
    in_full = sampled = summed = 0
    for position in decisions(start):
        slots = searched(position, Hashed(2), 40, kind, all_rolls=True)
        for record, edges, _ in nodes_of(slots, position):
            if not record["is_chance"]:
                if record["visits"] > 2 and is_settled(slots, edges):
                    summed += 1
                    expected = record["network_value"] + edges["value_sum"].sum()
                    assert record["value_sum"] == pytest.approx(expected, abs=1e-5)
            elif not record["in_full"]:
                sampled += 1  # a roll that follows a roll
            else:
                assert edges["visits"].min() >= 1
                assert record["visits"] == edges["visits"].sum() - len(edges) + 1
                if is_settled(slots, edges):
                    in_full += 1
                    expected = edges["prior"] @ (edges["value_sum"] / edges["visits"]) / edges["prior"].sum()
                    assert record["value_sum"] / record["visits"] == pytest.approx(expected, abs=1e-9)
    assert min(in_full, sampled, summed) > 20


def is_settled(slots, edges):
    """Whether no proof has changed what edges are worth since they were last backed up."""
    children = edges["child"][edges["child"] != NO_NODE]
    return (edges["proven"] == UNPROVEN).all() and not slots.trees.nodes[0, children]["is_exact"].any()


def test_a_simulation_stays_in_its_slot_until_each_roll_has_one_evaluation():
    position, batches = pig(0, 0, 2), []

    def evaluate(leaves):
        batches.append(len(leaves.observations))
        return Hashed(2)(leaves)

    slots = searched(position, evaluate, 2, "puct", all_rolls=True)
    assert batches == [1] * (1 + 1 + 6)  # the root, hold, and six rolls
    assert slots.result(0).visits.tolist() == [1, 1]
    assert slots.trees.slots["nodes"][0] == 1 + 1 + 1 + 6


def test_the_error_of_a_move_before_a_roll_falls():
    """Every leaf is known exactly, so all error is the rolls': of a throw's value, judged by few simulations."""
    start, errors = Tosses(), {}
    for all_rolls in (False, True):
        found = [(result_of(each, Exact(1), 3, all_rolls=all_rolls), each) for each in decisions(start)]
        wrong = [result.q[0] - after_move(each, 0, {}) for result, each in found if result.proven == UNPROVEN]
        errors[all_rolls] = np.square(wrong).mean()
        assert len(wrong) > 10
    assert errors[True] < 1e-9
    assert errors[False] > 0.005


@pytest.mark.parametrize(("sides", "in_full"), [(MAX_IN_FULL, True), (MAX_IN_FULL + 1, False)])
def test_a_chance_node_of_more_than_36_rolls_is_sampled(sides, in_full):
    slots = searched(ManySided(sides), Hashed(1), 4, all_rolls=True)
    assert slots.trees.nodes[0, 1][["is_chance", "in_full", "is_exact"]].tolist() == (1, in_full, in_full)
    if in_full:
        assert slots.result(0).q[0] == pytest.approx(0)


@both_kinds
def test_many_slots_find_what_one_alone_finds(kind):
    positions, settings = decisions(PlainRace())[:20], SearchSettings(algorithm=kind, all_rolls=True)
    together = search(positions, Hashed(2), simulations=30, settings=settings)
    alone = [result_of(position, Hashed(2), 30, kind, all_rolls=True) for position in positions]
    np.testing.assert_equal([*map(vars, together)], [*map(vars, alone)])
