"""Whether the process of a container makes progress: its heartbeat moves only when its loop goes round."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from plyzero.run.metrics import read_heartbeats


def find_stalled_process(workers: Path, *, within: float, host: str | None = None) -> str | None:
    """Return what is wrong with the processes of this host, or None; `workers` is the directory of heartbeats.

    within: seconds in which the count of a heartbeat must be seen to move.
    """
    host = host or socket.gethostname()
    first = _counts(workers, host)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if _counts(workers, host) - first:
            return None
        time.sleep(0.1)
    if not first:
        return f"no process of {host} has a heartbeat in {workers}"
    return f"{min(first)[0]} has made no progress for {within:.0f} s"


def _counts(workers: Path, host: str) -> set[tuple[str, int, int]]:
    beats = read_heartbeats(workers).items()
    return {
        (name, beat["pid"], beat["beats"])
        for name, beat in beats
        if beat["host"] == host and beat["state"] != "stopped"
    }
