"""Sizes: what a network weighs and a run needs is known, and said, before anything starts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from plyzero.machine import usable_memory
from plyzero.ops.sizes import check_sizes, network_weights
from plyzero.rules.catalog import load_game
from plyzero.run.models import max_model_bytes
from plyzero.settings import NetworkSettings, Settings
from plyzero.trainer.network import make_network
from tests.helpers.cli import plyzero
from tests.helpers.toys import Relay

WIDE = "tests.ops.test_sizes:Wide"


class Wide(Relay):
    """Forced moves: of a million actions one is ever legal."""

    observation_shape, observation_dtype = (4, 10, 10), bool

    def __init__(self, n: int = 1_000_000) -> None:
        super().__init__(21)
        self.num_actions = n

    def observe(self):
        return np.arange(400).reshape(4, 10, 10) < self.ply


@pytest.mark.parametrize("game", ["tic-tac-toe", "connect-four", "go(size=5)", "breakthrough(size=5)", "pig"])
@pytest.mark.parametrize(("blocks", "channels"), [(1, 4), (2, 32), (1, 128)])
def test_the_weights_of_a_network_are_those_of_its_model(game: str, blocks: int, channels: int):
    start, settings = load_game(game).start, NetworkSettings(blocks=blocks, channels=channels)
    with torch.device("meta"):
        layers = [*make_network(settings, start).modules()]
    held = sum(each.numel() for layer in layers for each in layer.parameters(recurse=False))
    folded = sum(layer.num_features for layer in layers if isinstance(layer, nn.BatchNorm2d))  # a bias remains
    assert network_weights(start, settings)[0] == held - folded


def test_of_a_network_of_ones_own_nothing_is_assumed():
    start = load_game("tic-tac-toe").start
    assert network_weights(start, NetworkSettings(module="mine:Net", channels=100_000)) == (0, 0)
    check_sizes(start, Settings(network=NetworkSettings(module="mine:Net", channels=100_000)))


@pytest.mark.parametrize(
    ("size", "memory", "says"),
    [
        (1_000_000, 1 << 40, "weights, 6.4 GB, but an ONNX file has at most 2.1 GB; 100% of the weights are of the"),
        (100_000, 1 << 33, "and the trainer needs 7.4 GB of memory, but this machine has 8.6 GB; 100% of"),
    ],
)
@pytest.mark.parametrize("command", [["train", "--workers", "2", "--run", "D"], ["check", "--games", "2"]])
def test_what_a_game_needs_is_known_before_a_run_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, memory: int, says: str, command: list[str]
):
    monkeypatch.setattr("plyzero.ops.sizes.usable_memory", lambda: memory)
    words = [str(tmp_path / "r") if word == "D" else word for word in command]
    done = plyzero(words[0], f"{WIDE}(n={size})", *words[1:])
    advice = "declare policy_planes (docs/writing-a-game.md), or set network.channels below 16"
    assert all(part in done.stdout + done.stderr for part in (says, advice))
    assert done.returncode == (2 if command[0] == "train" else 0)
    assert "Next: plyzero train" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("plyzero.ops.sizes.usable_memory", lambda: 1 << 40)
    if command[0] == "check" and size == 100_000:
        done = plyzero("check", f"{WIDE}(n={size})", *command[1:])
        assert "the trainer needs about 7.4 GB of memory, a worker 2.0 GB. To need less" in done.stdout
        assert "The default settings suit this game" not in done.stdout
        assert "Next: plyzero train" in done.stdout


@pytest.mark.parametrize("command", ["init", "trainer", "selfplay"])
def test_no_command_creates_a_run_whose_network_no_file_can_hold(tmp_path: Path, command: str):
    game = [WIDE] if command == "init" else ["--game", WIDE]
    done = plyzero(command, *game, "--run", str(tmp_path / "r"))
    assert (done.returncode, "6.4 GB, but an ONNX file has at most 2.1 GB" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_read_takes_at_most_half_of_the_memory(monkeypatch: pytest.MonkeyPatch):
    for memory, largest in ((1 << 28, 1 << 27), (1 << 32, 1 << 29), (1 << 40, (1 << 31) - 1)):
        monkeypatch.setattr("plyzero.run.models.usable_memory", lambda memory=memory: memory)
        assert max_model_bytes() == largest


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("memory.max", "1073741824\n", 1 << 30),
        ("memory.max", "max\n", None),
        ("memory/memory.limit_in_bytes", "1073741824\n", 1 << 30),
    ],
)
def test_the_memory_of_a_container_is_that_of_its_cgroup(tmp_path: Path, file: str, text: str, expected: int | None):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert usable_memory(tmp_path) == (expected or usable_memory(tmp_path / "none"))
