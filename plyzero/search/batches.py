"""Batches for the network: a leaf of each of many searches, or many leaves of one search.

One search finds its next leaf before it knows the value of the last one. Until the network answers, a leaf counts as
visited, with the mean value of the node above it less VIRTUAL_LOSS, which leads the next simulations to other leaves
(Chaslot et al., 2008, "Parallel Monte-Carlo Tree Search"). This is taken back before anything else sees the tree.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.search.copying import copy_to
from plyzero.search.evaluation_cache import remember
from plyzero.search.mcts import backup, edges_below, set_evaluation, simulate
from plyzero.search.numba_kernel import borrowed, cached_njit
from plyzero.search.tree import BACKUP, DONE, GUMBEL, NETWORK, NO_NODE, READ, ROLL, SELECT, Record, Records, Trees

VIRTUAL_LOSS: Final = 0.3
"""Difference between the value of a node and what a leaf below it counts as while it waits for the network. With 0.3,
batches of at most 16 hold 11 leaves, and the visits are about the same as with one leaf at a time. With 1 they hold 13,
and the visits differ."""

LEAF: Final = np.dtype([("node", "i4"), ("value", "f8")], align=True)
"""A leaf that waits for the network, and its value meanwhile, for the player who moves at the node above."""


@cached_njit(nogil=True)
def advance_all(trees: Trees, leaves: Records, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> int:
    """Advance every slot; return how many leaves wait for the network.

    leaves:      `[K]` LEAF. With K = 1 each slot has a leaf in the batch; with more there is one slot, which collects
                 up to K, and 0 is returned while it waits for something else.
    logits, wdl: the network's answer to the batch of the call before, `[n, A]` and `[n, 3]`, with points
                 `[n, 4]`; or of no rows.
    """
    trees = borrowed(trees)
    logits = borrowed(logits)
    wdl = borrowed(wdl)
    waiting, collects = 0, len(leaves) > 1
    for b in range(len(trees.slots)):
        slot, nodes, edges = trees.slots[b], trees.nodes[b], trees.edges[b]
        for row in range(len(logits) if collects else 1):
            if collects:
                leaf = nodes[leaves[row]["node"]]
                slot["leaf"] = leaves[row]["node"]
                slot["leaf_parent"], slot["leaf_edge"] = leaf["parent"], leaf["edge"]
                slot["row"] = row
                slot["phase"] = NETWORK
                copy_to(trees.observations[b], trees.batch[row])
            take_answer(trees, b, logits, wdl)
            if collects and slot["phase"] == BACKUP:
                backup(slot, nodes, edges, trees.settings[0])
        if collects and len(logits):
            slot["row"] = 0
        began = slot["simulations"]
        while True:
            simulate(trees, b)
            if collects and slot["phase"] == NETWORK and slot["leaf"] < slot["nodes"]:
                copy_to(trees.batch[slot["row"]], trees.observations[b])
                collect(slot, nodes, edges, leaves, trees.schedules[b])
            if collects and slot["phase"] == SELECT and slot["row"] and slot["simulations"] >= began + len(leaves):
                slot["phase"] = NETWORK  # simulations that end at proven edges could otherwise go on forever
            if is_waiting(slot, trees.settings[0]):
                break
        if not collects:
            waiting = join_batch(trees, b, waiting)
        elif slot["phase"] == NETWORK or (slot["phase"] == DONE and slot["row"]):
            slot["phase"] = NETWORK
            waiting = slot["row"]
            for row in range(waiting):
                count(slot, nodes, edges, leaves[row], -1)
    return waiting


@cached_njit
def collect(slot: Record, nodes: Records, edges: Records, leaves: Records, schedule: NDArray[np.int32]) -> None:
    """Add the slot's leaf to `leaves`, and let the slot go on unless they are full or the next one depends on them.

    Without the root's evaluation there is no next simulation, and sequential halving needs values to drop actions.
    """
    leaf, n = leaves[slot["row"]], slot["leaf_parent"]
    slot["row"] += 1
    leaf["node"] = slot["leaf"]
    if n == NO_NODE:
        return
    known = nodes[n] if nodes[n]["visits"] else nodes[0]  # a chance node may have no visit yet
    sign = 1 if known["to_play"] == nodes[n]["to_play"] else -1
    leaf["value"] = sign * known["value_sum"] / known["visits"]
    count(slot, nodes, edges, leaf, 1)
    drops = slot["algorithm"] == GUMBEL and drops_actions(schedule[: slot["budget"]], slot["simulations"])
    if slot["row"] < len(leaves) and not drops:
        slot["phase"] = SELECT


@cached_njit
def count(slot: Record, nodes: Records, edges: Records, leaf: Record, times: int) -> None:
    """Let a simulation that ends at `leaf` count once, before its value is known, or -1 times to take that back."""
    value = leaf["value"]
    n, e = nodes[leaf["node"]]["parent"], nodes[leaf["node"]]["edge"]
    if n != NO_NODE:  # the evaluation of the root is no simulation
        slot["simulations"] += times
    while n != NO_NODE:
        node, edge = nodes[n], edges[e]
        edge["visits"] += times
        edge["value_sum"] += times * (value - VIRTUAL_LOSS)
        node["visits"] += times
        node["value_sum"] += times * value
        if node["parent"] != NO_NODE and nodes[node["parent"]]["to_play"] != node["to_play"]:
            value = -value
        n, e = node["parent"], node["edge"]


@cached_njit
def drops_actions(schedule: NDArray[np.int32], i: int) -> bool:
    """Return whether sequential halving drops actions before simulation `i`: fewer get their next visit from there."""
    if i == len(schedule) or schedule[i] == schedule[i - 1]:
        return False
    length = 1
    while length < i and schedule[i - 1 - length] == schedule[i - 1]:
        length += 1
    return i + length > len(schedule) or schedule[i + length - 1] != schedule[i]


@cached_njit(inline="always")
def is_waiting(slot: Record, settings: Record) -> bool:
    """Return whether a slot needs something from outside of compiled code, or is done."""
    phase = slot["phase"]
    return phase != SELECT and phase != ROLL and not (phase == READ and settings["has_compiled_rules"])


@cached_njit(inline="always")
def advance(trees: Trees, b: int, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> None:
    """Make simulations in slot `b` until it waits for something outside of compiled code, or is done."""
    take_answer(trees, b, logits, wdl)
    while True:
        simulate(trees, b)
        if is_waiting(trees.slots[b], trees.settings[0]):
            break


@cached_njit(inline="always")
def take_answer(trees: Trees, b: int, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> None:
    """Give slot `b` its row of the network's answer, if it waits for one, and remember it for equal positions."""
    slot = trees.slots[b]
    if slot["phase"] == NETWORK and len(logits):
        row = edges_below(trees.edges[b], trees.nodes[b, slot["leaf"]])
        for e in range(len(row)):
            row[e]["logit"] = logits[slot["row"], row[e]["action"]]
        remember(trees.cache, trees.observations[b], row, wdl[slot["row"]])
        set_evaluation(trees, b, row, wdl[slot["row"]])


@cached_njit(inline="always")
def join_batch(trees: Trees, b: int, row: int) -> int:
    """Put the leaf of slot `b`, if it waits for the network, into `row` of the batch; return the next free row."""
    if trees.slots[b]["phase"] != NETWORK:
        return row
    trees.slots[b]["row"] = row
    copy_to(trees.batch[row], trees.observations[b])
    return row + 1
