"""The search against numbers worked out by hand, games whose values are known, and its own promises.

One simulation adds one visit; values are for the player to move; slots share nothing; what is proven is exact.
"""

import itertools
import math
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.check.template.tic_tac_toe import TicTacToe as PlainTicTacToe
from plyzero.errors import UserError
from plyzero.games.connect_four import ConnectFour
from plyzero.games.othello import Othello
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.search import storage
from plyzero.search.evaluators import Evaluation, EvaluationBatch, Rollouts, Uniform
from plyzero.search.gumbel import considered_visits, improved_policy, mixed_value, transformed_q
from plyzero.search.policy import policy_target
from plyzero.search.selection import select_gumbel, select_gumbel_root, select_puct
from plyzero.search.slots import SearchSlots, search
from plyzero.search.tree import EDGE, GUMBEL, NODE, PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN, PUCT, SLOT, UNPROVEN
from plyzero.settings import SearchSettings
from tests.helpers import toys
from tests.helpers.searches import KINDS, both_kinds, result_of, searched, tree_of
from tests.helpers.surroundings import python
from tests.helpers.toys import Chain, Constant, Exact, Hashed, Plain, Relay, Wide, Written


class StuckInPython(Relay):
    """After two moves nothing is legal, though the game goes on."""

    def legal_actions(self):
        return [] if self.ply == 2 else [0]


class StuckCompiled(Wide):
    def legal(s, mask):
        mask[:] = s["plies"] < 2


choices = st.lists(st.integers(0, 59), max_size=40)
nan = math.nan


@both_kinds
@pytest.mark.parametrize("game", [StuckInPython, StuckCompiled])
def test_a_position_that_is_not_over_and_has_no_move_is_one_sentence(game, kind):
    words = rf"tests.search.test_search:{game.__name__} cannot be played: .* has no legal action: .*; plyzero check "
    with pytest.raises(UserError, match=words):
        result_of(game(), Uniform(game.num_actions), 700, kind)
    with pytest.raises(UserError, match=words):
        result_of(game().play(0).play(0), Uniform(game.num_actions), 1, kind)


def grown(position, evaluate, simulations, kind, **options):
    """Return the whole tree that one search alone grows."""
    return tree_of(searched(position, evaluate, simulations, kind, **options), position)


# --- PUCT, by hand ---


def hand_made(*, visits, value_sum, edges):
    """Return a node and its edges, each given as (prior, visits, value_sum, proven)."""
    node, row = np.zeros(1, NODE), np.zeros(len(edges), EDGE)
    node["num_edges"], node["visits"], node["value_sum"] = len(edges), visits, value_sum
    for i, (prior, edge_visits, edge_sum, proven) in enumerate(edges):
        row[i]["action"], row[i]["prior"], row[i]["logit"] = i, prior, math.log(prior)
        row[i]["visits"], row[i]["value_sum"], row[i]["proven"] = edge_visits, edge_sum, proven
    return node[0], row


def numbers(**changed):
    return SearchSlots(TicTacToe(), SearchSettings(**changed), slots=1, simulations=1).trees.settings[0]


# 16 visits, c = 1.25: U = 1.25 · 4 · P / (1 + n), and Q + U = 0.5 + 5 · 0.2 / 10 = 0.6 at the first edge.
SECOND = (0.5, 5, -1.0, UNPROVEN)


@pytest.mark.parametrize(
    ("between", "last", "is_root", "priors"),
    [
        ([], (5, 0.5), False, (0.599, 0.601)),  # tried: 0.1 + 5 · P / 6
        ([SECOND], (0, 0.0), False, (0.1217, 0.1220)),  # untried: 3.2 / 16 - 0.25 · √(0.2 + 0.5) = -0.00917, + 5 · P
        ([SECOND], (0, 0.0), True, (0.0799, 0.0801)),  # untried at the root, without a reduction: 0.2 + 5 · P
    ],
    ids=["tried", "untried", "untried at the root"],
)
def test_puct_takes_the_largest_value_plus_c_prior_root_n_over_one_plus_visits(between, last, is_root, priors):
    for prior, chosen in zip(priors, (0, len(between) + 1), strict=True):
        edges = [(0.2, 9, 4.5, UNPROVEN), *between, (prior, *last, UNPROVEN)]
        node, row = hand_made(visits=16, value_sum=3.2, edges=edges)
        assert select_puct(node, row, numbers(c_puct=1.25, fpu_reduction=0.25), is_root) == chosen


