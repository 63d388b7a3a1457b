"""The records a search is made of: slots, nodes and edges, as arrays that compiled code walks, and its phases.

One slot holds one tree. Node 0 is the root s_0. Edges (s, a) exist for legal actions only and lie one after another:
node `n` owns `edges[first_edge : first_edge + num_edges]`, in ascending order of action. Parents come before their
children. Values are for the player to move at the node in question, +1 = wins. With `search.score_weight` they are
utilities, into which the score goes (plyzero.search.policy); without it the two are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.search.evaluation_cache import Cache

if TYPE_CHECKING:
    from plyzero.rules.compiled_game import Rules

NO_NODE: Final = -1
"""The parent of the root, and the child of an edge that no simulation has taken yet."""

NO_EDGE: Final = -1
"""The edge that leads to the root."""

PROVEN_LOSS: Final = -1
PROVEN_DRAW: Final = 0
PROVEN_WIN: Final = 1
UNPROVEN: Final = 2
"""The proven value of a node or an edge, for the player who moves there, or none."""

MAX_DISTANCE: Final = 32767
"""Plies to the end of the game beyond which a proof does not count."""

MAX_IN_FULL: Final = 36
"""Largest number of rolls of a chance node that `SearchSettings.all_rolls` evaluates in full: those of two dice."""

NO_SEARCH: Final = 0
PUCT: Final = 1
GUMBEL: Final = 2
"""The algorithms of a search; a record stores them as `search`. NO_SEARCH only reads the legal actions."""

IDLE, SELECT, READ, EXPAND, ROLL, NO_ROOM, NO_MOVE, EVALUATE, NETWORK, BACKUP, DONE = range(11)
"""The phases of a slot. Each phase is what the slot needs next:

phase     waits for                      moved on by                           to
IDLE      a position to search           begin_search                          READ
SELECT    nothing                        select: from the root to a leaf       READ; BACKUP at an edge that is proven;
                                                                               DONE after the last simulation or proof;
                                                                               NETWORK at a leaf that waits for it
READ      the rules: play, legal         read_leaf if the rules are compiled,  EXPAND
          actions, observation, chances  else SearchSlots.supply
EXPAND    room for the leaf's edges      expand: a new node                    EVALUATE; BACKUP if the game is over;
                                                                               READ, what a roll leads to, if chance
                                                                               moves, or ROLL if it does so in full;
                                                                               DONE if there is NO_SEARCH; NO_ROOM;
                                                                               NO_MOVE if no action is legal
ROLL      nothing                        next_roll: chance in full             READ, what the next roll leads to;
                                                                               BACKUP, the expectation, after the last
NO_MOVE   other rules                    nothing: SearchSlots.supply raises
NO_ROOM   larger arrays                  SearchSlots.supply                    EXPAND
EVALUATE  nothing                        evaluate: looks into the cache        found: BACKUP, or SELECT if the leaf is
                                                                               the root; else NETWORK
