"""Dots and Boxes in plain Python: an example of a game in which a player may move several times in a row.

Copy this file and change the rules. `plyzero train dots_and_boxes:DotsAndBoxes --run runs/mine`, run in its directory,
trains the game.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Game, Outcome, Symmetry, grid, square_names, turns_and_mirrors

EMPTY, EDGE = 0, 3  # contents of a cell; a box of player 0 is 1, a box of player 1 is 2
IS = [bytes(cell == wanted for cell in range(256)) for wanted in range(4)]  # board.translate(IS[EDGE]): 1 at an edge


class DotsAndBoxes(Game, version=1):
    """Connect dots by edges; a player who completes a box owns it and moves again; most boxes win."""

    observation_dtype = bool
    final_planes = 1  # the owners of the boxes, for final_board
    to_play = 0

    def __init__(self, size: int = 3) -> None:
        if not 1 <= size <= 12:
            raise ValueError(f"expected a size from 1 to 12, got {size!r}")
        # A grid of cells as on paper: dots where row and column are even, boxes where both are odd, and edges on the
        # other cells. Edges and boxes are neighbours in this grid, which suits the network's convolutions.
        width = self.width = 2 * size + 1
        self.observation_shape = (3, width, width)  # edges, own boxes, the opponent's boxes
        self.board = bytes(width**2)  # row by row; bytes are copied and read much faster than a small array
        self.names = square_names(width, width)
        # action = index of the edge
        self.edges = [cell for cell in range(width**2) if (cell // width + cell % width) % 2]
        self.num_actions = self.edges_left = len(self.edges)
        self.max_plies = len(self.edges)  # every ply takes one
        self.max_score = size * size  # points are boxes
        # cell of an edge -> the boxes beside it, each with its four sides
        self.boxes: dict[int, list[tuple[int, tuple[int, ...]]]] = {edge: [] for edge in self.edges}
        for box in (row * width + column for row in range(1, width, 2) for column in range(1, width, 2)):
            sides = (box - width, box - 1, box + 1, box + width)
            for edge in sides:
                self.boxes[edge].append((box, sides))

    def legal_actions(self) -> list[int]:
        board = self.board
        return [action for action, edge in enumerate(self.edges) if board[edge] == EMPTY]

    def play(self, action: int) -> Self:
        edge, board = self.edges[action], bytearray(self.board)
        board[edge] = EDGE
        completed = [box for box, sides in self.boxes[edge] if all(board[side] for side in sides)]
        for box in completed:
            board[box] = self.to_play + 1
        after = copy.copy(self)  # positions are immutable: change a copy
        after.board = bytes(board)
        after.edges_left -= 1
        if not completed:
            after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        if self.edges_left:
            return None
        first, second = self.board.count(1), self.board.count(2)
        return Outcome(winner=None if first == second else int(second > first), score=abs(first - second))

    def observe(self) -> NDArray[np.bool_]:
        planes = b"".join(self.board.translate(IS[cell]) for cell in (EDGE, self.to_play + 1, 2 - self.to_play))
        return np.frombuffer(planes, np.bool_).reshape(self.observation_shape)

    def final_board(self) -> NDArray[np.float32]:
        board = np.frombuffer(self.board, np.uint8).reshape(1, self.width, self.width)
        own, other = board == self.to_play + 1, board == 2 - self.to_play
        return own.astype(np.float32) - other.astype(np.float32)

    def action_name(self, action: int) -> str:
        return self.names[self.edges[action]]

    # turns_and_mirrors permutes the cells of the grid; an action moves with the cell of its edge.
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(
            Symmetry(planes, np.array([self.edges.index(cells[edge]) for edge in self.edges]))
            for planes, cells in turns_and_mirrors(self.observation_shape)
        )

    def scoreboard(self) -> tuple[str, str]:
        """Return the number of boxes of each player."""
        return f"{self.board.count(1)} boxes", f"{self.board.count(2)} boxes"

    def render(self) -> Board:
        board = np.frombuffer(self.board, np.uint8).reshape(self.width, self.width)
        return grid(board, pieces=("", "0", "1", "#"), style="dots")
