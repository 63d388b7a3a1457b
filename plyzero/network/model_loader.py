"""Model loading: networks from ONNX files and from runs, and hot reload of newer models."""

from __future__ import annotations

import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Self

from plyzero.errors import ModelDamagedError, ModelRefusedError, UserError, shown
from plyzero.files import interval, watch_directory
from plyzero.network.onnx_graph import GraphError, parse
from plyzero.network.onnx_network import INT8, SMALLEST_BATCH, Network, takes_int8
from plyzero.rules.catalog import GameSpec
from plyzero.run.directory import KEY, Run, RunDirectory, RunId, open_run
from plyzero.run.events import best_model
from plyzero.run.models import ModelName, list_models, read_model, read_model_file
from plyzero.settings import Precision, parse_stored_settings
from plyzero.volume_errors import FileErrors
from plyzero.volumes import RemotePath, to_path

MAX_ATTEMPTS: Final = 3
"""Number of attempts of ModelWatch to load a damaged model: over NFS a file may be incomplete at first."""

RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Pauses of `load_newest` between attempts to list or read models, while the volume reports errors."""

SPREAD_SECONDS: Final = 0.02
"""Time for each further worker of a run over which they load a new model, in seconds; at most `poll_seconds`."""

log = logging.getLogger(__name__)


def load_network(path: Path, game: GameSpec | None = None, *, model: str = "newest", threads: int = 1) -> Network:
    """Return the network in the ONNX file `path`, or a model of the run directory `path`.

    game:    the game that the network must be for; None = any game.
    model:   which model of a run: "newest", "best" by the measured scores, or a step as text.
    threads: number of threads for inference.
    Raises UserError if there is no such model or it cannot be used, or if the rules have changed since.
    """
    if not path.is_dir():
        try:
            return Network(read_model_file(path), game, label=path.name, threads=threads)
        except ModelRefusedError as error:
            raise UserError(f"cannot use {path}: {error}") from error
    from plyzero.run.replay import check_rules  # imports zarr, which a player without a run does not need

    run = open_run(path, game=game)
    check_rules(run)
    if model == "best":
        name = best_model(run.models, run.metrics)
        return load_model(run.models, name, run.game, run_id=run.id, threads=threads)
    if model != "newest" and not (model.isdecimal() and len(model) <= 9):
        raise UserError(f"expected model newest, best or a step, got {shown(model)}")
    step = None if model == "newest" else int(model)
    network = load_newest(run.models, run.game, run_id=run.id, step=step, threads=threads)
    if network is None:
        raise UserError(f"{path} has no model yet; train it first, or play against pure MCTS, which needs no model")
    return network


def named_model(name: str) -> tuple[Path, str] | None:
    """Return the file or run that `name` means, and which of its models; None if there is neither.

    A path may contain @ itself: a file or run of the whole name comes first. Raises UserError for @ after a file.
    """
    if path := existing_path(name):
        return path, "newest"
    text, _, model = name.rpartition("@")
    path = existing_path(text)
    if path and not path.is_dir():
        raise UserError(f"{shown(name)}: {shown(text)} is one model; @ chooses among the models of a run directory")
    return (path, model) if path else None


def existing_path(text: str) -> Path | None:
    """Return the file, the directory or the run in a bucket that `text` names, None if there is none."""
    if "://" in text:
        path = to_path(text)
        return path if path.exists() else None
    return Path(text) if text and os.path.exists(text) else None  # Path.exists raises for a name that is too long


def load_model(
    directory: Path,
    name: ModelName,
    game: GameSpec,
    *,
    run_id: RunId | None = None,
    threads: int = 1,
    largest: int = SMALLEST_BATCH,
    precision: Precision = "fp32",
) -> Network:
    """Return the model `name` as a network.

    run_id:    id of the run that it must belong to; None = any.
    largest:   number of positions in the largest batch that is expected.
    precision: fp32; int8 = its 8-bit form, or fp32 if it has none that can be used; auto = the faster one here.
    Raises ModelRefusedError if it is damaged, of another run or not for `game`, and OSError if it cannot be read.
    """
    content = read_model(directory, name)
    load = partial(
        Network, game=game, label=str(name), fence=name.fence, step=name.step, threads=threads, largest=largest
    )
    if takes_int8(precision) and (digest := _int8_digest(content)):
        try:
            return check_run(load(read_model(directory, replace(name, digest=digest, int8=True))), run_id)
        except (FileNotFoundError, ModelRefusedError) as error:
            log.warning("the 8-bit form of %s is not used: %s", name, error)
    return check_run(load(content), run_id)


def check_run(network: Network, run_id: RunId | None) -> Network:
    """Return a network. Raises ModelRefusedError if it is not of the run `run_id`; None = any."""
    if run_id and (foreign := run_id.find_fault(network.metadata.get(KEY))):
        raise ModelRefusedError(f"{network.label} is refused: {foreign}")
    return network


def is_of_network(run: RunDirectory) -> bool:
    """Return whether the newest model of `run` shows that this version can train it: by its id and network settings."""
    try:
        metadata = _metadata(read_model(run.models, list_models(run.models)[0]))
        is_own = run.id is not None and metadata.get(KEY) == run.id.text
        return is_own and parse_stored_settings(metadata["settings"]).network == run.settings.network
    except (LookupError, ModelRefusedError, ValueError):  # there is none, or it is damaged
        return False


def _metadata(content: bytes) -> dict[str, str]:
    """Return the metadata of an ONNX file; nothing if it cannot be read: loading it reports why."""
    try:
        return {each.key: each.value for each in parse(content).metadata_props}
    except GraphError:
        return {}


def _int8_digest(content: bytes) -> str | None:
    """Return the digest of a model's 8-bit form, None if it names none."""
    digest = _metadata(content).get(INT8, "")
    return digest if re.fullmatch("[0-9a-f]{8}", digest) else None