@pytest.mark.parametrize(
    "select", [lambda *each: select_gumbel(*each, np.empty(2)), lambda *each: select_puct(*each, False)]
)
def test_a_move_proven_to_lose_is_left_alone_whatever_its_mean(select):
    edges = [(0.9, 3, 3.0, PROVEN_LOSS), (0.1, 8, -7.9, UNPROVEN)]
    node, row = hand_made(visits=12, value_sum=-4.9, edges=edges)
    assert select(node, row, numbers()) == 1


def test_puct_gives_a_proven_move_its_exact_value():
    # A mean of -0.5 that is proven a draw: 0 + 1 · 0.5 · 3 / 5 = 0.3; the other one: Q + 0.3.
    for value_sum, chosen in ((-0.04, 0), (0.04, 1)):
        edges = [(0.5, 4, -2.0, PROVEN_DRAW), (0.5, 4, value_sum, UNPROVEN)]
        node, row = hand_made(visits=9, value_sum=-2, edges=edges)
        assert select_puct(node, row, numbers(c_puct=1.0), False) == chosen


def test_puct_visits_the_best_prior_first_and_then_the_best_score():
    # The root is worth 0.2 - 0.3 = -0.1 and each child, seen from it, +0.1. c = 1.25, priors 1/9.
    # All untried are worth the root's mean, which the child's +0.1 pulls up to 0; the first child then scores
    # 0.1 + 1.25 · √2 / 9 / 2 = 0.198 and the untried 0 + 1.25 · √2 / 9 = 0.196: it is tried again.
    found = result_of(TicTacToe(), Constant(9, 0.2, 0.5, 0.3), 2, "puct")
    assert found.visits.tolist() == [2] + [0] * 8


# --- Gumbel, by hand ---

LOGITS = np.log([0.5, 0.3, 0.2])
VISITS = np.array([3, 1, 0])
Q = np.array([0.4, -0.2, nan])


def test_the_value_of_an_untried_action_mixes_the_network_with_what_was_visited():
    # (v + N · Σ π q / Σ π) / (1 + N) over the visited = (0.1 + 4 · (0.5 · 0.4 - 0.3 · 0.2) / 0.8) / 5 = 0.16
    assert mixed_value(LOGITS, VISITS, Q, 0.1) == pytest.approx(0.16)
    assert mixed_value(LOGITS, np.zeros(3, int), np.full(3, nan), 0.1) == 0.1


def test_sigma_scales_values_from_nought_to_one_by_c_visit_and_the_most_visits():
    # (50 + 3) · c_scale · (q + 1) / 2 with q = 0.4, -0.2 and the mixed 0.16
    assert transformed_q(LOGITS, VISITS, Q.copy(), 0.1, 50, 1.0) == pytest.approx([37.1, 21.2, 30.74])
    assert transformed_q(LOGITS, VISITS, Q.copy(), 0.1, 7, 0.1) == pytest.approx([0.7, 0.4, 0.58])


def test_the_improved_policy_is_the_softmax_of_logits_plus_sigma():
    weights = np.array([0.5 * math.exp(0.7), 0.3 * math.exp(0.4), 0.2 * math.exp(0.58)])
    assert improved_policy(LOGITS, VISITS, Q.copy(), 0.1, 7, 0.1) == pytest.approx(weights / weights.sum())


def test_where_all_moves_are_nearly_equal_the_improved_policy_is_near_the_prior():
    q = np.array([0.3, 0.3005, 0.3010])
    policy = improved_policy(LOGITS, np.array([4, 4, 4]), q, 0.3, 50, 1.0)
    assert (policy * (np.log(policy) - LOGITS)).sum() < 0.05


def test_inside_the_tree_gumbel_follows_the_improved_policy():
    # c_visit = 7, c_scale = 0.1: π' = (0.524, 0.233, 0.243), as above; 1 + Σ n = 5.
    # π' - n / (1 + Σ n) = (0.524 - 0.6, 0.233 - 0.2, 0.243 - 0): the third, then, once it has one visit, ...
    def select(visits):
        rows = [(p, n, n * q if n else 0.0, UNPROVEN) for p, n, q in zip((0.5, 0.3, 0.2), visits, Q, strict=True)]
        node, edges = hand_made(visits=1 + sum(visits), value_sum=0, edges=rows)
        node["network_value"] = 0.1
        return select_gumbel(node, edges, numbers(c_visit=7, c_scale=0.1), np.empty(3))

    assert select((3, 1, 0)) == 2
    # Untouched: all values are the network's, π' is the prior, and the largest prior goes first.
    assert select((0, 0, 0)) == 0


