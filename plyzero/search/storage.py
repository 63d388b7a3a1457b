"""The memory of trees: positions and edges take as little as they need, and edges give it back after a search.

Tree reuse: the subtree below the move that was played becomes the next search's tree.
"""

from __future__ import annotations

import math
import mmap
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.compiled_game import CompiledGame, Rules
from plyzero.rules.game import Game
from plyzero.search import rule_calls
from plyzero.search.copying import copy_to
from plyzero.search.evaluation_cache import make_cache
from plyzero.search.numba_kernel import cached_njit
from plyzero.search.tree import EDGE, NO_EDGE, NO_NODE, NODE, SETTINGS, SLOT, Records, Trees
from plyzero.settings import SearchSettings

MAX_RESERVED: Final = 1 << 31
"""Bytes of address space, not of memory, that the edges of all legal actions at all nodes may take."""

MAX_STATES: Final = 1 << 24
"""Bytes that the positions of all nodes may take; if they need more, each simulation plays from the root again."""

MIN_RELEASED: Final = 1 << 18
"""Fewer unused bytes than this in a tree are kept: it is not worth the time to take them again later."""


def make_trees(
    start: Game, settings: SearchSettings, *, slots: int, nodes: int, leaves: int, cache_bytes: int
) -> tuple[Trees, EdgeMemory]:
    """Return empty trees, and the memory of their edges; a single one with room for `leaves` in a batch.

    Where there is not room for all edges, `SearchSlots.supply` makes more when needed.
    """
    actions, planes = start.num_actions, start.observation_shape
    edges = max(actions, start.num_chances) * nodes
    if slots * edges * EDGE.itemsize > MAX_RESERVED:
        edges = actions + min(actions, 32) * nodes
    rules = cast(Rules, np.zeros(len(Rules._fields), np.int64))  # never called in a game in plain Python
    state_size = 1
    record = np.zeros(1, SETTINGS)
    for name in set(SETTINGS.names or ()) & SearchSettings.model_fields.keys():
        record[name] = getattr(settings, name) or 0
    if isinstance(start, CompiledGame):
        assert start.State.fields is not None
        rules = rule_calls.addresses(start.rules)
        state_size = start.State.itemsize
        record["has_compiled_rules"] = 1
        record["to_play_offset"] = start.State.fields["to_play"][1]
    record["max_score"] = start.max_score
    keeps_all = slots * (nodes + 1) * state_size <= MAX_STATES
    record["keeps_all_states"] = keeps_all
    memory = EdgeMemory(slots, edges)
    trees = Trees(
        slots=np.zeros(slots, SLOT),
        nodes=np.zeros((slots, nodes), NODE),
        edges=memory.edges,
        states=np.zeros((slots, nodes + 1 if keeps_all else 3, state_size), np.uint8),
        masks=np.zeros((slots, actions), np.bool_),
        chances=np.zeros((slots, start.num_chances), np.float32),
        observations=np.zeros((slots, *planes), np.float32),
        roots=np.zeros((slots, *planes), np.float32),
        batch=np.zeros((max(slots, leaves), *planes), np.float32),
        noise=np.zeros((slots, actions), np.float32),
        schedules=np.zeros((slots, nodes), np.int32),
        scratch=np.zeros(actions),
        renumbered=np.zeros((2, nodes), np.int32),
        wdl=np.zeros(4 if start.max_score else 3, np.float32),
        cache=make_cache(
            cache_bytes,
            observation_size=math.prod(planes),
            num_actions=actions,
            packs_bits=np.dtype(start.observation_dtype).kind == "b",
        ),
        settings=record,
        rules=rules,
    )
    return trees, memory


@cached_njit
def keep_subtree(trees: Trees, b: int, e: int, simulations: int) -> bool:
    """Make the node below edge `e` of slot `b` the root, with its whole subtree.

    Return False, with nothing changed, if there is no such node, or no room for `simulations` more nodes. Otherwise
    trees.renumbered[0] holds each old node's new number, or NO_NODE. The caller puts the root's position into its place
    unless every node's position is kept.
    """
    slot, nodes, edges = trees.slots[b], trees.nodes[b], trees.edges[b]
    states, keeps_all = trees.states[b], trees.settings[0]["keeps_all_states"]
    number, shift = trees.renumbered[0], trees.renumbered[1]
    root = edges[e]["child"]
    kept = 0
    if root == NO_NODE:
        return False
    number[: slot["nodes"]] = NO_NODE
    for n in range(root, slot["nodes"]):
        if n == root or number[nodes[n]["parent"]] != NO_NODE:
            number[n] = kept
            kept += 1
    if kept + simulations >= len(nodes):
        return False
    free = 0
    # Nodes and their edges lie in the order in which they were added, parents first: all of them move down.
    for n in range(root, slot["nodes"]):
        if number[n] == NO_NODE:
            continue
        node, moved = nodes[n], nodes[number[n]]
        shift[n] = node["first_edge"] - free
        above = NO_NODE if n == root else node["parent"]
        place = NO_EDGE if n == root else node["edge"] - shift[above]
        for i in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
            edges[free] = edges[i]
            free += 1
        nodes[number[n]] = node
        moved["first_edge"] -= shift[n]
        moved["parent"] = NO_NODE if n == root else number[above]
        moved["edge"] = place
        if n != root:
            edges[place]["child"] = number[n]
        if keeps_all:
            copy_to(states[number[n]], states[n])
    slot["nodes"], slot["edges"] = kept, free
    return True


class EdgeMemory:
    """Room for the edges of B trees: takes memory as edges are written, and gives it back after a search.

    edges: `[B, E]` EDGE.
    """

    def __init__(self, trees: int, edges: int) -> None:
        self._memory = mmap.mmap(-1, trees * edges * EDGE.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):  # Linux: each tree would otherwise take at least one page of 2 MB
            self._memory.madvise(mmap.MADV_NOHUGEPAGE)
        self.edges: Records = np.frombuffer(self._memory, EDGE).reshape(trees, edges)
        self._written = np.zeros(trees, np.int32)

    def enlarged(self, edges: int, used: NDArray[np.int32]) -> EdgeMemory:
        """Return room for more `edges` in each tree, with copies of the `used` ones, `[B]`."""
        larger = EdgeMemory(len(used), edges)
        for b, count in enumerate(used.tolist()):
            larger.edges[b, :count] = self.edges[b, :count]
        return larger

    def release(self, used: NDArray[np.int32]) -> None:
        """Give back the pages behind the `used` edges, `[B]`, of each tree."""
        size, page = EDGE.itemsize, mmap.PAGESIZE
        if self.edges.shape[1] * size <= MIN_RELEASED:
            return
        for b in np.flatnonzero((self._written - used) * size > MIN_RELEASED).tolist():
            first = b * self.edges.shape[1]
            begin = -(-(first + int(used[b])) * size // page) * page
            end = (first + self.edges.shape[1]) * size // page * page
            self._memory.madvise(mmap.MADV_DONTNEED, begin, end - begin)
            self._written[b] = used[b]
        np.maximum(self._written, used, out=self._written)
