"""Retention: the trainer removes old segments, models and heartbeats, so that the size of the volume is bounded."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

from plyzero.errors import UserError
from plyzero.files import TEMPORARY, free_bytes, remove
from plyzero.run.directory import Run
from plyzero.run.liveness import GONE_SECONDS, LivenessMonitor
from plyzero.run.models import ModelName, best_model, list_models
from plyzero.run.segments import list_segments

log = logging.getLogger(__name__)


class Retention:
    """Removes files of one run that no process needs. It measures their age with its own clock, not by file times.

    monitor: the processes of the run; the caller refreshes it before `prune`.
    """

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self.monitor = LivenessMonitor(run, clock=clock)
        self._first_seen: dict[Path, float] = {}

    def prune(self, *, covered: Mapping[str, int], window: Collection[str]) -> None:
        """Remove what is not needed any more.

        covered: incarnation -> sequence number below which the older of the two saved states has read every segment.
        window:  names of the segments that a restart from either state reads again.
        """
        self._prune_segments(covered, window)
        self._prune_models()
        self._prune_leftovers()
        self._first_seen = {path: since for path, since in self._first_seen.items() if path.exists()}

    def _prune_segments(self, covered: Mapping[str, int], window: Collection[str]) -> None:
        store, directory = self._run.settings.store, self._run.segments
        names = sorted(list_segments(directory), key=lambda name: (name.first_step, name.sequence))
        sizes = {name: _size(directory / str(name)) for name in names}
        positions, size = sum(name.positions for name in names), sum(sizes.values())
        free = free_bytes(directory)
        removed = 0
        for name in names:
            enough_space = free >= store.min_free_mb << 20
            if positions <= store.keep_positions and size <= store.keep_mb << 20 and enough_space:
                break
            if name.sequence < covered.get(name.incarnation, 0) and str(name) not in window:
                remove(directory / str(name))
                positions, size, free = positions - name.positions, size - sizes[name], free + sizes[name]
                removed += 1
        if removed:
            log.info("removed %d old segments", removed)

    def _prune_models(self) -> None:
        store, directory = self._run.settings.store, self._run.models
        names = list_models(directory)
        kept = {*names[: store.keep_models], *names[-1:], *self._models_in_use()}  # the last one is the run's first
        for name in names:
            path = directory / str(name)
            if name not in kept and self._age(path) >= 60 * store.keep_model_minutes:
                remove(path)

    def _models_in_use(self) -> set[ModelName]:
        heartbeats = self.monitor.heartbeats
        labels = [heartbeats[name].get("model") for name in heartbeats if self.monitor.liveness(name) != "gone"]
        used = {ModelName.parse(label) for label in labels if isinstance(label, str)}
        with suppress(UserError):  # no model has been measured
            used.add(best_model(self._run.models, self._run.metrics))
        return {name for name in used if name}

    def _prune_leftovers(self) -> None:
        """Remove old heartbeats of processes that have ended, and unfinished files of processes that were killed.

        A heartbeat is kept while its process has a journal: without locks, only the heartbeat shows that it is dead.
        """
        unsealed = {path.name.rpartition("-")[0] for path in self._run.journals.glob("*.wal")}
        for name in self.monitor.heartbeats.keys() - unsealed:
            path = self._run.workers / f"{name}.json"
            if self.monitor.liveness(name) in ("gone", "stopped") and self.monitor.silence(name) >= GONE_SECONDS:
                remove(path)
        for path in self._run.root.glob(f"*/{TEMPORARY}*"):
            if self._age(path) >= GONE_SECONDS:
                remove(path)

    def _age(self, path: Path) -> float:
        """Return for how many seconds this object has known `path`."""
        return self._clock() - self._first_seen.setdefault(path, self._clock())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
