"""What processes say of themselves: JSON lines with one writer per file, and heartbeats."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plyzero.files import write_file

VERSION = 1
"""Of every line and heartbeat; docs/formats.md lists the fields."""


def append_line(path: Path, fields: Mapping[str, Any]) -> None:
    """Add one line to a metrics file that only this process writes; `time` (Unix seconds) is added."""
    line = json.dumps({"version": VERSION, "time": round(time.time(), 3), **fields}) + "\n"
    with path.open("a") as file:
        file.write(line)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a metrics file, oldest first; [] if there is no such file."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    lines = []
    for line in text[: text.rfind("\n") + 1].splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:  # cut off when its writer was killed
            continue
    return lines


class Heartbeat:
    """A small file that says what a process is doing, replaced every few seconds; `beats` counts up.

    Whoever reads it judges by its own clock whether the count still moves; clocks of machines are never compared.
    """

    def __init__(self, path: Path, *, seconds: float = 5.0) -> None:
        self._path, self._seconds = path, seconds
        self._beats = 0
        self._next = 0.0

    def beat(self, fields: Mapping[str, Any], *, force: bool = False) -> None:
        """Say `fields`, if the last time is long enough ago or `force`."""
        now = time.monotonic()
        if now < self._next and not force:
            return
        self._next = now + self._seconds
        self._beats += 1
        about = {"version": VERSION, "beats": self._beats, "pid": os.getpid(), "host": socket.gethostname()}
        write_file(self._path, (json.dumps({**about, **fields}) + "\n").encode(), replace=True)


def read_heartbeats(directory: Path) -> dict[str, dict[str, Any]]:
    """Return name -> fields of every process that ever beat in this run."""
    found = {}
    for path in sorted(directory.glob("*.json")):
        try:
            beat = json.loads(path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            continue
        if isinstance(beat, dict) and {"role", "state"} <= beat.keys():
            found[path.stem] = beat
    return found
