"""The loss: cross-entropy of the policy over the legal actions, plus cross-entropy of win, draw and loss."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

MIN_SCORE_SD: Final = 0.02
"""Standard deviation of a score that is expected with certainty, so that the likelihood stays finite."""


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


def score_loss(expected: Tensor, score: Tensor) -> Tensor:
    """Return the mean of -σ² log N(s; μ, σ), with σ² as a constant, over the positions whose score is known.

    The gradient of μ is that of (s - μ)² / 2, and that of log σ is σ² - (s - μ)²: both are bounded, where those of the
    likelihood itself grow with 1 / σ² and leave nothing for policy and value. Source: Seitzer et al., "On the Pitfalls
    of Heteroscedastic Uncertainty Estimation with Probabilistic Neural Networks" (2022), β = 1.

    expected: `[B, 2]`, μ and log σ. score: s, `[B]`, NaN where unknown; both as shares of max_score.
    """
    is_known, score = ~score.isnan(), score.nan_to_num()
    variance = torch.exp(2 * expected[:, 1]) + MIN_SCORE_SD**2
    each = variance.detach() * (torch.log(variance) + (score - expected[:, 0]) ** 2 / variance) / 2
    return (each * is_known).sum() / is_known.sum().clamp(min=1)


def board_loss(logits: Tensor, board: Tensor) -> Tensor:
    """Return the mean cross-entropy of (1 + b) / 2 over the squares whose final state b is known.

    logits: `[B, P, H, W]`, where tanh(logit) is expected. board: b, `[B, P, H, W]`, NaN where unknown.
    """
    is_known = ~board.isnan()
    target = (1 + board.nan_to_num()) / 2
    each = functional.binary_cross_entropy_with_logits(2 * logits, target, reduction="none")
    return (each * is_known).sum() / is_known.sum().clamp(min=1)


class Loss(Protocol):
    """A loss function, the setting `trainer.loss`: any function with this signature can take the place of `loss`."""

    def __call__(
        self, policy_logits: Tensor, wdl_logits: Tensor, *, legal: Tensor, policy: Tensor, wdl: Tensor
    ) -> Losses:
        """Return three numbers with a gradient in `total`; the arguments are those of `loss`, in float32."""
        ...
