"""Numbers in texts that are numbers of the state: in "37 of 100" the 37 is a score, whatever its value is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

FEWEST: Final = 4
"""Number of different values from which on a number is looked for in the state; fewer may agree by chance."""

MAX_DIGITS: Final = 9

DIGITS: Final = re.compile(r"(\d+)")

Numbers = NDArray[np.int64]


class Number(NamedTuple):
    """A number of the state, which a text shows: `factor` times an integer, and `plus` more.

    at, size, is_signed: the place of the integer's first byte, the lowest one, how many it has, and its kind.
    """

    at: int
    size: int
    is_signed: bool
    factor: int
    plus: int

    def value(self, state: NDArray[np.uint8]) -> int:
        """Return the number in a state, `[S]`."""
        content = state[self.at : self.at + self.size].tobytes()
        return self.factor * int.from_bytes(content, "little", signed=self.is_signed) + self.plus


Template = tuple[str | Number, ...]
"""A text with numbers of the state in it."""


def filled(template: Template, state: NDArray[np.uint8]) -> str:
    """Return the text of a template in a state, `[S]`."""
    return "".join(part if isinstance(part, str) else str(part.value(state)) for part in template)


class StateNumbers:
    """The integers of many states, among which the numbers of texts are looked for."""

    def __init__(self, states: NDArray[np.uint8], record: np.dtype[np.void]) -> None:
        """Read the integers of `states`, `[N, S]`."""
        self._places: list[tuple[int, int, bool]] = []
        columns: list[Numbers] = []
        for field, offset, *_ in (record.fields or {}).values():
            if field.base.kind not in "iu" or field.base.str.startswith(">"):
                continue
            size = field.base.itemsize
            for at in range(offset, offset + field.itemsize, size):
                content = np.ascontiguousarray(states[:, at : at + size]).view(field.base)[:, 0]
                if len(np.unique(content)) >= FEWEST:
                    self._places.append((at, size, field.base.kind == "i"))
                    columns.append(content.astype(np.int64))
        self._values = np.column_stack(columns) if columns else np.zeros((len(states), 0), np.int64)

    def replaced(self, texts: Sequence[str], column: Numbers, rows: Numbers, numbers: dict[Any, int]) -> Numbers:
        """Return `column` with other numbers, where a template stands for several texts.

        texts:   of all numbers in `column`.
        rows:    the states to which the texts of `column` belong.
        numbers: the number of each text and template; new templates are added.
        """
        different, places = np.unique(column, return_inverse=True)
        if len(different) < FEWEST or not self._places:
            return column
        parts = [DIGITS.split(texts[number]) for number in different]
        frames: dict[tuple[str, ...], list[int]] = {}
        for number, part in enumerate(parts):
            frames.setdefault(tuple(part[::2]), []).append(number)
        result = different.copy()
        for alike in frames.values():
            if len(alike) >= FEWEST:
                chosen = np.isin(places, alike)
                found = self._numbers_in([parts[each][1::2] for each in alike], alike, places[chosen], rows[chosen])
                for each in alike if found else ():
                    template = [found.get(at // 2, part) if at % 2 else part for at, part in enumerate(parts[each])]
                    result[each] = numbers.setdefault(_joined(template), len(numbers))
        return result[places]

    def _numbers_in(
        self, digits: list[list[str]], alike: list[int], places: Numbers, rows: Numbers
    ) -> dict[int, Number]:
        """Return the numbers of the state by their places among the digits of texts that differ in digits alone."""
        found = {}
        at_text = np.searchsorted(alike, places)  # they ascend
        for at, each in enumerate(zip(*digits, strict=True)):
            is_plain = all(len(text) <= MAX_DIGITS and str(int(text)) == text for text in each)
            if is_plain and len(set(each)) >= FEWEST:
                number = self._number(np.array([int(text) for text in each])[at_text], rows)
                if number:
                    found[at] = number
        return found

    def _number(self, shown: Numbers, rows: Numbers) -> Number | None:
        """Return the number of the state that is shown in these rows; None if there is none."""
        values = self._values[rows]
        for factor in (1, -1):
            left = shown[:, None] - factor * values
            for place in np.flatnonzero((left == left[0]).all(axis=0))[:1].tolist():
                at, size, is_signed = self._places[place]
                return Number(at, size, is_signed, factor, int(left[0, place]))
        return None


def _joined(parts: Sequence[str | Number]) -> Template:
    """Return a template in which no two texts follow one another."""
    found: list[str | Number] = []
    for part in parts:
        if found and isinstance(part, str) and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return tuple(found)
