"""The parts that a run may replace by its own: network, targets and loss, tried before training begins."""

from __future__ import annotations

import copy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from plyzero.errors import UserError, shown
from plyzero.ops.sizes import check_sizes
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import first_decision
from plyzero.rules.game import Game
from plyzero.rules.user_modules import load_object
from plyzero.settings import Settings
from plyzero.trainer.export import export
from plyzero.trainer.loss import Loss, Losses
from plyzero.trainer.network import make_network
from plyzero.trainer.targets import MakeTargets


class Parts(NamedTuple):
    """The network of a run, before its first step, and the functions that make its targets and its loss."""

    network: nn.Module
    make_targets: MakeTargets
    loss: Loss


def make_parts(game: GameSpec, settings: Settings) -> Parts:
    """Return the parts that `settings` name, for `game`.

    Raises UserError, in one sentence that names the setting, if one cannot be imported, or if network and loss cannot
    make a step from the initial position, or if the network cannot be exported; before that, if this machine lacks the
    memory to train.
    """
    check_sizes(game.start, settings, trainer=True)
    network_name = settings.network.module
    targets_name = settings.trainer.targets
    with _name_in_errors("network.module", network_name):
        network = make_network(settings.network, game.start)
    with _name_in_errors("trainer.targets", targets_name):
        make_targets = load_object(targets_name)
    with _name_in_errors("trainer.loss", settings.trainer.loss):
        loss = load_object(settings.trainer.loss)
    parts = Parts(network, make_targets, loss)
    _try_step(parts, game, settings)
    return parts


def _try_step(parts: Parts, game: GameSpec, settings: Settings) -> None:
    """Make one step with three times the initial position, on a copy of the network, and export that copy."""
    start = first_decision(game.start)
    observations = np.stack([np.asarray(start.observe(), np.float32)] * 3)
    legal = torch.zeros(3, start.num_actions, dtype=torch.bool)
    legal[:, list(start.legal_actions())] = True
    with _name_in_errors("network.module", settings.network.module):
        network = copy.deepcopy(parts.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        outputs = network.train()(torch.from_numpy(observations).contiguous(memory_format=torch.channels_last))
        _check_outputs(outputs, start)
    with _name_in_errors("trainer.loss", settings.trainer.loss):
        policy = legal / legal.sum(dim=1, keepdim=True)
        wdl = torch.full((3, 3), 1 / 3)
        losses = parts.loss(*outputs[:2], legal=legal, policy=policy, wdl=wdl)
        if not isinstance(losses, Losses) or not all(isinstance(each, Tensor) and each.ndim == 0 for each in losses):
            raise UserError("expected trainer.loss.Losses of three tensors without dimensions")
        losses.total.backward()  # type: ignore[no-untyped-call]
    with _name_in_errors("trainer.schedule", settings.trainer.schedule):
        rate = load_object(settings.trainer.schedule)(0, settings.trainer)
        if not (isinstance(rate, float) and 0 <= rate < float("inf")):
            raise UserError(f"expected a learning rate, a finite float of at least 0, got {shown(rate)}")
    with _name_in_errors("trainer.optimizer", settings.trainer.optimizer):
        optimiser = load_object(settings.trainer.optimizer)(network.parameters(), settings.trainer)
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise UserError(f"expected a torch.optim.Optimizer, got {type(optimiser).__name__}")
    with _name_in_errors("network.module", settings.network.module):
        export(network, game, observations, metadata={})


def _check_outputs(outputs: object, start: Game) -> None:
    """Raise UserError if `outputs` of a network, for three positions, are not policy logits and WDL logits.

    After them the score and the final board may follow, if the game has them.
    """
    if not isinstance(outputs, tuple) or not all(isinstance(each, Tensor) for each in outputs):
        raise UserError(f"forward() returned {type(outputs).__name__}, expected a tuple of two tensors")
    found = [tuple(each.shape) for each in outputs]
    expected = [(3, start.num_actions), (3, 3)]
    score = [(3, 2)] if start.max_score else []
    board = [(3, start.final_planes, *start.observation_shape[1:])] if start.final_planes else []
    if found not in (expected, expected + score, expected + board, expected + score + board):
        raise UserError(
            f"forward() returned shapes {found} for 3 positions, expected {expected}: a logit for each action, and "
            "logits of win, draw and loss"
        )
    if not all(each.requires_grad for each in outputs):
        raise UserError("the outputs of forward() do not depend on any parameter of the network")


@contextmanager
def _name_in_errors(setting: str, name: str) -> Iterator[None]:
    """Turn every error into a UserError that names the setting and the line of the module `name` that failed."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{setting} = {name}: {error}") from error
    except Exception as error:  # torch and the code of a user raise errors of many types
        file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        where = f" ({Path(str(file)).name}, line {lines[-1]})" if lines else ""
        message = str(error).strip().partition("\n")[0]
        raise UserError(f"{setting} = {name}: {type(error).__name__}: {message}{where}") from error
