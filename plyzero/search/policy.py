"""The policy that a search recommends: one definition for the move that is played and the target that is learned."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.search.gumbel import improved_policy
from plyzero.search.tree import GUMBEL, UNPROVEN


@numba.njit(cache=True)
def policy_target(
    kind: int,
    visits: NDArray[np.integer],
    prior: NDArray[np.floating],
    q: NDArray[np.floating],
    network_value: float,
    proven: int,
    c_visit: float,
    c_scale: float,
) -> NDArray[np.float64]:
    """Return probabilities over the n legal actions, made from what a record keeps of them.

    kind:   PUCT = shares of the visits (Silver et al., 2018); GUMBEL = π' from completed values (Danihelka et al.).
    q:      `[n]` for the player to move, exactly +1, 0 or -1 where proven, NaN where never visited.
    proven: of the position; if it is, the actions that reach the proven value share all of the probability.

    A move that is known to lose gets nothing, unless all do. Without any visit it is the prior.
    """
    n = len(q)
    weights, logits = np.empty(n), np.empty(n)
    if proven != UNPROVEN:
        for i in range(n):
            weights[i] = q[i] == proven
    elif kind == GUMBEL or visits.sum() == 0:
        for i in range(n):
            weights[i], logits[i] = q[i], math.log(max(prior[i], 1e-30))
        improved_policy(logits, visits, weights, network_value, c_visit, c_scale)
    else:
        for i in range(n):
            weights[i] = visits[i]
    kept, total = 0.0, 0.0
    for i in range(n):
        kept += weights[i] if q[i] != -1 else 0.0
    for i in range(n):
        if kept > 0 and q[i] == -1:
            weights[i] = 0.0
        total += weights[i]
    for i in range(n):
        weights[i] /= total
    return weights
