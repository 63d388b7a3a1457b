"""The loop of the trainer, until its budget is reached:

ingest   new games enter the window and earn credit to train          intake
train    a step on a batch of the window, while there is credit       learner
publish  when a model is due: save the state, export, publish         publisher
report   the heartbeat, a row of metrics for each model, log lines    reporter
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import numpy as np
import torch

from plyzero import __version__
from plyzero.errors import UserError, plain
from plyzero.files import interval
from plyzero.machine import usable_cores
from plyzero.run.adoption import Adoption
from plyzero.run.budget import find_reached
from plyzero.run.directory import KEY, Run
from plyzero.run.lease import Lease
from plyzero.run.metrics import TRAINER, Heartbeat
from plyzero.run.models import publish_model
from plyzero.trainer.export import ExportError, with_metadata
from plyzero.trainer.intake import POLL_SECONDS, Intake
from plyzero.trainer.learner import Devices, Learner, load_weights
from plyzero.trainer.network import choose_device
from plyzero.trainer.parts import make_parts
from plyzero.trainer.publisher import Publisher
from plyzero.trainer.reporter import Reporter
from plyzero.trainer.retention import Retention
from plyzero.trainer.state import LearnerState, load_state
from plyzero.volume_errors import FileErrors, retry, wait_for

log = logging.getLogger(__name__)

MAINTAIN_SECONDS: Final = 10.0  # between two calls of `maintain`
LOG_SECONDS: Final = 30.0  # between two rows about progress in the log
FIRST_SAVE_SECONDS: Final = 60.0  # between two saves before there is a model; later there is one for each model
SAVE_SECONDS: Final = 40.0  # time to retry the last save of a trainer that ends
READ_SECONDS: Final = 4.0  # of reading, at most, before a trainer that can train does so for POLL_SECONDS
TURN_STEPS: Final = 256  # steps of the trainer in a turn, where it and the workers take turns
CHECK_STEPS: Final = 64  # steps between two reads of the losses of a GPU; each read waits for the GPU


def run_trainer(
    run: Run,
    *,
    device: str = "auto",
    start_devices: Callable[[Learner], Devices] | None = None,
    stop: threading.Event,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Resume from the newest state of the run, train until its budget is reached or `stop` is set, save and publish.

    device:        cpu, cuda, or auto, which is cuda if it is available and otherwise cpu.
    start_devices: start further devices, which make every step together with that of the learner.
    ready:         called when it has resumed; until then it has nothing to save.

    Raises UserError if another trainer works on this run.
    """
    heartbeat = Heartbeat(*run.heartbeats(TRAINER))
    with closing(Trainer(run, device=device, start_devices=start_devices, heartbeat=heartbeat)) as trainer:
        ready()
        next_maintenance = next_poll = 0.0
        next_log = time.monotonic() + LOG_SECONDS
        while not (stop.is_set() or trainer.reached()):
            trainer.check_devices()
            now = time.monotonic()
            if now >= next_maintenance:
                trainer.maintain()
                took = time.monotonic() - now
                trainer.reporter.note_slowness(took)
                next_maintenance = time.monotonic() + max(MAINTAIN_SECONDS, took)  # half of the time is left to train
            if now >= next_poll:
                trainer.ingest(seconds=READ_SECONDS)
                next_poll = time.monotonic() + interval(run.segments, POLL_SECONDS)
            missing = trainer.missing_positions()
            waits = missing > 0 and not trainer.turn_ends()
            state = trainer.reporter.describe_waiting(missing) if waits else "training"
            trainer.reporter.beat(state)
            if now >= next_log:
                trainer.reporter.log_progress(state, has_model=not trainer.publisher.is_first)
                next_log = now + LOG_SECONDS
            if not missing:
                trainer.train_step()
            if trainer.publish_is_due(waiting=missing > 0):
                trainer.publish()
            elif missing:
                stop.wait(0.2)
                trainer.reporter.waited += time.monotonic() - now
        trainer.end()


