"""Many leaves of one search in a batch: simulations per second, and the strength at equal simulations.

python -m benchmarks.leaves connect-four --net FILE --simulations 800 --games 400
"""

import argparse
import time
from pathlib import Path

import numpy as np

from plyzero.machine import usable_cores
from plyzero.play.match import play_match
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import first_decision


def rate(bot: Bot, game: GameSpec, seconds: float = 3.0) -> tuple[float, float]:
    """Return the simulations of searches of one position, per second and per second of a processor."""
    position, made = first_decision(game.start), 0
    bot.search([position])
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        made += bot.search([position])[0].simulations
    return made / (time.perf_counter() - began), made / (time.process_time() - used)


def main() -> None:
    """Print the rates and, with --games, the result of a match of many leaves against one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game")
    parser.add_argument("--net", type=Path, required=True)
    parser.add_argument("--simulations", type=int, default=800)
    parser.add_argument("--games", type=int, default=0)
    arguments = parser.parse_args()
    game, bots = load_game(arguments.game), {}
    for threads in sorted({0, 1, usable_cores()}):
        bots[threads] = Bot.of_model(arguments.net, game, simulations=arguments.simulations, threads=threads)
        found, of_processor = rate(bots[threads], game)
        name = "one leaf at a time" if threads == 0 else f"many leaves, {threads} threads"
        print(f"{name}: {found:.0f} simulations/s, {of_processor:.0f} per second of a processor", flush=True)
    if arguments.games:
        rng = np.random.default_rng(0)
        result = play_match(bots[1], bots[0], game.start, games=arguments.games, rng=rng, at_once=1)
        print(f"many leaves (A) against one\n{result.report()}")


if __name__ == "__main__":
    main()
