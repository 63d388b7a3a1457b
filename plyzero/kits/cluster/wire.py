"""The messages of the Open Inference Protocol, version 2, over gRPC, and the tensors in them.

The messages are described here, field by field, because generated code works only with the versions of protobuf that it
was generated for. Only field numbers and types are sent, so any client of the protocol understands them.
https://github.com/kserve/open-inference-protocol (Apache-2.0)
"""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from numpy.typing import NDArray

from plyzero.errors import UserError, plain, shown
from plyzero.network.onnx_network import INPUT, LOGITS, WDL
from plyzero.rules.game import Game
from plyzero.run.directory import RunDirectory
from plyzero.search.evaluators import MAX_OBSERVATION, Evaluation, is_evaluable

SERVICE: Final = "inference.GRPCInferenceService"
"""Name of the service."""

METHODS: Final = ("ServerLive", "ServerReady", "ModelReady", "ModelMetadata", "ModelInfer")
"""Its methods; their messages are <method>Request and <method>Response."""

MAX_MESSAGE_BYTES: Final = 1 << 28
"""Largest message that a server or a client accepts."""

PRECISIONS: Final[dict[str, np.dtype[np.floating]]] = {"FP16": np.dtype("<f2"), "FP32": np.dtype("<f4")}
"""Accepted types of a server's outputs, by their names in the protocol."""

BITS: Final = "UINT8"
"""Type of an input of bits, the highest first; each position takes whole bytes."""

FLOATS: Final = "FP32"
"""Type of an input of numbers."""

SHAPE: Final = "observation_shape"
"""Optional request parameter of `plyzero evaluator`: the client's observation shape, such as 2x6x7, which bits do not
show."""

FENCE: Final = "fence"
STEP: Final = "step"
RUN: Final = "run"
"""Response parameters: the model that has evaluated, see plyzero.run.models.ModelName, and the id of its run."""

_FIELDS: Final[dict[str, dict[str, tuple[int, str]]]] = {
    "ServerLiveRequest": {},
    "ServerLiveResponse": {"live": (1, "bool")},
    "ServerReadyRequest": {},
    "ServerReadyResponse": {"ready": (1, "bool")},
    "ModelReadyRequest": {"name": (1, "string"), "version": (2, "string")},
    "ModelReadyResponse": {"ready": (1, "bool")},
    "ModelMetadataRequest": {"name": (1, "string"), "version": (2, "string")},
    "ModelMetadataResponse": {
        "name": (1, "string"),
        "versions": (2, "repeated string"),
        "platform": (3, "string"),
        "inputs": (4, "repeated TensorMetadata"),
        "outputs": (5, "repeated TensorMetadata"),
    },
    "TensorMetadata": {"name": (1, "string"), "datatype": (2, "string"), "shape": (3, "repeated int64")},
    "ModelInferRequest": {
        "model_name": (1, "string"),
        "model_version": (2, "string"),
        "id": (3, "string"),
        "parameters": (4, "map InferParameter"),
        "inputs": (5, "repeated TensorMetadata"),  # in the protocol with further fields
        "raw_input_contents": (7, "repeated bytes"),
    },
    "ModelInferResponse": {
        "model_name": (1, "string"),
        "model_version": (2, "string"),
        "id": (3, "string"),
        "parameters": (4, "map InferParameter"),
        "outputs": (5, "repeated TensorMetadata"),
        "raw_output_contents": (6, "repeated bytes"),
    },
    "InferParameter": {"bool_param": (1, "bool"), "int64_param": (2, "int64"), "string_param": (3, "string")},
}
"""Message -> field -> number and type."""


def _make_messages() -> dict[str, type[Message]]:
    """Return name -> class of all messages, in a pool of their own, apart from those of other packages."""
    file = descriptor_pb2.FileDescriptorProto(name="plyzero/kits/cluster.proto", package="inference", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    one_of = next(each for each in file.message_type if each.name == "InferParameter")
    one_of.oneof_decl.add(name="parameter_choice")
    for field in one_of.field:
        field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = {}
    for name in _FIELDS:
        descriptor = pool.FindMessageTypeByName(f"inference.{name}")
        classes[name] = message_factory.GetMessageClass(descriptor)
    return classes


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    label, _, type_name = kind.rpartition(" ")
    field = message.field.add(name=name, number=number)
    field.label = field.LABEL_REPEATED if label else field.LABEL_OPTIONAL
    if label == "map":
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, type_name)
        type_name = f"{message.name}.{entry.name}"
    scalar = getattr(field, f"TYPE_{type_name.upper()}", None)
    field.type = scalar or field.TYPE_MESSAGE
    if scalar is None:
        field.type_name = f".inference.{type_name}"


MESSAGES: Final = _make_messages()
"""The classes of the messages by their names."""


def model_name(run: RunDirectory) -> str:
    """Return the name of the models of a run in servers, such as `connect-four_v1_0123456789abcdef`.

    It has only letters, digits and `_.-`, so that it can be the name of a directory and a part of a URL. A server of
    another run has no model of this name.
    """
    assert run.id
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", run.identity).strip("_.") + f"_{run.id.text}"


def input_types(start: Game) -> list[str]:
    """Return the possible types of a game's observations in messages, the best first: BITS if they are `bool`."""
    return [BITS, FLOATS] if np.dtype(start.observation_dtype).kind == "b" else [FLOATS]


