"""Measure how fast players win what is won, and how long they resist where all is lost.

python -m benchmarks.strength.distances connect-four plyzero/play/bots/connect-four.onnx mcts:1000 --count 200 --plies 9

A solver of its own knows the distance to the end of every position, in plies under the fastest win and the longest
resistance. The positions are from games of mixed strength, each from a game of its own and none twice, in which some
moves keep the distance and others do not; at most a quarter of them has the same distance.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from itertools import islice
from typing import cast

import numpy as np

from benchmarks.strength.positions import games_of_mixed_strength
from benchmarks.strength.solver import Distances
from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.compiled_game import CompiledGame

MAX_GAMES = 6
"""Games that may be played for each position that is wanted: small games do not have so many."""

Question = tuple[CompiledGame, int, dict[int, int]]
"""A position, its distance and that of each move; positive = won, for the player to move."""


def main() -> None:
    """Print a line for each player and each kind of position: the share of moves that keep the distance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("players", nargs="+", help="as in plyzero match")
    parser.add_argument("--simulations", type=int, default=256, help="of networks")
    parser.add_argument("--count", type=int, default=200, help="positions that are won, and as many that are lost")
    parser.add_argument("--plies", type=int, default=9, help="largest distance")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    game = load_game(given.game)
    won, lost = questions(game, np.random.default_rng(given.seed), given.count, given.plies)
    for kind, asked in (("won", won), ("lost", lost)):
        spread = ", ".join(f"{n}: {many}" for n, many in sorted(Counter(abs(each[1]) for each in asked).items()))
        print(f"{game.name}, {len(asked)} {kind} positions by distance in plies: {spread}")
    for name in given.players:
        player = find_player(name, game, np.random.default_rng(given.seed), simulations=given.simulations)
        for kind, asked in (("won", won), ("lost", lost)):
            print(f"{name}, {kind}: {_line(player, asked)}", flush=True)


def questions(
    game: GameSpec, rng: np.random.Generator, count: int, plies: int
) -> tuple[list[Question], list[Question]]:
    """Return `count` won and lost positions of distances up to `plies`, in which not every move keeps the distance."""
    solver, won, lost = Distances(cast(CompiledGame, game.start)), list[Question](), list[Question]()
    seen: set[bytes] = set()
    for moves in islice(games_of_mixed_strength(game, rng), MAX_GAMES * count):
        left = int(rng.integers(1, min(plies, len(moves)) + 1))
        position = game.start
        for move in moves[: len(moves) - left]:
            position = position.play_unchecked(move)
        each = cast(CompiledGame, position)
        key = each.state.tobytes()
        distance = 0 if key in seen else solver.distance(each, plies)
        kept = won if distance > 0 else lost
        alike = sum(abs(known) == abs(distance) for _, known, _ in kept)
        if distance and len(kept) < count and alike < count // 4:
            distances = solver.moves(each, plies)
            if len(set(distances.values())) > 1:
                seen.add(key)
                kept.append((each, distance, distances))
        print(f"\r{len(won)} won, {len(lost)} lost of {count}", end="", file=sys.stderr, flush=True)
        if len(won) == len(lost) == count:
            break
    print(file=sys.stderr)
    return won, lost


def _line(player: Player, asked: list[Question]) -> str:
    kept: dict[int, list[bool]] = defaultdict(list)
    within, slower, seconds = [], [], []
    for position, distance, distances in asked:
        began = time.process_time()
        found = distances[player.choose(position)]
        seconds.append(time.process_time() - began)
        kept[abs(distance)].append(found == distance)
        within.append(found * distance > 0)
        if len({each for each in distances.values() if each * distance > 0}) > 1:
            slower.append(found == distance)
    others = f"{np.mean(slower):.1%} of the {len(slower)} with another distance" if slower else "no others"
    by_distance = ", ".join(f"{plies}: {np.mean(each):.0%}" for plies, each in sorted(kept.items()))
    share = np.mean([each for some in kept.values() for each in some])
    return (
        f"{share:.1%} keep the distance ({others}; {by_distance}), "
        f"{np.mean(within):.1%} win or lose within --plies, {1000 * np.mean(seconds):.0f} ms each"
    )


if __name__ == "__main__":
    main()
