"""Places of moves and planes on a rendered board, and the names of moves as people write them, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.board import Board, Cell
from plyzero.rules.board_svg import UNIT
from plyzero.rules.chance import is_chance, move_name, parse_move
from plyzero.rules.game import Game, board_of

NAMES: Final = {"point": "points", "square": "squares"}
"""The name of several cells of a shape; those of other shapes are cells."""

MAX_LINE: Final = 6
"""Number of moves of a principal variation that are shown."""

Spot = tuple[float, float]
"""The place (x, y) of a cell, in units of the picture."""


def spot_of(cell: Cell) -> Spot:
    """Return the place of a cell."""
    return UNIT * cell.x, UNIT * cell.y


def spots_of(board: Board | None, name: str) -> list[Spot | None]:
    """Return the places of the cells that are clicked to play an action; None for a card."""
    cells = board.clicked(name) if board else []
    return [None if cell.shape == "card" else spot_of(cell) for cell in cells]


def line_of(position: Game, names: Sequence[str]) -> list[dict[str, object]]:
    """Return the first MAX_LINE of the moves `names` from `position` on; the first roll ends them.

    Each has the player as `by`, its `name`, its name as people write it, `written`, and its `spots`.
    """
    line: list[dict[str, object]] = []
    for name in names[:MAX_LINE]:
        if is_chance(position):
            break
        action = position.parse_action(name)
        line.append(
            {
                "by": int(position.to_play),
                "name": name,
                "written": position.san(action),
                "spots": spots_of(board_of(position), name),
            }
        )
        position = position.play_unchecked(action)
    return line


def written_name(position: Game, move: int) -> str:
    """Return the name of a move or roll as people write it."""
    return move_name(position, move) if is_chance(position) else position.san(move)


def written_names(position: Game, names: Sequence[str]) -> list[str]:
    """Return the names of moves and rolls from `position` on as people write them."""
    if type(position).san is Game.san:
        return list(names)
    written: list[str] = []
    for name in names:
        move = parse_move(position, name)
        written.append(written_name(position, move))
        position = position.play_unchecked(move)
    return written


def places_of(cells: Sequence[Sequence[Cell]] | None) -> list[list[Spot]] | None:
    """Return the places of the cells under a plane, `[rows][columns]`; None without them."""
    if cells is None:
        return None
    return [[spot_of(cell) for cell in row] for row in cells]


def final_board_of(
    planes: NDArray[np.float32], cells: Sequence[Sequence[Cell]] | None, to_play: int
) -> dict[str, object] | None:
    """Return an expected final board, as it is drawn on the board; None if its place is not known.

    planes: `[planes, rows, columns]`, for the player to move; of several planes the sum counts.

    owned:  [x, y, value] of each cell, where 1 = certainly player 0's, -1 = certainly player 1's.
    lead:   the sum of all values: how many cells player 0 has more than player 1.
    cells:  what people call the cells: points, squares or cells.
    """
    if cells is None:
        return None
    values = values_of(planes, to_play)
    owned, lead = owned_cells(values, cells), round(float(values.sum()), 1)
    return {"owned": owned, "lead": lead, "cells": NAMES.get(cells[0][0].shape, "cells")}


def values_of(planes: NDArray[np.float32], to_play: int) -> NDArray[np.float32]:
    """Return a final board for player 0, `[rows, columns]`; its `planes` are for the player to move."""
    total: NDArray[np.float32] = planes.sum(axis=0)
    return total if to_play == 0 else -total


def owned_cells(values: NDArray[np.float32], cells: Sequence[Sequence[Cell]]) -> list[tuple[float, float, float]]:
    """Return (x, y, value) of each cell under a final board for player 0, with values from -1 to 1."""
    owned: list[tuple[float, float, float]] = []
    for row, column in np.ndindex(*values.shape):
        x, y = spot_of(cells[row][column])
        owned.append((x, y, round(float(np.clip(values[row, column], -1, 1)), 2)))
    return owned
