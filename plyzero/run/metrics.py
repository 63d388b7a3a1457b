"""Metrics of processes: files of JSON lines with one writer each, heartbeats, and scalars for TensorBoard."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NotRequired, TypedDict

import google_crc32c

from plyzero.files import (
    TEMPORARY,
    append,
    interval,
    list_files,
    list_names,
    open_to_append,
    read_file,
    read_files,
    read_part,
    write_file,
)
from plyzero.threads import thread_error
from plyzero.volume_errors import FileErrors, UnreadableError

VERSION: Final = 1
"""Format version of every line and heartbeat; docs/formats.md lists the fields."""

BEAT_SECONDS: Final = 2.0
"""Time between two heartbeats of a process, in seconds; longer in a bucket."""

TRAINER: Final = "trainer"
"""Name of the trainer's heartbeat; a worker's is `<worker>.<incarnation>`."""

PART_BYTES: Final = 1 << 20
"""Largest part of a file of JSON lines that is read at once, and longest line, in bytes."""

LINE_SECONDS: Final = 60.0
"""Time between two lines of a worker, in seconds, during the first day of its process."""

MAX_BEAT_BYTES: Final = 1 << 16
"""Largest size of a heartbeat that is read, in bytes."""


def append_line(path: Path, fields: Mapping[str, object]) -> None:
    """Append one line to a metrics file that only this process writes; the field `time` (Unix seconds) is added."""
    line = json.dumps({"version": VERSION, "time": round(time.time(), 3), **fields}) + "\n"
    append(path, line.encode())


class NewLines:
    """Reads a file of JSON lines that its writer still appends to, every line once, however long the file is.

    offset: where the next line begins, in bytes.
    """

    def __init__(self, path: Path, *, offset: int = 0) -> None:
        self._path, self.offset = path, offset

    def read(self) -> Iterator[dict[str, object]]:
        """Yield the lines that were completed since the last call, oldest first; none if there is no such file.

        Raises OSError if the file cannot be read; the next call continues after the last line that was yielded.
        """
        with suppress(FileNotFoundError, UnreadableError):
            while part := read_part(self._path, self.offset, max_bytes=PART_BYTES):
                *lines, rest = part.split(b"\n")
                if not lines and len(part) < PART_BYTES:
                    return
                for line in lines:
                    self.offset += len(line) + 1
                    try:
                        fields = json.loads(line.decode(errors="replace"))
                    except (ValueError, RecursionError):  # truncated when its writer was killed
                        continue
                    if isinstance(fields, dict):
                        yield fields
                self.offset += 0 if lines else len(rest)  # a line that is too long is passed over


def read_lines(path: Path) -> Iterator[dict[str, object]]:
    """Yield every complete line of a file of JSON lines, oldest first; see `NewLines.read`."""
    return NewLines(path).read()


def last_lines(path: Path, *, most: int = 200) -> list[dict[str, object]]:
    """Return the last complete lines, at most `most`, of a file of JSON lines, oldest first. Only its end is read."""
    size = list_files(path.parent).get(path.name, 0)
    return list(deque(NewLines(path, offset=max(0, size - PART_BYTES)).read(), maxlen=most))


def last_line(path: Path) -> dict[str, object] | None:
    """Return the last complete line of a file of JSON lines; None if there is none. Only its end is read."""
    return next(iter(last_lines(path, most=1)), None)


class SparseLines:
    """Appends a line a minute to a metrics file; after a day more and more rarely: about 10,000 lines in a year."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._began = clock()
        self._next = self._began + LINE_SECONDS
        self._file_errors = FileErrors()

    def add(self, fields: Mapping[str, object], *, force: bool = False) -> None:
        """Append `fields` if a line is due, or if `force`. An OSError is only logged."""
        now = self._clock()
        if now < self._next and not force:
            return
        self._next = now + max(LINE_SECONDS, (now - self._began) / 1440)  # the lines of a day
        with self._file_errors.skipping(self._path, "cannot be written", writes=True):
            append_line(self._path, fields)


