"""Files made wrong on purpose, limits on the time and memory of their readers, and calls that fail."""

import ctypes
import itertools
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plyzero.rules.catalog import GameSpec
from plyzero.run.journals import Journal
from plyzero.run.records import Games, JournalName


class TooSlow(BaseException):
    """Not an Exception: no reader may take it for damage."""


@contextmanager
def at_most(*, seconds: int = 10, megabytes: int = 64) -> Iterator[None]:
    """Fail what takes more time, or more memory than there was before."""

    def stop(*_: object) -> None:
        raise TooSlow

    def memory(key: str) -> int:
        return int(re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) >> 10

    ctypes.CDLL(None).malloc_trim(0)  # otherwise free memory could hide allocations
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, handler = memory("VmRSS"), signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    assert memory("VmHWM") - before <= megabytes


class Harm:
    """Makes a directory when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def journal(directory: Path, game: GameSpec, batches: list[Games]) -> Path:
    """Return the path of a journal whose owner is dead."""
    made = Journal(directory, game, JournalName("w0", "0123abcd", 0))
    for batch in batches:
        made.append(batch)
    os.close(made._descriptor)
    return directory / "w0.0123abcd-00000000.wal"


def with_value(games: Games, group: str, field: str, value: Any, at: int = 0) -> Games:
    """Return `games`, with one number in them changed."""
    getattr(games, group)[field][at] = value
    return games


def failing(
    error: int, times: int | None = None, *, then: Callable[..., Any] = lambda *_, **__: None
) -> Callable[..., Any]:
    """A function that raises an OSError, for ever or this many times; it then does what `then` does."""
    left = itertools.repeat(True) if times is None else itertools.repeat(True, times)

    def call(*arguments: Any, **options: Any) -> Any:
        if next(left, False):
            raise OSError(error, os.strerror(error))
        return then(*arguments, **options)

    return call


def at_once(count: int, work: Callable[[int], object]) -> None:
    """Call `work` with 0, 1, ... in as many threads, which begin at the same moment, and wait for all of them."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> None:
        barrier.wait()
        work(number)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(begin, range(count)))


NOT_JSON = (
    *(b"", b"\0" * 1000, b"\xff\xfe\x00", b"{", b"null", b"[]", b"3", b'"x"', b"NaN", b"-Infinity", b"\n" * 1000),
    *(b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 50_000, b"{" * 60_000, b"1" * 60_000, b"x" * 70_000),
    b'{"beats": ' + b"1" * 5000 + b"}",
)
"""Bytes that are no JSON object, or one that nobody writes, for every reader of JSON."""


def put(directory: Path, name: str, content: Any) -> Path:
    """Write a file of these bytes, or of this object as one line of JSON."""
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode() + b"\n")
    return path
