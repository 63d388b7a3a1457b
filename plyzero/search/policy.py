"""The utility that a search maximises, its policy, value and line: one definition for playing, records, targets."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from plyzero.search.gumbel import improved_policy
from plyzero.search.numba_kernel import cached_njit
from plyzero.search.tree import GUMBEL, NO_EDGE, NO_NODE, PROVEN_DRAW, UNPROVEN, Record, Records


@cached_njit
def policy_target(
    algorithm: int,
    visits: NDArray[np.integer],
    prior: NDArray[np.floating],
    q: NDArray[np.floating],
    network_value: float,
    proven: int,
    c_visit: float,
    c_scale: float,
) -> NDArray[np.float64]:
    """Return probabilities over the n legal actions, computed from what a record keeps of them.

    algorithm: PUCT: π(a) = N(a) / Σ_b N(b) (Silver et al., 2018); GUMBEL: π' from completed Q (Danihelka et al., 2022).
    q:         `[n]` for the player to move, exactly +1, 0 or -1 where proven, NaN where never visited.
    proven:    of the position. If it is proven, the actions that reach the proven value share all of the probability.

    A move that is proven to lose gets probability 0, unless all moves lose. Where no other move was visited, the others
    get their prior.
    """
    n = len(q)
    weights, logits = np.empty(n), np.empty(n)
    if proven != UNPROVEN:
        for i in range(n):
            weights[i] = q[i] == proven
    elif algorithm == GUMBEL or visits.sum() == 0:
        for i in range(n):
            weights[i], logits[i] = q[i], math.log(max(prior[i], 1e-30))
        improved_policy(logits, visits, weights, network_value, c_visit, c_scale)
    else:
        for i in range(n):
            weights[i] = visits[i]
    kept, total = 0.0, 0.0
    for i in range(n):
        kept += weights[i] if q[i] != -1 else 0.0
    if kept == 0:  # all that was visited loses
        for i in range(n):
            if q[i] != -1:
                weights[i] = max(prior[i], 1e-30)
                kept += weights[i]
    for i in range(n):
        if kept > 0 and q[i] == -1:
            weights[i] = 0.0
        total += weights[i]
    for i in range(n):
        weights[i] /= total
    return weights


@cached_njit
def utility(value: float, score: float, player: int, slot: Record, settings: Record) -> float:
    """Return (v + w · 2/π · atan((score - s_0) / c)) / (1 + w) for `player`, whose value v and score these are.

    s_0 is the score expected at the root, so the search prefers more points without risking a win for points that it
    has already. This is KataGo's dynamic score utility. With w = `search.score_weight` = 0 it is the value.
    """
    weight = settings["score_weight"]
    if weight == 0:
        return value
    lead = score - (slot["score_centre"] if player == 0 else -slot["score_centre"])
    return float((value + weight * 2 / math.pi * math.atan(lead / settings["score_scale"])) / (1 + weight))


@cached_njit
def root_value(root: Record) -> tuple[float, float]:
    """Return value and draw probability of a searched root, a NODE, for its player to move; exact where proven."""
    if root["proven"] != UNPROVEN:
        return float(root["proven"]), 1.0 if root["proven"] == PROVEN_DRAW else 0.0
    visits = max(1, root["visits"])
    return root["result_sum"] / visits, root["draw_sum"] / visits


@cached_njit
def principal_variation(nodes: Records, edges: Records, e: int) -> NDArray[np.int32]:
    """Return the actions from edge `e` on, `[plies]`, each the most visited one of its node, until chance moves."""
    actions = np.empty(len(nodes), np.int32)
    plies = 0
    while e != NO_EDGE:
        actions[plies] = edges[e]["action"]
        plies += 1
        n = edges[e]["child"]
        e = NO_EDGE
        if n != NO_NODE and not nodes[n]["is_chance"]:
            most = 0
            for i in range(nodes[n]["first_edge"], nodes[n]["first_edge"] + nodes[n]["num_edges"]):
                if edges[i]["visits"] > most:
                    e, most = i, edges[i]["visits"]
    return actions[:plies].copy()
