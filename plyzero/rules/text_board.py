"""Draw a board of squares as text."""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray


def render_grid(board: NDArray[np.int8], *, glyphs: str = ".xo", rows_up: bool = False, files: str = "") -> str:
    """Return `board`, `[rows, columns]`, one glyph a square (0 empty, 1 player 0, 2 player 1), with coordinates.

    Row 0 is the top row and is called 1; with `rows_up` it is the bottom row. `files` names the columns,
    by default a, b, c.
    """
    rows, columns = board.shape
    order = range(rows - 1, -1, -1) if rows_up else range(rows)
    lines = [f"{row + 1:2d} " + " ".join(glyphs[board[row, column]] for column in range(columns)) for row in order]
    return "\n".join([*lines, "   " + " ".join((files or string.ascii_lowercase)[:columns])])


def square_names(rows: int, columns: int) -> tuple[str, ...]:
    """Return the names `a1`, `b1`, ... of the squares, row by row: the letter is the column, the number the row."""
    return tuple(f"{string.ascii_lowercase[column]}{row + 1}" for row in range(rows) for column in range(columns))
