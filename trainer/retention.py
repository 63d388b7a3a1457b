"""Retention: the trainer removes old segments, models and heartbeats, so that the size of the volume is bounded."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from plyzero.errors import UserError
from plyzero.files import TEMPORARY, Room, free_room, list_files, list_names, modified_at, remove
from plyzero.run.directory import Run
from plyzero.run.events import best_model, last_measured
from plyzero.run.journals import list_journals
from plyzero.run.models import ModelName, select_models
from plyzero.run.segments import SegmentName, list_segments, parse_unused, unused_file
from plyzero.run.view import GONE_SECONDS, RunView
from plyzero.trainer.replay_reader import Skipped, is_skipped
from plyzero.trainer.state import NUM_STATES, State
from plyzero.volume_errors import FileErrors

log = logging.getLogger(__name__)

KEPT_WORKER_METRICS: Final = 256  # metrics files of ended workers, the newest ones


class RequiredSegments(NamedTuple):
    """The segments that a trainer needs if it resumes from a saved state.

    cursor:  incarnation -> sequence number from which on it needs all segments.
    skipped: incarnation -> ranges of numbers below that which it needs too, if their segments appear.
    window:  names of the segments in its window.
    """

    cursor: dict[str, int]
    skipped: dict[str, Skipped]
    window: frozenset[str]


class Retention:
    """Removes files of one run that no process needs. It measures their age with its own clock, not by file times.

    view: the processes of the run; the caller refreshes it before `prune`.
    """

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._clock = clock
        self.view = RunView(run, clock=clock)
        self._first_seen: dict[Path, float] = {}
        self._asked: set[Path] = set()  # paths whose age the last `prune` asked for
        self._best: ModelName | None = None  # the best model when the ratings were last readable
        self._file_errors = FileErrors(clock=clock)
        self._sizes: dict[str, int] = {}  # of segments, which do not change
        self._states: dict[tuple[int, int], RequiredSegments] = {}  # (fence, step) of each saved state, oldest first

    def remember_state(self, fence: int, state: State) -> None:
        """Remember which segments a saved state needs; it has replaced one of the same fence and step."""
        key = fence, state["step"]
        self._states.pop(key, None)
        skipped = {incarnation: list(ranges) for incarnation, ranges in state.get("skipped", {}).items()}
        self._states[key] = RequiredSegments(dict(state["cursor"]), skipped, frozenset(state["window"]))
        for old in list(self._states)[:-NUM_STATES]:
            del self._states[old]

    def prune_for_states(self) -> None:
        """Remove what is not needed any more, given what each saved state needs."""
        states = list(self._states.values())
        covered = states[0].cursor if len(states) == NUM_STATES else {}
        with self._file_errors.skipping(self._run.segments, "cannot be read"):
            names = list(list_segments(self._run.segments))
            late = (str(name) for name in names for state in states if is_skipped(state.skipped, name))
            self.prune(covered=covered, window={*late}.union(*(state.window for state in states)))

    def prune(self, *, covered: Mapping[str, int], window: Collection[str]) -> None:
        """Remove what is not needed any more. A file or directory that cannot be used is skipped, with one warning.

        covered: incarnation -> sequence number below which the older of the two saved states has read every segment.
        window:  names of the segments that a restart from either state reads again, or has yet to read.
        """
        run = self._run
        self._asked.clear()
        with self._file_errors.skipping(run.segments, "cannot be pruned"):
            self._prune_segments(covered, window)
        with self._file_errors.skipping(run.models, "cannot be pruned"):
            self._prune_models()
        with self._file_errors.skipping(run.root, "cannot be pruned"):
            self._prune_leftovers()
            self._prune_unused(covered)
        self._first_seen = {path: since for path, since in self._first_seen.items() if path in self._asked}

    def _prune_segments(self, covered: Mapping[str, int], window: Collection[str]) -> None:
        store, directory = self._run.settings.store, self._run.segments
        names = sorted(list_segments(directory), key=lambda name: (name.first_step, name.sequence))
        sizes = self._sizes_of(names)
        positions = sum(name.positions for name in names)
        size = sum(sizes.get(str(name), 0) for name in names)
        free = free_room(directory)
        removed = 0
        for name in names:
            has_room = free.bytes >= store.min_free_mb << 20 and free.files >= store.min_free_files
            if positions <= store.keep_positions and size <= store.keep_mb << 20 and has_room:
                break
            is_needed = name.sequence >= covered.get(name.incarnation, 0) or str(name) in window
            if not is_needed and self._remove(directory / str(name)):
                positions -= name.positions
                size -= sizes.get(str(name), 0)
                free = Room(free.bytes + sizes.get(str(name), 0), free.files + 1)
                removed += 1
        if removed:
            log.info("removed %d old segments", removed)

    def _sizes_of(self, names: Collection[SegmentName]) -> dict[str, int]:
        """Return name -> size in bytes of segments. Each is asked for once, for that is a call of the volume."""
        sizes = self._sizes
        new = list_files(self._run.segments, wanted=lambda name: name not in sizes)
        present = set(map(str, names))
        self._sizes = {name: size for name, size in (sizes | new).items() if name in present}
        return self._sizes

    def _prune_models(self) -> None:
        store, directory = self._run.settings.store, self._run.models
        files = list_names(directory)
        names = select_models(files)
        kept = {*names[: store.keep_models], *names[-1:], *self._models_in_use()}  # the last one is the run's first
        for name in list(names):
            path = directory / str(name)
            if name not in kept and self._age(path) >= 60 * store.keep_model_minutes and self._remove(path):
                names.remove(name)
        remaining = {(name.fence, name.step) for name in names}
        for form in select_models(files, int8=True):
            path = directory / str(form)
            if (form.fence, form.step) not in remaining and self._age(path) >= GONE_SECONDS:
                self._remove(path)

    def _models_in_use(self) -> set[ModelName]:
        used = {each.beat.model for each in self.view.processes() if each.life != "gone"}
        with suppress(UserError), self._file_errors.skipping(self._run.metrics, "cannot be read"):
            used.add(last_measured(self._run.metrics))  # more games with it may follow
            self._best = best_model(self._run.models, self._run.metrics)
        return {name for name in (*used, self._best) if name}

    def _prune_leftovers(self) -> None:
        """Remove old heartbeats of processes that have ended, and sockets and unfinished files of killed ones.

        A heartbeat is kept while its process has a journal: without locks, only the heartbeat shows that it is dead.
        """
        unsealed = {name.owner for name in list_journals(self._run.journals)}
        for name in self.view.heartbeats.keys() - unsealed:
            path = self._run.workers / f"{name}.json"
            if self.view.liveness(name) in ("gone", "stopped") and self.view.unchanged(name) >= GONE_SECONDS:
                self._remove(path)
        run = self._run
        with self._file_errors.skipping(run.metrics, "cannot be read"):
            self._prune_worker_metrics()
        for directory in (run.segments, run.journals, run.models, run.trainer, run.workers, run.metrics):
            with self._file_errors.skipping(directory, "cannot be read"):
                for file in list_names(directory):
                    is_dead = file.endswith(".sock") and ".".join(file.split(".")[:2]) not in self.view.heartbeats
                    if (is_dead or file.startswith(TEMPORARY)) and self._age(directory / file) >= GONE_SECONDS:
                        self._remove(directory / file)

    def _prune_unused(self, covered: Mapping[str, int]) -> None:
        """Remove what takes the place of segments for which nobody will wait any more.

        Readers wait where the same writer has a later segment; a later journal becomes one.
        """
        directory = self._run.segments
        journals = list_journals(self._run.journals)  # before the segments that they become
        files = list_names(directory)
        newest: dict[str, int] = {}
        segments = [name.journal for name in filter(None, map(SegmentName.parse, files))]
        for name in (*journals, *segments):
            newest[name.incarnation] = max(name.sequence, newest.get(name.incarnation, 0))
        for journal in filter(None, map(parse_unused, files)):
            waits = covered.get(journal.incarnation, 0) <= journal.sequence < newest.get(journal.incarnation, 0)
            path = unused_file(directory, journal)
            if journal.owner not in self.view.heartbeats and not waits and self._age(path) >= GONE_SECONDS:
                self._remove(path)

    def _prune_worker_metrics(self) -> None:
        """Remove the metrics of workers that ended long ago, where there are many. The times of files order them."""
        directory = self._run.metrics
        beating = {f"worker-{name}.jsonl" for name in self.view.heartbeats}
        ended = [file for file in list_names(directory) if file.startswith("worker-") and file not in beating]
        if len(ended) > KEPT_WORKER_METRICS:
            for path in sorted((directory / file for file in ended), key=modified_at)[:-KEPT_WORKER_METRICS]:
                self._remove(path)

    def _remove(self, path: Path) -> bool:
        with self._file_errors.skipping(path, "cannot be removed"):
            remove(path)
            return True
        return False

    def _age(self, path: Path) -> float:
        """Return for how many seconds this object has known `path`."""
        self._asked.add(path)
        return self._clock() - self._first_seen.setdefault(path, self._clock())
