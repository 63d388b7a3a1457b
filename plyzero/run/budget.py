"""The budget of a run: when its training is over."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypedDict, cast

from plyzero.files import interval
from plyzero.run.directory import RunDirectory
from plyzero.run.metrics import TRAINER, Beat, figure, number, read_heartbeat
from plyzero.run.models import CONFIRMED
from plyzero.setting_types import parse_until
from plyzero.settings import BudgetSettings, RatingSettings

COUNTED: Final = (("steps", "step"), ("games", "games"), ("positions", "positions"), ("minutes", "minutes"))
"""The settings of a budget that are counted, each with the field of the trainer's heartbeat that counts it."""


class Confirmation(TypedDict):
    """The result of further games of a model, played because it had reached the condition of a budget before.

    quantity: what is measured, with the opponent: "score against mcts:100".
    least:    the value that the condition asks for.
    first:    the value in the games before.
    value, low, high: the value in the further games, and its 95 % interval.
    games:    the number of these.
    reached:  whether the interval lies above `least`, or `value` does after the largest number of games.
    """

    quantity: str
    least: float
    first: float
    value: float
    low: float
    high: float
    games: int
    reached: bool


def parse_confirmation(found: object) -> Confirmation | None:
    """Return a confirmation as it is read from the volume; None if it is none, or one of what was not reached."""
    if not isinstance(found, dict) or found.get("reached") is not True or not isinstance(found.get("quantity"), str):
        return None
    if any(figure(found, key) is None for key in ("least", "first", "value", "low", "high", "games")):
        return None
    return cast(Confirmation, {key: found[key] for key in Confirmation.__annotations__})


def note_confirmation(confirmed: dict[str, Confirmation], line: Mapping[str, Any]) -> None:
    """Note in `confirmed`, by quantity, what a line of ratings confirms, if it asks for more than what is known."""
    found = parse_confirmation(line.get(CONFIRMED))
    if found is None:
        return
    known = confirmed.get(found["quantity"])
    if known is None or found["least"] > known["least"]:
        confirmed[found["quantity"]] = found


class Reached(NamedTuple):
    """The part of a budget that a training has reached: the setting, and in words, such as "300 steps"."""

    setting: str
    text: str


def find_reached(budget: BudgetSettings, progress: Mapping[str, object]) -> Reached | None:
    """Return the part of a budget that a training has reached; None if it has reached none.

    progress: fields of the trainer's heartbeat: step, games, positions, minutes and confirmed.
    """
    for name, key in COUNTED:
        most = getattr(budget, name)
        if most is not None and number(progress, key) >= most:
            since = " of training since the first game" if name == "minutes" else ""
            return Reached(name, f"{most:,} {name if most != 1 else name[:-1]}{since}")
    if budget.until:
        kind, least, opponent = parse_until(budget.until)
        confirmed = progress.get(CONFIRMED)
        known = confirmed.get(f"{kind} against {opponent}") if isinstance(confirmed, dict) else None
        best = parse_confirmation(known)
        if best is not None and best["least"] >= least:
            return Reached("until", describe_confirmation(best))
    return None


def describe_confirmation(found: Confirmation) -> str:
    """Return both figures of a confirmation, such as "score 0.95, then 0.93 (0.91 to 0.95) in 200 more games, ..."."""
    kind, _, opponent = found["quantity"].partition(" against ")
    again = f"{found['value']:.2f} ({found['low']:.2f} to {found['high']:.2f}) in {found['games']} more games"
    return f"{kind} {found['first']:.2f}, then {again}, against {opponent}"


def measured_opponents(rating: RatingSettings, budget: BudgetSettings) -> tuple[str, ...]:
    """Return the opponents of ratings, with that of the condition of a budget."""
    wanted = parse_until(budget.until)[2] if budget.until else None
    return rating.opponents if wanted in (None, *rating.opponents) else (*rating.opponents, str(wanted))


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


def budget_of_trainer(run: RunDirectory, beat: Mapping[str, object] | None) -> BudgetSettings:
    """Return the budget with which the trainer of a run works, which may not be that of another process.

    beat: the newest heartbeat of the trainer; without one it is the budget of this process.
    """
    told = beat.get("budget") if beat else None
    try:
        return BudgetSettings.model_validate(told) if isinstance(told, dict) else run.settings.budget
    except ValueError:
        return run.settings.budget


def find_done(run: RunDirectory, beat: Mapping[str, object] | None) -> str:
    """Return the part of its budget with which a run is over, "" if it is not: its trainer has saved and published.

    What the trainer has reached ends every process of the run, but one that was given a larger budget of its own.

    beat: the newest heartbeat of the trainer.
    """
    if not beat or not isinstance(done := beat.get("done"), str) or not done:
        return ""
    if not run.own_budget:
        return done
    reached = find_reached(run.settings.budget, beat)
    return reached.text if reached else ""


def how_to_continue(run: RunDirectory, beat: Mapping[str, object] | None) -> str:
    """Return how to train a run on whose budget is reached, as the end of a sentence; "" if it is not over."""
    reached = find_reached(run.settings.budget, beat or {})
    if not find_done(run, beat) or reached is None:
        return ""
    if reached.setting in run.own_budget:
        return "with a larger budget"
    return f"with a larger --{reached.setting} than that of run.toml, or without it: -o budget.{reached.setting}=none"


def read_trainer(run: RunDirectory) -> Beat | None:
    """Return the newest heartbeat of the trainer; None if there is none that can be read."""
    return read_heartbeat(run.workers / f"{TRAINER}.json")


def read_end(run: RunDirectory) -> str:
    """Return what the trainer's last heartbeat says about the end of the training, "" if it goes on or was stopped."""
    beat = read_trainer(run)
    return str(beat.get("done") or "") if beat else ""


def read_done(run: RunDirectory) -> str:
    """Return what `find_done` returns for the heartbeat on the volume."""
    return find_done(run, read_trainer(run))


class EndOfRun:
    """Whether a run is over, for a process that asks often: the volume is read once a second, or less in a bucket."""

    def __init__(self, run: RunDirectory) -> None:
        self._run, self._seconds, self._next = run, interval(run.workers, 1.0), 0.0
        self._done = ""

    def reached(self) -> str:
        """Return what `read_done` returned last."""
        if not self._done and time.monotonic() >= self._next:
            self._done = read_done(self._run)
            self._next = time.monotonic() + self._seconds
        return self._done
