"""The loss: cross-entropy of the policy over legal actions plus cross-entropy of win, draw and loss."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Losses(NamedTuple):
    """Means over the batch, in nats. `policy` is the divergence KL(target || policy), so that 0 is perfect."""

    total: Tensor
    policy: Tensor
    value: Tensor


def loss(policy_logits: Tensor, wdl_logits: Tensor, legal: Tensor, policy: Tensor, wdl: Tensor) -> Losses:
    """Return -Σ π log p - Σ w log v, π over legal actions alone; illegal actions take no part."""
    log_policy = torch.log_softmax(policy_logits.float().masked_fill(~legal, -torch.inf), dim=1)
    cross_entropy = -(policy * log_policy.masked_fill(~legal, 0.0)).sum(dim=1).mean()
    value = -(wdl * torch.log_softmax(wdl_logits.float(), dim=1)).sum(dim=1).mean()
    entropy = torch.special.entr(policy).sum(dim=1).mean()
    return Losses(cross_entropy + value, cross_entropy - entropy, value)
