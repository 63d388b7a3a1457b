"""Everything that a GPU has to show, by one command: a JSON file and a page, to be sent.

python -m benchmarks.gpu_check connect-four --write build/gpu-check

Half an hour on a machine that does nothing else; without a GPU it measures the CPU. Both files are written anew after
each part, and a part that fails leaves its error there. `--quick` takes seconds, and trains nothing.
"""

import argparse
import datetime
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evaluator import measure, serve_network
from benchmarks.speed import processor
from benchmarks.strength import learn
from plyzero.commands.common import in_another_process
from plyzero.commands.machine import random_weights
from plyzero.network.onnx_network import Network, reachable_observations, run_on_cpu
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run
from plyzero.run.models import publish_model
from plyzero.run.records import Games
from plyzero.search.evaluators import EvaluationBatch, Uniform
from plyzero.selfplay.games_in_play import GamesInPlay

BATCHES = 1, 64, 128, 256, 512, 1024, 2048, 4096
WORKERS = 1, 2, 4, 8, 12, 16
MINUTES = 2.0, 5.0, 10.0
EXAM = "benchmarks/strength/connect-four-dev.txt"
SMALL = ("network.blocks=1", "network.channels=8", "selfplay.parallel_games=16", "trainer.batch_size=32")


def machine() -> dict[str, Any]:
    """Return the date and the hardware."""
    found: dict[str, Any] = {"date": datetime.date.today().isoformat(), "processor": processor()}
    if shutil.which("nvidia-smi"):
        asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        found["gpu"] = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    found["doctor"] = ask("doctor", "--json")["findings"]
    return found


