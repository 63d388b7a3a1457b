"""Matches: games between two players, with a score, an Elo difference and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plyzero.errors import UserError
from plyzero.play.players import Player
from plyzero.rules.chance import is_chance, roll_dice
from plyzero.rules.game import Game


def play_match(
    first: Player,
    second: Player,
    start: Game,
    *,
    games: int,
    rng: np.random.Generator,
    opening_plies: int | None = None,
    openings: Sequence[Sequence[int]] | None = None,
    on_progress: Callable[[int, int], None] = lambda finished, plies: None,
) -> MatchResult:
    """Play `games` games between `first` and `second`, all in parallel, and return the result for `first`.

    Every opening is played twice, with sides swapped, so that no opening favours a player. The two games share their
    dice: the n-th roll has the same random number in both. A game that reaches the max_plies of the rules counts as a
    draw.

    opening_plies: number of random moves in an opening; None = a fifth of max_plies, at most 4.
    openings:      at least (games + 1) // 2 openings as sequences of actions and rolls, in place of random ones.
    on_progress:   called after every move with the number of finished games and the plies of the longest game.
    Raises UserError if there is no game to play, or no move left after the openings.
    """
    if opening_plies is None:
        opening_plies = min(4, start.max_plies // 5)
    if games < 1:
        raise UserError(f"expected at least one game, got {games}")
    if not 0 <= opening_plies < start.max_plies:
        raise UserError(
            f"expected opening_plies from 0 to {start.max_plies - 1}, got {opening_plies}: a game has at most "
            f"{start.max_plies} plies"
        )
    openings = openings or random_openings(start, opening_plies, rng, count=(games + 1) // 2)
    seeds = rng.integers(1 << 63, size=games // 2 + 1).tolist() if start.num_chances else [0] * games
    dice = [np.random.default_rng(seeds[i // 2]) for i in range(games)]
    moves = [list(openings[i // 2]) for i in range(games)]
    positions, plies = map(list, zip(*(_position_after(start, opening) for opening in moves), strict=True))

    def roll(i: int) -> None:
        positions[i], rolls = roll_dice(positions[i], dice[i])
        moves[i] += rolls

    for i in range(games):
        roll(i)
    points = [0, 0, 0]
    playing = list(range(games))
    while playing:
        for player, player_side in ((first, 0), (second, 1)):
            # In game i, `first` plays side i % 2.
            to_move = [i for i in playing if positions[i].to_play ^ (i % 2) == player_side]
            if not to_move:
                continue
            for i, action in zip(to_move, player.choose_all([positions[i] for i in to_move]), strict=True):
                positions[i] = positions[i].play(action)
                moves[i].append(action)
                plies[i] += 1
                roll(i)
            for i in to_move:
                outcome = positions[i].outcome()
                if outcome is not None:
                    points[1 - outcome.value(i % 2)] += 1
                    playing.remove(i)
                elif plies[i] >= start.max_plies:
                    points[1] += 1
                    playing.remove(i)
            on_progress(games - len(playing), max(plies))
    wins, draws, losses = points
    return MatchResult(wins, draws, losses, distinct=len({tuple(actions) for actions in moves}))


@dataclass(frozen=True)
class MatchResult:
    """The result of a match: the wins, draws and losses of the first player, and the number of distinct games."""

    wins: int
    draws: int
    losses: int
    distinct: int

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
        """Return the Elo difference for the score and the bounds of its 95 % interval; infinite for scores 0 and 1."""
        low, high = self.interval()
        return elo_difference(self.score), elo_difference(low), elo_difference(high)

    def report(self) -> str:
        """Return the result of the first player, A, for people: counts, score and Elo difference, one per line."""
        score_low, score_high = self.interval()
        elo, elo_low, elo_high = self.elo()
        difference = f"Elo difference {elo:+.0f}, 95 % interval {elo_low:+.0f} to {elo_high:+.0f}"
        if math.isinf(elo):
            bound = f"at least {elo_low:+.0f}" if elo > 0 else f"at most {elo_high:+.0f}"
            difference = f"Elo difference {bound} (95 %), without a bound on the other side"
        return (
            f"A won {self.wins}, drew {self.draws}, lost {self.losses}; "
            f"{self.distinct} different games among the {self.games}\n"
            f"score {100 * self.score:.1f} %, 95 % interval {100 * score_low:.1f} to {100 * score_high:.1f}\n"
            f"{difference}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object; an infinite Elo is null."""
        elo, *elo_interval = (round(number, 1) if math.isfinite(number) else None for number in self.elo())
        return {
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "distinct": self.distinct,
            "score": self.score,
            "score_interval": self.interval(),
            "elo": elo,
            "elo_interval": elo_interval,
        }

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.score:.0%} ({100 * low:.0f}-{100 * high:.0f})"


def wilson_interval(p: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share `p` of `n` trials (Wilson 1927), 95 % by default."""
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half if p > 0 else 0.0, middle + half if p < 1 else 1.0  # not a rounding error away from them


def elo_difference(score: float) -> float:
    """Return the Elo difference d whose expected score 1 / (1 + 10^(-d/400)) is `score`."""
    if score in (0, 1):
        return math.inf if score else -math.inf
    return -400 * math.log10(1 / score - 1)


def random_openings(start: Game, plies: int, rng: np.random.Generator, *, count: int) -> list[list[int]]:
    """Return `count` random openings, all different unless 20 attempts find no new one."""
    openings: list[list[int]] = []
    for _ in range(count):
        for _ in range(20):
            opening = random_opening(start, plies, rng)
            if opening not in openings:
                break
        openings.append(opening)
    return openings


def random_opening(start: Game, plies: int, rng: np.random.Generator) -> list[int]:
    """Return `plies` uniformly random actions from `start`, fewer if the next one would end the game, and the rolls."""
    position, opening = roll_dice(start, rng)
    for _ in range(plies):
        action = int(rng.choice(np.asarray(position.legal_actions())))
        after, rolls = roll_dice(position.play_unchecked(action), rng)
        if after.outcome() is not None:
            break
        opening += [action, *rolls]
        position = after
    return opening


def _position_after(position: Game, moves: Sequence[int]) -> tuple[Game, int]:
    """Return the position after actions and rolls, and the number of actions."""
    plies = 0
    for move in moves:
        plies += not is_chance(position)
        position = position.play_unchecked(move)
    return position, plies