def select_at_root(simulations, visits, *, q=0.0, proven=(UNPROVEN,) * 3, noise=(0, 0, 0)):
    """Return the edge that Gumbel takes at a root with priors of 0.5, 0.3 and 0.2, 2 considered actions of 4 visits."""
    rows = [(p, n, n * q, each) for p, n, each in zip((0.5, 0.3, 0.2), visits, proven, strict=True)]
    node, edges = hand_made(visits=1 + sum(visits), value_sum=0, edges=rows)
    slot = np.zeros(1, SLOT)[0]
    slot["simulations"] = simulations
    row = np.array(noise, np.float32)
    return select_gumbel_root(slot, node, edges, row, table_of_visits(2, 4), numbers(), np.empty(3))


def test_at_the_root_gumbel_takes_the_largest_noise_logit_and_sigma_on_schedule():
    assert list(table_of_visits(2, 4)) == [0, 0, 1, 1]
    for simulations, visits, chosen in ((0, (0, 0, 0), 0), (1, (1, 0, 0), 1), (2, (1, 1, 0), 0), (3, (2, 1, 0), 1)):
        assert select_at_root(simulations, visits, q=0.2) == chosen
    # log 0.2 - log 0.5 = -0.916
    assert select_at_root(0, (0, 0, 0), noise=(0, 0, 0.90)) == 0
    assert select_at_root(0, (0, 0, 0), noise=(0, 0, 0.93)) == 2


def test_at_the_root_gumbel_leaves_a_move_proven_lost_alone():
    assert select_at_root(2, (1, 1, 0), proven=(PROVEN_LOSS, UNPROVEN, UNPROVEN)) == 1
    # off the schedule, rather than a move that loses
    assert select_at_root(2, (1, 1, 0), proven=(PROVEN_LOSS, PROVEN_LOSS, UNPROVEN)) == 2


def table_of_visits(considered, simulations):
    return considered_visits(considered, np.empty(simulations, np.int32))


