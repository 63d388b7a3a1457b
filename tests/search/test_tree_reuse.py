"""Tree reuse: exactly the tree below the move is kept for the next search."""

import itertools

import numpy as np
import pytest

from games.connect_four import ConnectFour
from games.othello import Othello
from games.tic_tac_toe import TicTacToe
from plyzero.search.mcts import resume_search
from plyzero.search.slots import SearchSlots
from plyzero.search.storage import keep_subtree
from plyzero.search.tree import NO_NODE, PUCT
from plyzero.settings import SearchSettings, SelfplaySettings, Settings
from selfplay.games_in_play import GamesInPlay
from tests.helpers import toys
from tests.helpers.runs import moves_of, replay
from tests.helpers.toys import Hashed, Plain, Wide, tree_of

STARTS = [TicTacToe(), ConnectFour(), Othello(size=6), Wide(), Plain(ConnectFour())]
NAMES = ["tic-tac-toe", "connect-four", "othello", "wide", "plain"]


def searched(start, moves, kind, room=500):
    """Return a finished search of 80 simulations in the second of two slots."""
    slots = SearchSlots(start, SearchSettings(algorithm=kind), slots=2, simulations=room)
    slots.begin(1, toys.after(start, moves), simulations=80)
    slots.run(Hashed(start.num_actions))
    return slots


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
@pytest.mark.parametrize("start", STARTS, ids=NAMES)
def test_the_tree_below_a_move_is_kept_whole_and_as_it_was(start, kind):
    kept = 0
    for e in itertools.count():
        slots = searched(start, "", kind)
        root = slots.trees.nodes[1, 0]
        if e == root["num_edges"]:
            break
        edge = slots.trees.edges[1, e].copy()
        expected = tree_of(slots, 1, start)["moves"].get(start.action_name(int(edge["action"])), {}).get("then")
        assert keep_subtree(slots.trees, 1, e, 80) == (expected is not None)
        if expected is None:
            assert edge["child"] == NO_NODE
            continue
        kept += 1
        assert tree_of(slots, 1, start) == expected
        assert slots.trees.nodes[1, 0]["parent"] == NO_NODE
        if isinstance(start, Plain):
            slots.place_subtree(1)
            assert set(slots._positions[1]) == set(range(slots.trees.slots[1]["nodes"]))
        after = start.play(int(edge["action"]))
        assert slots.position(1).key() == after.key()
    assert kept > 1


@pytest.mark.parametrize("start", STARTS, ids=NAMES)
def test_a_search_goes_on_where_the_tree_was_kept_and_counts_anew(start):
    slots = searched(start, "", "puct")
    e = int(np.argmax(slots.trees.edges[1, : slots.trees.nodes[1, 0]["num_edges"]]["visits"]))
    assert keep_subtree(slots.trees, 1, e, 80)
    if isinstance(start, Plain):
        slots.place_subtree(1)
    visits = int(slots.trees.nodes[1, 0]["visits"])
    resume_search(slots.trees, 1, 50, False, 0)
    slots.run(Hashed(start.num_actions))
    root = slots.result(1)
    assert root.simulations == 50
    assert root.visits.sum() == visits - 1 + 50
    together = searched(slots.position(1), "", "puct").result(1)
    assert root.prior == pytest.approx(together.prior)


def test_without_room_for_the_next_search_nothing_is_kept_or_changed():
    slots = searched(ConnectFour(), "", "puct", room=85)
    before = tree_of(slots, 1, ConnectFour())
    e = int(np.argmax(slots.trees.edges[1, :7]["visits"]))
    assert not keep_subtree(slots.trees, 1, e, 85)
    assert tree_of(slots, 1, ConnectFour()) == before


@pytest.mark.parametrize("start", [TicTacToe(), ConnectFour(), Plain(ConnectFour())], ids=["ttt", "c4", "plain"])
def test_fast_searches_go_on_from_the_one_before_and_records_stay_true(start):
    settings = Settings(
        selfplay=SelfplaySettings(
            parallel_games=3,
            simulations=24,
            fast_simulations=8,
            full_search_probability=0.5,
            reuse_trees=True,
            opening_plies=2,
        )
    )
    games, finished = GamesInPlay(start, settings, seeds=itertools.count()), []
    while len(finished) < 12:
        finished += games.run(Hashed(start.num_actions), fence=1, step=2)
    more = 0
    for game in finished:
        (line,) = replay(start, game)
        for i, (record, position) in enumerate(zip(game.positions, line, strict=False)):
            assert np.array_equal(game.observations[i], position.observe())
            assert moves_of(game, i)["action"].tolist() == list(position.legal_actions())
            if record["search"] == PUCT:
                assert record["simulations"] <= 8
                more += moves_of(game, i)["visits"].sum() > record["simulations"]
            else:
                assert moves_of(game, i)["visits"].sum() == record["simulations"]
    assert more > 10
