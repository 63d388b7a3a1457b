"""What 8-bit networks make of self-play: one worker with each precision, and each network alone, in turns.

python -m benchmarks.precision --write benchmarks/results/precision.md

Networks have random weights, which does not change their speed.
"""

import argparse
import datetime
import os
import platform
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed import processor
from plyzero.commands.machine import random_weights
from plyzero.network.onnx_network import Network, reachable_observations
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run
from selfplay.benchmark import MOVES, SIMULATIONS, WARM_SECONDS, MeasuredWorker, evaluate_alone, timed
from selfplay.replay_writer import ReplayWriter
from trainer.quantise import quantise

CALIBRATION = 256
"""Positions by which scales are chosen, as many as the trainer takes."""

PUBLISH_SECONDS = 8
"""Default of trainer.publish_seconds."""


def main() -> None:
    """Measure, and write a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="connect-four")
    parser.add_argument("--rounds", type=int, default=40, help="turns of each case, of half a second")
    parser.add_argument("--network", nargs=2, type=int, action="append", metavar=("BLOCKS", "CHANNELS"))
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page; without it, it is printed")
    given = parser.parse_args()
    networks = given.network or [(3, 32), (4, 64)]
    rows, costs = [], []
    for blocks, channels in networks:
        with tempfile.TemporaryDirectory() as directory:
            size = [f"network.blocks={blocks}", f"network.channels={channels}"]
            run = create_run(Path(directory) / "run", load_game(given.game), options=size)
            forms, seconds = make_forms(run)
            costs.append((f"{blocks} x {channels}", seconds))
            rows += as_rows(f"{blocks} x {channels}", measure(run, forms, given.rounds))
    text = page(f"python -m benchmarks.precision --game {given.game} --rounds {given.rounds} --write FILE", rows, costs)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    else:
        print(text)


def make_forms(run: Run) -> tuple[dict[str, bytes], float]:
    """Return precision -> ONNX file, and the processor time of quantising, in seconds, the least of three."""
    exact = random_weights(run.root)
    seen = reachable_observations(run.game)
    seen = np.resize(seen, (CALIBRATION, *seen.shape[1:]))
    seconds = []
    for _ in range(3):
        began = time.process_time()
        int8 = quantise(exact, seen)
        seconds.append(time.process_time() - began)
    return {"fp32": exact, "int8": int8}, min(seconds)


def measure(run: Run, forms: dict[str, bytes], rounds: int) -> dict[str, NDArray[np.float64]]:
    """Return precision -> `[rounds, 4]`: simulations/s, moves/s, evaluations/s of the worker, and of its network."""
    found: dict[str, list[list[float]]] = {precision: [] for precision in forms}
    with ExitStack() as stack:
        workers, networks = {}, {}
        for number, (precision, content) in enumerate(forms.items()):
            networks[precision] = Network(content, run.game, label=precision)
            writer = stack.enter_context(ReplayWriter(run, worker=precision, incarnation=f"{number:08x}"))
            workers[precision] = MeasuredWorker(run, networks[precision], writer)
            workers[precision].play(WARM_SECONDS)
        for _ in range(rounds):
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
    """Return the median of some ratios, and their quartiles in brackets."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"**{middle:.2f}** ({low:.2f} to {high:.2f})"


def page(command: str, rows: list[str], costs: list[tuple[str, float]]) -> str:
    """Return the whole page."""
    quantising = "; ".join(
        f"{size}: {seconds:.2f} s, {seconds / PUBLISH_SECONDS:.1%} of a core" for size, seconds in costs
    )
    return "\n".join(
        [
            "# Self-play with 8-bit networks",
            "",
            f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, no GPU, "
            f"Python {platform.python_version()}. Made by",
            "",
            "```sh",
            command,
            "```",
            "",
            "One worker on one core, in turns of half a second with the other precision and with each network alone.",
            "",
            "| network | simulations/s | ratio to fp32 | moves/s | network alone, evaluations/s | ratio to fp32 |"
            " worker's share of it |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"Processor time for quantising with {CALIBRATION} positions, once in {PUBLISH_SECONDS} s: {quantising}.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
