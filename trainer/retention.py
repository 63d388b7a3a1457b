"""What is removed from the volume, so that it stays bounded: only what nobody will miss, and only by the trainer."""

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
    """Remembers since when it has seen what, by its own clock; times of files are another machine's.

    observer: who lives, as of its last look, which is the caller's to take.
    """

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self.observer = LivenessMonitor(run, clock=clock)
        self._seen: dict[Path, float] = {}

    def prune(self, *, covered: Mapping[str, int], window: Collection[str]) -> None:
        """Remove what is not needed any more.

        covered: incarnation -> sequence below which every segment is in a state that is on the disk for good.
        window:  names of the segments that a restart would read.
        """
        self._prune_segments(covered, window)
        self._prune_models()
        self._prune_rest()
        self._seen = {path: since for path, since in self._seen.items() if path.exists()}

    def _prune_segments(self, covered: Mapping[str, int], window: Collection[str]) -> None:
        store, directory = self._run.settings.store, self._run.segments
        names = sorted(list_segments(directory), key=lambda name: (name.low, name.sequence))
        sizes = {name: _size(directory / str(name)) for name in names}
        positions, size = sum(name.positions for name in names), sum(sizes.values())
        free = free_bytes(directory)
        removed = 0
        for name in names:
            enough_room = free >= store.min_free_mb << 20
            if positions <= store.keep_positions and size <= store.keep_mb << 20 and enough_room:
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
        kept = set(names[: store.keep_models]) | self._models_in_use()
        for name in names:
            path = directory / str(name)
            if name not in kept and self._age(path) >= 60 * store.keep_model_minutes:
                remove(path)

    def _models_in_use(self) -> set[ModelName]:
        labels = [
            beat.get("model") for name, beat in self.observer.beats.items() if self.observer.judge(name) != "gone"
        ]
        used = {ModelName.parse(label) for label in labels if isinstance(label, str)}
        with suppress(UserError):  # none has been measured
            used.add(best_model(self._run.models, self._run.metrics))
        return {name for name in used if name}

    def _prune_rest(self) -> None:
        """Heartbeats of processes that are long gone, and what writers that were killed left behind.

        A journal that could not be sealed yet keeps its owner's: without locks nothing else says that it is dead.
        """
        unsealed = {path.name.rpartition("-")[0] for path in self._run.journals.glob("*.wal")}
        for name in self.observer.beats.keys() - unsealed:
            path = self._run.workers / f"{name}.json"
            if self.observer.judge(name) in ("gone", "stopped") and self.observer.silence(name) >= GONE_SECONDS:
                remove(path)
        for path in self._run.root.glob(f"*/{TEMPORARY}*"):
            if self._age(path) >= GONE_SECONDS:
                remove(path)

    def _age(self, path: Path) -> float:
        return self._clock() - self._seen.setdefault(path, self._clock())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
