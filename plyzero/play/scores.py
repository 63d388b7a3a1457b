"""Scores: the result of a match, its interval, and the Elo difference that it stands for.

Of two players, of whom each moves first in half of the games, the probabilities that one wins, draws and loses a game
are proportional to

    e^(r/2), ν, e^(-r/2)    with their difference r

(Bradley & Terry, 1952, Biometrika 39; draws: Davidson, 1970, JASA 65). Here r is in natural units; elsewhere it is in
Elo, ELO times as much. A difference of d Elo means 10^(d/400) wins for each loss; without draws, this is the usual
curve of the expected score. Kit arena rates more than two players, and the advantage of moving first.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.board_svg import html_table, text_table

ELO: Final = 400 / math.log(10)
"""Elo of one natural unit: 1 / (1 + e^-x) = 1 / (1 + 10^(-d/400)) for d = ELO · x."""

PRIOR_ELO: Final = 1000.0
"""Standard deviation of the Gaussian prior of a difference in Elo: who has won every game has a finite one."""

PRIOR_DRAWS: Final = 5.0
"""Standard deviation of the Gaussian prior of ln ν: it matters only where (almost) no game, or every game, is drawn."""

MOST_ELO: Final = 400.0
"""Half the width of an interval above which an Elo difference says little: ten times as many wins for each loss."""

LEAST_PAIRS: Final = 4
"""Number of openings from which on it is said that they, and not the players, have decided all games."""

Z: Final = 1.96
"""Half the width of a 95 % interval, in standard deviations."""


class Estimate(NamedTuple):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


def wilson_interval(p: float, n: float, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share `p` of `n` trials (Wilson 1927), 95 % by default."""
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = middle - half if p > 0 else 0.0  # exactly, without a rounding error
    high = middle + half if p < 1 else 1.0
    return low, high


@lru_cache(maxsize=4096)
def elo_difference(wins: int, draws: int, losses: int) -> Estimate:
    """Return the Elo difference of two players, each of whom moved first in half of the games.

    It maximises the posterior probability under the priors, by Newton's method: the posterior is strictly concave. The
    interval is that of the normal distribution with the posterior's curvature; it assumes independent games.
    """
    games, points = wins + draws + losses, wins + draws / 2
    precision = np.array([(ELO / PRIOR_ELO) ** 2, PRIOR_DRAWS**-2])
    parameters = np.zeros(2)  # r and ln ν
    for _ in range(100):  # about 8 are needed
        mean, drawn, information = _expected(parameters, games)
        gradient = np.array([points - games * mean, draws - games * drawn]) - precision * parameters
        step = np.linalg.solve(information + np.diag(precision), gradient)
        parameters += np.clip(step, -2, 2)  # the curvature is not constant
        if np.abs(step).max() < 1e-9:
            break
    *_, information = _expected(parameters, games)
    covariance = np.linalg.inv(information + np.diag(precision))
    elo, error = ELO * float(parameters[0]), ELO * Z * math.sqrt(covariance[0, 0])
    return Estimate(elo, elo - error, elo + error)


def _expected(parameters: NDArray[np.float64], games: int) -> tuple[float, float, NDArray[np.float64]]:
    """Return the expected score and share of draws of a game, and the information that `games` have on r and ln ν."""
    won, draw = math.exp(parameters[0] / 2), math.exp(parameters[1])
    total = won + draw + 1 / won
    drawn, difference = draw / total, (won - 1 / won) / total
    variance = (1 - drawn - difference**2) / 4
    covariance = -difference * drawn / 2
    information = games * np.array([[variance, covariance], [covariance, drawn * (1 - drawn)]])
    return (1 + difference) / 2, drawn, information


