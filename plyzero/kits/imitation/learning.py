"""Imitation: the network learns the moves and results of recorded games; a run can begin with the resulting bot."""

from __future__ import annotations

import copy
import hashlib
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from plyzero.errors import UserError, plain
from plyzero.files import read_file, write_file
from plyzero.network.onnx_graph import parse
from plyzero.network.onnx_network import Network, resize
from plyzero.play.scores import wilson_interval
from plyzero.rules.catalog import GameSpec
from plyzero.run.directory import KEY, Run, read_run
from plyzero.run.models import list_models, max_model_bytes, publish_model, read_model
from plyzero.run.records import Games
from plyzero.settings import Settings, parse_stored_settings
from plyzero.trainer.export import describe_model, export, with_metadata
from plyzero.trainer.learner import Learner
from plyzero.trainer.loop import Trainer
from plyzero.trainer.loss import loss, to_device
from plyzero.trainer.network import choose_device
from plyzero.trainer.parts import make_parts
from plyzero.trainer.state import LearnerState, State, load_state, pack_state, read_state
from plyzero.trainer.targets import Samples, make_samples
from plyzero.trainer.window import Window

TARGETS: Final = "trainer.targets=plyzero.trainer.targets:played_moves"  # the default with imitation
HELD_OUT: Final = 10  # one of this many games is held out
STEPS: Final = 100  # between two evaluations
PATIENCE: Final = 10  # evaluations in a row without an improvement, after which training ends
MAX_EVALUATED: Final = 8192  # held-out positions, the first ones, that are evaluated during training
EXPORT_POSITIONS: Final = 256  # on which the exported model is compared with torch
BATCH: Final = 1024  # positions that are evaluated at once
STATE: Final = ".pt"
"""Suffix of the learner's state beside the ONNX file, which lacks the optimiser, the average and the normalisation."""


class Agreement(NamedTuple):
    """Share of moves that are the network's first choice, with a 95 % interval.

    The moves of a game depend on each other: the interval is Wilson's for as many independent moves as would have the
    variance between games that was found.
    """

    positions: int
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.1%} of {self.positions} moves (95 %: {self.low:.1%} to {self.high:.1%})"


class Progress(NamedTuple):
    """An evaluation: losses in nats, means over the steps since the last one and over held-out positions.

    passes: over the training positions so far.
    share:  of the held-out positions in which the network's first choice is the move that was played.
    """

    step: int
    passes: float
    policy: float
    value: float
    held_out_policy: float
    held_out_value: float
    share: float


class Imitated(NamedTuple):
    """The result of imitation.

    model:     the ONNX file.
    state:     of the learner, from which a run can continue (`begin_run`).
    agreement: on the held-out games.
    new:       on those of their positions that no training game has, symmetric ones included; None without any.
    guess:     the agreement of random moves.
    """

    model: bytes
    state: LearnerState
    agreement: Agreement
    new: Agreement | None
    guess: float


