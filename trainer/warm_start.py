"""Warm start: a run begins with a bot, whose files hold its model and the state of its learner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from plyzero.errors import UserError, plain
from plyzero.files import read_file, write_file
from plyzero.network.onnx_network import Network
from plyzero.run.directory import KEY, Run
from plyzero.run.models import max_model_bytes, publish_model
from plyzero.settings import parse_stored_settings
from trainer.loop import Trainer
from trainer.quantise import with_metadata
from trainer.state import pack_state, read_state

STATE: Final = ".pt"
"""Suffix of the file beside the ONNX file with the state of the learner: weights in the form in which they are trained.

An ONNX file alone would not do: its batch normalisation is folded into the convolutions, and the weights themselves,
their moving average and the optimiser are all needed to go on as if there had been no break.
"""


def write_bot(path: Path, model: bytes, state: Mapping[str, Any]) -> None:
    """Write the ONNX file `path` and, before it, the state of the learner beside it; files there are replaced."""
    write_file(path.with_suffix(STATE), pack_state({**state, "model": _digest(model)}), replace=True)
    write_file(path, model, replace=True)


def read_bot(path: Path, run: Run) -> tuple[bytes, dict[str, Any]]:
    """Return what `write_bot` has written: the ONNX file, and the state, from which the trainer of `run` can continue.

    Raises UserError if a file is missing or damaged, if the bot is of another game, or if its network has other
    settings than the run's.
    """
    try:
        model = read_file(path, max_bytes=max_model_bytes())
        metadata = Network(model, run.game, label=path.name).metadata
        found = parse_stored_settings(metadata.get("settings", "")).network.model_dump()
    except OSError as error:
        raise UserError(f"cannot use {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} does not say with which settings it was trained: {plain(str(error), 200)}") from error
    own = run.settings.network.model_dump()
    if different := {key: value for key, value in found.items() if value != own[key]}:
        asked = ", ".join(f"{key} = {own[key]}" for key in different)
        options = " ".join(f"-o network.{key}={value}" for key, value in different.items())
        raise UserError(f"{path} is another network than that of the run, which has {asked}; give {options}")
    beside = path.with_suffix(STATE)
    advice = f"`plyzero imitate` writes it beside {path.name}, and a run needs both"
    if not beside.exists():
        raise UserError(f"{beside} does not exist; {advice}")
    state = read_state(beside, advice)
    if state.get("model") != _digest(model):
        raise UserError(f"{beside} is not of {path.name}, but of another model; {advice}")
    return model, state


def begin_run(run: Run, model: bytes, state: Mapping[str, Any]) -> None:
    """Give a run without games its first model, an ONNX file, and the `state` of a learner from which to continue.

    The ledger begins with zero: it does not count what the learner has learned before.
    Raises UserError if the state is not of the run's network.
    """
    assert run.id
    with closing(Trainer(run, device="cpu")) as trainer:
        try:
            trainer.load_state_dict(state)
        except RuntimeError as error:
            raise UserError(
                f"the weights do not fit {run.settings.network.module} as it is now: {plain(str(error), 200)}"
            ) from error
        trainer.save()
        own = with_metadata(model, KEY, run.id.text)
        publish_model(run.models, own, fence=trainer.lease.fence, step=trainer.step)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
