"""Whether the process of a container makes progress: the counter in its heartbeat only changes while its loop runs."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from plyzero.run.metrics import read_heartbeats


def find_stalled_process(workers: Path, *, within: float, host: str | None = None) -> str | None:
    """Return a sentence if no process of this host makes progress, None if one does.

    workers: the directory of heartbeats.
    within:  seconds in which the counter of a heartbeat must change.
    """
    host = host or socket.gethostname()
    first = _counts(workers, host)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if _counts(workers, host) - first:
            return None
        time.sleep(0.1)
    if not first:
        return f"no process of this run is running on this host ({host})"
    return f"{min(first)[0]} has made no progress for {within:.0f} s"


def _counts(workers: Path, host: str) -> set[tuple[str, int, int]]:
    """Return name, process number and counter of every heartbeat of `host` whose process has not stopped."""
    beats = read_heartbeats(workers).items()
    return {
        (name, beat["pid"], beat["beats"])
        for name, beat in beats
        if beat["host"] == host and beat["state"] != "stopped"
    }
