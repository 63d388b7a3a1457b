"""Do workers keep the GPU of their evaluator busy? A pretended one, which sleeps, shows it on any machine: a table.

python -m benchmarks.evaluator connect-four --rates 5000 20000 100000 --workers 2

Workers play real games in processes of their own. The pretended GPU takes LATENCY + n / rate for a batch of n, and its
answers follow from the observations alone. Nothing is evaluated but by it, so the share of its rate that is reached is
what the workers, the transport and the batches leave of it. A few seconds for each row.

python -m benchmarks.evaluator connect-four --round-trips

times a batch of 64 on its way to an evaluator and back, where nothing is evaluated.

python -m benchmarks.evaluator connect-four --network 2 32 --workers 2

compares CPU seconds: of workers and an evaluator with a real network, of random weights, and of that network alone.

python -m benchmarks.evaluator --simulate --rates 500000 1000000 --workers 14

computes the same for a machine of many cores from the costs of a batch, in a few seconds and without processes.
"""

import argparse
import heapq
import itertools
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plyzero.commands.common import in_another_process
from plyzero.commands.machine import random_weights
from plyzero.kits.cluster.batcher import Batcher
from plyzero.kits.cluster.evaluation_server import serving
from plyzero.kits.cluster.local_evaluator import LocalEvaluator
from plyzero.kits.cluster.remote_network import RemoteNetwork
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import SMALLEST_BATCH, Network, reachable_observations
from plyzero.ops.local_processes import full_batch
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.run.models import publish_model
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.selfplay.benchmark import evaluate_alone, timed
from plyzero.selfplay.evaluated_games import EvaluatedGames
from plyzero.selfplay.games_in_play import GamesInPlay

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["plyzero.kits.cluster.evaluation_server", "plyzero.selfplay.evaluated_games"])
MAX_BATCH = 1024
LATENCY = 0.0004
"""Seconds that a batch takes beside its positions: launches and transfers."""

WORKER_COST = 490e-6, 2.1e-6
EVALUATOR_COST = 60e-6, 15e-6, 0.25e-6
"""Seconds of a core for a call and for each of its positions, in a worker; for a batch, for each of its calls and for
each position, in an evaluator. Fitted to this benchmark with two workers of Connect Four on two busy cores: 6.0 and 4.3
us an evaluation in a worker, 1.1 and 0.5 in the evaluator, with calls of 125 and 222 positions."""

SIMULATED_SECONDS = 1.0
WARM_SECONDS = 1.5
LABEL = "000001-000000010-00000000.onnx"
ENTRIES = 8191


class PretendedGpu:
    """A network and the watch that finds it: evaluations that follow from a hash of each observation, at a set rate.

    counts: `[4]` batches, positions, seconds in them, seconds of the CPU time of this process so far; shared, if given.
    """

    fence = 1
    step = 10
    label = LABEL
    precision = "fp32"

    def __init__(self, run: Run, *, rate: float = np.inf, latency: float = 0.0, counts: Any = None) -> None:
        start = run.game.start
        rng = np.random.default_rng(0)
        self._rate = rate
        self._latency = latency
        self._is_new = True
        self._counts = [0.0, 0.0, 0.0, 0.0] if counts is None else counts
        self._logits = rng.normal(size=(ENTRIES, start.num_actions)).astype(np.float32)
        self._wdl = rng.dirichlet([1, 1, 1], ENTRIES).astype(np.float32)
        self._weights = rng.integers(1, 1000, np.prod(start.observation_shape)).astype(np.float32)  # sums are exact

    def answer(self, observations: NDArray[np.float32]) -> Evaluation:
        """Return the evaluation of `[n, C, H, W]`, at once."""
        rows = (observations.reshape(len(observations), -1) @ self._weights).astype(np.int64) % ENTRIES
        return Evaluation(self._logits[rows], self._wdl[rows])

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        began = time.perf_counter()
        n = len(batch.observations)
        found = self.answer(batch.observations)
        left = began + self._latency + n / self._rate - time.perf_counter()
        if left > 0:
            time.sleep(left)
        self._counts[0] += 1
        self._counts[1] += n
        self._counts[2] += time.perf_counter() - began
        self._counts[3] = time.process_time()
        return found

    def newer(self) -> "PretendedGpu | None":
        if not self._is_new:
            return None
        self._is_new = False
        return self

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def serve(
    root: Path, port: Any, rate: float = np.inf, latency: float = 0.0, wait_ms: float = 0.0, counts: Any = None
) -> None:
    """Be an evaluator with a pretended GPU until this process ends; its port goes into `port`, if that is 0."""
    run = open_run(root)
    watch: Any = PretendedGpu(run, rate=rate, latency=latency, counts=counts)
    with Batcher(watch, max_batch=MAX_BATCH, wait_seconds=wait_ms / 1000) as batcher:
        while batcher.label is None:
            time.sleep(0.005)
        with serving(run, batcher, port=port.value, name=f"evaluator.{os.getpid():08x}") as bound:
            port.value = bound
            while True:
                time.sleep(1)


