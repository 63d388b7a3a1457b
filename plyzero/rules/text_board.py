"""Boards rendered as text."""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray


def render_grid(board: NDArray[np.int8], *, glyphs: str = ".xo", rows_up: bool = False, files: str = "") -> str:
    """Return `board`, `[rows, columns]` int, as text with coordinates.

    A square of value `v` is rendered as `glyphs[v]`; by default 0 is empty, 1 is player 0 and 2 is player 1. Row 0 is
    labelled 1 and rendered at the top, or at the bottom with `rows_up`. `files` labels the columns, by default a, b,
    c and so on.
    """
    rows, columns = board.shape
    order = range(rows - 1, -1, -1) if rows_up else range(rows)
    lines = [f"{row + 1:2d} " + " ".join(glyphs[board[row, column]] for column in range(columns)) for row in order]
    return "\n".join([*lines, "   " + " ".join((files or string.ascii_lowercase)[:columns])])


def square_names(rows: int, columns: int, *, files: str = string.ascii_lowercase) -> tuple[str, ...]:
    """Return the names of all squares, row by row: a1, b1, ... with the letter of the column and the row's number.

    files: the letters of the columns.
    """
    return tuple(f"{files[column]}{row + 1}" for row in range(rows) for column in range(columns))
