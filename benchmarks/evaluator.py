"""Do workers keep the GPU of their evaluator busy? A pretended one, which sleeps, shows it on any machine: a table.

python -m benchmarks.evaluator connect-four --rates 5000 20000 100000 --workers 2

Workers play real games in processes of their own. The pretended GPU takes LATENCY + n / rate for a batch of n, and its
answers follow from the observations alone. Nothing is evaluated but by it, so the share of its rate that is reached is
what the workers, the transport and the batches leave of it. A few seconds for each row.
"""

import argparse
import itertools
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plyzero.inference.batcher import Batcher
from plyzero.inference.evaluation_server import serving
from plyzero.inference.local_evaluator import LocalEvaluator
from plyzero.inference.remote_network import RemoteNetwork
from plyzero.network.model_loader import ModelWatch
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from selfplay.evaluated_games import EvaluatedGames
from selfplay.games_in_play import GamesInPlay

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["plyzero.inference.evaluation_server", "selfplay.evaluated_games"])
LATENCY = 0.0004
"""Seconds that a batch takes beside its positions: launches and transfers."""

WARM_SECONDS = 1.5
LABEL = "000001-000000010-00000000.onnx"
ENTRIES = 8191


class PretendedGpu:
    """A network and the watch that finds it: evaluations that follow from a hash of each observation, at a set rate.

    counts: `[4]` batches, positions, seconds in them, seconds of the CPU time of this process so far; shared, if given.
    """

    fence, step, label, precision = 1, 10, LABEL, "fp32"

    def __init__(self, run: Run, *, rate: float = np.inf, latency: float = 0.0, counts: Any = None) -> None:
        start, rng = run.game.start, np.random.default_rng(0)
        self._rate, self._latency, self._is_new = rate, latency, True
        self._counts = [0.0] * 4 if counts is None else counts
        self._logits = rng.normal(size=(ENTRIES, start.num_actions)).astype(np.float32)
        self._wdl = rng.dirichlet([1, 1, 1], ENTRIES).astype(np.float32)
        self._weights = rng.integers(1, 1000, np.prod(start.observation_shape)).astype(np.float32)  # sums are exact

    def answer(self, observations: NDArray[np.float32]) -> Evaluation:
        """Return the evaluation of `[n, C, H, W]`, at once."""
        rows = (observations.reshape(len(observations), -1) @ self._weights).astype(np.int64) % ENTRIES
        return Evaluation(self._logits[rows], self._wdl[rows])

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        began, n = time.perf_counter(), len(batch.observations)
        found = self.answer(batch.observations)
        time.sleep(max(0.0, began + self._latency + n / self._rate - time.perf_counter()))
        more = (1, n, time.perf_counter() - began)
        self._counts[:] = [*(old + new for old, new in zip(self._counts, more, strict=False)), time.process_time()]
        return found

    def newer(self) -> "PretendedGpu | None":
        is_new, self._is_new = self._is_new, False
        return self if is_new else None

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def serve(
    root: Path, port: Any, rate: float = np.inf, latency: float = 0.0, wait_ms: float = 0.0, counts: Any = None
) -> None:
    """Be an evaluator with a pretended GPU until this process ends; its port goes into `port`, if that is 0."""
    run = open_run(root)
    watch: Any = PretendedGpu(run, rate=rate, latency=latency, counts=counts)
    with Batcher(watch, max_batch=1024, wait_seconds=wait_ms / 1000) as batcher:
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


def measure(run: Run, *, rate: float, workers: int, seconds: float, wait_ms: float, is_grpc: bool) -> str:
    """Return a row of the table."""
    port, gpu = PROCESSES.Value("i", 0), PROCESSES.Array("d", 4)
    made = [PROCESSES.Array("d", 2) for _ in range(workers)]
    server = PROCESSES.Process(target=serve, args=(run.root, port, rate, LATENCY, wait_ms, gpu), daemon=True)
    processes = [server]
    try:
        server.start()
        while not port.value:
            time.sleep(0.01)
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
    batch = positions / max(1, batches)
    return (
        f"| {'gRPC' if is_grpc else 'shared memory'} | {rate:,.0f} | {workers} | {wait_ms:g} "
        f"| {positions / passed:,.0f} | **{positions / passed / rate:.1%}** | {busy / passed:.1%} | {batch:.0f} "
        f"| {1e6 * cpu / max(1, played):.1f} | {1e6 * server_cpu / max(1, positions):.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="?", default="connect-four")
    parser.add_argument("--rates", type=float, nargs="+", default=[5_000, 20_000, 50_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--games", type=int, default=256, help="of each worker at once, in two halves")
    parser.add_argument("--seconds", type=float, default=2.0, help="that are measured for each row")
    parser.add_argument("--wait-ms", type=float, nargs="+", default=[0.0], help="of the evaluator")
    parser.add_argument("--grpc", action="store_true", help="gRPC in turns with shared memory")
    given = parser.parse_args()
    print("| way | rate /s | workers | --wait-ms | reached /s | share | GPU busy | batch | worker us | evaluator us |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        options = [f"selfplay.parallel_games={given.games}", "selfplay.cache_mb=0"]
        run = create_run(Path(directory) / "run", load_game(given.game), options=options)
        (run.models / LABEL).write_bytes(b"")  # by gRPC a worker uses an answer only of a model that the run has
        GamesInPlay(run.game.start, run.settings, seeds=itertools.count())  # compiles the rules, once for all processes
        for rate, workers, wait_ms in itertools.product(given.rates, given.workers, given.wait_ms):
            for is_grpc in (False, True) if given.grpc else (False,):
                arguments = {"rate": rate, "workers": workers, "wait_ms": wait_ms, "is_grpc": is_grpc}
                print(measure(run, seconds=given.seconds, **arguments), flush=True)


if __name__ == "__main__":
    main()
