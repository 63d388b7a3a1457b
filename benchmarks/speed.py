"""How fast self-play is on this machine, beside its networks alone and beside OpenSpiel: the tables of speed.md.

python benchmarks/speed.py --write benchmarks/results/speed.md

Half an hour on a machine that does nothing else. It trains a network for Connect Four first, unless one is given.
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
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

from plyzero.run.models import list_models

BIN = Path(sys.executable).parent
BREAKTHROUGH, DOTS = "examples.breakthrough:Breakthrough", "examples.dots_and_boxes:DotsAndBoxes"
SMALL = ("--blocks", "2", "--channels", "32")
CASES: dict[str, tuple[str, ...]] = {
    "Connect Four, 4 x 64": ("connect-four", "--no-cache"),
    "Connect Four, 2 x 32": ("connect-four", "--no-cache", *SMALL),
    "Othello, 4 x 64": ("othello", "--no-cache"),
    "Othello, 2 x 32": ("othello", "--no-cache", *SMALL),
    "Breakthrough in plain Python, 4 x 64": (BREAKTHROUGH, "--no-cache"),
    "Dots and Boxes in plain Python, 4 x 64": (DOTS, "--no-cache"),
    "Connect Four, 4 x 64, 800 simulations": ("connect-four", "-o", "selfplay.simulations=800"),
}
HALF_TRAINED = {
    "Connect Four, half trained 4 x 64": (),
    "... without the cache": ("--no-cache",),
    "... without the cache, all searches full": ("--no-cache", "-o", "selfplay.full_search_probability=1"),
}
NET = "half-trained.onnx"
SIZE = ("-o", "network.blocks=4", "-o", "network.channels=64")
PAIR_TURNS = 12
OPENSPIEL_SECONDS = 40
SIMULATIONS = 64
"""Of a full search by default, as of OpenSpiel's here."""


