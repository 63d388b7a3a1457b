"""Many leaves of one search in a batch: simulations per second, and the strength at equal simulations.

python -m benchmarks.leaves connect-four --net FILE --simulations 800 --games 400
python -m benchmarks.leaves connect-four --net FILE --seconds 0.5 --moves 1000    # the time of moves under a clock
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np

from plyzero.machine import usable_cores
from plyzero.play.clock import NO_LIMIT, Clock
from plyzero.play.match import play_match
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import first_decision
from plyzero.rules.random_game import random_game


def rate(bot: Bot, game: GameSpec, seconds: float = 3.0) -> tuple[float, float]:
    """Return the simulations of searches of one position, per second and per second of a processor."""
    position, made = first_decision(game.start), 0
    bot.search([position])
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        made += bot.search([position])[0].simulations
    return made / (time.perf_counter() - began), made / (time.process_time() - used)


def times(bot: Bot, game: GameSpec, moves: int) -> list[float]:
    """Return the seconds of so many moves in positions of random games."""
    used: list[float] = []
    for seed in itertools.count():
        played = random_game(game.start, np.random.default_rng(seed))
        for i in played.decisions[: played.plies]:
            began = time.perf_counter()
            bot.choose(played.positions[i])
            used.append(time.perf_counter() - began)
            if len(used) > moves:
                return used[1:]  # the first one is measured to know the rate
    return used


def main() -> None:
    """Print the rates and, with --games, the result of a match of many leaves against one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game")
    parser.add_argument("--net", type=Path, required=True)
    parser.add_argument("--simulations", type=int, default=800)
    parser.add_argument("--games", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="of a clock for each move; then only moves are timed")
    parser.add_argument("--moves", type=int, default=1000)
    arguments = parser.parse_args()
    game, bots = load_game(arguments.game), {}
    if arguments.seconds:
        clock = Clock(per_move=arguments.seconds)
        bot = Bot.of_model(arguments.net, game, simulations=NO_LIMIT, clock=clock, threads=usable_cores())
        used = times(bot, game, arguments.moves)
        late = sum(each > arguments.seconds for each in used)
        print(f"{len(used)} moves: median {np.median(used):.3f} s, longest {max(used):.3f} s, {late} over the limit")
        return
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
