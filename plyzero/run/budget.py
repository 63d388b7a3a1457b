"""The budget of a run: when its training is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plyzero.run.directory import RunDirectory
from plyzero.run.metrics import TRAINER, number, read_heartbeat
from plyzero.settings import BudgetSettings, parse_until

COUNTED: Final = (("steps", "step"), ("games", "games"), ("positions", "positions"), ("minutes", "minutes"))
"""The settings of a budget that are counted, each with the field of the trainer's heartbeat that counts it."""


def find_reached(budget: BudgetSettings, progress: Mapping[str, object]) -> str:
    """Return the part of a budget that a training has reached, such as "300 steps"; "" if it has reached none.

    progress: fields of the trainer's heartbeat: step, games, positions, minutes, and best_scores by opponent.
    """
    for name, key in COUNTED:
        most = getattr(budget, name)
        if most is not None and number(progress, key) >= most:
            return f"{most:,} {name if most != 1 else name[:-1]}"
    scores = progress.get("best_scores")
    if budget.until and isinstance(scores, dict):
        least, opponent = parse_until(budget.until)
        score = number(scores, opponent)
        if score >= least > 0:
            return f"score {score:.2f} against {opponent}"
    return ""


def share_used(budget: BudgetSettings, progress: Mapping[str, object]) -> float:
    """Return how much of the part of a budget that is used most is used, from 0 to 1; a score does not count."""
    shares = [number(progress, key) / most for name, key in COUNTED if (most := getattr(budget, name)) is not None]
    return min(1.0, max(shares, default=0.0))


def describe_left(budget: BudgetSettings, progress: Mapping[str, object]) -> str:
    """Return about how many minutes are left to the budget if they go on as those before; "" if that is unknown."""
    used = share_used(budget, progress)
    return f"about {number(progress, 'minutes') * (1 - used) / used:.0f} min left to the budget" if used else ""


def describe_end(progress: Mapping[str, object]) -> str:
    """Return a line with the sums of a training that is over: fields of the trainer's last heartbeat."""
    step, games, positions, minutes = (number(progress, key) for _, key in COUNTED)
    counts = f"step {step:.0f}, {games:.0f} games with {positions:.0f} positions in {minutes:.1f} min"
    return f"END, {progress['done']} reached: {counts}"


def find_done(run: RunDirectory, beat: Mapping[str, object] | None) -> str:
    """Return the part of its budget with which a run is over, "" if it is not: its trainer has saved and published.

    beat: the newest heartbeat of the trainer.
    """
    return find_reached(run.settings.budget, beat) if beat and beat.get("done") else ""


def read_end(run: RunDirectory) -> str:
    """Return what the trainer's last heartbeat says about the end of the training, "" if it goes on or was stopped."""
    beat = read_heartbeat(run.workers / f"{TRAINER}.json")
    return str(beat.get("done") or "") if beat else ""


def read_done(run: RunDirectory) -> str:
    """Return what `find_done` returns for the heartbeat on the volume."""
    return find_done(run, read_heartbeat(run.workers / f"{TRAINER}.json"))
