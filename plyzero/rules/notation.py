"""Notation: moves as names of actions and of rolls, positions as such moves or as the board that people see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from plyzero.errors import UserError, plain
from plyzero.rules.chance import P, Position, move_name, parse_move, possible_moves

MAX_TRIED: Final = 2_000
"""Number of moves that are tried to reach a board."""

Lines = tuple[str, ...]


def action_names(position: Position, actions: tuple[int, ...]) -> list[str]:
    """Return the names of `actions`, rolls among them, which are played one after the other from `position`."""
    names = []
    for action in actions:
        names.append(move_name(position, action))
        position = position.play_unchecked(action)
    return names


def play_named(position: P, moves: Sequence[str]) -> tuple[list[P], list[int]]:
    """Play `moves`, given as names of actions and of rolls, and return the positions and the actions.

    The positions are one more than the moves and begin with `position`. Raises ValueError with the number of the first
    move that is illegal or comes after the end of the game.
    """
    positions, actions = [position], []
    for number, name in enumerate(moves, 1):
        if positions[-1].outcome() is not None:
            raise ValueError(f"move {number}, {name!r}: the game is already over")
        try:
            actions.append(parse_move(positions[-1], name))
        except ValueError as error:
            raise ValueError(f"move {number}: {error}") from error
        positions.append(positions[-1].play_unchecked(actions[-1]))
    return positions, actions


def read_starts(path: Path, start: Position) -> list[list[int]]:
    """Return the moves from `start` to each position of a file. Blank lines separate the positions.

    Raises UserError if the file cannot be read, a position cannot be reached, or the game has dice or set-ups.
    """
    try:
        if start.num_chances or start.awaits_setup:
            chance = "set-ups" if start.awaits_setup else "dice"
            raise ValueError(f"a game with {chance} begins with rolls of its own")
        return [moves_to(start, text) for text in re.split(r"\n\s*\n", path.read_text().strip("\n"))]
    except (OSError, ValueError) as error:
        raise UserError(f"selfplay.starts = {path} cannot be used: {plain(str(error), 300)}") from error


def moves_to(start: Position, text: str) -> list[int]:
    """Return the moves from `start` to a position: those that `text` names, or that reach its board by filling cells.

    Raises ValueError with a sentence if there are none.
    """
    try:
        return play_named(start, text.split())[1]
    except ValueError as error:
        empty, wanted = _lines(str(start)), _lines(text)
        moves = [] if wanted == empty else _Filling(start, wanted).moves_from(start)
        if moves is not None:
            return moves
        raise ValueError(f"expected a board that moves reach by filling cells, or names of moves: {error}") from error


class _Filling:
    """A search for the moves that fill cells of a board until it is the board `wanted`."""

    def __init__(self, start: Position, wanted: Lines) -> None:
        self.empty = _lines(str(start))
        self.wanted = wanted
        self.seen = {self.empty}
        self.tries = iter(range(MAX_TRIED))

    def moves_from(self, position: Position, elsewhere: frozenset[tuple[int, int]] = frozenset()) -> list[int] | None:
        """Return the moves from `position` to the board; None if there are none or too many were tried.

        elsewhere: players and their moves that fill a cell which stays empty on the board.
        """
        player = int(position.to_play)
        moves = [move for move in possible_moves(position) if (player, move) not in elsewhere]
        for move, _ in zip(moves, self.tries, strict=False):
            after = position.play_unchecked(move)
            lines = _lines(str(after))
            if lines == self.wanted:
                return [move]
            if self._fills_elsewhere(lines):
                elsewhere |= {(player, move)}
            elif after.outcome() is None and lines not in self.seen and self._is_between(lines):
                self.seen.add(lines)
                if (rest := self.moves_from(after, elsewhere)) is not None:
                    return [move, *rest]
        return None

    def _is_between(self, lines: Lines) -> bool:
        """Return whether each character of `lines` is that of the empty board or of the wanted one."""
        return all(b in (a, c) for a, b, c in self._characters(lines))

    def _fills_elsewhere(self, lines: Lines) -> bool:
        """Return whether a character of `lines` is another where the wanted board is empty."""
        return any(a == c != b for a, b, c in self._characters(lines))

    def _characters(self, lines: Lines) -> Iterator[tuple[str, str, str]]:
        rows = zip_longest(self.empty, lines, self.wanted, fillvalue="")
        return (each for row in rows for each in zip_longest(*row, fillvalue=" "))


def _lines(text: str) -> Lines:
    return tuple(line.rstrip() for line in text.strip("\n").split("\n"))