def halving(considered, simulations):
    """Sequential halving as the paper words it: the surviving actions, phase by phase, each tried equally often."""
    visits = dict.fromkeys(range(considered), 0)
    surviving = list(visits)
    order = []
    phases = max(1, math.ceil(math.log2(considered)))
    while len(order) < simulations:
        each = max(1, math.floor(simulations / (phases * len(surviving))))
        for _ in range(each):
            for action in surviving:
                order.append(visits[action])
                visits[action] += 1
        if len(surviving) > 1:
            surviving = surviving[: max(2, len(surviving) // 2)]
    return order[:simulations]


@given(considered=st.integers(1, 40), simulations=st.integers(0, 300))
def test_the_table_of_visits_is_sequential_halving(considered, simulations):
    assert list(table_of_visits(considered, simulations)) == halving(considered, simulations)


def test_gumbel_visits_the_moves_of_the_root_by_the_table():
    # 4 actions, 2 phases: 42 // 8 = 5 visits each, then two at a time with 42 // 4 = 10 and one with what is left.
    for considered, visits in ((4, [0, 0, 0, 5, 5, 16, 16]), (1, [0] * 6 + [42])):
        assert sorted(result_of(ConnectFour(), Hashed(7), 42, max_considered_actions=considered).visits) == visits


# --- values and whose they are ---


@both_kinds
@pytest.mark.parametrize("movers", ["0", "01", "010", "01010101", "0000", "0011", "0110", "1001", "1101", "00101100"])
def test_a_value_changes_its_sign_where_the_player_to_move_changes(movers, kind):
    # Every position is worth -0.1 to who moves there, so +0.1 to the player at the root where it is the other one.
    seen = [-0.1 if mover == movers[0] else 0.1 for mover in movers]
    root = result_of(Chain(movers), Constant(1, 0.2, 0.5, 0.3), len(movers) - 1, kind)
    assert root.value == pytest.approx(sum(seen) / len(seen))
    assert (root.network_value, root.network_draw, root.draw) == pytest.approx((-0.1, 0.5, 0.5))
    if len(movers) > 1:
        assert root.q == pytest.approx([sum(seen[1:]) / len(seen[1:])], abs=1e-7)
    proven = result_of(Chain(movers), Constant(1, 0.2, 0.5, 0.3), len(movers), kind)
    assert proven.proven == proven.value == (-1 if movers[0] == movers[-1] else 1)
    assert proven.q.tolist() == [proven.value]


@both_kinds
def test_a_player_who_moves_twice_finds_the_win_that_needs_both_moves(kind):
    # Player 0 moves twice, then player 1. Only after 1 1 does every reply of player 1 lose; by hand: a win by 1.
    start = Written("001", "11011000")
    assert toys.move_values(start) == {0: -1, 1: 1}
    root = result_of(start, Uniform(2), 30, kind)
    assert (root.proven, root.value, root.best_action()) == (PROVEN_WIN, 1, 1)
    root = result_of(start, Exact(2), 2, kind)  # too few simulations to see the end
    assert root.proven == UNPROVEN
    assert root.q == pytest.approx([-1, 1], abs=2e-6)
    assert (abs(root.q) < 1).all()  # which only a proof is worth
    assert root.best_action() == 1


@both_kinds
@given(data=st.data(), depth=st.integers(1, 4))
def test_what_a_search_proves_is_the_exact_value_whoever_moves_when(kind, data, depth):
    movers = data.draw(st.text("01", min_size=depth, max_size=depth))
    winners = data.draw(st.text("01-", min_size=2**depth, max_size=2**depth))
    start = Written(movers, winners)
    root = result_of(start, Uniform(2), 400, kind, c_puct=100.0, max_considered_actions=2, c_visit=0.0, c_scale=0.01)
    if root.proven != UNPROVEN:
        assert root.proven == root.value == toys.solve(start)
        assert root.draw == (root.proven == PROVEN_DRAW)
        assert toys.move_values(start)[root.best_action()] == root.proven
    if kind == "puct":
        assert root.proven != UNPROVEN


class Prefers(Uniform):
    """Expects nothing, but prefers one action a hundred times."""

    def __init__(self, action):
        super().__init__(2)
        self.action = action

    def __call__(self, batch):
        found = super().__call__(batch)
        found.logits[:, self.action] += math.log(100)
        return found


def ends_after(winner, *sequences):
    return {"".join(moves): winner for each in sequences for moves in itertools.product(*each)}


WON_IN_ONE_OR_THREE = ends_after(0, ["1"], ["0", "01", "01"])
LOST_IN_FOUR_OR_TWO = ends_after(1, ["0", "01", "01", "01"], ["1", "1"], ["1", "0", "01", "01"])


@both_kinds
def test_a_proven_win_is_played_fast(kind):
    start = toys.Ends(WON_IN_ONE_OR_THREE)
    found = result_of(start, Uniform(2), 40, kind)
    assert (found.proven, found.plies_to_end, found.best_action()) == (PROVEN_WIN, 1, 1)
    fast, slow = replace(found, q=np.ones(2, np.float32)), replace(found, plies=found.plies * 0)
    for plies, best in (([3, 1], 1), ([1, 3], 0), ([0, 5], 1)):
        assert replace(fast, plies=np.array(plies), visits=np.array([9, 1])).best_action() == best
        assert replace(fast, plies=np.array(plies)).policy.tolist() == [0.5, 0.5]
    assert slow.plies_to_end is None


def test_a_proof_that_did_not_look_for_the_fastest_win_says_how_long_it_lasts():
    found = result_of(toys.Ends(WON_IN_ONE_OR_THREE), Prefers(0), 40, "puct")
    assert (found.proven, found.plies_to_end, found.best_action()) == (PROVEN_WIN, 3, 0)


@both_kinds
def test_a_proven_loss_is_resisted_as_long_as_possible(kind):
    found = result_of(toys.Ends(LOST_IN_FOUR_OR_TWO), Prefers(1), 400, kind)
    assert (found.proven, found.plies_to_end, found.best_action()) == (PROVEN_LOSS, 4, 0)
    assert found.plies.tolist() == [4, 2]


def test_of_proven_draws_the_one_that_looked_best_is_played():
    found = result_of(Written("01", "----"), Uniform(2), 40)
    assert (found.proven, found.plies_to_end) == (PROVEN_DRAW, None)
    for means, best in (([0.1, 0.2], 1), ([0.3, 0.2], 0), ([nan, -0.5], 1)):
        assert replace(found, means=np.float32(means), visits=np.array([5, 5])).best_action() == best


WINS_IN_ONE = [
    (ConnectFour(), "4 4 5 5 6 6", "3 7"),  # player 0
    (ConnectFour(), "1 4 1 4 2 4 7", "4"),  # player 1
    (ConnectFour(), "1 2 2 3 3 4 3 4 4 6", "4"),
    (PlainTicTacToe(), "a1 b1 a2 b2 c3", "b3"),
]
LOSSES_IN_ONE = [
    (ConnectFour(), "4 1 4 1 4", "4"),  # player 1 must block
    (ConnectFour(), "1 4 2 4 7 4", "4"),  # player 0 must block
    (ConnectFour(), "1 1 2 2 7 7 3 3 1", "4"),
    (PlainTicTacToe(), "a1 b2 b1", "c1"),
]


@both_kinds
@pytest.mark.parametrize(("start", "moves", "wins"), WINS_IN_ONE)
def test_a_win_in_one_is_played_by_both_colours(start, moves, wins, kind):
    position = toys.after(start, moves)
    root = result_of(position, Uniform(start.num_actions), 40, kind)
    assert position.action_name(root.best_action()) in wins.split()
    assert (root.proven, root.value) == (PROVEN_WIN, 1)
    assert root.simulations < 40


@both_kinds
@pytest.mark.parametrize(("start", "moves", "saves"), LOSSES_IN_ONE)
def test_a_loss_in_one_is_averted_by_both_colours_and_by_random_playouts(start, moves, saves, kind):
    position = toys.after(start, moves)
    played_out = result_of(position, Rollouts(start.num_actions, np.random.default_rng(1)), 400, "puct")
    root = result_of(position, Uniform(start.num_actions), 100, kind)
    assert {position.action_name(each.best_action()) for each in (root, played_out)} == {saves}
    if kind == "puct":  # which tries every move, and so sees why the others lose
        assert [position.action_name(int(a)) for a in root.actions[root.policy > 0]] == [saves]


def test_a_move_that_only_seems_to_lose_keeps_its_share_of_the_policy():
    class Biased(Uniform):
        def __call__(self, leaves):
            logits, wdl = super().__call__(leaves)
            wdl[leaves.observations[:, 1, 0, 0] == 0b10] = 1, 0, 0  # after move 0 the opponent is sure to win
            return Evaluation(logits, wdl)

    root = result_of(Written("0101", "01" * 8), Biased(2), 2, "puct")
    assert (root.proven, root.visits.tolist()) == (UNPROVEN, [1, 1])
    assert root.policy.tolist() == [0.5, 0.5]


# --- perfect play ---


@pytest.fixture(scope="module")
def tic_tac_toe_states():
    return [position for position in toys.all_positions(TicTacToe()) if position.outcome() is None]


def mistakes(positions, roots):
    memo, count = {}, 0
    for position, root in zip(positions, roots, strict=True):
        values = toys.move_values(position, memo)
        assert root.proven in (UNPROVEN, max(values.values()))
        count += values[root.best_action()] < max(values.values())
    return count


def test_with_exact_values_puct_plays_every_position_of_tic_tac_toe_perfectly(tic_tac_toe_states):
    assert len(tic_tac_toe_states) == 4520
    plain = [position for position in toys.all_positions(PlainTicTacToe()) if position.outcome() is None]
    for states in (tic_tac_toe_states[::3], plain[1::9]):
        roots = search(states, Exact(9), simulations=24, settings=SearchSettings(algorithm="puct"))
        assert mistakes(states, roots) == 0


def test_gumbel_plays_tic_tac_toe_perfectly_with_a_visit_a_move(tic_tac_toe_states):
    exact = Exact(9)
    for moves in range(1, 10):
        states = [position for position in tic_tac_toe_states if len(position.legal_actions()) == moves]
        roots = search(states, exact, simulations=moves)
        assert all(root.visits.max() == 1 for root in roots)
        assert mistakes(states, roots) == 0


@both_kinds
def test_what_is_proven_of_tic_tac_toe_is_true(tic_tac_toe_states, kind):
    memo = {}
    roots = search(tic_tac_toe_states, Hashed(9), simulations=100, settings=SearchSettings(algorithm=kind))
    proven = [each for each in zip(tic_tac_toe_states, roots, strict=True) if each[1].proven != UNPROVEN]
    for position, root in proven:
        values = toys.move_values(position, memo)
        assert root.proven == root.value == max(values.values())
        assert {values[action] for action in root.actions[root.policy > 0].tolist()} == {root.proven}
    assert len(proven) > 2000


# --- what the evaluator is asked ---


@both_kinds
@pytest.mark.parametrize("start", [TicTacToe(), PlainTicTacToe()], ids=["compiled", "plain"])
def test_the_evaluator_sees_each_leaf_as_it_is_and_no_finished_position(start, kind):
    class Watching(Hashed):
        seen = 0

        def __call__(self, leaves):
            positions = leaves.positions()
            assert len(positions) == len(leaves.observations)
            for position, observation in zip(positions, leaves.observations, strict=True):
                assert position.outcome() is None
                assert np.array_equal(position.observe(), observation)
            self.seen += len(positions)
            return super().__call__(leaves)

    evaluate = Watching(9)
    positions = [toys.after(start, moves) for moves in ("", "b2 a1", "a1 b2 c3 a3 c1", "a1 b1 a2 b2")]
    roots = search(positions, evaluate, simulations=150, settings=SearchSettings(algorithm=kind))
    assert evaluate.seen < sum(root.simulations for root in roots)  # finished ones count as simulations all the same


def test_logits_of_illegal_actions_count_for_nothing():
    class Shouting(Hashed):
        def __call__(self, leaves):
            logits, wdl = super().__call__(leaves)
            for row, position in zip(logits, leaves.positions(), strict=True):
                row[[a for a in range(9) if a not in position.legal_actions()]] = 1e30
            return Evaluation(logits, wdl)

    position = toys.after(TicTacToe(), "b2 a1")
    for kind in KINDS:
        assert grown(position, Shouting(9), 60, kind) == grown(position, Hashed(9), 60, kind)


def test_a_search_without_simulations_returns_the_network_s_evaluation():
    position = toys.after(TicTacToe(), "b2 a1")
    root = search([position], Hashed(9), simulations=0)[0]
    logits, wdl = Hashed(9)(EvaluationBatch(np.array([position.observe()]), list))
    legal = list(position.legal_actions())
    prior = np.exp(logits[0, legal])
    assert root.policy == pytest.approx(prior / prior.sum(), rel=1e-5)
    assert root.best_action() == legal[int(np.argmax(prior))]
    assert root.value == root.network_value == pytest.approx(wdl[0, 0] - wdl[0, 2])
    assert root.simulations == root.visits.sum() == 0
    assert np.isnan(root.q).all()


# --- slots ---


def test_what_a_slot_finds_does_not_depend_on_its_neighbours_or_its_past():
    start = ConnectFour()
    positions = [toys.after(start, moves) for moves in ("", "4", "4 4 5 5 6 6", "1 2 1 2 1", "3 3 4 5 4 6")]
    jobs, evaluate = list(itertools.product(positions, (1, 17, 60), KINDS)), Hashed(7)
    slots = SearchSlots(start, SearchSettings(), slots=4, simulations=60)
    waiting, running, found = list(range(len(jobs))), {}, {}
    while len(found) < len(jobs):
        for slot in range(4):
            if slot not in running and waiting:
                running[slot] = waiting.pop(0)
                position, simulations, kind = jobs[running[slot]]
                slots.begin(slot, position, simulations=simulations, algorithm=kind)
        for slot in slots.run(evaluate):
            found[running.pop(slot)] = tree_of(slots, start, slot)
            slots.idle(slot)
    for i, (position, simulations, kind) in enumerate(jobs):
        assert found[i] == grown(position, evaluate, simulations, kind)
    assert slots.run(evaluate) == []


def test_a_search_for_which_there_is_no_room_is_refused():
    slots = SearchSlots(TicTacToe(), SearchSettings(), slots=1, simulations=10)
    with pytest.raises(ValueError, match="expected at most 10 simulations, got 11"):
        slots.begin(0, TicTacToe(), simulations=11)


@both_kinds
@pytest.mark.parametrize("start", [Wide(), Plain(Wide())], ids=["compiled", "plain"])
def test_room_for_edges_grows_and_nothing_is_lost(start, kind, monkeypatch):
    monkeypatch.setattr(storage, "MAX_RESERVED", 0)
    slots = SearchSlots(start, SearchSettings(algorithm=kind), slots=3, simulations=60)
    room = slots.trees.edges.shape[1]
    for slot in range(3):
        slots.begin(slot, start, simulations=60 - 25 * slot)
    done = 0
    while done < 3:
        for slot in slots.run(Hashed(600)):
            expected = grown(start, Hashed(600), 60 - 25 * slot, kind, capacity=1000)
            assert tree_of(slots, start, slot) == expected
            slots.idle(slot)
            done += 1
    assert room < slots.trees.edges.shape[1]


@both_kinds
def test_sparse_actions_keep_their_numbers(kind):
    root = result_of(Wide().play(3), Hashed(600), 80, kind)
    assert root.actions.tolist() == list(range(1, 600, 3))
    assert root.best_action() in root.actions
    assert root.visits.sum() == root.simulations == 80


# --- counts and policies ---

SHIPPED = {"tic-tac-toe": TicTacToe(), "connect-four": ConnectFour(), "othello": Othello(size=6)}


@both_kinds
@pytest.mark.parametrize("start", SHIPPED.values(), ids=SHIPPED)
@given(choices=choices, simulations=st.integers(1, 80), noisy=st.booleans())
def test_visits_sum_to_the_simulations_and_the_policy_to_one_over_legal_moves(start, kind, choices, simulations, noisy):
    position, _ = toys.walk(start, choices)
    rng = np.random.default_rng(5) if noisy else None
    settings = SearchSettings(algorithm=kind)
    root = search([position], Hashed(start.num_actions), simulations=simulations, settings=settings, rng=rng)[0]
    assert root.actions.tolist() == list(position.legal_actions())
    assert root.visits.sum() == root.simulations
    assert root.simulations == simulations or root.proven != UNPROVEN
    assert root.prior.sum() == pytest.approx(1, abs=1e-5)
    assert root.policy.sum() == pytest.approx(1)
    assert (root.policy >= 0).all()
    assert np.array_equal(np.isnan(root.q), root.visits == 0)
    assert -1 <= root.value <= 1
    assert 0 <= root.draw <= 1
    assert root.best_action() in root.actions
    if root.proven != PROVEN_LOSS:
        assert (root.policy[root.q == -1] == 0).all()


COUNTS = st.just(0) | st.integers(0, 500)


@given(data=st.data(), n=st.integers(1, 12), kind=st.sampled_from([PUCT, GUMBEL]))
def test_the_policy_gives_nothing_to_a_move_known_to_lose_unless_all_do(data, n, kind):
    def draw(element):
        return np.array(data.draw(st.lists(element, min_size=n, max_size=n)))

    proven, visits = draw(st.sampled_from([PROVEN_LOSS, PROVEN_DRAW, PROVEN_WIN, UNPROVEN])), draw(COUNTS)
    visits[(proven != UNPROVEN) & (visits == 0)] = 1
    q = np.where(proven != UNPROVEN, proven, draw(st.floats(-0.99, 0.99)))
    q[visits == 0] = nan
    prior = draw(st.floats(0, 1)) + 1e-12
    prior = (prior / prior.sum()).astype(np.float32)
    of_root = PROVEN_WIN if PROVEN_WIN in proven else max(proven)  # the largest is UNPROVEN
    network_value = data.draw(st.floats(-1, 1))
    policy = policy_target(kind, visits, prior, q.astype(np.float32), network_value, of_root, 50.0, 1.0)
    assert policy.shape == (n,)
    assert np.isfinite(policy).all()
    assert (policy >= 0).all()
    assert policy.sum() == pytest.approx(1)
    if (proven != PROVEN_LOSS).any():
        assert (policy[proven == PROVEN_LOSS] == 0).all()
    if of_root != UNPROVEN:
        assert (policy[proven != of_root] == 0).all()
        assert np.allclose(policy[proven == of_root], 1 / (proven == of_root).sum())


def test_where_every_visited_move_loses_the_others_share_by_their_prior():
    visits, prior, q = np.array([3, 0, 0]), np.array([0.5, 0.3, 0.2], np.float32), np.array([-1, nan, nan], np.float32)
    assert policy_target(PUCT, visits, prior, q, 0.0, UNPROVEN, 50.0, 1.0) == pytest.approx([0, 0.6, 0.4])


def test_the_gumbel_policy_is_the_improved_policy_of_the_root():
    root = result_of(ConnectFour(), Hashed(7), 50, "gumbel")
    expected = improved_policy(np.log(root.prior), root.visits, root.q.copy(), root.network_value, 50.0, 1.0)
    assert root.policy == pytest.approx(expected, rel=1e-5)


# --- noise ---


@both_kinds
def test_noise_is_sampled_for_every_search_by_its_seed_and_absent_without_generator(kind):
    start, settings = ConnectFour(), SearchSettings(algorithm=kind, max_considered_actions=2)
    slots = SearchSlots(start, settings, slots=1, simulations=30)

    def again(rng):
        slots.begin(0, start, simulations=30, rng=rng)
        slots.run(Hashed(7))
        return tree_of(slots, start)

    def noisy(seed):
        rng = np.random.default_rng(seed)
        return [repr(again(rng)) for _ in range(6)]

    assert len(set(noisy(3))) > 3
    assert noisy(1) == noisy(1) != noisy(2)
    assert again(None) == grown(start, Hashed(7), 30, kind, max_considered_actions=2)


@pytest.mark.parametrize(
    ("start", "alpha", "concentration"),
    [(ConnectFour(), 0.5, 0.5), (ConnectFour(), None, 1.0), (Wide(), None, 10 / 200)],
    ids=["given", "few actions", "many actions"],
)
def test_dirichlet_noise_takes_its_share_of_the_priors_of_the_root_alone(start, alpha, concentration):
    n, shares = len(start.legal_actions()), []
    for seed in range(300):
        slots = searched(start, Uniform(start.num_actions), 3, "puct", seed=seed, dirichlet_alpha=alpha)
        root, below = slots.trees.nodes[0, :2]
        edges = slots.trees.edges[0]
        priors = edges["prior"][:n]
        shares.append((priors - 0.75 / n) / 0.25)
        assert priors.sum() == pytest.approx(1)
        assert root["num_edges"] == below["first_edge"] == n
        others = edges["prior"][n : n + below["num_edges"]]
        assert others == pytest.approx(np.full(len(others), 1 / len(others)))
        assert slots.result(0).prior == pytest.approx(np.full(n, 1 / n))
    shares = np.array(shares)
    assert (shares > -1e-6).all()
    # Dirichlet(α) over n: mean 1/n, variance (1/n)((n - 1)/n) / (n α + 1)
    assert shares.mean(axis=0) == pytest.approx(np.full(n, 1 / n), abs=0.05)
    assert shares.var(axis=0).mean() == pytest.approx((n - 1) / n**2 / (n * concentration + 1), rel=0.1)


# --- one search, whatever the game is written in ---


@both_kinds
@pytest.mark.parametrize("start", [ConnectFour(), Othello(size=6), Wide()], ids=["connect-four", "othello", "wide"])
def test_a_compiled_game_seen_as_plain_python_grows_the_same_tree(start, kind):
    evaluate = Hashed(start.num_actions)
    assert grown(Plain(start), evaluate, 60, kind) == grown(start, evaluate, 60, kind)


def small_searches():
    """Return the outcome of a few small searches, as text."""
    lines = []
    for kind in KINDS:
        for start, moves in ((TicTacToe(), "b2"), (ConnectFour(), "4 4 5 5 6"), (PlainTicTacToe(), "a1 b2")):
            root = result_of(toys.after(start, moves), Hashed(start.num_actions), 60, kind)
            q = [None if np.isnan(q) else round(float(q), 4) + 0.0 for q in root.q]
            lines.append((root.visits.tolist(), q, root.proven))
    return repr(lines)


def test_the_search_is_the_same_with_the_compiler_off():
    program = f"import numba, {__name__} as module; assert numba.config.DISABLE_JIT; print(module.small_searches())"
    done = python("-c", program, NUMBA_DISABLE_JIT="1", PYTHONPATH=os.pathsep.join(sys.path))
    assert done.stdout.strip() == small_searches()


@pytest.mark.parametrize(("logits", "wdl"), [((1, 8), (1, 3)), ((9,), (1, 3)), ((2, 9), (2, 3)), ((1, 9), (1, 2))])
def test_an_evaluator_that_returns_other_shapes_is_one_sentence(logits: tuple[int, ...], wdl: tuple[int, ...]):
    with pytest.raises(UserError, match=r"evaluator returned arrays of shapes .*, expected \[\(1, 9\), \(1, 3\)\]"):
        search([TicTacToe()], lambda batch: Evaluation(np.zeros(logits), np.zeros(wdl)), simulations=2)
