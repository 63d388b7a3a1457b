"""The prior probabilities of edges: what the network says of legal actions, and noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from plyzero.search.kernel_cache import cached_njit
from plyzero.search.tree import Records


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
