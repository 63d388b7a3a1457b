"""A process of `--devices` that also writes its gradients and weights after every step where a test can read them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from plyzero.kits.cluster import data_parallel
from plyzero.trainer.learner import Learner
from plyzero.trainer.window import Batch

ROOT = Path(__file__).parent.parent.parent


def observe_ranks(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the processes that are started from now on write what `observed` reads."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.helpers.ranks import main; main({str(folder)!r})"
    )
    monkeypatch.setattr(data_parallel, "COMMAND", program)


def main(folder: str) -> None:
    learn = Learner.learn

    def observed_learn(learner: Learner, batch: Batch) -> NDArray[np.float64]:
        losses = learn(learner, batch)
        path = Path(folder) / f"{learner.step}.pt"
        torch.save(snapshot(learner), path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)
        return losses

    Learner.learn = observed_learn  # type: ignore[method-assign]
    data_parallel.run_rank()


def snapshot(learner: Learner) -> dict[str, dict[str, torch.Tensor]]:
    """The values that must be equal in all processes after a step; running averages need not be."""
    weights = dict(learner.network.named_parameters())
    return {
        "gradients": {name: each.grad.clone() for name, each in weights.items() if each.grad is not None},
        "weights": {name: each.detach().clone() for name, each in weights.items()},
        "averaged": {name: each.detach().clone() for name, each in learner.averaged.named_parameters()},
    }
