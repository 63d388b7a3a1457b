"""The reporter: the trainer's heartbeat, a row of metrics for each model, and its lines in the log."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final

import torch
from torch import Tensor

from plyzero.ops.status import balance, describe_surplus
from plyzero.ops.summary import describe_first_model
from plyzero.run.adoption import Adoption
from plyzero.run.budget import describe_end, describe_left
from plyzero.run.directory import Run
from plyzero.run.events import CONFIRMED, Progress, TrainerLine, first_beat
from plyzero.run.lease import Lease
from plyzero.run.metrics import CURSOR, TRAINER, EventFile, Heartbeat, Rate, SparseLines, append_line
from plyzero.run.models import ModelName
from plyzero.run.view import Company, Process
from plyzero.threads import repeating
from plyzero.trainer.export import Forms
from plyzero.trainer.intake import POLL_SECONDS, Intake
from plyzero.trainer.learner import Learner

CURSOR_ENTRIES: Final = 10_000
"""Largest number of incarnations in the file with the cursor: those whose segments were read last."""

SLOW_SECONDS: Final = 10.0
"""Duration of a look at the volume from which on it is reported, in seconds."""

log = logging.getLogger(__name__)


class Reporter:
    """Reports the progress of a trainer to its run's other processes and to people.

    waited:  seconds for which this process has waited for positions; they do not count in the speed of training.
    losses:  the losses since the newest model.
    warning: why the newest weights are not published, or which state was damaged; None after each model.
    workers: number of workers that are alive, by which each of them decides how often it seals.
    surplus: a sentence if they make more than can be trained on, or None.
    slowness: a sentence if a look at the volume takes long, or None.
    company: notices that no worker has ever joined.
    """

    def __init__(
        self,
        run: Run,
        learner: Learner,
        intake: Intake,
        *,
        adoption: Adoption,
        lease: Lease,
        heartbeat: Heartbeat | None,
    ) -> None:
        """heartbeat: None = write none."""
        self._run = run
        self._learner = learner
        self._intake = intake
        self._adoption = adoption
        self._heartbeat = heartbeat
        # Not a part of the heartbeat: each worker reads that, and a line for each of a thousand workers is long.
        self._cursor = Heartbeat(run.trainer / CURSOR)
        self.waited = 0.0
        self.losses = MeanLosses()
        self.warning: str | None = None
        self.workers = 0
        self.surplus: str | None = None
        self.slowness: str | None = None
        # Credit that was discarded at the last look. What an earlier process has discarded does not count.
        self._skipped = math.inf
        self.company = Company(run, clock=time.monotonic)
        self._metrics = run.metrics / f"trainer-{lease.fence:06d}.jsonl"
        self._rows = SparseLines(self._metrics, seconds=0.0)
        self._events = EventFile(run.tensorboard / TRAINER)
        self._generated_rate = Rate()
        self._trained_rate = Rate()
        self._began = time.monotonic()

    def look(self, processes: Sequence[Process]) -> None:
        """Count the workers among all processes, and note whether they make more than can be trained on."""
        self.workers = sum(each.is_alive and each.beat.role == "selfplay" for each in processes)
        before, self._skipped = self._skipped, self._intake.ledger.skipped
        found = balance(processes, ratio=self._learner.settings.replay_ratio)
        has_surplus = found is not None and self._skipped > before and found["suitable_workers"] < self.workers
        surplus = describe_surplus(found, self.workers) if found and has_surplus else None
        if surplus and not self.surplus:
            log.warning("%s", surplus)
        self.surplus = surplus

    def note_slowness(self, seconds: float) -> None:
        """Note how many seconds a look at the volume has taken, in which the trainer does nothing else."""
        before, self.slowness = self.slowness, None
        if seconds >= SLOW_SECONDS:
            self.slowness = (
                f"the volume is slow: a look at {self._run.root} took {seconds:.0f} s, in which nothing is trained; "
                "use a faster volume, or fewer workers"
            )
            if not before:
                log.warning("%s", self.slowness)

    def beating_at_start(self) -> AbstractContextManager[object]:
        """Return a block during which the heartbeat is that of a trainer that starts: resuming may take long."""
        if self._heartbeat is None:
            return nullcontext()
        beat = partial(self._heartbeat.beat, first_beat(self._run.workers))
        return repeating(beat, 0.2, name="heartbeat of the start")

    def beat(self, state: str) -> None:
        """Write the heartbeat of a trainer in `state`, if one is due, and its cursor."""
        if self._heartbeat and self._heartbeat.is_due:
            self._heartbeat.beat(self.describe(state))
            self._write_cursor()

    def end(self, done: str) -> None:
        """Write the last heartbeat. done: the part of the budget that is reached, "" if none is."""
        last = {**self.describe("stopped"), "done": done}
        if self._heartbeat:
            self._heartbeat.beat(last, force=True)
            self._write_cursor()
        if done:
            log.info("%s", describe_end(Progress.parse(last)))

    def report_model(self, name: ModelName, forms: Forms, *, is_last: bool = False) -> None:
        """Log a model that was published, and append its row of metrics, with the losses since the row before.

        After some hours not every model has a row, so that the file stays small; the last one always has.
        """
        self.warning = None
        log.info("published %s: policy loss %s, value loss %s", name, *self.losses.means())
        if not self._rows.begin(force=is_last):
            return
        policy_loss, value_loss = self.losses.take()
        line = {
            **self.describe("training"),
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            **forms.report,
        }
        append_line(self._metrics, {**line, "model": str(name)})
        self._events.add(self._learner.step, TrainerLine.parse(line).scalars())

    def log_progress(self, state: str, *, has_model: bool) -> None:
        """Log a row about the progress of a trainer in `state`; as JSON with the fields of the heartbeat.

        has_model: whether the run has a model; before that, the row says how far the first one is.
        """
        fields = self.describe(state)
        progress = Progress.parse(fields)
        first_model = budget = ""
        if not has_model and self._learner.step:
            made = self._intake.ledger.made
            first_model = f", {describe_first_model(self._run.settings, made=made, trainer=progress)}"
        if left := describe_left(self._run.settings.budget, progress):
            budget = f", {left}"
        log.info(
            f"%(state)s{first_model}: step %(step)d, %(games)d games with %(positions)d positions read, replay ratio "
            "%(replay_ratio).2f of %(replay_ratio_wanted)g, trains %(trained_per_second).0f positions/s"
            f"{budget}",
            fields,
        )

    def describe_waiting(self, missing: int) -> str:
        """Return that the trainer waits for `missing` positions, and for how long if the rate is known.

        Before it has begun to train that is not known: fewer positions must do where games are slow.
        """
        rate = self._generated_rate.per_second(self._intake.ledger.made, time.monotonic())
        text = f"waiting for {missing} positions"
        if rate > 0 and self._intake.ledger.trained:
            text += f", about {missing / rate:.0f} s"
        return text

    def describe(self, state: str) -> dict[str, object]:
        """Return the fields of the heartbeat and of the metrics; docs/formats.md lists them."""
        learner, intake = self._learner, self._intake
        ledger, settings = intake.ledger, learner.settings
        now = time.monotonic()
        speed = self._trained_rate.per_second(ledger.trained, now - self.waited)
        delay = self._run.settings.selfplay.seal_interval(self.workers) + POLL_SECONDS  # until a game is read
        warning = self.warning or self.company.warning or self.slowness or self.surplus
        return {
            "role": "trainer",
            "state": state,
            "step": learner.step,
            "games": intake.games,
            "positions": intake.positions,
            "minutes": round(intake.minutes, 2),
            CONFIRMED: intake.confirmed,
            "budget": self._run.settings.budget.model_dump(exclude_none=True),
            "bootstrap_positions": ledger.bootstrap,
            "generated_positions": ledger.generated,
            "trained_positions": ledger.trained,
            "skipped_positions": round(ledger.skipped),
            "replay_ratio": round(ledger.replay_ratio(), 3),
            "replay_ratio_wanted": settings.replay_ratio,
            "workers": self.workers,
            "credit": round(ledger.credit),
            "credit_enough": round(max(4 * settings.batch_size, 2 * delay * speed)),
            "trained_per_second": round(speed, 1),
            "holes": intake.replay_reader.missing_segments,
            "invalid_games": intake.replay_reader.invalid_games,
            "read_error": intake.replay_reader.read_error or self._adoption.error,
            "window": len(intake.window),
            "seconds": round(now - self._began, 1),
            "waited_seconds": round(self.waited, 1),
            "device": learner.device.type,
            **intake.diagnostics.report,
            **({"warning": warning} if warning else {}),
        }

    def _write_cursor(self) -> None:
        """Write which segments have been read, and how many games were in them."""
        newest = [*self._intake.replay_reader.cursor.items()][-CURSOR_ENTRIES:]
        self._cursor.beat({"games": self._intake.games, "cursor": dict(newest)}, force=True)


class MeanLosses:
    """Means of the policy and the value loss, which are summed on the learner's device: reading waits for a GPU."""

    def __init__(self) -> None:
        self._sums = torch.zeros(2)
        self._steps = 0

    def add(self, losses: Tensor) -> None:
        """Add the losses of a step, `[2]`."""
        self._sums = self._sums + losses if self._steps else losses
        self._steps += 1

    def are_finite(self) -> bool:
        """Return whether all that were added are finite."""
        return bool(self._sums.isfinite().all())

    def take(self) -> tuple[float | None, float | None]:
        """Return the means and begin again."""
        found = self.means()
        self._steps = 0
        return found

    def means(self) -> tuple[float | None, float | None]:
        """Return the means so far; None and None if there was no step."""
        if not self._steps:
            return None, None
        policy, value = (self._sums.cpu().numpy() / self._steps).round(4).tolist()
        return policy, value
