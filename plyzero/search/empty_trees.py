"""How the trees of a game are made, with as little memory as they need at first."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plyzero.rules.compiled_game import CompiledGame, Rules
from plyzero.rules.game import Game
from plyzero.search.edge_memory import EdgeMemory
from plyzero.search.evaluation_cache import make_cache
from plyzero.search.rule_calls import addresses
from plyzero.search.states import make_states
from plyzero.search.tree import EDGE, NODE, SETTINGS, SLOT, Trees
from plyzero.settings import SearchSettings

MOST_RESERVED: Final = 1 << 31
"""Bytes of address space, not of memory, that the edges of all legal actions at all nodes may take."""


def make_trees(
    start: Game, settings: SearchSettings, *, slots: int, nodes: int, cache_bytes: int
) -> tuple[Trees, EdgeMemory]:
    """Return empty trees, and the memory of their edges.

    Where there is not room for all edges, `SearchSlots.supply` makes more when needed.
    """
    actions, planes = start.num_actions, start.observation_shape
    edges = max(actions, start.num_chances) * nodes
    if slots * edges * EDGE.itemsize > MOST_RESERVED:
        edges = actions + min(actions, 32) * nodes
    rules: Any = np.zeros(len(Rules._fields), np.int64)
    state_size = 1
    record = np.zeros(1, SETTINGS)
    for name in set(SETTINGS.names or ()) & SearchSettings.model_fields.keys():
        record[name] = getattr(settings, name) or 0
    if isinstance(start, CompiledGame):
        assert start.State.fields is not None
        rules, state_size = addresses(start.rules), start.State.itemsize
        record["has_compiled_rules"], record["to_play_offset"] = 1, start.State.fields["to_play"][1]
    states, keeps_all = make_states(state_size, slots=slots, nodes=nodes)
    record["keeps_all_states"] = keeps_all
    memory = EdgeMemory(slots, edges)
    trees = Trees(
        slots=np.zeros(slots, SLOT),
        nodes=np.zeros((slots, nodes), NODE),
        edges=memory.edges,
        states=states,
        masks=np.zeros((slots, actions), np.bool_),
        chances=np.zeros((slots, start.num_chances), np.float32),
        observations=np.zeros((slots, *planes), np.float32),
        roots=np.zeros((slots, *planes), np.float32),
        batch=np.zeros((slots, *planes), np.float32),
        noise=np.zeros((slots, actions), np.float32),
        schedules=np.zeros((slots, nodes), np.int32),
        scratch=np.zeros(actions),
        renumbered=np.zeros((2, nodes), np.int32),
        wdl=np.zeros(3, np.float32),
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
