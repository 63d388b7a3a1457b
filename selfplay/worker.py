"""The loop of a self-play worker: many games are searched together, and finished games go to the replay writer."""

from __future__ import annotations

import hashlib
import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Final

from plyzero.files import interval
from plyzero.network.model_loader import ModelWatch
from plyzero.ops.processes import ending_if_hung
from plyzero.run.adoption import Adoption
from plyzero.run.directory import Run
from plyzero.run.metrics import Heartbeat, Rate, SparseLines
from plyzero.search.evaluators import RemoteEvaluator
from plyzero.selfplay.backpressure import REFRESH_SECONDS, Backpressure
from plyzero.selfplay.evaluated_games import EvaluatedGames
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.threads import repeating

LOG_SECONDS: Final = 30.0
"""Seconds between two log lines about progress."""

RESIGNATIONS: Final = ("resigned_games", "tested_resignations", "false_resignations")
"""Further fields of a worker's lines and heartbeat, with `selfplay.resign_below`."""

MADE: Final = "%(games)s games with %(positions)s positions, %(full_positions)s with a full search"
"""A part of log lines."""

log = logging.getLogger(__name__)


def run_worker(
    run: Run,
    *,
    name: str,
    stop: threading.Event,
    incarnation: str | None = None,
    evaluator: RemoteEvaluator | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Play until `stop` is set or the run is done, then seal the finished games; unfinished ones are lost.

    name:        name of the worker, of the characters [a-z0-9_].
    incarnation: 8 hex digits, random if not given, so that two workers of the same name do not collide.
    evaluator:   evaluates the positions while it can; this process does so otherwise.
    on_ready:    called when everything is compiled, before the first game is finished.
    """
    incarnation = incarnation or uuid.uuid4().hex[:8]
    seeds = game_seeds(run.seed, name, incarnation)
    heartbeat = Heartbeat(*run.heartbeats(f"{name}.{incarnation}"))
    starts = {"role": "selfplay", "state": "compiling"}
    with repeating(lambda: heartbeat.beat(starts), 0.2, name="heartbeat of the start"):
        watch = ModelWatch.of_worker(run)
        games = EvaluatedGames(run, seeds, watch, evaluator, one_by_one=True)
    on_ready()
    lines = SparseLines(run.metrics / f"worker-{name}.{incarnation}.jsonl")
    with ReplayWriter(run, worker=name, incarnation=incarnation) as writer, watch:
        backpressure = Backpressure(run, writer)
        # If the run is in a bucket, the trainer may be on another machine, which does not see the journals of this one.
        adoption = Adoption(run) if run.scratch else None
        progress = _Progress(run, games, writer, backpressure, watch)

        def look() -> None:
            """Look at the volume, and report progress. The loop does not wait for this thread."""
            backpressure.look()
            writer.seal_seconds = run.settings.selfplay.seal_interval(backpressure.workers)
            watch.spread(backpressure.workers)
            if adoption:
                adoption.adopt()
            progress.report(heartbeat, lines)

        games.refresh()
        log.info("%s.%s plays %s, model %s", name, incarnation, run.game.name, games.label)
        seconds = interval(run.root, REFRESH_SECONDS / 2)
        with repeating(look, seconds, name="heartbeat") as thread, ending_if_hung(stop, run.game.name) as playing:
            while not (stop.is_set() or backpressure.done):
                games.refresh()
                reason = backpressure.reason(has_model=games.has_model)
                thread.check()
                progress.next_iteration(reason)
                if reason:
                    before = time.monotonic()
                    watch.wait(0.2)
                    progress.waited_seconds += time.monotonic() - before
                    continue
                with playing:
                    found = games.run()
                for finished in found:
                    writer.add(finished)
    stopped = progress.describe("stopped")
    heartbeat.beat(stopped, force=True)
    lines.add(stopped, force=True)
    if backpressure.done:
        log.info(f"END, {backpressure.done} reached: {MADE} in %(seconds)s s", stopped)


class _Progress:
    """The progress of a worker's loop, for its heartbeat, its metrics and its log.

    waited_seconds: time that the loop has waited so far.
    """

    def __init__(
        self, run: Run, games: EvaluatedGames, writer: ReplayWriter, backpressure: Backpressure, watch: ModelWatch
    ) -> None:
        self._shows_resignations = run.settings.selfplay.resign_below > 0
        self._games = games
        self._writer = writer
        self._backpressure = backpressure
        self._watch = watch
        self.waited_seconds = 0.0
        self._reason: str | None = None
        self._iterations = 0
        self._reported = 0  # the last reported iteration
        self._made = Rate()
        self._began = time.monotonic()
        self._log_at = self._began + LOG_SECONDS

    def next_iteration(self, reason: str | None) -> None:
        """Count an iteration of the loop. `reason`: why the loop waits in it, or None."""
        self._reason = reason
        self._iterations += 1

    def report(self, heartbeat: Heartbeat, lines: SparseLines) -> None:
        """Write heartbeat, metrics and log, if the loop has made progress since the last report."""
        if self._iterations == self._reported:
            return
        self._reported = self._iterations
        fields = self.describe(self._reason or "playing")
        heartbeat.beat(fields)
        lines.add(fields)
        if time.monotonic() >= self._log_at:
            self._log_at += LOG_SECONDS
            log.info(f"%(state)s: {MADE}, %(full_positions_per_second)s/s, model %(model)s", fields)

    def describe(self, state: str) -> dict[str, object]:
        """Return the fields of the heartbeat; docs/formats.md lists them."""
        games, writer = self._games, self._writer
        seconds = time.monotonic() - self._began
        totals = writer.totals()
        plies: list[int] = []
        for part in games.games:
            plies += part.plies
        rate = self._made.per_second(totals["full_positions"], seconds - self.waited_seconds)
        resignations = dict(zip(RESIGNATIONS, games.resignations, strict=True)) if self._shows_resignations else {}
        return {
            "role": "selfplay",
            "state": state,
            "model": games.label,
            **totals,
            "evaluations": games.evaluations,
            "network_seconds": round(games.network_seconds, 1),
            "games_under_way": len(plies),
            "plies_under_way": sum(plies),
            "full_positions_per_second": round(rate, 1),
            "seconds": round(seconds, 1),
            "waited_seconds": round(self.waited_seconds, 1),
            **resignations,
            "refused_games": writer.refused_games,
            "read_error": self._backpressure.read_error or self._watch.read_error,
            "write_error": writer.write_error,
        }


def game_seeds(seed: int, worker: str, incarnation: str) -> Iterator[int]:
    """Yield the 64-bit seed of each game, which is also its id, from the run's seed, the worker and the incarnation."""
    for number in itertools.count():
        text = f"{seed}/{worker}/{incarnation}/{number}"
        yield int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
