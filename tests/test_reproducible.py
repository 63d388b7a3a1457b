"""A reproducible training: the same seed makes the same games and the same weights, however busy the machine is."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import pytest

from plyzero.run.models import list_models
from tests.helpers.cli import plyzero_process
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


def trained(root: Path, *, seed: int = 7) -> tuple[list[str], list[str], list[bytes]]:
    """Train for 100 steps. Return the games, the names of the models without their digests, and their graphs."""
    options = [part for option in (*SMALL, "rating.games=2") for part in ("-o", option)]
    command = ("train", "tic-tac-toe", "--run", str(root), "--seed", str(seed), "--reproducible", "--steps", "100")
    done = plyzero_process(*command, *options)
    assert done.returncode == 0, done.stderr
    assert "done: 100 steps" in done.stdout
    games = plyzero_process("replay", "export", "--run", str(root)).stdout.splitlines()
    models = [(name, onnx.load(root / "models" / str(name))) for name in list_models(root / "models")]
    graphs = [model.graph.SerializeToString(deterministic=True) for _, model in models]
    return games, [f"{name.fence}-{name.step}" for name, _ in models], graphs


def test_a_loaded_machine_makes_the_same_games_and_weights(tmp_path: Path):
    first = trained(tmp_path / "idle")
    assert len(first[0]) > 100
    assert len(first[1]) >= 2
    with load(8):
        assert trained(tmp_path / "loaded") == first
    assert trained(tmp_path / "other", seed=8)[0] != first[0]
