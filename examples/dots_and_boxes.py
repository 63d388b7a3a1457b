"""Dots and Boxes in plain Python, a game in which a player may move twice in a row: copy this file, change the rules.

From its directory, `plyzero train dots_and_boxes:DotsAndBoxes --run runs/mine` trains it.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import Game, Outcome
from plyzero.rules.symmetry import Symmetry, turns_and_mirrors
from plyzero.rules.text_board import render_grid, square_names

DRAWN = 0
BOXES = (1, 2)


class DotsAndBoxes(Game, version=1):
    """Draw lines between dots; who completes a box owns it and draws again; most boxes win."""

    observation_dtype = bool
    to_play = 0

    def __init__(self, size: int = 3) -> None:
        if not 1 <= size <= 12:
            raise ValueError(f"expected a size from 1 to 12, got {size!r}")
        # A grid of cells as in the drawing: dots where row and column are even, boxes where both are odd, and lines
        # on the other cells. Lines and boxes lie in it next to each other, where the network's convolutions look.
        self.width = 2 * size + 1
        self.observation_shape = (3, self.width, self.width)  # lines, own boxes, the opponent's boxes
        self.planes = np.zeros(self.observation_shape, np.bool_)  # DRAWN lines, and the BOXES of player 0 and 1
        self.names = square_names(self.width, self.width)
        # action = index of the line
        self.lines = [cell for cell in range(self.width**2) if (cell // self.width + cell % self.width) % 2]
        self.num_actions = len(self.lines)
        self.max_plies = len(self.lines)  # every ply draws one

    def legal_actions(self) -> list[int]:
        actions: list[int] = np.flatnonzero(~self.planes[DRAWN].take(self.lines)).tolist()
        return actions

    def play(self, action: int) -> Self:
        after = copy.copy(self)  # a position never changes: play on a copy
        after.planes = self.planes.copy()
        lines = after.planes[DRAWN]
        lines.flat[self.lines[action]] = True
        four_sides = lines[:-1:2, 1::2] & lines[2::2, 1::2] & lines[1::2, :-1:2] & lines[1::2, 2::2]
        boxes = after.planes[:, 1::2, 1::2]
        completed = four_sides & ~boxes[BOXES[0]] & ~boxes[BOXES[1]]
        if completed.any():
            boxes[BOXES[self.to_play]] |= completed
        else:
            after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        if not self.planes[DRAWN].take(self.lines).all():
            return None
        first, second = (int(self.planes[boxes].sum()) for boxes in BOXES)
        return Outcome(winner=None if first == second else int(second > first))

    def observe(self) -> NDArray[np.bool_]:
        return self.planes[[DRAWN, BOXES[self.to_play], BOXES[1 - self.to_play]]]

    def action_name(self, action: int) -> str:
        return self.names[self.lines[action]]

    # turns_and_mirrors knows where each cell of the grid goes; an action needs to know it of its line.
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(
            Symmetry(planes, np.array([self.lines.index(cells[line]) for line in self.lines]))
            for planes, cells in turns_and_mirrors(self.observation_shape)
        )

    def __str__(self) -> str:
        drawn, *boxes = self.planes
        picture = 4 * boxes[0] + 5 * boxes[1]
        picture[::2, ::2] = 1
        picture[::2, 1::2] = 2 * drawn[::2, 1::2]
        picture[1::2, ::2] = 3 * drawn[1::2, ::2]
        return render_grid(picture, glyphs=" +-|xo")
