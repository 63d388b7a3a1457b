"""Heartbeats: their fields as they are on the volume, and records of heartbeats and processes that were never there."""

from pathlib import Path
from typing import Any

from plyzero.run.events import Beat, read_heartbeat
from plyzero.run.view import Liveness, Process


def fields_of(path: Path) -> dict[str, Any]:
    """Return all fields of a heartbeat; {} if there is none."""
    beat = read_heartbeat(path)
    return {**beat.fields} if beat else {}


def beat_of(role: str, state: str = "playing", **fields: object) -> Beat:
    return Beat.parse({"role": role, "state": state, "beats": 1, "pid": 1, "host": "h", **fields})


def process_of(name: str, state: str = "playing", *, life: Liveness = "ok", **fields: object) -> Process:
    """A process whose role follows from its name."""
    role = "trainer" if name == "trainer" else "selfplay"
    return Process(name, beat_of(role, state, **fields), life, silent_seconds=0.0)
