"""The trainer's loop: take in new segments, train as much as the replay ratio allows, publish, save."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from plyzero import __version__
from plyzero.errors import UserError
from plyzero.run.directory import Run
from plyzero.run.journals import adopt_journals
from plyzero.run.lease import Lease
from plyzero.run.metrics import TRAINER, Heartbeat, Rate, append_line
from plyzero.run.models import list_models, publish_model
from plyzero.run.records import Games
from plyzero.run.segments import SegmentError, SegmentName, read_segment
from trainer.diagnostics import HELD_OUT, Diagnostics
from trainer.export import ExportError, export
from trainer.ledger import Ledger
from trainer.loss import loss
from trainer.network import ResidualNetwork
from trainer.replay_reader import ReplayReader
from trainer.retention import Retention
from trainer.state import KEPT, load_state, save_state
from trainer.targets import make_samples
from trainer.window import Window, window_size

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often the store is looked through for new segments."""

MAINTAIN_SECONDS = 10.0
"""How often the journals of dead workers are taken over and old files removed."""


def run_trainer(run: Run, *, device: str = "auto", stop: threading.Event) -> None:
    """Train until `stop` is set, then save, and publish what has been learned since. Resumes from the newest state.

    device: cpu, cuda, or auto, which is cuda where there is one.
    Raises UserError if another trainer works on this run.
    """
    with closing(Trainer(run, device=device)) as trainer:
        heartbeat = Heartbeat(run.workers / f"{TRAINER}.json")
        next_poll = next_keep = 0.0
        while not stop.is_set():
            now = time.monotonic()
            if now >= next_keep:
                trainer.maintain()
                next_keep = now + MAINTAIN_SECONDS
            if now >= next_poll:
                trainer.ingest()
                next_poll = now + POLL_SECONDS
            missing = trainer.missing_positions()
            heartbeat.beat(trainer.describe(trainer.what_is_missing() if missing else "training"))
            if not missing:
                trainer.train_step()
            if trainer.publish_is_due(waiting=missing > 0):
                trainer.publish()
            elif missing:
                stop.wait(0.2)
                trainer.waited += time.monotonic() - now
        trainer.finish()
        heartbeat.beat(trainer.describe("stopped"), force=True)


class Restorable(NamedTuple):
    """What a state on the disk needs of the store: all segments from its cursor on, and those of its window."""

    cursor: dict[str, int]
    window: frozenset[str]