def play(root: Path, port: int, number: int, counts: Any, is_grpc: bool) -> None:
    """Be a worker until this process ends: `counts` gets its evaluations and its CPU seconds."""
    run = open_run(root)
    if is_grpc:
        LocalEvaluator.find = lambda *_: None  # type: ignore[method-assign, assignment]
    remote = RemoteNetwork(f"127.0.0.1:{port}", run)
    assert (remote._local is None) == is_grpc
    games = EvaluatedGames(run, itertools.count(number, 1000), ModelWatch.of(run, threads=1), remote)
    while True:
        games.run()
        assert remote.is_ready
        counts[:] = [games.evaluations, time.process_time()]


def serve_network(root: Path, port: Any, rate: float, latency: float, wait_ms: float, counts: Any) -> None:
    """Be the evaluator of a run with a model until this process ends; `counts` are those of PretendedGpu, without the
    seconds in batches."""
    run = open_run(root)
    watch = ModelWatch.of(run, threads=1, precision=run.settings.selfplay.precision, largest=MAX_BATCH)
    with watch, Batcher(watch, max_batch=MAX_BATCH, wait_seconds=wait_ms / 1000) as batcher:
        while batcher.label is None:
            time.sleep(0.005)
        with serving(run, batcher, name=f"evaluator.{os.getpid():08x}") as bound:
            port.value = bound
            while True:
                counts[:] = [batcher.batches, batcher.evaluations, 0.0, time.process_time()]
                time.sleep(0.02)


def measure(
    run: Run,
    *,
    rate: float,
    workers: int,
    seconds: float,
    wait_ms: float = 0.0,
    is_grpc: bool = False,
    server: Callable[..., None] = serve,
) -> dict[str, float]:
    """Return evaluations/s, the share of the `rate` and of the time in which the GPU is busy, positions in a batch,
    and microseconds of CPU time for an evaluation in workers and in the evaluator, which is `server`."""
    port, gpu = PROCESSES.Value("i", 0), PROCESSES.Array("d", 4)
    made = [PROCESSES.Array("d", 2) for _ in range(workers)]
    processes = [PROCESSES.Process(target=server, args=(run.root, port, rate, LATENCY, wait_ms, gpu), daemon=True)]
    try:
        processes[0].start()
        while not port.value:
            time.sleep(0.01)
            assert processes[0].is_alive()
        for number in range(workers):
            arguments = (run.root, port.value, number, made[number], is_grpc)
            processes.append(PROCESSES.Process(target=play, args=arguments, daemon=True))
            processes[-1].start()
        while not all(each[0] for each in made):
            time.sleep(0.01)
            assert all(each.is_alive() for each in processes)
        time.sleep(WARM_SECONDS)
        began, before = time.perf_counter(), np.array([*gpu, *(np.sum(made, axis=0))])
        time.sleep(seconds)
        passed = time.perf_counter() - began
        batches, positions, busy, server_cpu, played, cpu = np.array([*gpu, *(np.sum(made, axis=0))]) - before
    finally:
        for each in reversed(processes):
            if each.pid:
                each.kill()
                each.join()
    return {
        "evaluations_per_second": positions / passed,
        "share": positions / passed / rate,
        "busy": busy / passed,
        "batch": positions / max(1, batches),
        "worker_us": 1e6 * cpu / max(1, played),
        "evaluator_us": 1e6 * server_cpu / max(1, positions),
    }