def input_shape(start: Game, datatype: str) -> list[int]:
    """Return the shape of one observation that is sent as `datatype`."""
    shape = start.observation_shape
    return [-(-math.prod(shape) // 8)] if datatype == BITS else list(shape)


def largest_request(start: Game, positions: int) -> int:
    """Return the size of a ModelInferRequest with this number of positions, in bytes; at most MAX_MESSAGE_BYTES."""
    datatype = input_types(start)[0]
    numbers = positions * math.prod(input_shape(start, datatype))
    return min(MAX_MESSAGE_BYTES, (1 << 16) + numbers * _item_bytes(datatype))


def _item_bytes(datatype: str) -> int:
    return 1 if datatype == BITS else 4


def largest_call(run: RunDirectory, max_batch: int) -> int:
    """Return the largest number of positions in one call that a server with batches of `max_batch` must accept."""
    return max(max_batch, run.settings.selfplay.parallel_games)


def shape_text(start: Game) -> str:
    """Return the observation shape of a game in the form of the parameter SHAPE."""
    return "x".join(map(str, start.observation_shape))


def describe(start: Game) -> tuple[list[Message], list[Message]]:
    """Return the metadata of input and outputs in `plyzero evaluator`; -1 is the number of positions."""
    tensor = MESSAGES["TensorMetadata"]
    datatype = input_types(start)[0]
    inputs = [tensor(name=INPUT, datatype=datatype, shape=[-1, *input_shape(start, datatype)])]
    outputs = [
        tensor(name=LOGITS, datatype=FLOATS, shape=[-1, start.num_actions]),
        tensor(name=WDL, datatype=FLOATS, shape=[-1, 3]),
    ]
    return inputs, outputs


def find_input_type(metadata: Message, start: Game) -> str | None:
    """Return the type of observations that a server accepts, by its ModelMetadataResponse; None if its game is another.

    The types of its outputs must be in PRECISIONS.
    """
    inputs = [(each.name, each.datatype, list(each.shape)[1:]) for each in metadata.inputs]
    outputs = {each.name: list(each.shape)[1:] for each in metadata.outputs if each.datatype in PRECISIONS}
    if outputs != {LOGITS: [start.num_actions], WDL: [3]}:
        return None
    for datatype in input_types(start):
        if inputs == [(INPUT, datatype, input_shape(start, datatype))]:
            return datatype
    return None


def pack_observations(observations: NDArray[np.float32], datatype: str) -> bytes:
    """Return the bytes of observations, `[n, C, H, W]` float32, in a message."""
    if datatype == BITS:
        return np.packbits(observations.reshape(len(observations), -1) != 0, axis=1).tobytes()
    return np.ascontiguousarray(observations, "<f4").tobytes()


def unpack_observations(request: Message, start: Game) -> NDArray[np.float32]:
    """Return the observations in a ModelInferRequest, `[n, C, H, W]` float32.

    Raises UserError if they do not belong to the game that begins with `start`, or `check_observations` refuses them.
    """
    datatype = input_types(start)[0]
    position = input_shape(start, datatype)
    wanted = f"one input {INPUT} of type {datatype} and shape [n, {str(position)[1:]}"
    if len(request.inputs) != 1 or len(request.raw_input_contents) != 1:
        raise UserError(
            f"expected {wanted} in raw_input_contents, got {len(request.inputs)} inputs and "
            f"{len(request.raw_input_contents)} contents"
        )
    found, content = request.inputs[0], request.raw_input_contents[0]
    shape = list(found.shape)
    if (found.name, found.datatype) != (INPUT, datatype) or shape[1:] != position or shape[0] < 1:
        raise UserError(f"expected {wanted}, got {shown(found.name)} of type {shown(found.datatype)} and shape {shape}")
    size = math.prod(shape) * _item_bytes(datatype)
    if len(content) != size:
        raise UserError(f"expected {size} bytes for shape {shape}, got {len(content)}")
    if datatype == BITS:
        bits = np.frombuffer(content, np.uint8).reshape(shape)
        unpacked = np.unpackbits(bits, axis=1, count=math.prod(start.observation_shape))
        return unpacked.astype(np.float32).reshape(shape[0], *start.observation_shape)
    observations = np.frombuffer(content, "<f4").reshape(shape).astype(np.float32)
    check_observations(observations)
    return observations


def check_observations(observations: NDArray[np.float32]) -> None:
    """Raise UserError if a client's observations have NaN, or numbers so large that a network may fail."""
    if not is_evaluable(observations):
        limit = f"{MAX_OBSERVATION:g}"
        raise UserError(f"expected observations of numbers between -{limit} and {limit}, got some that are not")


def pack_evaluation(response: Message, evaluation: Evaluation) -> None:
    """Add an evaluation to a ModelInferResponse."""
    for name, values in ((LOGITS, evaluation.logits), (WDL, evaluation.wdl[:, :3])):
        response.outputs.add(name=name, datatype=FLOATS, shape=values.shape)
        response.raw_output_contents.append(values.astype("<f4").tobytes())


def unpack_evaluation(response: Message, start: Game, positions: int) -> Evaluation:
    """Return the evaluation of `positions` positions in a ModelInferResponse; its outputs may have any order.

    Raises UserError if its outputs are not those of the game that begins with `start`. Their values are not checked.
    """
    expected = {LOGITS: [positions, start.num_actions], WDL: [positions, 3]}
    values = {}
    for output, content in zip(response.outputs, response.raw_output_contents, strict=False):
        dtype = PRECISIONS.get(output.datatype)
        shape = list(output.shape)
        if dtype and shape == expected.get(output.name) and len(content) == dtype.itemsize * math.prod(shape):
            values[output.name] = np.frombuffer(content, dtype).astype(np.float32).reshape(shape)
    if values.keys() != expected.keys():
        found = {each.name: f"{each.datatype} {list(each.shape)}" for each in response.outputs}
        sizes = [len(content) for content in response.raw_output_contents]
        types = " or ".join(PRECISIONS)
        raise UserError(f"its outputs are {plain(str(found), 200)} in {sizes} bytes, expected {types}, {expected}")
    return Evaluation(values[LOGITS], values[WDL])
