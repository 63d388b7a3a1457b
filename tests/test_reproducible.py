"""A reproducible training: the same seed makes the same games and the same weights, however busy the machine is."""

import csv
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest

from plyzero.run.models import list_models
from tests.helpers.cli import plyzero_process, shown
from tests.helpers.runs import SMALL

pytestmark = pytest.mark.slow

BUSY = "while True: pass"


@contextmanager
def load(processes: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


class Trained(NamedTuple):
    """The results of a training: games, models without the digests in their names, their graphs, and the curve."""

    games: list[str]
    models: list[str]
    graphs: list[bytes]
    curve: list[dict[str, str]]


def trained(out: Path) -> Trained:
    """Train for 50 steps, as a task of an experiment."""
    parameters = {"game": "tic-tac-toe", "seed": 7, "steps": 50, "reproducible": "true"}
    parameters["settings"] = " ".join((*SMALL, "rating.games=2"))
    options = [part for name, value in parameters.items() for part in ("-p", f"{name}={value}")]
    done = plyzero_process("experiment", "task", "train", "--in", str(out.parent), "--out", str(out), *options)
    assert done.returncode == 0, done.stderr
    assert "done: 50 steps" in done.stdout
    root = out / "run"
    games = shown("replay", "export", "--run", str(root)).splitlines()
    models = [(name, onnx.load(root / "models" / str(name))) for name in list_models(root / "models")]
    graphs = [model.graph.SerializeToString(deterministic=True) for _, model in models]
    with (out / "train.csv").open() as file:
        curve = [{name: text for name, text in row.items() if name != "seconds"} for row in csv.DictReader(file)]
    return Trained(games, [f"{name.fence}-{name.step}" for name, _ in models], graphs, curve)


def test_a_loaded_machine_makes_the_same_games_and_weights(tmp_path: Path):
    first = trained(tmp_path / "idle")
    assert len(first.games) > 100
    assert len(first.models) == len(first.curve) >= 2
    assert first.curve[-1]["score"]
    with load(2):
        assert trained(tmp_path / "loaded") == first
