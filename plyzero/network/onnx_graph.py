"""The check of an ONNX file before ONNX Runtime reads it: known operators, known sizes, bounded memory and work.

A model comes from a volume that others can write to. What passes here is a feed-forward network whose every tensor has
a size that is known before it runs; the limits leave room for 40 residual blocks of 256 channels on a 19 x 19 board.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import onnx
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import AttributeProto, NodeProto, TensorProto, TensorShapeProto
from onnx.shape_inference import infer_shapes

from plyzero.errors import plain

Model: TypeAlias = onnx.ModelProto

_FEED_FORWARD = """
Abs Add And AveragePool BatchNormalization Cast Celu Clip Concat Constant Conv DequantizeLinear Div Dropout Elu Equal
Erf Exp Expand Flatten Gather Gelu Gemm GlobalAveragePool GlobalMaxPool Greater GroupNormalization HardSigmoid
HardSwish Identity InstanceNormalization LayerNormalization LeakyRelu Less Log LogSoftmax LpNormalization MatMul Max
MaxPool Min Mish Mul Neg Not Or PRelu Pow QuantizeLinear RMSNormalization Reciprocal ReduceMax ReduceMean ReduceSum
Relu Reshape Selu Shape Sigmoid Slice Softmax Softplus Softsign Split Sqrt Squeeze Sub Sum Swish Tanh Transpose
Unsqueeze Where
"""

OPERATORS: Final = frozenset(_FEED_FORWARD.split())
"""The operators that a model may use: those of feed-forward networks. None has a subgraph, and none makes a tensor
whose size depends on the content of another, as long as integers are only handed on (INTEGER_OPERATORS)."""

INTEGER_OPERATORS: Final = frozenset(
    ("Concat", "Constant", "Gather", "Identity", "Shape", "Slice", "Squeeze", "Unsqueeze")
)
"""The operators that may make integers. They copy sizes and constants, so shape inference knows every integer."""

QUANTISED: Final = (TensorProto.UINT8, TensorProto.INT8)
"""Types that only QuantizeLinear may make; as constants, with INT32 for biases, they are weights."""

ITEM_BYTES: Final[dict[int, int]] = {
    TensorProto.FLOAT: 4,
    TensorProto.INT64: 8,
    TensorProto.BOOL: 1,
    TensorProto.INT32: 4,
    **dict.fromkeys(QUANTISED, 1),
}
"""Bytes of an element, for the types that tensors may have."""

MAX_NODES: Final = 4096
MAX_INTEGER: Final = 4096  # absolute value of an integer attribute, such as the size of a kernel
MAX_OPSET: Final = range(11, 100)  # versions of the operators; ONNX Runtime itself refuses those that it does not know
MAX_METADATA: Final = 1 << 18  # bytes
MAX_BATCH: Final = 4096  # positions that are evaluated at once
MAX_POSITION_BYTES: Final = 1 << 26  # bytes per position in the tensors that are needed at the same time
MAX_COPIED_BYTES: Final = 1 << 27  # bytes of weights used again: ONNX Runtime keeps a copy for every use
MAX_POSITION_WORK: Final = 1 << 35  # multiplications per position
"""The limits of a model. The weights themselves are bounded by the size of the file."""


class GraphError(ValueError):
    """A graph that is refused; the message gives the reason."""


def parse(content: bytes) -> onnx.ModelProto:
    """Return the model in an ONNX file. Raises GraphError if it is damaged, or has more than a graph of tensors."""
    if not content:
        raise GraphError("it is not a model that ONNX Runtime can read: it is empty")
    try:
        model = onnx.ModelProto.FromString(content)
    except Exception as error:  # protobuf has an error of its own
        raise GraphError("it is not a model that ONNX Runtime can read: it is damaged, or no ONNX file") from error
    if model.functions or model.training_info:
        raise GraphError("it has functions or training information, which is not supported")
    metadata = [text for each in model.metadata_props for text in (each.key, each.value)]
    if any(isinstance(text, bytes) for text in metadata):  # protobuf returns bytes where a text is not UTF-8
        raise GraphError("it has metadata that is not text")
    if sum(map(len, metadata)) > MAX_METADATA:
        raise GraphError(f"its metadata has more than {MAX_METADATA} bytes")
    for opset in model.opset_import:
        if opset.domain not in ("", "ai.onnx"):
            raise GraphError(f"it uses operators of {plain(repr(opset.domain), 80)}; only those of ONNX are supported")
        if opset.version not in MAX_OPSET:
            raise GraphError(f"it uses version {opset.version} of the operators, expected {MAX_OPSET.start} or newer")
    return model


def declared_shapes(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """Return the shapes of all inputs and outputs, by name, as the file declares them."""
    ends = (*model.graph.input, *model.graph.output)
    return {each.name: [_size(dim) for dim in each.type.tensor_type.shape.dim] for each in ends}


def declare_shapes(model: Model, shapes: Mapping[str, Sequence[int | str]]) -> None:
    """Replace the sizes that inputs and outputs declare, by name, but not names of sizes; drop those in between."""
    for end in (*model.graph.input, *model.graph.output):
        for dim, size in zip(end.type.tensor_type.shape.dim, shapes.get(end.name, ()), strict=False):
            if isinstance(size, int):
                dim.dim_value = size
    del model.graph.value_info[:]


def check_graph(model: onnx.ModelProto) -> int:
    """Check a graph whose only input is `[B, ...]`; return how many bytes of memory it needs for a position.

    Raises GraphError if it could do harm, or cannot be judged.
    """
    graph = model.graph
    for end in (*graph.input, *graph.output):
        if end.type.WhichOneof("value") != "tensor_type" or end.type.tensor_type.elem_type != TensorProto.FLOAT:
            raise GraphError(f"{_named(end.name)} is not a tensor of 32-bit floats")
    if graph.sparse_initializer:
        raise GraphError("it has sparse tensors, which are not supported")
    if len(graph.node) > MAX_NODES:
        raise GraphError(f"it has {len(graph.node)} nodes, more than {MAX_NODES}")
    if _has_unknown_fields(model):
        raise GraphError("it has fields that the installed version of the package onnx does not know")
    for tensor in graph.initializer:
        _check_tensor(tensor)
    for node in graph.node:
        _check_node(node)
    names = [each.name for each in (*graph.input, *graph.initializer)]
    names += [name for node in graph.node for name in node.output if name]
    if any(isinstance(name, bytes) for name in names):
        raise GraphError("it has names that are not text")
    if len(names) != len(set(names)):
        raise GraphError("it has two tensors of one name")
    sizes = {each.name: _num_bytes((each.data_type, tuple(each.dims))) for each in graph.initializer}
    uses = Counter(name for node in graph.node for name in node.input if name in sizes)
    if sum((count - 1) * sizes[name] for name, count in uses.items()) > MAX_COPIED_BYTES:
        limit = MAX_COPIED_BYTES >> 20
        raise GraphError(f"its weights, counted as often as they are used again, have more than {limit} MB")
    costs = {}
    for batch in (1, MAX_BATCH):
        costs[batch] = _cost(model, _infer(model, batch))
        if costs[batch].num_bytes > batch * MAX_POSITION_BYTES:
            raise GraphError(f"it needs more than {MAX_POSITION_BYTES >> 20} MB of memory for a position")
        if costs[batch].work > batch * MAX_POSITION_WORK:
            raise GraphError(f"it needs more than {MAX_POSITION_WORK:.1e} multiplications for a position")
    return math.ceil(costs[MAX_BATCH].num_bytes / MAX_BATCH)


def _check_tensor(tensor: TensorProto) -> None:
    """Raise GraphError unless the file holds as many elements of a tensor of constants as its shape declares."""
    name, count = _named(tensor.name), math.prod(tensor.dims)
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise GraphError("it stores weights in other files, which is not supported")
    if tensor.data_type not in ITEM_BYTES:
        raise GraphError(f"{name} has elements of type {tensor.data_type}, which is not supported")
    fields: dict[int, Sequence[float]] = {TensorProto.FLOAT: tensor.float_data, TensorProto.INT64: tensor.int64_data}
    held: float = len(fields.get(tensor.data_type, tensor.int32_data))
    if tensor.HasField("raw_data"):
        held += len(tensor.raw_data) / ITEM_BYTES[tensor.data_type]
    if min(tensor.dims, default=1) < 1 or held != count:
        raise GraphError(f"{name} has {held:g} elements, but its shape is {plain(str(list(tensor.dims)), 80)}")


def _check_node(node: NodeProto) -> None:
    """Raise GraphError for an operator or an attribute that is not supported."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in OPERATORS:
        name = f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)
        raise GraphError(f"it uses the operator {plain(name, 80)}, which is not supported")
    for attribute in node.attribute:
        integers: Iterable[int] = ()
        match attribute.type:
            case AttributeProto.FLOAT | AttributeProto.FLOATS | AttributeProto.STRING:
                pass
            case AttributeProto.INT:
                integers = (attribute.i,)
            case AttributeProto.INTS:
                integers = attribute.ints
            case AttributeProto.TENSOR if node.op_type == "Constant":
                _check_tensor(attribute.t)
            case _:
                raise GraphError(f"a node {node.op_type} has an attribute of a kind that is not supported")
        if any(abs(integer) > MAX_INTEGER for integer in integers) or attribute.ref_attr_name:
            raise GraphError(f"a node {node.op_type} has an attribute that is out of bounds")


