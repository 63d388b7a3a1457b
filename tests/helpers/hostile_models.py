"""Models made wrong on purpose, each with a part of the sentence that refuses it, and a judge in a child process."""

import json
import math
import os
import resource
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from plyzero.network.onnx_network import ENCODING
from plyzero.rules.catalog import load_game

TIC_TAC_TOE = load_game("tic-tac-toe")

PLANES, ACTIONS = TIC_TAC_TOE.start.observation_shape, TIC_TAC_TOE.start.num_actions

INPUTS = math.prod(PLANES)

node = helper.make_node


def tensor(name: str, *shape: int, kind: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, kind), name)


def integers(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def floats(name: str, *values: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.float32), name)


def port(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def linear(**changes: Any) -> onnx.ModelProto:
    """The smallest model of tic-tac-toe, with parts of it changed; `more` are tensors besides."""
    parts: dict[str, Any] = {
        "nodes": [
            node("Flatten", ["observations"], ["flat"]),
            node("MatMul", ["flat", "policy"], ["logits"]),
            node("MatMul", ["flat", "value"], ["guess"]),
            node("Softmax", ["guess"], ["wdl"]),
        ],
        "inputs": [port("observations", "n", *PLANES)],
        "outputs": [port("logits", "n", ACTIONS), port("wdl", "n", 3)],
        "tensors": [tensor("policy", INPUTS, ACTIONS), tensor("value", INPUTS, 3)],
        "more": [],
        "metadata": {"encoding": ENCODING, "game": TIC_TAC_TOE.identity},
        "opset": 17,
        **changes,
    }
    tensors = [*parts["tensors"], *parts["more"]]
    graph = helper.make_graph(parts["nodes"], "g", parts["inputs"], parts["outputs"], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", parts["opset"])])
    model.ir_version = 8
    helper.set_model_props(model, parts["metadata"])
    return model


def after_flat(nodes: Sequence[NodeProto], *more: onnx.TensorProto, **changes: Any) -> onnx.ModelProto:
    """The model with `nodes`, which turn `flat`, `[n, INPUTS]`, into `changed`, between the board and its heads."""
    flatten, *heads = linear().graph.node
    for head in heads[:2]:
        head.input[0] = "changed"
    return linear(nodes=[flatten, *nodes, *heads], more=more, **changes)


def added_to_logits(nodes: Sequence[NodeProto], *more: onnx.TensorProto) -> onnx.ModelProto:
    """The model with what `nodes` call `extra`, of a shape like `[n, 1]`, added to its logits."""
    flatten, policy, *value = linear().graph.node
    policy.output[0] = "before"
    return linear(nodes=[flatten, policy, *nodes, node("Add", ["before", "extra"], ["logits"]), *value], more=more)


def only(operator: str, **attributes: Any) -> onnx.ModelProto:
    """The model with one more node."""
    return after_flat([node(operator, ["flat"], ["changed"], **attributes)])


def after_stones(limit: float, *, operator: str = "Sqrt") -> onnx.ModelProto:
    """The model whose logits are NaN once more than `limit` numbers of the observation are 1."""
    nodes = [
        node("ReduceSum", ["flat", "axis"], ["stones"], keepdims=1),
        node("Sub", ["limit", "stones"], ["left"]),
        node(operator, ["left"], ["extra"]),
    ]
    return added_to_logits(nodes, integers("axis", 1), floats("limit", limit))


def elsewhere(one: onnx.TensorProto, path: Path) -> onnx.TensorProto:
    """The tensor, with its numbers in another file."""
    path.write_bytes(one.raw_data)
    onnx.external_data_helper.set_external_data(one, location=path.name)
    one.ClearField("raw_data")
    one.data_location = TensorProto.EXTERNAL
    return one


def doubled(times: int) -> onnx.ModelProto:
    """The observation, twice as wide `times` times, and narrowed again."""
    nodes = [node("Identity", ["flat"], ["x0"])]
    nodes += [node("Concat", [f"x{i}"] * 2, [f"x{i + 1}"], axis=1) for i in range(times)]
    nodes.append(node("Slice", [f"x{times}", "from", "to", "along"], ["changed"]))
    return after_flat(nodes, integers("from", 0), integers("to", INPUTS), integers("along", 1))


def deep(nodes: int, operator: str = "Tanh") -> onnx.ModelProto:
    chain = [node(operator, [f"x{i}" if i else "flat"], [f"x{i + 1}"]) for i in range(nodes)]
    return after_flat([*chain, node("Identity", [f"x{nodes}"], ["changed"])])


def products(times: int, width: int, *, rows: int = 1, scale: float = 0.0) -> onnx.ModelProto:
    """`rows` times INPUTS rows, multiplied by a square matrix of `width` again and again."""
    square = np.random.default_rng(0).random((width, width), np.float32) / np.float32(width) * np.float32(scale or 1)
    nodes = [
        node("Unsqueeze", ["flat", "two"], ["column"]),
        node("MatMul", ["column", "widen"], ["wide"]),
        node("Concat", ["wide"] * rows, ["p0"], axis=1),
        *(node("MatMul", [f"p{i}", "square"], [f"p{i + 1}"]) for i in range(times)),
        node("ReduceMean", [f"p{times}"], ["mean"], axes=[1, 2], keepdims=0),
        node("Unsqueeze", ["mean", "one"], ["each"]),
        node("Add", ["flat", "each"], ["changed"]),
    ]
    more = [integers("one", 1), integers("two", 2), numpy_helper.from_array(square, "square")]
    more.append(numpy_helper.from_array(np.full((1, width), scale or 1, np.float32), "widen"))
    return after_flat(nodes, *more)


def constant_products(times: int, width: int) -> onnx.ModelProto:
    """A square matrix of `width` times itself, again and again, which ONNX Runtime computes when it reads it."""
    nodes = [node("MatMul", [f"p{i}" if i else "square", "square"], [f"p{i + 1}"]) for i in range(times)]
    nodes += [node("ReduceMean", [f"p{times}"], ["mean"], keepdims=0), node("Add", ["flat", "mean"], ["changed"])]
    return after_flat(nodes, tensor("square", width, width))


def outer(times: int) -> onnx.ModelProto:
    """Every number of a position times every other, again and again."""
    nodes, last = [], "flat"
    for i in range(times):
        nodes += [
            node("Unsqueeze", [last, "one"], [f"row{i}"]),
            node("Unsqueeze", [last, "two"], [f"column{i}"]),
            node("Mul", [f"row{i}", f"column{i}"], [f"square{i}"]),
            node("Flatten", [f"square{i}"], [f"long{i}"]),
        ]
        last = f"long{i}"
    nodes.append(node("Slice", [last, "from", "to", "one"], ["changed"]))
    return after_flat(nodes, *(integers(*each) for each in (("one", 1), ("two", 2), ("from", 0), ("to", INPUTS))))


def across_the_batch(times: int) -> onnx.ModelProto:
    """Every position of a batch times every other, so that memory grows with a power of the batch."""
    nodes, last = [node("ReduceSum", ["flat", "one"], ["v0"], keepdims=1)], "v0"
    for i in range(times):
        nodes += [
            node("Transpose", [last], [f"t{i}"], perm=[1, 0]),
            node("MatMul", [last, f"t{i}"], [f"all{i}"]),
            node("Reshape", [f"all{i}", "tall"], [f"v{i + 1}"]),
        ]
        last = f"v{i + 1}"
    nodes += [node("ReduceSum", [last, "zero"], ["sum"], keepdims=1), node("Add", ["flat", "sum"], ["changed"])]
    return after_flat(nodes, integers("one", 1), integers("zero", 0), integers("tall", -1, 1))


def convolved(**attributes: Any) -> onnx.ModelProto:
    """A convolution of the board, and its sum."""
    nodes = [
        node("Conv", ["observations", "kernel"], ["map"], **attributes),
        node("ReduceSum", ["map", "axes"], ["sum"], keepdims=0),
        node("Add", ["flat", "sum"], ["changed"]),
    ]
    return after_flat(nodes, tensor("kernel", 1, PLANES[0], 1, 1), integers("axes", 2, 3))


def of_shape(nodes: Sequence[NodeProto], *more: onnx.TensorProto) -> onnx.ModelProto:
    """The model with the sum of a tensor of ones, whose shape `nodes`, or one of `more`, call `shape`."""
    expand = [
        node("Expand", ["unit", "shape"], ["wide"]),
        node("ReduceSum", ["wide"], ["sum"], keepdims=0),
        node("Add", ["flat", "sum"], ["changed"]),
    ]
    return after_flat([*nodes, *expand], floats("unit", 1), *more)


def expanded(*shape: int) -> onnx.ModelProto:
    return of_shape([], integers("shape", *shape))


def shaped_by_data() -> onnx.ModelProto:
    """A size that is computed from the observation."""
    nodes = [
        node("ReduceSum", ["flat"], ["all"], keepdims=0),
        node("Cast", ["all"], ["count"], to=TensorProto.INT64),
        node("Unsqueeze", ["count", "zero"], ["shape"]),
    ]
    return of_shape(nodes, integers("zero", 0))


def computed_size() -> onnx.ModelProto:
    """A size that arithmetic of other sizes gives."""
    return of_shape([node("Shape", ["flat"], ["sizes"]), node("Mul", ["sizes", "sizes"], ["shape"])])


def lying(*dims: int, numbers: int = 4) -> onnx.ModelProto:
    """A tensor of constants with a shape that its numbers do not fill."""
    one = TensorProto(name="lie", data_type=TensorProto.FLOAT, dims=dims, raw_data=bytes(4 * numbers))
    return after_flat([node("Gather", ["lie", "index"], ["g"]), node("Add", ["flat", "g"], ["changed"])], one)


def with_sparse() -> onnx.ModelProto:
    model = linear()
    sparse = model.graph.sparse_initializer.add(dims=[2**40])
    sparse.values.CopyFrom(floats("sparse", 1))
    sparse.indices.CopyFrom(integers("indices", 0))
    return model


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = linear()
    change(model)
    return model


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def nested(depth: int) -> bytes:
    """A node with an attribute that is a graph, `depth` times."""
    inner = b""
    for _ in range(depth):
        attribute = b"\x32" + varint(len(inner)) + inner
        one = b"\x2a" + varint(len(attribute)) + attribute
        inner = b"\x0a" + varint(len(one)) + one
    return b"\x3a" + varint(len(inner)) + inner


def in_an_attribute(directory: Path) -> onnx.ModelProto:
    nodes = list(linear().graph.node)
    nodes[1].input[1] = "constant"
    inner = elsewhere(tensor("constant", INPUTS, ACTIONS), directory / "other")
    return linear(nodes=[node("Constant", [], ["constant"], value=inner), *nodes])


ESCAPES = "\x1b[2J\x1b]0;title\x07\u202e\u2066\r\nline\x9b31m"

REFUSED_OPERATORS = """
If Loop Scan SequenceMap SequenceConstruct SequenceEmpty SplitToSequence Optional ConstantOfShape Tile Range Pad Resize
Upsample OneHot EyeLike NonZero Unique Compress TopK NonMaxSuppression Einsum DFT STFT MelWeightMatrix HannWindow
CenterCropPad RandomNormal RandomUniformLike Multinomial Bernoulli LSTM GRU RNN Attention ConvTranspose MaxUnpool
MaxRoiPool GridSample Col2Im DeformConv AffineGrid DynamicQuantizeLinear MatMulInteger ConvInteger BitShift Mod CumSum
Det ScatterND ScatterElements GatherND GatherElements ReverseSequence StringNormalizer RegexFullMatch StringConcat
TfIdfVectorizer ImageDecoder SoftmaxCrossEntropyLoss Size Harm
"""

Build = Callable[[Path], onnx.ModelProto | bytes]

SMALL: dict[str, tuple[str, Build]] = {
    **{
        f"operator {name}": (f"uses the operator {name}", lambda _, name=name: only(name))
        for name in REFUSED_OPERATORS.split()
    },
    "an operator of Microsoft": ("com.microsoft.FusedGemm", lambda _: only("FusedGemm", domain="com.microsoft")),
    "an operator of an unknown domain": ("os.system.Harm", lambda _: only("Harm", domain="os.system")),
    "an imported domain": (
        "'com.microsoft'; only those of ONNX",
        lambda _: changed(lambda m: m.opset_import.append(helper.make_opsetid("com.microsoft", 1))),
    ),
    "operators of version 3": ("version 3 of the operators", lambda _: linear(opset=3)),
    "operators of version 9999": ("version 9999 of the operators", lambda _: linear(opset=9999)),
    "an IR of version 9999": (
        "cannot be inferred|cannot be read|can read",
        lambda _: changed(lambda m: m.__setattr__("ir_version", 9999)),
    ),
    "a graph in an attribute of a known operator": (
        "attribute of a kind",
        lambda _: after_flat([node("Relu", ["flat"], ["changed"], body=helper.make_graph([], "g", [], []))]),
    ),
    "functions": (
        "functions",
        lambda _: changed(
            lambda m: m.functions.append(
                helper.make_function("own", "F", ["x"], ["y"], [node("Relu", ["x"], ["y"])], m.opset_import)
            )
        ),
    ),
    "training information": ("training information", lambda _: changed(lambda m: m.training_info.add())),
    "a sparse tensor of 2^40": ("sparse tensors", lambda _: with_sparse()),
    "constants in another file": (
        "stores weights in other files",
        lambda path: linear(
            tensors=[elsewhere(tensor("policy", INPUTS, ACTIONS), path / "o"), tensor("value", INPUTS, 3)]
        ),
    ),
    "a constant node in another file": ("stores weights in other files", in_an_attribute),
    "a tensor of 2^62 x 2^62": ("has 4 elements, but its shape is", lambda _: lying(2**62, 2**62)),
    "a tensor of a negative size": ("has 4 elements, but its shape is", lambda _: lying(-1, -4)),
    "a tensor of no size": ("has 0 elements, but its shape is", lambda _: lying(0, numbers=0)),
    "a tensor of double precision": ("elements of type 11", lambda _: linear(more=[tensor("d", 1, kind=np.float64)])),
    "a tensor of text": (
        "elements of type 8",
        lambda _: linear(more=[helper.make_tensor("text", TensorProto.STRING, [1], [b"\x1b[2J"])]),
    ),
    "a cast to double precision": (
        "computes elements of a type",
        lambda _: after_flat([node("Cast", ["flat"], ["w"], to=11), node("Cast", ["w"], ["changed"], to=1)]),
    ),
    "expanded to 2^40": ("MB of memory for a position", lambda _: expanded(2**40)),
    "expanded to 2^124": ("MB of memory for a position", lambda _: expanded(2**62, 2**62)),
    "doubled 40 times": ("MB of memory for a position", lambda _: doubled(40)),
    "outer products": ("cannot be inferred|MB of memory for a position", lambda _: outer(4)),
    "across the batch": ("cannot be inferred|MB of memory for a position", lambda _: across_the_batch(3)),
    "a convolution with huge borders": ("attribute that is out of bounds", lambda _: convolved(pads=[2**40] * 4)),
    "a convolution whose borders overflow": (
        "attribute that is out of bounds",
        lambda _: convolved(pads=[2**63 - 1] * 4),
    ),
    "a convolution with wide borders": ("MB of memory for a position", lambda _: convolved(pads=[4096] * 4)),
    "a size from the observation": ("computes integers|not known before", lambda _: shaped_by_data()),
    "a size by arithmetic": ("computes integers", lambda _: computed_size()),
    "a product of matrices": ("multiplications for a position", lambda _: constant_products(5, 2048)),
    "5,000 nodes": ("5001|5005 nodes", lambda _: deep(5000)),
    "nodes out of order": (
        "is used before it is computed|cannot be inferred",
        lambda _: linear(nodes=list(linear().graph.node)[::-1]),
    ),
    "an input that nobody makes": (
        "is used before it is computed|not known before|cannot be inferred",
        lambda _: after_flat([node("Add", ["flat", "nothing"], ["changed"])]),
    ),
    "a field that onnx does not know": ("does not know", lambda _: linear().SerializeToString() + b"\xfa\x7f\x03abc"),
    "metadata that is no text": ("not text", lambda _: linear().SerializeToString().replace(b"game", b"gam\xff")),
    "two tensors of one name": ("two tensors of one name", lambda _: linear(more=[tensor("policy", 1)])),
    "a constant that is an input": (
        "its shapes are",
        lambda _: linear(inputs=[*linear().graph.input, port("policy", INPUTS, ACTIONS)]),
    ),
    "no nodes": ("cannot be inferred|not known", lambda _: linear(nodes=[])),
    "NaN everywhere": ("not finite numbers", lambda _: after_stones(-1)),
    "NaN from the fourth stone": ("not finite numbers", lambda _: after_stones(3.5)),
    "infinite from the fifth stone": ("not finite numbers", lambda _: after_stones(4, operator="Log")),
    "logits of 10^6": (
        "not finite numbers between",
        lambda _: added_to_logits([node("Identity", ["big"], ["extra"])], floats("big", 1e6)),
    ),
    "chances that are none": (
        "probabilities for every position",
        lambda _: linear(nodes=[*linear().graph.node[:2], node("MatMul", ["flat", "value"], ["wdl"])]),
    ),
    "chances below 0": (
        "probabilities for every position",
        lambda _: linear(
            nodes=[*linear().graph.node[:3], node("Softmax", ["guess"], ["s"]), node("Add", ["s", "odd"], ["wdl"])],
            more=[floats("odd", 5, 0, -5)],
        ),
    ),
    "metadata of 1 MB": ("metadata has more than", lambda _: linear(metadata={"settings": "[" * (1 << 20)})),
    "a game with escapes": ("its game is", lambda _: linear(metadata={"encoding": ENCODING, "game": ESCAPES})),
    "an operator with escapes": ("uses the operator", lambda _: only(ESCAPES)),
    "a tensor with escapes": (
        "elements, but its shape",
        lambda _: changed(lambda m: m.graph.initializer.add(name=ESCAPES * 1000, data_type=1, dims=[9])),
    ),
    "cut short": ("can read", lambda _: linear().SerializeToString()[:-20]),
    "nothing": ("is empty", lambda _: b""),
    "graphs 2000 deep": ("can read", lambda _: nested(2000)),
    "graphs 60 deep": ("can read", lambda _: nested(60)),
}
"""Name -> a part of the refusal, and the model. All are refused at once and in little memory."""

HEAVY: dict[str, tuple[str, Build]] = {
    "100,000 nodes": ("nodes, more than", lambda _: deep(100_000)),
    "4,000 nodes in a row": ("", lambda _: deep(4_000)),
    "4,000 convolutions": ("", lambda _: convolutions(1_300)),
    "outer products within the limits": ("", lambda _: outer(3)),
    "across the batch, once": ("", lambda _: across_the_batch(1)),
    "expanded to 60 MB": ("", lambda _: expanded(15 << 20)),
    "one matrix in 4,000 nodes": ("counted as often as they are used", lambda _: products(4_000, 2040)),
    "work at the limit": ("", lambda _: products(8, 2040, rows=28)),
    "work in one node": ("", lambda _: products(1, 2040, rows=225)),
    "a product at the limit": ("", lambda _: constant_products(1, 2040)),
    "denormal numbers": ("", lambda _: products(8, 2040, rows=28, scale=1e-22)),
}
"""Like SMALL, but these take seconds or much memory to make; an empty sentence: they may be refused or accepted."""


def convolutions(nodes: int) -> onnx.ModelProto:
    chain = [
        each
        for i in range(nodes)
        for each in (
            node("Conv", [f"x{i}" if i else "observations", "kernel"], [f"c{i}"], pads=[1] * 4),
            node("Relu", [f"c{i}"], [f"r{i}"]),
            node("Add", [f"c{i}", f"r{i}"], [f"x{i + 1}"]),
        )
    ]
    kernel = tensor("kernel", PLANES[0], PLANES[0], 3, 3)
    return after_flat([*chain, node("Flatten", [f"x{nodes}"], ["changed"])], kernel)


class Verdict(NamedTuple):
    """The end of a reader in a child process.

    said:      its answer: "" if it accepted what it read.
    seconds:   processor time that it took.
    megabytes: memory that it took, beyond what it had.
    status:    exit status of the process; 0 = it lives.
    """

    said: str
    seconds: float
    megabytes: int
    status: int


def in_a_child(read: Callable[[], object], refusals: type[Exception], *, seconds: int = 10) -> Verdict:
    """Call `read` in a fork of this process, which ends if it uses more processor time than `seconds`."""
    ours, theirs = os.pipe()
    before = _peak_megabytes()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(ours)
            used = math.ceil(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, used + seconds))
            Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
            before = _peak_megabytes()
            began = time.process_time()
            said = ""
            try:
                read()
            except refusals as error:
                said = str(error)
            took = time.process_time() - began
            os.write(theirs, f"{took} {_peak_megabytes() - before} {said[:8000]}".encode())
            status = 0
        except BaseException:
            os.write(theirs, f"0 0 {traceback.format_exc()[-8000:]}".encode())
        finally:
            os._exit(status)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if not answer:
        return Verdict("", seconds, before, status)
    took, megabytes, said = answer.split(" ", 2)
    return Verdict(said, float(took), int(megabytes), status)


def _peak_megabytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def main() -> None:
    """Let a reader in a child process load every model; print a JSON line for each."""
    from plyzero.errors import ModelRefusedError
    from plyzero.network.model_loader import load_model
    from plyzero.run.models import publish_model

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        name = publish_model(path, linear().SerializeToString(), fence=1, step=1)
        load_model(path, name, TIC_TAC_TOE)  # so that modules that are loaded once do not count
        for what, (_, build) in (SMALL | HEAVY).items():
            model = build(path)
            content = model if isinstance(model, bytes) else model.SerializeToString()
            name, size = publish_model(path, content, fence=1, step=1), len(content)
            del model, content
            verdict = in_a_child(lambda name=name: load_model(path, name, TIC_TAC_TOE), ModelRefusedError)
            print(json.dumps({"what": what, "size": size, **verdict._asdict()}), flush=True)
            (path / str(name)).unlink()


if __name__ == "__main__":
    main()
