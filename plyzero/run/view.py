"""A run as its files show it: its processes, which of them are alive, and what its trainer has published.

A process is alive if the counter in its heartbeat changes, or if it holds a lock. Time is measured with the clock of
the observing process only; clocks of two machines and times of files are never compared.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from plyzero.files import interval
from plyzero.run import journals, lease
from plyzero.run.directory import RunDirectory
from plyzero.run.events import Beat, TrainerLines, read_heartbeats
from plyzero.run.metrics import BEAT_SECONDS, TRAINER
from plyzero.volume_errors import FileErrors

Liveness = Literal["ok", "stalled", "gone", "stopped"]
"""ok = the counter changes. stalled = it does not. gone = it does not, and the process holds no lock. stopped = the
process reported that it has stopped."""

STALLED_SECONDS: Final = 4 * BEAT_SECONDS
"""Time without a change after which a process is stalled, or gone if it holds no lock; see `by_beats`."""

UNLOCKED_SECONDS: Final = 1.5 * BEAT_SECONDS
"""The same for a process that holds no lock and whose counter was never seen to change."""

GONE_SECONDS: Final = 600.0
"""Time without a change after which a process is gone even if the volume does not support locks."""

ALONE_SECONDS: Final = 30.0
"""Time without any worker after which a trainer asks whether this is the run that was meant."""

log = logging.getLogger(__name__)


def by_beats(run: RunDirectory, seconds: float) -> float:
    """Return a time that is `seconds` where a heartbeat comes every BEAT_SECONDS, and longer in a bucket."""
    return seconds * interval(run.workers, BEAT_SECONDS) / BEAT_SECONDS


class Process(NamedTuple):
    """A process of a run.

    silent_seconds: time without a new heartbeat.
    """

    name: str
    beat: Beat
    life: Liveness
    silent_seconds: float

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self.life in ("ok", "stalled")


class RunView:
    """A run as its files show it. Its processes are observed through repeated calls of `refresh`.

    heartbeats: name of a process -> its newest heartbeat.
    lines:      of the trainer.
    """

    def __init__(
        self, run: RunDirectory, *, clock: Callable[[], float] = time.monotonic, from_now: bool = False
    ) -> None:
        """View `run`. from_now: `lines` has those that are written from now on."""
        self.run, self._clock = run, clock
        self.lines = TrainerLines(run.metrics, from_now=from_now)
        self._observed: dict[str, _Observation] = {}
        self._lock_holders: set[str] | None = set()
        self._file_errors = FileErrors(clock=clock)
        self.heartbeats: dict[str, Beat] = {}

    def refresh(self) -> None:
        """Read all heartbeats, and test the locks of silent processes. What cannot be read now stays as it was."""
        with self._file_errors.skipping(self.run.workers, "cannot be read"):
            self.heartbeats = read_heartbeats(self.run.workers, before=self.heartbeats)
        self._observe()
        with self._file_errors.skipping(self.run.journals, "cannot be read"):
            self._lock_holders = self._find_lock_holders()

    def _observe(self) -> None:
        """Note which counters have changed."""
        now = self._clock()
        for name, beat in self.heartbeats.items():
            counter = (beat.pid, beat.beats)
            before = self._observed.get(name)
            if before is None or counter != before.counter:
                self._observed[name] = _Observation(counter, since=now, has_changed=before is not None)

    @property
    def trainer(self) -> Beat | None:
        """The newest heartbeat of the trainer."""
        return self.heartbeats.get(TRAINER)

    @property
    def end(self) -> str:
        """The part of its budget with which the trainer has ended, "" if it goes on or was stopped."""
        return self.trainer.done if self.trainer else ""

    def processes(self) -> list[Process]:
        """Return all processes, also those that have ended, by their names."""
        return [
            Process(name, beat, self.liveness(name), self.unchanged(name)) for name, beat in self.heartbeats.items()
        ]

    def alive(self) -> list[Process]:
        """Return the processes that have not ended, as far as is known."""
        return [each for each in self.processes() if each.is_alive]

    def beating(self) -> set[str]:
        """Return the processes whose counter has just been seen to change: no lock says more about them."""
        limit = by_beats(self.run, UNLOCKED_SECONDS)
        return {name for name in self.heartbeats if self.has_changed(name) and self.unchanged(name) < limit}

    def has_changed(self, name: str) -> bool:
        """Return whether the counter of a process was ever seen to change."""
        return self._observed[name].has_changed

    def unchanged(self, name: str) -> float:
        """Return for how many seconds the counter of a process has not changed."""
        return self._clock() - self._observed[name].since

    def liveness(self, name: str) -> Liveness:
        """Return whether a process in `heartbeats` is alive."""
        if self.heartbeats[name].state == "stopped":
            return "stopped"
        unchanged = self.unchanged(name)
        holds_no_lock = self._lock_holders is not None and name not in self._lock_holders
        limit = UNLOCKED_SECONDS if holds_no_lock and not self.has_changed(name) else STALLED_SECONDS
        if unchanged < by_beats(self.run, limit):
            return "ok"
        return "gone" if holds_no_lock or unchanged >= GONE_SECONDS else "stalled"

    def _find_lock_holders(self) -> set[str] | None:
        """Return the processes that hold a lock of the run or beat; None if the volume does not support locks."""
        workers = journals.owners(self.run.journals, self._file_errors, known=self.beating())
        trainer = lease.is_held(self.run.trainer)
        if workers is None or trainer is None:
            return None
        return workers | ({TRAINER} if trainer else set())


class Company:
    """Notices that no worker has ever written into a run, as where its name is mistyped.

    warning: a sentence, or None.
    """

    def __init__(self, run: RunDirectory, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock, self._began = run.root, clock, clock()
        self.warning: str | None = None

    def look(self, heartbeats: Mapping[str, Beat], *, games: int) -> None:
        """Look again. games: number of games that have been read."""
        before, self.warning = self.warning, None
        is_alone = not games and all(beat.role != "selfplay" for beat in heartbeats.values())
        if is_alone and self._clock() - self._began >= ALONE_SECONDS:
            self.warning = (
                f"no worker has written here for {ALONE_SECONDS:.0f} s; is {self._root} the run you meant? "
                f"plyzero selfplay --run {self._root} starts a worker"
            )
            if not before:
                log.warning("%s", self.warning)


class _Observation(NamedTuple):
    """Process number and counter of a heartbeat, when they were first read, and whether they replaced others."""

    counter: tuple[int, int]
    since: float
    has_changed: bool


def watch_run(run: RunDirectory, *, waits_for: Callable[[Beat], bool] = lambda beat: True) -> RunView:
    """Return a view that has observed a run long enough to know which processes are alive.

    waits_for: which heartbeats to wait for, until their counters change or are known not to.
    """
    view = RunView(run)
    while True:
        began = time.monotonic()
        view.refresh()
        is_known = all(
            not waits_for(beat) or view.liveness(name) != "ok" or view.has_changed(name)
            for name, beat in view.heartbeats.items()
        )
        if is_known:
            return view
        took = time.monotonic() - began
        time.sleep(max(took, interval(run.workers, 0.1)))  # heartbeats of a thousand workers take a while to read
