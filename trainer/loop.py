"""The trainer's loop: take in new segments, train as much as the replay ratio allows, publish, save."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from plyzero import __version__
from plyzero.errors import UserError
from plyzero.metrics import Heartbeat, append_line
from plyzero.models import list_models, publish_model
from plyzero.run import Run
from plyzero.segments import SegmentError, SegmentName, list_segments, read_segment
from trainer.export import ExportError, export
from trainer.ledger import Ledger
from trainer.loss import loss
from trainer.network import ResidualNetwork
from trainer.state import load_state, next_fence, save_state
from trainer.targets import make_samples
from trainer.window import Window, window_size

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often the store is looked through for new segments."""


def run_trainer(run: Run, *, device: str = "auto", stop: threading.Event) -> None:
    """Train until `stop` is set, then save, and publish what has been learned since. Resumes from the newest state.

    device: cpu, cuda, or auto, which is cuda where there is one.
    """
    trainer = Trainer(run, device=device)
    heartbeat = Heartbeat(run.workers / "trainer.json")
    next_poll = 0.0
    while not stop.is_set():
        if time.monotonic() >= next_poll:
            trainer.take_in_segments()
            next_poll = time.monotonic() + POLL_SECONDS
        missing = trainer.missing_positions()
        heartbeat.beat(trainer.describe(f"waiting for {missing} positions" if missing else "training"))
        if not missing:
            trainer.train_step()
        if trainer.publish_is_due(waiting=missing > 0):
            trainer.publish()
        elif missing:
            stop.wait(0.2)
            trainer.waited += 0.2
    trainer.finish()
    heartbeat.beat(trainer.describe("stopped"), force=True)


