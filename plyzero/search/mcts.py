"""The search itself, compiled: PUCT (Silver et al., 2018) and Gumbel (Danihelka et al., 2022) over one slot's tree.

A slot runs on, through terminal positions and proven moves, until it needs the network, or the rules of a game that
is plain Python. Slots share nothing: what happens in one does not depend on the others.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import DRAW, ONGOING
from plyzero.search import rule_calls
from plyzero.search.evaluation_cache import ABSENT, find, remember
from plyzero.search.gumbel import considered_visits
from plyzero.search.numba_arrays import borrowed, copy_to
from plyzero.search.selection import select_gumbel, select_gumbel_root, select_puct
from plyzero.search.tree import (
    DONE,
    EVALUATION,
    FULL,
    GUMBEL,
    NO_SEARCH,
    NOTHING,
    PROVEN_DRAW,
    PROVEN_LOSS,
    PROVEN_WIN,
    PUCT,
    READ,
    RULES,
    SELECTING,
    UNPROVEN,
    Trees,
)

Records = NDArray[np.void]
DRAWN = DRAW


@numba.njit(cache=True)
def advance_all(trees: Trees, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> int:
    """Move every slot on until it waits for the network, for rules, for room, or is done; return how many wait for
    the network.

    logits, wdl: the answer to the batch that was returned before, `[n, A]` and `[n, 3]`, or of no rows.
    """
    trees = borrowed(trees)
    logits = borrowed(logits)
    wdl = borrowed(wdl)
    waiting = 0
    for b in range(len(trees.slots)):
        advance(trees, b, logits, wdl)
        waiting = join_batch(trees, b, waiting)
    return waiting


@numba.njit(cache=True, inline="always")
def advance(trees: Trees, b: int, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> None:
    """Move slot `b` on.

    Here and where Trees are handed on, inlining is forced: to copy and count so many arrays at every call took longer
    than the search itself.
    """
    take_answer(trees, b, logits, wdl)
    slot, nodes, edges = trees.slots[b], trees.nodes[b], trees.edges[b]
    observation, mask = trees.observations[b], trees.masks[b]
    noise, schedule, settings = trees.noise[b], trees.schedules[b], trees.settings[0]
    while True:
        if slot["phase"] == SELECTING:
            select_leaf(slot, nodes, edges, noise, schedule, settings, trees.scratch)
        elif slot["phase"] == RULES and settings["to_play_offset"] != NOTHING:
            state = trees.states[b, slot["leaf"]]
            if slot["leaf_edge"] != NOTHING:
                copy_to(state, trees.states[b, slot["leaf_parent"]])
                rule_calls.play(trees.rules, state, edges[slot["leaf_edge"]]["action"])
            slot["outcome"] = rule_calls.outcome(trees.rules, state)
            slot["to_play"] = state[settings["to_play_offset"]]
            if slot["outcome"] == ONGOING:
                mask[:] = False
                rule_calls.legal(trees.rules, state, mask)
                observation[:] = 0
                rule_calls.observe(trees.rules, state, observation)
            slot["phase"] = READ
        elif slot["phase"] in (READ, FULL):
            if slot["edges"] + len(mask) > len(edges):
                slot["phase"] = FULL
                return
            if slot["leaf_edge"] == NOTHING:
                copy_to(trees.roots[b], observation)
            add_leaf(slot, nodes, edges, mask)
            if slot["phase"] == EVALUATION:
                found = find(trees.cache, observation)
                if found != ABSENT:
                    receive(trees, b, trees.cache.logits[found], trees.cache.wdl[found])
        else:
            return


@numba.njit(cache=True, inline="always")
def take_answer(trees: Trees, b: int, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> None:
    """Give slot `b` its row of the answer, if it waits for one, and keep it for others who ask the same."""
    slot = trees.slots[b]
    if slot["phase"] == EVALUATION and len(logits):
        remember(trees.cache, trees.observations[b], logits[slot["row"]], wdl[slot["row"]])
        receive(trees, b, logits[slot["row"]], wdl[slot["row"]])


@numba.njit(cache=True, inline="always")
def join_batch(trees: Trees, b: int, row: int) -> int:
    """Put what slot `b` wants evaluated, if anything, into `row` of the batch; return the next free row."""
    if trees.slots[b]["phase"] != EVALUATION:
        return row
    trees.slots[b]["row"] = row
    copy_to(trees.batch[row], trees.observations[b])
    return row + 1


@numba.njit(cache=True)
def begin_slot(slot: Any, kind: int, simulations: int, noisy: bool, noise_seed: int) -> None:
    """Empty the tree; its first leaf is the root."""
    slot["kind"], slot["budget"], slot["noisy"], slot["noise_seed"] = kind, simulations, noisy, noise_seed
    slot["simulations"], slot["nodes"], slot["edges"] = 0, 0, 0
    slot["leaf"], slot["leaf_edge"], slot["leaf_parent"] = 0, NOTHING, NOTHING
    slot["phase"] = RULES


@numba.njit(cache=True)
def resume_slot(trees: Trees, b: int, simulations: int, noisy: bool, noise_seed: int) -> None:
    """Search on by PUCT in the tree that slot `b` holds."""
    slot, root = trees.slots[b], trees.nodes[b, 0]
    row = trees.edges[b, root["first_edge"] : root["first_edge"] + root["num_edges"]]
    slot["kind"], slot["budget"], slot["noisy"], slot["noise_seed"] = PUCT, simulations, noisy, noise_seed
    slot["simulations"], slot["phase"] = 0, SELECTING
    prepare_root(slot, row, trees.noise[b], trees.schedules[b], trees.settings[0])


@numba.njit(cache=True)
def select_leaf(
    slot: Any,
    nodes: Records,
    edges: Records,
    noise: NDArray[np.float32],
    schedule: NDArray[np.int32],
    settings: Any,
    scratch: NDArray[np.float64],
) -> None:
    """Walk from the root to an action not yet tried and ask for its position; back up at once what is proven."""
    if slot["simulations"] >= slot["budget"] or nodes[0]["proven"] != UNPROVEN:
        slot["phase"] = DONE
        return
    n = 0
    while True:
        if slot["kind"] == PUCT:
            e = select_puct(nodes[n], edges, settings, n == 0)
        elif n == 0:
            e = select_gumbel_root(slot, nodes[0], edges, noise, schedule, settings, scratch)
        else:
            e = select_gumbel(nodes[n], edges, settings, scratch)
        if edges[e]["proven"] != UNPROVEN:
            backup(nodes, edges, n, e, edges[e]["proven"], 1.0 if edges[e]["proven"] == PROVEN_DRAW else 0.0)
            slot["simulations"] += 1
            return
        if edges[e]["child"] == NOTHING:
            slot["leaf"], slot["leaf_edge"], slot["leaf_parent"] = slot["nodes"], e, n
            slot["phase"] = RULES
            return
        n = edges[e]["child"]


@numba.njit(cache=True)
def add_leaf(slot: Any, nodes: Records, edges: Records, mask: NDArray[np.bool_]) -> None:
    """Hang the position just read into the tree: a finished one is a proven edge, another one a node to evaluate."""
    if slot["outcome"] != ONGOING:
        mover = nodes[slot["leaf_parent"]]["to_play"]
        value = PROVEN_DRAW
        if slot["outcome"] != DRAWN:
            value = PROVEN_WIN if slot["outcome"] == mover else PROVEN_LOSS
        edges[slot["leaf_edge"]]["proven"] = value
        backup(nodes, edges, slot["leaf_parent"], slot["leaf_edge"], value, 1.0 if value == PROVEN_DRAW else 0.0)
        prove(nodes, edges, slot["leaf_parent"])
        slot["simulations"] += 1
        slot["phase"] = SELECTING
        return
    node = nodes[slot["leaf"]]
    node["parent"], node["edge"] = slot["leaf_parent"], slot["leaf_edge"]
    node["to_play"], node["proven"] = slot["to_play"], UNPROVEN
    node["visits"], node["value_sum"], node["draw_sum"] = 0, 0.0, 0.0
    node["network_value"], node["network_draw"] = 0.0, 0.0
    node["first_edge"] = slot["edges"]
    for action in range(len(mask)):
        if mask[action]:
            edge = edges[slot["edges"]]
            edge["action"], edge["child"], edge["proven"] = action, NOTHING, UNPROVEN
            edge["visits"], edge["value_sum"] = 0, 0.0
            slot["edges"] += 1
    node["num_edges"] = slot["edges"] - node["first_edge"]
    if slot["leaf_edge"] != NOTHING:
        edges[slot["leaf_edge"]]["child"] = slot["leaf"]
    slot["nodes"] += 1
    slot["phase"] = DONE if slot["kind"] == NO_SEARCH else EVALUATION


@numba.njit(cache=True, inline="always")
def receive(trees: Trees, b: int, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> None:
    """Give the leaf of slot `b` its evaluation, `[A]` and `[3]`, and back the value up."""
    slot, nodes, edges = trees.slots[b], trees.nodes[b], trees.edges[b]
    node = nodes[slot["leaf"]]
    row = edges[node["first_edge"] : node["first_edge"] + node["num_edges"]]
    set_priors(row, logits)
    value, draw = wdl[0] - wdl[2], wdl[1]
    node["network_value"], node["network_draw"] = value, draw
    node["visits"], node["value_sum"], node["draw_sum"] = 1, value, draw
    if slot["leaf_edge"] == NOTHING:
        prepare_root(slot, row, trees.noise[b], trees.schedules[b], trees.settings[0])
    else:
        mover = nodes[slot["leaf_parent"]]["to_play"]
        seen_above = value if node["to_play"] == mover else -value
        backup(nodes, edges, slot["leaf_parent"], slot["leaf_edge"], seen_above, draw)
        slot["simulations"] += 1
    slot["phase"] = SELECTING


@numba.njit(cache=True)
def prepare_root(
    slot: Any, row: Records, noise: NDArray[np.float32], schedule: NDArray[np.int32], settings: Any
) -> None:
    """Draw the root's noise, if it gets any, and plan the visits of its edges `row` where the kind of search does."""
    if slot["noisy"]:
        np.random.seed(slot["noise_seed"])
    if slot["kind"] == GUMBEL:
        for i in range(len(row)):
            noise[i] = np.random.gumbel(0.0, 1.0) if slot["noisy"] else 0.0
        considered = min(settings["max_considered_actions"], len(row))
        considered_visits(considered, schedule[: slot["budget"]])
    elif slot["noisy"]:
        alpha = settings["dirichlet_alpha"]
        if alpha == 0:
            alpha = min(1.0, 10 / len(row))
        for i in range(len(row)):
            noise[i] = np.random.gamma(alpha, 1.0) + 1e-20
        mix_noise(row, noise, settings["dirichlet_fraction"])