class Beat(TypedDict):
    """A heartbeat as it is read: the fields of every process, which are checked, and some of a role, which are not.

    Other fields, which docs/formats.md lists, are read with `number`.
    """

    role: str
    state: str
    beats: int
    pid: int
    host: str
    cursor: NotRequired[object]
    warning: NotRequired[object]
    done: NotRequired[object]


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

    def beat(self, fields: Mapping[str, object], *, force: bool = False) -> None:
        """Write `fields` if the next heartbeat is due, or if `force`. An OSError is only logged."""
        now = time.monotonic()
        if now < self._next and not force:
            return
        self._next = now + self._interval
        self._beats += 1
        about: dict[str, object] = {"version": VERSION, "beats": self._beats, "seconds": round(now - self._began, 1)}
        about |= {"pid": os.getpid(), "host": socket.gethostname()}
        about |= {"thread_error": error} if (error := thread_error()) else {}
        content = (json.dumps({**about, **fields}) + "\n").encode()
        for path in self._paths:
            with self._file_errors.skipping(path, "cannot be written", writes=True):
                write_file(path, content, replace=True, durable=False)


def read_heartbeat(path: Path) -> Beat | None:
    """Return one heartbeat, None if the file does not exist, cannot be read or is not a heartbeat."""
    try:
        return _parse_heartbeat(read_file(path, max_bytes=MAX_BEAT_BYTES))
    except OSError:
        return None


def _parse_heartbeat(content: bytes) -> Beat | None:
    try:
        beat: Beat = json.loads(content)
    except (ValueError, RecursionError):
        return None
    types = {"role": str, "state": str, "beats": int, "pid": int, "host": str}
    if not isinstance(beat, dict) or not all(isinstance(beat.get(key), kind) for key, kind in types.items()):
        return None
    return beat


def first_beat(directory: Path) -> dict[str, object]:
    """Return the fields of a trainer that starts: those of its last heartbeat in `directory`, by whose credit workers
    know whether to wait."""
    last: Mapping[str, object] = read_heartbeat(directory / f"{TRAINER}.json") or {}
    own = ("version", "beats", "pid", "host", "thread_error", "done", "budget")
    return {**{key: value for key, value in last.items() if key not in own}, "role": TRAINER, "state": "starting"}


def figure(fields: Mapping[str, object], key: str) -> float | None:
    """Return the number `key` of a heartbeat or a line; None if it is missing or not a plausible number."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        return None
    return float(value)


def number(fields: Mapping[str, object], key: str) -> float:
    """Return the number `key` of a heartbeat or a line; 0 if it is missing or not a plausible number."""
    return figure(fields, key) or 0.0


def read_heartbeats(directory: Path, *, before: Mapping[str, Beat] | None = None) -> dict[str, Beat]:
    """Return name -> heartbeat of all processes in `directory`, including those that have ended.

    before: the heartbeats of an earlier call, used for files that cannot be read at the moment.

    Raises OSError if the directory exists and cannot be read.
    """
    beats: dict[str, Beat | None] = {}
    names = sorted(list_names(directory))
    paths = [directory / name for name in names if name.endswith(".json") and not name.startswith(TEMPORARY)]
    for path, found in zip(paths, read_files(paths, max_bytes=MAX_BEAT_BYTES), strict=True):
        if isinstance(found, bytes):
            beats[path.stem] = _parse_heartbeat(found)
        elif not isinstance(found, FileNotFoundError | UnreadableError):
            beats[path.stem] = (before or {}).get(path.stem)
    return {name: beat for name, beat in beats.items() if beat is not None}


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


def select_scalars(line: Mapping[str, object]) -> dict[str, float | None]:
    """Return the scalars for TensorBoard of a line of the trainer's metrics, by tag."""
    fields = {
        "loss/policy": "policy_loss",
        "loss/value": "value_loss",
        "learned/policy": "policy_learned",
        "learned/value": "value_learned",
        "learned/policy_window": "window_policy_learned",
        "learned/value_window": "window_value_learned",
        "run/replay_ratio": "replay_ratio",
        "run/games": "games",
        "run/positions": "positions",
    }
    return {tag: figure(line, field) for tag, field in fields.items()}


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
