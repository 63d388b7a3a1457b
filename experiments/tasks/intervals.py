"""Means of a few runs, and differences of two means, with 95 % intervals by Student's t and by Welch's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev, variance
from typing import NamedTuple

from experiments.tasks.results import Cell, rounded
from plyzero.play.ratings import Z


class Mean(NamedTuple):
    """A mean of runs.

    runs: their number.
    mean: None without a run.
    sd:   sample standard deviation; None with fewer than two runs.
    low, high: 95 % interval; None with fewer than two runs, and where all are equal and have no variance of their own.
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


def mean_of(values: Sequence[float], own: Sequence[float] = ()) -> Mean:
    """Return the mean of values with its interval by Student's t, which is not cut to what values can be.

    own: the variance of each value itself, as of a score of few games. The mean of these is the least variance between
         runs, since equal scores of few games are equal by chance.
    """
    runs = len(values)
    if not runs:
        return Mean(0, None, None, None, None)
    mean = fmean(values)
    if runs == 1:
        return Mean(1, mean, None, None, None)
    return Mean(runs, mean, stdev(values), *_interval(mean, _variance(values, own), runs - 1))


def difference_of(
    values: Sequence[float], others: Sequence[float], own: Sequence[float] = (), of_others: Sequence[float] = ()
) -> tuple[float, float | None, float | None]:
    """Return the mean of `values` minus that of `others`, and its 95 % interval by Welch's t (Welch 1947).

    The ends are None if one of the means is of fewer than two runs, or if there is no variance at all.
    Both have at least one value. own, of_others: the variances of the values themselves, as `mean_of` uses them.
    """
    difference = fmean(values) - fmean(others)
    if min(len(values), len(others)) < 2:
        return difference, None, None
    a, b = _variance(values, own), _variance(others, of_others)
    freedom = (a + b) ** 2 / (a**2 / (len(values) - 1) + b**2 / (len(others) - 1)) if a + b else 1
    return difference, *_interval(difference, a + b, freedom)


def score_variance(low: float | None, high: float | None) -> float:
    """Return the variance of a score by its games, from its 95 % interval; 0 without one."""
    return 0.0 if low is None or high is None else ((high - low) / (2 * Z)) ** 2


def _variance(values: Sequence[float], own: Sequence[float]) -> float:
    return max(variance(values), fmean(own) if own else 0.0) / len(values)


def _interval(middle: float, variance: float, freedom: float) -> tuple[float | None, float | None]:
    if not variance:
        return None, None
    from scipy.stats import t

    low, high = t.interval(0.95, freedom, middle, math.sqrt(variance))
    return float(low), float(high)
