"""How many random playouts a second the rules of the included games allow, beside OpenSpiel's: a Markdown table.

python -m benchmarks.playouts

One thread. A second is one of CPU time, so other work on the machine matters less. OpenSpiel (optional: pip install
open_spiel) plays its random playouts in C++, without Python between the moves.
"""

import argparse
import datetime
import os
import platform
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from plyzero.rules.catalog import load_game
from plyzero.rules.compiled_game import CompiledGame
from plyzero.search.evaluators import random_playout
from plyzero.search.rule_calls import addresses

GAMES = {  # the same rules in both, except that OpenSpiel's go ends when a board is repeated
    "games.tic_tac_toe:TicTacToe": "tic_tac_toe",
    "games.connect_four:ConnectFour": "connect_four",
    "games.othello:Othello": "othello",
    "games.breakthrough:Breakthrough": "breakthrough",
    "games.gomoku:Gomoku": "gomoku",
    "games.hex:Hex(swap=False)": "hex",
    "games.go:Go": "go(board_size=9)",
    "games.go:Go(size=19)": "go(board_size=19)",
}

Playouts = Callable[[int], None]
"""Plays so many random playouts."""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=11, help="measurements of each figure, of which the table has the median")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    given = parser.parse_args()
    try:
        import pyspiel

        loaded: Callable[[str], Playouts] | None = lambda text: openspiel_playouts(pyspiel, text)
    except ImportError:
        loaded = None
    print(f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {datetime.date.today()}\n")
    print("| game | plies of a playout | bytes of a state | playouts/s | OpenSpiel | ratio |\n|---|---|---|---|---|---|")
    for text, theirs in GAMES.items():
        start = load_game(text).start
        assert isinstance(start, CompiledGame)
        players = [compiled_playouts(start), *([loaded(theirs)] if loaded else [])]
        rates = measured(players, turns=given.turns, seconds=given.seconds)
        compared = f"{rates[1]:,.0f} | {rates[0] / rates[1]:.1f}" if loaded else "| "
        print(f"| {text.partition(':')[2]} | {plies_of(start):.0f} | {start.State.itemsize:,} | {rates[0]:,.0f} | {compared} |")


def measured(players: list[Playouts], *, turns: int, seconds: float) -> list[float]:
    """Return the median rate of each of `players`, in playouts per second of CPU time, measured in turns."""
    counts = []
    for play in players:
        count, took = 1, 0.0
        while took < seconds / 2:
            count *= 2
            took = time_of(play, count)
        counts.append(count)
    rates = [[count / time_of(play, count) for play, count in zip(players, counts, strict=True)] for _ in range(turns)]
    return [median(column) for column in zip(*rates, strict=True)]


def time_of(play: Playouts, count: int) -> float:
    began = process_time()
    play(count)
    return process_time() - began


def compiled_playouts(start: CompiledGame) -> Playouts:
    """Return random playouts of a compiled game, as pure MCTS plays them."""
    rules, mask, seeds = addresses(start.rules), np.zeros(start.num_actions, np.bool_), iter(range(1 << 62))

    def play(count: int) -> None:
        for _ in range(count):
            random_playout(start.state.copy(), mask, start.max_plies, next(seeds), rules)

    return play


def openspiel_playouts(pyspiel: Any, text: str) -> Playouts:
    """Return OpenSpiel's random playouts of one of its games, as a search in C++ that ends after its first simulation."""
    game = pyspiel.load_game(text)
    state = game.new_initial_state()

    def play(count: int) -> None:
        evaluator = pyspiel.RandomRolloutEvaluator(count, 1)
        pyspiel.MCTSBot(game, evaluator, 1.0, 1, 10, False, 1, False).mcts_search(state)

    return play


def plies_of(start: CompiledGame, games: int = 200) -> float:
    """Return the mean length of random games."""
    rng, plies = np.random.default_rng(1), 0
    for _ in range(games):
        position = start
        while position.outcome() is None:
            position = position.play_unchecked(int(rng.choice(position.legal_actions())))
            plies += 1
    return plies / games


def processor() -> str:
    """Return the name of the processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