@numba.njit(cache=True)
def set_priors(edges: Records, logits: NDArray[np.float32]) -> None:
    """Softmax over the legal actions."""
    highest, total = -np.inf, 0.0
    for e in range(len(edges)):
        highest = max(highest, logits[edges[e]["action"]])
    for e in range(len(edges)):
        edges[e]["logit"] = logits[edges[e]["action"]] - highest
        edges[e]["prior"] = math.exp(edges[e]["logit"])
        total += edges[e]["prior"]
    log_total = math.log(total)
    for e in range(len(edges)):
        edges[e]["logit"] -= log_total
        edges[e]["prior"] /= total


@numba.njit(cache=True)
def mix_noise(edges: Records, gammas: NDArray[np.float32], fraction: float) -> None:
    """Mix Dirichlet noise into the priors: Gamma(α, 1) numbers, divided by their sum, are Dirichlet(α)."""
    total = 0.0
    for e in range(len(edges)):
        total += gammas[e]
    for e in range(len(edges)):
        edges[e]["prior"] = (1 - fraction) * edges[e]["prior"] + fraction * gammas[e] / total


@numba.njit(cache=True)
def principal_variation(nodes: Records, edges: Records, e: int) -> NDArray[np.int32]:
    """Return the actions from edge `e` on, `[plies]`, each the most visited of its node."""
    line = np.empty(len(nodes), np.int32)
    plies = 0
    while e != NOTHING:
        line[plies] = edges[e]["action"]
        plies += 1
        n = edges[e]["child"]
        e = NOTHING
        if n != NOTHING:
            most = 0
            for i in range(nodes[n]["first_edge"], nodes[n]["first_edge"] + nodes[n]["num_edges"]):
                if edges[i]["visits"] > most:
                    e, most = i, edges[i]["visits"]
    return line[:plies].copy()


