"""Planning with Gumbel: completed values, the improved policy, sequential halving (Danihelka et al., 2022).

Compiled functions over the legal actions of one node. `q` holds values in [-1, 1] for the player to move, NaN where
an action was never visited. The search calls them at every step, so they write over `q` and return it.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


@numba.njit(cache=True)
def improved_policy(
    logits: Floats, visits: NDArray[np.integer], q: Floats, network_value: float, c_visit: float, c_scale: float
) -> Floats:
    """Turn q into π' = softmax(logits + σ(completed Q)), `[n]` (equation 11)."""
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


@numba.njit(cache=True)
def transformed_q(
    logits: Floats, visits: NDArray[np.integer], q: Floats, network_value: float, c_visit: float, c_scale: float
) -> Floats:
    """Turn q into σ(completed Q), `[n]`: σ(q) = (c_visit + max_b N(b)) · c_scale · q, q scaled to [0, 1] (equation 8).

    Not rescaled by the node's smallest and largest value: where all actions are worth nearly the same, π' stays near
    the prior.
    """
    most = 0
    for i in range(len(visits)):
        most = max(most, visits[i])
    scale = (c_visit + most) * c_scale
    mixed = mixed_value(logits, visits, q, network_value)
    for i in range(len(q)):
        q[i] = scale * ((mixed if math.isnan(q[i]) else q[i]) + 1) / 2
    return q


@numba.njit(cache=True)
def mixed_value(logits: Floats, visits: NDArray[np.integer], q: Floats, network_value: float) -> float:
    """Return v_mix, which stands in for the value of an action never visited (appendix D, equation 33)."""
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


@numba.njit(cache=True)
def considered_visits(considered: int, table: NDArray[np.int32]) -> NDArray[np.int32]:
    """Fill `table` with how many visits the action tried by each simulation of the root must have had so far.

    This is sequential halving (algorithm 1) as a table: `considered` actions share each phase's visits equally, and
    after a phase the better half goes on.
    """
    simulations = len(table)
    phases = max(1, math.ceil(math.log2(considered)))
    visits = np.zeros(considered, np.int32)
    filled = 0
    while filled < simulations:
        for _ in range(max(1, simulations // (phases * considered))):
            for i in range(considered):
                if filled < simulations:
                    table[filled] = visits[i]
                    filled += 1
                visits[i] += 1
        considered = min(considered, max(2, considered // 2))
    return table
