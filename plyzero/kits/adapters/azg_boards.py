"""Boards of alpha-zero-general as planes: arrays, lists, letters, dicts, tuples of these, and objects.

Every conversion of a board is here; one that fails says which method returned what, and what to write instead.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.user_errors import with_location

AS_ARRAY: Final = ("as_array", "to_array", "toArray", "board_to_array")
"""Methods of a board, or of the game, and functions of its module, that make an array of a board that is an object."""

MAX_PLANES: Final = 4096
MAX_VALUES: Final = 16  # different values of a part of the board that get a plane each
MAX_NUMBER: Final = 1 << 24  # larger ones are not exact in the type of observations
GROWS: Final = 4  # changes of a number in a game, all upwards, from which on it is taken for one that grows
GROWTH: Final = 4.0  # times the largest number of random games: the scale of numbers that grow
"""The limits of boards."""

WITH_PLANES: Final = (
    "write a function that makes an array of planes of a board, as for a network, and name it after the class, "
    "(planes=module:function)"
)
"""The advice for a board that is not understood."""

Part = NDArray[Any]
"""A part of a board: an array of numbers or of texts."""


class BadAnswerError(ValueError):
    """A method of the game has returned what cannot be used; the message says which one, what, and what to write."""


class View:
    """The view of the boards of a game.

    planes: a function that makes an array of a board, which the person has named; None if there is none.
    size:   the rows and columns of getBoardSize; () if there are none.
    """

    def __init__(self, game: Any, planes: Callable[[Any], Any] | None, size: tuple[int, ...]) -> None:
        self.planes, self._game, self._size = planes, game, size

    def is_object(self, board: Any) -> bool:
        """Whether a board is of a class of its own, whose content only the game's own methods know."""
        return not isinstance(board, np.ndarray | np.generic | list | tuple | dict | str | int | float)

    def parts(self, board: Any, method: str) -> list[Part]:
        """Return the arrays that `board`, which `method` has returned, consists of; a plain array is one part.

        Raises BadAnswerError.
        """
        if isinstance(board, dict):
            return self._parts_of_dict(board, method)
        if isinstance(board, tuple | list):
            if all(isinstance(row, str) for row in board) and len({*map(len, board)}) == 1:
                board = [list(row) for row in board]
            elif _is_joined(board):
                return [part for each in board for part in self.parts(each, method)]
        elif isinstance(board, str):
            letters = np.array(list(board), dtype="<U1")
            return [letters.reshape(self._size) if letters.size == math.prod(self._size or (0,)) else letters]
        elif self.is_object(board):
            board = self._array_of_object(board, method)
        return [_checked(np.asarray(board), method)]

    def channels(self, board: Any, method: str) -> list[Part]:
        """Return `board`, which `method` has returned, as channels of one shape, `[rows, columns]` each.

        Raises BadAnswerError.
        """
        if self.planes:
            found = _made_by(self.planes, method, board)
            return [*found] if found.ndim == 3 else [*_channels_of(found)]
        return joined(self.parts(board, method), method)

    def _parts_of_dict(self, board: dict[Any, Any], method: str) -> list[Part]:
        if self._size and all(_is_square(key, self._size) for key in board):
            squares = np.full(self._size, "" if any(isinstance(each, str) for each in board.values()) else 0, object)
            for key, value in board.items():
                squares[key] = value
            return [_checked(squares, method)]
        return [part for key in sorted(board, key=str) for part in self.parts(board[key], method)]

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
    """Return the array that a function of the person makes of a board, which `method` has returned."""
    name = getattr(function, "__name__", "the function")
    try:
        made = np.asarray(function(*board))
    except Exception as error:
        raise BadAnswerError(f"{name}() of the board that {method} returns raises {with_location(error)}") from error
    return _checked(made, f"{name}()")


def _is_square(key: object, size: tuple[int, ...]) -> bool:
    return (
        isinstance(key, tuple)
        and len(key) == len(size)
        and all(isinstance(each, int | np.integer) and 0 <= each < most for each, most in zip(key, size, strict=True))
    )


def _is_joined(board: Sequence[Any]) -> bool:
    """Whether a list or tuple is made of parts, and is not itself the rows of one board."""
    has_arrays = any(isinstance(each, np.ndarray) and each.ndim > 1 for each in board)
    return has_arrays or _shape_of_rows(board) is None


def _shape_of_rows(rows: Any) -> tuple[int, ...] | None:
    """Return the shape of nested lists, None of uneven ones and of dicts, () of anything that is no list."""
    if isinstance(rows, list | tuple):
        shapes = {_shape_of_rows(each) for each in rows}
        first = next(iter(shapes), ())
        return None if len(shapes) > 1 or first is None else (len(rows), *first)
    if isinstance(rows, dict):
        return None
    return np.shape(rows) if isinstance(rows, np.ndarray) else ()


def _checked(array: Part, method: str) -> Part:
    """Return an array of numbers or of texts. Raises BadAnswerError if it has anything else."""
    if array.dtype.kind == "O":
        array = _array_of_objects(array, method)
    if array.dtype.kind == "S":
        array = array.astype(str)
    if array.dtype.kind not in "biufU" or not array.size:
        what = f"an array of {array.dtype}" if array.size else "an empty array"
        raise BadAnswerError(f"{method} returns {what}, expected an array of numbers or of texts: {WITH_PLANES}")
    return array


