"""Games between two players, and what their score says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plyzero.play.players import Player
from plyzero.rules.game import Game


@dataclass(frozen=True)
class MatchResult:
    """The first player's wins, draws and losses; `distinct` counts games that differ in their moves."""

    wins: int
    draws: int
    losses: int
    distinct: int

    @property
    def games(self) -> int:
        """All of them."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """The first player's share of the points; a draw is half a point."""
        return (self.wins + self.draws / 2) / self.games

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Return Wilson's interval of the score, 95 % for the default `z`; a little too wide where games are drawn."""
        return wilson_interval(self.score, self.games, z)

    def elo(self) -> tuple[float, float, float]:
        """Return the Elo difference that the score means, and its interval; infinite at a score of 0 or 1."""
        low, high = self.interval()
        return elo_difference(self.score), elo_difference(low), elo_difference(high)

    def report(self) -> str:
        """Return all of it in three lines."""
        low, high = self.interval()
        elo, least, most = self.elo()
        difference = f"Elo difference {elo:+.0f}, 95 % interval {least:+.0f} to {most:+.0f}"
        if math.isinf(elo):
            bound = f"at least {least:+.0f}" if elo > 0 else f"at most {most:+.0f}"
            difference = f"Elo difference {bound} (95 %), no more is known"
        return (
            f"won {self.wins}, drawn {self.draws}, lost {self.losses}; {self.distinct} of {self.games} games differ\n"
            f"score {100 * self.score:.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f}\n"
            f"{difference}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it for programs; null for an infinite Elo."""
        elo, *interval = (round(number, 1) if math.isfinite(number) else None for number in self.elo())
        return {
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "distinct": self.distinct,
            "score": self.score,
            "score_interval": self.interval(),
            "elo": elo,
            "elo_interval": interval,
        }

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.score:.0%} ({100 * low:.0f}-{100 * high:.0f})"


def wilson_interval(p: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval of a share `p` of `n` trials, 95 % for the default `z`."""
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def elo_difference(score: float) -> float:
    """Return the difference d in Elo at which the expected score 1 / (1 + 10^(-d/400)) is `score`."""
    if score in (0, 1):
        return math.inf if score else -math.inf
    return -400 * math.log10(1 / score - 1)


def play_match(
    first: Player,
    second: Player,
    start: Game,
    *,
    games: int,
    rng: np.random.Generator,
    opening_plies: int | None = None,
    openings: Sequence[Sequence[int]] | None = None,
    doing: Callable[[int, int], None] = lambda finished, plies: None,
) -> MatchResult:
    """Play `games` games, all side by side, and return the result.

    Two by two they start from the same opening of random moves with colours swapped, so that no opening favours
    either side; openings differ as long as there are enough. A game longer than the rules' max_plies is a draw.
    opening_plies: None = a fifth of max_plies, at most 4.
    openings:      (games + 1) // 2 lines of actions at least, instead of random ones.
    doing: told, after every move, how many games are finished and how long the longest is.
    """
    if opening_plies is None:
        opening_plies = min(4, start.max_plies // 5)
    begun = openings or random_openings(start, opening_plies, rng, count=(games + 1) // 2)
    lines = [list(begun[i // 2]) for i in range(games)]
    positions = [_after(start, line) for line in lines]
    points = [0, 0, 0]
    playing = list(range(games))
    while playing:
        for player, wanted in ((first, 0), (second, 1)):
            # game i has the first player on side i % 2
            moving = [i for i in playing if positions[i].to_play ^ (i % 2) == wanted]
            if not moving:
                continue
            for i, action in zip(moving, player.choose_all([positions[i] for i in moving]), strict=True):
                positions[i] = positions[i].play(action)
                lines[i].append(action)
            for i in moving:
                outcome = positions[i].outcome()
                if outcome is not None:
                    points[1 - outcome.value(i % 2)] += 1
                    playing.remove(i)
                elif len(lines[i]) >= start.max_plies:
                    points[1] += 1
                    playing.remove(i)
            doing(games - len(playing), max(map(len, lines)))
    wins, draws, losses = points
    return MatchResult(wins, draws, losses, distinct=len({tuple(line) for line in lines}))


def random_openings(start: Game, plies: int, rng: np.random.Generator, *, count: int) -> list[list[int]]:
    """Return `count` openings, different ones where that can be."""
    found: list[list[int]] = []
    for _ in range(count):
        for _ in range(20):
            line = random_opening(start, plies, rng)
            if line not in found:
                break
        found.append(line)
    return found


def random_opening(start: Game, plies: int, rng: np.random.Generator) -> list[int]:
    """Return `plies` random actions from `start`, fewer where the next one would end the game."""
    line: list[int] = []
    position = start
    for _ in range(plies):
        action = int(rng.choice(np.asarray(position.legal_actions())))
        following = position.play_unchecked(action)
        if following.outcome() is not None:
            break
        line.append(action)
        position = following
    return line


def _after(position: Game, line: list[int]) -> Game:
    for action in line:
        position = position.play_unchecked(action)
    return position
