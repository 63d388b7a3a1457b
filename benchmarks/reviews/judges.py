"""A judge with its scale, which is measured once, and figures in words."""

from __future__ import annotations

import math
import sys
import time
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.review.measuring import measure_scale, scale_of
from plyzero.kits.review.reviewing import Review, review
from plyzero.kits.review.scale import Scale
from plyzero.kits.review.values import Valuer
from plyzero.play.judge import find_judge
from plyzero.play.players import Bot
from plyzero.play.scores import wilson_interval
from plyzero.rules.catalog import GameSpec
from plyzero.settings import SearchSettings

ROLLOUTS: Final = 100
"""Simulations of pure MCTS, unless a review asks for another number."""


class Reviewer:
    """Reviews games with one judge: a bundled bot, or pure MCTS whose random numbers begin with `rollouts`."""

    def __init__(self, game: GameSpec, *, rollouts: int | None = None, scale: Scale | None = None) -> None:
        if rollouts is None:
            judge = find_judge(game, simulations=ROLLOUTS)
            self.valuer = Valuer(judge.bot)
            self.scale = scale or scale_of(judge, self.valuer, None, progress)
        else:
            rng, nodes = np.random.default_rng(rollouts), SearchSettings().solver_nodes
            self.valuer = Valuer(Bot.pure_mcts(game, rng, simulations=ROLLOUTS, solver_nodes=nodes), seed=rollouts)
            self.scale = scale or measure_scale(self.valuer, np.random.default_rng(0), seconds=30, on_game=progress)

    def review(self, record: GameRecord, simulations: int) -> Review:
        """Return the review of a game."""
        return review(self.valuer, self.scale, record, simulations)


def progress(made: int, number: int) -> None:
    """Print how many games are done."""
    print(f"{time.strftime('%H:%M:%S')} {made} of {number} games", file=sys.stderr, flush=True)


def share(part: int, whole: int) -> str:
    """Return a share with its 95 % interval (Wilson) in words."""
    if not whole:
        return "0 of 0"
    low, high = wilson_interval(part / whole, whole)
    return f"{part} of {whole}: {part / whole:.1%}, 95 % {low:.1%} to {high:.1%}"


def mean(values: ArrayLike) -> str:
    """Return the mean of values with its 95 % interval in words."""
    found = np.asarray(values, float)
    half = 1.96 * found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.inf
    return f"{found.mean():+.4f}, 95 % {found.mean() - half:+.4f} to {found.mean() + half:+.4f}"
