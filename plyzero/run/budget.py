"""The budget of a run: when its training is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plyzero.run.directory import RunDirectory
from plyzero.run.metrics import TRAINER, figure, number, read_heartbeat
from plyzero.run.models import parse_scores
from plyzero.setting_types import parse_until
from plyzero.settings import BudgetSettings

COUNTED: Final = (("steps", "step"), ("games", "games"), ("positions", "positions"), ("minutes", "minutes"))
"""The settings of a budget that are counted, each with the field of the trainer's heartbeat that counts it."""

BEST: Final = {"score": "best_scores", "points": "best_points"}
"""The quantity in a condition `until` -> the field of the trainer's heartbeat with its best values by opponent."""


def note_rating(best: Mapping[str, dict[str, float]], line: dict[str, Any], *, games: int) -> None:
    """Note in `best`, a dict for each field of BEST, what a line of ratings has measured in half of `games` or more."""
    measured, points = parse_scores(line), line.get("points")
    for opponent, (wins, draws, losses) in measured.counts.items() if measured else ():
        played = wins + draws + losses
        if 2 * played >= games:  # not cut short
            lead = figure(points, opponent) if isinstance(points, dict) else None
            found = {"score": (wins + draws / 2) / played, "points": lead}
            for kind, value in found.items():
                if value is not None:
                    values = best[BEST[kind]]
                    values[opponent] = max(value, values.get(opponent, value))


def find_reached(budget: BudgetSettings, progress: Mapping[str, object]) -> str:
    """Return the part of a budget that a training has reached, such as "300 steps"; "" if it has reached none.

    progress: fields of the trainer's heartbeat: step, games, positions, minutes, and those of BEST by opponent.
    """
    for name, key in COUNTED:
        most = getattr(budget, name)
        if most is not None and number(progress, key) >= most:
            return f"{most:,} {name if most != 1 else name[:-1]}"
    if budget.until:
        kind, least, opponent = parse_until(budget.until)
        values = progress.get(BEST[kind])
        best = figure(values, opponent) if isinstance(values, dict) else None
        if best is not None and best >= least:
            return f"{kind} {best:.2f} against {opponent}"
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
