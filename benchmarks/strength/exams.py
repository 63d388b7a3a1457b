"""Exams: positions whose best moves are known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks.strength.solver import Solver
from plyzero.rules.catalog import GameSpec
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

STRATA = {
    "connect-four": ((0, 8), (8, 16), (16, 24), (24, 41)),
    "othello(size=6)": ((20, 22), (22, 24), (24, 26), (26, 31)),
}
"""Plies, from and before, by which a game's positions are drawn and scored."""


@dataclass(frozen=True)
class Question:
    """The position after `moves`, the actions that are best in it, and its value for the player to move."""

    moves: tuple[int, ...]
    position: Game
    best: frozenset[int]
    value: int

    @property
    def plies(self) -> int:
        return len(self.moves)

    @classmethod
    def of(cls, moves: Sequence[int], position: Game, values: dict[int, int]) -> Question:
        """Return the question to which `values`, of every legal action, is the answer."""
        best = max(values.values())
        right = frozenset(action for action, value in values.items() if value == best)
        return cls(tuple(moves), position, right, best)


def find_exam(name: str, game: GameSpec) -> list[Question]:
    """Return the exam in a file, or with the name "all" every position of a game that is small enough to be solved."""
    return every_position(game) if name == "all" else read_exam(Path(name), game)


def read_exam(path: Path, game: GameSpec) -> list[Question]:
    """Read lines of moves, - for none, and the value of every action, 1, 0, -1, or "." where it is illegal."""
    start, actions = game.start, range(game.start.num_actions)
    number = {start.action_name(action): action for action in actions}
    name = re.compile("|".join(map(re.escape, number)))
    exam = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.rsplit(maxsplit=len(actions))
        moves = words[0]
        values = words[1:]
        played = [number[found] for found in name.findall(moves)]
        worth = {action: int(value) for action, value in zip(actions, values, strict=True) if value != "."}
        exam.append(Question.of(played, after(start, played), worth))
    return exam


def write_line(game: GameSpec, moves: Iterable[int], values: dict[int, int]) -> str:
    played = "".join(game.start.action_name(move) for move in moves)
    return " ".join([played or "-", *(str(values.get(action, ".")) for action in range(game.start.num_actions))])


def every_position(game: GameSpec) -> list[Question]:
    """Return every position that play reaches, but those with one legal move and those that are finished."""
    start = cast(CompiledGame, game.start)
    solver = Solver(start)
    exam = []
    found = {start.key()}
    waiting: list[tuple[tuple[int, ...], CompiledGame]] = [((), start)]
    for moves, position in waiting:
        values = solver.move_values(position)
        if len(values) > 1:
            exam.append(Question.of(moves, position, values))
        for action in values:
            following = position.play(action)
            if following.key() not in found and following.outcome() is None:
                found.add(following.key())
                waiting.append(((*moves, action), following))
    return exam


def after(position: Game, moves: Iterable[int]) -> Game:
    for move in moves:
        position = position.play_unchecked(move)
    return position