def _infer(model: onnx.ModelProto, batch: int) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return the type and the shape of every tensor when `batch` positions are evaluated.

    The shapes that the file declares between its input and its constants are ignored. The weights are left out, since
    only integers have an influence on shapes.
    """
    bare = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    graph, found = bare.graph, {}
    graph.name = "checked"
    graph.node.extend(model.graph.node)
    for tensor in model.graph.initializer:
        found[tensor.name] = (tensor.data_type, tuple(tensor.dims))
        if tensor.data_type == TensorProto.INT64:
            graph.initializer.append(tensor)
        else:
            graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    graph.input.extend(model.graph.input)
    graph.input[0].type.tensor_type.shape.dim[0].dim_value = batch
    for output in model.graph.output:
        graph.output.add(name=output.name).type.tensor_type.elem_type = TensorProto.FLOAT
    try:
        inferred = infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True).graph
    except Exception as error:  # onnx has an error of its own
        raise GraphError(f"the sizes of its tensors cannot be inferred: {plain(str(error), 200)}") from error
    for each in (*inferred.input, *inferred.output, *inferred.value_info):
        kind = each.type.tensor_type
        sizes = tuple(_size(dim) for dim in kind.shape.dim) if kind.HasField("shape") else ("?",)
        if any(not isinstance(size, int) or size < 1 for size in sizes):
            raise GraphError(f"the size of {_named(each.name)} is not known before it is computed")
        found[each.name] = (kind.elem_type, tuple(int(size) for size in sizes))
    return found


class _Cost(NamedTuple):
    """The cost of one evaluation.

    num_bytes: memory for the tensors that are needed at the same time, without weights.
    work:      number of multiplications.
    """

    num_bytes: int
    work: int


def _cost(model: onnx.ModelProto, tensors: dict[str, tuple[int, tuple[int, ...]]]) -> _Cost:
    """Return the cost of an evaluation. Raises GraphError for an integer that is computed, or a node out of order."""
    last_use = {name: at for at, node in enumerate(model.graph.node) for name in (*node.input, *node.output)}
    made = {each.name for each in (*model.graph.input, *model.graph.initializer)}
    alive = {model.graph.input[0].name}
    kept = {each.name for each in model.graph.output}
    largest, work = 0, 0
    for at, node in enumerate(model.graph.node):
        if missing := [name for name in node.input if name and name not in made]:
            raise GraphError(f"{_named(missing[0])} is used before it is computed")
        outputs = [name for name in node.output if name]
        if unknown := [name for name in outputs if name not in tensors]:
            raise GraphError(f"the size of {_named(unknown[0])} is not known before it is computed")
        computed = {tensors[name][0] for name in outputs}
        is_known = computed <= ITEM_BYTES.keys() and TensorProto.INT32 not in computed
        if not is_known or (computed & {*QUANTISED} and node.op_type != "QuantizeLinear"):
            raise GraphError(f"a node {node.op_type} computes elements of a type that is not supported")
        integers = any(tensors[name][0] == TensorProto.INT64 for name in outputs)
        if integers and node.op_type not in INTEGER_OPERATORS:
            raise GraphError(f"a node {node.op_type} computes integers, which is not supported")
        made.update(outputs)
        alive.update(outputs)
        largest = max(largest, sum(_num_bytes(tensors[name]) for name in alive))
        inputs = [name for name in node.input if name]
        work += _work(node, [tensors[name][1] for name in inputs], [tensors[name][1] for name in outputs])
        alive -= {name for name in alive if last_use[name] <= at and name not in kept}
    return _Cost(largest, work)


def _work(node: NodeProto, inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> int:
    """Return the number of multiplications of a node, with the shapes of its inputs and outputs."""
    computed = sum(math.prod(shape) for shape in outputs)
    attributes: dict[str, Any] = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    terms: dict[str, Callable[[], int]] = {
        "Conv": lambda: math.prod(inputs[1][1:]),
        "Gemm": lambda: inputs[0][0 if attributes.get("transA") else 1],
        "MatMul": lambda: inputs[0][-1],
        "AveragePool": lambda: math.prod(attributes["kernel_shape"]),
        "MaxPool": lambda: math.prod(attributes["kernel_shape"]),
    }
    if node.op_type in terms:
        return computed * terms[node.op_type]()
    return computed + sum(math.prod(shape) for shape in inputs)


def _num_bytes(tensor: tuple[int, tuple[int, ...]]) -> int:
    return ITEM_BYTES[tensor[0]] * math.prod(tensor[1])


def _has_unknown_fields(message: Message) -> bool:
    """Return whether a message has a field that is not known here, and that ONNX Runtime might know."""
    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type:
            inner = value if isinstance(value, Sequence) else [value]
            if any(_has_unknown_fields(each) for each in inner):
                return True
    return False


def _size(dim: TensorShapeProto.Dimension) -> int | str:
    return int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"


def _named(name: str) -> str:
    return f"the tensor {plain(repr(name), 80)}"
