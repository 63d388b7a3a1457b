"""Ratings of many players from their games: the model of Bradley and Terry with draws and a side advantage.

Of players i and j, where i moves first, the probabilities that i wins, draws and loses are proportional to

    e^(s/2), ν, e^(-s/2)    with s = r_i - r_j + side

(Bradley & Terry, 1952, Biometrika 39; draws: Davidson, 1970, JASA 65; side: Davidson & Beaver, 1977, Biometrics 33).
Inside this module ratings r are in natural units; elsewhere they are in Elo, ELO times as much. A difference of d Elo
means 10^(d/400) wins for each loss; without draws, this is the usual curve of the expected score.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plyzero.errors import UserError
from plyzero.play.scores import ELO, PRIOR_DRAWS, PRIOR_ELO, Estimate, Z

MISFIT_LEVEL: Final = 0.05
"""Probability that any pair is marked as a misfit although the model is right."""

FITS_AT_ONCE: Final = 100
"""Number of bootstrap samples that are fitted together."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Games(NamedTuple):
    """Games as columns, each `[games]`.

    first, second: the players, where `first` has the first move.
    outcome:       0, 1, 2 = `first` won, drew, lost.
    opening:       games with the same number, from 0, share an opening and are sampled together by the bootstrap.
    """

    first: Integers
    second: Integers
    outcome: Integers
    opening: Integers


class Pairs(NamedTuple):
    """Pairs of players, each array `[players, players]` from the row's point of view.

    games:    number of games.
    points:   points of the row's player; a draw is half a point.
    expected: the points that the model expects of these games.
    z:        the residual as a standard normal deviate, 0 where it cannot be tested.
    misfits:  whether the pair contradicts the model; see `rate`.
    """

    games: Floats
    points: Floats
    expected: Floats
    z: Floats
    misfits: NDArray[np.bool_]


class Ratings(NamedTuple):
    """Ratings, and how well they explain the games.

    elo:      `[players]`, 0 = the anchor.
    error:    `[players]`, half the width of the 95 % interval of the difference to the anchor, in Elo.
    side:     advantage of moving first, in Elo.
    draws:    share of drawn games between equal players without a side advantage, ν / (2 + ν).
    pairs:    the games of each pair of players, and what the model expects of them.
    """

    elo: Floats
    error: Floats
    side: Estimate
    draws: Estimate
    pairs: Pairs


def rate(counts: ArrayLike, anchor: int = 0) -> Ratings:
    """Return ratings for `[players, players, 3]` counts: how often the row's player, moving first, won, drew and lost.

    The ratings maximise the posterior probability under Gaussian priors around the anchor's, which is 0, so a player
    who has won every game or played none has a finite rating and a wide interval. The intervals are those of the normal
    distribution with the posterior's curvature and a fixed anchor. They assume independent games; `bootstrap` does not.

    A pair is a misfit if its residual cannot be chance. Its points are a sum of bounded, independent numbers, so they
    are almost normal with the model's variance v; but the ratings are fitted to the same games, which takes away the
    part of the residual in the direction of the pair's gradient g, and leaves the variance v - g'Σg with the covariance
    Σ of the parameters. Where less than a tenth of the variance is left, the fit follows the pair, and nothing is
    tested. `z` is the signed root of the binomial deviance, scaled to this variance; the bound on |z| is Bonferroni's.

    Raises UserError for fewer than two players or a wrong anchor.
    """
    counted = np.asarray(counts, np.float64)
    model = _Model(len(counted), anchor)
    parameters = model.fit(counted[None])
    covariance = model.covariance(parameters, counted.sum(-1))
    error = Z * np.sqrt(np.diag(covariance))
    side, log_draws = parameters[0, -2:].tolist()
    side_error, draws_error = error[-2:].tolist()
    return Ratings(
        elo=ELO * parameters[0, :-2],
        error=ELO * error[:-2],
        side=Estimate(ELO * side, ELO * (side - side_error), ELO * (side + side_error)),
        draws=Estimate(
            value=_share_of_draws(log_draws),
            low=_share_of_draws(log_draws - draws_error),
            high=_share_of_draws(log_draws + draws_error),
        ),
        pairs=_compare(counted, model.moments(parameters), covariance),
    )


def _share_of_draws(log_draws: float) -> float:
    """Return the share of drawn games between equal players, ν / (2 + ν), for ln ν."""
    return 1 / (1 + 2 * math.exp(-log_draws))


