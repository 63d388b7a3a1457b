"""The policy that a search recommends: one definition for the move that is played and the target that is learned."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.gumbel import improved_policy
from plyzero.tree import GUMBEL, UNPROVEN


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
    weights = np.empty(len(q))
    if proven != UNPROVEN:
        weights[:] = q == proven
    elif kind == GUMBEL or visits.sum() == 0:
        weights[:] = q
        improved_policy(np.log(np.maximum(prior, 1e-30)), visits, weights, network_value, c_visit, c_scale)
    else:
        weights[:] = visits
    kept = np.where(q == -1, 0.0, weights)
    if kept.sum() > 0:
        weights = kept
    return weights / weights.sum()
