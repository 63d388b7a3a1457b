"""The positions of a compiled game in its trees: kept at every node or, where that is much memory, at the root only."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.search import rule_calls
from plyzero.search.kernel_cache import cached_njit
from plyzero.search.numba_arrays import copy_to

MOST_BYTES: Final = 1 << 24
"""Positions that take more bytes than this are not kept: each simulation plays them again from the root."""


def make_states(size: int, *, slots: int, nodes: int) -> tuple[NDArray[np.uint8], bool]:
    """Return room for the positions of so many trees, `[B, R, size]`, and whether every node has a row of its own.

    Otherwise row 0 is the root and row 1 the leaf. The last row is free for self-play.
    """
    keeps_all = slots * (nodes + 1) * size <= MOST_BYTES
    return np.zeros((slots, nodes + 1 if keeps_all else 3, size), np.uint8), keeps_all


@cached_njit
def row_of(leaf: int, keeps_all: int) -> int:
    """Return the row that holds the position of `leaf`, the node that the current simulation adds."""
    return leaf if keeps_all else min(leaf, 1)


@cached_njit
def play_to_leaf(
    rules: Any,
    states: NDArray[np.uint8],
    slot: Any,
    nodes: NDArray[np.void],
    edges: NDArray[np.void],
    path: NDArray[np.int32],
    keeps_all: int,
) -> None:
    """Make the position of the slot's leaf, which is not the root, from the nearest one above it that is kept.

    states: `[R, S]`, of the slot. path: `[N]`, room for the actions in between.
    """
    n, plies = slot["leaf_parent"], 1
    path[0] = edges[slot["leaf_edge"]]["action"]
    while n > 0 and not keeps_all:
        path[plies] = edges[nodes[n]["edge"]]["action"]
        plies += 1
        n = nodes[n]["parent"]
    state = states[row_of(slot["leaf"], keeps_all)]
    copy_to(state, states[n])
    for i in range(plies - 1, -1, -1):
        rule_calls.play(rules, state, path[i])