NETWORK   the network's next batch       batches.take_answer                   BACKUP; SELECT if the leaf is the root
BACKUP    nothing                        backup: from the leaf to the root     SELECT; ROLL from one of all rolls
DONE      a reader of the result         begin_search, resume_search, idle     READ, SELECT, IDLE
"""

SLOT: Final = np.dtype(
    [
        ("phase", "i1"),
        ("algorithm", "i1"),  # NO_SEARCH, PUCT or GUMBEL
        ("noisy", "i1"),  # 1 = the root gets noise, as in self-play
        ("outcome", "i1"),  # outcome code of the position just read: ONGOING, DRAW or the winner
        ("to_play", "i1"),  # player to move in the position just read
        ("is_chance", "i1"),  # 1 = chance moves there
        ("score", "f4"),  # lead of the winner as a share of max_score, if the game is over there
        ("score_centre", "f4"),  # s_0, the score expected at the root for player 0, as a share of max_score
        ("noise_seed", "u4"),
        ("budget", "i4"),  # simulations asked for
        ("simulations", "i4"),  # simulations made
        ("nodes", "i4"),  # number of nodes in use
        ("edges", "i4"),  # number of edges in use
        ("leaf", "i4"),  # node that the current simulation adds, s_L
        ("leaf_edge", "i4"),  # edge that leads to it, (s_{L-1}, a_{L-1}); NO_EDGE for the root
        ("leaf_parent", "i4"),  # node above it, s_{L-1}; NO_NODE for the root
        ("leaf_value", "f4"),  # v, for the player to move at leaf_parent
        ("leaf_draw", "f4"),  # probability of a draw
        ("leaf_score", "f4"),  # score for the player to move at leaf_parent, as a share of max_score
        ("rolling", "i4"),  # chance node whose rolls are being evaluated one after the other, or NO_NODE
        ("row", "i4"),  # row of the network's batch, in phase NETWORK; the next one while a slot collects leaves
    ],
    align=True,
)
"""One search. `leaf...` describe the simulation that is being made."""

NODE: Final = np.dtype(
    [
        ("parent", "i4"),  # node, or NO_NODE
        ("edge", "i4"),  # the parent's edge that leads here, or NO_EDGE
        ("first_edge", "i4"),
        ("num_edges", "i4"),
        ("visits", "i4"),  # N(s) = 1 + Σ_a N(s, a); the 1 is its own evaluation, which a chance node does not have
        ("to_play", "i1"),  # player to move; at a chance node, for whom values are
        ("proven", "i1"),  # proven value for to_play, or UNPROVEN
        ("is_chance", "i1"),  # 1 = chance moves: the edges are rolls, P(s, a) are their probabilities
        ("is_exact", "i1"),  # 1 = value_sum / visits is exact: the expectation over rolls that are all proven
        ("in_full", "i1"),  # 1 = a chance node with a value for each roll: value_sum / visits is their expectation
        ("plies", "i2"),  # if a win or a loss is proven: the game is over in so many plies or fewer
        ("network_value", "f4"),  # probability of a win minus that of a loss, for to_play, as a utility
        ("network_draw", "f4"),  # probability of a draw
        ("value_sum", "f8"),  # sum over visits: utilities for to_play
        ("draw_sum", "f8"),  # sum over visits: probabilities of a draw
        ("result_sum", "f8"),  # sum over visits: values for to_play, without the score
        ("score_sum", "f8"),  # sum over visits: scores for to_play, as shares of max_score
    ],
    align=True,
)
"""One position s."""

EDGE: Final = np.dtype(
    [
        ("action", "i4"),  # a
        ("child", "i4"),  # node, or NO_NODE
        ("visits", "i4"),  # N(s, a)
        ("proven", "i1"),  # proven value for the player who moves at the node above, or UNPROVEN
        ("plies", "i2"),  # if a win or a loss is proven: the game is over in so many plies or fewer, this one counted
        ("prior", "f4"),  # P(s, a): the network's probability over legal actions; at a noisy PUCT root mixed with noise
        ("logit", "f4"),  # log of the network's probability, never noisy
        ("value_sum", "f8"),  # W(s, a): sum over visits, utilities for the player who moves at the node above
    ],
    align=True,
)
"""One legal action, or roll, a in a position s. Q(s, a) = W(s, a) / N(s, a)."""

Record = np.void
"""One SLOT, NODE, EDGE or SETTINGS record, whose fields are read and written by name."""

Records = NDArray[np.void]
"""An array of NODE or EDGE records."""

SETTINGS: Final = np.dtype(
    [
        ("c_puct", "f8"),
        ("fpu_reduction", "f8"),
        ("dirichlet_fraction", "f8"),
        ("dirichlet_alpha", "f8"),  # 0 = computed from the number of legal actions
        ("c_visit", "f8"),
        ("c_scale", "f8"),
        ("max_considered_actions", "i8"),
        ("score_weight", "f8"),
        ("score_scale", "f8"),
        ("max_score", "f8"),  # the game's; 0 = without points
        ("has_compiled_rules", "i8"),  # 0 = Python has to move slots in phase READ on
        ("all_rolls", "i8"),  # 1 = each roll of a chance node is evaluated
        ("keeps_all_states", "i8"),  # 1 = every node's position is kept: plyzero.search.storage
        ("to_play_offset", "i8"),  # byte of a compiled game's state that holds the player to move
    ],
    align=True,
)
"""The part of plyzero.settings.SearchSettings and of the game that compiled code needs."""


class Trees(NamedTuple):
    """B searches side by side, each with room for N nodes and E edges, of a game with A actions.

    N is the number of simulations plus 1, since a simulation adds at most one node, besides chance nodes: for these
    and, with `all_rolls`, for all that they lead to `SearchSlots.supply` makes more room.

    slots:        `[B]` SLOT.
    nodes:        `[B, N]` NODE.
    edges:        `[B, E]` EDGE.
    states:       `[B, N + 1, S]` uint8, the positions of a compiled game, by node, or `[B, 3, S]`, of the root and of
                  the leaf (plyzero.search.storage); the last is free for self-play.
    masks:        `[B, A]` bool, the legal actions of the position just read.
    chances:      `[B, K]` float32, the probability of each roll there, if chance moves; K is the game's num_chances.
    observations: `[B, C, H, W]` float32, what the network sees of the position just read.
    roots:        `[B, C, H, W]` float32, what the network sees of the root.
    batch:        `[B, C, H, W]` float32, the observations that wait for the network, row after row; there are more rows
                  where one search has many (plyzero.search.batches).
    noise:        `[B, A]` float32, noise of the root's edges, in their order.
    schedules:    `[B, S + 1]` int32, visits that sequential halving wants at the root, by simulation, at most S.
    scratch:      `[A]` float64, room to compute in.
    renumbered:   `[2, N]` int32, room for plyzero.search.storage.
    wdl:          `[3]` float32, room for an evaluation; `[4]` in a game with points.
    cache:        stored evaluations.
    settings:     `[1]` SETTINGS.
    rules:        a compiled game's rules, as plyzero.search.rule_calls takes them.
    """

    slots: NDArray[np.void]
    nodes: NDArray[np.void]
    edges: NDArray[np.void]
    states: NDArray[np.uint8]
    masks: NDArray[np.bool_]
    chances: NDArray[np.float32]
    observations: NDArray[np.float32]
    roots: NDArray[np.float32]
    batch: NDArray[np.float32]
    noise: NDArray[np.float32]
    schedules: NDArray[np.int32]
    scratch: NDArray[np.float64]
    renumbered: NDArray[np.int32]
    wdl: NDArray[np.float32]
    cache: Cache
    settings: NDArray[np.void]
    rules: Rules
