"""Imitation: the network learns the moves and results of recorded games."""

from __future__ import annotations

import copy
import hashlib
import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.play.scores import wilson_interval
from plyzero.rules.catalog import GameSpec
from plyzero.run.records import Games
from plyzero.settings import Settings
from plyzero.trainer.export import describe_model, export
from plyzero.trainer.learner import Learner
from plyzero.trainer.loss import loss
from plyzero.trainer.network import choose_device
from plyzero.trainer.parts import make_parts
from plyzero.trainer.state import LearnerState
from plyzero.trainer.targets import Samples, make_samples
from plyzero.trainer.window import Window, to_device

TARGETS: Final = "trainer.targets=plyzero.trainer.targets:played_moves"  # the default with imitation
HELD_OUT: Final = 10  # one of this many games is held out
STEPS: Final = 100  # steps between two evaluations
PATIENCE: Final = 10  # training ends when this many evaluations in a row show no improvement
MAX_EVALUATED: Final = 8192  # largest number of held-out positions that are evaluated during training: the first ones
EXPORT_POSITIONS: Final = 256  # positions on which the exported model is compared with torch
BATCH: Final = 1024  # positions that are evaluated at once


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
        self._game = game
        self._settings = settings
        self._device = choose_device(device)
        self._parts = make_parts(game, settings)
        self._learner = Learner(
            self._parts.network, self._parts.loss, settings.trainer, self._device, halves_on_cpu=False
        )
        self._rng = np.random.default_rng(seed)
        self.games = 0
        self.unused = 0
        self.training = Window(game.start)
        self.held_out = Window(game.start)
        self._seen: list[NDArray[np.uint64]] = []  # keys of the training positions
        self._keys: list[NDArray[np.uint64]] = []  # keys of the held-out positions
        self._sizes: list[int] = []  # number of positions of each held-out game
        self._guesses = 0.0

    def add(self, game: Games) -> None:
        """Add the records of one game."""
        self.games += 1
        settings = self._settings
        samples = make_samples(
            game,
            search=settings.search,
            trainer=settings.trainer,
            make_targets=self._parts.make_targets,
            start=self._game.start if settings.network.points else None,
        )
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
        learner = self._learner
        batch_size = self._settings.trainer.batch_size
        deadline = time.monotonic() + 60 * minutes if minutes is not None else np.inf
        best = learner.state_dict()
        best_loss = np.inf
        since_best = 0
        is_over = False
        while not is_over:
            summed = torch.zeros(2, dtype=torch.float64, device=self._device)
            first = learner.step
            while learner.step == first or (learner.step % STEPS and time.monotonic() < deadline):
                summed += learner.learn(self.training.sample(batch_size, self._rng))
            sums = summed.cpu().numpy()
            losses, hits = self._evaluate(MAX_EVALUATED)
            learner.check_finite("loss", bool(np.isfinite([*sums, *losses]).all()), advice="try")
            since_best += 1
            if losses.sum() < best_loss:
                best = copy.deepcopy(learner.state_dict())
                best_loss = losses.sum()
                since_best = 0
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
        network = self._learner.averaged.module.eval()
        sums = np.zeros(2)
        hits = []
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
    n = len(hits)
    share = float(hits.mean())
    games = len(np.unique(of_game))
    independent = 1.0  # one game has no variance between games
    if games > 1:
        residuals = np.bincount(of_game, hits - share)
        variance = float((residuals**2).sum()) / n**2 * games / (games - 1)
        independent = min(n, share * (1 - share) / variance) if variance > 0 else n
    low, high = wilson_interval(share, max(1, round(independent)))
    return Agreement(n, share, low, high)
