"""Searches of one position alone, and the trees that they grow."""

from typing import Any

import numpy as np
import pytest

from plyzero.rules.game import Game
from plyzero.search.evaluators import Evaluate
from plyzero.search.slots import SearchResult, SearchSlots, search
from plyzero.search.tree import NO_NODE, UNPROVEN
from plyzero.settings import SearchSettings

KINDS = ("puct", "gumbel")
both_kinds = pytest.mark.parametrize("kind", KINDS)


def result_of(
    position: Game, evaluate: Evaluate, simulations: int, kind: str = "gumbel", **settings: Any
) -> SearchResult:
    """The result of a search without noise."""
    made = SearchSettings(algorithm=kind, **settings)
    return search([position], evaluate, simulations=simulations, settings=made)[0]


def searched(
    position: Game,
    evaluate: Evaluate,
    simulations: int,
    kind: str = "gumbel",
    *,
    capacity: int | None = None,
    leaves: int = 1,
    seed: int | None = None,
    **settings: Any,
) -> SearchSlots:
    """The only slot after a search; `capacity`: the simulations for which it has room; `seed`: of noise, if any."""
    made = SearchSettings(algorithm=kind, **settings)
    slots = SearchSlots(position, made, slots=1, simulations=capacity or simulations, leaves=leaves)
    rng = None if seed is None else np.random.default_rng(seed)
    slots.begin(0, position, simulations=simulations, rng=rng)
    assert slots.run(evaluate) == [0]
    return slots


def nodes_of(slots, position, node=0):
    """Yield every node of a tree with its edges and its position, made by the rules from `position`, the root's."""
    record = slots.trees.nodes[0, node]
    edges = slots.trees.edges[0, record["first_edge"] : record["first_edge"] + record["num_edges"]]
    yield record, edges, position
    for edge in edges:
        if edge["child"] != NO_NODE:
            yield from nodes_of(slots, position.play_unchecked(int(edge["action"])), int(edge["child"]))


def tree_of(slots: SearchSlots, start: Game, slot: int = 0, node: int = 0) -> dict[str, Any]:
    """Return the whole tree below `node`: its facts, and those of its moves by action name."""
    record = slots.trees.nodes[slot, node]
    edges = slots.trees.edges[slot, record["first_edge"] : record["first_edge"] + record["num_edges"]]
    moves = {}
    for edge in edges:
        if edge["visits"]:
            move: dict[str, Any] = {
                "visits": int(edge["visits"]),
                "q": rounded(edge["value_sum"] / edge["visits"]),
                "prior": rounded(edge["prior"]),
            }
            if edge["proven"] != UNPROVEN:
                move["proven"] = ["loss", "draw", "win"][edge["proven"] + 1]
            if edge["child"] != NO_NODE:
                move["then"] = tree_of(slots, start, slot, edge["child"])
            moves[start.action_name(int(edge["action"]))] = move
    value = rounded(record["value_sum"] / max(1, record["visits"]))
    return {"player": int(record["to_play"]), "visits": int(record["visits"]), "value": value, "moves": moves}


def rounded(number: float) -> float:
    """Return `number` to 6 digits, without a negative zero."""
    return round(float(number), 6) + 0.0
