"""The search itself, compiled: PUCT (Silver et al., 2018) and Gumbel (Danihelka et al., 2022) over one slot's tree.

A slot runs on, through terminal positions and proven moves, until it needs the network, or the rules of a game that
is plain Python. Slots share nothing: what happens in one does not depend on the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from plyzero import compiled
from plyzero.borrow import borrowed
from plyzero.cache import ABSENT, CACHE, find, remember
from plyzero.gumbel import considered_visits, improved_policy, transformed_q
from plyzero.tree import (
    DONE,
    DRAW,
    EDGE,
    EVALUATION,
    FULL,
    GUMBEL,
    LOSS,
    NO_SEARCH,
    NODE,
    NOTHING,
    PUCT,
    READ,
    RULES,
    SELECTING,
    SETTINGS,
    SLOT,
    UNPROVEN,
    WIN,
    Trees,
)

Records = NDArray[np.void]
ONGOING, DRAWN = compiled.ONGOING, compiled.DRAW
ALMOST_PROVEN = 1 - 1e-6  # a float32 apart from 1


def advance_all(
    trees: Trees,
    logits: NDArray[np.float32],
    wdl: NDArray[np.float32],
    play: Callable[..., None],
    outcome: Callable[..., int],
    legal: Callable[..., None],
    observe: Callable[..., None],
) -> int:
    """Move every slot on until it waits for the network, for rules, for room, or is done; return how many wait for
    the network.

    logits, wdl: the answer to the batch that was returned before, `[n, A]` and `[n, 3]`, or of no rows.
    """
    trees = borrowed(trees)
    waiting = 0
    for b in range(len(trees.slots)):
        advance(trees, b, logits, wdl, play, outcome, legal, observe)
        waiting = join_batch(trees, b, waiting)
    return waiting


@numba.njit(cache=True, forceinline=True)
def advance(
    trees: Trees,
    b: int,
    logits: NDArray[np.float32],
    wdl: NDArray[np.float32],
    play: Callable[..., None],
    outcome: Callable[..., int],
    legal: Callable[..., None],
    observe: Callable[..., None],
) -> None:
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
                state[:] = trees.states[b, slot["leaf_parent"]]
                play(state, edges[slot["leaf_edge"]]["action"])
            slot["outcome"] = outcome(state)
            slot["to_play"] = state[settings["to_play_offset"]]
            if slot["outcome"] == ONGOING:
                mask[:] = False
                legal(state, mask)
                observation[:] = 0
                observe(state, observation)
            slot["phase"] = READ
        elif slot["phase"] in (READ, FULL):
            if slot["edges"] + len(mask) > len(edges):
                slot["phase"] = FULL
                return
            if slot["leaf_edge"] == NOTHING:
                trees.roots[b] = observation
            add_leaf(slot, nodes, edges, mask)
            if slot["phase"] == EVALUATION:
                found = find(trees.cache, observation)
                if found != ABSENT:
                    receive(trees, b, trees.cache.logits[found], trees.cache.wdl[found])
        else:
            return


@numba.njit(cache=True, forceinline=True)
def take_answer(trees: Trees, b: int, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> None:
    """Give slot `b` its row of the answer, if it waits for one, and keep it for others who ask the same."""
    slot = trees.slots[b]
    if slot["phase"] == EVALUATION and len(logits):
        remember(trees.cache, trees.observations[b], logits[slot["row"]], wdl[slot["row"]])
        receive(trees, b, logits[slot["row"]], wdl[slot["row"]])


@numba.njit(cache=True, forceinline=True)
def join_batch(trees: Trees, b: int, row: int) -> int:
    """Put what slot `b` wants evaluated, if anything, into `row` of the batch; return the next free row."""
    if trees.slots[b]["phase"] != EVALUATION:
        return row
    trees.slots[b]["row"] = row
    trees.batch[row] = trees.observations[b]
    return row + 1


@numba.njit(cache=True)
def begin_slot(slot: Any, kind: int, simulations: int, noisy: bool, noise_seed: int) -> None:
    """Empty the tree; its first leaf is the root."""
    slot["kind"], slot["budget"], slot["noisy"], slot["noise_seed"] = kind, simulations, noisy, noise_seed
    slot["simulations"], slot["nodes"], slot["edges"] = 0, 0, 0
    slot["leaf"], slot["leaf_edge"], slot["leaf_parent"] = 0, NOTHING, NOTHING
    slot["phase"] = RULES


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
            backup(nodes, edges, n, e, edges[e]["proven"], 1.0 if edges[e]["proven"] == DRAW else 0.0)
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
        value = DRAW
        if slot["outcome"] != DRAWN:
            value = WIN if slot["outcome"] == mover else LOSS
        edges[slot["leaf_edge"]]["proven"] = value
        backup(nodes, edges, slot["leaf_parent"], slot["leaf_edge"], value, 1.0 if value == DRAW else 0.0)
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


@numba.njit(cache=True, forceinline=True)
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
        considered = min(settings["considered_actions"], len(row))
        schedule[: slot["budget"]] = considered_visits(considered, slot["budget"])
    elif slot["noisy"]:
        alpha = settings["noise_alpha"]
        if alpha == 0:
            alpha = min(1.0, 10 / len(row))
        for i in range(len(row)):
            noise[i] = np.random.gamma(alpha, 1.0) + 1e-20
        mix_noise(row, noise, settings["noise_fraction"])


@numba.njit(cache=True)
def set_priors(edges: Records, logits: NDArray[np.float32]) -> None:
    """Softmax over the legal actions."""
    highest = -np.inf
    for e in range(len(edges)):
        highest = max(highest, logits[edges[e]["action"]])
    total = 0.0
    for e in range(len(edges)):
        total += math.exp(logits[edges[e]["action"]] - highest)
    for e in range(len(edges)):
        edges[e]["logit"] = logits[edges[e]["action"]] - highest - math.log(total)
        edges[e]["prior"] = math.exp(edges[e]["logit"])


@numba.njit(cache=True)
def mix_noise(edges: Records, gammas: NDArray[np.float32], fraction: float) -> None:
    """Mix Dirichlet noise into the priors: Gamma(α, 1) numbers, divided by their sum, are Dirichlet(α)."""
    total = gammas[: len(edges)].sum()
    for e in range(len(edges)):
        edges[e]["prior"] = (1 - fraction) * edges[e]["prior"] + fraction * gammas[e] / total


@numba.njit(cache=True)
def select_puct(node: Any, edges: Records, settings: Any, is_root: bool) -> int:
    """Return the edge with the largest Q + c · P · √N / (1 + n); N counts the node's visits, n the edge's.

    An action never tried is taken to be worth the node's value less a reduction that grows with the share of the
    priors already tried (first-play urgency); the root makes no reduction. Proven losses are left alone.
    """
    low, high = node["first_edge"], node["first_edge"] + node["num_edges"]
    tried = 0.0
    for e in range(low, high):
        if edges[e]["visits"]:
            tried += edges[e]["prior"]
    unvisited = node["value_sum"] / node["visits"]
    if not is_root:
        unvisited -= settings["fpu_reduction"] * math.sqrt(tried)
    explore = settings["c_puct"] * math.sqrt(node["visits"])
    best, best_score = low, -np.inf
    for e in range(low, high):
        edge = edges[e]
        if edge["proven"] == LOSS:
            continue
        if edge["proven"] != UNPROVEN:
            q = float(edge["proven"])
        elif edge["visits"]:
            q = edge["value_sum"] / edge["visits"]
        else:
            q = unvisited
        score = q + explore * edge["prior"] / (1 + edge["visits"])
        if score > best_score:
            best, best_score = e, score
    return best


@numba.njit(cache=True)
def select_gumbel_root(
    slot: Any,
    node: Any,
    edges: Records,
    noise: NDArray[np.float32],
    schedule: NDArray[np.int32],
    settings: Any,
    scratch: NDArray[np.float64],
) -> int:
    """Return the edge that sequential halving tries next: of those with as many visits as the schedule wants the one
    with the largest g + logit + σ(completed Q). A move proven lost is left alone; if only such ones have the visits
    that are wanted, any other will do."""
    low, high = node["first_edge"], node["first_edge"] + node["num_edges"]
    row = edges[low:high]
    sigma = completed(row, scratch)
    transformed_q(
        row["logit"], row["visits"], sigma, node["network_value"], settings["c_visit"], settings["c_scale"]
    )
    wanted = schedule[slot["simulations"]]
    best, best_score, on_schedule = NOTHING, -np.inf, False
    for i in range(len(row)):
        if row[i]["proven"] == LOSS:
            continue
        fits = row[i]["visits"] == wanted
        score = row[i]["logit"] + sigma[i] + noise[i]
        if (fits and not on_schedule) or (fits == on_schedule and score > best_score):
            best, best_score, on_schedule = low + i, score, fits
    return best


@numba.njit(cache=True)
def select_gumbel(node: Any, edges: Records, settings: Any, scratch: NDArray[np.float64]) -> int:
    """Return the edge whose share of visits lags most behind the improved policy: largest π'(a) - n(a) / (1 + Σ n)."""
    low, high = node["first_edge"], node["first_edge"] + node["num_edges"]
    row = edges[low:high]
    policy = completed(row, scratch)
    improved_policy(
        row["logit"], row["visits"], policy, node["network_value"], settings["c_visit"], settings["c_scale"]
    )
    best, best_score = NOTHING, -np.inf
    for i in range(len(row)):
        score = policy[i] - row[i]["visits"] / node["visits"]
        if row[i]["proven"] != LOSS and score > best_score:
            best, best_score = low + i, score
    return best