def bootstrap(games: Games, players: int, anchor: int = 0, *, samples: int = 1000, rng: np.random.Generator) -> Floats:
    """Return `[players]` half the widths of 95 % intervals, in Elo, that do not assume independent games.

    Openings are sampled with replacement, each with all its games, and the ratings are fitted again (Efron, 1979, The
    Annals of Statistics 7); a width is that between the percentiles 2.5 and 97.5 of the samples.
    """
    model = _Model(players, anchor)
    cell = (games.first * players + games.second) * 3 + games.outcome
    openings = int(games.opening.max(initial=0)) + 1
    start, ratings = None, []
    for done in range(0, samples, FITS_AT_ONCE):
        weights = rng.multinomial(openings, np.full(openings, 1 / openings), min(FITS_AT_ONCE, samples - done))
        counts = [np.bincount(cell, weight[games.opening], minlength=3 * players**2) for weight in weights]
        fitted = model.fit(np.reshape(counts, (len(counts), players, players, 3)), start)
        start = fitted.mean(0)
        ratings.append(fitted[:, :-2])
    low, high = np.percentile(np.concatenate(ratings), [2.5, 97.5], axis=0)
    return ELO * (high - low) / 2


def next_pairs(counts: ArrayLike, anchor: int, number: int) -> list[tuple[int, int]]:
    """Return the `number` pairs of players, lower index first, whose games are most informative.

    The two games of each, one in each colour, shrink the volume of the confidence region of all ratings most, given the
    games in `counts`, see `rate`, and those of the pairs before (a D-optimal design, Chaloner and Verdinelli 1995).
    By the widest interval alone, a player far from all others would have most games, and equal players never meet.
    """
    counted = np.asarray(counts, np.float64)
    players, model = len(counted), _Model(len(counted), anchor)
    parameters = model.fit(counted[None])
    information = model.information(parameters, counted.sum(-1)[None])[0]
    low, high = np.triu_indices(players, 1)
    games = np.zeros((len(low), players, players))
    games[np.arange(len(low)), low, high] = games[np.arange(len(low)), high, low] = 1
    of_pairs = model.information(parameters, games) - model.information(parameters, 0 * games)
    pairs = []
    for _ in range(number):
        best = int(np.argmax(np.linalg.slogdet(information + of_pairs).logabsdet))
        information = information + of_pairs[best]
        pairs.append((int(low[best]), int(high[best])))
    return pairs


class _Moments(NamedTuple):
    """Expectations of the model for one game of every ordered pair, each `[fits, players, players]`.

    mean:       points of the row's player, who moves first.
    drawn:      probability of a draw.
    variance:   of the points. It is also the derivative of the mean by s, and the information on s.
    covariance: of the points and the number of draws; the derivative of the mean by ln ν.
    """

    mean: Floats
    drawn: Floats
    variance: Floats
    covariance: Floats


