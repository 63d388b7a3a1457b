"""The cells of a board on which the planes of an observation lie, found by playing random games.

A game may turn its board for player 1, number rows from the top or from the bottom, and leave walls out of its planes.
So every way to lay a plane on the board is tried. The right one is that in which pieces decide what planes contain.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.kits.engines.points import Points
from plyzero.rules.board import Board, Cell
from plyzero.rules.game import Game, board_of
from plyzero.rules.random_game import random_game

SAMPLES: Final = 40
"""Number of positions of each player that are looked at."""

MAX_GAMES: Final = 40
"""Most random games from which these positions are taken."""

Layout = NDArray[np.int64]
"""For each place of a plane, `[rows, columns]`, the index of the cell on which it lies."""


class PlaneCells:
    """The layouts of a game's planes: one for each player to move, found when it is first asked for."""

    def __init__(self, start: Game) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._found: tuple[Layout | None, Layout | None] | None = None

    def cells(self, position: Game) -> list[list[Cell]] | None:
        """Return the cells of the board in `position` under its planes, `[rows][columns]`.

        The result is None if there is no board, if no plane shows its pieces, or if several layouts would.
        """
        with self._lock:
            if self._found is None:
                samples = _samples(self._start)
                self._found = (_layout(samples[0]), _layout(samples[1]))
        layout, board = self._found[position.to_play], board_of(position)
        if layout is None or board is None:
            return None
        return [[board.cells[i] for i in row] for row in layout.tolist()]


def _samples(start: Game) -> tuple[list[Game], list[Game]]:
    """Return positions of random games in which player 0 is to move, and those of player 1: always the same ones."""
    found: tuple[list[Game], list[Game]] = [], []
    for seed in range(MAX_GAMES if board_of(start) else 0):
        game = random_game(start, np.random.default_rng(seed))
        for i in game.decisions:
            found[game.positions[i].to_play].append(game.positions[i])
        if min(map(len, found)) >= SAMPLES:
            break
    return found[0][:SAMPLES], found[1][:SAMPLES]


def _layout(positions: Sequence[Game]) -> Layout | None:
    """Return the layout in which most planes are decided by the pieces; None without one, or if two are as good."""
    boards = [board for board in map(board_of, positions) if board]
    if not boards or len(boards) < len(positions) or len({len(board.cells) for board in boards}) > 1:
        return None
    planes = np.array([np.asarray(position.observe(), np.float32) for position in positions])
    numbers: dict[str, int] = {}
    pieces = np.array([[numbers.setdefault(cell.piece, len(numbers)) for cell in board.cells] for board in boards])
    layouts = list(_layouts(boards[0], *planes.shape[2:]))
    decided = [_decided(planes, pieces[:, layout]) for layout in layouts]
    most = max(decided, default=0)
    return layouts[decided.index(most)] if most and decided.count(most) == 1 else None


def _layouts(board: Board, rows: int, columns: int) -> Iterator[Layout]:
    """Yield all ways to lay a plane of this shape on the cells of the board, or on those of one shape."""
    seen: set[bytes] = set()
    everything = range(len(board.cells))
    for shape in (None, *sorted({cell.shape for cell in board.cells})):
        cells = _as_rows(board, [i for i in everything if shape in (None, board.cells[i].shape)])
        if cells is None:
            continue
        for turned in (np.rot90(cells, quarters) for quarters in range(4)):
            for layout in (turned, turned.T):
                if layout.shape == (rows, columns) and layout.tobytes() not in seen:
                    seen.add(layout.tobytes())
                    yield layout


def _as_rows(board: Board, chosen: Sequence[int]) -> Layout | None:
    """Return the chosen cells' indices, `[rows, columns]` from the upper left one on; None if they are no grid."""
    points = Points(replace(board, cells=tuple(board.cells[i] for i in chosen)))
    if len(chosen) != points.rows * points.columns:
        return None
    found = np.full((points.rows, points.columns), -1)
    for i in chosen:
        column, row = points.place(board.cells[i])
        found[points.rows - 1 - row, column] = i
    return found if (found >= 0).all() else None


def _decided(planes: NDArray[np.float32], pieces: NDArray[np.int64]) -> int:
    """Return the number of planes that have one number for each piece, and not the same for all.

    planes: `[positions, planes, rows, columns]`.
    pieces: `[positions, rows, columns]`, the numbers of the pieces that lie there.
    """
    by_plane = planes.swapaxes(0, 1)
    values = [by_plane[:, pieces == piece] for piece in np.unique(pieces)]
    lowest = np.array([each.min(axis=1) for each in values])
    highest = np.array([each.max(axis=1) for each in values])
    is_decided = (lowest == highest).all(axis=0) & (lowest != lowest[0]).any(axis=0)
    return int(is_decided.sum())
