"""The 8-bit form of a model, with which self-play evaluates faster on processors with VNNI.

The trunk, all that both heads use, computes with 8-bit integers: weights signed with a scale for each channel,
activations unsigned with a scale for each tensor (Jacob et al., 2018, equation 1). The heads keep their 32 bits.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from plyzero.network.onnx_network import INPUT, INT8, LOGITS, PRECISION, WDL, Network, run_on_cpu
from plyzero.run.directory import Run
from plyzero.run.models import digest_of
from plyzero.search.evaluators import Evaluation

MAX_POLICY_KL: Final = 0.02
"""Largest mean KL divergence of the policies of the two forms with which the 8-bit one is used, in nats."""

MAX_VALUE_ERROR: Final = 0.05
"""Largest mean difference of their values, which go from -1 to 1."""

log = logging.getLogger(__name__)


class Forms(NamedTuple):
    """A model in both forms, and how much they differ on the positions that were compared.

    content: its ONNX file, which names the 8-bit form if it may be used.
    int8:    the ONNX file of the 8-bit form, None if it may not be used.
    report:  `int8_policy_kl`, the mean divergence of the policies over all actions, in nats, and `int8_value_error`,
             the mean difference of the values; empty if there is no 8-bit form.
    """

    content: bytes
    int8: bytes | None = None
    report: Mapping[str, float] = MappingProxyType({})


def make_forms(
    run: Run, content: bytes, seen: NDArray[np.float32], compared: NDArray[np.float32] | None = None
) -> Forms:
    """Return the ONNX file `content` with an 8-bit form, if the run's self-play may use one and it is exact enough.

    seen:     positions by which the scales are chosen, `[n, C, H, W]`.
    compared: others, `[n, C, H, W]`, on which the two forms are compared; without them `seen`.
    A network that cannot be quantised has no 8-bit form; the log says why.
    """
    if run.settings.selfplay.precision == "fp32":
        return Forms(content)
    try:
        int8 = quantise(content, seen)
        Network(int8, run.game, label="the 8-bit form")  # raises an error if a worker would refuse it
        exact, rounded = (run_on_cpu(each, seen if compared is None else compared) for each in (content, int8))
    except (OSError, MemoryError):
        raise
    except Exception as error:  # onnx and ONNX Runtime raise errors of many types
        log.info("no 8-bit form: %s: %s", type(error).__name__, (str(error).splitlines() or [""])[0])
        return Forms(content)
    divergence, difference = compare(exact, rounded)
    report = {"int8_policy_kl": round(divergence, 5), "int8_value_error": round(difference, 5)}
    if not (divergence <= MAX_POLICY_KL and difference <= MAX_VALUE_ERROR):
        log.info(
            "no 8-bit form: it changes policies by %.3f nats and values by %.3f, more than %g or %g",
            *(divergence, difference, MAX_POLICY_KL, MAX_VALUE_ERROR),
        )
        return Forms(content, None, report)
    return Forms(with_metadata(content, INT8, digest_of(int8)), int8, report)


def quantise(content: bytes, seen: NDArray[np.float32]) -> bytes:
    """Return the 8-bit form of the ONNX file `content`, with scales from the positions `seen`, `[n, C, H, W]`.

    It has the same inputs, outputs and metadata. Errors are those of onnx and ONNX Runtime.
    """
    model = onnx.load_from_string(content)
    _remove_identities(model)
    with tempfile.TemporaryDirectory() as directory, _silent_root_logger():
        path = Path(directory) / "int8.onnx"
        quantize_static(
            model,
            path,
            _Positions(seen),
            quant_format=QuantFormat.QDQ,  # of standard operators only, which onnx_graph can check
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            nodes_to_exclude=_nodes_of_heads(model),
        )
        return with_metadata(path.read_bytes(), PRECISION, "int8")


@contextmanager
def _silent_root_logger() -> Iterator[None]:
    """Drop what is logged without a logger of its own, as ONNX Runtime's advice for other models is."""
    root = logging.getLogger()
    root.addFilter(_has_logger)
    try:
        yield
    finally:
        root.removeFilter(_has_logger)


def _has_logger(record: logging.LogRecord) -> bool:
    return record.name != "root"


def _remove_identities(model: onnx.ModelProto) -> None:
    """Use weights by their own names. The exporter stores equal ones once, and ONNX Runtime quantises no copies."""
    originals: dict[str, str] = {}
    weights = {each.name for each in model.graph.initializer}
    for node in list(model.graph.node):
        if node.op_type == "Identity" and node.input[0] in weights:
            originals[node.output[0]] = node.input[0]
            model.graph.node.remove(node)
    for node in model.graph.node:
        node.input[:] = [originals.get(name, name) for name in node.input]


def compare(exact: Evaluation, rounded: Evaluation) -> tuple[float, float]:
    """Return the mean KL divergence of the policies, over all actions, in nats, and the mean difference of the values.

    Of distributions p and q it is the sum of p log(p / q) (Kullback and Leibler, 1951).
    """
    p, q = (_log_softmax(each.logits) for each in (exact, rounded))
    values = [each.wdl[:, 0] - each.wdl[:, 2] for each in (exact, rounded)]
    return float((np.exp(p) * (p - q)).sum(axis=1).mean()), float(np.abs(values[0] - values[1]).mean())


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _nodes_of_heads(model: onnx.ModelProto) -> list[str]:
    """Return the names of the nodes that only one of the outputs needs. Nodes without a name are given one."""
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node {number}"
    made = {name: node for node in model.graph.node for name in node.output}

    def needed(output: str) -> set[str]:
        found: set[str] = set()
        missing = [output]
        while missing:
            node = made.get(missing.pop())
            if node is not None and node.name not in found:
                found.add(node.name)
                missing += node.input
        return found

    return sorted(needed(LOGITS) ^ needed(WDL))


def with_metadata(content: bytes, key: str, value: str) -> bytes:
    """Return an ONNX file with `value` under a key of its metadata."""
    model = onnx.load_from_string(content)
    kept = [each for each in model.metadata_props if each.key != key]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    model.metadata_props.add(key=key, value=value)
    return bytes(model.SerializeToString(deterministic=True))


class _Positions(CalibrationDataReader):  # type: ignore[misc]  # ONNX Runtime has no types
    """Hands all positions to ONNX Runtime at once."""

    def __init__(self, observations: NDArray[np.float32]) -> None:
        self._batches = iter([{INPUT: observations}])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._batches, None)
