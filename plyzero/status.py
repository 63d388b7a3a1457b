"""What is on a run's volume: a snapshot that `status` prints and programs read."""

from __future__ import annotations

import time
from typing import Any

from plyzero.metrics import read_heartbeats, read_lines
from plyzero.models import list_models
from plyzero.run import Run
from plyzero.segments import list_segments

VERSION = 1


def snapshot(run: Run) -> dict[str, Any]:
    """Return a JSON object; docs/formats.md lists its fields."""
    segments = list(list_segments(run.segments))
    models = list_models(run.models)
    beats = read_heartbeats(run.workers)
    processes = []
    for name, beat in beats.items():
        age = time.time() - (run.workers / f"{name}.json").stat().st_mtime
        processes.append({"name": name, **beat, "seconds_since_beat": round(age, 1)})
    ratings = read_lines(run.metrics / "rating.jsonl")
    return {
        "version": VERSION,
        "run": str(run.root),
        "game": run.game.identity,
        "replay": {
            "segments": len(segments),
            "games": sum(name.games for name in segments),
            "positions": sum(name.positions for name in segments),
            "full_positions": sum(name.full for name in segments),
            "bootstrap_positions": sum(name.full for name in segments if name.bootstrap),
        },
        "models": {"count": len(models), "newest": str(models[0]) if models else None},
        "rating": ratings[-1] if ratings else None,
        "waiting": who_waits(processes),
        "processes": processes,
    }


def who_waits(processes: list[dict[str, Any]]) -> str:
    """Return a sentence: who of the processes waits for whom."""
    states = {role: [each["state"] for each in processes if each["role"] == role] for role in ("trainer", "selfplay")}
    running = {role: [state for state in found if state != "stopped"] for role, found in states.items()}
    if not running["trainer"] and not running["selfplay"]:
        return "nothing is running"
    if any(state.startswith("waiting") for state in running["trainer"]):
        return f"the trainer waits for the workers: {running['trainer'][0]}"
    if any(state.startswith("waiting") for state in running["selfplay"]):
        return "the workers wait for the trainer's first model"
    return "nobody waits"
