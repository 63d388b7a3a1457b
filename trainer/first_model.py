"""The first model of a run, where it is that of another bot: made by imitation, or trained on another size of board.

A bot is an ONNX file with the state of its learner beside it, from which the trainer of the new run continues.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from plyzero.errors import UserError, plain
from plyzero.files import read_file, write_file
from plyzero.network.onnx_graph import parse
from plyzero.network.onnx_network import Network, resize
from plyzero.run.directory import Run, read_run
from plyzero.run.models import list_models, max_model_bytes, read_model
from plyzero.settings import parse_stored_settings
from plyzero.trainer.state import LearnerState, State, load_state, pack_state, read_state

STATE: Final = ".pt"
"""Suffix of the learner's state beside the ONNX file, which lacks the optimiser, the average and the normalisation."""


def write_bot(path: Path, model: bytes, state: LearnerState) -> None:
    """Write the ONNX file `path` and, before it, the state of the learner beside it; files there are replaced."""
    write_file(path.with_suffix(STATE), pack_state({**state, "model": _digest(model)}), replace=True)
    write_file(path, model, replace=True)


def read_bot(path: Path, run: Run) -> tuple[bytes, State]:
    """Return the ONNX file of a bot, and the state, from which the trainer of `run` can continue.

    path: an ONNX file that `write_bot` has written, or the directory of a run with another size of the same game.
    Raises UserError if a file is missing or damaged, if the bot is of another game, or if its network has other
    settings than the run's.
    """
    earlier = read_run(path) if path.is_dir() else None
    try:
        if earlier:
            models = list_models(earlier.models)
            if not models:
                raise UserError(f"{path} has no model yet; train it first")
            model = read_model(earlier.models, models[0])
        else:
            model = read_file(path, max_bytes=max_model_bytes())
        _check_network(model, run, path)
    except OSError as error:
        raise UserError(f"cannot use {path}: {error.strerror}") from error
    if earlier is None:
        return model, _read_state_beside(path, model)
    state = load_state(earlier.trainer)
    if state is None:
        raise UserError(f"{path} has no saved state of its trainer; train it longer")
    return _resized(model, run), State(
        step=state["step"], network=state["network"], averaged=state["averaged"], optimiser=state["optimiser"]
    )


def _check_network(model: bytes, run: Run, path: Path) -> None:
    """Raise UserError if a model is of another game, or if its network has other settings than that of `run`."""
    try:
        metadata = Network(model, run.game, label=path.name).metadata
        found = parse_stored_settings(metadata.get("settings", "")).network.model_dump()
    except ValueError as error:
        raise UserError(f"{path} does not say with which settings it was trained: {plain(str(error), 200)}") from error
    own = run.settings.network.model_dump()
    different = {key: value for key, value in found.items() if value != own[key]}
    if different:
        asked = ", ".join(f"{key} = {own[key]}" for key in different)
        options = " ".join(f"-o network.{key}={value}" for key, value in different.items())
        raise UserError(f"{path} is another network than that of the run, which has {asked}; give {options}")


def _resized(model: bytes, run: Run) -> bytes:
    """Return the ONNX file of a network without weights for squares, for the size of the game of `run`."""
    graph = parse(model)
    resize(graph, run.game)
    return bytes(graph.SerializeToString(deterministic=True))


def _read_state_beside(path: Path, model: bytes) -> State:
    """Return the state beside the ONNX file `path` with the content `model`. Raises UserError if it is not there."""
    beside = path.with_suffix(STATE)
    advice = f"`plyzero imitate` writes it beside {path.name}, and a run needs both"
    if not beside.exists():
        raise UserError(f"{beside} does not exist; {advice}")
    state = read_state(beside, advice)
    if state.get("model") != _digest(model):
        raise UserError(f"{beside} is not of {path.name}, but of another model; {advice}")
    return state


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
