"""The settings: one frozen model per concern, each field with its meaning, its unit and the papers' value."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["gumbel", "puct"]


class Concern(BaseModel):
    """Frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SearchSettings(Concern):
    """How a tree grows."""

    kind: Kind = "gumbel"
    """How full searches choose: gumbel (Danihelka et al., 2022), good with few simulations, or puct (AlphaZero)."""

    c_puct: float = Field(1.25, gt=0)
    """PUCT: weight of the prior against the value. AlphaZero: 1.25, growing slowly with the visits."""

    fpu_reduction: float = Field(0.25, ge=0)
    """PUCT: an untried action is worth its node's value less this times √(share of the priors tried). KataGo: 0.2."""

    noise_fraction: float = Field(0.25, ge=0, le=1)
    """PUCT, self-play: share of Dirichlet noise in the root's priors. AlphaZero: 0.25."""

    noise_alpha: float | None = Field(None, gt=0)
    """PUCT, self-play: concentration of that noise; none = 10 / legal actions, at most 1. AlphaZero, chess: 0.3."""

    considered_actions: int = Field(16, ge=1)
    """Gumbel: actions that sequential halving starts with. Danihelka et al.: 16."""

    c_visit: float = Field(50.0, ge=0)
    """Gumbel: σ(q) = (c_visit + most visits) · c_scale · q. Danihelka et al.: 50."""

    c_scale: float = Field(1.0, gt=0)
    """Gumbel: see c_visit; q lies in [0, 1] and is not rescaled. Danihelka et al., Go and chess: 1."""
