"""Pretended workers: the product's worker, with its writer, heartbeat, back-pressure and model watch, but no search.

In place of a search, recorded games come at a given rate, each under a seed and identity of its own. A model is listed,
read and compared with its digest, but no network is made of it.

python -m benchmarks.scale.pretended --run DIR --out DIR --name a --workers 250 --rate 40
"""

import argparse
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.scale.calls import Calls, dump, watch
from benchmarks.scale.ledger import Log
from plyzero.network import model_loader
from plyzero.network.model_loader import ModelWatch
from plyzero.ops.processes import stop_on_signals
from plyzero.run.directory import Run, open_run
from plyzero.run.journals import Journal
from plyzero.run.metrics import Heartbeat
from plyzero.run.models import ModelName, read_model
from plyzero.run.records import Games
from plyzero.search.evaluators import Uniform
from plyzero.selfplay import worker
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.selfplay.worker import game_seeds, run_worker
from plyzero.threads import repeating, start_thread
from plyzero.volumes import to_path

TEMPLATES: Final = 200
"""Number of recorded games that come again and again."""

STACK_BYTES: Final = 1 << 18
"""Stack of a thread: a process has three for each of its workers."""

SWITCH_SECONDS: Final = 1.0
"""Time after which a thread that waits for its turn asks for it. Hundreds that ask every 5 ms take all cores."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PretendedNetwork:
    """A model that was read, without its network."""

    fence: int
    step: int
    label: str
    precision: str = "none"


@dataclass
class Part:
    """The games of a worker that are under way: plies played of each."""

    plies: list[int]


class PretendedEvaluator:
    """The evaluator of a machine: it has the newest model, so that the workers beside it load none."""

    def __init__(self, run: Run) -> None:
        self._watch = ModelWatch.of_worker(run)
        self.network: Any = None

    def refresh(self) -> None:
        """Load a newer model."""
        self.network = self._watch.newer() or self.network


class PretendedGames:
    """Takes the place of `EvaluatedGames`: finished games at a rate, as many as have become due since the last call.

    rate: positions per second of one worker.
    """

    templates: list[Games]
    rate: float
    evaluator: PretendedEvaluator | None = None
    ended: dict[int, float]

    def __init__(self, run: Run, seeds: Iterator[int], watch: ModelWatch, *_: object, one_by_one: bool = True) -> None:
        self._seeds, self._watch = seeds, watch
        self._network: Any = None
        self._random = random.Random(next(seeds))
        self._due = time.monotonic() + self._random.expovariate(1) * self._pause()
        self.games = [Part([0] * run.settings.selfplay.parallel_games)]
        self.evaluations = 0
        self.network_seconds = 0.0
        self.resignations = [0, 0, 0]

    def refresh(self) -> None:
        """Have the newest model."""
        if self.evaluator:
            self._network = self.evaluator.network
        else:
            self._network = self._watch.newer() or self._network

    def run(self) -> list[Games]:
        """Return the games that have ended; it waits up to half a second for one."""
        time.sleep(min(0.5, max(0.0, self._due - time.monotonic())))
        found = []
        while time.monotonic() >= self._due:
            self._due += self._random.expovariate(1) * self._pause()
            found.append(self._next_game())
        return found

    @property
    def has_model(self) -> bool:
        return self._network is not None

    @property
    def label(self) -> str | None:
        return self._network.label if self._network else None

    def _pause(self) -> float:
        """Return the mean time between the ends of two games."""
        plies = sum(len(each.positions) for each in self.templates) / len(self.templates)
        return plies / self.rate

    def _next_game(self) -> Games:
        template = self._random.choice(self.templates)
        seed = next(self._seeds)
        fence, step = (self._network.fence, self._network.step) if self._network else (0, 0)
        self.evaluations += len(template.positions)
        self.ended[seed] = time.time()
        return under_new_identity(template, seed=seed, fence=fence, step=step)


def under_new_identity(template: Games, *, seed: int, fence: int, step: int) -> Games:
    """Return one recorded game as another one: with this seed and id, evaluated by the model of this fence and step."""
    games, positions = template.games.copy(), template.positions.copy()
    games["id"] = games["seed"] = seed
    searched = positions["search"] > 0
    positions["model_fence"][searched] = fence
    positions["model_step"][searched] = step
    return replace(template, games=games, positions=positions)


def make_templates(run: Run, *, count: int = TEMPLATES) -> list[Games]:
    """Return recorded games, played with few simulations and without a network."""
    selfplay = run.settings.selfplay.model_copy(update={"simulations": 4, "fast_simulations": 2})
    settings = run.settings.model_copy(update={"selfplay": selfplay})
    in_play = GamesInPlay(run.game.start, settings, seeds=game_seeds(0, "templates", "00000000"))
    found = list[Games]()
    while len(found) < count:
        found += [game for games in in_play.run(Uniform(run.game.start.num_actions)) for game in games]
    return found


def pretend(acknowledged: Log, *, templates: list[Games], rate: float, evaluator: PretendedEvaluator | None) -> None:
    """Let the workers of this process play recorded games, and log every game that is acknowledged."""
    PretendedGames.templates, PretendedGames.rate = templates, rate
    PretendedGames.evaluator, PretendedGames.ended = evaluator, {}
    worker.EvaluatedGames = PretendedGames  # type: ignore[assignment,misc]

    def only_read(directory: Path, name: ModelName, *_: object, **__: object) -> PretendedNetwork:
        read_model(directory, name)
        return PretendedNetwork(name.fence, name.step, str(name))

    model_loader.load_model = only_read  # type: ignore[assignment]
    append = Journal.append

    def logged_append(journal: Journal, games: Games) -> None:
        append(journal, games)
        ids = games.games["id"].tolist()
        acknowledged.add(ids, [PretendedGames.ended.pop(each, np.nan) for each in ids])

    Journal.append = logged_append  # type: ignore[method-assign]


def give_way() -> None:
    """Let all other processes go first: on machines of their own, workers would not take time from them."""
    os.nice(19)
    with suppress(OSError):  # Linux may share time among sessions at first, where priorities count within each alone
        Path("/proc/self/autogroup").write_text("19")


def main() -> None:
    """Pretend workers until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--out", type=Path, required=True, help="where the counts and the log of games go")
    parser.add_argument("--name", required=True, help="of this process, and the beginning of its workers' names")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True, help="positions per second of each worker")
    parser.add_argument("--evaluator", action="store_true", help="one process evaluates for all of these")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--scratch", type=Path, default=None)
    given = parser.parse_args()

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    stop = stop_on_signals()
    threading.stack_size(STACK_BYTES)
    sys.setswitchinterval(SWITCH_SECONDS)
    give_way()
    run = open_run(to_path(given.run), scratch=given.scratch)
    templates = make_templates(run)
    calls = Calls(run.root, given.latency_ms / 1000)
    calls.install()
    watch(calls, given.out / f"calls-{given.name}.json")
    evaluator = PretendedEvaluator(run) if given.evaluator else None
    acknowledged = Log(given.out / f"acknowledged-{given.name}")
    pretend(acknowledged, templates=templates, rate=given.rate, evaluator=evaluator)
    with ExitStack() as evaluating:
        if evaluator:
            beat = Heartbeat(*run.heartbeats(f"evaluator.{given.name}"))

            def look() -> None:
                assert evaluator
                evaluator.refresh()
                beat.beat({"role": "evaluator", "state": "serving"})

            evaluating.enter_context(repeating(look, 0.5, name="evaluator"))
        threads = [
            start_thread(lambda name=f"{given.name}_{number}": run_worker(run, name=name, stop=stop), name="worker")
            for number in range(given.workers)
        ]
        for thread in threads:
            thread.join()
    dump(calls, given.out / f"calls-{given.name}.json")


if __name__ == "__main__":
    main()
