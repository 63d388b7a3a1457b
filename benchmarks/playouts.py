"""Random playouts per second of the included games, beside OpenSpiel's: a Markdown table.

python -m benchmarks.playouts

One thread. A second is one of CPU time, so other work on the machine matters less. OpenSpiel (optional: pip install
open_spiel) plays its random playouts in C++, without Python between the moves.
"""

import argparse
import datetime
import os
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from benchmarks.speed import processor
from plyzero.games.backgammon import Backgammon
from plyzero.games.breakthrough import Breakthrough
from plyzero.games.connect_four import ConnectFour
from plyzero.games.go import Go
from plyzero.games.gomoku import Gomoku
from plyzero.games.hex import Hex
from plyzero.games.othello import Othello
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.rules.chance import first_decision
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.random_game import random_game
from plyzero.search.evaluators import random_playout
from plyzero.search.rule_calls import addresses

try:
    import pyspiel
except ImportError:
    pyspiel = None

GAMES: dict[str, tuple[CompiledGame, str]] = {
    "tic-tac-toe": (TicTacToe(), "tic_tac_toe"),
    "connect-four": (ConnectFour(), "connect_four"),
    "othello": (Othello(), "othello"),
    "breakthrough": (Breakthrough(), "breakthrough"),
    "gomoku": (Gomoku(), "gomoku"),
    "hex(swap=False)": (Hex(swap=False), "hex"),
    "go": (Go(), "go(board_size=9)"),
    "go(size=19)": (Go(size=19), "go(board_size=19)"),
    "backgammon": (Backgammon(), "backgammon"),
}
"""Games here and there. The rules are the same, except that OpenSpiel's go ends when a board is repeated, and that its
backgammon plays two dice in one ply."""

HEAD = ("game", "plies of a playout", "bytes of a state", "playouts/s", "OpenSpiel, playouts/s", "ratio")

Playouts = Callable[[int], None]
"""Plays the given number of random playouts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=11, help="measurements of each figure; the table has the median")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    given = parser.parse_args()
    print(f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {datetime.date.today()}\n")
    print_row(*HEAD)
    print_row(*("---" for _ in HEAD))
    for name, (start, text) in GAMES.items():
        players = [compiled_playouts(start)]
        if pyspiel:
            players.append(openspiel_playouts(text))
        rates = measured(players, turns=given.turns, seconds=given.seconds)
        ours = rates[0]
        compared = ["", ""]
        if pyspiel:
            theirs = rates[1]
            compared = [f"{theirs:,.0f}", f"{ours / theirs:.1f}"]
        print_row(name, f"{plies_of(start):.0f}", f"{start.State.itemsize:,}", f"{ours:,.0f}", *compared)


def print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


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
    rules, seeds = addresses(start.rules), iter(range(1 << 62))
    mask, chances = np.zeros(start.num_actions, np.bool_), np.zeros(start.num_chances, np.float32)
    state = first_decision(start).state

    def play(count: int) -> None:
        for _ in range(count):
            random_playout(state.copy(), mask, chances, start.max_plies, next(seeds), rules)

    return play


def openspiel_playouts(text: str) -> Playouts:
    """Return OpenSpiel's random playouts of one of its games: a search in C++ that ends after its first simulation."""
    game = pyspiel.load_game(text)
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.chance_outcomes()[0][0])

    def play(count: int) -> None:
        evaluator = pyspiel.RandomRolloutEvaluator(count, 1)
        pyspiel.MCTSBot(game, evaluator, 1.0, 1, 10, False, 1, False).mcts_search(state)

    return play


def plies_of(start: CompiledGame, games: int = 200) -> float:
    rng = np.random.default_rng(1)
    return sum(random_game(start, rng).plies for _ in range(games)) / games


if __name__ == "__main__":
    main()