def load_newest(
    directory: Path, game: GameSpec, *, run_id: RunId | None = None, step: int | None = None, threads: int = 1
) -> Network | None:
    """Return the newest model that can be loaded, of training step `step` if given; None if there are no models yet.

    While the volume reports errors, this is tried again for a few seconds, and then with older models. Raises UserError
    if there are models but none of `step`, or none that can be loaded.
    """
    for pause in (*RETRY_SECONDS, None):
        try:
            names, unread = list_models(directory), ""
        except OSError as error:
            names, unread = [], f"{directory} cannot be listed: {error.strerror}"
        wanted = [name for name in names if step is None or name.step == step]
        if names and not wanted:
            steps = " ".join(str(name.step) for name in names[:8])
            raise UserError(f"no model of step {step} in {directory}; the newest are {steps}")
        refused: list[str] = []
        for name in wanted:
            try:
                return load_model(directory, name, game, run_id=run_id, threads=threads)
            except FileNotFoundError as error:
                refused.append(str(error))
            except ModelRefusedError as error:
                refused.append(str(error))
                log.warning("%s", error)
            except OSError as error:
                unread = unread or f"{name} cannot be read: {error.strerror}"
                if pause is not None:
                    break
                log.warning("trying an older model: %s", unread)
        if not unread:
            break
        if pause is not None:
            log.warning("%s; trying again in %g s", unread, pause)
            time.sleep(pause)
    if refused or unread:
        raise UserError(f"no model in {directory} can be used: {refused[0] if refused else unread}")
    return None


