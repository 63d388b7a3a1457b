"""The memory of trees: games are the same whichever positions and edges are kept."""

import itertools
import sys

import numpy as np
import pytest

from plyzero.games.connect_four import ConnectFour
from plyzero.games.go import Go
from plyzero.games.pig import Pig
from plyzero.search.slots import SearchSlots
from plyzero.search.storage import MIN_RELEASED, EdgeMemory
from plyzero.search.tree import EDGE
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.settings import SearchSettings, Settings
from tests.helpers.runs import records_by_seed
from tests.helpers.toys import Hashed, Wide

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere memory that was given back may keep its content"
)


def played(start, algorithm: str) -> list[list[bytes]]:
    selfplay = {"parallel_games": 3, "simulations": 24, "fast_simulations": 8, "reuse_trees": algorithm == "puct"}
    settings = Settings(search={"algorithm": algorithm}, selfplay=selfplay)
    return records_by_seed(start, settings, Hashed(start.num_actions), count=6)


@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])
@pytest.mark.parametrize("start", [ConnectFour(), Go(size=3), Pig()], ids=["connect-four", "go", "pig"])
def test_games_are_the_same_if_positions_are_not_kept_but_played_again(start, algorithm, monkeypatch):
    expected = played(start, algorithm)
    monkeypatch.setattr("plyzero.search.storage.MAX_STATES", 0)
    assert GamesInPlay(start, Settings(), seeds=itertools.count()).search.trees.states.shape[1] == 3
    assert played(start, algorithm) == expected


def test_games_are_the_same_if_memory_of_edges_is_given_back_after_each_search(monkeypatch):
    monkeypatch.setattr("plyzero.search.storage.MIN_RELEASED", sys.maxsize)
    expected = played(Go(size=7), "puct")
    monkeypatch.setattr("plyzero.search.storage.MIN_RELEASED", 0)
    assert played(Go(size=7), "puct") == expected


@on_linux
def test_only_what_lies_behind_the_edges_in_use_is_given_back():
    memory = EdgeMemory(3, 100_001)
    memory.edges["visits"] = 1
    full = np.full(3, 100_001, np.int32)
    memory.release(full)
    memory.release(np.array([100_001, 10_001, 100_001], np.int32))
    in_a_page = 4096 // EDGE.itemsize
    assert memory.edges["visits"][[0, 2]].all()
    assert memory.edges["visits"][1, :10_001].all()
    assert not memory.edges["visits"][1, 10_001 + in_a_page : -in_a_page].any()
    memory.edges["visits"] = 1
    memory.release(full)
    memory.release(full - MIN_RELEASED // EDGE.itemsize)
    assert memory.edges["visits"].all()


@on_linux
def test_a_search_gives_back_the_memory_that_the_one_before_it_has_used():
    start = Wide()
    slots = SearchSlots(start, SearchSettings(), slots=1, simulations=256)
    for simulations in (256, 2):
        slots.begin(0, start, simulations=simulations)
        assert slots.run(Hashed(start.num_actions)) == [0]
    used = int(slots.trees.slots["edges"][0])
    assert used <= 3 * 200
    assert not slots.trees.edges["action"][0, used + 4096 // EDGE.itemsize :].any()
