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

from plyzero.rules.catalog import GameSpec
from plyzero.run.directory import Run
from plyzero.search.evaluators import EvaluationBatch
from plyzero.search.onnx_network import ENCODING, INPUT, LOGITS, WDL, Network
from trainer.network import make_network

TOLERANCE: Final = 1e-4
"""Largest allowed difference of any logit or probability between torch and ONNX Runtime."""


class ExportError(Exception):
    """The outputs of the exported model differ from those of torch, so it must not be published."""


def export(network: nn.Module, game: GameSpec, observations: NDArray[np.float32], *, metadata: dict[str, str]) -> bytes:
    """Return `network` as an ONNX file with `metadata`.

    Raises ExportError if its outputs for `observations`, `[n, C, H, W]`, differ from those of torch by TOLERANCE.
    """
    with_probabilities = _WithProbabilities(network).to("cpu").eval()
    content = _to_onnx(with_probabilities, torch.from_numpy(observations[:2]), metadata | _identity(game))
    with torch.no_grad():
        logits, wdl = with_probabilities(torch.from_numpy(observations))
    exported = Network(content, game, label="the exported model")(EvaluationBatch(observations, list))
    difference = max(np.abs(exported.logits - logits.numpy()).max(), np.abs(exported.wdl - wdl.numpy()).max())
    if not difference < TOLERANCE:
        raise ExportError(f"torch and ONNX Runtime differ by {difference:.2e}, more than {TOLERANCE:.0e}")
    return content


def untrained(run: Run) -> bytes:
    """Return the ONNX file of the network of `run` before its first step, a baseline for trained models."""
    torch.manual_seed(run.seed)
    network = make_network(run.settings.network, run.game.start)
    metadata = {"step": "0", "settings": run.settings.model_dump_json()}
    return export(network, run.game, run.game.start.observe()[np.newaxis].astype(np.float32), metadata=metadata)


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