def _array_of_objects(array: Part, method: str) -> Part:
    """Return an array of Python objects as numbers or, if any is no number, as texts; None is 0 or ""."""
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
    """Return an array as `[channels, rows, columns]`; of three dimensions the channels are the one that differs."""
    if array.ndim == 3:
        return np.moveaxis(array, -1, 0) if array.shape[0] == array.shape[1] != array.shape[2] else array
    return array[None] if array.ndim == 2 else array.reshape(1, -1, 1)


def joined(parts: Sequence[Part], method: str) -> list[Part]:
    """Return the parts of a board as channels of one shape.

    The largest part with rows and columns is the board. A smaller one is filled up with zeros; of other parts, such as
    counters, each number is a channel of its own, with this number at every square.
    """
    if len(parts) == 1:
        return [*_channels_of(parts[0])]
    boards = [_channels_of(part) for part in parts if part.ndim in (2, 3)]
    if boards:
        rows, columns = (max(board.shape[axis] for board in boards) for axis in (1, 2))
    else:
        rows, columns = max(part.size for part in parts), 1
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
    """Return whether the text of `value` says more than where it lies in memory."""
    methods: list[object] = [type(value).__str__, type(value).__repr__]
    return methods != [object.__str__, object.__repr__]


def copied(board: Any) -> Any:
    """Return a copy: some games change the board they are given, and some return the board they keep."""
    is_plain = isinstance(board, np.ndarray) and board.dtype.kind != "O"
    return board.copy() if is_plain else copy.deepcopy(board)


class Channel(NamedTuple):
    """The planes of a channel of the board.

    values:    those that have a plane each.
    scale:     of one more plane with the numbers that are not among `values`, divided by it; 0 = there is none.
    has_other: whether one more plane shows where anything else is. Without it all planes together show that.
    """

    values: tuple[Any, ...]
    scale: float = 0
    has_other: bool = False

    @property
    def planes(self) -> int:
        count = len(self.values)
        if self.scale > 0:
            count += 1
        if self.has_other:
            count += 1
        return count

    def show(self, part: Part) -> tuple[Part, Part | None]:
        """Return the planes of `part`, and what is in it that was never seen, None if nothing is."""
        if not self.values:
            return (part / self.scale)[None], None
        if isinstance(self.values[0], str):
            part = as_texts(part)
        found = part == np.array(self.values)[:, None, None]
        is_text = part.dtype.kind == "U"
        filled = part.size if is_text else np.count_nonzero(part)
        if np.count_nonzero(found) == filled:  # nearly always
            if not self.scale and not self.has_other:
                return found, None
            more = np.zeros((self.planes - len(found), *part.shape), bool)
            return np.concatenate([found, more]), None
        is_other = ~found.any(axis=0) & (is_text or part != 0)
        if self.scale:
            return np.concatenate([found, (part * is_other / self.scale)[None]]), None
        unseen = part[is_other] if is_other.any() else None
        if self.has_other:
            return np.concatenate([found, is_other[None]]), unseen
        return (found if unseen is None else found | is_other), unseen


def channel_of(games: Sequence[Sequence[Part]], movers: Sequence[Sequence[int]]) -> Channel:
    """Return how to show a channel of which the boards of some games are known.

    games:  each its boards `[rows, columns]` in order.
    movers: the player to move at each board.
    """
    if any(board.dtype.kind == "U" for game in games for board in game):
        seen = np.array([as_texts(board) for game in games for board in game])
        return Channel(tuple(np.unique(seen).tolist()[:MAX_PLANES]), has_other=True)
    seen = np.array([board for game in games for board in game])
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
    """Return a part as texts; a board without pieces may have been read as zeros, which are no text."""
    return part if part.dtype.kind == "U" else np.where(part == 0, "", part.astype(str))


def _values(seen: Part) -> tuple[int, ...]:
    """Return the numbers from 1 to the largest of `seen`, and if any is negative, those from -1 downwards as well."""
    most, least = int(seen.max()), int(seen.min())
    bound = max(most, -least)
    return (*range(1, bound + 1), *range(-1, -bound - 1 if least < 0 else 0, -1))


def _growing(games: Sequence[Sequence[Part]], movers: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """Return at which squares the number grows during the games, as a counter does, `[rows, columns]`.

    The canonical board may turn, so that a counter grows only as one player sees it.
    """
    seen_by = [
        [
            [board for board, mover in zip(*game, strict=True) if mover in players]
            for game in zip(games, movers, strict=True)
        ]
        for players in ((0, 1), (0,), (1,))
    ]
    return np.any([_only_up(boards) for boards in seen_by], axis=0)


def _only_up(games: Sequence[Sequence[Part]]) -> NDArray[np.bool_]:
    """Return where the number never falls in any game, and rises GROWS times in one."""
    steps = [np.diff(np.abs(np.asarray(game, float)), axis=0) for game in games if game]
    often = [(step > 0).sum(axis=0) >= GROWS for step in steps]
    return np.all([(step >= 0).all(axis=0) for step in steps], axis=0) & np.any(often, axis=0)
