"""Train from nothing, and score what is learned at given minutes of the wall clock, seed after seed.

python -m benchmarks.strength.learn connect-four --minutes 5 15 --seeds 1 2 3 \\
    --exam benchmarks/strength/connect-four-dev.txt --write results.jsonl -o trainer.learning_rate=0.001
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed import processor
from benchmarks.strength.exams import find_exam
from benchmarks.strength.score import brief, network_scores
from plyzero.machine import usable_cores
from plyzero.network.model_loader import load_network
from plyzero.rules.catalog import load_game
from plyzero.run.events import figure, last_line, read_heartbeats
from plyzero.run.metrics import TRAINER
from plyzero.run.models import list_models

BESIDE = "step", "games", "positions", "generated_positions", "trained_positions"
"""Fields of the trainer's heartbeat beside every score."""


def main() -> None:
    """Train with each seed, and print a line for each model that is scored."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--models", type=Path, metavar="DIR", help="keep the models that were scored")
    add_arguments(parser)
    given = parser.parse_args()
    for seed in given.seeds:
        with tempfile.TemporaryDirectory() as made:
            learn(given, seed, given.models or Path(made))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("game")
    parser.add_argument("--minutes", type=float, nargs="+", required=True, help="from the start of the process")
    parser.add_argument("--exam", nargs="+", default=[], metavar="FILE", help="see score.py")
    parser.add_argument("--simulations", type=int, nargs="+", default=[0, 64], help="when scored; 0 = raw")
    parser.add_argument("--write", type=Path, metavar="FILE", help="add each result as a line of JSON")
    parser.add_argument("--preset", help="of plyzero train")
    parser.add_argument("--workers", type=int, help="of plyzero train")
    parser.add_argument("-o", action="append", default=[], metavar="SETTING=VALUE", help="of plyzero train")


def learn(
    given: argparse.Namespace,
    seed: int,
    models: Path,
    *,
    run: Path | None = None,
    smaller: Sequence[tuple[str, float]] = (),
) -> list[dict[str, Any]]:
    """Train with the arguments of `add_arguments`; put the models into `models`; return, print and write their scores.

    run:     a run whose newest model is scored instead of a training.
    smaller: games on smaller boards that are trained before, and for how many minutes each; every training begins with
             the network of the one before it.
    """
    options: list[str] = []
    for option in given.o:
        options += ["-o", option]
    if given.preset:
        options += ["--preset", given.preset]
    game = load_game(given.game)
    exams = {Path(name).name: find_exam(name, game) for name in given.exam}
    models.mkdir(parents=True, exist_ok=True)
    if run:
        results = [take(given.game, seed, options, max(given.minutes), run, models)]
    else:
        with tempfile.TemporaryDirectory() as made:
            origin: Path | None = None
            trainings = [(each, [minutes]) for each, minutes in smaller]
            trainings.append((given.game, sorted(given.minutes)))
            for name, marks in trainings:
                place = Path(made) / name
                results = list(train(name, seed, options, marks, place, models, workers=given.workers, origin=origin))
                origin = place
    for result in results:
        network = load_network(models / result["model"], game)
        result["scores"] = {
            name: [network_scores(network, exam, simulations) for simulations in given.simulations]
            for name, exam in exams.items()
        }
        print(as_text(result), flush=True)
        if given.write:
            with given.write.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    return results


def train(
    game: str,
    seed: int,
    options: Sequence[str],
    minutes: Sequence[float],
    run: Path,
    models: Path,
    *,
    workers: int | None = None,
    origin: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """Train for the last of `minutes`; at each of them copy the newest model, and yield how far training was.

    origin: a run; the training begins with its newest model.
    """
    plyzero = [sys.executable, "-m", "plyzero"]
    place = [game, "--run", str(run)]
    init = [*plyzero, "init", *place, "--seed", str(seed), *options]
    if origin:
        init += ["--from", str(origin)]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    command = [*plyzero, "train", *place]
    if workers:
        command += ["--workers", str(workers)]
    began = time.monotonic()
    training = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for mark in minutes:
            while time.monotonic() < began + 60 * mark:
                if training.poll() is not None:
                    sys.exit(f"{' '.join(command)} ended before its time")
                time.sleep(0.1)
            yield take(game, seed, options, mark, run, models)
    finally:
        training.send_signal(signal.SIGINT)
        training.wait()


def take(game: str, seed: int, options: Sequence[str], minutes: float, run: Path, models: Path) -> dict[str, Any]:
    """Copy the newest model of a run, and return how far training is."""
    newest = list_models(run / "models")[0]
    name = f"{game}-seed{seed}-{minutes:g}min.onnx"
    (models / name).write_bytes((run / "models" / str(newest)).read_bytes())
    beats = read_heartbeats(run / "workers")
    result = {"game": game, "seed": seed, "minutes": minutes, "options": list(options), "model": name}
    cores = f"{usable_cores()} of {os.cpu_count()} cores"
    result |= {"date": datetime.date.today().isoformat(), "hardware": f"{cores}, {processor()}"}
    result |= {key: beats[TRAINER].fields[key] for key in BESIDE}
    lines = {path.stem.removeprefix("worker-"): last_line(path) or {} for path in run.glob("metrics/worker-*.jsonl")}
    processes = (lines | {each: beat.fields for each, beat in beats.items()}).values()  # also those of past starts
    workers = [each for each in processes if each.get("role") == "selfplay"]
    return result | {"evaluations": int(sum(figure(each, "evaluations") or 0 for each in workers))}


def as_text(result: dict[str, Any]) -> str:
    parts = [f"{' '.join(result['options']) or 'defaults'}, {result['minutes']:g} min, seed {result['seed']}:"]
    parts.append(
        f"{result['evaluations']} evaluations, {result['generated_positions']} positions, step {result['step']}"
    )
    return " ".join([*parts, scores_as_text(result["scores"])])


def scores_as_text(scores: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """Return `scores` as text: exam -> a report of `network_scores` for each number of simulations."""
    parts = []
    for name, reports in scores.items():
        for report in reports:
            parts.append(f"{name} {report['simulations']}: {brief(report['best moves']['all'])}")
            if "Brier" in report:
                parts.append(f"Brier {brief(report['Brier']['all'])}")
    return " ".join(parts)


if __name__ == "__main__":
    main()
