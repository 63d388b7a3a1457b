"""Gumbel AlphaZero's formulas: completed Q, the improved policy, sequential halving (Danihelka et al., 2022).

Functions over the n legal actions of one node. `q` holds values in [-1, 1] for the player to move, NaN where an action
was never visited. They are called in every simulation, so they overwrite `q` and return it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from plyzero.search.numba_kernel import cached_njit

Floats = NDArray[np.floating]


@cached_njit
def improved_policy(
    logits: Floats, visits: NDArray[np.integer], q: Floats, network_value: float, c_visit: float, c_scale: float
) -> Floats:
    """Overwrite q with the improved policy π' = softmax(logits + σ(completed Q)), `[n]` (equation 11)."""
    transformed_q(logits, visits, q, network_value, c_visit, c_scale)
    highest, total = -np.inf, 0.0
    for i in range(len(q)):
        q[i] += logits[i]
        highest = max(highest, q[i])
    for i in range(len(q)):
        q[i] = math.exp(q[i] - highest)
        total += q[i]
    for i in range(len(q)):
        q[i] /= total
    return q


@cached_njit
def transformed_q(
    logits: Floats, visits: NDArray[np.integer], q: Floats, network_value: float, c_visit: float, c_scale: float
) -> Floats:
    """Overwrite q with σ(completed Q), `[n]`: σ(q) = (c_visit + max_b N(b)) · c_scale · q, q in [0, 1] (equation 8).

    q is not rescaled by the node's smallest and largest value, so that π' stays near the prior where all actions are
    worth nearly the same.
    """
    max_visits = 0
    for i in range(len(visits)):
        max_visits = max(max_visits, visits[i])
    scale = (c_visit + max_visits) * c_scale
    v_mix = mixed_value(logits, visits, q, network_value)
    for i in range(len(q)):
        q[i] = scale * ((v_mix if math.isnan(q[i]) else q[i]) + 1) / 2
    return q


@cached_njit
def mixed_value(logits: Floats, visits: NDArray[np.integer], q: Floats, network_value: float) -> float:
    """Return v_mix, the value that completed Q gives to actions never visited (appendix D, equation 33)."""
    prior_sum, weighted_sum, visit_sum = 0.0, 0.0, 0
    for i in range(len(q)):
        visit_sum += visits[i]
        if not math.isnan(q[i]):
            prior = math.exp(logits[i])
            prior_sum += prior
            weighted_sum += prior * q[i]
    if prior_sum == 0:
        return network_value
    return (network_value + visit_sum * weighted_sum / prior_sum) / (1 + visit_sum)


@cached_njit
def considered_visits(considered: int, table: NDArray[np.int32]) -> NDArray[np.int32]:
    """Fill `table`, `[simulations]`: `table[i]` is the number of visits that an action must have for simulation i to
    try it.

    This is sequential halving (algorithm 1) as a table: `considered` actions share the visits of a round equally, and
    the better half of them goes on to the next round.
    """
    simulations = len(table)
    rounds = max(1, math.ceil(math.log2(considered)))
    visits = np.zeros(considered, np.int32)
    filled = 0
    while filled < simulations:
        for _ in range(max(1, simulations // (rounds * considered))):
            for i in range(considered):
                if filled < simulations:
                    table[filled] = visits[i]
                    filled += 1
                visits[i] += 1
        considered = min(considered, max(2, considered // 2))  # never fewer than two, unless there was only one
    return table
