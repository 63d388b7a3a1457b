"""The games of a worker together with what evaluates them: this process, or a server while it answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np

from plyzero.errors import ModelRefusedError, UserError, shown
from plyzero.extensions import find_extensions, load_extension
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import Network
from plyzero.run.directory import Run
from plyzero.run.records import Games
from plyzero.search.evaluators import Call, RemoteEvaluator, Uniform
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.settings import Settings

GROUP: Final = "plyzero.evaluators"
"""The entry-point group of evaluators in other processes: name -> a function that takes an address and a run, and
returns a RemoteEvaluator or raises UserError for a wrong address."""

USUAL: Final = "grpc"
"""The evaluator for an address that does not begin with a name of the group."""

log = logging.getLogger(__name__)


def find_evaluator(address: str) -> Callable[[Run], RemoteEvaluator]:
    """Return what connects a run with the evaluator at an address: HOST:PORT, or NAME:ADDRESS of another package's.

    Raises UserError if its package is not installed; the function that is returned, if that refuses the address.
    """
    known = find_extensions(GROUP)
    name, _, rest = address.partition(":")
    if name not in known:
        name, rest = USUAL, address
    if name not in known:
        raise UserError(f"no kit is installed that evaluates elsewhere, so {shown(address)} cannot be used")
    connect = load_extension(known[name], f"the evaluator {address}")
    return partial(connect, rest)


@dataclass
class _Part:
    """Some of the games of a worker, and their batch if it is on its way to the server."""

    games: GamesInPlay
    call: Call | None = None


class EvaluatedGames:
    """All games of a worker, evaluated by the newest model of the run; without one, uniformly.

    With `remote` they are in two halves: while the server evaluates the batch of one, the other plays on. While the
    server does not answer, this process evaluates; until then it loads no model. Each move records the model that has
    evaluated it.
    """

    def __init__(
        self,
        run: Run,
        seeds: Iterator[int],
        watch: ModelWatch,
        remote: RemoteEvaluator | None = None,
        *,
        one_by_one: bool = False,
    ) -> None:
        """one_by_one: as in GamesInPlay."""
        parts = _halves(run.settings) if remote else [run.settings]
        self._parts = [
            _Part(GamesInPlay(run.game.start, settings, seeds=seeds, one_by_one=one_by_one)) for settings in parts
        ]
        self._watch = watch
        self._uniform = Uniform(run.game.start.num_actions)
        self._remote = remote
        self._network: Network | None = None
        self._turn = 0

    def refresh(self) -> None:
        """Load a newer model, or test whether a failed server answers again; called before every `run`."""
        if self._remote:
            self._remote.refresh()
        if not self._is_remote:
            self._load_newer()

    def run(self) -> list[Games]:
        """Play on in one part, with the evaluation of its batch, and send its next batch; return finished games."""
        part = self._parts[self._turn]
        self._turn = (self._turn + 1) % len(self._parts)
        if part.call is None:
            self._send(part)
        began = perf_counter()
        answer = part.call.answer() if part.call else None
        part.call = None
        if answer is not None:
            seconds = perf_counter() - began
            finished = part.games.answer(
                answer.evaluation, evaluator=answer.label, fence=answer.fence, step=answer.step, seconds=seconds
            )
        elif self._remote and part.games.search.leaves() is None:  # nothing was sent
            finished = part.games.answer(None, evaluator=None)
        else:
            finished = self._run_here(part.games)
        self._send(part)
        return finished

    def _send(self, part: _Part) -> None:
        if self._remote is None or not self._remote.is_ready:
            return
        leaves = part.games.search.leaves()
        if leaves:
            part.call = self._remote.send(leaves)

    def _run_here(self, games: GamesInPlay) -> list[Games]:
        if self._remote:
            self._load_newer()
        network = self._network
        fence, step = (network.fence, network.step) if network else (0, 0)
        try:
            return games.run(network or self._uniform, fence=fence, step=step)
        except ModelRefusedError as error:  # no position has seen these answers yet
            if games.give_up_impossible():  # the rules are to blame, and not the model
                return games.answer(None, evaluator=network, fence=fence, step=step)
            self._watch.refuse_current(error)
            self._network = None
            return []

    def _load_newer(self) -> None:
        if newer := self._watch.newer():
            self._network = newer
            log.info("model %s, %s%s", newer.label, newer.precision, ", in this process" if self._remote else "")

    @property
    def _is_remote(self) -> bool:
        return self._remote is not None and self._remote.is_ready

    @property
    def has_model(self) -> bool:
        """Whether a model evaluates."""
        return self._is_remote or self._network is not None

    @property
    def label(self) -> str | None:
        """The name of the model; None if there is none, or before its first answer."""
        if self._remote and self._remote.is_ready:
            return self._remote.label
        return self._network.label if self._network else None

    @property
    def games(self) -> list[GamesInPlay]:
        """The games: one part, or the two halves."""
        return [part.games for part in self._parts]

    @property
    def evaluations(self) -> int:
        """Number of positions evaluated so far."""
        return sum(games.search.evaluations for games in self.games)

    @property
    def resignations(self) -> list[int]:
        """The sums of `GamesInPlay.resignations`."""
        counts = [games.resignations for games in self.games]
        return [int(number) for number in np.sum(counts, axis=0)]

    @property
    def network_seconds(self) -> float:
        """Time spent on the evaluation, or waiting for it, in seconds."""
        return sum(games.seconds["network"] for games in self.games)


def _halves(settings: Settings) -> list[Settings]:
    """Return the settings of each half of the parallel games, with half of the cache; a single game has all of it."""
    selfplay = settings.selfplay
    first = selfplay.parallel_games // 2
    if not first:
        return [settings]
    halves = []
    for games in (first, selfplay.parallel_games - first):
        half = selfplay.model_copy(update={"parallel_games": games, "cache_mb": selfplay.cache_mb // 2})
        halves.append(settings.model_copy(update={"selfplay": half}))
    return halves
