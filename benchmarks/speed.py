"""Speed of self-play on this machine, beside its networks alone and beside OpenSpiel: the tables of speed.md.

python benchmarks/speed.py --write benchmarks/results/speed.md

Half an hour on a machine that does nothing else. It trains a network for Connect Four first.
"""

import argparse
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

from plyzero.run.models import list_models

BIN = Path(sys.executable).parent
BREAKTHROUGH, DOTS = "examples.breakthrough:Breakthrough", "examples.dots_and_boxes:DotsAndBoxes"
IN_32_BITS = ("-o", "selfplay.precision=fp32")
SIZE = ("-o", "network.blocks=4", "-o", "network.channels=64")
LARGE = (*SIZE, *IN_32_BITS)
SMALL = ("-o", "network.blocks=2", "-o", "network.channels=32", *IN_32_BITS)
NET = "half-trained.onnx"
HALF_TRAINED = ("connect-four", "--net", NET, *IN_32_BITS)
CASES: dict[str, tuple[str, ...]] = {
    "Connect Four, 4 x 64": ("connect-four", "--no-cache", *LARGE),
    "Connect Four, 2 x 32": ("connect-four", "--no-cache", *SMALL),
    "Othello, 4 x 64": ("othello", "--no-cache", *LARGE),
    "Othello, 2 x 32": ("othello", "--no-cache", *SMALL),
    "Breakthrough in plain Python, 4 x 64": (BREAKTHROUGH, "--no-cache", *LARGE),
    "Dots and Boxes in plain Python, 4 x 64": (DOTS, "--no-cache", *LARGE),
    "Connect Four, 4 x 64, 800 simulations": ("connect-four", "-o", "selfplay.simulations=800", *LARGE),
    "Connect Four, half trained 4 x 64": HALF_TRAINED,
    "... without the cache": (*HALF_TRAINED, "--no-cache"),
    "... without the cache, all searches full": (
        *HALF_TRAINED,
        "--no-cache",
        "-o",
        "selfplay.full_search_probability=1",
    ),
}
SECONDS = "40"
PAIR_TURNS = 12


