"""Boards of alpha-zero-general as planes: arrays, lists, letters, dicts, tuples of these, and objects.

Every conversion of a board is here. If one fails, the error names the method, its answer, and what to write instead.
"""

from __future__ import annotations

import copy
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.user_errors import with_location

AS_ARRAY: Final = ("as_array", "to_array", "toArray", "board_to_array")
"""Names of functions that make an array of a board that is an object: methods of the board or the game, or functions of
the game's module."""

MAX_PLANES: Final = 4096
"""Largest number of planes."""

MAX_VALUES: Final = 16
"""Largest number of different values of a channel that have a plane each."""

MAX_NUMBER: Final = 1 << 24
"""Bound of the numbers on a board; larger ones are not exact in the type of observations."""

GROWS: Final = 4
"""A number that rises this often in a game, and never falls, is a growing one, such as a counter."""

GROWTH: Final = 4.0
"""The scale of growing numbers is this times the largest number in the random games."""

WITH_PLANES: Final = (
    "write a function that makes an array of planes of a board, as for a network, and name it after the class, "
    "(planes=module:function)"
)
"""The advice for a board that cannot be converted."""

Part = NDArray[Any]
"""A part of a board: an array of numbers or of texts."""


class BadAnswerError(ValueError):
    """A method of the game has returned a wrong answer. The message has the method, the answer, and what to write."""


class View:
    """The view of the boards of a game.

    planes: the person's own function that makes an array of a board; None without one.
    size:   the rows and columns of getBoardSize; () without it.
    """

    def __init__(self, game: Any, planes: Callable[[Any], Any] | None, size: tuple[int, ...]) -> None:
        self.planes = planes
        self._game = game
        self._size = size

    def is_object(self, board: Any) -> bool:
        """Return whether a board has a class of its own, so that only the game's own methods know its content."""
        return not isinstance(board, np.ndarray | np.generic | list | tuple | dict | str | int | float)

    def parts(self, board: Any, method: str) -> list[Part]:
        """Return the arrays of `board`, the answer of `method`; a plain array is one part. Raises BadAnswerError."""
        if isinstance(board, dict):
            return self._parts_of_dict(board, method)
        if isinstance(board, tuple | list):
            if all(isinstance(row, str) for row in board) and len({len(row) for row in board}) == 1:
                board = [list(row) for row in board]
            elif _is_joined(board):
                return self._all_parts(board, method)
        elif isinstance(board, str):
            letters = np.array(list(board), dtype="<U1")
            if self._size and letters.size == math.prod(self._size):
                letters = letters.reshape(self._size)
            return [letters]
        elif self.is_object(board):
            board = self._array_of_object(board, method)
        return [_checked(np.asarray(board), method)]

    def _all_parts(self, boards: Iterable[Any], method: str) -> list[Part]:
        found: list[Part] = []
        for board in boards:
            found += self.parts(board, method)
        return found

    def channels(self, board: Any, method: str) -> list[Part]:
        """Return `board`, the answer of `method`, as channels of one shape, `[rows, columns]` each.

        Raises BadAnswerError.
        """
        if self.planes:
            found = _made_by(self.planes, method, board)
            return list(found) if found.ndim == 3 else list(_channels_of(found))
        return joined(self.parts(board, method), method)

    def _parts_of_dict(self, board: dict[Any, Any], method: str) -> list[Part]:
        if self._size and all(_is_square(key, self._size) for key in board):
            has_texts = any(isinstance(each, str) for each in board.values())
            squares = np.full(self._size, "" if has_texts else 0, object)
            for key, value in board.items():
                squares[key] = value
            return [_checked(squares, method)]
        return self._all_parts((board[key] for key in sorted(board, key=str)), method)

    def _array_of_object(self, board: Any, method: str) -> Any:
        """Return an array of a board that is an object, by a method or a function that makes one."""
        for name in AS_ARRAY:
            if callable(found := getattr(board, name, None)):
                return _made_by(found, method)
            for owner in (self._game, sys.modules[type(self._game).__module__]):
                if callable(found := getattr(owner, name, None)):
                    return _made_by(found, method, board)
        if hasattr(board, "astype"):
            return board.astype(np.float32)
        if hasattr(board, "__array__"):
            return board
        kind = type(board).__name__
        raise BadAnswerError(
            f"{method} returns a {kind}, which is no array: {WITH_PLANES}; or give {kind} a method as_array()"
        )


def _made_by(function: Callable[..., Any], method: str, *board: Any) -> Part:
    """Return the array that a function of the person makes of a board, the answer of `method`."""
    name = getattr(function, "__name__", "the function")
    try:
        made = np.asarray(function(*board))
    except Exception as error:
        raise BadAnswerError(f"{name}() of the board that {method} returns raises {with_location(error)}") from error
    return _checked(made, f"{name}()")


