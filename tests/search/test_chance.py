"""Chance in the search: proofs and expectations against expectimax, visits against probabilities, plain as compiled."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.rules.chance import chances_of, first_decision, is_chance, possible_moves
from plyzero.rules.game import Game, Outcome
from plyzero.search.evaluators import Rollouts
from plyzero.search.selection import select_chance
from plyzero.search.tree import EDGE, NO_NODE, NODE, PROVEN_DRAW, UNPROVEN
from tests.helpers.dice import PlainRace, Race, decisions
from tests.helpers.searches import both_kinds, nodes_of, result_of, searched
from tests.helpers.toys import Exact, Hashed, after_move, distance, solve

both_games = pytest.mark.parametrize("start", [Race(), PlainRace()], ids=["compiled", "plain"])


@both_kinds
@both_games
@pytest.mark.parametrize("all_rolls", [False, True])
def test_proven_and_exact_values_are_those_of_solve(start, kind, all_rolls):
    memo, proven, exact = {}, 0, 0
    for position in decisions(start):
        slots = searched(position, Hashed(2), 60, kind, all_rolls=all_rolls)
        for record, edges, reached in nodes_of(slots, position):
            assert record["is_chance"] == is_chance(reached)
            if record["proven"] != UNPROVEN:
                assert record["proven"] == solve(reached, memo)
            if record["is_exact"]:
                exact += 1
                assert record["value_sum"] / record["visits"] == pytest.approx(solve(reached, memo), abs=1e-6)
                draws = sum(chances_of(reached)[edge["action"]] for edge in edges if edge["proven"] == PROVEN_DRAW)
                assert record["draw_sum"] / record["visits"] == pytest.approx(draws, abs=1e-6)
            for edge in edges:
                if edge["proven"] != UNPROVEN:
                    proven += 1
                    assert edge["proven"] == after_move(reached, int(edge["action"]), memo)
    assert proven > 100
    assert exact > 15


@both_kinds
@both_games
def test_a_proof_lasts_at_least_as_long_as_the_fastest_win(start, kind):
    memo, exact = {}, 0
    for position in decisions(start):
        for record, edges, reached in nodes_of(searched(position, Hashed(2), 60, kind), position):
            if record["proven"] in (-1, 1):
                known = edges["plies"][edges["proven"] == record["proven"]]
                hurries = record["proven"] == 1 and not record["is_chance"]
                assert record["plies"] == (known.min() if hurries else known.max())
                assert record["plies"] >= distance(reached, memo)
                exact += record["plies"] == distance(reached, memo)
    assert exact > 100


class Fate(Game):
    """Player 0 moves and rolls; then it has won, or it wins after a move of player 1."""

    num_actions, num_chances, observation_shape, max_plies = 1, 2, (1, 1, 1), 2
    moves: tuple[int, ...] = ()

    @property
    def to_play(self):
        return len(self.moves) // 2

    def chances(self):
        return [0.5, 0.5] if len(self.moves) == 1 else []

    def legal_actions(self):
        return [0]

    def play(self, action):
        after = copy.copy(self)
        after.moves = (*self.moves, action)
        return after

    def outcome(self):
        return Outcome(0) if self.moves[1:2] == (0,) or len(self.moves) == 3 else None

    def observe(self):
        return np.full((1, 1, 1), len(self.moves))


@both_kinds
def test_of_rolls_the_longest_counts_and_a_roll_is_no_ply(kind):
    found = result_of(Fate(), Hashed(1), 40, kind)
    assert (found.proven, found.plies_to_end) == (1, 2)
    assert distance(Fate(), {}) == 2


@both_kinds
def test_a_throw_whose_ends_are_all_proven_is_worth_its_expectation_at_the_root(kind):
    memo, found = {}, 0
    for position in decisions(Race()):
        slots = searched(position, Hashed(2), 40, kind)
        for i, edge in enumerate(slots.trees.edges[0, :2]):
            if edge["child"] != NO_NODE and slots.trees.nodes[0, edge["child"]]["is_exact"]:
                found += 1
                exact = after_move(position, int(edge["action"]), memo)
                assert slots.result(0).q[i] == pytest.approx(exact, abs=1e-6)
                assert -1 < exact < 1
    assert found > 5


@both_kinds
def test_if_leaves_are_known_so_are_the_best_move_and_what_it_is_worth(kind):
    evaluate, clear = Exact(2), 0
    for position in decisions(Race()):
        exact = [after_move(position, action, evaluate.memo) for action in (0, 1)]
        found = result_of(position, evaluate, 200, kind)
        best = int(np.argmax(exact))
        if abs(exact[0] - exact[1]) > 0.1:
            clear += 1
            assert found.best_action() == best
            assert found.q[best] == pytest.approx(exact[best], abs=0.2)
    assert clear > 20


@both_kinds
@both_games
def test_visits_of_rolls_stay_within_two_of_their_share(start, kind):
    start, seen = first_decision(start), 0
    for record, edges, reached in nodes_of(searched(start, Hashed(2), 500, kind), start):
        if record["is_chance"]:
            share = chances_of(reached)[edges["action"]] * edges["visits"].sum()
            assert np.abs(edges["visits"] - share).max() <= 2
            assert record["visits"] == edges["visits"].sum()
            seen += record["visits"] > 20
    assert seen > 2


@given(st.lists(st.integers(1, 100), min_size=1, max_size=40))
def test_no_roll_is_visited_much_more_or_less_often_than_its_share(weights):
    chances = np.array(weights) / sum(weights)
    node, edges = np.zeros(1, NODE), np.zeros(len(weights), EDGE)
    edges["prior"], node["num_edges"] = chances, len(weights)
    for n in range(1, 300):
        edges[select_chance(node[0], edges, 7)]["visits"] += 1
        node["visits"] = n
        surplus = edges["visits"] - n * chances
        assert np.abs(surplus).max() < 3


def test_the_first_visits_of_many_nodes_see_every_roll_by_its_probability():
    chances = np.array([0.5, 0.3, 0.2])
    node, edges = np.zeros(1, NODE), np.zeros(3, EDGE)
    edges["prior"], node["num_edges"] = chances, 3
    first = np.bincount([select_chance(node[0], edges, n) for n in range(4000)], minlength=3) / 4000
    assert first == pytest.approx(chances, abs=0.03)


@both_kinds
@pytest.mark.parametrize("all_rolls", [False, True])
def test_compiled_and_plain_dice_give_the_same_search(kind, all_rolls):
    pairs = list(zip(decisions(Race()), decisions(PlainRace()), strict=True))
    for seed, pair in enumerate(pairs):
        slots = [searched(each, Hashed(2), 50, kind, seed=seed, all_rolls=all_rolls) for each in pair]
        np.testing.assert_equal(*(vars(each.result_with_lines(0)) for each in slots))
    assert len(pairs) > 50


def test_a_principal_variation_ends_where_chance_moves():
    start = first_decision(Race())
    steps, throws = searched(start, Hashed(2), 200).principal_variations(0)
    assert throws == (1,)
    assert steps[0] == 0
    assert len(steps) > 1
    assert 1 not in steps[:-1]


def test_where_chance_moves_nothing_is_searched():
    with pytest.raises(ValueError, match="roll first"):
        result_of(Race(), Hashed(2), 4)


class EndlessRace(Race):
    def play(s, action):
        s["begun"], s["thrown"] = 1, s["begun"]


class PlainEndlessRace(PlainRace):
    def play(self, action):
        return copy.copy(self) if self.thrown else super().play(action)


@pytest.mark.parametrize("start", [EndlessRace(), PlainEndlessRace()], ids=["compiled", "plain"])
def test_rolls_that_never_end_stop_the_search(start):
    with pytest.raises(ValueError, match="after 1024 rolls no player is to move"):
        result_of(start.play(0), Hashed(2), 4)


@both_games
def test_rollouts_roll_the_dice(start):
    # From 6 : 6 a step of two draws; a throw wins by one, and by two where three or four would.
    evaluate = Rollouts(2, np.random.default_rng(0))
    for position in decisions(start)[:6]:
        mean = np.mean([evaluate._playout(position) for _ in range(3000)])
        assert mean == pytest.approx(random_value(position), abs=0.07)


def random_value(position):
    """Return the expected result of random play for player `to_play`."""
    if (outcome := position.outcome()) is not None:
        return outcome.value(position.to_play)
    moves, chances = possible_moves(position), chances_of(position)
    shares = chances[moves] if len(chances) else [1 / len(moves)] * len(moves)
    after = [position.play_unchecked(move) for move in moves]
    return sum(
        p * random_value(a) * (1 if a.to_play == position.to_play else -1) for p, a in zip(shares, after, strict=True)
    )
