"""The policy that a search recommends: one definition for the move that is played and the target that is learned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plyzero.gumbel import improved_policy
from plyzero.settings import SearchSettings
from plyzero.tree import GUMBEL, UNPROVEN


def policy_target(
    kind: int,
    visits: NDArray[np.integer],
    prior: NDArray[np.floating],
    q: NDArray[np.floating],
    network_value: float,
    proven: int,
    settings: SearchSettings,
) -> NDArray[np.float64]:
    """Return probabilities over the n legal actions, made from what a record keeps of them.

    kind:   PUCT = shares of the visits (Silver et al., 2018); GUMBEL = π' from completed values (Danihelka et al.).
    q:      `[n]` for the player to move, exactly +1, 0 or -1 where proven, NaN where never visited.
    proven: of the position; if it is, the actions that reach the proven value share all of the probability.

    A move that is known to lose gets nothing, unless all do.
    """
    if proven != UNPROVEN:
        best = (q == proven).astype(np.float64)
        return best / best.sum()
    if kind == GUMBEL or not visits.any():
        logits = np.log(np.maximum(prior, 1e-30))
        weights = improved_policy(logits, visits, q, network_value, settings.c_visit, settings.c_scale)
    else:
        weights = visits.astype(np.float64)
    kept = np.where(q == -1, 0.0, weights)
    return kept / kept.sum() if kept.sum() > 0 else weights / weights.sum()
