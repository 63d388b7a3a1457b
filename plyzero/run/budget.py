"""The budget of a run: when its training is over."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from plyzero.files import interval
from plyzero.run.directory import RunDirectory
from plyzero.run.events import CONFIRMED, Beat, Confirmation, Progress, parse_confirmation, read_heartbeat
from plyzero.run.metrics import TRAINER
from plyzero.setting_types import parse_until
from plyzero.settings import BudgetSettings, RatingSettings

COUNTED: Final = (("steps", "step"), ("games", "games"), ("positions", "positions"), ("minutes", "minutes"))
"""The settings of a budget that are counted, each with the field of Progress that counts it."""


def note_confirmation(confirmed: dict[str, Confirmation], line: Mapping[str, object]) -> None:
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


def find_reached(budget: BudgetSettings, progress: Progress) -> Reached | None:
    """Return the part of a budget that a training has reached; None if it has reached none."""
    for name, key in COUNTED:
        most = getattr(budget, name)
        if most is not None and getattr(progress, key) >= most:
            since = " of training since the first game" if name == "minutes" else ""
            return Reached(name, f"{most:,} {name if most != 1 else name[:-1]}{since}")
    if budget.until:
        kind, least, opponent = parse_until(budget.until)
        best = progress.confirmed.get(f"{kind} against {opponent}")
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


def share_used(budget: BudgetSettings, progress: Progress) -> float:
    """Return how much of the part of a budget that is used most is used, from 0 to 1; a score does not count."""
    shares = [getattr(progress, key) / most for name, key in COUNTED if (most := getattr(budget, name)) is not None]
    return min(1.0, max(shares, default=0.0))


def describe_left(budget: BudgetSettings, progress: Progress) -> str:
    """Return about how many minutes are left to the budget if they go on as those before; "" if that is unknown."""
    used = share_used(budget, progress)
    return f"{describe_minutes(progress.minutes * (1 - used) / used)} to the budget" if used else ""


def describe_minutes(left: float) -> str:
    """Return about how many minutes are left, in words."""
    return f"about {left:.0f} min left" if left >= 1 else "less than a minute left"


def describe_end(progress: Progress) -> str:
    """Return a line with the sums of a training that is over."""
    games = f"{progress.games:.0f} games with {progress.positions:.0f} positions"
    return f"END, {progress.done} reached: step {progress.step:.0f}, {games} in {progress.minutes:.1f} min"


def budget_of_trainer(run: RunDirectory, trainer: Progress | None) -> BudgetSettings:
    """Return the budget with which the trainer of a run works, which may not be that of another process.

    trainer: its newest heartbeat; without one it is the budget of this process.
    """
    if trainer is None or trainer.budget is None:
        return run.settings.budget
    try:
        return BudgetSettings.model_validate(trainer.budget)
    except ValueError:
        return run.settings.budget


def find_done(run: RunDirectory, trainer: Progress | None) -> str:
    """Return the part of its budget with which a run is over, "" if it is not: its trainer has saved and published.

    What the trainer has reached ends every process of the run, but one that was given a larger budget of its own.

    trainer: its newest heartbeat.
    """
    if trainer is None or not trainer.done:
        return ""
    if not run.own_budget:
        return trainer.done
    reached = find_reached(run.settings.budget, trainer)
    return reached.text if reached else ""


def how_to_continue(run: RunDirectory, trainer: Progress | None) -> str:
    """Return how to train a run on whose budget is reached, as the end of a sentence; "" if it is not over."""
    reached = find_reached(run.settings.budget, trainer or Progress())
    if not find_done(run, trainer) or reached is None:
        return ""
    if reached.setting in run.own_budget:
        return "with a larger budget"
    return f"with a larger --{reached.setting} than that of run.toml, or without it: -o budget.{reached.setting}=none"


def read_trainer(run: RunDirectory) -> Beat | None:
    """Return the newest heartbeat of the trainer; None if there is none that can be read."""
    return read_heartbeat(run.workers / f"{TRAINER}.json")


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
