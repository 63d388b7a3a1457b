"""Bounded readers for untrusted lines and JSON."""

from __future__ import annotations

import codecs
import io
import json
import math
import queue
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final, NoReturn, TypeVar

from plyzero.errors import UserError, shown
from plyzero.files import read_file
from plyzero.threads import start_thread
from plyzero.volume_errors import explain

MAX_LINE: Final = 1 << 22
"""Longest line, in bytes: a recorded game of 50,000 moves."""

MAX_DEPTH: Final = 32
"""Largest depth of nested lists and objects."""

MAX_DIGITS: Final = 64
"""Largest number of characters of a number; arithmetic on longer ones takes too long."""

Line = TypeVar("Line", bound=str | bytes)


def bounded_lines(source: IO[bytes] | IO[str]) -> Iterator[bytes]:
    """Yield the lines of a file, or of standard input; after MAX_LINE bytes, the rest of a line is replaced by `...`.

    They are bytes, because a stream of text raises an error at the first byte that its encoding does not know.
    """
    if source is sys.__stdin__:  # a reader of our own: Python aborts if it ends while a thread waits in sys.stdin
        source = io.BufferedReader(io.FileIO(0, closefd=False))

    def read() -> bytes:
        part: str | bytes = source.readline(MAX_LINE)
        return part.encode(errors="replace") if isinstance(part, str) else part

    def is_unfinished(part: bytes) -> bool:
        return len(part) >= MAX_LINE and not part.endswith(b"\n")

    for read_line in iter(read, b""):
        line = read_line.removeprefix(codecs.BOM_UTF8)
        if not is_unfinished(line):
            yield line
            continue
        while is_unfinished(read()):
            pass
        yield line + b"...\n"


class ArrivingLines(Iterator[Line]):
    """Lines that a thread reads ahead, so that others can wait for them. An error of the source ends them."""

    def __init__(self, source: Iterable[Line], *, is_last: Callable[[Line], bool] = lambda line: False) -> None:
        """Read the lines of `source`, none of them empty, to its end or to the line that `is_last`."""
        self._source, self._is_last = source, is_last
        self._queue = queue.Queue[Line | Exception | None](4096)
        self._first: list[Line | Exception | None] = []  # a line or the end that has arrived, but was not returned yet
        start_thread(self._read, name="input")

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the next line or the end of the input, and return whether it has come."""
        if not self._first:
            try:
                self._first.append(self._queue.get(timeout=seconds))
            except queue.Empty:
                return False
        return True

    def wait_for_line(self, seconds: float) -> bool:
        """Wait at most `seconds` for the next line, and return whether it has come."""
        return self.wait(seconds) and isinstance(self._first[0], str | bytes)

    def __next__(self) -> Line:
        found = self._first.pop() if self._first else self._queue.get()
        if found is None or isinstance(found, Exception):
            self._first.append(found)  # the end stays the end
            raise found or StopIteration
        return found

    def _read(self) -> None:
        end = None
        try:
            for line in self._source:
                self._queue.put(line)
                if self._is_last(line):
                    break
        except Exception as error:  # somebody waits for the next line
            end = error
        self._queue.put(end)


def decode(content: bytes) -> str:
    """Return the text of a file, with or without a byte order mark. Raises UnicodeDecodeError unless it is UTF-8."""
    return content.removeprefix(codecs.BOM_UTF8).decode()  # the codec utf-8-sig is a file, which may not be readable


def read_text(path: Path, form: str, *, max_bytes: int, advice: str = "") -> str:
    """Return the text of a file. Raises UserError if it cannot be read, with `advice`, or is no text of this `form`."""
    try:
        return decode(read_file(path, max_bytes=max_bytes))
    except OSError as error:
        raise UserError(f"cannot read {path}: {explain(error)}{advice}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text; expected {form}") from error


def parse_object(text: str | bytes) -> dict[str, object]:
    """Return the JSON object in `text`, a line or a file from outside, with or without a byte order mark.

    Raises ValueError with the reason, also for text that is longer than MAX_LINE or nested deeper than MAX_DEPTH, and
    for a number that has more than MAX_DIGITS characters or is not finite.
    """
    try:
        if len(text) > MAX_LINE:
            raise ValueError(f"longer than {MAX_LINE} bytes")
        decoded = decode(text) if isinstance(text, bytes) else text.removeprefix("\ufeff")
        found = json.loads(
            decoded,
            parse_int=_bounded_integer,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
        if _depth(found) > MAX_DEPTH:
            raise RecursionError
    except RecursionError as error:
        raise ValueError(f"expected a JSON object, got more than {MAX_DEPTH} brackets inside one another") from error
    except ValueError as error:
        if kind := _kind(text):
            example = '{"moves": ["4", "4"], "winner": "first"}'
            raise ValueError(f"this is {kind}; expected a JSON object, such as {example} for a game") from error
        reason = "it is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"expected a JSON object: {reason}") from error
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object, got {shown(found)}")
    return found


def _kind(text: str | bytes) -> str | None:
    """Return the kind of a file that people mistake for games as JSON lines; None if it is none of the known kinds."""
    kinds = {"(;": "an SGF file", "[Event": "a PGN file", "PK\x03\x04": "a zip file, as the segments of a run are"}
    start = text[:20].decode(errors="replace") if isinstance(text, bytes) else text[:20]
    start = "".join(start.split())
    return next((kind for beginning, kind in kinds.items() if start.startswith(beginning)), None)


def _depth(value: object) -> int:
    """Return the depth of nested lists and objects, 0 for another value."""
    level: list[object] = [value]
    depth = 0
    while containers := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = []
        for each in containers:
            level += each.values() if isinstance(each, dict) else each
    return depth


def _bounded(text: str) -> str:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} characters, more than {MAX_DIGITS}")
    return text


def _bounded_integer(text: str) -> int:
    return int(_bounded(text))


def _finite(text: str) -> float:
    number = float(_bounded(text))
    if not math.isfinite(number):
        raise ValueError(f"the number {text} is too large")
    return number


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")  # Python's parser accepts NaN and Infinity
