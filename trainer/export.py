"""Export from torch to ONNX, in 32 bits and, for self-play, in 8. A model is compared before it may be published.

The 8-bit form is faster on processors with VNNI. The trunk, all that both heads use, and the first convolution of each
head compute with 8-bit integers: weights signed with a scale for each channel, activations unsigned with a scale for
each tensor (Jacob et al., 2018, equation 1). The rest of the heads keeps its 32 bits.
"""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import Tensor, nn

from plyzero import __version__
from plyzero.errors import FailedError
from plyzero.network.onnx_network import ENCODING, EXTRA, INPUT, INT8, LOGITS, PRECISION, WDL, Network, run_on_cpu
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import first_decision
from plyzero.run.directory import KEY, Run, RunId
from plyzero.run.models import digest_of
from plyzero.search.evaluators import Evaluation
from plyzero.settings import Settings
from plyzero.trainer.network import make_network

TOLERANCE: Final = 1e-4
"""Largest allowed difference between torch and ONNX Runtime: of any logit or probability, and, where logits are larger
than 1, as a share of the largest one. Rounding errors grow with the logits, to about 1e-6 of them in 32 bits."""

MAX_PROBABILITY_TOLERANCE: Final = 0.05  # largest allowed difference of a probability, however large the logits are
MAX_POLICY_KL: Final = 0.02  # largest mean KL divergence of the policies of a usable 8-bit form, in nats
MAX_VALUE_ERROR: Final = 0.05  # largest mean difference of their values, which go from -1 to 1

log = logging.getLogger(__name__)


class ExportError(FailedError):
    """The model cannot be exported, or its outputs differ from those of torch, so it must not be published."""


def export(network: nn.Module, game: GameSpec, observations: NDArray[np.float32], *, metadata: dict[str, str]) -> bytes:
    """Return `network` as an ONNX file with `metadata`.

    Raises ExportError if torch cannot export it, ONNX Runtime cannot run it, or the outputs of the two for
    `observations`, `[n, C, H, W]`, differ by more than TOLERANCE.
    """
    with_probabilities = _WithProbabilities(network).to("cpu").eval()
    metadata = {**metadata, "encoding": ENCODING, "game": game.identity}
    try:
        content = _to_onnx(with_probabilities, torch.from_numpy(observations[:2]), metadata)
        Network(content, game, label="the exported model")  # raises an error if a worker would refuse it
        exported_logits, exported_wdl = run_on_cpu(content, observations)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # torch, onnx and ONNX Runtime raise errors of many types
        raise ExportError(f"the export fails: {_first_line(error)}") from error
    with torch.no_grad():
        logits, wdl_logits, *others = network(torch.from_numpy(observations))
    wdl = torch.softmax(wdl_logits, dim=1)
    wdl_tolerance = min(MAX_PROBABILITY_TOLERANCE, _tolerance(wdl_logits))
    _compare("logits", exported_logits, logits, allowed=_tolerance(logits))
    _compare("probabilities", exported_wdl[:, :3], wdl, allowed=wdl_tolerance)
    if exported_wdl.shape[1] > 3:
        _compare("scores", exported_wdl[:, 3], others[0][:, 0], allowed=_tolerance(others[0]))
    return content


def is_finite(network: nn.Module, observations: NDArray[np.float32] | None = None) -> bool:
    """Return whether all weights of `network` are finite, and its outputs for `observations` if they are given."""
    if not all(bool(torch.isfinite(values).all()) for values in network.state_dict().values()):
        return False
    if observations is None:
        return True
    device = next(network.parameters()).device
    with torch.no_grad():
        outputs = network.eval()(torch.from_numpy(observations).to(device))
    return all(bool(torch.isfinite(each).all()) for each in outputs)


def untrained(run: Run) -> bytes:
    """Return the ONNX file of the network of `run` before its first step, a baseline for trained models."""
    torch.manual_seed(run.seed)
    network = make_network(run.settings.network, run.game.start)
    metadata = describe_model(run.settings, step=0, positions=0, run_id=run.id)
    observation = np.asarray(first_decision(run.game.start).observe(), np.float32)
    return export(network, run.game, observation[np.newaxis], metadata=metadata)


def describe_model(settings: Settings, *, step: int, positions: int, run_id: RunId | None = None) -> dict[str, str]:
    """Return the metadata of a model with `settings`, after `step` steps and `positions` generated.

    run_id: of the run whose model it is; None = of none.
    """
    return {
        "step": str(step),
        "positions": str(positions),
        "settings": settings.model_dump_json(),
        "plyzero": __version__,
        **({KEY: run_id.text} if run_id else {}),
    }


def _tolerance(logits: Tensor) -> float:
    return TOLERANCE * max(1.0, float(logits.abs().max()))