def main() -> None:
    """Measure one case after another, and write the page anew after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, metavar="FILE", help="the page of tables")
    parser.add_argument("--openspiel", type=Path, metavar="PYTHON", help="a Python that has open_spiel")
    given = parser.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        training = ["train", "connect-four", "--run", f"{directory}/run", "--minutes", "6", *SIZE]
        output_of(BIN / "plyzero", *training)
        models = Path(directory) / "run" / "models"
        net = str(models / str(list_models(models)[0]))
        page = Page(given.write)
        page.commands.append(
            f"{NET} is the newest model after `plyzero {' '.join(training)}`".replace(directory, "DIR")
        )
        for name, arguments in CASES.items():
            arguments = ("bench", *arguments, "--seconds", SECONDS)
            report = json.loads(
                output_of(BIN / "plyzero", *(net if each == NET else each for each in arguments), "--json")
            )
            page.commands.append(f"{name}: `plyzero {' '.join(arguments)}`")
            page.workers.append(worker_row(name, report))
            page.write()
        for blocks, channels in ((4, 64), (2, 32)):
            low, middle, high = np.quantile(two_workers("connect-four", blocks, channels), (0.25, 0.5, 0.75))
            page.pairs.append(f"| Connect Four, {blocks} x {channels} | **{middle:.1%}** ({low:.1%} to {high:.1%}) |")
            page.write()
        if given.openspiel:
            arguments = ("benchmarks/openspiel.py", "--net", NET, "--seconds", SECONDS)
            report = json.loads(output_of(given.openspiel, *(net if each == NET else each for each in arguments)))
            page.commands.append(f"OpenSpiel: `python {' '.join(arguments)}`, in an environment with open_spiel")
            page.add_openspiel(report)
            page.write()


@dataclass
class Page:
    """The page: rows of its tables, and the commands that made them."""

    path: Path
    workers: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    openspiel: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def add_openspiel(self, report: dict[str, Any]) -> None:
        versions = ", ".join(f"{package} {version}" for package, version in report["versions"].items())
        self.openspiel = [
            "",
            f"OpenSpiel in Python ({versions}) with the half-trained network of Connect Four, {report['simulations']}"
            " simulations a move, all of them",
            "full ones (the worker above makes most of its moves by 16):",
            "",
            "| what | evaluations /s | of the network alone, batch 64 | simulations /s | positions /s |",
            "|---|---|---|---|---|",
        ]
        self.openspiel += [
            f"| {name} | {row['evaluations_per_second']:,.0f} | {row['share_of_ceiling']:.1%} "
            f"| {row['simulations_per_second']:,.0f} | {row['positions_per_second']:,.1f} |"
            for name, row in report["rows"].items()
        ]

    def write(self) -> None:
        versions = (f"{package} {importlib.metadata.version(package)}" for package in ("onnxruntime", "numba", "numpy"))
        pairs = [
            "",
            "Two workers at once, as a share of what two copies of their network make at once, in turns of a second:",
            "",
            "| game, network | share |",
            "|---|---|",
            *self.pairs,
        ]
        text = [
            "# Speed of self-play",
            "",
            f"{this_machine()}, {', '.join(versions)}. Made by `make bench`, which rewrites this page.",
            "",
            "Evaluations per second of the network alone and of a worker with that network, in turns of half a second",
            "in one process, one thread; in brackets the quartiles over the turns. 64 games at once, batches of 64,",
            "64 simulations in full searches and 16 in fast ones, unless the line says otherwise.",
            "",
            "| game, network | network alone /s | worker /s | share of it | found in the cache | new simulations /s "
            "| per evaluation of the network alone | positions /s | MB | where the time goes |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *self.workers,
            *(pairs if self.pairs else ()),
            *self.openspiel,
            "",
            "Commands:",
            "",
            *(f"* {command}" for command in self.commands),
        ]
        self.path.write_text("\n".join(text) + "\n", encoding="utf-8")


def worker_row(name: str, report: dict[str, Any]) -> str:
    low, _, high = report["share_of_ceiling_quartiles"]
    shares = ", ".join(f"{part} {share:.1%}" for part, share in report["shares"].items())
    return (
        f"| {name} | {report['ceiling_per_second']:,.0f} | {report['evaluations_per_second']:,.0f} "
        f"| **{report['share_of_ceiling']:.1%}** ({low:.1%} to {high:.1%}) | {report['cache_hit_rate']:.1%} "
        f"| {report['simulations_per_second']:,.0f} | {report['simulations_of_ceiling']:.2f} "
        f"| {report['positions_per_second']:,.0f} | {report['memory_mb']} | {shares} |"
    )


def two_workers(game: str, blocks: int, channels: int) -> list[float]:
    """Return, turn by turn, two workers' evaluations as a share of their two networks', all at the same time."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.SimpleQueue()
    both = [context.Process(target=one_of_two, args=(game, blocks, channels, barrier, results)) for _ in range(2)]
    for process in both:
        process.start()
    rates = np.array([results.get(), results.get()])  # process, turn, worker or network
    for process in both:
        process.join()
    played, alone = rates.sum(axis=0).T
    ratios: list[float] = (played / alone).tolist()
    return ratios


def one_of_two(game: str, blocks: int, channels: int, barrier: Barrier, results: Any) -> None:
    """Take turns with the other process, and put the evaluations per second of every turn into `results`."""
    from plyzero.network.onnx_network import Network
    from plyzero.rules.catalog import load_game
    from plyzero.run.directory import create_run
    from plyzero.selfplay.benchmark import WARM_SECONDS, MeasuredWorker, evaluate_alone, timed
    from plyzero.selfplay.replay_writer import ReplayWriter
    from plyzero.trainer.export import untrained

    def together(act: Callable[[float], int]) -> float:
        barrier.wait()
        return timed(act).per_second

    size = [f"network.blocks={blocks}", f"network.channels={channels}", "selfplay.cache_mb=0"]
    with tempfile.TemporaryDirectory() as directory:
        run = create_run(Path(directory) / "run", load_game(game), options=size)
        network = Network(untrained(run), run.game, label="random weights")
        with ReplayWriter(run, worker="bench", incarnation="00000000") as store:
            worker = MeasuredWorker(run, network, store)
            worker.play(WARM_SECONDS)
            batch = worker.batch
            results.put(
                [
                    (together(worker.play), together(lambda seconds: evaluate_alone(network, batch, seconds)))
                    for _ in range(PAIR_TURNS)
                ]
            )


def output_of(program: Path, *arguments: str) -> str:
    """Run a program and return its output; its errors go to standard error."""
    print(program.name, *arguments, file=sys.stderr, flush=True)
    return subprocess.run([str(program), *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def this_machine() -> str:
    """Return date, processor, cores, system and version of Python, for the head of a page."""
    about = (datetime.date.today(), processor(), f"{os.cpu_count()} cores", platform.system())
    return f"{', '.join(map(str, about))}, Python {platform.python_version()}"


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
