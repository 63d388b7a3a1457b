"""Untrusted models: they are refused, and nothing that they name is imported or run."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from plyzero.errors import ModelRefusedError
from plyzero.play.model_loader import load_model
from plyzero.rules.catalog import load_game
from plyzero.run.models import ModelName, list_models, publish_model
from plyzero.search.onnx_network import ENCODING
from tests.helpers.hostile import at_most

TIC_TAC_TOE = load_game("tic-tac-toe")

PLANES, ACTIONS = TIC_TAC_TOE.start.observation_shape, TIC_TAC_TOE.start.num_actions

INPUTS = math.prod(PLANES)


def tensor(name: str, *shape: int, kind: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, kind), name)


def port(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def linear(**changes: Any) -> onnx.ModelProto:
    """The smallest model of tic-tac-toe, with parts of it changed."""
    parts: dict[str, Any] = {
        "nodes": [
            helper.make_node("Flatten", ["observations"], ["flat"]),
            helper.make_node("MatMul", ["flat", "policy"], ["logits"]),
            helper.make_node("MatMul", ["flat", "value"], ["wdl"]),
        ],
        "inputs": [port("observations", "n", *PLANES)],
        "outputs": [port("logits", "n", ACTIONS), port("wdl", "n", 3)],
        "tensors": [tensor("policy", INPUTS, ACTIONS), tensor("value", INPUTS, 3)],
        "metadata": {"encoding": ENCODING, "game": TIC_TAC_TOE.identity},
        **changes,
    }
    graph = helper.make_graph(parts["nodes"], "g", parts["inputs"], parts["outputs"], parts["tensors"])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    helper.set_model_props(model, parts["metadata"])
    return model


def refusal(model: onnx.ModelProto | bytes, directory: Path) -> str:
    """Why this model is refused, when it lies where a worker loads it."""
    content = model if isinstance(model, bytes) else model.SerializeToString()
    name = publish_model(directory, content, fence=1, step=1)
    with at_most(megabytes=256), pytest.raises(ModelRefusedError) as caught:
        load_model(directory, name, TIC_TAC_TOE)
    return str(caught.value)


def test_the_smallest_model_is_loaded(tmp_path: Path):
    name = publish_model(tmp_path, linear().SerializeToString(), fence=1, step=1)
    assert load_model(tmp_path, name, TIC_TAC_TOE).step == 1


def elsewhere(one: onnx.TensorProto, path: Path) -> onnx.TensorProto:
    """The tensor, with its numbers in another file."""
    path.write_bytes(one.raw_data)
    onnx.external_data_helper.set_external_data(one, location=path.name)
    one.ClearField("raw_data")
    one.data_location = TensorProto.EXTERNAL
    return one


def in_a_branch(inner: onnx.TensorProto) -> list[onnx.NodeProto]:
    then = helper.make_graph([], "then", [], [port("policy2", INPUTS, ACTIONS)], [inner])
    other = helper.make_graph([], "else", [], [port("policy2", INPUTS, ACTIONS)], [tensor("policy2", INPUTS, ACTIONS)])
    nodes = list(linear().graph.node)
    nodes[1].input[1] = "either"
    condition = helper.make_node(
        "Constant", [], ["condition"], value=numpy_helper.from_array(np.array(True), "condition")
    )
    return [
        condition,
        helper.make_node("If", ["condition"], ["either"], then_branch=then, else_branch=other),
        *nodes,
    ]


def in_an_attribute(inner: onnx.TensorProto) -> list[onnx.NodeProto]:
    nodes = list(linear().graph.node)
    nodes[1].input[1] = "constant"
    return [helper.make_node("Constant", [], ["constant"], value=inner), *nodes]


@pytest.mark.parametrize("where", ["tensor", "branch", "attribute"])
def test_a_model_whose_numbers_lie_in_another_file_is_refused(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    if where == "tensor":
        tensors = [elsewhere(tensor("policy", INPUTS, ACTIONS), tmp_path / "other"), tensor("value", INPUTS, 3)]
        model = linear(tensors=tensors)
    elif where == "branch":
        model = linear(nodes=in_a_branch(elsewhere(tensor("policy2", INPUTS, ACTIONS), tmp_path / "other")))
    else:
        model = linear(nodes=in_an_attribute(elsewhere(tensor("constant", INPUTS, ACTIONS), tmp_path / "other")))
    assert "stores weights in other files" in refusal(model, tmp_path)


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


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


DOUBLE = {"kind": TensorProto.DOUBLE}

DOUBLES = [tensor("policy", INPUTS, ACTIONS, kind=np.float64), tensor("value", INPUTS, 3, kind=np.float64)]

CAST = [
    helper.make_node("Cast", ["observations"], ["wide"], to=TensorProto.DOUBLE),
    helper.make_node("Flatten", ["wide"], ["flat"]),
    *linear().graph.node[1:],
]

UNFIT: dict[str, dict[str, Any]] = {
    "other planes": {"inputs": [port("observations", "n", 5, 3, 3)]},
    "planes of any size": {"inputs": [port("observations", "n", "c", "h", "w")]},
    "a second input": {"inputs": [port("observations", "n", *PLANES), port("more", "n")]},
    "another input": {
        "inputs": [port("board", "n", *PLANES)],
        "nodes": [helper.make_node("Flatten", ["board"], ["flat"]), *linear().graph.node[1:]],
    },
    "more actions": {
        "outputs": [port("logits", "n", 10), port("wdl", "n", 3)],
        "tensors": [tensor("policy", INPUTS, 10), tensor("value", INPUTS, 3)],
    },
    "two values": {
        "outputs": [port("logits", "n", ACTIONS), port("wdl", "n", 2)],
        "tensors": [tensor("policy", INPUTS, ACTIONS), tensor("value", INPUTS, 2)],
    },
    "no values": {"outputs": [port("logits", "n", ACTIONS)]},
    "a sequence": {
        "nodes": [*linear().graph.node[:2], helper.make_node("SequenceConstruct", ["flat"], ["wdl"])],
        "outputs": [
            port("logits", "n", ACTIONS),
            helper.make_tensor_sequence_value_info("wdl", TensorProto.FLOAT, None),
        ],
    },
    "an unknown operation": {"nodes": [*linear().graph.node, helper.make_node("Harm", ["wdl"], ["x"])]},
    "an operation of another domain": {
        "nodes": [*linear().graph.node, helper.make_node("Harm", ["wdl"], ["x"], domain="os.system")]
    },
    "double precision": {
        "inputs": [port("observations", "n", *PLANES, **DOUBLE)],
        "outputs": [port("logits", "n", ACTIONS, **DOUBLE), port("wdl", "n", 3, **DOUBLE)],
        "tensors": DOUBLES,
    },
    "double precision behind": {
        "nodes": CAST,
        "outputs": [port("logits", "n", ACTIONS, **DOUBLE), port("wdl", "n", 3, **DOUBLE)],
        "tensors": DOUBLES,
    },
    "one position at a time": {
        "inputs": [port("observations", 1, *PLANES)],
        "outputs": [port("logits", 1, ACTIONS), port("wdl", 1, 3)],
    },
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_model_that_does_not_fit_its_game_is_refused(tmp_path: Path, what: str):
    refusal(linear(**UNFIT[what]), tmp_path)


@pytest.mark.parametrize(
    ("name", "odd"), [(b"observations", b"observation\xff"), (b"wdl", b"w\xffl"), (b"\x01n", b"\x01\xff")]
)
def test_a_model_with_names_that_are_no_text_is_refused(tmp_path: Path, name: bytes, odd: bytes):
    refusal(linear().SerializeToString().replace(name, odd), tmp_path)


@pytest.mark.parametrize("content", [b"", b"\0", b"\x3a\xff\xff\xff\xff\x0f", b"PK\3\4"])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes):
    refusal(content, tmp_path)


def test_a_graph_in_a_graph_in_a_graph_is_refused_or_loaded_but_ends_nothing(tmp_path: Path):
    inner = b""
    for _ in range(2000):  # a node with an attribute that is a graph
        attribute = b"\x32" + varint(len(inner)) + inner
        node = b"\x2a" + varint(len(attribute)) + attribute
        inner = b"\x0a" + varint(len(node)) + node
    refusal(b"\x3a" + varint(len(inner)) + inner, tmp_path)


def test_a_model_whose_content_is_not_that_of_its_name_is_refused(tmp_path: Path):
    name = publish_model(tmp_path, linear().SerializeToString(), fence=1, step=1)
    (tmp_path / str(name)).write_bytes(linear(metadata={}).SerializeToString())
    with pytest.raises(ModelRefusedError, match="digest"):
        load_model(tmp_path, name, TIC_TAC_TOE)


def test_a_model_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.models.MAX_BYTES", 100)
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
