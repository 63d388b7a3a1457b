"""Who lives: heartbeats are counts, and whether one moves is judged by the observer's own clock.

No clocks of two machines are ever compared, and no times of files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from plyzero.run import journals, lease
from plyzero.run.directory import Run
from plyzero.run.metrics import BEAT_SECONDS, TRAINER, read_heartbeats

Life = Literal["ok", "stalled", "gone", "stopped"]
"""ok = its count moves. stalled = it does not. gone = nor does it hold its lock. stopped = it said so itself."""

STALLED_SECONDS: Final = 4 * BEAT_SECONDS
UNHELD_SECONDS: Final = 1.5 * BEAT_SECONDS
"""So long a silence is enough for who was never seen to move and holds no lock either."""
GONE_SECONDS: Final = 600.0
"""After so long a silence, a process is gone even where there are no locks."""


class LivenessMonitor:
    """Watches the heartbeats of a run; the longer, the more it can tell apart."""

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self._last: dict[str, tuple[object, float, bool]] = {}  # name -> count, since when, seen to move
        self._holders: set[str] | None = set()
        self.beats: dict[str, dict[str, Any]] = {}

    def look(self) -> None:
        """Read all heartbeats."""
        self.beats = read_heartbeats(self._run.workers)
        self._holders = _holders(self._run)
        now = self._clock()
        for name, beat in self.beats.items():
            count = (beat["pid"], beat["beats"])
            last, since, moved = self._last.get(name, (count, now, False))
            self._last[name] = (count, now, True) if count != last else (last, since, moved)

    def has_moved(self, name: str) -> bool:
        """Tell whether the count of this process was seen to move at all."""
        return self._last[name][2]

    def silence(self, name: str) -> float:
        """Return for how many seconds nothing new has been heard of a process."""
        return self._clock() - self._last[name][1]

    def judge(self, name: str) -> Life:
        """Return whether a process of `beats` lives."""
        if self.beats[name]["state"] == "stopped":
            return "stopped"
        silence = self.silence(name)
        holds_none = self._holders is not None and name not in self._holders
        if silence < (UNHELD_SECONDS if holds_none and not self.has_moved(name) else STALLED_SECONDS):
            return "ok"
        return "gone" if holds_none or silence >= GONE_SECONDS else "stalled"


def watch_run(run: Run, *, only: Callable[[Mapping[str, Any]], bool] = lambda beat: True) -> LivenessMonitor:
    """Return an observer that can judge: it has seen the count of every running process move, or waited for it.

    only: which heartbeats have to be waited for.
    """
    observer = LivenessMonitor(run)
    observer.look()
    while any(
        only(beat) and observer.judge(name) == "ok" and not observer.has_moved(name)
        for name, beat in observer.beats.items()
    ):
        time.sleep(0.1)
        observer.look()
    return observer


def _holders(run: Run) -> set[str] | None:
    """Return the names of all processes that hold a lock of the run; None where the volume has none."""
    workers, trainer = journals.owners(run.journals), lease.is_held(run.trainer)
    if workers is None or trainer is None:
        return None
    return workers | ({TRAINER} if trainer else set())
