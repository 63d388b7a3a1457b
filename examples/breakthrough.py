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

EMPTY, OWN, OTHER = 0, 1, 2
SWAPPED = np.array([EMPTY, OTHER, OWN], np.int8)  # what each of them is for the other player


class Breakthrough(Game, version=1):
    """Pawns step forward, capture diagonally, and win on the far row. `Breakthrough(size=8)` is the full-size board."""

    observation_dtype = bool
    to_play = 0

    def __init__(self, size: int = 6) -> None:
        if not 4 <= size <= 26:
            raise ValueError(f"expected a size from 4 to 26, got {size!r}")
        # Board and steps are from the point of view of the player to move, whose pawns advance from row 0. The network
        # does not know which player is to move, so equal planes must mean equal actions: where the board is turned
        # around, the actions are turned around with it.
        self.board = np.full((size, size), EMPTY, np.int8)
        self.board[:2], self.board[-2:] = OWN, OTHER
        self.steps = [
            (row, column, to)  # action = index of the step from (row, column) to (row + 1, to)
            for row in range(size - 1)
            for column in range(size)
            for to in range(max(column - 1, 0), min(column + 2, size))
        ]
        row, column, to = np.transpose(self.steps)
        self.origins, self.targets = row * size + column, (row + 1) * size + to
        self.blocked_by = np.where(column == to, OWN | OTHER, OWN).astype(np.int8)
        self.names: NDArray[np.str_] = np.reshape(square_names(size, size), (size, size))
        self.num_actions = len(self.steps)
        self.observation_shape = (2, size, size)  # own pawns, the opponent's pawns
        # Every ply moves one pawn one row forward. Before the last ply every pawn is at most in the last row but one,
        # which is size - 2 rows from the first row and size - 3 from the second; `size` pawns start in each.
        self.max_plies = 2 * size * (2 * size - 5) + 1

    # There is always a legal move: no own pawn is ahead of the foremost pawn, so it can step diagonally.
    def legal_actions(self) -> list[int]:
        if OTHER in self.board[0]:
            return []
        # A step is legal if there is an own pawn and nothing blocks it. Testing all steps at once is much faster.
        pawn, ahead = self.board.take(self.origins), self.board.take(self.targets)
        actions: list[int] = np.flatnonzero((pawn == OWN) & (ahead & self.blocked_by == EMPTY)).tolist()
        return actions

    def play(self, action: int) -> Self:
        row, column, to = self.steps[action]
        board = self.board.copy()
        board[row, column], board[row + 1, to] = EMPTY, OWN
        after = copy.copy(self)  # positions are immutable: change a copy
        after.board = turned(board)
        after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        if OTHER in self.board[0] or OWN not in self.board:
            return Outcome(winner=1 - self.to_play)  # only the player who has just moved can have won
        return None

    def observe(self) -> NDArray[np.bool_]:
        return np.array([self.board == OWN, self.board == OTHER])

    def action_name(self, action: int) -> str:
        row, column, to = self.steps[action]
        names = self.names if self.to_play == 0 else self.names[::-1]
        return f"{names[row, column]}-{names[row + 1, to]}"

    def symmetries(self) -> tuple[Symmetry, ...]:
        last = len(self.board) - 1
        mirrored = [self.steps.index((row, last - column, last - to)) for row, column, to in self.steps]
        return (mirror_columns(self.observation_shape, mirrored),)

    def render(self) -> Board:
        return grid(self.board if self.to_play == 0 else turned(self.board), rows_up=True, style="checks")


def turned(board: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the board from the other player's point of view: rows in reverse order, columns in the same order."""
    return SWAPPED[board[::-1]]
