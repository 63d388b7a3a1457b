"""Metrics of processes as they are written: lines of JSON, heartbeats, and scalars for TensorBoard."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import google_crc32c

from plyzero.files import append, interval, open_to_append, write_file
from plyzero.threads import thread_error
from plyzero.volume_errors import FileErrors

VERSION: Final = 1
"""Format version of every line and heartbeat; docs/formats.md lists the fields."""

BEAT_SECONDS: Final = 2.0
"""Time between two heartbeats of a process, in seconds; longer in a bucket."""

TRAINER: Final = "trainer"
"""Name of the trainer's heartbeat; a worker's is `<worker>.<incarnation>`."""

CURSOR: Final = "cursor.json"
"""Name of the file beside the trainer's states that says which segments it has read."""

LINE_SECONDS: Final = 60.0
"""Time between two lines of a worker, in seconds, during the first day of its process."""


def append_line(path: Path, fields: Mapping[str, object]) -> None:
    """Append one line to a metrics file that only this process writes; the field `time` (Unix seconds) is added."""
    line = json.dumps({"version": VERSION, "time": round(time.time(), 3), **fields}) + "\n"
    append(path, line.encode())


class SparseLines:
    """Appends a line a minute to a metrics file; after a day more and more rarely: about 10,000 lines in a year."""

    def __init__(
        self, path: Path, *, seconds: float = LINE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """seconds: time between two lines at first."""
        self._path, self._seconds, self._clock = path, seconds, clock
        self._began = clock()
        self._next = self._began + seconds
        self._file_errors = FileErrors()

    def add(self, fields: Mapping[str, object], *, force: bool = False) -> None:
        """Append `fields` if a line is due, or if `force`. An OSError is only logged."""
        if not self.begin(force=force):
            return
        with self._file_errors.skipping(self._path, "cannot be written", writes=True):
            append_line(self._path, fields)

    def begin(self, *, force: bool = False) -> bool:
        """Return whether a line is due, or `force`; then the next one is due later."""
        now = self._clock()
        if now < self._next and not force:
            return False
        self._next = now + max(self._seconds, (now - self._began) / 1440)  # the lines of a day
        return True


class Heartbeat:
    """A small file with the state of a process, replaced at an interval; its field `beats` is a counter.

    A reader measures with its own clock whether the counter still changes; clocks of two machines are never compared.
    """

    def __init__(self, *paths: Path) -> None:
        """Make a heartbeat with a copy at each of `paths`."""
        self._paths = paths
        self._interval = max(interval(path.parent, BEAT_SECONDS) for path in paths)
        self._beats, self._began = 0, time.monotonic()
        self._next = 0.0
        self._file_errors = FileErrors()

    @property
    def is_due(self) -> bool:
        """Whether `beat` would write."""
        return time.monotonic() >= self._next

    def beat(self, fields: Mapping[str, object], *, force: bool = False) -> None:
        """Write `fields` if the next heartbeat is due, or if `force`. An OSError is only logged."""
        if not (force or self.is_due):
            return
        now = time.monotonic()
        self._next = now + self._interval
        self._beats += 1
        about: dict[str, object] = {"version": VERSION, "beats": self._beats, "seconds": round(now - self._began, 1)}
        about |= {"pid": os.getpid(), "host": socket.gethostname()}
        about |= {"thread_error": error} if (error := thread_error()) else {}
        content = (json.dumps({**about, **fields}) + "\n").encode()
        for path in self._paths:
            with self._file_errors.skipping(path, "cannot be written", writes=True):
                write_file(path, content, replace=True, durable=False)


class EventFile:
    """Appends scalars for TensorBoard to an event file of this process, which is created with the first of them.

    It is a sequence of TFRecords: the size of the content (u8), a checksum of these 8 bytes, the content and its
    checksum. The content is an Event of TensorFlow's event.proto in the encoding of protocol buffers.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path: Path | None = None
        self._file_errors = FileErrors()

    def add(self, step: int, scalars: Mapping[str, float | None]) -> None:
        """Append the values by tag at a step; None is left out. An OSError is only logged."""
        now, records = time.time(), b""
        time_field = b"\x09" + struct.pack("<d", now)
        if self._path is None:
            records = _record(time_field + _bytes_field(3, b"brain.Event:2"))
        values = ((tag.encode(), value) for tag, value in scalars.items() if value is not None)
        summary = (_bytes_field(1, tag) + b"\x15" + struct.pack("<f", value) for tag, value in values)
        content = b"".join(_bytes_field(1, value) for value in summary)
        records += _record(time_field + b"\x10" + _varint(step) + _bytes_field(5, content))
        path = self._path or self._directory / f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}"
        with self._file_errors.skipping(self._directory, "cannot be written", writes=True):
            self._directory.mkdir(parents=True, exist_ok=True)
            with open_to_append(path) as file:
                file.write(records)
            self._path = path


def _record(content: bytes) -> bytes:
    size = struct.pack("<Q", len(content))
    return size + _checksum(size) + content + _checksum(content)


def _checksum(content: bytes) -> bytes:
    """Return the CRC-32C of `content`, masked as a TFRecord has it."""
    crc = google_crc32c.value(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Return a number in groups of 7 bits, the lowest first; the highest bit of a byte is set if more follow."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


class Rate:
    """The rate at which a count has grown during the most recent minute."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, float]] = deque()

    def per_second(self, count: float, at: float) -> float:
        """Return the growth per second up to `count` at the time `at`, in seconds; 0 during the first second."""
        if not self._marks or at >= self._marks[-1][0] + 1:
            self._marks.append((at, count))
        while len(self._marks) > 2 and self._marks[1][0] <= at - 60:
            self._marks.popleft()
        first_at, first_count = self._marks[0]
        return (count - first_count) / (at - first_at) if at - first_at >= 1 else 0.0
