"""The symmetries of getSymmetries, found by its images of a board of numbered squares and of a numbered policy."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.kits.adapters.azg_boards import BadAnswerError, Channel, Part
from plyzero.kits.adapters.azg_calls import Calls
from plyzero.rules.symmetry import Symmetry

Array = NDArray[np.intp]
"""An array of numbers of squares or of actions."""

log = logging.getLogger(__name__)

LARGEST: Final = {"b": 2, "i1": 127, "u1": 255, "f2": 2048, "i2": 1 << 15, "u2": 1 << 15}
"""Type of a board -> how many different numbers its squares can have; in other types there are enough."""

LETTER: Final = 0x4E00
"""The first letter of those that represent numbers on a board of texts; they have no capitals."""


def proposed_symmetries(name: str, calls: Calls, channels: Sequence[Channel], added: int) -> Iterator[Symmetry]:
    """Yield the symmetries of getSymmetries. If it fails, log a warning with the reason, and yield none.

    added: number of planes after those of `channels`; they have one number at all squares.
    """
    if calls.view.is_object(calls.start) or calls.view.planes:
        return
    try:
        with calls.tried():
            images = _images(calls, lambda board, policy: _ask(calls, board, policy))
    except ValueError as error:  # it may refuse such a board; the search can do without symmetries
        log.warning("%s: training goes on without symmetries: %s, when it is given a board of numbers", name, error)
        return
    numbers = _images(calls, lambda board, policy: [(board, policy)])[0][0]
    for image, actions in images:
        if image.shape == numbers.shape and sorted(actions) == list(range(calls.num_actions)):
            sources = _sources(numbers.reshape(len(numbers), -1), image.reshape(len(image), -1))
            if sources is not None:
                yield Symmetry(_planes(sources, channels, added), np.argsort(actions))


def _ask(calls: Calls, board: Any, policy: NDArray[Any]) -> list[Any]:
    takes_valid = len(inspect.signature(calls.game.getSymmetries).parameters) > 2
    if not takes_valid:
        return list(calls.call("getSymmetries", board, policy))
    # The moves of a real position: with others, compiled code may write outside of its arrays.
    legal = calls.legal(calls.canonical(calls.start, 0))
    return list(calls.call("getSymmetries", board, policy, np.isin(policy, legal)))


def _images(calls: Calls, ask: Callable[[Any, NDArray[Any]], list[Any]]) -> list[tuple[Array, Array]]:
    """Return the images that `ask` returns for a numbered board and a numbered policy.

    Squares have the numbers from 1 on, and 0 in the padding of channels. A board of a small type is numbered in several
    passes, each with one digit of the numbers.
    """
    parts = calls.view.parts(calls.start, "getInitBoard")
    count = sum(part.size for part in parts)
    base = min(_base(part) for part in parts)
    found: list[tuple[Array, Array]] = []
    factor = 1
    while factor <= count:
        answer = ask(_numbered(calls.start, factor, base), np.arange(calls.num_actions, dtype=np.float64))
        passed = [(_joined(calls, each[0]), np.asarray(each[1], float).ravel().astype(int)) for each in answer]
        if found and [actions.tolist() for _, actions in found] != [actions.tolist() for _, actions in passed]:
            raise BadAnswerError("getSymmetries returns other images of the moves for another board")
        before = found or [(np.zeros_like(image), actions) for image, actions in passed]
        found = [(image + factor * digit, actions) for (image, actions), (digit, _) in zip(before, passed, strict=True)]
        factor *= base
    return found


def _joined(calls: Calls, board: Any) -> Array:
    """Return the channels of a numbered board as numbers."""
    return np.array([_as_numbers(part) for part in calls.view.channels(board, "getSymmetries")])


def _as_numbers(part: Part) -> Array:
    if part.dtype.kind != "U":
        return part.astype(int)
    return np.array([ord(each) - LETTER if each else 0 for each in part.ravel().tolist()]).reshape(part.shape)


def _base(part: Part) -> int:
    """Return the number of different numbers that a square of a part can have."""
    kind = part.dtype.kind
    if kind == "U":
        return 10_000
    name = kind if kind == "b" else f"{kind}{part.dtype.itemsize}"
    return LARGEST.get(name, 1 << 20)


def _numbered(board: Any, factor: int, base: int) -> Any:
    """Return a board like `board` whose squares have a digit of their number: 1, 2, ... through all parts."""
    counter = itertools.count(1)

    def numbered(part: Any) -> Any:
        if isinstance(part, dict):
            by_key = {key: numbered(part[key]) for key in sorted(part, key=str)}
            return {key: by_key[key] for key in part}
        if isinstance(part, tuple | list):
            images = [numbered(each) for each in part]
            return type(part)(*images) if hasattr(part, "_fields") else type(part)(images)
        array = np.array(list(part)) if isinstance(part, str) else np.asarray(part)
        digits = [next(counter) // factor % base for _ in range(array.size)]
        if array.dtype.kind == "U":
            letters = [chr(LETTER + digit) for digit in digits]
            return "".join(letters) if isinstance(part, str) else np.array(letters).reshape(array.shape)
        image = np.array(digits).reshape(array.shape).astype(array.dtype)
        return image if isinstance(part, np.ndarray) else image.item()

    return numbered(board)


def _sources(numbers: Array, image: Array) -> Array | None:
    """Return for each square of the image its source in the same channel; None if it comes from another channel.

    numbers, image: `[channels, squares]`. A channel with one number at all squares must stay unchanged.
    """
    sources = np.empty_like(image)
    stay = np.arange(image.shape[1])
    for channel, (own, moved) in enumerate(zip(numbers, image, strict=True)):
        if len(stay) > 1 and (own == own[0]).all():
            if not (moved == own[0]).all():
                return None
            sources[channel] = stay
        else:
            places = {number: at for at, number in enumerate(own.tolist()) if number}
            if not set(moved[moved > 0].tolist()) <= places.keys():
                return None
            sources[channel] = [places.get(number, at) for at, number in enumerate(moved.tolist())]
            if not np.array_equal(np.sort(sources[channel]), stay):
                return None
    return sources


def _planes(sources: Array, channels: Sequence[Channel], added: int) -> Array:
    """Return the source of each number of the observation; the numbers of the `added` planes stay."""
    size = sources.shape[1]
    by_plane: list[Array] = []
    for source, channel in zip(sources, channels, strict=True):
        by_plane += [source for _ in range(channel.planes)]
    by_plane += [np.arange(size) for _ in range(added)]
    return np.concatenate([source + size * plane for plane, source in enumerate(by_plane)]).astype(np.intp)
