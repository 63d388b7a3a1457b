"""Selection of an edge at a node: PUCT (Silver et al., 2018), Gumbel (Danihelka et al., 2022), rolls; and the priors.

A node whose edges are all proven losses is proven itself, and no simulation reaches it: some edge is always selected.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.chance import ENDLESS_ROLLS, MAX_ROLLS
from plyzero.rules.counter_rng import random_bits
from plyzero.search.gumbel import considered_visits, improved_policy, transformed_q
from plyzero.search.numba_kernel import cached_njit
from plyzero.search.tree import GUMBEL, NO_EDGE, NO_NODE, PROVEN_DRAW, PROVEN_LOSS, UNPROVEN, Record, Records

ALMOST_ONE: Final = 1 - 1e-6
"""The largest mean value of an edge that is not proven; as a float32 it differs from 1."""

GOLDEN_RATIO: Final = (math.sqrt(5) - 1) / 2


@cached_njit
def select_puct(node: Record, edges: Records, settings: Record, is_root: bool) -> int:
    """Return argmax_a Q(s, a) + U(s, a), U = c_puct · P(s, a) · √N(s) / (1 + N(s, a)) (Silver et al., 2018, Methods).

    An action that was never tried gets the node's value for Q, less a reduction that grows with the prior mass already
    tried (first-play urgency); at the root there is no reduction. Proven losses are not selected.
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


@cached_njit
def select_gumbel_root(
    slot: Record,
    node: Record,
    edges: Records,
    noise: NDArray[np.float32],
    schedule: NDArray[np.int32],
    settings: Record,
    scratch: NDArray[np.float64],
) -> int:
    """Return the root's edge that sequential halving tries next (Danihelka et al., 2022, algorithm 2).

    That is argmax_a g(a) + logit(a) + σ(completed Q(a)) over the edges with as many visits as the schedule wants; g is
    the Gumbel noise. Completed Q is the proven value, else W / N, else v_mix, which mixes the network's value with the
    Qs of the other edges (plyzero.search.gumbel). Proven losses are not selected; if all edges with those visits are
    lost, any other edge may be.
    """
    low, high = node["first_edge"], node["first_edge"] + node["num_edges"]
    row = edges[low:high]
    sigma = edge_values(row, scratch)
    transformed_q(row["logit"], row["visits"], sigma, node["network_value"], settings["c_visit"], settings["c_scale"])
    wanted = schedule[slot["simulations"]]
    best, best_score, on_schedule = NO_EDGE, -np.inf, False
    for i in range(len(row)):
        if row[i]["proven"] == PROVEN_LOSS:
            continue
        fits = row[i]["visits"] == wanted
        score = row[i]["logit"] + sigma[i] + noise[i]
        # an edge on schedule replaces one that is not; among equals the score decides
        if (fits and not on_schedule) or (fits == on_schedule and score > best_score):
            best, best_score, on_schedule = low + i, score, fits
    return best


@cached_njit
def select_gumbel(node: Record, edges: Records, settings: Record, scratch: NDArray[np.float64]) -> int:
    """Return argmax_a π'(a) - N(s, a) / (1 + Σ_b N(s, b)), below the root (Danihelka et al., 2022, section 5).

    Proven losses are not selected.
    """
    low, high = node["first_edge"], node["first_edge"] + node["num_edges"]
    row = edges[low:high]
    policy = edge_values(row, scratch)
    improved_policy(
        row["logit"], row["visits"], policy, node["network_value"], settings["c_visit"], settings["c_scale"]
    )
    best, best_score = NO_EDGE, -np.inf
    for i in range(len(row)):
        score = policy[i] - row[i]["visits"] / node["visits"]  # N(s) = 1 + Σ_b N(s, b)
        if row[i]["proven"] != PROVEN_LOSS and score > best_score:
            best, best_score = low + i, score
    return best


@cached_njit
def select_chance(node: Record, edges: Records, n: int) -> int:
    """Return the edge of the roll whose turn it is at chance node `n`, evenly spread: visits stay near P(s, a) · N(s).

    The i-th visit takes the roll at frac(u + i · φ), φ the golden ratio, on the line on which each roll is as long as
    probable; u depends on n alone. Nothing is sampled, and over many nodes the first visit sees every roll by its
    probability. The usual P / (1 + N) visits likely rolls too often, and begins with the same roll at all nodes.
    """
    left = random_bits(np.uint64(n), 0) / 2**32 + node["visits"] * GOLDEN_RATIO
    left -= math.floor(left)
    last = node["first_edge"] + node["num_edges"] - 1
    for e in range(node["first_edge"], last):
        left -= edges[e]["prior"]
        if left < 0:
            return e
    return last


