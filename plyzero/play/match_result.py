"""The result of a match: a score, an Elo difference, and their confidence intervals."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from plyzero.play.ratings import rate

MAX_REASONS: Final = 5
"""Largest number of different reasons of forfeits that a report lists."""


MAX_GAMES: Final = 1_000_000
"""Largest number of games of a match that is believed."""


@dataclass(frozen=True)
class MatchResult:
    """The result of a match: the wins, draws and losses of the first player.

    distinct: the number of different games.
    forfeits: a sentence for each game that was lost because a player failed to move.
    """

    wins: int
    draws: int
    losses: int
    distinct: int
    forfeits: tuple[str, ...] = ()

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """The first player's mean score per game, in [0, 1]; a draw counts 1/2."""
        return (self.wins + self.draws / 2) / self.games

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Return the Wilson confidence interval of the score, 95 % by default. With draws it is slightly too wide."""
        return wilson_interval(self.score, self.games, z)

    def elo(self) -> tuple[float, float, float]:
        """Return the Elo difference of the players, by `ratings.rate`, and the bounds of its 95 % interval."""
        return _elo(self.wins, self.draws, self.losses)

    def report(self) -> str:
        """Return the result of the first player, A, for people: counts, score and Elo difference, one per line."""
        score_low, score_high = self.interval()
        elo, elo_low, elo_high = self.elo()
        return (
            f"A won {self.wins}, drew {self.draws}, lost {self.losses}; "
            f"{self.distinct} different games among the {self.games}\n"
            f"score {100 * self.score:.1f} %, 95 % interval {100 * score_low:.1f} to {100 * score_high:.1f}\n"
            f"Elo difference {elo:+.0f}, 95 % interval {elo_low:+.0f} to {elo_high:+.0f}{self._forfeited()}"
        )

    def _forfeited(self) -> str:
        lines = [f"\n{number} x {reason}" for reason, number in Counter(self.forfeits).most_common(MAX_REASONS)]
        return f"\n{len(self.forfeits)} games were forfeited:{''.join(lines)}" if lines else ""

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        elo, *elo_interval = (round(number, 1) for number in self.elo())
        return {
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "distinct": self.distinct,
            "forfeits": list(self.forfeits),
            "score": self.score,
            "score_interval": self.interval(),
            "elo": elo,
            "elo_interval": elo_interval,
        }

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.score:.0%} ({100 * low:.0f}-{100 * high:.0f})"


def match_result(counts: object) -> MatchResult | None:
    """Return the result in a line of ratings, [wins, draws, losses]; None if no match ends like that."""
    if not isinstance(counts, list) or len(counts) != 3 or not all(type(each) is int for each in counts):
        return None
    if not all(0 <= each <= MAX_GAMES for each in counts) or not any(counts):
        return None
    wins, draws, losses = counts
    return MatchResult(wins, draws, losses, distinct=0)


def wilson_interval(p: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share `p` of `n` trials (Wilson 1927), 95 % by default."""
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half if p > 0 else 0.0, middle + half if p < 1 else 1.0  # not a rounding error away from them


@lru_cache(maxsize=4096)
def _elo(wins: int, draws: int, losses: int) -> tuple[float, float, float]:
    """Return the Elo difference and its interval; each half of the games counts as played with one side."""
    counts = np.zeros((2, 2, 3))
    counts[0, 1] = wins / 2, draws / 2, losses / 2
    counts[1, 0] = counts[0, 1, ::-1]
    ratings = rate(counts, anchor=1)
    elo, error = float(ratings.elo[0]), float(ratings.error[0])
    return elo, elo - error, elo + error
