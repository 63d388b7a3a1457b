"""Breakthrough in plain Python: an example of a game whose players move in opposite directions.

Copy this file and change the rules. `plyzero train breakthrough:Breakthrough --run runs/mine`, run in its directory,
trains the game.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Game, Outcome, Symmetry, grid, mirror_columns, square_names

EMPTY = 0
OWN = 1
OTHER = 2
SWAPPED = bytes.maketrans(bytes([OWN, OTHER]), bytes([OTHER, OWN]))  # board.translate(SWAPPED): the other player's view
IS = [bytes(piece == wanted for piece in range(256)) for wanted in range(3)]  # board.translate(IS[OWN]): 1 at own pawns


class Breakthrough(Game, version=1):
    """Pawns step forward, capture diagonally, and win on the far row. `Breakthrough(size=8)` is the full-size board."""

    observation_dtype = bool
    to_play = 0

    def __init__(self, size: int = 6) -> None:
        if not 4 <= size <= 26:
            raise ValueError(f"expected a size from 4 to 26, got {size!r}")
        # Board and steps are from the point of view of the player to move, whose pawns advance from row 0. The network
        # does not know which player is to move, so equal planes must mean equal actions: where the board is turned
        # around, the actions are turned around with it. Bytes are copied and read much faster than a small array.
        self.size = size
        rows = [OWN, OWN, *[EMPTY] * (size - 4), OTHER, OTHER]
        self.board = b"".join(bytes([piece]) * size for piece in rows)
        self.steps = [
            (row, column, to)  # action = index of the step from (row, column) to (row + 1, to)
            for row in range(size - 1)
            for column in range(size)
            for to in range(max(column - 1, 0), min(column + 2, size))
        ]
        # square -> (action, square that it reaches, pawns that block it) of each step
        self.steps_from: list[list[tuple[int, int, int]]] = [[] for _ in self.board]
        for action, (row, column, to) in enumerate(self.steps):
            blocked_by = OWN | OTHER if to == column else OWN
            self.steps_from[row * size + column].append((action, (row + 1) * size + to, blocked_by))
        self.names: NDArray[np.str_] = np.reshape(square_names(size, size), (size, size))
        self.num_actions = len(self.steps)
        self.observation_shape = (2, size, size)  # own pawns, the opponent's pawns
        # Every ply moves one pawn one row forward. Before the last ply every pawn is at most in the last row but one,
        # which is size - 2 rows from the first row and size - 3 from the second; `size` pawns start in each.
        self.max_plies = 2 * size * (2 * size - 5) + 1

    # There is always a legal move: no own pawn is ahead of the foremost pawn, so it can step diagonally.
    def legal_actions(self) -> list[int]:
        board = self.board
        if OTHER in board[: self.size]:
            return []
        return [
            action
            for square, piece in enumerate(board)
            if piece == OWN
            for action, to, blocked_by in self.steps_from[square]
            if not board[to] & blocked_by
        ]

    def play(self, action: int) -> Self:
        row, column, to = self.steps[action]
        board = bytearray(self.board)
        board[row * self.size + column] = EMPTY
        board[(row + 1) * self.size + to] = OWN
        after = copy.copy(self)  # positions are immutable: change a copy
        after.board = turned(board, self.size)
        after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        if OTHER in self.board[: self.size] or OWN not in self.board:
            return Outcome(winner=1 - self.to_play)  # only the player who has just moved can have won
        return None

    def observe(self) -> NDArray[np.bool_]:
        planes = self.board.translate(IS[OWN]) + self.board.translate(IS[OTHER])
        return np.frombuffer(planes, np.bool_).reshape(self.observation_shape)

    def action_name(self, action: int) -> str:
        row, column, to = self.steps[action]
        names = self.names if self.to_play == 0 else self.names[::-1]
        return f"{names[row, column]}-{names[row + 1, to]}"

    def symmetries(self) -> tuple[Symmetry, ...]:
        last = self.size - 1
        mirrored = [self.steps.index((row, last - column, last - to)) for row, column, to in self.steps]
        return (mirror_columns(self.observation_shape, mirrored),)

    def render(self) -> Board:
        board = self.board if self.to_play == 0 else turned(self.board, self.size)
        return grid(np.frombuffer(board, np.uint8).reshape(self.size, self.size), rows_up=True, style="checks")


def turned(board: bytes | bytearray, size: int) -> bytes:
    """Return the board from the other player's point of view: rows in reverse order, columns in the same order."""
    rows = [board[first : first + size] for first in range(0, size * size, size)]
    return b"".join(reversed(rows)).translate(SWAPPED)