def _is_square(key: object, size: tuple[int, ...]) -> bool:
    if not isinstance(key, tuple) or len(key) != len(size):
        return False
    return all(isinstance(each, int | np.integer) and 0 <= each < most for each, most in zip(key, size, strict=True))


def _is_joined(board: Sequence[Any]) -> bool:
    """Return whether a list or tuple consists of parts, and not of the rows of one board."""
    has_arrays = any(isinstance(each, np.ndarray) and each.ndim > 1 for each in board)
    return has_arrays or _shape_of_rows(board) is None


def _shape_of_rows(rows: Any) -> tuple[int, ...] | None:
    """Return the shape of nested lists: None if they are uneven or have dicts; () for a value that is no list."""
    if isinstance(rows, np.ndarray):
        return np.shape(rows)
    if isinstance(rows, dict):
        return None
    if not isinstance(rows, list | tuple):
        return ()
    shapes = {_shape_of_rows(each) for each in rows}
    first = next(iter(shapes), ())
    return None if len(shapes) > 1 or first is None else (len(rows), *first)


def _checked(array: Part, method: str) -> Part:
    """Return an array of numbers or of texts. Raises BadAnswerError if it contains something else."""
    if array.dtype.kind == "O":
        array = _array_of_objects(array, method)
    if array.dtype.kind == "S":
        array = array.astype(str)
    if array.dtype.kind not in "biufU" or not array.size:
        what = f"an array of {array.dtype}" if array.size else "an empty array"
        raise BadAnswerError(f"{method} returns {what}, expected an array of numbers or of texts: {WITH_PLANES}")
    return array


def _array_of_objects(array: Part, method: str) -> Part:
    """Return an array of Python objects as numbers, or as texts if one of them is no number; None is 0 or ""."""
    pieces = array.ravel().tolist()
    if all(piece is None or isinstance(piece, int | float | np.number | np.bool_) for piece in pieces):
        return np.array([0 if piece is None else piece for piece in pieces], float).reshape(array.shape)
    for piece in pieces:
        if not has_text(piece):
            kind = type(piece).__name__
            raise BadAnswerError(
                f"{method} returns an array of {kind} objects, which have no text: give {kind} a method __str__(), or "
                f"{WITH_PLANES}"
            )
    return np.array(["" if piece is None else str(piece) for piece in pieces], str).reshape(array.shape)


def _channels_of(array: Part) -> Part:
    """Return an array as `[channels, rows, columns]`; of three dimensions, the one that differs are the channels."""
    if array.ndim == 3:
        return np.moveaxis(array, -1, 0) if array.shape[0] == array.shape[1] != array.shape[2] else array
    return array[None] if array.ndim == 2 else array.reshape(1, -1, 1)


def joined(parts: Sequence[Part], method: str) -> list[Part]:
    """Return the parts of a board as channels of one shape.

    The largest part with rows and columns is the board. A smaller one is padded with zeros. Each number of other parts,
    such as counters, has a channel of its own, with this number at every square.
    """
    if len(parts) == 1:
        return list(_channels_of(parts[0]))
    boards = [_channels_of(part) for part in parts if part.ndim in (2, 3)]
    if boards:
        rows = max(board.shape[1] for board in boards)
        columns = max(board.shape[2] for board in boards)
    else:
        rows = max(part.size for part in parts)
        columns = 1
    channels: list[Part] = []
    for part in parts:
        if part.ndim in (2, 3):
            channels += [_padded(plane, rows, columns) for plane in _channels_of(part)]
        elif part.size == rows * columns:
            channels.append(part.reshape(rows, columns))
        else:
            channels += [np.full((rows, columns), number) for number in part.ravel()]
    if len(channels) > MAX_PLANES:
        raise BadAnswerError(f"{method} returns a board of {len(channels)} parts, expected at most {MAX_PLANES}")
    return channels


def _padded(plane: Part, rows: int, columns: int) -> Part:
    whole = np.zeros((rows, columns), plane.dtype)
    whole[: plane.shape[0], : plane.shape[1]] = plane
    return whole


def has_text(value: Any) -> bool:
    """Return whether the class of `value` defines its text, which otherwise is only an address in memory."""
    methods: list[object] = [type(value).__str__, type(value).__repr__]
    return methods != [object.__str__, object.__repr__]


def copied(board: Any) -> Any:
    """Return a copy: some games change the board in an argument, and some return a board that they keep."""
    is_plain = isinstance(board, np.ndarray) and board.dtype.kind != "O"
    return board.copy() if is_plain else copy.deepcopy(board)


