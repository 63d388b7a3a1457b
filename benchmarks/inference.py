"""What central inference costs: a round trip of a batch, and what workers make of their evaluator's network.

python -m benchmarks.inference --write benchmarks/results/inference.md

Server, workers and client are processes of this machine and talk over loopback. All cases take turns in one run, so
that they see the same load.
"""

import argparse
import datetime
import importlib.metadata
import itertools
import multiprocessing
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed import processor
from plyzero.commands.bench import random_weights
from plyzero.inference.batcher import Batcher
from plyzero.inference.evaluation_server import serving
from plyzero.inference.remote_network import RemoteNetwork
from plyzero.play.model_loader import ModelWatch, load_newest
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.run.models import publish_model
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.search.onnx_network import reachable_observations
from selfplay.evaluated_games import LocalGames, RemoteGames

BATCH = 64
CALLS = 10
"""Round trips of a case before the next case has its turn."""

WARM_SECONDS = 3.0
SETTLE_SECONDS = 0.1
"""Time at both ends of a turn that does not count, in which processes wake up, or finish their batches."""

WAIT_MS = 2.0
"""Default of `plyzero evaluator --wait-ms`."""

PROCESSES = multiprocessing.get_context("spawn")
SMALL, LARGE = (2, 32), (4, 64)


def main() -> None:
    """Measure, and write a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="connect-four")
    parser.add_argument("--calls", type=int, default=2000, help="round trips of each case")
    parser.add_argument("--rounds", type=int, default=24, help="turns of each case")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn")
    parser.add_argument("--network", nargs=2, type=int, action="append", metavar=("BLOCKS", "CHANNELS"))
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page; without it, it is printed")
    given = parser.parse_args()
    networks = given.network or (SMALL, LARGE)
    sizes = " ".join(f"--network {blocks} {channels}" for blocks, channels in networks)
    turns = f"--calls {given.calls} --rounds {given.rounds} --seconds {given.seconds:g}"
    command = f"python -m benchmarks.inference {sizes} {turns} --write FILE"
    loads, sections = [os.getloadavg()[0]], []
    for blocks, channels in networks:
        with tempfile.TemporaryDirectory() as directory:
            size = [f"network.blocks={blocks}", f"network.channels={channels}", "selfplay.cache_mb=0"]
            run = create_run(Path(directory) / "run", load_game(given.game), options=size)
            publish_model(run.models, random_weights(run.root), fence=1, step=1)
            trips = measure_round_trips(run, calls=given.calls)
            shares = measure_shares(run, rounds=given.rounds, seconds=given.seconds)
        loads.append(os.getloadavg()[0])
        sections.append(section(f"{given.game}, network of {blocks} x {channels}", trips, shares))
        text = page(command, loads, sections)
        if given.write:
            given.write.write_text(text, encoding="utf-8")
    if not given.write:
        print(text)


# --- a round trip ---


@dataclass(frozen=True)
class Trips:
    """Round trips of one case: seconds of each, and seconds of this process's CPU time for one on average."""

    seconds: NDArray[np.float64]
    cpu_seconds: float