def round_trips(run: Run, *, positions: int = 64, rounds: int = 60, calls: int = 25) -> None:
    """Print what a batch takes by shared memory and by gRPC, in turns: medians and quartiles of the rounds."""
    port, find = PROCESSES.Value("i", 0), LocalEvaluator.find
    server = PROCESSES.Process(target=serve, args=(run.root, port), daemon=True)
    server.start()
    while not port.value:
        time.sleep(0.01)
    shape = (positions, *run.game.start.observation_shape)
    batch = EvaluationBatch(np.random.default_rng(0).integers(0, 2, shape).astype(np.float32), list)
    ways, found = {}, {}
    for name in ("shared memory", "gRPC"):
        LocalEvaluator.find = find if name == "shared memory" else lambda *_: None  # type: ignore[method-assign]
        ways[name] = RemoteNetwork(f"127.0.0.1:{port.value}", run)
        found[name] = list[list[float]]()
        for _ in range(calls):
            ways[name](batch)
    for _, (name, remote) in itertools.product(range(rounds), ways.items()):
        took = []
        cpu = time.process_time()
        for _ in range(calls):
            began = time.perf_counter()
            remote(batch)
            took.append(time.perf_counter() - began)
        found[name].append([1e6 * float(np.median(took)), 1e6 * (time.process_time() - cpu) / calls])
    for name, rows in found.items():
        times_of_calls, cpu_times = np.array(rows).T
        low, mid, high = np.quantile(times_of_calls, (0.25, 0.5, 0.75))
        cpu = np.median(cpu_times)
        times = f"{mid:.0f} us ({low:.0f} to {high:.0f})"
        print(f"{name}: {times} for {positions} positions, {cpu:.0f} us of the worker's CPU")
    server.kill()


