"""Whether a trainer can continue: the newest state is of the network that the settings name, and of this run."""

from __future__ import annotations

import torch

from plyzero.run.directory import Run
from trainer.learner import Learner, load_weights
from trainer.parts import make_parts
from trainer.state import load_state


def check_resumes(run: Run) -> None:
    """Raise UserError if the trainer of `run` could not continue from its newest state. Nothing is written."""
    if state := load_state(run.trainer):
        parts = make_parts(run.game, run.settings)
        load_weights(Learner(parts.network, parts.loss, run.settings.trainer, torch.device("cpu")), state, run)