class _Model:
    """The model with `players + 2` parameters: the ratings, of which the anchor's stays 0, the side, and ln ν."""

    def __init__(self, players: int, anchor: int) -> None:
        if players < 2:
            raise UserError(f"expected at least two players to rate, got {players}")
        if not 0 <= anchor < players:
            raise UserError(f"expected an anchor from 0 to {players - 1}, got {anchor}")
        self._players = players
        self._free = np.delete(np.arange(players + 2), anchor)
        self._precision = np.full(players + 2, (ELO / PRIOR_ELO) ** 2)
        self._precision[-1] = PRIOR_DRAWS**-2

    def moments(self, parameters: Floats) -> _Moments:
        """Return what `[fits, players + 2]` parameters expect."""
        rating, side, draws = parameters[:, :-2], parameters[:, -2, None, None], np.exp(parameters[:, -1, None, None])
        won = np.exp((rating[:, :, None] - rating[:, None] + side) / 2)
        total = won + draws + 1 / won
        drawn, difference = draws / total, (won - 1 / won) / total
        return _Moments(
            mean=(1 + difference) / 2,
            drawn=drawn,
            variance=(1 - drawn - difference**2) / 4,
            covariance=-difference * drawn / 2,
        )

    def information(self, parameters: Floats, games: Floats) -> Floats:
        """Return the curvature of the posterior for `[fits, players, players]` numbers of games.

        Its shape is `[fits, players + 1, players + 1]`: the anchor's rating is left out.
        """
        moments = self.moments(parameters)
        variance, covariance = games * moments.variance, games * moments.covariance
        matrix = np.zeros((len(variance), self._players + 2, self._players + 2))
        matrix[:, :-2, :-2] = -variance - variance.transpose(0, 2, 1)
        everybody = np.arange(self._players)
        matrix[:, everybody, everybody] = variance.sum(1) + variance.sum(2)  # nobody plays against himself
        matrix[:, :-2, -2] = matrix[:, -2, :-2] = variance.sum(2) - variance.sum(1)
        matrix[:, :-2, -1] = matrix[:, -1, :-2] = covariance.sum(2) - covariance.sum(1)
        matrix[:, -2, -2] = variance.sum((1, 2))
        matrix[:, -2, -1] = matrix[:, -1, -2] = covariance.sum((1, 2))
        matrix[:, -1, -1] = (games * moments.drawn * (1 - moments.drawn)).sum((1, 2))
        return (matrix + np.diag(self._precision))[:, self._free[:, None], self._free]

    def covariance(self, parameters: Floats, games: Floats) -> Floats:
        """Return `[players + 2, players + 2]` the covariance of the parameters of one fit, 0 for the anchor."""
        covariance = np.zeros((self._players + 2, self._players + 2))
        covariance[self._free[:, None], self._free] = np.linalg.inv(self.information(parameters, games[None])[0])
        return covariance

    def fit(self, counts: Floats, start: Floats | None = None) -> Floats:
        """Return `[fits, players + 2]` the most probable parameters for `[fits, players, players, 3]` counts.

        Newton's method: the posterior is strictly concave. Steps are limited, since its curvature is not constant.
        """
        parameters = np.zeros((len(counts), self._players + 2))
        if start is not None:
            parameters += start
        games, won, drawn = counts.sum(-1), counts[..., 0] + counts[..., 1] / 2, counts[..., 1]
        for _ in range(100):  # about 8 are needed
            moments = self.moments(parameters)
            residual = won - games * moments.mean
            gradient = -self._precision * parameters
            gradient[:, :-2] += residual.sum(2) - residual.sum(1)
            gradient[:, -2] += residual.sum((1, 2))
            gradient[:, -1] += (drawn - games * moments.drawn).sum((1, 2))
            information = self.information(parameters, games)
            step = np.linalg.solve(information, gradient[:, self._free, None])[..., 0]
            parameters[:, self._free] += np.clip(step, -2, 2)
            if np.abs(step).max() < 1e-9:
                break
        return parameters


def _compare(counts: Floats, moments: _Moments, covariance: Floats) -> Pairs:
    """Return how the games of each pair of players agree with the model, as `rate` describes it."""
    players = len(counts)
    first = counts.sum(-1)  # games in which the row's player moved first
    games = first + first.T
    won = counts[..., 0] + counts[..., 1] / 2
    mean = first * moments.mean[0]
    points = won + (first - won).T
    expected = mean + (first - mean).T
    by_score = first * moments.variance[0]
    by_draws = first * moments.covariance[0]
    variance = by_score + by_score.T
    everybody = np.arange(players)
    gradient = np.zeros((players, players, players + 2))
    gradient[everybody[:, None], everybody, everybody[:, None]] += variance
    gradient[everybody[:, None], everybody, everybody] -= variance
    gradient[..., -2] = by_score - by_score.T
    gradient[..., -1] = by_draws - by_draws.T
    left = variance - ((gradient @ covariance) * gradient).sum(-1)
    tested = left > variance / 10
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = 2 * (_divergence(points, expected) + _divergence(games - points, games - expected))
        scale = expected * (1 - expected / games) / left
        z = np.sign(points - expected) * np.sqrt(np.maximum(deviance, 0) * scale)
    z = np.where(tested, z, 0.0)
    bound = NormalDist().inv_cdf(1 - MISFIT_LEVEL / max(1, int(tested.sum())))  # each pair is there twice: two-sided
    return Pairs(games=games, points=points, expected=expected, z=z, misfits=np.abs(z) > bound)


def _divergence(observed: Floats, expected: Floats) -> Floats:
    """Return observed · ln(observed / expected), 0 where nothing was observed."""
    return np.where(observed > 0, observed * np.log(observed / expected), 0.0)
