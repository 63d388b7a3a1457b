"""What processes say of themselves: JSON lines with one writer per file, and heartbeats."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plyzero.files import UnreadableError, open_to_append, read_file, write_file

VERSION: Final = 1
"""Of every line and heartbeat; docs/formats.md lists the fields."""

BEAT_SECONDS: Final = 2.0
TRAINER: Final = "trainer"
"""Name of the trainer's heartbeat; a worker's is `<worker>.<incarnation>`."""

MAX_LINES_BYTES: Final = 1 << 25
MAX_BEAT_BYTES: Final = 1 << 16

log = logging.getLogger(__name__)


def append_line(path: Path, fields: Mapping[str, Any]) -> None:
    """Add one line to a metrics file that only this process writes; `time` (Unix seconds) is added."""
    line = json.dumps({"version": VERSION, "time": round(time.time(), 3), **fields}) + "\n"
    with open_to_append(path) as file:
        file.write(line.encode())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a metrics file, oldest first; [] if there is no such file."""
    try:
        text = read_file(path, max_bytes=MAX_LINES_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return []
    except UnreadableError as error:
        log.warning("%s is passed over: %s", path, error.strerror)
        return []
    lines = []
    for line in text[: text.rfind("\n") + 1].splitlines():
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):  # cut off when its writer was killed
            continue
        if isinstance(fields, dict):
            lines.append(fields)
    return lines


class Heartbeat:
    """A small file that says what a process is doing, replaced every few seconds; `beats` counts up.

    Whoever reads it judges by its own clock whether the count still moves; clocks of machines are never compared.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beats = 0
        self._next = 0.0
        self._failing = False

    def beat(self, fields: Mapping[str, Any], *, force: bool = False) -> None:
        """Say `fields`, if the last time is long enough ago or `force`. A full volume is no reason to stop working."""
        now = time.monotonic()
        if now < self._next and not force:
            return
        self._next = now + BEAT_SECONDS
        self._beats += 1
        about = {"version": VERSION, "beats": self._beats, "pid": os.getpid(), "host": socket.gethostname()}
        try:
            write_file(self._path, (json.dumps({**about, **fields}) + "\n").encode(), replace=True, durable=False)
        except OSError as error:
            if not self._failing:
                log.warning("no heartbeat can be written: %s", error.strerror)
            self._failing = True
        else:
            self._failing = False


def read_heartbeat(path: Path) -> dict[str, Any] | None:
    """Return the fields of one heartbeat, None if there is none or if it is not one."""
    try:
        beat = json.loads(read_file(path, max_bytes=MAX_BEAT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    types = {"role": str, "state": str, "beats": int, "pid": int, "host": str}
    if not isinstance(beat, dict) or not all(isinstance(beat.get(key), kind) for key, kind in types.items()):
        return None
    return beat


def number(fields: Mapping[str, Any], key: str) -> float:
    """Return a number out of a heartbeat or a line, 0 if there is none, or nothing that could be one."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        return 0.0
    return float(value)


def read_heartbeats(directory: Path) -> dict[str, dict[str, Any]]:
    """Return name -> fields of every process that ever beat in this run."""
    beats = {path.stem: read_heartbeat(path) for path in sorted(directory.glob("*.json"))}
    return {name: beat for name, beat in beats.items() if beat is not None}


class Rate:
    """How fast a count has grown of late: over the last minute of the time that counts."""

    def __init__(self, *, seconds: float = 60.0) -> None:
        self._seconds = seconds
        self._marks: deque[tuple[float, float]] = deque()

    def per_second(self, count: float, at: float) -> float:
        """Return the growth up to `count` at second `at`; 0 until there is something to compare with."""
        if not self._marks or at >= self._marks[-1][0] + 1:
            self._marks.append((at, count))
        while len(self._marks) > 2 and self._marks[1][0] <= at - self._seconds:
            self._marks.popleft()
        since, before = self._marks[0]
        return (count - before) / (at - since) if at - since >= 1 else 0.0