class Trainer:
    """Network, optimiser, window and ledger of one run, and what is done with them."""

    def __init__(self, run: Run, *, device: str) -> None:
        self.run, self.settings = run, run.settings.trainer
        self.device = _device(device)
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
            multi_avg_fn=get_ema_multi_avg_fn(self.settings.average_decay),  # type: ignore[no-untyped-call]
            use_buffers=True,
        )
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        self.window = Window(game)
        self.ledger = Ledger()
        self.cursor: dict[str, int] = {}  # incarnation -> sequence of the next segment to take in
        self.games = self.positions = 0  # taken in
        self.step = 0
        self.waited = 0.0
        self._sums = np.zeros(2)  # policy and value loss since the last published model
        self._summed = 0
        self._is_first = not list_models(run.models)
        self._published_step = -1
        self._published_at = -np.inf
        self._began = time.monotonic()
        self._resume()
        about = {"host": socket.gethostname(), "pid": os.getpid(), "plyzero": __version__}
        self.fence = next_fence(run.trainer, about)
        log.info("trainer of %s on %s, step %d, fence %d", run.game.name, self.device, self.step, self.fence)

    def take_in_segments(self) -> None:
        """Add every new segment to window and ledger, each writer's in the order it sealed them, none twice."""
        for name in sorted(list_segments(self.run.segments), key=lambda each: (each.low, each.sequence)):
            if self.cursor.get(name.incarnation, 0) != name.sequence:
                continue
            try:
                self._add_to_window(name)
            except FileNotFoundError:
                continue
            except SegmentError as error:
                log.warning("left out: %s", error)
            else:
                self.games += name.games
                self.positions += name.positions
                if name.bootstrap:
                    self.ledger.bootstrap += name.full
                else:
                    self.ledger.generated += name.full
            self.cursor[name.incarnation] = name.sequence + 1
        most = self.settings.replay_ratio * self._window_size()
        self.ledger.cap(self._level(), most=most)

    def missing_positions(self) -> int:
        """Return how many more positions have to be generated before the next step; 0 = go on."""
        enough = self.run.settings.selfplay.bootstrap_positions
        if self.ledger.bootstrap + self.ledger.generated < enough:
            return enough - self.ledger.bootstrap - self.ledger.generated
        lacking = self.settings.batch_size - self._level()
        return max(0, int(np.ceil(lacking / self.settings.replay_ratio)))

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
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.gradient_norm)
        self.optimiser.step()
        self.averaged.update_parameters(self.network)
        self.step += 1
        self.ledger.trained += self.settings.batch_size
        self._sums += losses.policy.item(), losses.value.item()
        self._summed += 1

    def publish_is_due(self, *, waiting: bool) -> bool:
        """Tell whether a model should go out now; the first one as soon as the bootstrap's credit is used up."""
        if self.step == self._published_step:
            return False
        if self._is_first:
            return waiting and self.step > 0
        return time.monotonic() - self._published_at >= self.settings.publish_seconds

    def finish(self) -> None:
        """Keep everything: whoever plays next should meet all that was learned."""
        if self._is_first or self.step == self._published_step:
            self.save()
        else:
            self.publish()

    def publish(self) -> None:
        """Export the averaged weights, check them, save the state, and only then let the model out."""
        self._published_step, self._published_at = self.step, time.monotonic()
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
        name = publish_model(self.run.models, content, fence=self.fence, step=self.step)
        policy_loss, value_loss = (self._sums / max(1, self._summed)).tolist()
        self._is_first = False
        self._sums[:], self._summed = 0, 0
        line = {**self.describe("training"), "policy_loss": policy_loss, "value_loss": value_loss}
        append_line(self.run.metrics / f"trainer-{self.fence:06d}.jsonl", line | {"model": str(name)})
        log.info("published %s: policy loss %.3f, value loss %.3f", name, policy_loss, value_loss)

    def save(self) -> None:
        """Write the state; after a crash the trainer goes on from here."""
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
            "cursor": self.cursor,
            "window": self.window.names,
        }
        save_state(self.run.trainer, state, fence=self.fence, step=self.step)

    def describe(self, state: str) -> dict[str, Any]:
        """Return what heartbeat and metrics say of the trainer."""
        return {
            "role": "trainer",
            "state": state,
            "step": self.step,
            "games": self.games,
            "positions": self.positions,
            "bootstrap_positions": self.ledger.bootstrap,
            "generated_positions": self.ledger.generated,
            "trained_positions": self.ledger.trained,
            "skipped_positions": self.ledger.skipped,
            "replay_ratio": round(self.ledger.replay_ratio(bootstrap_credit=self._bootstrap_credit()), 3),
            "replay_ratio_wanted": self.settings.replay_ratio,
            "window": len(self.window),
            "seconds": round(time.monotonic() - self._began, 1),
            "waited_seconds": round(self.waited, 1),
            "device": self.device.type,
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
        self.cursor = state["cursor"]
        for text in state["window"]:
            name = SegmentName.parse(text)
            assert name is not None
            try:
                self._add_to_window(name)
            except (FileNotFoundError, SegmentError) as error:
                log.warning("no longer in the window: %s", error)

    def _add_to_window(self, name: SegmentName) -> None:
        games = read_segment(self.run.segments / str(name), self.run.game)
        samples = make_samples(games, search=self.run.settings.search, trainer=self.settings)
        if len(samples.wdl):
            self.window.add(str(name), samples, size=self._window_size())

    def _window_size(self) -> int:
        made = self.ledger.bootstrap + self.ledger.generated
        smallest, growth = self.settings.window_positions, self.settings.window_growth
        return window_size(made, smallest=smallest, growth=growth, exponent=self.settings.window_exponent)

    def _bootstrap_credit(self) -> float:
        counted = min(self.ledger.bootstrap, self.run.settings.selfplay.bootstrap_positions)
        return self.settings.bootstrap_passes * counted

    def _level(self) -> float:
        return self.ledger.level(ratio=self.settings.replay_ratio, bootstrap_credit=self._bootstrap_credit())


def _device(wanted: str) -> torch.device:
    if wanted not in ("auto", "cpu", "cuda"):
        raise UserError(f"expected --device auto, cpu or cuda, got {wanted!r}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda, but torch sees no CUDA device here; use --device auto or cpu")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)
