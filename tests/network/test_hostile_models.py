"""Untrusted models: they are refused, and nothing that they name is imported or run."""

import errno
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from plyzero.errors import ModelRefusedError, UserError
from plyzero.network import model_loader, onnx_network
from plyzero.network.model_loader import ModelWatch, load_model, load_newest
from plyzero.network.onnx_graph import MAX_POSITION_WORK
from plyzero.network.onnx_network import ENCODING, Network
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.configuration import PRESETS
from plyzero.run.directory import KEY, RunId
from plyzero.run.models import ModelName, list_models, publish_model
from plyzero.run.segments import list_segments
from plyzero.search.evaluators import Evaluation, EvaluationBatch, find_fault
from plyzero.settings import MAX_MODEL_BYTES
from plyzero.trainer.export import export, untrained
from plyzero.trainer.network import ResidualNetwork
from tests.helpers.hostile import at_most, failing
from tests.helpers.hostile_models import (
    ACTIONS,
    INPUTS,
    PLANES,
    SMALL,
    TIC_TAC_TOE,
    after_stones,
    elsewhere,
    linear,
    port,
    products,
    tensor,
    varint,
)
from tests.helpers.runs import games_of, playing, small_run


def refusal(model: onnx.ModelProto | bytes, directory: Path) -> str:
    """Return the reason for which a worker refuses this model."""
    content = model if isinstance(model, bytes) else model.SerializeToString()
    name = publish_model(directory, content, fence=1, step=1)
    TIC_TAC_TOE.start.legal_actions()  # compiled here, which is not to be measured
    with at_most(megabytes=256), pytest.raises(ModelRefusedError) as caught:
        load_model(directory, name, TIC_TAC_TOE)
    return str(caught.value)


def test_the_smallest_model_is_loaded(tmp_path: Path):
    name = publish_model(tmp_path, linear().SerializeToString(), fence=1, step=1)
    assert load_model(tmp_path, name, TIC_TAC_TOE).step == 1


@pytest.mark.parametrize("what", SMALL)
def test_a_model_that_could_do_harm_is_refused_for_its_reason_before_it_does(tmp_path: Path, what: str):
    reason, build = SMALL[what]
    message = refusal(build(tmp_path), tmp_path)
    assert re.search(reason, message)
    assert message.isprintable()
    assert len(message) < 1000


@pytest.mark.parametrize("tag", [b"\x0a", b"\x8a\x80\x80\x80\x00"])
@pytest.mark.parametrize("size", [b"\x08", b"\x88\x80\x80\x80\x00"])
def test_a_key_in_numbers_that_are_longer_than_they_need_to_be_is_found(tmp_path: Path, tag: bytes, size: bytes):
    external = elsewhere(tensor("policy", INPUTS, ACTIONS), tmp_path / "other")
    entry = external.external_data[0].SerializeToString()
    assert entry.startswith(b"\x0a\x08location")
    longer = tag + size + entry[2:]
    external.ClearField("external_data")
    written = external.SerializeToString() + b"\x6a" + bytes([len(longer)]) + longer
    assert onnx.TensorProto.FromString(written).external_data[0].key == "location"
    model = linear(tensors=[tensor("value", INPUTS, 3)])
    graph = model.graph.SerializeToString() + b"\x2a" + varint(len(written)) + written
    model.ClearField("graph")
    content = model.SerializeToString() + b"\x3a" + varint(len(graph)) + graph
    assert len(onnx.ModelProto.FromString(content).graph.initializer) == 2
    assert "stores weights in other files" in refusal(content, tmp_path)


def shaped(n: int | str = "n", actions: int = ACTIONS, kind: type = np.float32) -> dict[str, Any]:
    """The parts of a model of other batches, with other actions, or of other numbers."""
    of_kind = {"kind": helper.np_dtype_to_tensor_dtype(np.dtype(kind))}
    return {
        "inputs": [port("observations", n, *PLANES, **of_kind)],
        "outputs": [port("logits", n, actions, **of_kind), port("wdl", n, 3, **of_kind)],
        "tensors": [tensor("policy", INPUTS, actions, kind=kind), tensor("value", INPUTS, 3, kind=kind)],
    }


