"""Rate networks on a ladder of pure MCTS: Elo with 95 % intervals, from balanced openings in both colours.

python -m benchmarks.strength.ladder connect-four MODEL.onnx --simulations 0 64 --openings FILE

The scores of the matches go to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchmarks.strength.exams import find_exam
from plyzero.kits.arena.ratings import rate
from plyzero.play.match import PlayedGame, play_match
from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.rules.catalog import GameSpec, load_game

RUNGS = "random", "mcts:50", "mcts:200", "mcts:800", "mcts:3200"
ANCHOR = "mcts:200"
"""0 Elo, or the first rung where this is none."""

CLEAR = 0.9
"""A score that says little more than who is stronger."""


def main() -> None:
    """Print the ratings of the players, and of the ladder itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("players", nargs="*", metavar="PLAYER", help="bot:LEVEL, an ONNX file or a run")
    parser.add_argument("--simulations", type=int, nargs="+", default=[64], help="of each network; 0 = raw")
    parser.add_argument("--games", type=int, default=100, help="of each pair")
    parser.add_argument("--rungs", nargs="+", default=RUNGS, metavar="PLAYER", help="as in plyzero match")
    add_openings(parser)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    game, rng = load_game(given.game), np.random.default_rng(given.seed)
    players = {
        f"{name}, {simulations} simulations": find_player(name, game, rng, simulations=simulations)
        for name in given.players
        for simulations in given.simulations
    }
    openings = drawn_openings(given.openings, game, given.games)
    ratings = measure(game, players, games=given.games, rng=rng, openings=openings, rungs=given.rungs)
    for name, rating in ratings.items():
        print(f"{name}: {rating}")


def add_openings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--openings", metavar="FILE", help="an exam: its first drawn positions; default: random moves")


class Rating(NamedTuple):
    """Elo, 0 = ANCHOR, and the 95 % interval."""

    elo: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.elo:+.0f} Elo, {self.low:+.0f} to {self.high:+.0f}"


def measure(
    game: GameSpec,
    players: dict[str, Player],
    *,
    games: int,
    rng: np.random.Generator,
    openings: Sequence[Sequence[int]] | None = None,
    rungs: Sequence[str] = RUNGS,
    linked: bool = False,
) -> dict[str, Rating]:
    """Play neighbouring rungs against each other and every player against the rungs near it; return name -> rating.

    A player begins where the one before it ended, and climbs while it scores CLEAR or more, or goes down while its
    opponent does.

    linked: neighbouring players play each other too, which orders players that beat every rung.
    """
    entrants = {name: find_player(name, game, rng) for name in rungs} | players
    names = list(entrants)
    counts = np.zeros((len(names), len(names), 3))

    def score(a: str, b: str) -> float:
        """Play a match, add to `counts`, and return the share of points of `a`."""
        sides = names.index(a), names.index(b)

        def count(game: PlayedGame, sides: tuple[int, int] = sides) -> None:
            first, second = sides[::-1] if game.swapped else sides
            value = 0 if game.outcome is None else game.outcome.value(0)
            counts[first, second, 1 - value] += 1

        result = play_match(
            entrants[a], entrants[b], game.start, games=games, rng=rng, openings=openings, on_game=count
        )
        print(f"{a} against {b}: {result!r}", file=sys.stderr, flush=True)
        return result.score

    pairs = list(pairwise(rungs))
    if linked:
        pairs += pairwise(players)
    for a, b in pairs:
        score(a, b)
    near = 0
    for name in players:
        found = score(name, rungs[near])
        step = int(found >= CLEAR) - int(found <= 1 - CLEAR)
        while step and 0 <= near + step < len(rungs) and (found >= CLEAR if step > 0 else found <= 1 - CLEAR):
            near += step
            found = score(name, rungs[near])
    ratings = rate(counts, anchor=names.index(ANCHOR) if ANCHOR in rungs else 0)
    return {
        name: Rating(*(round(elo, 1) for elo in (rating, rating - error, rating + error)))
        for name, rating, error in zip(names, ratings.elo.tolist(), ratings.error.tolist(), strict=True)
    }


def drawn_openings(exam: str | None, game: GameSpec, games: int) -> list[tuple[int, ...]] | None:
    """Return the moves to the earliest positions of an exam that are drawn under perfect play, each for two games."""
    if exam is None:
        return None
    count = (games + 1) // 2
    drawn = sorted((question.moves for question in find_exam(exam, game) if question.value == 0), key=len)
    if len(drawn) < count:
        raise SystemExit(
            f"{exam} has {len(drawn)} drawn positions, too few for {count} openings; ask for fewer --games"
        )
    return drawn[:count]


if __name__ == "__main__":
    main()