@dataclass(frozen=True)
class MatchResult:
    """The result of a match: the wins, draws and losses of the first player.

    distinct: the number of different games; 0 if it is not known.
    forfeits: a sentence for each game that was lost because a player failed to move.
    leads:    the points by which the first player led at the end of each game that ended with a score.
    pairs:    the number of openings that were played twice, with sides swapped.
    repeated: the number of these of which both games had the same winner, first or second player, or no winner.
    """

    wins: int
    draws: int
    losses: int
    distinct: int = 0
    forfeits: tuple[str, ...] = ()
    leads: tuple[float, ...] = ()
    pairs: int = 0
    repeated: int = 0

    def __add__(self, other: MatchResult) -> MatchResult:
        """Return the result of the games of both."""
        return MatchResult(
            wins=self.wins + other.wins,
            draws=self.draws + other.draws,
            losses=self.losses + other.losses,
            distinct=self.distinct + other.distinct,
            forfeits=self.forfeits + other.forfeits,
            leads=self.leads + other.leads,
            pairs=self.pairs + other.pairs,
            repeated=self.repeated + other.repeated,
        )

    @property
    def points(self) -> float | None:
        """The first player's mean lead in points; None in a game without points."""
        return sum(self.leads) / len(self.leads) if self.leads else None

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """The first player's mean score per game, in [0, 1]; a draw counts 1/2."""
        return (self.wins + self.draws / 2) / self.games

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Return the Wilson confidence interval of the score, 95 % by default. With draws it is slightly too wide."""
        return wilson_interval(self.score, self.games, z)

    def elo(self) -> tuple[float, float, float]:
        """Return the Elo difference of the players, and the bounds of its 95 % interval; see `elo_difference`."""
        return elo_difference(self.wins, self.draws, self.losses)

    def __repr__(self) -> str:
        return f"MatchResult(wins={self.wins}, draws={self.draws}, losses={self.losses}: score {self.short})"

    def report(self) -> str:
        """Return the result of the first player, A, for people: counts, score and Elo difference, one per line.

        The Elo difference is left out where its interval is wider than MOST_ELO to either side.
        """
        score_low, score_high = self.interval()
        elo, elo_low, elo_high = self.elo()
        known = f"\nElo difference {elo:+.0f}, 95 % interval {elo_low:+.0f} to {elo_high:+.0f}"
        points = "" if self.points is None else f"\npoints {self.points:+.2f} per game"
        return (
            f"A won {self.wins}, drew {self.draws}, lost {self.losses}; "
            f"{self.distinct} different games among the {self.games}\n"
            f"score {100 * self.score:.1f} %, 95 % interval {100 * score_low:.1f} to {100 * score_high:.1f}"
            f"{points}{known if elo_high - elo <= MOST_ELO else ''}{self._by_openings()}{self._forfeited()}"
        )

    def _by_openings(self) -> str:
        if self.pairs < LEAST_PAIRS or self.repeated < self.pairs:
            return ""
        return (
            f"\nWith sides swapped, each of the {self.pairs} openings ended in the same way: they have decided these "
            "games, which do not tell who plays better."
        )

    def _forfeited(self) -> str:
        lines = [f"\n{number} x {reason}" for reason, number in Counter(self.forfeits).most_common(5)]
        return f"\n{len(self.forfeits)} games were forfeited:{''.join(lines)}" if lines else ""

    def as_json(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        elo, low, high = (round(number, 1) for number in self.elo())
        found: dict[str, object] = {
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "distinct": self.distinct,
            "forfeits": list(self.forfeits),
            "score": self.score,
            "score_interval": self.interval(),
            "elo": elo,
            "elo_interval": [low, high],
        }
        if self.points is not None:
            found["points"] = round(self.points, 3)
        return found

    @property
    def short(self) -> str:
        """The score with its 95 % interval, and the points, such as "62% (41-80), +1.5 points"."""
        low, high = self.interval()
        points = "" if self.points is None else f", {self.points:+.1f} points"
        return f"{self.score:.0%} ({100 * low:.0f}-{100 * high:.0f}){points}"

    def __str__(self) -> str:
        return f"{text_table(*self._table())}{self._by_openings()}{self._forfeited()}"

    def _repr_html_(self) -> str:
        below = (self._by_openings() + self._forfeited()).splitlines()
        return html_table(*self._table()) + "".join(f"<p>{escape(line)}</p>" for line in below if line)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the row of a table; an Elo difference is left out as in `report`."""
        low, high = self.interval()
        cells = {
            "games": f"{self.games}",
            "won": f"{self.wins}",
            "drawn": f"{self.draws}",
            "lost": f"{self.losses}",
            "score": f"{100 * self.score:.1f} % ({100 * low:.0f} to {100 * high:.0f})",
        }
        if self.points is not None:
            cells["points"] = f"{self.points:+.2f}"
        elo, elo_low, elo_high = self.elo()
        if elo_high - elo <= MOST_ELO:
            cells["Elo difference"] = f"{elo:+.0f} ({elo_low:+.0f} to {elo_high:+.0f})"
        return [*cells], [[*cells.values()]]
