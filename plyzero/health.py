"""Whether the process of a container makes progress: its heartbeat moves only when its loop goes round."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from plyzero.metrics import read_heartbeats


def find_trouble(workers: Path, *, within: float, host: str | None = None) -> str | None:
    """Return what is wrong with the processes of this host, or None; `workers` is the directory of heartbeats.

    within: seconds in which a heartbeat must have been written.
    """
    host = host or socket.gethostname()
    ages = {
        name: time.time() - (workers / f"{name}.json").stat().st_mtime
        for name, beat in read_heartbeats(workers).items()
        if beat.get("host") == host and beat["state"] != "stopped"
    }
    if not ages:
        return f"no process of {host} has a heartbeat in {workers}"
    name = min(ages, key=lambda each: ages[each])
    if ages[name] > within:
        return f"{name} has made no progress for {ages[name]:.0f} s"
    return None