class Trainer:
    """Network, optimiser, window and ledger of one run, and what is done with them."""

    def __init__(self, run: Run, *, device: str) -> None:
        self.run, self.settings = run, run.settings.trainer
        self.device = _device(device)
        about = {"host": socket.gethostname(), "pid": os.getpid(), "plyzero": __version__}
        self.lease = Lease(run.trainer, about)
        torch.set_num_threads(self.settings.threads)
        torch.manual_seed(run.seed)
        self.rng = np.random.default_rng(run.seed)
        game, size = run.game.start, run.settings.network
        self.network = ResidualNetwork(
            game.observation_shape, game.num_actions, blocks=size.blocks, channels=size.channels
        ).to(self.device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster on both devices
        self.averaged = AveragedModel(
            self.network,
            multi_avg_fn=get_ema_multi_avg_fn(self.settings.ema_decay),  # type: ignore[no-untyped-call]
            use_buffers=True,
        )
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        self.window, self.guard = Window(game), Diagnostics(run.game)
        self.ledger = Ledger()
        self.intake, self.retention = ReplayReader(run), Retention(run)
        self._states: dict[tuple[int, int], Restorable] = {}  # (fence, step) -> those on the disk, the newest last
        self._made, self._trained = Rate(), Rate()
        self.games = self.positions = 0  # taken in
        self.step = 0
        self.waited = 0.0
        self._sums = np.zeros(2)  # policy and value loss since the last published model
        self._summed = 0
        self._is_first = not list_models(run.models)
        self._published_step = -1
        self._published_at = -np.inf
        self._began = time.monotonic()
        try:
            self._resume()
        except BaseException:
            self.close()
            raise
        log.info("trainer of %s on %s, step %d, fence %d", run.game.name, self.device, self.step, self.lease.fence)

    def close(self) -> None:
        """Let another trainer go on."""
        self.lease.release()

    def maintain(self) -> None:
        """Seal what dead workers have left, and remove what nobody needs; an error of the volume may pass."""
        try:
            self.lease.check()
            observer = self.retention.observer
            observer.look()
            gone = [name for name in observer.beats if observer.judge(name) == "gone"]
            adopt_journals(self.run, gone=gone)
            states = list(self._states.values())
            covered = states[0].cursor if len(states) == KEPT else {}
            self.retention.prune(covered=covered, window=set().union(*(state.window for state in states)))
        except OSError as error:
            log.warning("cannot keep the volume in order: %s", error)

    def ingest(self) -> None:
        """Add every new segment to window and ledger, each writer's in the order it sealed them, none twice."""
        for name, games in self.intake.new():
            self._add_to_window(name, games)
            self.guard.watch(name, games)
            self.games += name.games
            self.positions += name.positions
            if name.bootstrap:
                limit = self.run.settings.selfplay.bootstrap_positions
                self.ledger.earn_bootstrap(name.full, passes=self.settings.bootstrap_passes, limit=limit)
            else:
                self.ledger.earn(name.full, ratio=self.settings.replay_ratio)
        self.ledger.cap(self.settings.replay_ratio * self._window_size())

    def missing_positions(self) -> int:
        """Return how many more positions have to be generated before the next step; 0 = go on."""
        enough = self.run.settings.selfplay.bootstrap_positions
        if self.ledger.bootstrap + self.ledger.generated < enough:
            return enough - self.ledger.bootstrap - self.ledger.generated
        lacking = self.settings.batch_size - self.ledger.credit
        return max(0 if len(self.window) else 1, int(np.ceil(lacking / self.settings.replay_ratio)))

    def what_is_missing(self) -> str:
        """Return for what the trainer waits, and for how long where that can be said."""
        missing = self.missing_positions()
        rate = self._made.per_second(self.ledger.bootstrap + self.ledger.generated, time.monotonic())
        return f"waiting for {missing} positions" + (f", about {missing / rate:.0f} s" if rate > 0 else "")

    def train_step(self) -> None:
        """Make one step of AdamW on one batch, under bfloat16 on a GPU."""
        batch = self.window.sample(self.settings.batch_size, self.rng)
        observations, legal, policy, wdl = (torch.from_numpy(each).to(self.device, non_blocking=True) for each in batch)
        self.network.train()
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.learning_rate * min(1.0, (self.step + 1) / self.settings.warmup_steps)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            policy_logits, wdl_logits = self.network(observations.contiguous(memory_format=torch.channels_last))
        losses = loss(policy_logits, wdl_logits, legal, policy, wdl)
        self.optimiser.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.max_grad_norm)
        self.optimiser.step()
        self.averaged.update_parameters(self.network)
        self.step += 1
        self.ledger.spend(self.settings.batch_size)
        self._sums += losses.policy.item(), losses.value.item()
        self._summed += 1
        if not np.isfinite(self._sums).all():
            raise UserError(
                f"the loss is no number any more at step {self.step}; what was learned before the last model is kept: "
                f"go on with a lower learning rate, -o trainer.learning_rate={self.settings.learning_rate / 4:g}"
            )

    def publish_is_due(self, *, waiting: bool) -> bool:
        """Tell whether a model should go out now; the first one as soon as the bootstrap's credit is used up."""
        if not self._has_news():
            return False
        if self._is_first and not (waiting and self.step > 0):
            return False
        return time.monotonic() - self._published_at >= self.settings.publish_seconds

    def finish(self) -> None:
        """Keep everything: whoever plays next should meet all that was learned. Raises what goes wrong."""
        if self._is_first or not self._has_news():
            self.save()
        else:
            self._publish()

    def publish(self) -> None:
        """Save, and publish the averaged weights; if the volume does not take them, later."""
        self._published_at = time.monotonic()
        try:
            self._publish()
        except OSError as error:
            log.warning("step %d is not published: %s", self.step, error)

    def _publish(self) -> None:
        """Export the averaged weights, check them, save the state, and only then let the model out."""
        self.guard.judge(self.averaged.module, self.window, step=self.step, device=self.device)
        observations = self.window.sample(256, np.random.default_rng(self.step)).observations
        metadata = {
            "step": str(self.step),
            "positions": str(self.ledger.bootstrap + self.ledger.generated),
            "settings": self.run.settings.model_dump_json(),
            "plyzero": __version__,
        }
        try:
            content = export(self.averaged.module, self.run.game, observations, metadata=metadata)
        except ExportError as error:
            log.error("step %d is not published: %s", self.step, error)
            return
        finally:
            self.averaged.to(self.device)
        self.save()
        name = publish_model(self.run.models, content, fence=self.lease.fence, step=self.step)
        policy_loss, value_loss = (self._sums / max(1, self._summed)).tolist()
        self._is_first, self._published_step = False, self.step
        self._sums[:], self._summed = 0, 0
        line = {**self.describe("training"), "policy_loss": policy_loss, "value_loss": value_loss}
        append_line(self.run.metrics / f"trainer-{self.lease.fence:06d}.jsonl", line | {"model": str(name)})
        log.info("published %s: policy loss %.3f, value loss %.3f", name, policy_loss, value_loss)

    def save(self) -> None:
        """Write the state; after a crash the trainer goes on from here. UserError if another one has taken over."""
        self.lease.check()
        state = {
            "step": self.step,
            "games": self.games,
            "positions": self.positions,
            "network": self.network.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "torch_rng": torch.get_rng_state(),
            "rng": json.dumps(self.rng.bit_generator.state),
            "ledger": asdict(self.ledger),
            "cursor": self.intake.cursor,
            "holes": self.intake.holes,
            "window": self.window.names,
        }
        save_state(self.run.trainer, state, fence=self.lease.fence, step=self.step)
        self._restorable(self.lease.fence, self.intake.cursor, self.window.names)

    def describe(self, state: str) -> dict[str, Any]:
        """Return what heartbeat and metrics say of the trainer."""
        now = time.monotonic()
        speed = self._trained.per_second(self.ledger.trained, now - self.waited)
        return {
            "role": "trainer",
            "state": state,
            "step": self.step,
            "games": self.games,
            "positions": self.positions,
            "bootstrap_positions": self.ledger.bootstrap,
            "generated_positions": self.ledger.generated,
            "trained_positions": self.ledger.trained,
            "skipped_positions": round(self.ledger.skipped),
            "replay_ratio": round(self.ledger.replay_ratio(), 3),
            "replay_ratio_wanted": self.settings.replay_ratio,
            "credit": round(self.ledger.credit),
            "credit_enough": round(max(4 * self.settings.batch_size, self._spare_seconds() * speed)),
            "trained_per_second": round(speed, 1),
            "holes": self.intake.holes,
            "window": len(self.window),
            "seconds": round(now - self._began, 1),
            "waited_seconds": round(self.waited, 1),
            "device": self.device.type,
            **self.guard.verdict,
        }

    def _resume(self) -> None:
        state = load_state(self.run.trainer)
        if state is None:
            return
        self.step, self.games, self.positions = state["step"], state["games"], state["positions"]
        try:
            self.network.load_state_dict(state["network"])
        except RuntimeError as error:
            size, start = self.run.settings.network, self.run.game.start
            raise UserError(
                f"{self.run.root} has trained another network than {size.blocks} blocks of {size.channels} channels "
                f"for observations {start.observation_shape} and {start.num_actions} actions; set network.* as it was, "
                "or, if the game has changed, raise its version and start a new run"
            ) from error
        self.averaged.load_state_dict(state["averaged"])
        self.optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["torch_rng"])
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.ledger = Ledger(**state["ledger"])
        self.intake.cursor, self.intake.holes = state["cursor"], state["holes"]
        self._restorable(0, state["cursor"], state["window"])
        for text in state["window"]:
            name = SegmentName.parse(text)
            assert name is not None
            try:
                self._add_to_window(name, read_segment(self.run.segments / text, self.run.game))
            except (FileNotFoundError, SegmentError) as error:
                log.warning("no longer in the window: %s", error)

    def _restorable(self, fence: int, cursor: Mapping[str, int], window: Collection[str]) -> None:
        """Remember what a state on the disk covers; one of the same fence and step was written over."""
        self._states.pop((fence, self.step), None)
        self._states[fence, self.step] = Restorable(dict(cursor), frozenset(window))
        for key in list(self._states)[:-KEPT]:
            del self._states[key]

    def _has_news(self) -> bool:
        return self.step != self._published_step and len(self.window) > 0

    def _add_to_window(self, name: SegmentName, games: Games) -> None:
        size, parts = self._window_size(), self.guard.split(games)
        windows = (self.window, size), (self.guard.held_out, -(-size // HELD_OUT))
        for part, (window, most) in zip(parts, windows, strict=True):
            samples = make_samples(part, search=self.run.settings.search, trainer=self.settings)
            if len(samples.wdl):
                window.add(str(name), samples, size=most)

    def _spare_seconds(self) -> float:
        """Training in hand with which workers may wait: twice what a game takes from its end into the window."""
        return 2 * (self.run.settings.selfplay.seal_seconds + POLL_SECONDS)

    def _window_size(self) -> int:
        made = self.ledger.bootstrap + self.ledger.generated
        smallest, growth = self.settings.window_positions, self.settings.window_growth
        return window_size(made, smallest=smallest, growth=growth, exponent=self.settings.window_exponent)


def _device(wanted: str) -> torch.device:
    if wanted not in ("auto", "cpu", "cuda"):
        raise UserError(f"expected --device auto, cpu or cuda, got {wanted!r}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda, but torch sees no CUDA device here; use --device auto or cpu")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)
