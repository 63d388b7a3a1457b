"""The loss: cross-entropy of the policy over the legal actions, plus cross-entropy of win, draw and loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from trainer.window import Batch


class Losses(NamedTuple):
    """Means over a batch, in nats.

    total:  policy cross-entropy + value cross-entropy, which is minimised.
    policy: KL(target || policy), the policy cross-entropy minus the entropy of the target, so that 0 is perfect.
    value:  cross-entropy of win, draw and loss.
    """

    total: Tensor
    policy: Tensor
    value: Tensor


def loss(policy_logits: Tensor, wdl_logits: Tensor, legal: Tensor, policy: Tensor, wdl: Tensor) -> Losses:
    """Return -Σ π log p - Σ w log v, with p over the legal actions only.

    policy_logits: `[B, A]`, those of illegal actions are ignored.
    wdl_logits:    `[B, 3]`.
    legal:         `[B, A]` bool.
    policy:        π, `[B, A]`, 0 for illegal actions.
    wdl:           w, `[B, 3]`.
    """
    log_policy = torch.log_softmax(policy_logits.masked_fill(~legal, -torch.inf), dim=1)
    cross_entropy = -(policy * log_policy.masked_fill(~legal, 0.0)).sum(dim=1).mean()
    value = -(wdl * torch.log_softmax(wdl_logits, dim=1)).sum(dim=1).mean()
    entropy = torch.special.entr(policy).sum(dim=1).mean()
    return Losses(total=cross_entropy + value, policy=cross_entropy - entropy, value=value)


class Loss(Protocol):
    """A loss function, the setting `trainer.loss`: any function with this signature can take the place of `loss`."""

    def __call__(
        self, policy_logits: Tensor, wdl_logits: Tensor, *, legal: Tensor, policy: Tensor, wdl: Tensor
    ) -> Losses:
        """Return three numbers with a gradient in `total`; the arguments are those of `loss`, in float32."""
        ...


class BatchTensors(NamedTuple):
    """A `Batch` as tensors on one device, with the same fields."""

    observations: Tensor
    legal: Tensor
    policy: Tensor
    wdl: Tensor


def to_device(batch: Batch, device: torch.device) -> BatchTensors:
    """Return `batch` as tensors on `device`."""
    return BatchTensors(*(torch.from_numpy(field).to(device, non_blocking=True) for field in batch))
