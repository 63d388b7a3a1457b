"""Tree reuse: exactly the tree below the move is kept for the next search."""

import itertools

import numpy as np
import pytest

from plyzero.games.connect_four import ConnectFour
from plyzero.games.othello import Othello
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.search.mcts import resume_search
from plyzero.search.slots import SearchSlots
from plyzero.search.storage import keep_subtree
from plyzero.search.tree import NO_NODE, PUCT
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.settings import SearchSettings, Settings
from tests.helpers.runs import moves_of, replay
from tests.helpers.searches import both_kinds, tree_of
from tests.helpers.toys import Hashed, Plain, Wide

STARTS = [TicTacToe(), ConnectFour(), Plain(ConnectFour()), Othello(size=6), Wide()]
NAMES = ["ttt", "c4", "plain", "othello", "wide"]
every_start = pytest.mark.parametrize("start", STARTS, ids=NAMES)


def searched(start, kind="puct", room=500):
    """Return a finished search of 80 simulations in the second of two slots."""
    slots = SearchSlots(start, SearchSettings(algorithm=kind), slots=2, simulations=room)
    slots.begin(1, start, simulations=80)
    slots.run(Hashed(start.num_actions))
    return slots


def most_visited(slots):
    return int(np.argmax(slots.trees.edges[1, : slots.trees.nodes[1, 0]["num_edges"]]["visits"]))


@both_kinds
@every_start
def test_the_tree_below_a_move_is_kept_whole_and_as_it_was(start, kind):
    kept = 0
    for e, action in enumerate(start.legal_actions()):
        slots = searched(start, kind)
        edge = slots.trees.edges[1, e].copy()
        expected = tree_of(slots, start, 1)["moves"].get(start.action_name(action), {}).get("then")
        assert keep_subtree(slots.trees, 1, e, 80) == (expected is not None)
        if expected is None:
            assert edge["child"] == NO_NODE
            continue
        kept += 1
        assert tree_of(slots, start, 1) == expected
        assert slots.trees.nodes[1, 0]["parent"] == NO_NODE
        if isinstance(start, Plain):
            slots.place_subtree(1)
            assert set(slots._positions[1]) == set(range(slots.trees.slots[1]["nodes"]))
        assert slots.position(1).key() == start.play(action).key()
    assert kept > 1


@every_start
def test_a_search_goes_on_where_the_tree_was_kept_and_counts_anew(start):
    slots = searched(start)
    assert keep_subtree(slots.trees, 1, most_visited(slots), 80)
    if isinstance(start, Plain):
        slots.place_subtree(1)
    visits = int(slots.trees.nodes[1, 0]["visits"])
    resume_search(slots.trees, 1, 50, False, 0)
    slots.run(Hashed(start.num_actions))
    root = slots.result(1)
    assert root.simulations == 50
    assert root.visits.sum() == visits - 1 + 50
    assert root.prior == pytest.approx(searched(slots.position(1)).result(1).prior)


def test_without_room_for_the_next_search_nothing_is_kept_or_changed():
    slots = searched(ConnectFour(), room=85)
    before = tree_of(slots, ConnectFour(), 1)
    assert not keep_subtree(slots.trees, 1, most_visited(slots), 85)
    assert tree_of(slots, ConnectFour(), 1) == before


@pytest.mark.parametrize("start", STARTS[:3], ids=NAMES[:3])
def test_fast_searches_go_on_from_the_one_before_and_records_stay_true(start):
    selfplay = {"parallel_games": 3, "simulations": 24, "fast_simulations": 8, "full_search_probability": 0.5}
    settings = Settings(selfplay={**selfplay, "reuse_trees": True, "opening_plies": 2})
    games, finished = GamesInPlay(start, settings, seeds=itertools.count()), []
    while len(finished) < 12:
        finished += games.run(Hashed(start.num_actions), fence=1, step=2)
    more = 0
    for game in finished:
        (line,) = replay(start, game)
        for i, (record, position) in enumerate(zip(game.positions, line, strict=False)):
            assert np.array_equal(game.observations[i], position.observe())
            moves = moves_of(game, i)
            assert moves["action"].tolist() == list(position.legal_actions())
            if record["search"] == PUCT:
                assert record["simulations"] <= 8
                more += moves["visits"].sum() > record["simulations"]
            else:
                assert moves["visits"].sum() == record["simulations"]
    assert more > 10