def main() -> None:
    """Measure one thing after another, and write down what is known so far after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, metavar="FILE", help="the page of tables")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each line of the first table")
    parser.add_argument("--net", type=Path, help="a Connect Four network of 4 x 64; without it, one is trained")
    parser.add_argument("--train-minutes", type=float, default=6.0)
    parser.add_argument("--openspiel", type=Path, metavar="PYTHON", help="a Python that has open_spiel")
    given = parser.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        net = given.net or trained(Path(directory) / "run", given.train_minutes)
        page = Page(given.write, net=net, train_minutes=given.train_minutes)
        half_trained = {name: ("connect-four", "--net", str(net), *more) for name, more in HALF_TRAINED.items()}
        cases = {**CASES, **half_trained}
        for name, arguments in cases.items():
            command = ["plyzero", "bench", *arguments, "--seconds", f"{given.seconds:g}"]
            page.add_line(name, command, json.loads(output_of(BIN / command[0], *command[1:], "--json")))
        for name, case in {"Connect Four, 4 x 64": "4 64", "Connect Four, 2 x 32": "2 32"}.items():
            page.add_pair(name, two_workers("connect-four", *map(int, case.split())))
        if given.openspiel:
            command = ["benchmarks/openspiel.py", "--net", str(net), "--seconds", str(OPENSPIEL_SECONDS)]
            page.add_openspiel(command, json.loads(output_of(given.openspiel, *command, "--json")))


class Page:
    """The tables, rewritten whenever a line is added."""

    def __init__(self, path: Path, *, net: Path, train_minutes: float) -> None:
        self._path, self._net = path, str(net)
        self._lines: list[str] = []
        training = " ".join(["plyzero train connect-four --run DIR", f"--minutes {train_minutes:g}", *SIZE])
        self._commands = [f"{NET} is the newest model after `{training}`"]
        self._pairs: list[str] = []
        self._openspiel: list[str] = []
        self._versions = ""

    def add_line(self, name: str, command: list[str], report: dict[str, Any]) -> None:
        """Add a line of `plyzero bench`."""
        low, _, high = report["share_of_ceiling_quartiles"]
        shares = ", ".join(f"{part} {share:.1%}" for part, share in report["shares"].items())
        self._lines.append(
            f"| {name} | {report['ceiling_per_second']:,.0f} | {report['evaluations_per_second']:,.0f} "
            f"| **{report['share_of_ceiling']:.1%}** ({low:.1%} to {high:.1%}) | {report['cache_hit_rate']:.1%} "
            f"| {report['simulations_per_second']:,.0f} | {report['simulations_of_ceiling']:.2f} "
            f"| {report['positions_per_second']:,.0f} | {report['memory_mb']} | {shares} |"
        )
        self._commands.append(f"{name}: `{' '.join(command)}`")
        self._write()

    def add_pair(self, name: str, ratios: list[float]) -> None:
        """Add what two workers make of two networks, turn by turn."""
        low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        self._pairs.append(f"| {name} | **{middle:.1%}** ({low:.1%} to {high:.1%}) |")
        self._write()

    def add_openspiel(self, command: list[str], report: dict[str, Any]) -> None:
        """Add OpenSpiel's figures."""
        self._openspiel = [
            f"| {name} | {row['evaluations_per_second']:,.0f} | {row['share_of_ceiling']:.1%} "
            f"| {row['simulations_per_second']:,.0f} | {row['positions_per_second']:,.1f} |"
            for name, row in report["rows"].items()
        ]
        self._versions = ", ".join(f"{package} {version}" for package, version in report["versions"].items())
        self._commands.append(f"OpenSpiel: `python {' '.join(command)}`, in an environment with open_spiel")
        self._write()

    def _write(self) -> None:
        versions = ", ".join(
            f"{package} {importlib.metadata.version(package)}" for package in ("onnxruntime", "numba", "numpy")
        )
        text = [
            "# Speed of self-play",
            "",
            f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, {platform.system()}, "
            f"Python {platform.python_version()}, {versions}. Made by `make bench`, which rewrites this page.",
            "",
            "Evaluations per second of the network alone and of a worker with that network, in turns of half a second",
            "in one process, one thread; in brackets the quartiles over the turns. 64 games at once, batches of 64,",
            "64 simulations in full searches and 16 in fast ones, unless the line says otherwise.",
            "",
            "| game, network | network alone /s | worker /s | share of it | found in the cache | new simulations /s "
            "| per evaluation of the network alone | positions /s | MB | where the time goes |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *self._lines,
        ]
        if self._pairs:
            text += [
                "",
                "Two workers at once, as a share of what two copies of their network make at once, in turns of a"
                " second:",
                "",
                "| game, network | share |",
                "|---|---|",
                *self._pairs,
            ]
        if self._openspiel:
            text += [
                "",
                f"OpenSpiel in Python ({self._versions}) with the half-trained network of Connect Four, {SIMULATIONS}"
                " simulations a move, all of them",
                "full ones (the worker above makes most of its moves by 16):",
                "",
                "| what | evaluations /s | of the network alone, batch 64 | simulations /s | positions /s |",
                "|---|---|---|---|---|",
                *self._openspiel,
            ]
        text += ["", "Commands:", "", *(f"* {command.replace(self._net, NET)}" for command in self._commands)]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("\n".join(text) + "\n", encoding="utf-8")


def trained(run: Path, minutes: float) -> Path:
    """Return a network for Connect Four that has learned for `minutes`, worse than one that has finished."""
    output_of(BIN / "plyzero", "train", "connect-four", "--run", str(run), "--minutes", f"{minutes:g}", *SIZE)
    models = run / "models"
    return models / str(list_models(models)[0])


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
    """Take turns with the other process, and tell the evaluations per second of every turn."""
    from plyzero.network.onnx_network import Network
    from plyzero.rules.catalog import load_game
    from plyzero.run.directory import create_run
    from selfplay.benchmark import WARM_SECONDS, MeasuredWorker, evaluate_alone, timed
    from selfplay.replay_writer import ReplayWriter
    from trainer.export import untrained

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
    """Run a program, whose errors the person sees, and return what it prints."""
    print(program.name, *arguments, file=sys.stderr, flush=True)
    return subprocess.run([str(program), *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def processor() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