@cached_njit
def limit_rolls(nodes: Records, n: int) -> None:
    """Raise ValueError if chance moves at node `n` and at the MAX_ROLLS nodes above it."""
    for _ in range(MAX_ROLLS + 1):
        if n == NO_NODE or not nodes[n]["is_chance"]:
            return
        n = nodes[n]["parent"]
    raise ValueError(ENDLESS_ROLLS)


@cached_njit
def expectation(nodes: Records, edges: Records, n: int) -> tuple[float, float, float]:
    """Return the expected value, Σ_r P(r) Q(r) over the rolls of chance node `n`, probability of a draw, and score."""
    total = 0.0
    value, draw, score = 0.0, 0.0, 0.0
    for e in range(nodes[n]["first_edge"], nodes[n]["first_edge"] + nodes[n]["num_edges"]):
        probability, of_roll = edges[e]["prior"], value_of_roll(nodes, edges, n, e)
        total += probability
        value += probability * of_roll[0]
        draw += probability * of_roll[1]
        score += probability * of_roll[2]
    return value / total, draw / total, score / total


@cached_njit
def value_of_roll(nodes: Records, edges: Records, n: int, e: int) -> tuple[float, float, float]:
    """Return value, draw probability and score after the roll of edge `e` at chance node `n`, for its player.

    They are the proven ones, else the means of the simulations. A roll that no simulation has taken has those of the
    node. The score of a roll that ends the game is not kept: it counts as 0.
    """
    edge, node = edges[e], nodes[n]
    score = 0.0
    if edge["child"] != NO_NODE:
        below = nodes[edge["child"]]
        score = below["score_sum"] / max(1, below["visits"])
        score = score if below["to_play"] == node["to_play"] else -score
    if edge["proven"] != UNPROVEN:
        return float(edge["proven"]), 1.0 if edge["proven"] == PROVEN_DRAW else 0.0, score
    if edge["visits"] == 0:
        visits = node["visits"]
        return node["value_sum"] / visits, node["draw_sum"] / visits, node["score_sum"] / visits
    child = nodes[edge["child"]]
    return edge["value_sum"] / edge["visits"], child["draw_sum"] / child["visits"], score


@cached_njit
def edge_values(row: Records, room: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the value of each of n edges, in the first n numbers of `room`: the proven one, Q = W / N, or NaN.

    Values are for the player who moves. Only proven values are exactly +1 or -1: a mean of +1 (every random playout was
    won, say) is cut to ALMOST_ONE.
    """
    q = room[: len(row)]
    for i in range(len(row)):
        if row[i]["proven"] != UNPROVEN:
            q[i] = row[i]["proven"]
        elif row[i]["visits"]:
            q[i] = min(max(row[i]["value_sum"] / row[i]["visits"], -ALMOST_ONE), ALMOST_ONE)
        else:
            q[i] = np.nan
    return q


@cached_njit
def set_priors(row: Records) -> None:
    """Set P(s, a), the softmax of the network's logits, which are in the edges `row`, and the logit to log P(s, a)."""
    highest, total = -np.inf, 0.0
    for e in range(len(row)):
        highest = max(highest, row[e]["logit"])
    for e in range(len(row)):
        row[e]["logit"] -= highest
        row[e]["prior"] = math.exp(row[e]["logit"])
        total += row[e]["prior"]
    log_total = math.log(total)
    for e in range(len(row)):
        row[e]["logit"] -= log_total
        row[e]["prior"] /= total


@cached_njit
def add_dirichlet_noise(row: Records, gammas: NDArray[np.float32], fraction: float) -> None:
    """Set P(s, a) = (1 - ε) p_a + ε η_a, η ~ Dirichlet(α): Gamma(α, 1) numbers divided by their sum; ε = `fraction`."""
    total = 0.0
    for e in range(len(row)):
        total += gammas[e]
    for e in range(len(row)):
        row[e]["prior"] = (1 - fraction) * row[e]["prior"] + fraction * gammas[e] / total


@cached_njit
def prepare_root(
    slot: Record, row: Records, noise: NDArray[np.float32], schedule: NDArray[np.int32], settings: Record
) -> None:
    """Sample the noise of the root's edges `row`, if it gets any, and plan their visits if the algorithm is Gumbel."""
    if slot["noisy"]:
        np.random.seed(slot["noise_seed"])
    if slot["algorithm"] == GUMBEL:
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
        add_dirichlet_noise(row, noise, settings["dirichlet_fraction"])
