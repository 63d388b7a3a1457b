"""`plyzero evaluator --repository`: a model repository of NVIDIA Triton that holds the newest model of a run.

Triton's documentation: user_guide/model_repository.md, model_configuration.md, model_management.md.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from plyzero.errors import ModelRefusedError, UserError
from plyzero.files import TEMPORARY, read_file, remove_tree, rename, write_file
from plyzero.kits.cluster import wire
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import INPUT, LOGITS, WDL
from plyzero.rules.game import Game
from plyzero.run.budget import EndOfRun
from plyzero.run.directory import Run
from plyzero.run.metrics import Heartbeat
from plyzero.run.models import ModelName, max_model_bytes, read_model
from plyzero.volume_errors import FileErrors, explain

MODEL_FILE: Final = "model.onnx"
"""Name of the file that Triton expects in the directory of a version."""

LAST_SECONDS: Final = 5.0
"""Seconds for which models are still published after the end of the run."""

log = logging.getLogger(__name__)


def keep_repository(
    run: Run, repository: Path, *, max_batch: int, wait_seconds: float, threads: int, stop: threading.Event
) -> None:
    """Publish every newer model of `run` in a model repository until `stop` is set or the run is over.

    A model is loaded and tested here before Triton sees it. While it cannot be written, the one before stays, and the
    write is retried. Raises UserError if `repository` is no directory and cannot be created.

    max_batch:    number of positions of a full batch of Triton, which leaves at once.
    wait_seconds: time after which a batch leaves with fewer.
    threads:      number of threads for the test of a model.
    """
    largest = wire.largest_call(run, max_batch)
    name = wire.model_name(run)
    config = triton_config(name, run.game.start, max_batch=largest, wait_seconds=wait_seconds)
    try:
        repository.mkdir(parents=True, exist_ok=True)  # before the first model, because Triton needs it to start
    except OSError as error:
        raise UserError(f"cannot use {repository} as a model repository: {explain(error)}") from error
    heartbeat = Heartbeat(*run.heartbeats(f"evaluator.{uuid.uuid4().hex[:8]}"))
    newest: ModelName | None = None
    published: ModelName | None = None
    file_errors = FileErrors()

    def beat(state: str, *, force: bool = False) -> None:
        model = str(published) if published else None
        fields = {"role": "evaluator", "state": state, "model": model, "read_error": watch.read_error}
        heartbeat.beat(fields, force=force)

    with ModelWatch.of(run, threads=threads) as watch:
        log.info("keeps the newest model of %s in %s", run.game.name, repository / name)
        end = EndOfRun(run)
        last_look = math.inf
        while not stop.is_set() and time.monotonic() < last_look:
            if end.reached():  # the run publishes its last model before it ends
                last_look = min(last_look, time.monotonic() + LAST_SECONDS)
            if network := watch.newer():
                newest = ModelName.parse(network.label)
            if newest and newest != published and file_errors.is_due(repository):
                try:
                    with file_errors.skipping(repository, "cannot be written, the model before stays in use"):
                        publish_version(repository / name, config, read_model(run.models, newest), version=newest.step)
                        published = newest
                        log.info("model %s is version %d", newest, newest.step)
                except ModelRefusedError as error:  # damaged since it was loaded
                    watch.refuse_current(error)
                    newest = published
            beat(file_errors.summary or ("keeps a model repository" if published else "waiting for the first model"))
            watch.wait(0.5)
    beat("stopped", force=True)
    if done := end.reached():
        log.info("END, %s reached", done)


def triton_config(name: str, start: Game, *, max_batch: int, wait_seconds: float) -> str:
    """Return the content of config.pbtxt for the models of the game that begins with `start`."""
    tensors = {INPUT: start.observation_shape, LOGITS: (start.num_actions,), WDL: (3,)}
    lines = {
        each: f'{{ name: "{each}" data_type: TYPE_FP32 dims: [ {", ".join(map(str, shape))} ] }}'
        for each, shape in tensors.items()
    }
    return f"""\
name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: {max_batch}
input [ {lines[INPUT]} ]
output [
  {lines[LOGITS]},
  {lines[WDL]}
]
version_policy {{ latest {{ num_versions: 1 }} }}
dynamic_batching {{ max_queue_delay_microseconds: {round(1_000_000 * wait_seconds)} }}
"""


def publish_version(model: Path, config: str, content: bytes, *, version: int) -> None:
    """Make `version` with the ONNX file `content` the only version in the directory `model`, and write its config.

    A version appears complete or not at all: its directory is filled under a name that is no number, so Triton ignores
    it, and then renamed. Versions disappear in the same way. Unchanged files are not written again, so Triton does not
    load them again.
    """
    _write_if_changed(model / "config.pbtxt", config.encode())
    target = model / str(version)
    if target.is_dir():
        _write_if_changed(target / MODEL_FILE, content)
    else:
        staged = model / f"{TEMPORARY}{uuid.uuid4().hex}"
        write_file(staged / MODEL_FILE, content)
        rename(staged, target)
    for other in sorted(model.iterdir()):
        if other.name.isdecimal() and other != target:
            retired = model / f"{TEMPORARY}{uuid.uuid4().hex}"
            rename(other, retired)
            remove_tree(retired)
        elif other.name.startswith(TEMPORARY):  # left by a process that was killed
            remove_tree(other)


def _write_if_changed(path: Path, content: bytes) -> None:
    with suppress(OSError):  # it is not there, or damaged
        if read_file(path, max_bytes=max_model_bytes()) == content:
            return
    write_file(path, content, replace=True)
