"""Self-play with 8-bit networks: one worker with each precision, and each network alone, in turns.

python -m benchmarks.precision --write benchmarks/results/precision.md

Networks have random weights, which does not change their speed.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed import this_machine
from plyzero.commands.common import in_another_process
from plyzero.commands.machine import random_weights
from plyzero.network.onnx_network import Network, reachable_observations
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run
from plyzero.selfplay.benchmark import MOVES, SIMULATIONS, WARM_SECONDS, MeasuredWorker, evaluate_alone, timed
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.trainer.export import quantise

CALIBRATION = 256
"""Positions by which scales are chosen, as many as the trainer takes."""

PUBLISH_SECONDS = 8
"""Default of trainer.publish_seconds."""


ROUNDS = 40
"""Turns of each case, of half a second."""

HEAD = """\
# Self-play with 8-bit networks

{machine}, no GPU. Made by

```sh
python -m benchmarks.precision --write FILE
```

One worker on one core, in turns of half a second with the other precision and with each network alone.

| network | simulations/s | ratio to fp32 | moves/s | network alone, evaluations/s | ratio to fp32 \
| worker's share of it |
|---|---|---|---|---|---|---|
"""
FOOT = f"\n\nProcessor time for quantising with {CALIBRATION} positions, once in {PUBLISH_SECONDS} s: {{costs}}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", required=True, help="the page")
    given = parser.parse_args()
    rows, costs = [], []
    for blocks, channels in ((3, 32), (4, 64)):
        with tempfile.TemporaryDirectory() as directory:
            size = [f"network.blocks={blocks}", f"network.channels={channels}"]
            run = create_run(Path(directory) / "run", load_game("connect-four"), options=size)
            forms, seconds = make_forms(run)
            costs.append(f"{blocks} x {channels}: {seconds:.2f} s, {seconds / PUBLISH_SECONDS:.1%} of a core")
            rows += as_rows(f"{blocks} x {channels}", measure(run, forms))
    text = HEAD.format(machine=this_machine()) + "\n".join(rows) + FOOT.format(costs="; ".join(costs))
    given.write.write_text(text, encoding="utf-8")


def make_forms(run: Run) -> tuple[dict[str, bytes], float]:
    """Return precision -> ONNX file, and the processor time of quantising, in seconds, the least of three."""
    exact = in_another_process(random_weights, run.root)
    seen = reachable_observations(run.game)
    seen = np.resize(seen, (CALIBRATION, *seen.shape[1:]))
    seconds = []
    for _ in range(3):
        began = time.process_time()
        int8 = quantise(exact, seen)
        seconds.append(time.process_time() - began)
    return {"fp32": exact, "int8": int8}, min(seconds)


def measure(run: Run, forms: dict[str, bytes]) -> dict[str, NDArray[np.float64]]:
    """Return precision -> `[ROUNDS, 4]`: simulations/s, moves/s, evaluations/s of the worker, and of its network."""
    found: dict[str, list[list[float]]] = {precision: [] for precision in forms}
    with ExitStack() as stack:
        workers, networks = {}, {}
        for number, (precision, content) in enumerate(forms.items()):
            networks[precision] = Network(content, run.game, label=precision)
            writer = stack.enter_context(ReplayWriter(run, worker=precision, incarnation=f"{number:08x}"))
            workers[precision] = MeasuredWorker(run, networks[precision], writer)
            workers[precision].play(WARM_SECONDS)
        for _ in range(ROUNDS):
            for precision, worker in workers.items():
                before = worker.counts()
                turn = timed(worker.play)
                made = worker.counts() - before
                network, batch = networks[precision], worker.batch
                alone = timed(lambda limit, network=network, batch=batch: evaluate_alone(network, batch, limit))
                rates = [made[SIMULATIONS] / turn.seconds, made[MOVES] / turn.seconds]
                found[precision].append([*rates, turn.per_second, alone.per_second])
    return {precision: np.array(rows) for precision, rows in found.items()}


def as_rows(size: str, found: dict[str, NDArray[np.float64]]) -> list[str]:
    """Return the lines of a table: medians over the turns, with quartiles of the ratios to fp32 in the same round."""
    rows = []
    for precision, rates in found.items():
        simulations, moves, _, alone = np.median(rates, axis=0)
        cells = [f"{simulations:,.0f}", quartiles(rates[:, 0] / found["fp32"][:, 0]), f"{moves:,.0f}"]
        cells += [f"{alone:,.0f}", quartiles(rates[:, 3] / found["fp32"][:, 3]), quartiles(rates[:, 2] / rates[:, 3])]
        rows.append(f"| {size}, {precision} | {' | '.join(cells)} |")
    return rows


def quartiles(values: NDArray[np.float64]) -> str:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"**{middle:.2f}** ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
