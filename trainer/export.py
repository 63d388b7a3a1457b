"""Export from torch to ONNX. The exported model is compared with the original before it may be published."""

from __future__ import annotations

import io
import warnings
from typing import Final

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from plyzero import __version__
from plyzero.network.onnx_network import ENCODING, INPUT, LOGITS, WDL, Network, run_on_cpu
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import first_decision
from plyzero.run.directory import KEY, Run, RunId
from plyzero.settings import Settings
from trainer.network import make_network

TOLERANCE: Final = 1e-4
"""Largest allowed difference between torch and ONNX Runtime: of any logit or probability, and, where logits are larger
than 1, as a share of the largest one. Rounding errors grow with the logits, to about 1e-6 of them in 32 bits."""

MAX_PROBABILITY_TOLERANCE: Final = 0.05
"""Largest allowed difference of any probability, however large the logits are."""


class ExportError(Exception):
    """The model cannot be exported, or its outputs differ from those of torch, so it must not be published."""


def export(network: nn.Module, game: GameSpec, observations: NDArray[np.float32], *, metadata: dict[str, str]) -> bytes:
    """Return `network` as an ONNX file with `metadata`.

    Raises ExportError if torch cannot export it, ONNX Runtime cannot run it, or the outputs of the two for
    `observations`, `[n, C, H, W]`, differ by more than TOLERANCE.
    """
    with_probabilities = _WithProbabilities(network).to("cpu").eval()
    try:
        content = _to_onnx(with_probabilities, torch.from_numpy(observations[:2]), metadata | _identity(game))
        Network(content, game, label="the exported model")  # raises an error if a worker would refuse it
        exported_logits, exported_wdl = run_on_cpu(content, observations)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # torch, onnx and ONNX Runtime raise errors of many types
        raise ExportError(f"the export fails: {_first_line(error)}") from error
    with torch.no_grad():
        logits, wdl_logits = network(torch.from_numpy(observations))
    wdl = torch.softmax(wdl_logits, dim=1)
    _compare("logits", exported_logits, logits, allowed=_tolerance(logits))
    _compare("probabilities", exported_wdl, wdl, allowed=min(MAX_PROBABILITY_TOLERANCE, _tolerance(wdl_logits)))
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
    """A network whose second output is the probabilities of win, draw and loss, as published models have it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        logits, wdl = self.network(observations)
        return logits, torch.softmax(wdl, dim=1)


def _to_onnx(network: nn.Module, example: Tensor, metadata: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        # The deprecated exporter is used because it takes 0.03 s instead of seconds and folds the normalisation.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (example,),
            file,  # type: ignore[arg-type]  # a file object is accepted
            input_names=[INPUT],
            output_names=[LOGITS, WDL],
            dynamic_axes={name: {0: "batch"} for name in (INPUT, LOGITS, WDL)},
            dynamo=False,
        )
    model = onnx.load_from_string(file.getvalue())
    for key, value in sorted(metadata.items()):
        model.metadata_props.add(key=key, value=value)
    return bytes(model.SerializeToString())


def _identity(game: GameSpec) -> dict[str, str]:
    return {"encoding": ENCODING, "game": game.identity}
