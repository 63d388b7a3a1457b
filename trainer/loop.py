"""The loop of the trainer: ingest new segments, train as much as the replay ratio allows or wait, publish models."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import asdict
from functools import partial
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from plyzero import __version__
from plyzero.files import interval
from plyzero.kits.cluster.data_parallel import Ranks, check_devices
from plyzero.machine import usable_cores
from plyzero.ops.summary import describe_first_model
from plyzero.run.adoption import Adoption
from plyzero.run.budget import describe_end, describe_left, find_reached, note_confirmation
from plyzero.run.directory import Run
from plyzero.run.events import CONFIRMED, RATINGS, Confirmation, NewLines, Progress, TrainerLine, first_beat
from plyzero.run.lease import Lease
from plyzero.run.metrics import TRAINER, EventFile, Heartbeat, Rate, append_line
from plyzero.run.models import list_models, publish_model
from plyzero.run.records import Games
from plyzero.run.segments import SegmentError, SegmentName
from plyzero.run.view import Company
from plyzero.threads import repeating
from plyzero.trainer.diagnosis.diagnostics import HELD_OUT, Diagnostics
from plyzero.trainer.export import ExportError, describe_model, export, is_finite, make_forms
from plyzero.trainer.learner import Learner, load_weights
from plyzero.trainer.ledger import Ledger
from plyzero.trainer.network import choose_device
from plyzero.trainer.parts import make_parts
from plyzero.trainer.replay_reader import ReplayReader
from plyzero.trainer.retention import Retention
from plyzero.trainer.state import State, load_state, save_state
from plyzero.trainer.targets import make_samples
from plyzero.trainer.window import Sampler, Window, window_size
from plyzero.volume_errors import FileErrors, retry, wait_for

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0  # between two listings of the store
MAINTAIN_SECONDS: Final = 10.0  # between two calls of `maintain`
LOG_SECONDS: Final = 30.0  # between two rows about progress in the log
FIRST_SAVE_SECONDS: Final = 60.0  # between two states before there is a model; later each model has one
SAVE_SECONDS: Final = 40.0  # for which a trainer that ends retries to save its state
CURSOR_ENTRIES: Final = 1000  # largest number of incarnations in the heartbeat, which stays small
TURN_STEPS: Final = 256  # of the trainer, for which the workers play, and then wait, if they take turns
CHECK_STEPS: Final = 64  # after which the losses of a GPU are read back, for which it must have made all its steps
EXPORT_POSITIONS: Final = 256  # on which an exported model is compared with torch


def run_trainer(
    run: Run, *, device: str = "auto", devices: int = 1, stop: threading.Event, ready: Callable[[], None] = lambda: None
) -> None:
    """Resume from the newest state of the run, train until its budget is reached or `stop` is set, save and publish.

    device:  cpu, cuda, or auto, which is cuda if it is available and otherwise cpu.
    devices: number of GPUs, or of processes on the CPU, that make every step together.
    ready:   called when it has resumed; until then it has nothing to save.

    Raises UserError if another trainer works on this run, and RankError if one of these processes ends.
    """
    heartbeat = Heartbeat(*run.heartbeats(TRAINER))
    with closing(Trainer(run, device=device, devices=devices, heartbeat=heartbeat)) as trainer:
        ready()
        next_maintenance = next_poll = 0.0
        next_log = time.monotonic() + LOG_SECONDS
        while not (stop.is_set() or trainer.reached()):
            if trainer.ranks:
                trainer.ranks.check()
            now = time.monotonic()
            if now >= next_maintenance:
                trainer.maintain()
                next_maintenance = now + MAINTAIN_SECONDS
            if now >= next_poll:
                trainer.ingest()
                next_poll = now + interval(run.segments, POLL_SECONDS)
            missing = trainer.missing_positions()
            state = trainer.describe_waiting() if missing and not trainer.turn_ends() else "training"
            heartbeat.beat(trainer.describe_process(state))
            if now >= next_log:
                trainer.log_progress(state)
                next_log = now + LOG_SECONDS
            if not missing:
                trainer.train_step()
            if trainer.publish_is_due(waiting=missing > 0):
                trainer.publish()
            elif missing:
                stop.wait(0.2)
                trainer.waited += time.monotonic() - now
        trainer.end(heartbeat)


def check_resumes(run: Run) -> None:
    """Raise UserError if the trainer of `run` could not continue from its newest state. Nothing is written."""
    if state := load_state(run.trainer):
        parts = make_parts(run.game, run.settings)
        load_weights(Learner(parts.network, parts.loss, run.settings.trainer, torch.device("cpu")), state, run)


class Trainer(Learner):
    """A learner with the window and the ledger of one run.

    games:     number of games read.
    positions: number of positions read.
    waited:    seconds for which this process has waited for positions.
    minutes:   time of training after the first game, in all starts, in minutes, at the last call of `ingest`.
    """

    def __init__(self, run: Run, *, device: str, devices: int = 1, heartbeat: Heartbeat | None = None) -> None:
        """Try the parts, acquire the lease of the run, resume from its newest state and start further processes.

        heartbeat: written from the moment at which the lease is acquired.
        Raises UserError if one of these is impossible, and RankError if one of the processes cannot start.
        """
        self.run, found = run, choose_device(device)
        check_devices(devices, found, asked=device, batch_size=run.settings.trainer.batch_size)
        torch.manual_seed(run.seed)
        self.parts = make_parts(run.game, run.settings)
        super().__init__(self.parts.network, self.parts.loss, run.settings.trainer, found, halves_on_cpu=devices == 1)
        about = {"host": socket.gethostname(), "pid": os.getpid(), "plyzero": __version__}
        self._heartbeat = heartbeat
        self.lease = wait_for(lambda: Lease(run.trainer, about), "trainer/")
        self.rng = np.random.default_rng(run.seed)
        self.window = Window(run.game.start)
        sample = partial(self.window.sample, self.settings.batch_size, self.rng)
        self.sampler = Sampler(sample, ahead=found.type == "cuda" and devices == 1)
        self.diagnostics = Diagnostics(run.game, self.settings)
        self.ledger = Ledger()
        self.replay_reader = ReplayReader(run)
        self.adoption = Adoption(run)
        self.retention = Retention(run)
        self.company = Company(run, clock=time.monotonic)
        self._file_errors = FileErrors()
        self._events = EventFile(run.tensorboard / TRAINER)
        self._generated_rate, self._trained_rate = Rate(), Rate()
        self.games, self.positions, self.waited, self.minutes = 0, 0, 0.0, 0.0
        self._ingested_at: float | None = None  # with a game
        self._ratings = NewLines(run.metrics / RATINGS)
        self._confirmed: dict[str, Confirmation] = {}
        self._loss_sums = torch.zeros(2)  # policy and value loss, summed since the last published model
        self._summed_steps = 0
        self._is_first = not wait_for(lambda: list_models(run.models), "models/")
        self._takes_turns = run.settings.selfplay.when_ahead == "turns"
        self._rests = self._takes_turns and not self._is_first
        torch.set_num_threads(max(self.settings.threads, self._is_first * usable_cores()))  # the workers wait for it
        self._unpublished: str | None = None  # a warning until the next model is published
        self._published_step = -1
        self._published_at, self._publishing_seconds = -np.inf, 0.0  # of the last publication
        self._began = self._saved_at = time.monotonic()
        self.ranks: Ranks | None = None
        try:
            beat = partial(heartbeat.beat, first_beat(run.workers)) if heartbeat else None
            with repeating(beat, 0.2, name="heartbeat of the start") if beat else nullcontext():
                self._resume()
                if devices > 1:
                    self.ranks = Ranks(self, run.game, run.settings, seed=run.seed, devices=devices)
        except BaseException:
            self.close()
            raise
        log.info("trainer of %s on %s, step %d, fence %d", run.game.name, self.device, self.step, self.lease.fence)

    def close(self) -> None:
        """End the further processes and release the lease, so that another trainer can start."""
        if self.ranks:
            self.ranks.close()
        self.lease.release()

    def maintain(self) -> None:
        """Seal the journals of dead workers and remove files that are not needed. An OSError is only logged.

        Before there is a model, also save the state now and then.
        """
        with self._file_errors.skipping(self.run.trainer, "cannot be read"):
            self.lease.check()
            self.retention.view.refresh()
            self.company.look(self.retention.view.heartbeats, games=self.games)
            self.adoption.adopt()
            self.retention.prune_for_states()
            if self._is_first and self.step and time.monotonic() - self._saved_at >= FIRST_SAVE_SECONDS:
                self.save()

    def ingest(self) -> None:
        """Add every new segment to window and ledger, each once and in its writer's order."""
        games_before = self.games
        for name, games in self.replay_reader.read_new(enough=lambda: bool(self.reached())):
            if self._heartbeat:  # to read a long backlog is progress
                self._heartbeat.beat(self.describe_process("reading games"))
            self._add_to_window(name, games)
            self.diagnostics.record(name, games)
            self.games += len(games.games)
            self.positions += len(games.positions)
            if name.bootstrap:
                limit = self.run.settings.selfplay.bootstrap_positions
                self.ledger.earn_bootstrap(games.num_full, passes=self.settings.bootstrap_passes, limit=limit)
            else:
                self.ledger.earn(games.num_full, ratio=self.settings.replay_ratio)
        self.ledger.cap(self.settings.replay_ratio * self._window_size())
        now, before = time.monotonic(), self._ingested_at
        self.minutes += 0.0 if before is None else (now - before) / 60
        self._ingested_at = now if before is not None or self.games > games_before else None
        with self._file_errors.skipping(self.run.metrics, "cannot be read"):
            for line in self._ratings.read():
                note_confirmation(self._confirmed, line)

    def reached(self) -> str:
        """Return the part of the budget that is reached; "" if none, or if there is no model yet and steps are left."""
        budget = self.run.settings.budget
        has_steps_left = budget.steps is None or self.step < budget.steps
        found = None if self._is_first and has_steps_left else find_reached(budget, self._progress())
        return found.text if found else ""

    def _progress(self) -> Progress:
        return Progress(
            step=self.step,
            games=self.games,
            positions=self.positions,
            minutes=round(self.minutes, 2),
            confirmed=self._confirmed,
        )

    def missing_positions(self) -> int:
        """Return how many more positions must be generated before the next step; 0 = train now."""
        bootstrap = self.run.settings.selfplay.bootstrap_positions
        if self.ledger.bootstrap + self.ledger.generated < bootstrap:
            return bootstrap - self.ledger.bootstrap - self.ledger.generated
        wanted = float(self.settings.batch_size)
        if self._rests:  # until there is enough for a turn, which is less than the largest credit
            wanted = max(wanted, min(wanted * TURN_STEPS, self.settings.replay_ratio * self._window_size() / 2))
        lacking = wanted - self.ledger.credit
        return max(0 if len(self.window) else 1, int(np.ceil(lacking / self.settings.replay_ratio)))

    def describe_waiting(self) -> str:
        """Return how many positions the trainer waits for, and for how long if the rate is known.

        The first games of all workers end together, so there is no rate before as many games have ended.
        """
        missing = self.missing_positions()
        rate = self._generated_rate.per_second(self.ledger.bootstrap + self.ledger.generated, time.monotonic())
        first_games = self.run.settings.selfplay.parallel_games * len(self.replay_reader.cursor)
        is_known = rate > 0 and self.games >= first_games
        return f"waiting for {missing} positions" + (f", about {missing / rate:.0f} s" if is_known else "")

    def log_progress(self, state: str) -> None:
        """Log a row about the progress of a trainer in `state`; as JSON with the fields of the heartbeat."""
        fields = self.describe(state)
        progress = Progress.parse(fields)
        left = ""
        if self._is_first and self.step:
            left = f", {describe_first_model(self.run.settings, made=self.ledger.bootstrap, trainer=progress)}"
        budget = describe_left(self.run.settings.budget, progress)
        log.info(
            f"%(state)s{left}: step %(step)d, %(games)d games with %(positions)d positions read, replay ratio "
            "%(replay_ratio).2f of %(replay_ratio_wanted)g, trains %(trained_per_second).0f positions/s"
            f"{budget and f', {budget}'}",
            fields,
        )

    def train_step(self) -> None:
        """Make one optimiser step on a batch of the window."""
        batch = self.sampler.take()
        losses = self.ranks.learn(batch) if self.ranks else self.learn(batch)
        self._loss_sums = self._loss_sums + losses if self._summed_steps else losses
        self.ledger.spend(self.settings.batch_size)
        self._rests = self._takes_turns and self.ledger.credit < self.settings.batch_size
        self._summed_steps += 1
        if self._loss_sums.device.type == "cpu" or self.step % CHECK_STEPS == 0:
            self.check_finite("loss", bool(self._loss_sums.isfinite().all()))

    def publish_is_due(self, *, waiting: bool) -> bool:
        """Return whether to publish a model now. The first one is due when the credit of the bootstrap is spent.

        With the games of another run there is far more credit: then the first model is due after as many positions as
        a bootstrap earns. While there is something to train, publishing takes no more time than training.
        """
        if not self._has_unpublished_steps():
            return False
        learned = waiting or self.ledger.trained >= self.run.settings.bootstrap_credit
        if self._is_first and not (learned and self.step > 0):
            return False
        pause = max(self.settings.publish_seconds, 0 if waiting else 2 * self._publishing_seconds)
        if self._takes_turns and not self._is_first:
            pause = POLL_SECONDS if self.turn_ends() else np.inf
        return time.monotonic() - self._published_at >= pause

    def turn_ends(self) -> bool:
        """Return whether a turn of the trainer is over except for the model that it publishes."""
        return self._rests and self._has_unpublished_steps()

    def publish(self, *, is_saved: bool = False) -> None:
        """Save the state, then publish the averaged weights. What fails is reported, and tried again later."""
        self._published_at = time.monotonic()
        try:
            if not is_saved:
                self.save()
            self._publish()
        except (OSError, ExportError) as error:
            self._unpublished = f"step {self.step} is not published, training goes on: {error}"
            log.warning("%s", self._unpublished)
        self._publishing_seconds = time.monotonic() - self._published_at

    def end(self, heartbeat: Heartbeat) -> None:
        """Save the state, publish the averaged weights if they are not published yet, and say whether the run is done.

        A first model that is not learned yet is published if it is the last one. Raises OSError if the state cannot be
        saved.
        """
        done = self.reached()
        retry(self.save, "trainer/", seconds=SAVE_SECONDS)
        if (done or not self._is_first) and self._has_unpublished_steps():
            self.publish(is_saved=True)
        last = {**self.describe_process("stopped"), "done": done}
        heartbeat.beat(last, force=True)
        if done:
            log.info("%s", describe_end(Progress.parse(last)))

    def _publish(self) -> None:
        """Export, verify and publish the averaged weights, whose state has been saved, then evaluate them."""
        observations = self._sample_observations()
        positions = self.ledger.bootstrap + self.ledger.generated
        metadata = describe_model(self.run.settings, step=self.step, positions=positions, run_id=self.run.id)
        try:
            content = export(self.averaged.module, self.run.game, observations, metadata=metadata)
        finally:
            self.averaged.module.to(self.device)
        forms = make_forms(self.run, content, observations, self.diagnostics.held_out_observations(self.step))
        self.lease.check()  # exporting takes a while
        name = publish_model(self.run.models, forms.content, fence=self.lease.fence, step=self.step, int8=forms.int8)
        self._is_first, self._published_step, self._unpublished = False, self.step, None
        torch.set_num_threads(self.settings.threads)
        # Only now: a model that could not be exported must not make the workers' models look outdated.
        self.diagnostics.evaluate(self.averaged.module, self.window, step=self.step, device=self.device)
        steps = self._summed_steps  # 0 where there was none since this start
        losses = (self._loss_sums.cpu().numpy() / steps).round(4).tolist() if steps else [None, None]
        self._summed_steps = 0
        log.info("published %s: policy loss %s, value loss %s", name, *losses)
        line = {**self.describe("training"), "policy_loss": losses[0], "value_loss": losses[1], **forms.report}
        append_line(self.run.metrics / f"trainer-{self.lease.fence:06d}.jsonl", line | {"model": str(name)})
        self._events.add(self.step, TrainerLine.parse(line).scalars())

    def save(self) -> None:
        """Save the state, from which the trainer resumes.

        Raises UserError if another trainer has taken over, or if the network has diverged: the state before is kept.
        """
        self.lease.check()
        self.sampler.pause()
        observations = self._sample_observations() if len(self.window) else None
        self.check_finite("network", is_finite(self.network) and is_finite(self.averaged.module, observations))
        state: State = {
            **self.state_dict(),  # type: ignore[typeddict-item]  # which has no optional keys
            "games": self.games,
            "positions": self.positions,
            "torch_rng": torch.get_rng_state(),
            "rng": json.dumps(self.rng.bit_generator.state),
            "ledger": asdict(self.ledger),
            "cursor": self.replay_reader.cursor,
            "holes": self.replay_reader.missing_segments,
            "skipped": self.replay_reader.skipped,
            "invalid_games": self.replay_reader.invalid_games,
            "window": self.window.names,
            "minutes": self.minutes,
        }
        if self.run.id:
            state["run"] = self.run.id.text
        save_state(self.run.trainer, state, fence=self.lease.fence, step=self.step)
        self._saved_at = time.monotonic()
        self.retention.remember_state(self.lease.fence, state)

    def describe(self, state: str) -> dict[str, object]:
        """Return the fields of the heartbeat and of the metrics; docs/formats.md lists them."""
        now = time.monotonic()
        speed = self._trained_rate.per_second(self.ledger.trained, now - self.waited)
        enough = 2 * (self.run.settings.selfplay.seal_seconds + POLL_SECONDS)  # twice the delay until a game is read
        return {
            "role": "trainer",
            "state": state,
            "step": self.step,
            "games": self.games,
            "positions": self.positions,
            "minutes": round(self.minutes, 2),
            CONFIRMED: self._confirmed,
            "budget": self.run.settings.budget.model_dump(exclude_none=True),
            "bootstrap_positions": self.ledger.bootstrap,
            "generated_positions": self.ledger.generated,
            "trained_positions": self.ledger.trained,
            "skipped_positions": round(self.ledger.skipped),
            "replay_ratio": round(self.ledger.replay_ratio(), 3),
            "replay_ratio_wanted": self.settings.replay_ratio,
            "credit": round(self.ledger.credit),
            "credit_enough": round(max(4 * self.settings.batch_size, enough * speed)),
            "trained_per_second": round(speed, 1),
            "holes": self.replay_reader.missing_segments,
            "invalid_games": self.replay_reader.invalid_games,
            "read_error": self.replay_reader.read_error or self.adoption.error,
            "window": len(self.window),
            "seconds": round(now - self._began, 1),
            "waited_seconds": round(self.waited, 1),
            "device": self.device.type,
            **self.diagnostics.report,
            **({"warning": warning} if (warning := self._unpublished or self.company.warning) else {}),
        }

    def describe_process(self, state: str) -> dict[str, object]:
        """Return the fields of the heartbeat, which unlike the metrics also has the newest entries of the cursor."""
        return {**self.describe(state), "cursor": dict([*self.replay_reader.cursor.items()][-CURSOR_ENTRIES:])}

    def _resume(self) -> None:
        damaged: list[str] = []
        state = wait_for(lambda: load_state(self.run.trainer, set_aside=damaged), "trainer/")
        self._unpublished = next(iter(damaged), None)
        if state is None:
            return
        load_weights(self, state, self.run)
        self.games, self.positions, self.minutes = state["games"], state["positions"], state.get("minutes", 0.0)
        torch.set_rng_state(state["torch_rng"])
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.ledger = Ledger(**state["ledger"])
        reader = self.replay_reader
        reader.cursor, reader.missing_segments = state["cursor"], state["holes"]
        reader.skipped, reader.invalid_games = state.get("skipped", {}), state.get("invalid_games", 0)  # not in 0.2
        self.retention.remember_state(0, state)
        for text in state["window"]:
            name = SegmentName.parse(text)
            assert name is not None
            try:
                self._add_to_window(name, reader.read_again(name))
            except (OSError, SegmentError) as error:
                log.warning("no longer in the window: %s", error)

    def _sample_observations(self) -> NDArray[np.float32]:
        """Return positions of the window, the same for the same step."""
        return self.window.sample(EXPORT_POSITIONS, np.random.default_rng(self.step)).observations

    def _has_unpublished_steps(self) -> bool:
        return self.step != self._published_step and len(self.window) > 0

    def _add_to_window(self, name: SegmentName, games: Games) -> None:
        """Add the games of a segment to the window, and the held-out ones to the held-out positions."""
        size = self._window_size()
        trained, held_out = self.diagnostics.split(games)
        self._add_samples(self.window, name, trained, size=size)
        self._add_samples(self.diagnostics.held_out, name, held_out, size=-(-size // HELD_OUT))

    def _add_samples(self, window: Window, name: SegmentName, games: Games, *, size: int) -> None:
        settings, make_targets = self.run.settings, self.parts.make_targets
        start, search = self.run.game.start if settings.network.points else None, settings.search
        samples = make_samples(games, search=search, trainer=self.settings, make_targets=make_targets, start=start)
        if len(samples.wdl):
            self.sampler.pause()
            window.add(str(name), samples, size=size)

    def _window_size(self) -> int:
        made, own = self.ledger.bootstrap + self.ledger.generated, self.settings
        return window_size(made, smallest=own.window_positions, growth=own.window_growth, exponent=own.window_exponent)
