"""The games of a worker together with what evaluates them: this process, or a server while it answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from plyzero.errors import ModelRefusedError
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import Network
from plyzero.run.directory import Run
from plyzero.run.records import Games
from plyzero.search.evaluators import EvaluationBatch, Uniform
from plyzero.settings import Settings
from selfplay.games_in_play import GamesInPlay

if TYPE_CHECKING:
    from plyzero.inference.remote_network import Call, RemoteNetwork

log = logging.getLogger(__name__)


class LocalGames:
    """All games of a worker, evaluated in this process by the newest model of the run; without one, uniformly.

    evaluations:     number of positions evaluated so far.
    network_seconds: time spent on that, in seconds.
    """

    def __init__(self, run: Run, seeds: Iterator[int], watch: ModelWatch) -> None:
        self._games = GamesInPlay(run.game.start, run.settings, seeds=seeds)
        self._watch, self._uniform = watch, Uniform(run.game.start.num_actions)
        self._network: Network | None = None

    def refresh(self) -> None:
        """Use a newer model if there is one. To be called before every `run`."""
        if newer := self._watch.newer():
            self._network = newer
            log.info("model %s, %s", newer.label, newer.precision)

    def run(self) -> list[Games]:
        """Evaluate one batch and play on; return the games that are over then."""
        network = self._network
        fence, step = (network.fence, network.step) if network else (0, 0)
        try:
            return self._games.run(network or self._uniform, fence=fence, step=step)
        except ModelRefusedError as error:  # before any position has seen these answers
            self._watch.refuse_current(error)
            self._network = None
            return []

    @property
    def has_model(self) -> bool:
        """Whether a model evaluates."""
        return self._network is not None

    @property
    def label(self) -> str | None:
        """The name of the model, None if there is none."""
        return self._network.label if self._network else None

    @property
    def evaluations(self) -> int:
        """Number of positions evaluated so far."""
        return self._games.search.evaluations

    @property
    def network_seconds(self) -> float:
        """Time spent on them, in seconds."""
        return self._games.seconds["network"]


@dataclass
class _Part:
    """Some of the games of a worker, and their batch if it is on its way to the server."""

    games: GamesInPlay
    call: Call | None = None


class RemoteGames:
    """All games of a worker, in two halves: while the server evaluates the batch of one, the other plays on.

    While the server does not answer, this process evaluates, with the newest model of the run. It loads no model before
    that is necessary. Every move is stamped with the model that has evaluated it.
    """

    def __init__(self, run: Run, seeds: Iterator[int], watch: ModelWatch, remote: RemoteNetwork) -> None:
        self._parts = [_Part(GamesInPlay(run.game.start, settings, seeds=seeds)) for settings in _halves(run.settings)]
        self._watch, self._uniform, self._remote = watch, Uniform(run.game.start.num_actions), remote
        self._network: Network | None = None
        self._turn = 0

    def run(self) -> list[Games]:
        """Play on in one half, with the answer to its batch; send its next batch; return the games that are over."""
        part = self._parts[self._turn]
        self._turn = (self._turn + 1) % len(self._parts)
        if part.call is None:
            self._send(part)
        leaves, began = part.games.leaves(), perf_counter()
        answer = part.call.answer() if part.call else None
        part.call = None
        if answer is not None:
            seconds = perf_counter() - began
            finished = part.games.answer(
                answer.evaluation, evaluator=answer.label, fence=answer.fence, step=answer.step, seconds=seconds
            )
        else:
            finished = self._run_here(part, leaves)
        self._send(part)
        return finished

    def _send(self, part: _Part) -> None:
        leaves = part.games.leaves()
        part.call = self._remote.send(leaves) if leaves and self._remote.is_ready else None

    def _run_here(self, part: _Part, leaves: EvaluationBatch | None) -> list[Games]:
        """Play on with an evaluation by this process, or with none where no position waits."""
        if leaves is None:
            return part.games.answer(None, evaluator=None)
        self._load_newer()
        network, began = self._network, perf_counter()
        try:
            evaluation = (network or self._uniform)(leaves)
        except ModelRefusedError as error:  # before any position has seen these answers
            self._watch.refuse_current(error)
            self._network = None
            return []
        fence, step, label = (network.fence, network.step, network.label) if network else (0, 0, None)
        seconds = perf_counter() - began
        return part.games.answer(evaluation, evaluator=label, fence=fence, step=step, seconds=seconds)

    def refresh(self) -> None:
        """Find out whether a server that has failed answers again, and whether there is a model. Before every `run`."""
        self._remote.refresh()
        if not self._remote.is_ready:
            self._load_newer()

    def _load_newer(self) -> None:
        if newer := self._watch.newer():
            self._network = newer
            log.info("model %s, %s, in this process", newer.label, newer.precision)

    @property
    def has_model(self) -> bool:
        """Whether a model evaluates."""
        return self._remote.is_ready or self._network is not None

    @property
    def label(self) -> str | None:
        """The name of the model, None if there is none, or none that has answered yet."""
        if self._remote.is_ready:
            return self._remote.label
        return self._network.label if self._network else None

    @property
    def evaluations(self) -> int:
        """Number of positions evaluated so far."""
        return sum(part.games.search.evaluations for part in self._parts)

    @property
    def network_seconds(self) -> float:
        """Time spent on waiting for their evaluations, in seconds."""
        return sum(part.games.seconds["network"] for part in self._parts)


def _halves(settings: Settings) -> Sequence[Settings]:
    """Return the settings of each half of the parallel games, with half of the cache; one has all if it is one game."""
    selfplay = settings.selfplay
    first = selfplay.parallel_games // 2
    if not first:
        return [settings]
    half = {"cache_mb": selfplay.cache_mb // 2}
    return [
        settings.model_copy(update={"selfplay": selfplay.model_copy(update={"parallel_games": games, **half})})
        for games in (first, selfplay.parallel_games - first)
    ]