class Imitation:
    """The positions of recorded games and the network that learns from them, the same for the same seed.

    games:    number of games.
    unused:   number of those that teach nothing: truncated games, and games of opening moves only.
    training: positions of the games that are trained on.
    held_out: positions of the others, one game in HELD_OUT by a hash of its moves, so that equal games stay together.
    """

    def __init__(self, game: GameSpec, settings: Settings, *, seed: int = 0, device: str = "auto") -> None:
        """Make the network. Raises UserError if the settings name parts or a device that cannot be used."""
        torch.set_num_threads(settings.trainer.threads)
        torch.manual_seed(seed)
        self._game, self._settings, self._device = game, settings, choose_device(device)
        self._parts = make_parts(game, settings)
        self._learner = Learner(
            self._parts.network, self._parts.loss, settings.trainer, self._device, halves_on_cpu=False
        )
        self._rng = np.random.default_rng(seed)
        self.games = self.unused = 0
        self.training, self.held_out = Window(game.start), Window(game.start)
        self._seen: list[NDArray[np.uint64]] = []  # keys of the training positions
        self._keys: list[NDArray[np.uint64]] = []  # keys of the held-out positions
        self._sizes: list[int] = []  # number of positions of each held-out game
        self._guesses = 0.0

    def add(self, game: Games) -> None:
        """Add the records of one game."""
        self.games += 1
        own, make_targets = self._settings, self._parts.make_targets
        start = self._game.start if own.network.points else None
        samples = make_samples(game, search=own.search, trainer=own.trainer, make_targets=make_targets, start=start)
        if not len(samples.wdl):
            self.unused += 1
            return
        moves = hashlib.blake2b(game.positions["action"].tobytes(), digest_size=8).digest()
        keys = self._position_keys(samples)
        if int.from_bytes(moves, "little") % HELD_OUT:
            self.training.add("games", samples, size=sys.maxsize)
            self._seen.append(keys)
            return
        self.held_out.add("games", samples, size=sys.maxsize)
        self._keys.append(keys)
        self._sizes.append(len(keys))
        self._guesses += float((1 / samples.num_legal).sum())

    def learn(self, *, minutes: float | None = None, on_progress: Callable[[Progress], None]) -> Imitated:
        """Train until the loss on held-out positions improves no more, or for `minutes`, and return the best.

        Raises UserError if the games are too few or the losses not finite, and ExportError if the network cannot be
        exported.
        """
        if not len(self.training) or not len(self.held_out):
            raise UserError(
                f"{self.games} games are too few: {len(self.training)} positions are left to train on, and "
                f"{len(self.held_out)} of the held-out games, one in {HELD_OUT} by a hash of its moves; give more games"
            )
        learner, batch_size = self._learner, self._settings.trainer.batch_size
        deadline = time.monotonic() + 60 * minutes if minutes is not None else np.inf
        best, best_loss, since_best = learner.state_dict(), np.inf, 0
        is_over = False
        while not is_over:
            summed, first = torch.zeros(2, dtype=torch.float64, device=self._device), learner.step
            while learner.step == first or (learner.step % STEPS and time.monotonic() < deadline):
                summed += learner.learn(self.training.sample(batch_size, self._rng))
            sums = summed.cpu().numpy()
            losses, hits = self._evaluate(MAX_EVALUATED)
            learner.check_finite("loss", bool(np.isfinite([*sums, *losses]).all()), advice="try")
            since_best += 1
            if losses.sum() < best_loss:
                best, best_loss, since_best = copy.deepcopy(learner.state_dict()), losses.sum(), 0
            passes = learner.step * batch_size / len(self.training)
            policy, value = sums / (learner.step - first)
            on_progress(Progress(learner.step, passes, policy, value, losses[0], losses[1], float(hits.mean())))
            is_over = since_best == PATIENCE or time.monotonic() >= deadline
        learner.load_state_dict(best)
        return self._export(best)

    def _export(self, state: LearnerState) -> Imitated:
        """Return what the learner has learned, measured on all held-out positions."""
        _, hits = self._evaluate(len(self.held_out))
        of_game = np.repeat(np.arange(len(self._sizes)), self._sizes)
        is_new = ~np.isin(np.concatenate(self._keys), np.concatenate(self._seen))
        observations = self.training.sample(EXPORT_POSITIONS, self._rng).observations
        metadata = describe_model(self._settings, step=self._learner.step, positions=0)
        return Imitated(
            model=export(self._learner.averaged.module, self._game, observations, metadata=metadata),
            state=state,
            agreement=agreement(hits, of_game),
            new=agreement(hits[is_new], of_game[is_new]) if is_new.any() else None,
            guess=self._guesses / len(hits),
        )

    def _evaluate(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Evaluate the averaged weights on the first `count` held-out positions.

        Return the policy and the value loss, and for each position whether the first choice is the move played.
        """
        network, sums, hits = self._learner.averaged.module.eval(), np.zeros(2), []
        count = min(count, len(self.held_out))
        for first in range(0, count, BATCH):
            batch = to_device(self.held_out.read(first, min(count, first + BATCH)), self._device)
            with torch.no_grad():
                logits, wdl_logits, *_ = network(batch.observations)
                losses = loss(logits, wdl_logits, legal=batch.legal, policy=batch.policy, wdl=batch.wdl)
                choice = logits.masked_fill(~batch.legal, -torch.inf).argmax(dim=1)
            sums += len(choice) * np.array([losses.policy.item(), losses.value.item()])
            hits.append((choice == batch.policy.argmax(dim=1)).cpu().numpy())
        return sums / count, np.concatenate(hits)

    def _position_keys(self, samples: Samples) -> NDArray[np.uint64]:
        """Return a number for each position, the same for what the network sees of it under any symmetry."""
        shape = self._game.start.observation_shape
        flat = samples.observations
        if np.dtype(self._game.start.observation_dtype).kind == "b":
            flat = np.unpackbits(flat.view(np.uint8), axis=1, count=int(np.prod(shape)))
        images = [flat, *(flat[:, symmetry.planes] for symmetry in self._game.start.symmetries())]
        keys = [[hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in image] for image in images]
        return np.array([np.frombuffer(b"".join(each), np.uint64) for each in keys]).min(axis=0)


def agreement(hits: NDArray[np.bool_], of_game: NDArray[np.int64]) -> Agreement:
    """Return the share of `hits`, `[n]`, with its interval; `of_game`, `[n]`, is the game of each of them."""
    n, share = len(hits), float(hits.mean())
    games = len(np.unique(of_game))
    independent = 1.0  # one game has no variance between games
    if games > 1:
        residuals = np.bincount(of_game, hits - share)
        variance = float((residuals**2).sum()) / n**2 * games / (games - 1)
        independent = min(n, share * (1 - share) / variance) if variance > 0 else n
    low, high = wilson_interval(share, max(1, round(independent)))
    return Agreement(n, share, low, high)


def write_bot(path: Path, model: bytes, state: LearnerState) -> None:
    """Write the ONNX file `path` and, before it, the state of the learner beside it; files there are replaced."""
    write_file(path.with_suffix(STATE), pack_state({**state, "model": _digest(model)}), replace=True)
    write_file(path, model, replace=True)


def read_bot(path: Path, run: Run) -> tuple[bytes, State]:
    """Return the ONNX file of a bot, and the state, from which the trainer of `run` can continue.

    path: an ONNX file that `write_bot` has written, or the directory of a run with another size of the same game.
    Raises UserError if a file is missing or damaged, if the bot is of another game, or if its network has other
    settings than the run's.
    """
    earlier = read_run(path) if path.is_dir() else None
    try:
        if earlier:
            if not (models := list_models(earlier.models)):
                raise UserError(f"{path} has no model yet; train it first")
            model = read_model(earlier.models, models[0])
        else:
            model = read_file(path, max_bytes=max_model_bytes())
        metadata = Network(model, run.game, label=path.name).metadata
        found = parse_stored_settings(metadata.get("settings", "")).network.model_dump()
    except OSError as error:
        raise UserError(f"cannot use {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} does not say with which settings it was trained: {plain(str(error), 200)}") from error
    own = run.settings.network.model_dump()
    if different := {key: value for key, value in found.items() if value != own[key]}:
        asked = ", ".join(f"{key} = {own[key]}" for key in different)
        options = " ".join(f"-o network.{key}={value}" for key, value in different.items())
        raise UserError(f"{path} is another network than that of the run, which has {asked}; give {options}")
    if earlier:
        state = load_state(earlier.trainer)
        if state is None:
            raise UserError(f"{path} has no saved state of its trainer; train it longer")
        resize(resized := parse(model), run.game)
        model = bytes(resized.SerializeToString(deterministic=True))
        learned, optimiser = (state["network"], state["averaged"]), state["optimiser"]
        return model, State(step=state["step"], network=learned[0], averaged=learned[1], optimiser=optimiser)
    beside = path.with_suffix(STATE)
    advice = f"`plyzero imitate` writes it beside {path.name}, and a run needs both"
    if not beside.exists():
        raise UserError(f"{beside} does not exist; {advice}")
    state = read_state(beside, advice)
    if state.get("model") != _digest(model):
        raise UserError(f"{beside} is not of {path.name}, but of another model; {advice}")
    return model, state


def begin_run(run: Run, model: bytes, state: LearnerState) -> None:
    """Give a run without games its first model, an ONNX file, and the `state` of a learner from which to continue.

    The ledger begins with zero: it does not count what the learner has learned before.
    Raises UserError if the state is not of the run's network.
    """
    assert run.id
    with closing(Trainer(run, device="cpu")) as trainer:
        try:
            trainer.load_state_dict(state)
        except RuntimeError as error:
            raise UserError(
                f"the weights do not fit {run.settings.network.module} as it is now: {plain(str(error), 200)}"
            ) from error
        trainer.save()
        own = with_metadata(model, KEY, run.id.text)
        publish_model(run.models, own, fence=trainer.lease.fence, step=trainer.step)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