@numba.njit(cache=True)
def backup(nodes: Records, edges: Records, n: int, e: int, value: float, draw: float) -> None:
    """Add one visit to edge `e` of node `n` and to all above it; `value` is seen by the player who moves at `n`.

    The sign turns where the player to move turns, not at every ply: a player may move twice.
    """
    while True:
        node, edge = nodes[n], edges[e]
        edge["visits"] += 1
        edge["value_sum"] += value
        node["visits"] += 1
        node["value_sum"] += value
        node["draw_sum"] += draw
        if node["parent"] == NOTHING:
            return
        if nodes[node["parent"]]["to_play"] != node["to_play"]:
            value = -value
        n, e = node["parent"], node["edge"]


@numba.njit(cache=True)
def prove(nodes: Records, edges: Records, n: int) -> None:
    """Carry a proof up from node `n`: a winning move proves a win, otherwise the best of moves that are all proven."""
    while n != NOTHING:
        node = nodes[n]
        best, open_ = PROVEN_LOSS, False
        for e in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
            if edges[e]["proven"] == UNPROVEN:
                open_ = True
            else:
                best = max(best, edges[e]["proven"])
        if open_ and best != PROVEN_WIN:
            return
        node["proven"] = best
        if node["parent"] == NOTHING:
            return
        same = nodes[node["parent"]]["to_play"] == node["to_play"]
        edges[node["edge"]]["proven"] = best if same else -best
        n = node["parent"]