class Channel(NamedTuple):
    """The planes of a channel of the board.

    values:    the values that have a plane each.
    scale:     a further plane has the numbers that are not among `values`, divided by this; 0 = no such plane.
    has_other: whether a further plane marks all other values. Without it, all planes together mark them.
    """

    values: tuple[Any, ...]
    scale: float = 0
    has_other: bool = False

    @property
    def planes(self) -> int:
        return len(self.values) + self._further_planes

    @property
    def _further_planes(self) -> int:
        return int(self.scale > 0) + int(self.has_other)

    def show(self, part: Part) -> tuple[Part, Part | None]:
        """Return the planes of `part`, and its values that were never seen, None if there are none."""
        if not self.values:
            return (part / self.scale)[None], None
        if isinstance(self.values[0], str):
            part = as_texts(part)
        found = part == np.array(self.values)[:, None, None]
        is_text = part.dtype.kind == "U"
        pieces = part.size if is_text else np.count_nonzero(part)
        if np.count_nonzero(found) == pieces:  # the usual case
            if not self._further_planes:
                return found, None
            empty = np.zeros((self._further_planes, *part.shape), bool)
            return np.concatenate([found, empty]), None
        is_other = ~found.any(axis=0) & (is_text or part != 0)
        if self.scale:
            return np.concatenate([found, (part * is_other / self.scale)[None]]), None
        unseen = part[is_other] if is_other.any() else None
        if self.has_other:
            return np.concatenate([found, is_other[None]]), unseen
        return (found if unseen is None else found | is_other), unseen


def channel_of(games: Sequence[Sequence[Part]], movers: Sequence[Sequence[int]]) -> Channel:
    """Return the planes of a channel, by its boards in some games.

    games:  the boards of each game, `[rows, columns]`, in order.
    movers: the player to move at each of these boards.
    """
    boards = list(itertools.chain.from_iterable(games))
    if any(board.dtype.kind == "U" for board in boards):
        seen = np.array([as_texts(board) for board in boards])
        return Channel(tuple(np.unique(seen).tolist()[:MAX_PLANES]), has_other=True)
    seen = np.array(boards)
    bound = max(float(seen.max()), -float(seen.min()), 1.0)
    if not bound < MAX_NUMBER:  # also NaN
        raise BadAnswerError(
            f"getCanonicalForm returns a board with the number {bound:g}, expected finite numbers below {MAX_NUMBER}: "
            f"{WITH_PLANES}"
        )
    grows = _growing(games, movers)
    if not np.array_equal(seen, np.rint(seen)):
        return Channel((), bound)
    fixed = seen[:, ~grows]
    values = _values(fixed) if fixed.size else ()
    if grows.any():
        return Channel(values if len(values) <= MAX_VALUES else (), GROWTH * bound)
    if not values or len(values) > MAX_VALUES:
        return Channel((), bound)  # a plane of the numbers themselves
    return Channel(values, has_other=not set(values) <= {1, -1})


def as_texts(part: Part) -> Part:
    """Return a part as texts; a board without pieces may have zeros, which become "" here."""
    return part if part.dtype.kind == "U" else np.where(part == 0, "", part.astype(str))


def _values(seen: Part) -> tuple[int, ...]:
    """Return the numbers from 1 to the largest absolute one of `seen`; if any is negative, also from -1 downwards."""
    most, least = int(seen.max()), int(seen.min())
    bound = max(most, -least)
    positive = range(1, bound + 1)
    negative = [-number for number in positive] if least < 0 else []
    return (*positive, *negative)


def _growing(games: Sequence[Sequence[Part]], movers: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """Return `[rows, columns]`: whether the number at a square grows during the games, as a counter does.

    The canonical board may be turned for one player, so a counter may grow only in the boards of one player.
    """
    grows = []
    for players in ((0, 1), (0,), (1,)):
        seen = []
        for boards, movers_of_game in zip(games, movers, strict=True):
            pairs = zip(boards, movers_of_game, strict=True)
            seen.append([board for board, mover in pairs if mover in players])
        grows.append(_only_up(seen))
    return np.any(grows, axis=0)


def _only_up(games: Sequence[Sequence[Part]]) -> NDArray[np.bool_]:
    """Return `[rows, columns]`: whether the number never falls in any game, and rises GROWS times in one."""
    steps = [np.diff(np.abs(np.asarray(game, float)), axis=0) for game in games if game]
    often = [(step > 0).sum(axis=0) >= GROWS for step in steps]
    return np.all([(step >= 0).all(axis=0) for step in steps], axis=0) & np.any(often, axis=0)
