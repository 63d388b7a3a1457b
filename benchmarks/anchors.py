"""A bot at go against GNU Go 3.8 over GTP (Debian package gnugo): score with its 95 % interval.

python -m benchmarks.gnugo RUN --level 0 10 --games 100

Each opening of two random moves is played twice, with sides swapped. A finished game is scored by the rules here, which
count every stone on the board as alive; GNU Go is told to capture what is dead before it passes.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np

from plyzero.play.match import random_openings
from plyzero.play.players import Player, find_player
from plyzero.play.ratings import MatchResult
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player", help="a run, an ONNX file, mcts:N or random")
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--level", type=int, nargs="+", default=[0])
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=64)
    given = parser.parse_args()

    rng = np.random.default_rng(0)
    game = load_game(f"go(size={given.size})")
    player = find_player(given.player, game, rng, simulations=given.simulations)
    openings = random_openings(game.start, 2, rng, count=(given.games + 1) // 2)
    for level in given.level:
        points = [0, 0, 0]
        for first in range(0, given.games, 10):
            numbers = range(first, min(first + 10, given.games))  # played at the same time
            with contextlib.ExitStack() as stack:
                opponents = [stack.enter_context(GnuGo(level, given.size, seed)) for seed in numbers]
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


class GtpClient:
    """An engine in a process of its own; a context manager that ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, command: str) -> str:
        """Return the text of the response. Raises RuntimeError for a failure, or if the engine has ended."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        lines = [self._process.stdout.readline()]
        while lines[-1].strip():  # a response ends with an empty line
            lines.append(self._process.stdout.readline())
        answer = "".join(lines).rstrip("\n")
        if not answer.startswith("="):
            raise RuntimeError(f"{command}: {answer or 'the engine has ended'}")
        return answer[1:].lstrip(" ")


class GnuGo(GtpClient):
    """GNU Go for one game by Chinese rules, which captures what is dead before it passes."""

    def __init__(self, level: int, size: int, seed: int) -> None:
        rules = "--chinese-rules", "--positional-superko", "--capture-all-dead"
        super().__init__(["/usr/games/gnugo", "--mode", "gtp", "--level", str(level), "--seed", str(seed + 1), *rules])
        for line in (f"boardsize {size}", "clear_board", "komi 7.5"):
            self.ask(line)

    def play(self, position: Game, action: int) -> None:
        """Report that `action` was played in `position`."""
        self.ask(f"play {colour(position)} {position.action_name(action)}")

    def choose(self, position: Game) -> int | None:
        """Return the action that it plays in `position`; None if it resigns."""
        name = self.ask(f"genmove {colour(position)}").lower()
        return None if name == "resign" else position.parse_action(name)


def colour(position: Game) -> str:
    return "white" if position.to_play else "black"


if __name__ == "__main__":
    main()
