"""The records a search is made of: slots, nodes and edges, as arrays that compiled code walks.

One slot holds one tree. Node 0 is its root; edges exist for legal actions only and lie one after another, so that
node `n` owns `edges[first_edge : first_edge + num_edges]`, in ascending order of action.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.search.evaluation_cache import Cache

NOTHING: Final = -1
"""No node, no edge, no action: the parent of the root, the child of an edge not yet walked."""

PROVEN_LOSS: Final = -1
PROVEN_DRAW: Final = 0
PROVEN_WIN: Final = 1
UNPROVEN: Final = 2
"""What is proven of a node or an edge, from the point of view of the player who moves there."""

NO_SEARCH: Final = 0
PUCT: Final = 1
GUMBEL: Final = 2
"""The kinds of search; a record stores them as `search`. Without a search only the legal actions are read."""

# A slot is a small state machine; its phase says what it waits for.
IDLE: Final = 0
SELECTING: Final = 1
RULES: Final = 2  # the position at `leaf` has to be made and read
READ: Final = 3  # ... and has been
EVALUATION: Final = 4  # the network's opinion of `leaf`
DONE: Final = 5
FULL: Final = 6  # more room for edges

SLOT: Final[np.dtype[Any]] = np.dtype(
    [
        ("phase", "i1"),
        ("kind", "i1"),  # PUCT or GUMBEL
        ("noisy", "i1"),  # whether the root gets noise
        ("outcome", "i1"),  # of the position just read: plyzero.rules.compiled_game.ONGOING, DRAW or the winner
        ("to_play", "i1"),  # of the position just read
        ("noise_seed", "u4"),
        ("budget", "i4"),  # simulations asked for
        ("simulations", "i4"),  # simulations made
        ("nodes", "i4"),  # nodes in use
        ("edges", "i4"),  # edges in use
        ("leaf", "i4"),  # the node being made
        ("leaf_edge", "i4"),  # the edge that leads to it, NOTHING for the root
        ("leaf_parent", "i4"),  # the node it hangs from, NOTHING for the root
        ("row", "i4"),  # of the batch, where the leaf is evaluated
    ],
    align=True,
)

NODE: Final[np.dtype[Any]] = np.dtype(
    [
        ("parent", "i4"),
        ("edge", "i4"),  # the parent's edge that leads here
        ("first_edge", "i4"),
        ("num_edges", "i4"),
        ("visits", "i4"),  # simulations through here, the one that made the node included
        ("to_play", "i1"),
        ("proven", "i1"),  # for to_play
        ("network_value", "f4"),  # win minus loss, for to_play
        ("network_draw", "f4"),  # probability
        ("value_sum", "f8"),  # over visits, for to_play
        ("draw_sum", "f8"),  # over visits, probabilities
    ],
    align=True,
)

EDGE: Final[np.dtype[Any]] = np.dtype(
    [
        ("action", "i4"),
        ("child", "i4"),
        ("visits", "i4"),
        ("proven", "i1"),  # for the player who moves at the node above
        ("prior", "f4"),  # the network's probability over legal actions; at a noisy PUCT root mixed with noise
        ("logit", "f4"),  # log of the network's probability, never noisy
        ("value_sum", "f8"),  # over visits, for the player who moves at the node above
    ],
    align=True,
)

SETTINGS: Final[np.dtype[Any]] = np.dtype(
    [
        ("c_puct", "f8"),
        ("fpu_reduction", "f8"),
        ("dirichlet_fraction", "f8"),
        ("dirichlet_alpha", "f8"),  # 0 = by the number of legal actions
        ("c_visit", "f8"),
        ("c_scale", "f8"),
        ("max_considered_actions", "i8"),
        ("to_play_offset", "i8"),  # in the state of a compiled game; NOTHING = the rules are plain Python
    ],
    align=True,
)
"""What compiled code reads of plyzero.settings.SearchSettings, and of the game."""


class Trees(NamedTuple):
    """B searches side by side, each with room for N nodes and E edges, of a game with A actions.

    states:       `[B, N + 1, S]` uint8, the positions of a compiled game, by node, and room for one more.
    masks:        `[B, A]` bool, the legal actions of the position just read ...
    observations: `[B, C, H, W]` float32, ... and what the network sees of it.
    roots:        `[B, C, H, W]` float32, what the network sees of the root.
    batch:        `[B, C, H, W]` float32, the observations that wait for the network, row after row.
    noise:        `[B, A]` float32, of the root's edges in their order.
    schedules:    `[B, N]` int32, of sequential halving.
    scratch:      `[A]` float64, room to compute in.
    renumbered:   `[2, N]` int32, see plyzero.search.tree_reuse.
    settings:     `[1]` SETTINGS.
    rules:        by which plyzero.search.rule_calls calls them.
    """

    slots: NDArray[np.void]
    nodes: NDArray[np.void]
    edges: NDArray[np.void]
    states: NDArray[np.uint8]
    masks: NDArray[np.bool_]
    observations: NDArray[np.float32]
    roots: NDArray[np.float32]
    batch: NDArray[np.float32]
    noise: NDArray[np.float32]
    schedules: NDArray[np.int32]
    scratch: NDArray[np.float64]
    renumbered: NDArray[np.int32]
    cache: Cache
    settings: NDArray[np.void]
    rules: Any
