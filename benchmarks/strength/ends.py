"""Exact ends in games of a bot against itself: how many positions they prove, and the time that they take.

python -m benchmarks.strength.ends connect-four plyzero/play/bots/connect-four.onnx --games 12

Each game begins with four random moves. The time is that of this thread.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import numpy as np

from plyzero.play.players import Bot
from plyzero.search.solver import with_exact_end
from plyzero.search.tree import UNPROVEN

PLIES = 4
"""Plies of a line of the table, and random moves at the start of a game."""


def main() -> None:
    """Print a line for every PLIES plies, and one for all positions that the search alone has not proven."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("bot", metavar="MODEL", help="a run or an ONNX file")
    parser.add_argument("--games", type=int, default=12)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--nodes", type=int, default=1_000_000, help="positions that a search of an end may make")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    bot = Bot.load(given.bot, game=given.game, simulations=given.simulations, search={"solver_nodes": 0})
    rng, by_ply = np.random.default_rng(given.seed), defaultdict[int, list[tuple[bool, float]]](list)
    with_exact_end(bot.game.start, bot.search([bot.game.start])[0], nodes=given.nodes)  # loads the compiled code
    for _ in range(given.games):
        position, ply = bot.game.start, 0
        while position.outcome() is None:
            (result,) = bot.search([position])
            if result.proven == UNPROVEN:
                began = time.thread_time()
                found = with_exact_end(position, result, nodes=given.nodes)
                by_ply[ply // PLIES].append((found.proven != UNPROVEN, time.thread_time() - began))
            action = int(rng.choice(result.actions)) if ply < PLIES else result.best_action()
            position, ply = position.play(action), ply + 1
    for number, times in sorted(by_ply.items()):
        print(f"plies {number * PLIES:3} to {number * PLIES + PLIES - 1:3}: {_line(times)}")
    print(f"all: {_line([each for times in by_ply.values() for each in times])}")


def _line(times: list[tuple[bool, float]]) -> str:
    proven, seconds = zip(*times, strict=True)
    return f"{len(times)} positions, {sum(proven)} proven, {1000 * np.mean(seconds):.1f} ms each"


if __name__ == "__main__":
    main()