def measure_round_trips(run: Run, *, calls: int) -> dict[str, Trips]:
    """Send one batch again and again, a few times to each server in turn, and evaluate it here in between."""
    seen = reachable_observations(run.game)
    batch = EvaluationBatch(np.resize(seen, (BATCH, *seen.shape[1:])), list)
    network = load_newest(run.models, run.game)
    assert network is not None
    with (
        server(run, wait_ms=0, is_free=True) as free,
        server(run, wait_ms=0) as eager,
        server(run, wait_ms=WAIT_MS) as waiting,
    ):
        remotes = {
            "to a server without a network": RemoteNetwork(free, run),
            "to a server with the network, --wait-ms 0": RemoteNetwork(eager, run),
            f"the same, --wait-ms {WAIT_MS:g}": RemoteNetwork(waiting, run),
        }
        cases: dict[str, Callable[[EvaluationBatch], Evaluation]] = {"network in this process": network, **remotes}
        seconds: dict[str, list[float]] = {name: [] for name in cases}
        cpu = dict.fromkeys(cases, 0.0)
        for turn in range(-20, max(1, calls // CALLS)):
            for name, evaluate in cases.items():
                before = time.process_time()
                for _ in range(CALLS):
                    began = time.perf_counter()
                    evaluate(batch)
                    if turn >= 0:
                        seconds[name].append(time.perf_counter() - began)
                cpu[name] += time.process_time() - before if turn >= 0 else 0.0
        for remote in remotes.values():
            remote.close()
    return {name: Trips(np.array(seconds[name]), cpu[name] / len(seconds[name])) for name in cases}


@contextmanager
def server(run: Run, *, wait_ms: float, is_free: bool = False, cpu: Any = None) -> Iterator[str]:
    """Run an evaluator in a process of its own; yield its address. Its CPU time is kept in `cpu`, if given."""
    address, stop = PROCESSES.SimpleQueue(), PROCESSES.Event()
    process = PROCESSES.Process(target=serve, args=(run.root, wait_ms, is_free, address, stop, cpu), daemon=True)
    process.start()
    try:
        yield address.get()
    finally:
        stop.set()
        process.join()


def serve(root: Path, wait_ms: float, is_free: bool, address: Any, stop: Any, cpu: Any) -> None:
    """Be an evaluator, with numbers at once in place of a network if `is_free`."""
    run = open_run(root)
    poll = run.settings.selfplay.poll_seconds
    watch: Any = FreeWatch(run) if is_free else ModelWatch(run.models, run.game, poll_seconds=poll, threads=1)
    with watch, Batcher(watch, max_batch=512, wait_seconds=wait_ms / 1000) as batcher:
        while batcher.label is None:
            time.sleep(0.01)
        with serving(run, batcher) as port:
            address.put(f"127.0.0.1:{port}")
            while not stop.wait(0.02):
                if cpu is not None:
                    cpu.value = time.process_time()


class FreeWatch:
    """A watch whose only model, itself, takes no time."""

    def __init__(self, run: Run) -> None:
        self._is_new, self._actions = True, run.game.start.num_actions
        self.fence, self.step, self.label = 1, 1, "000001-000000001-00000000.onnx"

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        n = len(batch.observations)
        return Evaluation(np.zeros((n, self._actions), np.float32), np.full((n, 3), 1 / 3, np.float32))

    def newer(self) -> Any:
        is_new, self._is_new = self._is_new, False
        return self if is_new else None

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def __enter__(self) -> "FreeWatch":
        return self

    def __exit__(self, *_: object) -> None:
        pass


# --- shares ---


@dataclass(frozen=True)
class Case:
    """Processes that work at the same time: so many of one kind."""

    kind: str
    count: int


SERVERS = {"evaluator": 0.0, "waiting evaluator": WAIT_MS}
"""Kind of workers -> how long their evaluator waits, in milliseconds."""

CASES = [
    *(Case("alone", count) for count in (1, 2)),
    *(Case(kind, count) for kind in (*SERVERS, "local") for count in (2, 4)),
]


class Player:
    """A process that works while it is its turn: a worker without a store, or a network alone."""

    def __init__(self, run: Run, kind: str, index: int, address: str | None) -> None:
        self.turn, self.end, self.ready = PROCESSES.Event(), PROCESSES.Event(), PROCESSES.Event()
        self.made, self.cpu = PROCESSES.Value("q", 0), PROCESSES.Value("d", 0.0)
        self.process = PROCESSES.Process(target=self.work, args=(run.root, kind, index, address), daemon=True)
        self.process.start()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "process"}

    def work(self, root: Path, kind: str, index: int, address: str | None) -> None:
        run = open_run(root)
        with ModelWatch(run.models, run.game, poll_seconds=3600, threads=1) as watch:
            play_on, count = alone(run) if kind == "alone" else player(run, watch, index, address)
            self.ready.set()
            while self.turn.wait() and not self.end.is_set():
                play_on()
                self.made.value, self.cpu.value = count(), time.process_time()


@dataclass(frozen=True)
class Rates:
    """What a case made in each of its turns: evaluations per second, and per second of CPU time of its processes."""

    per_second: list[float]
    per_cpu_second: list[float]


def measure_shares(run: Run, *, rounds: int, seconds: float) -> dict[Case, Rates]:
    """Return what every case made in every round; the cases take turns."""
    server_cpu = {kind: PROCESSES.Value("d", 0.0) for kind in SERVERS}
    rates = {case: Rates([], []) for case in CASES}
    with ExitStack() as stack:
        addresses = {
            kind: stack.enter_context(server(run, wait_ms=wait_ms, cpu=server_cpu[kind]))
            for kind, wait_ms in SERVERS.items()
        }
        most = {case.kind: max(each.count for each in CASES if each.kind == case.kind) for case in CASES}
        players = {
            kind: [Player(run, kind, index, addresses.get(kind)) for index in range(count)]
            for kind, count in most.items()
        }
        for each in itertools.chain(*players.values()):
            each.ready.wait()
        for number in range(-1, rounds):
            for case in CASES:
                working = players[case.kind][: case.count]
                clocks = [*(each.cpu for each in working), *filter(None, [server_cpu.get(case.kind)])]

                def totals(working: Any = working, clocks: Any = clocks) -> NDArray[np.float64]:
                    return np.array(
                        [sum(x.made.value for x in working), time.perf_counter(), sum(x.value for x in clocks)]
                    )

                for each in working:
                    each.turn.set()
                time.sleep(SETTLE_SECONDS if number >= 0 else WARM_SECONDS)
                before = totals()
                time.sleep(seconds)
                made, took, cpu = totals() - before
                for each in working:
                    each.turn.clear()
                time.sleep(SETTLE_SECONDS)
                if number >= 0:
                    rates[case].per_second.append(made / took)
                    rates[case].per_cpu_second.append(made / max(cpu, 1e-9))
        for each in itertools.chain(*players.values()):
            each.end.set()
            each.turn.set()
            each.process.join()
    return rates


def alone(run: Run) -> tuple[Callable[[], Any], Callable[[], int]]:
    """Return what evaluates one batch, and what counts the evaluations."""
    network, seen, made = load_newest(run.models, run.game), reachable_observations(run.game), itertools.count(1)
    assert network is not None
    batch = EvaluationBatch(np.resize(seen, (BATCH, *seen.shape[1:])), list)
    return lambda: network(batch), lambda: BATCH * next(made)


def player(run: Run, watch: ModelWatch, index: int, address: str | None) -> tuple[Callable[[], Any], Callable[[], int]]:
    """Return what plays on by one batch, and what counts the evaluations."""
    seeds = itertools.count(1_000_000 * index)
    remote = RemoteNetwork(address, run) if address else None
    games = RemoteGames(run, seeds, watch, remote) if remote else LocalGames(run, seeds, watch)

    def play_on() -> None:
        games.refresh()
        games.run()
        assert games.has_model
        assert remote is None or remote.is_ready

    return play_on, lambda: games.evaluations


# --- the page ---


def section(title: str, trips: dict[str, Trips], rates: dict[Case, Rates]) -> str:
    """Return the tables of one network."""
    calls = len(next(iter(trips.values())).seconds)
    lines = [
        f"## {title}",
        "",
        f"Round trips of a batch of {BATCH}, milliseconds, one at a time, {calls:,} of each:",
        "",
        "| what | p5 | p50 | p95 | CPU time of the client |",
        "|---|---|---|---|---|",
    ]
    for name, each in trips.items():
        low, middle, high = 1000 * np.quantile(each.seconds, (0.05, 0.5, 0.95))
        lines.append(f"| {name} | {low:.2f} | **{middle:.2f}** | {high:.2f} | {1000 * each.cpu_seconds:.2f} |")
    here, _, there, _ = (np.median(each.seconds) for each in trips.values())
    lines += [
        "",
        f"With `--wait-ms 0` the median round trip takes {1000 * (there - here):.2f} ms longer than the evaluation in"
        " this process.",
        "",
        "Evaluations per second, and per second of the CPU time of all processes that took part, the server included:",
        "medians over the turns, with quartiles in brackets. A share compares a turn with that of the network alone in",
        "the same round: an evaluator and its workers with one process, local inference with two.",
        "",
        "| what | evaluations /s | share of the network alone | per CPU second | share of the network alone |",
        "|---|---|---|---|---|",
    ]
    bases = {count: rates[Case("alone", count)] for count in (1, 2)}
    for case, found in rates.items():
        base = bases[1 if case.kind in SERVERS else 2]
        cells = []
        for name in ("per_second", "per_cpu_second"):
            values = np.array(getattr(found, name))
            share = "" if case.kind == "alone" else f"{shown(100 * values / np.array(getattr(base, name)))} %"
            cells += [shown(values), share]
        lines.append(f"| {NAMES[case.kind].format(case.count)} | {' | '.join(cells)} |")
    return "\n".join(lines)


NAMES = {
    "alone": f"network alone, batches of {BATCH}, processes: {{}}",
    "evaluator": "one evaluator, --wait-ms 0, workers: {}",
    "waiting evaluator": f"one evaluator, --wait-ms {WAIT_MS:g}, workers: {{}}",
    "local": "local inference, workers: {}",
}


def shown(values: NDArray[np.float64]) -> str:
    """Return the median of some values, and their quartiles in brackets."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    digits = 0 if middle >= 1000 else 1
    return f"**{middle:,.{digits}f}** ({low:,.{digits}f} to {high:,.{digits}f})"


def page(command: str, loads: Sequence[float], sections: Sequence[str]) -> str:
    """Return the whole page."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("onnxruntime", "grpcio", "numpy"))
    return "\n".join(
        [
            "# Central inference beside local inference",
            "",
            f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, {platform.system()}, "
            f"Python {platform.python_version()}, {versions}. No GPU. Made by",
            "",
            "```sh",
            command,
            "```",
            "",
            "Server, workers and client are processes of this machine and talk over loopback; each network has one",
            "thread, and nothing is cached. All cases take turns in one run. The machine is shared and also had other"
            f" work: its load average was {', '.join(f'{load:.1f}' for load in loads)} before, between and after the"
            " measurements. Round trips are slower then, and evaluations per second fewer; CPU time changes less.",
            "",
            *(f"{each}\n" for each in sections),
        ]
    )


if __name__ == "__main__":
    main()