class ModelWatch:
    """Hot reload: finds newer models in a directory, at once through file events and otherwise by polling.

    Polling is what makes it reliable: over NFS and FUSE no file events arrive.
    """

    def __init__(
        self,
        directory: Path,
        game: GameSpec,
        *,
        poll_seconds: float,
        threads: int,
        largest: int = SMALLEST_BATCH,
        run_id: RunId | None = None,
        precision: Precision = "fp32",
    ) -> None:
        self._directory = directory
        self._poll_seconds = interval(directory, poll_seconds)
        self._load: Callable[[ModelName], Network] = lambda name: load_model(
            directory, name, game, run_id=run_id, threads=threads, largest=largest, precision=precision
        )
        self._woken = threading.Event()
        self._next_poll = 0.0
        self._spread_seconds = 0.0
        self._current: ModelName | None = None
        self._refused: dict[ModelName, int] = {}  # failed attempts
        self._file_errors = FileErrors()
        self._end_events: Callable[[], None] = lambda: None

    @classmethod
    def of(cls, run: Run, *, threads: int, precision: Precision = "fp32", largest: int = SMALLEST_BATCH) -> Self:
        """Return the watch of the models of `run`; `largest` is the number of positions in the largest batch."""
        return cls(
            run.models,
            run.game,
            poll_seconds=run.settings.selfplay.poll_seconds,
            threads=threads,
            largest=largest,
            run_id=run.id,
            precision=precision,
        )

    @classmethod
    def of_worker(cls, run: Run) -> Self:
        """Return the watch of a self-play worker of `run`, with the threads, precision and batches of its settings."""
        selfplay = run.settings.selfplay
        return cls.of(run, threads=selfplay.threads, precision=selfplay.precision, largest=selfplay.parallel_games)

    def __enter__(self) -> Self:
        try:
            if not isinstance(self._directory, RemotePath):  # a store has no file events
                self._end_events = watch_directory(self._directory, self._woken)
        except OSError as error:
            log.warning("no file events (%s): polling every %g s", error, self._poll_seconds)
        return self

    def __exit__(self, *_: object) -> None:
        self._end_events()

    @property
    def read_error(self) -> str | None:
        """A sentence about the models that cannot be read at the moment, or None."""
        return self._file_errors.read_error

    def spread(self, workers: float) -> None:
        """Load new models at a random moment within `poll_seconds`, so that so many workers do not read one at once."""
        self._spread_seconds = min(self._poll_seconds, SPREAD_SECONDS * (workers - 1))

    def newer(self) -> Network | None:
        """Return a network newer than the last one returned, None if there is none.

        It is cheap enough for a call before every batch. A model that is damaged or not for the game is skipped, with
        one warning. While the volume fails to list or read models, the old one stays in use; later calls try again.
        """
        now = time.monotonic()
        if self._woken.is_set():
            self._woken.clear()
            self._next_poll = min(self._next_poll, now + random.random() * self._spread_seconds)
        if now < self._next_poll:
            return None
        self._next_poll = now + self._poll_seconds
        with self._file_errors.skipping(self._directory, "cannot be read, the old model stays in use"):
            return self._newest()
        return None

    def _newest(self) -> Network | None:
        """Return the newest network that can be loaded and is newer than the current one.

        A model that cannot be read is skipped, and tried again later. Raises OSError if the models cannot be listed.
        """
        names = list_models(self._directory)
        self._file_errors.keep_only({self._directory, *(self._directory / str(name) for name in names)})
        for name in names:
            if self._current is not None and name <= self._current:
                break
            path = self._directory / str(name)
            if self._refused.get(name, 0) >= MAX_ATTEMPTS:
                continue
            with self._file_errors.skipping(path, "cannot be read, will try again"):
                try:
                    network = self._load(name)
                except ModelRefusedError as error:
                    if name not in self._refused:
                        log.warning("keeping the old model: %s", error)
                    if isinstance(error, ModelDamagedError):
                        self._refused[name] = self._refused.get(name, 0) + 1
                    else:
                        self._refused[name] = MAX_ATTEMPTS
                    continue
                self._current = name
                return network
        return None

    def refuse_current(self, error: ModelRefusedError) -> None:
        """Never return the current network again; `newer` then returns the newest of the others, an older one too."""
        log.warning("the model is no longer used: %s", error)
        if self._current is not None:
            self._refused[self._current] = MAX_ATTEMPTS
        self._current = None
        self._next_poll = 0.0

    def wait(self, seconds: float) -> None:
        """Sleep until a file event arrives, but at most `seconds`."""
        self._woken.wait(seconds)
