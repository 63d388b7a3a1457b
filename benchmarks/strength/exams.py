"""Exams: positions whose best moves are known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks.strength.solver import Solver
from plyzero.catalog import GameSpec
from plyzero.compiled import CompiledGame
from plyzero.game import Game

STRATA = {
    "connect-four": ((0, 8), (8, 16), (16, 24), (24, 41)),
    "connect-four(columns=5, rows=4)": ((0, 6), (6, 11), (11, 19)),
    "othello(size=6)": ((20, 22), (22, 24), (24, 26), (26, 31)),
}
"""Plies, from and before, by which a game's positions are drawn and scored."""


@dataclass(frozen=True)
class Question:
    """A position after `plies` moves, the actions that are best in it, and its value for the player to move."""

    position: Game
    plies: int
    best: frozenset[int]
    value: int

    @classmethod
    def of(cls, position: Game, plies: int, values: dict[int, int]) -> Question:
        """Return the question to which `values`, of every legal action, is the answer."""
        best = max(values.values())
        return cls(position, plies, frozenset(action for action, value in values.items() if value == best), best)


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
        moves, *values = line.rsplit(maxsplit=len(actions))
        played = [number[found] for found in name.findall(moves)]
        worth = {action: int(value) for action, value in zip(actions, values, strict=True) if value != "."}
        exam.append(Question.of(after(start, played), len(played), worth))
    return exam


def write_line(game: GameSpec, moves: Iterable[int], values: dict[int, int]) -> str:
    """Return the line of a file that `read_exam` reads."""
    played = "".join(game.start.action_name(move) for move in moves)
    return " ".join([played or "-", *(str(values.get(action, ".")) for action in range(game.start.num_actions))])


def every_position(game: GameSpec) -> list[Question]:
    """Return every position that play reaches, but those with one legal move and those that are finished."""
    start = cast(CompiledGame, game.start)
    solver, exam, plies = Solver(start), [], 0
    level = {start.key(): start}
    while level:
        for position in level.values():
            values = solver.move_values(position)
            if len(values) > 1:
                exam.append(Question.of(position, plies, values))
        following = [position.play(action) for position in level.values() for action in position.legal_actions()]
        level = {position.key(): position for position in following if position.outcome() is None}
        plies += 1
    return exam


def after(position: Game, moves: Iterable[int]) -> Game:
    """Return the position after `moves`."""
    for move in moves:
        position = position.play_unchecked(move)
    return position