@numba.njit(cache=True)
def completed(row: Records, room: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, in the first n numbers of `room`, what is known of each edge's value: proven, its visits' mean, or NaN.

    Only a proof is worth exactly +1 or -1; a mean that is (every playout won, say) stops just short of it.
    """
    q = room[: len(row)]
    for i in range(len(row)):
        if row[i]["proven"] != UNPROVEN:
            q[i] = row[i]["proven"]
        elif row[i]["visits"]:
            q[i] = min(max(row[i]["value_sum"] / row[i]["visits"], -ALMOST_PROVEN), ALMOST_PROVEN)
        else:
            q[i] = np.nan
    return q


@numba.njit(cache=True)
def principal_line(nodes: Records, edges: Records, e: int) -> NDArray[np.int32]:
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
        best, open_ = LOSS, False
        for e in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
            if edges[e]["proven"] == UNPROVEN:
                open_ = True
            else:
                best = max(best, edges[e]["proven"])
        if open_ and best != WIN:
            return
        node["proven"] = best
        if node["parent"] == NOTHING:
            return
        same = nodes[node["parent"]]["to_play"] == node["to_play"]
        edges[node["edge"]]["proven"] = best if same else -best
        n = node["parent"]


def _trees_type() -> Any:
    array = compiled.array_type
    fields = (
        *(array(SLOT, 1), array(NODE, 2), array(EDGE, 2), array("u1", 3), array("?", 2)),
        *(array("f4", 4), array("f4", 4), array("f4", 4), array("f4", 2), array("i4", 2), array("f8", 1)),
        *(CACHE, array(SETTINGS, 1)),
    )
    return types.NamedTuple(fields, Trees)


KERNEL_TYPES = (_trees_type(), compiled.array_type("f4", 2), compiled.array_type("f4", 2))
"""What compiled code that moves all slots on declares as its first parameters; its last ones are RULE_TYPES."""

# Compiled against a fixed signature, with the rules as function pointers: once for every game, and cached on disk.
advance_all = numba.njit(types.int64(*KERNEL_TYPES, *compiled.RULE_TYPES), cache=True)(advance_all)
