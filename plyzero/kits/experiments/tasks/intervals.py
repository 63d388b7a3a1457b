"""Means of a few runs, and differences of mean scores, with 95 % intervals by Student's t and by Welch's t.

A score is in [0, 1], and so is the interval of a mean score: it is Wilson's (1927), with Student's t instead of the
normal quantile, and with the number of games that gives a share of this mean the same variance. The interval of a
difference is made from those of both means (Newcombe 1998, Statistics in Medicine 17, method 10), so it is in [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev, variance
from typing import NamedTuple

from plyzero.kits.experiments.tasks.results import Cell, rounded
from plyzero.play.scores import Z, wilson_interval


class Mean(NamedTuple):
    """A mean of runs.

    runs:      number of runs.
    mean:      None without a run.
    sd:        sample standard deviation; None with fewer than two runs.
    low, high: 95 % interval; None with fewer than two runs, and if all are equal and have no variance of their own.
    """

    runs: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None

    def cells(self, name: str, *, runs: str = "runs", digits: int = 4) -> dict[str, Cell]:
        """Return the cells of columns for the mean of `name`, and of the column `runs`."""
        found = {name: self.mean, f"{name}_sd": self.sd, f"{name}_low": self.low, f"{name}_high": self.high}
        return {runs: self.runs, **{column: rounded(value, digits) for column, value in found.items()}}


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of unbounded values with its interval by Student's t."""
    return _mean(values, (), _interval)


def mean_score_of(scores: Sequence[float], own: Sequence[float] = ()) -> Mean:
    """Return the mean of scores with its interval, which is in [0, 1].

    own: the variance of each score, from its games. The variance between runs is at least the mean of these, since
         scores of few games may be equal by chance.
    """
    return _mean(scores, own, _score_interval)


def difference_of(
    scores: Sequence[float], others: Sequence[float], own: Sequence[float] = (), of_others: Sequence[float] = ()
) -> tuple[float, float | None, float | None]:
    """Return the mean of `scores` minus that of `others`, and its 95 % interval with Welch's degrees of freedom (1947).

    Both need at least one score. The ends of the interval are None if one of them has only one, or without variance.

    own, of_others: the variance of each score, as in `mean_score_of`.
    """
    mean, other = fmean(scores), fmean(others)
    difference = mean - other
    if len(scores) < 2 or len(others) < 2:
        return difference, None, None
    a, b = _variance(scores, own), _variance(others, of_others)
    if not a + b:
        return difference, None, None
    freedom = (a + b) ** 2 / (a**2 / (len(scores) - 1) + b**2 / (len(others) - 1))
    low, high = _score_interval(mean, a, freedom)
    other_low, other_high = _score_interval(other, b, freedom)
    below = math.hypot(mean - low, other_high - other)
    above = math.hypot(high - mean, other - other_low)
    return difference, difference - below, difference + above


def score_variance(low: float | None, high: float | None) -> float:
    """Return the variance of a score from its 95 % interval; 0 without an interval."""
    return 0.0 if low is None or high is None else ((high - low) / (2 * Z)) ** 2


def _variance(values: Sequence[float], own: Sequence[float]) -> float:
    return max(variance(values), fmean(own) if own else 0.0) / len(values)


def _mean(
    values: Sequence[float], own: Sequence[float], interval: Callable[[float, float, float], tuple[float, float]]
) -> Mean:
    runs = len(values)
    if not runs:
        return Mean(0, None, None, None, None)
    mean = fmean(values)
    if runs == 1:
        return Mean(1, mean, None, None, None)
    spread = _variance(values, own)
    if not spread:
        return Mean(runs, mean, stdev(values), None, None)
    low, high = interval(mean, spread, runs - 1)
    return Mean(runs, mean, stdev(values), low, high)


def _interval(mean: float, spread: float, freedom: float) -> tuple[float, float]:
    half = _t(freedom) * math.sqrt(spread)
    return mean - half, mean + half


def _score_interval(mean: float, spread: float, freedom: float) -> tuple[float, float]:
    """Return the interval of a mean score with the variance `spread`; without variance both ends are the mean."""
    if not spread:
        return mean, mean
    inside = min(math.sqrt(spread), 0.5)
    near = min(max(mean, inside), 1 - inside)  # not exactly 0 or 1, where a share has no variance
    return wilson_interval(mean, near * (1 - near) / spread, _t(freedom))


def _t(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(0.975, freedom))
