"""What is on a run's volume: a snapshot that `status` prints and programs read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from plyzero.run.directory import Run
from plyzero.run.liveness import LivenessMonitor
from plyzero.run.metrics import TRAINER, number, read_lines
from plyzero.run.models import list_models
from plyzero.run.segments import list_segments

VERSION = 1


def snapshot(run: Run, observer: LivenessMonitor) -> dict[str, Any]:
    """Return a JSON object; docs/formats.md lists its fields. `observer` has looked at the run."""
    segments = list(list_segments(run.segments))
    models = list_models(run.models)
    processes = [{**beat, "name": name, "life": observer.judge(name)} for name, beat in observer.beats.items()]
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
            "quarantined": len(list(run.quarantine.glob("*"))),
        },
        "models": {"count": len(models), "newest": str(models[0]) if models else None},
        "rating": ratings[-1] if ratings else None,
        "waiting": who_waits(processes),
        "balance": balance(processes, ratio=run.settings.trainer.replay_ratio),
        "processes": processes,
    }


def who_waits(processes: Sequence[dict[str, Any]]) -> str:
    """Return a sentence: who of the processes waits for whom."""
    alive = [each for each in processes if each["life"] in ("ok", "stalled")]
    trainers, workers = _of_role(alive, "trainer"), _of_role(alive, "selfplay")
    stalled = [each["name"] for each in alive if each["life"] == "stalled"]
    if not alive:
        return "nothing is running"
    if stalled:
        return f"nothing is heard of {', '.join(stalled)}, which may be stuck; restart it if that lasts"
    if paused := [each for each in workers if each["state"].startswith("paused")]:
        return f"{len(paused)} of {len(workers)} workers are {paused[0]['state']}"
    if trainers and trainers[0]["state"].startswith("waiting"):
        for_whom = "the workers" if workers else "workers, of which none is running"
        return f"the trainer waits for {for_whom}: {trainers[0]['state']}"
    if waiting := [each for each in workers if each["state"].startswith("waiting")]:
        missing = "" if trainers else ", and there is no trainer: start one"
        return f"{len(waiting)} of {len(workers)} workers are {waiting[0]['state']}{missing}"
    return "nobody waits"


def balance(processes: Sequence[dict[str, Any]], *, ratio: float) -> dict[str, float] | None:
    """Return what the workers make, what the trainer could use, in full-search positions per second while neither
    waits, and the number of such workers that would suit it; None until both have been measured.
    """
    alive = [each for each in processes if each["life"] == "ok"]
    trained = sum(number(each, "trained_per_second") for each in _of_role(alive, TRAINER))
    rates = [number(each, "full_positions_per_second") for each in _of_role(alive, "selfplay")]
    made = sum(rates)
    if not trained or not made:
        return None
    wanted = trained / ratio
    suitable = max(1, math.ceil(wanted / made * len(rates) - 0.05))
    return {"made_per_second": round(made, 1), "wanted_per_second": round(wanted, 1), "suitable_workers": suitable}


def _of_role(processes: Sequence[dict[str, Any]], role: str) -> list[dict[str, Any]]:
    return [each for each in processes if each["role"] == role]
