"""Means of a few runs, and differences of two means, with 95 % intervals by Student's t and by Welch's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance
from typing import Final, NamedTuple

from plyzero.errors import UserError

UPPER: Final = 0.975
"""Quantile of t at the upper end of a two-sided 95 % interval."""


class Mean(NamedTuple):
    """A mean of runs.

    runs: their number.
    mean: None without a run.
    sd, low, high: sample standard deviation and 95 % interval; None with fewer than two runs.
    """

    runs: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


class Difference(NamedTuple):
    """A difference of two means.

    low, high: its 95 % interval; None if one of the means is of fewer than two runs.
    """

    value: float
    low: float | None
    high: float | None


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of values with its interval by Student's t, which is not cut to what values can be."""
    runs = len(values)
    if not runs:
        return Mean(0, None, None, None, None)
    mean = fmean(values)
    if runs == 1:
        return Mean(1, mean, None, None, None)
    sd = math.sqrt(variance(values))
    half = _t(runs - 1) * sd / math.sqrt(runs)
    return Mean(runs, mean, sd, mean - half, mean + half)


def difference_of(values: Sequence[float], others: Sequence[float]) -> Difference:
    """Return the mean of `values` minus that of `others`, with its interval by Welch's t (Welch 1947).

    Both have at least one value.
    """
    difference = fmean(values) - fmean(others)
    if min(len(values), len(others)) < 2:
        return Difference(difference, None, None)
    a, b = (variance(each) / len(each) for each in (values, others))
    if not a + b:
        return Difference(difference, difference, difference)
    freedom = (a + b) ** 2 / (a**2 / (len(values) - 1) + b**2 / (len(others) - 1))
    half = _t(freedom) * math.sqrt(a + b)
    return Difference(difference, difference - half, difference + half)


def _t(freedom: float) -> float:
    try:
        from scipy.stats import t
    except ImportError as error:
        raise UserError(f"intervals need scipy ({error}): pip install 'plyzero[experiments]' installs it") from error
    return float(t.ppf(UPPER, freedom))
