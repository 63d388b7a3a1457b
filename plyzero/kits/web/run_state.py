"""The state of a run as JSON: its processes, what it waits for, what is wrong, and its settings."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from plyzero.errors import UserError, plain
from plyzero.kits.web.curves import RunSeries
from plyzero.kits.web.run_games import NewestGames
from plyzero.ops.status import Snapshot, snapshot
from plyzero.run.budget import measured_opponents
from plyzero.run.directory import RunDirectory, read_run
from plyzero.run.events import figure, words_of
from plyzero.run.metrics import TRAINER, Rate
from plyzero.run.models import ModelName
from plyzero.run.view import Process, RunView, watch_run
from plyzero.volume_errors import explain

VERSION: Final = 1
"""Format version of the objects of this module; docs/formats.md lists the fields."""

REFRESH_SECONDS: Final = 2.0
"""Time for which an answer is reused."""

SHOWN: Final = ("seconds", "waited_seconds", "games", "positions", "evaluations", "trained_per_second", "window")
"""Numbers in a heartbeat that are shown of every process."""


class Dashboard:
    """A run as JSON objects. Safe for several threads; nothing is read more often than every REFRESH_SECONDS."""

    def __init__(
        self, run: RunDirectory | Path, *, clock: Callable[[], float] = time.monotonic, at_once: bool = False
    ) -> None:
        """Watch `run`, which need not exist yet where it is a path.

        at_once: watch until it is known which processes are alive, so that the first answer is right.
        """
        self._root, self._clock = (run if isinstance(run, Path) else run.root).absolute(), clock
        self._lock = threading.Lock()
        self._state: dict[str, object] = {}
        self._asked_at: float | None = None
        self._at_once = at_once
        self._watched = None if isinstance(run, Path) else _Watched(run, clock, at_once=at_once)

    def state(self) -> dict[str, object]:
        """Return the state; `waits_for` says in a sentence why there is nothing to see yet, or is None."""
        with self._lock:
            now = self._clock()
            if self._asked_at is None or now - self._asked_at >= REFRESH_SECONDS:
                self._state, self._asked_at = self._read(), now
            return self._state

    def series(self, since: int) -> Mapping[str, object]:
        """Return the points of all curves from the number `since` on; see `RunSeries.since`."""
        self.state()
        with self._lock:
            return self._watched.series.since(since) if self._watched else {"version": VERSION, "next": 0}

    def games(self, newest: int) -> Mapping[str, object]:
        """Return the newest games; see `NewestGames.newest`."""
        self.state()
        return self._watched.games.newest(newest) if self._watched else {"version": VERSION, "games": []}

    def _read(self) -> dict[str, object]:
        try:
            if self._watched is None:
                self._watched = _Watched(read_run(self._root), self._clock, at_once=self._at_once)
            state = self._watched.state()
        except UserError as error:
            state = {"waits_for": str(error)}
        except OSError as error:
            state = {"waits_for": f"{self._root} cannot be read at the moment: {explain(error)}"}
        readable = {key: cleaned(each) for key, each in state.items()}
        return {"version": VERSION, "run": plain(str(self._root), 400), **readable}


class _Watched:
    """The readers of a run that exists."""

    def __init__(self, run: RunDirectory, clock: Callable[[], float], *, at_once: bool) -> None:
        self.run, self._clock = run, clock
        self._view = watch_run(run) if at_once else RunView(run, clock=clock)
        self.series, self.games = RunSeries(self._view), NewestGames(run)
        self._rates: dict[tuple[str, str], tuple[float, Rate]] = {}

    def state(self) -> dict[str, object]:
        """Return the state of the run."""
        view = self._view
        view.refresh()
        self.series.refresh()
        found = snapshot(view)
        newest = ModelName.parse(found["models"]["newest"] or "")
        processes = [self._process(each, newest) for each in _listed(view.processes())]
        alive = {each.name for each in view.alive()}
        speeds = [figure(each, "positions_per_second") or 0.0 for each in processes if each["name"] in alive]
        trainer = view.trainer.figures(("step", "seconds", "replay_ratio")) if view.trainer else {}
        row = self.series.newest
        reached = trainer if view.trainer and "step" in view.trainer.fields else row
        warnings, now = found["warnings"], {words_of(each["text"]) for each in found["warnings"]}
        return {
            **{key: found.get(key) for key in ("game", "summary", "replay", "waiting", "balance", "models", "disk")},
            "ended": found["workers"]["ended"],
            "waits_for": self._waits_for(found, is_running=bool(alive)),
            "seconds": view.lines.seconds(trainer.get("seconds")),
            "step": reached.get("step"),
            "limit": describe_limit(found),
            "judged_from": math.ceil(self.run.settings.trainer.mature_steps),
            "games": found["replay"]["read_games"] or row.get("games"),
            "positions_per_second": sum(speeds),
            "replay_ratio": reached.get("replay_ratio"),
            "replay_ratio_wanted": self.run.settings.trainer.replay_ratio,
            "processes": processes,
            "warnings": warnings,
            "earlier_warnings": [each for each in self.series.warnings[::-1] if words_of(each["text"]) not in now],
            "settings": self._settings(),
        }

    def _process(self, process: Process, newest: ModelName | None) -> dict[str, object]:
        beat = process.beat
        shown: dict[str, object] = {
            "name": process.name,
            "role": beat.role,
            "life": process.life,
            "silent_seconds": process.silent_seconds,
            "state": beat.state,
            "host": beat.host,
            **beat.figures(SHOWN),
        }
        if beat.role != "selfplay":
            return shown
        shown["positions_per_second"] = self._rate(process, "positions")
        shown["evaluations_per_second"] = self._rate(process, "evaluations")
        shown["network_share"] = self._rate(process, "network_seconds")
        if beat.model:
            shown["model_step"] = beat.model.step
            shown["steps_behind"] = max(0, newest.step - beat.model.step) if newest and process.is_alive else None
        return shown

    def _rate(self, process: Process, key: str) -> float | None:
        """Return the growth of a count of a process per second: in the last minute, or since its start if it ended.

        Of one that has been seen for less than 4 seconds it is also the mean since its start.
        """
        count, seconds, now = figure(process.beat.fields, key), process.beat.seconds, self._clock()
        if count is None or not seconds:
            return None
        if not process.is_alive:
            self._rates.pop((process.name, key), None)
            return round(count / seconds, 4)
        since, rate = self._rates.setdefault((process.name, key), (now, Rate()))
        measured = rate.per_second(count, now)
        return round(measured if now - since >= 4 else count / seconds, 4)

    def _waits_for(self, found: Snapshot, *, is_running: bool) -> str | None:
        """Return why there are no curves yet, as a sentence; None if there are."""
        if self.series.newest:
            return None
        if not is_running:
            return "nothing has been learned yet and nothing is running; plyzero train starts workers and a trainer"
        wanted, made = self.run.settings.selfplay.bootstrap_positions, found["replay"]["full_positions"]
        if made < wanted:
            return f"the curves begin with the first model, which waits for games: {made} of {wanted} positions"
        return f"the curves begin with the first model, which learns from {made} positions now"

    def _settings(self) -> dict[str, object]:
        """Return the settings that a person asks for first."""
        settings, run = self.run.settings, self.run
        selfplay, network, trainer = settings.selfplay, settings.network, settings.trainer
        return {
            "preset": run.preset,
            "seed": run.seed,
            "network": f"{network.blocks} blocks of {network.channels} channels",
            "selfplay.parallel_games": selfplay.parallel_games,
            "selfplay.simulations": selfplay.simulations,
            "selfplay.fast_simulations": selfplay.fast_simulations,
            "trainer.batch_size": trainer.batch_size,
            "trainer.learning_rate": trainer.learning_rate,
            "trainer.replay_ratio": trainer.replay_ratio,
            "rating.opponents": ", ".join(measured_opponents(settings.rating, settings.budget)),
        }


def describe_limit(found: Snapshot) -> str | None:
    """Return what limits the speed of a run, in a sentence; None if that is not known."""
    balance, workers = found["balance"], found["workers"]["running"]
    if balance is None or not workers:
        return None
    more = int(balance["suitable_workers"]) - workers
    if more > 0:
        noun = "another worker" if more == 1 else f"{more} more workers"
        return f"The trainer could use more games: {noun} would keep it busy."
    return "The trainer is busy" + (f": {workers + more} of {workers} workers would be enough." if more else ".")


def _listed(processes: list[Process]) -> list[Process]:
    """Return the processes that are listed: the trainer, the living workers, and some of those that have ended."""
    alive = [each for each in processes if each.is_alive]
    ended = [each for each in processes if not each.is_alive]
    chosen = alive[:200] + ended[-20:]
    return sorted(chosen, key=lambda each: (each.beat.role != TRAINER, not each.is_alive, each.name))


def cleaned(value: object, depth: int = 7) -> object:
    """Return a value as JSON that every browser can read: with texts in one line and finite numbers."""
    if isinstance(value, str):
        return plain(value, 1000)
    if isinstance(value, dict) and depth:
        return {plain(str(key), 100): cleaned(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [cleaned(each, depth - 1) for each in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float) and abs(value) < 1e15:
        return value
    return None