def _compare(name: str, exported: NDArray[np.float32], expected: Tensor, *, allowed: float) -> None:
    difference = float(np.abs(exported - expected.numpy()).max())
    if not difference < allowed:
        raise ExportError(f"the {name} of torch and ONNX Runtime differ by {difference:.2e}, more than {allowed:.1e}")


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or ['without a message'])[0]}"


class _WithProbabilities(nn.Module):
    """A network whose outputs are those of published models: probabilities of win, draw and loss, a board by tanh."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observations: Tensor) -> tuple[Tensor, ...]:
        logits, wdl, *others = self.network(observations)
        return logits, torch.softmax(wdl, dim=1), *(torch.tanh(each) if each.ndim == 4 else each for each in others)


def _to_onnx(network: nn.Module, example: Tensor, metadata: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with torch.no_grad():
        others = [EXTRA[each.ndim] for each in network(example)[2:]]
    with warnings.catch_warnings():
        # The deprecated exporter is used because it takes 0.03 s instead of seconds and folds the normalisation.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (example,),
            file,  # type: ignore[arg-type]  # a file object is accepted
            input_names=[INPUT],
            output_names=[LOGITS, WDL, *others],
            dynamic_axes={name: {0: "batch"} for name in (INPUT, LOGITS, WDL, *others)},
            dynamo=False,
        )
    model = onnx.load_from_string(file.getvalue())
    for key, value in sorted(metadata.items()):
        model.metadata_props.add(key=key, value=value)
    return bytes(model.SerializeToString())


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
    A network that cannot be quantised has no 8-bit form; the reason is logged.
    """
    if run.settings.selfplay.precision == "fp32":
        return Forms(content)
    try:
        int8 = quantise(content, seen)
        Network(int8, run.game, label="the 8-bit form")  # raises an error if a worker would refuse it
        compared = seen if compared is None else compared
        exact = run_on_cpu(content, compared)
        rounded = run_on_cpu(int8, compared)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # onnx and ONNX Runtime raise errors of many types
        log.info("no 8-bit form: %s", _first_line(error))
        return Forms(content)
    divergence, difference = compare(exact, rounded)
    report = {"int8_policy_kl": round(divergence, 5), "int8_value_error": round(difference, 5)}
    if not (divergence <= MAX_POLICY_KL and difference <= MAX_VALUE_ERROR):
        log.info(
            "no 8-bit form: it changes policies by %.3f nats and values by %.3f, more than %g or %g",
            divergence,
            difference,
            MAX_POLICY_KL,
            MAX_VALUE_ERROR,
        )
        return Forms(content, None, report)
    return Forms(with_metadata(content, INT8, digest_of(int8)), int8, report)


def quantise(content: bytes, seen: NDArray[np.float32]) -> bytes:
    """Return the 8-bit form of the ONNX file `content`, with scales from the positions `seen`, `[n, C, H, W]`.

    It has the same inputs, outputs and metadata. Errors are those of onnx and ONNX Runtime.
    """
    model = onnx.load_from_string(content)
    _remove_identities(model)
    root = logging.getLogger()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "int8.onnx"
        root.addFilter(_has_logger)
        try:
            quantize_static(
                model,
                path,
                _Positions(seen),
                quant_format=QuantFormat.QDQ,  # uses only standard operators, which onnx_graph can check
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                per_channel=True,
                nodes_to_exclude=_nodes_in_32_bits(model),
            )
        finally:
            root.removeFilter(_has_logger)
        return with_metadata(path.read_bytes(), PRECISION, "int8")


def _has_logger(record: logging.LogRecord) -> bool:
    return record.name != "root"  # ONNX Runtime gives advice for other models through the root logger


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
    p, q = (torch.tensor(each.logits, dtype=torch.float64).log_softmax(dim=1) for each in (exact, rounded))
    divergence = nn.functional.kl_div(q, p, reduction="batchmean", log_target=True)
    exact_values, rounded_values = (each.wdl[:, 0] - each.wdl[:, 2] for each in (exact, rounded))
    return float(divergence), float(np.abs(exact_values - rounded_values).mean())


def _nodes_in_32_bits(model: onnx.ModelProto) -> list[str]:
    """Return the names of the nodes of the heads, without convolutions of the trunk's output that a ReLU follows.

    The trunk is what logits and probabilities both need. Nodes without a name are given one.
    """
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

    trunk = needed(LOGITS) & needed(WDL)
    either = needed(LOGITS) | needed(WDL)
    first: set[str] = set()
    for relu in model.graph.node:
        node = made.get(relu.input[0]) if relu.op_type == "Relu" and relu.name in either else None
        if node and node.op_type == "Conv" and node.input[0] in made and made[node.input[0]].name in trunk:
            first |= {node.name, relu.name}
    return sorted({node.name for node in model.graph.node} - trunk - first)


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

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._batches, None)
