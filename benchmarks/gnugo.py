"""A bot at go against GNU Go 3.8 over GTP (Debian package gnugo): score with its 95 % interval.

python -m benchmarks.gnugo RUN --level 0 10 --games 100

Each opening of two random moves is played twice, with sides swapped. A finished game is scored by the rules here, which
count every stone on the board as alive; GNU Go is told to capture what is dead before it passes.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.gtp_client import GnuGo
from plyzero.arena.match import random_openings
from plyzero.play.players import Player, find_player
from plyzero.play.ratings import MatchResult
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game


def main() -> None:
    """Print the result against each level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player", help="a run, an ONNX file, mcts:N or random")
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--level", type=int, nargs="+", default=[0])
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--together", type=int, default=10, help="games in play at a time")
    parser.add_argument("--program", default="/usr/games/gnugo")
    given = parser.parse_args()

    rng = np.random.default_rng(0)
    game = load_game(f"go(size={given.size})")
    player = find_player(given.player, game, rng, simulations=given.simulations)
    openings = random_openings(game.start, 2, rng, count=(given.games + 1) // 2)
    for level in given.level:
        points = [0, 0, 0]
        for first in range(0, given.games, given.together):
            numbers = range(first, min(first + given.together, given.games))
            with contextlib.ExitStack() as stack:
                opponents = [stack.enter_context(GnuGo(given.program, level, given.size, seed)) for seed in numbers]
                for outcome in play(game.start, player, opponents, [openings[i // 2] for i in numbers]):
                    points[1 - outcome] += 1
            wins, draws, losses = points
            print(f"level {level}: {wins} won, {draws} drawn, {losses} lost", file=sys.stderr, flush=True)
        result = MatchResult(wins, draws, losses, distinct=given.games)
        print(f"{player.name} against GNU Go level {level}, {given.games} games: {result}", flush=True)


def play(start: Game, player: Player, opponents: Sequence[GnuGo], openings: Sequence[Sequence[int]]) -> list[int]:
    """Play a game against each of `opponents`, and return the values for `player`, who plays side i % 2 in game i."""
    positions = [start] * len(opponents)
    values: dict[int, int] = {}

    def make(i: int, action: int) -> None:
        opponents[i].play(positions[i], action)
        positions[i] = positions[i].play(action)

    def answer(i: int) -> None:
        action = opponents[i].choose(positions[i])
        if action is None:
            values[i] = 1
        else:
            positions[i] = positions[i].play(action)

    for i, opening in enumerate(openings):
        for action in opening:
            make(i, action)
    with ThreadPoolExecutor(2) as threads:
        while len(values) < len(positions):
            playing = [i for i in range(len(positions)) if i not in values]
            own = [i for i in playing if positions[i].to_play == i % 2]
            for i, action in zip(own, player.choose_all([positions[i] for i in own]) if own else [], strict=True):
                make(i, action)
            list(threads.map(answer, [i for i in playing if i not in own]))
            for i in playing:
                outcome = positions[i].outcome()
                if outcome is not None:
                    values[i] = outcome.value(i % 2)
    return [values[i] for i in range(len(positions))]


if __name__ == "__main__":
    main()