LOGITS, SEQUENCE = port("logits", "n", ACTIONS), helper.make_node("SequenceConstruct", ["flat"], ["wdl"])
UNFIT: dict[str, dict[str, Any]] = {
    "other planes": {"inputs": [port("observations", "n", 5, 3, 3)]},
    "planes of any size": {"inputs": [port("observations", "n", "c", "h", "w")]},
    "a second input": {"inputs": [port("observations", "n", *PLANES), port("more", "n")]},
    "more actions": shaped(actions=10),
    "no values": {"outputs": [LOGITS]},
    "a sequence": {
        "nodes": [*linear().graph.node[:2], SEQUENCE],
        "outputs": [LOGITS, helper.make_tensor_sequence_value_info("wdl", TensorProto.FLOAT, None)],
    },
    "double precision": shaped(kind=np.float64),
    "one position at a time": shaped(n=1),
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_model_that_does_not_fit_its_game_is_refused(tmp_path: Path, what: str):
    refusal(linear(**UNFIT[what]), tmp_path)


@pytest.mark.parametrize(
    ("name", "odd"), [(b"observations", b"observation\xff"), (b"wdl", b"w\xffl"), (b"MatMul", b"MatM\xffl")]
)
def test_a_model_with_names_that_are_no_text_is_refused(tmp_path: Path, name: bytes, odd: bytes):
    refusal(linear().SerializeToString().replace(name, odd), tmp_path)


def test_a_model_whose_content_is_not_that_of_its_name_is_refused(tmp_path: Path):
    name = publish_model(tmp_path, linear().SerializeToString(), fence=1, step=1)
    (tmp_path / str(name)).write_bytes(linear(metadata={}).SerializeToString())
    with pytest.raises(ModelRefusedError, match="digest"):
        load_model(tmp_path, name, TIC_TAC_TOE)


def test_a_model_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.models.max_model_bytes", lambda: 100)
    assert "more than 100 bytes" in refusal(linear(), tmp_path)


def test_a_directory_with_the_name_of_a_model_is_refused(tmp_path: Path):
    name = ModelName(1, 1, "01234567")
    (tmp_path / str(name)).mkdir()
    with pytest.raises(ModelRefusedError):
        load_model(tmp_path, name, TIC_TAC_TOE)


def test_every_model_that_is_listed_is_a_file(tmp_path: Path):
    (tmp_path / "00000١-000000001-01234567.onnx").touch()
    assert [name for name in list_models(tmp_path) if not (tmp_path / str(name)).exists()] == []


@pytest.mark.parametrize("claimed", ["harm:Harm", "os:system", "../x", "x" * 100_000])
def test_a_model_in_a_run_never_imports_what_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: str):
    (tmp_path / "harm.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'harm')!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    model = linear(metadata={"encoding": ENCODING, "game": f"{claimed} v1"})
    assert "does not fit: its game is" in refusal(model, tmp_path / "models")
    assert "harm" not in sys.modules
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("game", ["tic-tac-toe", "othello(size=8)"])
def test_what_the_trainer_exports_passes_its_own_checks(tmp_path: Path, game: str, preset: str):
    size = (f"network.{key}={value}" for key, value in PRESETS[preset].get("network", {}).items())
    assert untrained(small_run(tmp_path / "r", game, *size))


def exported(game: GameSpec, **size: int) -> bytes:
    """A new network for a game, after the checks of its export."""
    shape = game.start.observation_shape
    network = ResidualNetwork(shape, game.start.num_actions, **size)
    return export(network, game, np.zeros((2, *shape), np.float32), metadata={})


@pytest.mark.parametrize(("game", "blocks", "channels"), [("tests.helpers.toys:Relay", 1, 4), ("go(size=19)", 2, 256)])
def test_exports_for_the_smallest_and_for_a_large_board_pass_the_checks(game: str, blocks: int, channels: int):
    assert exported(load_game(game), blocks=blocks, channels=channels)


def test_40_blocks_of_256_channels_on_a_board_of_19_x_19_are_within_the_limits():
    with torch.device("meta"):
        network = ResidualNetwork((17, 19, 19), 362, blocks=40, channels=256)
    weights = [(each.numel(), each.dim()) for each in network.parameters()]
    assert sum(4 * count for count, _ in weights) < MAX_MODEL_BYTES
    assert sum(count * (361 if dims == 4 else 1) for count, dims in weights) < MAX_POSITION_WORK


@pytest.mark.slow
def test_40_blocks_of_256_channels_are_exported_published_and_read(tmp_path: Path):
    game = load_game("go(size=3)")
    content = exported(game, blocks=40, channels=256)
    assert len(content) > 180_000_000
    name = publish_model(tmp_path, content, fence=1, step=1)
    assert load_model(tmp_path, name, game).step == 1


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models evaluate only the initial position when they are loaded, so that what follows is not seen then."""
    start = TIC_TAC_TOE.start.observe()[np.newaxis].astype(np.float32)
    monkeypatch.setattr(onnx_network, "reachable_observations", lambda game: start)


def published(directory: Path, model: onnx.ModelProto, step: int, run_id: RunId | None = None) -> ModelName:
    if run_id:
        model.metadata_props.add(key=KEY, value=run_id.text)
    return publish_model(directory, model.SerializeToString(), fence=1, step=step)


def test_a_model_that_is_nan_at_some_positions_is_refused_also_after_a_restart(tmp_path: Path):
    published(tmp_path, linear(), step=1)
    published(tmp_path, after_stones(3.5), step=2)
    for _ in range(2):
        with ModelWatch(tmp_path, TIC_TAC_TOE, poll_seconds=0, threads=1) as watch:
            assert watch.newer().step == 1
            assert watch.newer() is None
        assert load_newest(tmp_path, TIC_TAC_TOE).step == 1


def test_a_model_that_becomes_nan_in_self_play_is_dropped_and_not_recorded(
    tmp_path: Path, unseen: None, caplog: pytest.LogCaptureFixture
):
    run = small_run(tmp_path / "r", "tic-tac-toe", "selfplay.opening_plies=2", "selfplay.cache_mb=0")
    published(run.models, linear(), step=1, run_id=run.id)
    bad = published(run.models, after_stones(3.5), step=2, run_id=run.id)
    with playing(run) as until:
        until(lambda: list(list_segments(run.segments)))
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith(f"the model is no longer used: {bad}: its logits are not finite numbers")
    positions = games_of(run).positions
    assert set(positions["model_step"][positions["search"] > 0].tolist()) in ({1}, {1, 2})
    assert np.isfinite(positions["network_value"]).all()


def test_one_impossible_answer_in_a_large_batch_is_found():
    evaluation = Evaluation(np.zeros((512, 362), np.float32), np.full((512, 3), 1 / 3, np.float32))
    assert find_fault(evaluation, 512, 362) is None
    evaluation.logits[300, -1] = np.nan
    assert "logits" in find_fault(evaluation, 512, 362)


@pytest.mark.parametrize("width", [3, 4])
def test_what_is_possible_is_what_numpy_finds_possible(width: int):
    rng, seen = np.random.default_rng(0), set()
    for _ in range(400):
        n, actions = rng.integers(0, 6), rng.integers(1, 9)
        logits = rng.uniform(-1.001e4, 1.001e4, (actions, n)).astype(np.float32).T  # not contiguous
        logits /= rng.choice(np.array([1, 10], np.float32))
        wdl = np.tile(np.array([0.2, 0.3, 0.5, 7], np.float32)[:width], (n, 1))
        wdl[:, :3] += rng.choice([0.0, 0.004, 0.3], (n, 1)) * rng.choice([-1, 0, 1], (n, 3))
        for array in (logits, wdl):
            if array.size and rng.random() < 0.2:
                array[rng.integers(n), rng.integers(array.shape[1])] = rng.choice([np.nan, np.inf, -np.inf, -0.02])
        possible = {
            "scores": (np.abs(wdl[:, 3:]) <= 1e4).all(),
            "logits": (np.abs(logits) <= 1e4).all(),
            "wdl": (np.abs(wdl[:, :3].sum(axis=1) - 1) <= 0.01).all() and (wdl[:, :3] >= -0.01).all(),
        }
        fault = find_fault(Evaluation(logits, wdl), n, actions)
        assert (fault and fault.split()[1]) == next((part for part in possible if not possible[part]), None)
        seen.add(fault and fault.split()[1])
    assert seen == {None, "logits", "wdl"} | ({"scores"} if width == 4 else set())


def test_a_batch_that_would_need_too_much_memory_is_evaluated_in_parts(monkeypatch: pytest.MonkeyPatch):
    content = after_stones(100).SerializeToString()
    boards = np.random.default_rng(0).integers(2, size=(33, *PLANES)).astype(np.float32)
    whole = Network(content, TIC_TAC_TOE, label="x")(EvaluationBatch(boards, list))
    monkeypatch.setattr(onnx_network, "BATCH_BYTES", 4000)
    network = Network(content, TIC_TAC_TOE, label="x")
    assert 1 <= network._batch < 33
    for one, other in zip(network(EvaluationBatch(boards, list)), whole, strict=True):
        assert np.array_equal(one, other)


def test_a_model_that_is_too_slow_is_refused_by_its_processor_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(onnx_network, "MAX_SECONDS", 0.0)
    clock = iter(range(1000))
    monkeypatch.setattr(onnx_network.time, "process_time", lambda: next(clock))
    with pytest.raises(ModelRefusedError, match=r"x cannot evaluate a position: .*terminate"):
        Network(products(100, 200, rows=28).SerializeToString(), TIC_TAC_TOE, label="x")


def let_fail(monkeypatch: pytest.MonkeyPatch, what: str, times: int) -> None:
    """Let the volume fail to list or to read models the first `times` times."""
    monkeypatch.setattr(model_loader, what, failing(errno.EIO, times, then=getattr(model_loader, what)))


@pytest.mark.parametrize("what", ["list_models", "read_model"])
def test_a_transient_error_of_the_volume_ends_no_reader_and_refuses_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
):
    published(tmp_path, linear(), step=1)
    let_fail(monkeypatch, what, times=5)
    with ModelWatch(tmp_path, TIC_TAC_TOE, poll_seconds=0, threads=1) as watch:
        assert [watch.newer() for _ in range(5)] == [None] * 5
        assert watch.newer().step == 1
    (warning,) = (record.getMessage() for record in caplog.records if record.name.startswith("plyzero."))
    assert warning.endswith("Input/output error")
    monkeypatch.setattr(model_loader, "RETRY_SECONDS", (0.0,) * 5)
    let_fail(monkeypatch, what, times=5)
    assert load_newest(tmp_path, TIC_TAC_TOE).step == 1


def test_models_that_cannot_be_listed_are_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_loader, "RETRY_SECONDS", (0.0,))
    let_fail(monkeypatch, "list_models", times=100)
    with pytest.raises(UserError, match="cannot be listed: Input/output error"):
        load_newest(tmp_path, TIC_TAC_TOE)


def test_where_the_newest_model_stays_unreadable_an_older_one_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_loader, "RETRY_SECONDS", ())
    for step in (1, 2):
        published(tmp_path, linear(), step=step)
    let_fail(monkeypatch, "read_model", times=1)
    assert load_newest(tmp_path, TIC_TAC_TOE).step == 1


@pytest.mark.slow
def test_no_model_of_the_corpus_hangs_fills_or_kills_its_reader():
    command = [sys.executable, "-m", "tests.helpers.hostile_models"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3000)
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(verdicts) >= 60
    for each in verdicts:
        assert each["status"] == 0, each
        assert each["seconds"] < 10, each
        assert each["megabytes"] < 500, each
        assert each["said"].isprintable(), each