class Trainer:
    """A learner with what it learns from, and what becomes of it.

    learner:   makes the steps.
    devices:   makes them together with the learner's device; None = the learner alone.
    intake:    the games that were read, and the credit to train.
    publisher: saves states and publishes models.
    reporter:  heartbeat, metrics and log.
    adoption:  seals the journals of dead workers, so that their games become segments.
    retention: removes files that are not needed.
    lease:     shows that no other trainer works on this run.
    """

    def __init__(
        self,
        run: Run,
        *,
        device: str,
        start_devices: Callable[[Learner], Devices] | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        """Try the parts, acquire the lease of the run, resume from its newest state and start further devices.

        heartbeat: written from the moment at which the lease is acquired.
        Raises UserError if one of these is impossible, and whatever `start_devices` raises.
        """
        self.run = run
        self.settings = run.settings.trainer
        found = choose_device(device)
        is_alone = start_devices is None
        torch.manual_seed(run.seed)
        parts = make_parts(run.game, run.settings)
        self.learner = Learner(parts.network, parts.loss, self.settings, found, halves_on_cpu=is_alone)
        self.devices: Devices | None = None
        about = {"host": socket.gethostname(), "pid": os.getpid(), "plyzero": __version__}
        self.lease = wait_for(lambda: Lease(run.trainer, about), "trainer/")
        self.adoption = Adoption(run)
        self.intake = Intake(run, parts.make_targets, ahead=is_alone and found.type == "cuda")
        self.retention = Retention(run)
        self.publisher = Publisher(run, self.learner, self.intake, lease=self.lease, retention=self.retention)
        self.reporter = Reporter(
            run, self.learner, self.intake, adoption=self.adoption, lease=self.lease, heartbeat=heartbeat
        )
        self._attempted_at = -np.inf  # when this process last began to publish
        self._attempt_seconds = 0.0
        self._file_errors = FileErrors()
        self._takes_turns = run.settings.selfplay.when_ahead == "turns"
        self._rests = self._takes_turns and not self.publisher.is_first
        # While there is no model the workers wait for one, so that all cores are free.
        cores = usable_cores() if self.publisher.is_first else 1
        torch.set_num_threads(max(self.settings.threads, cores))
        try:
            with self.reporter.beating_at_start():
                self.reporter.warning = self.publisher.resume()
                if start_devices is not None:
                    self.devices = start_devices(self.learner)
        except BaseException:
            self.close()
            raise
        log.info("trainer of %s on %s, step %d, fence %d", run.game.name, found, self.learner.step, self.lease.fence)

    def close(self) -> None:
        """End the further devices and release the lease, so that another trainer can start."""
        if self.devices:
            self.devices.close()
        self.lease.release()

    def check_devices(self) -> None:
        """Raise an error if the further devices can make no step any more."""
        if self.devices:
            self.devices.check()

    def maintain(self) -> None:
        """Seal the journals of dead workers and remove files that are not needed. An OSError is only logged.

        Before there is a model, also save the state now and then.
        """
        with self._file_errors.skipping(self.run.trainer, "cannot be read"):
            self.lease.check()
            self.retention.view.refresh()
            self.reporter.company.look(self.retention.view.heartbeats, games=self.intake.games)
            self.reporter.look(self.retention.view.processes())
            self.adoption.adopt(beating=self.retention.view.beating())
            self.retention.prune_for_states()
            since_save = time.monotonic() - self.publisher.saved_at
            if self.publisher.is_first and self.learner.step and since_save >= FIRST_SAVE_SECONDS:
                self.publisher.save()

    def ingest(self, *, seconds: float = math.inf) -> None:
        """Add the games of every new segment to the window, and to the ledger the credit that they earn.

        seconds: time after which the rest is left for the next call, while there is credit to train. Otherwise a
                 trainer that reads more slowly than its workers write would never train.
        """
        latest = time.monotonic() + seconds

        def is_enough() -> bool:
            return bool(self.reached()) or (time.monotonic() >= latest and not self.missing_positions())

        self.intake.ingest(enough=is_enough, on_segment=lambda: self.reporter.beat("reading games"))

    def reached(self) -> str:
        """Return the part of the budget that is reached; "" if none, or if there is no model yet and steps are left."""
        budget, step = self.run.settings.budget, self.learner.step
        has_steps_left = budget.steps is None or step < budget.steps
        if self.publisher.is_first and has_steps_left:
            return ""
        found = find_reached(budget, self.intake.progress(step))
        return found.text if found else ""

    def missing_positions(self) -> int:
        """Return how many more positions must be generated before the next step; 0 = train now."""
        if for_first := self._missing_for_first_model():
            return for_first
        ratio = self.settings.replay_ratio
        wanted = float(self.settings.batch_size)
        if self._rests:  # until there is enough for a turn, which is less than the largest credit
            wanted = max(wanted, min(wanted * TURN_STEPS, ratio * self.intake.window_size() / 2))
        lacking = wanted - self.intake.ledger.credit
        least = 0 if len(self.intake.window) else 1
        return max(least, int(np.ceil(lacking / ratio)))

    def _missing_for_first_model(self) -> int:
        """Return how many more positions must be generated before training begins.

        Where games are slow fewer must do: their number falls with the time since the first game.
        """
        ledger, settings = self.intake.ledger, self.run.settings.selfplay
        if ledger.trained or ledger.generated:
            return 0
        waited = 60 * self.intake.minutes / settings.bootstrap_seconds
        wanted = math.ceil(settings.bootstrap_positions / (1 + waited) ** 2)
        return max(0, wanted - ledger.made)

    def train_step(self) -> None:
        """Make one optimiser step on a batch of the window."""
        batch = self.intake.sampler.take()
        losses = self.devices.learn(batch) if self.devices else self.learner.learn(batch)
        self.reporter.losses.add(losses)
        self.intake.ledger.spend(self.settings.batch_size)
        self._rests = self._takes_turns and self.intake.ledger.credit < self.settings.batch_size
        if losses.device.type == "cpu" or self.learner.step % CHECK_STEPS == 0:
            self.learner.check_finite("loss", self.reporter.losses.are_finite())

    def publish_is_due(self, *, waiting: bool) -> bool:
        """Return whether to publish a model now. The first one is due when the credit of the bootstrap is spent.

        With the games of another run there is far more credit: then the first model is due after as many positions as
        a bootstrap earns. While there is something to train, publishing takes no more time than training.
        """
        if not self.publisher.has_unpublished_steps():
            return False
        if self.publisher.is_first:
            is_learned = waiting or self.intake.ledger.trained >= self.run.settings.bootstrap_credit
            if not (is_learned and self.learner.step > 0):
                return False
        pause = self.settings.publish_seconds
        if not waiting:
            pause = max(pause, 2 * self._attempt_seconds)
        if self._takes_turns and not self.publisher.is_first:
            pause = POLL_SECONDS if self.turn_ends() else np.inf
        return time.monotonic() - self._attempted_at >= pause

    def turn_ends(self) -> bool:
        """Return whether a turn of the trainer is over except for the model that it publishes."""
        return self._rests and self.publisher.has_unpublished_steps()

    def publish(self) -> None:
        """Save the state, then publish the averaged weights. What fails is reported, and tried again later."""
        with self._attempt():
            self.publisher.save()
            self._publish()

    def end(self) -> None:
        """Save the state, publish the averaged weights if they are not published yet, and say whether the run is done.

        A first model that is not learned yet is published if it is the last one. Raises OSError if the state cannot be
        saved.
        """
        done = self.reached()
        retry(self.publisher.save, "trainer/", seconds=SAVE_SECONDS)
        if (done or not self.publisher.is_first) and self.publisher.has_unpublished_steps():
            with self._attempt():
                self._publish(is_last=True)
        self.reporter.end(done)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Measure how long it takes to publish. What fails is a warning until the next model."""
        self._attempted_at = time.monotonic()
        try:
            yield
        except (OSError, ExportError) as error:
            warning = f"step {self.learner.step} is not published, training goes on: {error}"
            self.reporter.warning = warning
            log.warning("%s", warning)
        self._attempt_seconds = time.monotonic() - self._attempted_at

    def _publish(self, *, is_last: bool = False) -> None:
        """Publish the averaged weights, whose state has been saved, evaluate them and report both."""
        name, forms = self.publisher.publish()
        torch.set_num_threads(self.settings.threads)
        # Only now: a model that could not be exported must not make the workers' models look outdated.
        self.intake.diagnostics.evaluate(
            self.learner.averaged.module, self.intake.window, step=self.learner.step, device=self.learner.device
        )
        self.reporter.report_model(name, forms, is_last=is_last)


def check_resumes(run: Run) -> None:
    """Raise UserError if the trainer of `run` could not continue from its newest state. Nothing is written."""
    if state := load_state(run.trainer):
        parts = make_parts(run.game, run.settings)
        load_weights(Learner(parts.network, parts.loss, run.settings.trainer, torch.device("cpu")), state, run)


def begin_run(run: Run, model: bytes, state: LearnerState) -> None:
    """Give a run without games its first model, an ONNX file, and the `state` of a learner from which to continue.

    The ledger begins with zero: it does not count what the learner has learned before.
    Raises UserError if the state is not of the run's network.
    """
    assert run.id
    with closing(Trainer(run, device="cpu")) as trainer:
        try:
            trainer.learner.load_state_dict(state)
        except RuntimeError as error:
            raise UserError(
                f"the weights do not fit {run.settings.network.module} as it is now: {plain(str(error), 200)}"
            ) from error
        trainer.publisher.save()
        own = with_metadata(model, KEY, run.id.text)
        publish_model(run.models, own, fence=trainer.lease.fence, step=trainer.learner.step)
