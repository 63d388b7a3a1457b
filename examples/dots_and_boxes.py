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

EDGES = 0  # plane of the edges that have been taken
BOXES = (1, 2)  # planes of the boxes of player 0 and of player 1


class DotsAndBoxes(Game, version=1):
    """Connect dots by edges; a player who completes a box owns it and moves again; most boxes win."""

    observation_dtype = bool
    to_play = 0

    def __init__(self, size: int = 3) -> None:
        if not 1 <= size <= 12:
            raise ValueError(f"expected a size from 1 to 12, got {size!r}")
        # A grid of cells as on paper: dots where row and column are even, boxes where both are odd, and edges on the
        # other cells. Edges and boxes are neighbours in this grid, which suits the network's convolutions.
        self.width = 2 * size + 1
        self.observation_shape = (3, self.width, self.width)  # edges, own boxes, the opponent's boxes
        self.planes = np.zeros(self.observation_shape, np.bool_)  # EDGES, then BOXES
        self.names = square_names(self.width, self.width)
        # action = index of the edge
        self.edges = [cell for cell in range(self.width**2) if (cell // self.width + cell % self.width) % 2]
        self.num_actions = len(self.edges)
        self.max_plies = len(self.edges)  # every ply takes one

    def legal_actions(self) -> list[int]:
        actions: list[int] = np.flatnonzero(~self.planes[EDGES].take(self.edges)).tolist()
        return actions

    def play(self, action: int) -> Self:
        after = copy.copy(self)  # positions are immutable: change a copy
        after.planes = self.planes.copy()
        edges = after.planes[EDGES]
        edges.flat[self.edges[action]] = True
        four_sides = edges[:-1:2, 1::2] & edges[2::2, 1::2] & edges[1::2, :-1:2] & edges[1::2, 2::2]
        boxes = after.planes[:, 1::2, 1::2]
        completed = four_sides & ~boxes[BOXES[0]] & ~boxes[BOXES[1]]
        if completed.any():
            boxes[BOXES[self.to_play]] |= completed
        else:
            after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        if not self.planes[EDGES].take(self.edges).all():
            return None
        first, second = (int(self.planes[boxes].sum()) for boxes in BOXES)
        return Outcome(winner=None if first == second else int(second > first))

    def observe(self) -> NDArray[np.bool_]:
        return self.planes[[EDGES, BOXES[self.to_play], BOXES[1 - self.to_play]]]

    def action_name(self, action: int) -> str:
        return self.names[self.edges[action]]

    # turns_and_mirrors permutes the cells of the grid; an action moves with the cell of its edge.
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(
            Symmetry(planes, np.array([self.edges.index(cells[edge]) for edge in self.edges]))
            for planes, cells in turns_and_mirrors(self.observation_shape)
        )

    def render(self) -> Board:
        edges, *boxes = self.planes
        return grid(boxes[0] + 2 * boxes[1] + 3 * edges, pieces=("", "0", "1", "#"), style="dots")
