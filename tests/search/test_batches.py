"""Many leaves of one search in a batch: what is counted meanwhile is taken back, and the search stays the same kind."""

import numpy as np
import pytest

from plyzero.games.backgammon import Backgammon
from plyzero.games.connect_four import ConnectFour
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.rules.chance import first_decision
from plyzero.search.batches import drops_actions
from plyzero.search.evaluators import Evaluation, EvaluationBatch, Uniform
from plyzero.search.gumbel import considered_visits
from plyzero.search.slots import SearchSlots, search
from plyzero.search.tree import NO_NODE, PROVEN_DRAW, UNPROVEN
from plyzero.settings import SearchSettings
from tests.helpers.dice import Race
from tests.helpers.searches import both_kinds, nodes_of, searched
from tests.helpers.toys import Hashed, Plain, after

GAMES = {
    "connect-four": ConnectFour(),
    "plain": Plain(ConnectFour()),
    "tic-tac-toe": TicTacToe(),
    "race": first_decision(Race()),
    "backgammon": first_decision(Backgammon()),
}


def check_sums(slots: SearchSlots) -> None:
    """Check that every visit and value of the tree is that of an evaluation, and nothing else is counted."""
    nodes, edges = slots.trees.nodes[0], slots.trees.edges[0]
    for n in range(int(slots.trees.slots["nodes"][0])):
        node = nodes[n]
        row = edges[node["first_edge"] : node["first_edge"] + node["num_edges"]]
        if node["visits"] == 0:  # it waits, or so does what a first roll leads to
            assert row["visits"].sum() == 0
            continue
        assert node["visits"] == row["visits"].sum() + (0 if node["is_chance"] else 1)
        if not any(nodes[child]["is_exact"] for child in row["child"] if child != NO_NODE) and not node["is_exact"]:
            assert node["value_sum"] == pytest.approx(node["network_value"] + row["value_sum"].sum(), abs=1e-6)


@pytest.mark.parametrize("leaves", [2, 16])
@both_kinds
@pytest.mark.parametrize("name", GAMES)
def test_nothing_but_evaluations_is_in_the_tree_whenever_the_network_is_asked(name: str, kind: str, leaves: int):
    start, sizes = GAMES[name], []
    evaluate = Hashed(start.num_actions)
    slots = SearchSlots(start, SearchSettings(algorithm=kind), slots=1, simulations=120, leaves=leaves)
    slots.begin(0, start, simulations=120)

    def checked(batch: EvaluationBatch) -> Evaluation:
        check_sums(slots)
        sizes.append(len(batch.observations))
        for position, observation in zip(batch.positions(), batch.observations, strict=True):
            assert np.array_equal(position.observe(), observation)
        return evaluate(batch)

    assert slots.run(checked) == [0]
    check_sums(slots)
    result = slots.result(0)
    assert result.proven != UNPROVEN or result.simulations == result.visits.sum() == 120
    assert sizes[0] == 1
    assert 1 < max(sizes) <= leaves
    assert np.mean(sizes[1:]) > leaves / 3


def test_an_expectation_that_is_exact_stays_exact_while_leaves_below_it_wait():
    start = first_decision(Race())
    for leaves in (1, 8):
        nodes = nodes_of(searched(start, Hashed(2), 3000, "puct", leaves=leaves), start)
        exact = [(node["value_sum"] / node["visits"], row) for node, row, _ in nodes if node["is_exact"]]
        assert exact
        for mean, row in exact:
            assert mean == pytest.approx(float(row["prior"] @ row["proven"]), abs=1e-6)


def test_sequential_halving_waits_for_values_before_it_drops_actions():
    for considered, simulations in ((4, 16), (16, 800), (7, 100), (2, 9), (1, 5)):
        schedule = considered_visits(considered, np.zeros(simulations, np.int32))
        drops = [i for i in range(1, simulations) if drops_actions(schedule, i)]
        passes = np.diff([0, *(i for i in range(1, simulations) if schedule[i] != schedule[i - 1]), simulations])
        starts = np.cumsum(passes)[:-1]
        assert drops == [start for start, before, now in zip(starts, passes, passes[1:], strict=False) if now < before]
    assert [i for i in range(1, 16) if drops_actions(considered_visits(4, np.zeros(16, np.int32)), i)] == [8]


@both_kinds
def test_many_leaves_find_a_win(kind: str):
    won = after(TicTacToe(), "a1 b1 a2 b2")
    found = searched(won, Uniform(9), 50, kind, leaves=8).result(0)
    assert won.action_name(found.best_action()) == "a3"


def test_simulations_that_end_at_proven_edges_do_not_run_ahead_of_leaves_that_wait():
    start = after(TicTacToe(), "b2 a1 c3")
    found = [searched(start, Uniform(9), 3000, "puct", leaves=leaves).result(0) for leaves in (1, 16)]
    assert [each.proven for each in found] == [PROVEN_DRAW] * 2
    assert found[1].simulations < 1.5 * found[0].simulations


def test_several_positions_keep_one_leaf_each():
    positions = [ConnectFour(), ConnectFour().play(3)]
    found = [search(positions, Hashed(7), simulations=40, leaves=leaves) for leaves in (1, 16)]
    assert [each.visits.tolist() for each in found[0]] == [each.visits.tolist() for each in found[1]]