def with_network(run: Run, workers: list[int], seconds: float) -> None:
    """Print evaluations for a CPU second: of the network of `run` alone, and of workers through its evaluator."""
    content = in_another_process(random_weights, run.root)
    publish_model(run.models, content, fence=1, step=1)
    network = Network(content, run.game, label="alone", threads=1)
    batch = reachable_observations(run.game)[: run.settings.selfplay.parallel_games // 2]
    print("| workers | through the evaluator, for a CPU second | alone | share |\n|---|---|---|---|", flush=True)
    for number in workers:
        alone = [timed(lambda limit: evaluate_alone(network, batch, limit)) for _ in range(4)]
        found = measure(run, rate=np.inf, workers=number, seconds=seconds, server=serve_network)
        alone += [timed(lambda limit: evaluate_alone(network, batch, limit)) for _ in range(4)]
        reached = 1e6 / (found["worker_us"] + found["evaluator_us"])
        most = float(np.median([turn.per_cpu_second for turn in alone]))
        print(f"| {number} | {reached:,.0f} | {most:,.0f} | **{reached / most:.1%}** |", flush=True)


def padded(positions: int) -> int:
    """Return the size of the batch in which a GPU evaluates so many positions."""
    return max(SMALLEST_BATCH, 1 << (positions - 1).bit_length())


def simulate(
    *,
    rate: float,
    workers: int,
    games: int,
    parts: int = 2,
    max_batch: int = MAX_BATCH,
    pads: bool = True,
    streams: int = 1,
) -> tuple[float, float]:
    """Return the share of a GPU's rate that is reached, and the mean number of positions in a batch.

    Each worker, on a core of its own, has its games in `parts`, whose turns alternate: it waits for the answer of one,
    plays on in it and sends its next leaves. The evaluator takes what has arrived, up to `max_batch`, prepares it and
    waits for the GPU; with two streams it prepares the next batch meanwhile.

    pads: whether a batch takes the time of the next power of two.
    """
    calls = [(number * WORKER_COST[0], number % workers, number // workers) for number in range(workers * parts)]
    positions = games // parts
    answered = [[np.inf] * parts for _ in range(workers)]
    turns = [0] * workers
    free = [0.0] * workers
    evaluator = gpu = 0.0
    evaluations = batches = 0
    heapq.heapify(calls)
    while gpu < SIMULATED_SECONDS:
        begins = max(evaluator, calls[0][0])
        taken = [heapq.heappop(calls)]
        while calls and calls[0][0] <= begins and (len(taken) + 1) * positions <= max_batch:
            taken.append(heapq.heappop(calls))
        size = len(taken) * positions
        prepared = begins + float(np.dot(EVALUATOR_COST, (1, len(taken), size)))
        starts = max(prepared, gpu)
        gpu = starts + LATENCY + (padded(size) if pads else size) / rate
        evaluator = starts if streams > 1 else gpu
        evaluations += size
        batches += 1
        for _, worker, part in taken:
            answered[worker][part] = gpu
            while np.isfinite(at := answered[worker][turns[worker]]):
                free[worker] = max(free[worker], at) + WORKER_COST[0] + positions * WORKER_COST[1]
                heapq.heappush(calls, (free[worker], worker, turns[worker]))
                answered[worker][turns[worker]] = np.inf
                turns[worker] = (turns[worker] + 1) % parts
    return evaluations / gpu / rate, evaluations / batches


def print_simulated(rates: list[float], workers: list[int], games: int) -> None:
    """Print a row for each rate and number of workers: the share of the rate that each way reaches."""
    ways: dict[str, dict[str, Any]] = {
        "as train starts it": {},
        "--max-batch 4096": {"max_batch": 4096},
        "batches of one call": {"max_batch": games // 2},
        "games in one part": {"parts": 1},
        "not padded": {"pads": False},
        "two streams": {"streams": 2},
    }
    heads = ["rate /s", "workers", *ways]
    print(f"| {' | '.join(heads)} |\n|{'|'.join('---' for _ in heads)}|")
    for rate, number in itertools.product(rates, workers):
        usual = {"rate": rate, "workers": number, "games": games, "max_batch": full_batch(number, games)}
        found = [simulate(**(usual | way)) for way in ways.values()]
        cells = [f"{share:.0%}, batch {batch:.0f}" for share, batch in found]
        print(f"| {rate:,.0f} | {number} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="?", default="connect-four")
    parser.add_argument("--rates", type=float, nargs="+", default=[5_000, 20_000, 50_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--games", type=int, default=256, help="of each worker at once, in two halves")
    parser.add_argument("--seconds", type=float, default=2.0, help="that are measured for each row")
    parser.add_argument("--wait-ms", type=float, nargs="+", default=[0.0], help="of the evaluator")
    parser.add_argument("--grpc", action="store_true", help="gRPC in turns with shared memory")
    parser.add_argument("--round-trips", action="store_true", help="time a batch on its way to an evaluator and back")
    parser.add_argument("--network", type=int, nargs=2, metavar=("BLOCKS", "CHANNELS"), help="a real one, on the CPU")
    parser.add_argument("--simulate", action="store_true", help="compute it from the costs of a batch")
    given = parser.parse_args()
    if given.simulate:
        print_simulated(given.rates, given.workers, given.games)
        return
    with tempfile.TemporaryDirectory() as directory:
        options = [f"selfplay.parallel_games={given.games}", "selfplay.cache_mb=0"]
        if given.network:
            options += [
                f"network.{name}={number}" for name, number in zip(("blocks", "channels"), given.network, strict=True)
            ]
        run = create_run(Path(directory) / "run", load_game(given.game), options=options)
        if given.network:
            with_network(run, given.workers, given.seconds)
            return
        (run.models / LABEL).write_bytes(b"")  # a worker refuses an answer of a model that the run does not have
        if given.round_trips:
            round_trips(run)
            return
        print(
            "| way | rate /s | workers | --wait-ms | reached /s | share | GPU busy | batch | worker us | evaluator us |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
        GamesInPlay(run.game.start, run.settings, seeds=itertools.count())  # compiles the rules, once for all processes
        for rate, workers, wait_ms in itertools.product(given.rates, given.workers, given.wait_ms):
            for is_grpc in (False, True) if given.grpc else (False,):
                arguments = {"rate": rate, "workers": workers, "wait_ms": wait_ms, "is_grpc": is_grpc}
                found = measure(run, seconds=given.seconds, **arguments)
                print(
                    f"| {'gRPC' if is_grpc else 'shared memory'} | {rate:,.0f} | {workers} | {wait_ms:g} "
                    "| {evaluations_per_second:,.0f} | **{share:.1%}** | {busy:.1%} | {batch:.0f} "
                    "| {worker_us:.1f} | {evaluator_us:.1f} |".format(**found),
                    flush=True,
                )


if __name__ == "__main__":
    main()