def ask(*arguments: str) -> dict[str, Any]:
    """Return the JSON object that a command of plyzero prints."""
    command = [sys.executable, "-m", "plyzero", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def network_alone(run: Run, content: bytes, seconds: float, batches: tuple[int, ...]) -> dict[str, Any]:
    """Return the load times of two models, the error of this device's numbers, and the rate of each size of batch."""
    loads, networks = [], []
    for _ in range(2):  # the first load also starts the device
        began = time.perf_counter()
        networks.append(Network(content, run.game, label="random weights", largest=max(batches)))
        loads.append(round(time.perf_counter() - began, 3))
    network, seen = networks[-1], reachable_observations(run.game)
    ours, exact = network(EvaluationBatch(seen, list)), run_on_cpu(content, seen)
    rates = {}
    for size in batches:
        batch = EvaluationBatch(np.resize(seen, (size, *seen.shape[1:])), list)
        network(batch)
        began, calls = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds:
            network(batch)
            calls += 1
        rates[size] = round(calls * size / passed)
    return {
        "precision": network.precision,
        "load_seconds": loads,
        "largest_difference_of_probabilities": float(np.abs(ours.wdl[:, :3] - exact.wdl[:, :3]).max()),
        "best_per_second": max(rates.values()),
        "rates": [{"batch": size, "per_second": rate} for size, rate in rates.items()],
    }


def through_evaluator(run: Run, seconds: float, workers: tuple[int, ...], best: float) -> list[dict[str, Any]]:
    """Return the rate of each number of workers through one evaluator, and its share of the `best` rate."""
    rows = []
    for number in workers:
        found = measure(run, rate=best, workers=number, seconds=seconds, server=serve_network)
        rows.append({"workers": number} | {key: round(value, 3) for key, value in found.items() if key != "busy"})
    return rows


def training(run: Run, seconds: float) -> dict[str, Any]:
    """Return the steps/s of the trainer on positions of games without a network."""
    import torch  # not above, because every process of `measure` imports this module

    from plyzero.trainer.learner import Learner
    from plyzero.trainer.network import choose_device
    from plyzero.trainer.parts import make_parts
    from plyzero.trainer.targets import make_samples
    from plyzero.trainer.window import Sampler, Window

    device, settings = choose_device("auto"), run.settings
    playing, games = GamesInPlay(run.game.start, settings, seeds=itertools.count()), list[Games]()
    while sum(each.num_full for each in games) < 200:
        games += playing.run(Uniform(run.game.start.num_actions), fence=0, step=0)
    parts, window = make_parts(run.game, settings), Window(run.game.start)
    start = run.game.start if settings.network.points else None
    make = partial(make_samples, search=settings.search, trainer=settings.trainer, make_targets=parts.make_targets)
    window.add("games", make(Games.concatenate(games), start=start), size=sys.maxsize)
    learner = Learner(parts.network, parts.loss, settings.trainer, device)
    sample = partial(window.sample, settings.trainer.batch_size, np.random.default_rng(0))
    sampler = Sampler(sample, ahead=device.type == "cuda")
    done, began = 0, 0.0
    while not began or time.perf_counter() - began < seconds:
        for _ in range(8):
            losses = learner.learn(sampler.take())
        float(losses.sum())  # waits for the device
        done, began = (done + 8, began) if began else (0, time.perf_counter())  # the first ones prepare it
    steps = done / (time.perf_counter() - began)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    return {"device": name, "batch_size": settings.trainer.batch_size, "steps_per_second": round(steps, 2)}


def page(report: dict[str, Any]) -> str:
    """Return the report as a page: a section for each part, a table for each list of objects."""
    lines = [f"# GPU check of {report['game']}, preset {report['preset']}"]
    for part, found in report["parts"].items():
        lines += ["", f"## {part}", ""]
        fields = found if isinstance(found, dict) else {"": found}
        lines += [f"* {key}: {value}" for key, value in fields.items() if not _is_table(value)]
        for rows in filter(_is_table, fields.values()):
            lines += ["", f"| {' | '.join(rows[0])} |", f"|{'|'.join('---' for _ in rows[0])}|"]
            lines += [f"| {' | '.join(map(str, row.values()))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def main() -> None:
    """Measure one part after another, and write both files after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="?", default="connect-four")
    parser.add_argument("--write", type=Path, required=True, metavar="DIR", help="of the JSON file and the page")
    parser.add_argument("--preset", default="gpu")
    parser.add_argument("--exam", default=EXAM, metavar="FILE", help="for the strength; see strength/score.py")
    parser.add_argument("--quick", action="store_true", help="a network of 1 x 8, fractions of a second, no training")
    given = parser.parse_args()
    options = ["selfplay.cache_mb=0"]
    if given.quick:
        options += SMALL
    seconds = 0.2 if given.quick else 5.0
    batches = BATCHES[:2] if given.quick else BATCHES
    workers = tuple(each for each in WORKERS if each == 1 or (each <= (os.cpu_count() or 1) and not given.quick))
    report: dict[str, Any] = {"version": 1, "game": given.game, "preset": given.preset, "parts": {}}
    given.write.mkdir(parents=True, exist_ok=True)

    def add(name: str, make: Callable[[], Any]) -> None:
        print(f"{name} ...", flush=True)
        try:
            report["parts"][name] = make()
        except (Exception, SystemExit):  # the other parts are still worth their time
            report["parts"][name] = {"error": traceback.format_exc()}
        (given.write / "gpu-check.json").write_text(json.dumps(report, indent=2) + "\n")
        (given.write / "gpu-check.md").write_text(page(report))

    with tempfile.TemporaryDirectory() as made:
        run = create_run(Path(made) / "run", load_game(given.game), preset=given.preset, options=options)
        content = in_another_process(random_weights, run.root)
        publish_model(run.models, content, fence=1, step=1)
        add("machine", machine)
        add("network alone", partial(network_alone, run, content, seconds, batches))
        best = report["parts"]["network alone"].get("best_per_second", np.inf)
        add("workers through one evaluator", partial(through_evaluator, run, seconds, workers, best))
        about = ["--preset", given.preset, "--seconds", str(5 * seconds)]
        for option in options:
            about += ["-o", option]
        add("one worker alone", partial(ask, "bench", given.game, "--json", *about))
        add("training", partial(training, run, seconds))
        if not given.quick:
            asked = argparse.Namespace(
                game=given.game,
                minutes=MINUTES,
                exam=[given.exam],
                simulations=[0, 64],
                write=None,
                preset=given.preset,
                o=[],
            )
            add("strength", lambda: [{"result": learn.as_text(each)} for each in learn.learn(asked, 1, given.write)])
    print((given.write / "gpu-check.md").read_text())


if __name__ == "__main__":
    main()
