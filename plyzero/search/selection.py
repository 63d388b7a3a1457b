"""Which edge a simulation takes: PUCT (Silver et al., 2018) and Gumbel (Danihelka et al., 2022), compiled."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.search.gumbel import improved_policy, transformed_q
from plyzero.search.tree import NOTHING, PROVEN_LOSS, UNPROVEN

ALMOST_PROVEN = 1 - 1e-6  # a float32 apart from 1


@numba.njit(cache=True)
def select_puct(node: Any, edges: NDArray[np.void], settings: Any, is_root: bool) -> int:
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
        if edge["proven"] == PROVEN_LOSS:
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
    edges: NDArray[np.void],
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
    sigma = completed_q(row, scratch)
    transformed_q(row["logit"], row["visits"], sigma, node["network_value"], settings["c_visit"], settings["c_scale"])
    wanted = schedule[slot["simulations"]]
    best, best_score, on_schedule = NOTHING, -np.inf, False
    for i in range(len(row)):
        if row[i]["proven"] == PROVEN_LOSS:
            continue
        fits = row[i]["visits"] == wanted
        score = row[i]["logit"] + sigma[i] + noise[i]
        if (fits and not on_schedule) or (fits == on_schedule and score > best_score):
            best, best_score, on_schedule = low + i, score, fits
    return best


@numba.njit(cache=True)
def select_gumbel(node: Any, edges: NDArray[np.void], settings: Any, scratch: NDArray[np.float64]) -> int:
    """Return the edge whose share of visits lags most behind the improved policy: largest π'(a) - n(a) / (1 + Σ n)."""
    low, high = node["first_edge"], node["first_edge"] + node["num_edges"]
    row = edges[low:high]
    policy = completed_q(row, scratch)
    improved_policy(
        row["logit"], row["visits"], policy, node["network_value"], settings["c_visit"], settings["c_scale"]
    )
    best, best_score = NOTHING, -np.inf
    for i in range(len(row)):
        score = policy[i] - row[i]["visits"] / node["visits"]
        if row[i]["proven"] != PROVEN_LOSS and score > best_score:
            best, best_score = low + i, score
    return best


@numba.njit(cache=True)
def completed_q(row: NDArray[np.void], room: NDArray[np.float64]) -> NDArray[np.float64]:
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
