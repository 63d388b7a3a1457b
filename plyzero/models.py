"""Published models: immutable ONNX files whose names order them and carry their digest; nothing points to the newest.

The newest is the highest name whose content matches its digest, so there is no pointer that could go stale.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from plyzero.catalog import GameSpec
from plyzero.errors import UserError
from plyzero.files import UnreadableError, read_file, write_file
from plyzero.metrics import read_lines
from plyzero.network import ModelRefusedError, Network

NAME = re.compile(r"(?P<fence>\d{6})-(?P<step>\d{9})-(?P<digest>[0-9a-f]{8})\.onnx")

MOST_BYTES: Final = 1 << 31
"""An ONNX file cannot be larger."""

TRIES: Final = 3
"""How often a model that is refused is looked at again: over NFS a file may not be all there at first."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, order=True)
class ModelName:
    """What a file name tells. Names order by fence, then by step.

    fence:  number of the trainer's start; a later trainer's models come after all of an earlier one's.
    step:   optimiser steps behind the weights.
    digest: first 8 hex digits of the content's SHA-256.
    """

    fence: int
    step: int
    digest: str

    def __str__(self) -> str:
        return f"{self.fence:06d}-{self.step:09d}-{self.digest}.onnx"

    @staticmethod
    def parse(name: str) -> ModelName | None:
        """Return what `name` tells, None if it is not the name of a model."""
        match = NAME.fullmatch(name)
        parsed = ModelName(int(match["fence"]), int(match["step"]), match["digest"]) if match else None
        return parsed if str(parsed) == name else None


def publish_model(directory: Path, content: bytes, *, fence: int, step: int) -> ModelName:
    """Put an ONNX file into `directory` for everybody to load."""
    name = ModelName(fence, step, _digest(content))
    write_file(directory / str(name), content, replace=True)
    return name


def list_models(directory: Path) -> list[ModelName]:
    """Return the names of all models, newest first."""
    names = (ModelName.parse(path.name) for path in directory.glob("*.onnx"))
    return sorted((name for name in names if name), reverse=True)


def load_model(directory: Path, name: ModelName, game: GameSpec, *, threads: int = 1) -> Network:
    """Return a network ready to evaluate. Raises ModelRefusedError if the file is damaged or does not fit the game."""
    try:
        content = read_file(directory / str(name), most=MOST_BYTES)
    except UnreadableError as error:
        raise ModelRefusedError(f"{name}: {error.strerror}") from error
    if _digest(content) != name.digest:
        raise ModelRefusedError(f"{name}: its content has digest {_digest(content)}, so it is damaged")
    return Network(content, game, label=str(name), fence=name.fence, step=name.step, threads=threads)


def load_newest(directory: Path, game: GameSpec, *, step: int | None = None, threads: int = 1) -> Network | None:
    """Return the newest model that loads, or the newest of `step`; None if nothing has been published yet.

    Raises UserError where there are models but none is of `step`, or none loads.
    """
    names = list_models(directory)
    wanted = [name for name in names if step is None or name.step == step]
    if names and not wanted:
        steps = " ".join(str(name.step) for name in names[:8])
        raise UserError(f"no model of step {step} in {directory}; the newest are {steps}")
    refused = ""
    for name in wanted:
        try:
            return load_model(directory, name, game, threads=threads)
        except (ModelRefusedError, FileNotFoundError) as error:
            refused = refused or str(error)
            log.warning("%s", error)
    if refused:
        raise UserError(f"no model in {directory} can be used: {refused}")
    return None


def best_model(directory: Path, metrics: Path) -> ModelName:
    """Return the model with the most points against the fixed opponents of `train`, the newest of equals.

    Raises UserError where no model that is still there was measured.
    """
    points = dict(filter(None, map(_points, read_lines(metrics / "rating.jsonl"))))
    measured = [name for name in list_models(directory) if str(name) in points]
    if not measured:
        raise UserError(f"no model in {directory} has been measured, which `plyzero train` does; use the newest")
    return max(measured, key=lambda name: (points[str(name)], name))


def _points(line: dict[str, Any]) -> tuple[str, float] | None:
    try:
        return str(line["model"]), sum(float(won + drawn / 2) for won, drawn, _ in line["scores"].values())
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):  # not a line of ours
        return None


class ModelWatch:
    """Keeps a worker on the newest model: file events wake it, and a poll every few seconds is the truth.

    Over NFS and FUSE no event arrives; the poll finds the model all the same.
    """

    def __init__(self, directory: Path, game: GameSpec, *, poll_seconds: float, threads: int) -> None:
        self._directory, self._game = directory, game
        self._poll_seconds, self._threads = poll_seconds, threads
        self._woken = threading.Event()
        self._next_poll = 0.0
        self._current: ModelName | None = None
        self._refused: dict[ModelName, int] = {}  # how often
        self._observer = Observer()

    def __enter__(self) -> Self:
        handler = _Wake(self._woken)
        try:
            self._observer.schedule(handler, str(self._directory), recursive=False)
            self._observer.start()
        except OSError as error:  # the system's limit on watches, say
            log.warning("no file events (%s): polling every %g s", error, self._poll_seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def newer(self) -> Network | None:
        """Return a network newer than the last one returned, or None. Cheap enough to ask before every batch.

        A model that is damaged or does not fit is refused, with one warning, and never stands in the way of the next.
        """
        now = time.monotonic()
        if not self._woken.is_set() and now < self._next_poll:
            return None
        self._woken.clear()
        self._next_poll = now + self._poll_seconds
        for name in list_models(self._directory):
            if self._current is not None and name <= self._current:
                return None
            if self._refused.get(name, 0) >= TRIES:
                continue
            try:
                network = load_model(self._directory, name, self._game, threads=self._threads)
            except FileNotFoundError:
                continue  # retired while we looked
            except ModelRefusedError as error:
                if name not in self._refused:
                    log.warning("keeping the old model: %s", error)
                self._refused[name] = self._refused.get(name, 0) + 1
                continue
            self._current = name
            return network
        return None

    def wait(self, seconds: float) -> None:
        """Sleep until a file event or for `seconds`."""
        self._woken.wait(seconds)


class _Wake(FileSystemEventHandler):
    def __init__(self, woken: threading.Event) -> None:
        self._woken = woken

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in ("created", "moved", "modified"):
            self._woken.set()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
