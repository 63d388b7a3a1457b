"""The loop of a self-play worker: many games are searched together, and finished games go to the replay writer."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Self

from plyzero.errors import ModelRefusedError
from plyzero.play.model_loader import ModelWatch
from plyzero.run.directory import Run
from plyzero.run.metrics import Heartbeat, Rate, SparseLines
from plyzero.search.evaluators import Uniform
from plyzero.search.onnx_network import Network
from selfplay.backpressure import REFRESH_SECONDS, Backpressure
from selfplay.games_in_play import GamesInPlay
from selfplay.replay_writer import ReplayWriter

log = logging.getLogger(__name__)


def run_worker(run: Run, *, name: str, stop: threading.Event, incarnation: str | None = None) -> None:
    """Play until `stop` is set, then seal the finished games; games that are still being played are lost.

    name:        name of the worker, of the characters [a-z0-9_].
    incarnation: 8 hex digits, random if not given, so that two workers of the same name do not collide.
    """
    settings = run.settings.selfplay
    incarnation = incarnation or uuid.uuid4().hex[:8]
    games = GamesInPlay(run.game.start, run.settings, seeds=game_seeds(run.seed, name, incarnation))
    heartbeat = Heartbeat(run.workers / f"{name}.{incarnation}.json")
    lines = SparseLines(run.metrics / f"worker-{name}.{incarnation}.jsonl")
    uniform = Uniform(run.game.start.num_actions)
    network: Network | None = None
    reason: str | None = None
    made, began, waited = Rate(), time.monotonic(), 0.0

    def describe(state: str) -> dict[str, object]:
        seconds, totals = time.monotonic() - began, writer.totals()
        return {
            "role": "selfplay",
            "state": state,
            "model": network.label if network else None,
            **totals,
            "evaluations": games.search.evaluations,
            "network_seconds": round(games.seconds["network"], 1),
            "full_positions_per_second": round(made.per_second(totals["full_positions"], seconds - waited), 1),
            "seconds": round(seconds, 1),
            "waited_seconds": round(waited, 1),
            "refused_games": writer.refused_games,
            "write_error": writer.write_error,
        }

    with (
        ReplayWriter(run, worker=name, incarnation=incarnation) as writer,
        ModelWatch(run.models, run.game, poll_seconds=settings.poll_seconds, threads=settings.threads) as watch,
    ):
        backpressure = Backpressure(run, writer)
        network = watch.newer()
        log.info("%s.%s plays %s, model %s", name, incarnation, run.game.name, network and network.label)
        with HeartbeatThread(lambda: describe(reason or "playing"), heartbeat, lines, backpressure) as thread:
            while not stop.is_set():
                if newer := watch.newer():
                    network = newer
                    log.info("model %s", network.label)
                reason = backpressure.reason(has_model=network is not None)
                thread.iterations += 1
                if reason:
                    before = time.monotonic()
                    watch.wait(0.2)
                    waited += time.monotonic() - before
                    continue
                fence, step = (network.fence, network.step) if network else (0, 0)
                try:
                    played = games.run(network or uniform, fence=fence, step=step)
                except ModelRefusedError as error:  # before any position has seen these answers
                    watch.refuse_current(error)
                    network = None
                    continue
                for finished in played:
                    writer.add(finished)
    stopped = describe("stopped")
    heartbeat.beat(stopped, force=True)
    lines.add(stopped, force=True)


class HeartbeatThread:
    """Refreshes the back-pressure and writes heartbeat and metrics in a thread: the search never waits for the disk.

    iterations: number of iterations of the worker's loop; heartbeat and metrics are only written when it has changed.
    """

    def __init__(
        self,
        describe: Callable[[], dict[str, object]],
        heartbeat: Heartbeat,
        lines: SparseLines,
        backpressure: Backpressure,
    ) -> None:
        self.iterations = 0
        self._describe, self._heartbeat, self._lines, self._backpressure = describe, heartbeat, lines, backpressure
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._work, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join()

    def _work(self) -> None:
        before = 0
        while not self._finished.wait(REFRESH_SECONDS / 2):
            self._backpressure.refresh()
            if self.iterations != before:
                before, fields = self.iterations, self._describe()
                self._heartbeat.beat(fields)
                self._lines.add(fields)


def game_seeds(seed: int, worker: str, incarnation: str) -> Iterator[int]:
    """Yield a 64-bit number per game, its seed and its id, which depends on the run, the worker and the incarnation."""
    count = 0
    while True:
        text = f"{seed}/{worker}/{incarnation}/{count}"
        yield int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        count += 1
