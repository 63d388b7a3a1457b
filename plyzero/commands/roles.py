"""selfplay, trainer, rate: the processes of a run, one by one, and their logs."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plyzero.commands import common
from plyzero.errors import UserError, cut, install_command, plain
from plyzero.extensions import find_extensions, load_extension

if TYPE_CHECKING:
    from plyzero.run.directory import Run
    from plyzero.search.evaluators import RemoteEvaluator
    from plyzero.trainer.learner import Devices, Learner


@common.with_groups
def selfplay(
    run: common.RunOption,
    *,
    name: Annotated[str | None, typer.Option(help="Name of this worker; default: the host name.")] = None,
    evaluator: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Evaluate with this plyzero evaluator while it answers.")
    ] = None,
    budget: common.Budget,
    new: common.RunOptions,
    logs: common.LogOptions,
) -> None:
    """Run a self-play worker for a run until it is stopped or the training is over."""
    common.require("onnx", "onnxruntime")
    connect = _find_evaluator(evaluator) if evaluator else None
    opened, stop = begin_role(run, new._replace(options=budget.added_to(new.options)), logs)
    _end_if_done(opened)
    from plyzero.ops.processes import ending_at_once
    from plyzero.selfplay.worker import run_worker

    worker = re.sub(r"[^a-z0-9_]", "_", (name or socket.gethostname()).lower())[:32]
    with redirect_stdout(common.BoundedOutput(sys.stdout)), ExitStack() as starting:
        starting.enter_context(ending_at_once(stop, code=logs.stopped_code))
        with closing(connect(opened)) if connect else nullcontext() as remote:
            run_worker(opened, name=worker, stop=stop, evaluator=remote, on_ready=starting.close)
    end_role(opened, stop, logs)


def _find_evaluator(address: str) -> Callable[[Run], RemoteEvaluator]:
    """Return what connects a run with an evaluator in another process.

    Raises UserError if its package is missing; the function that is returned, if the run needs what it does not send.
    """
    from plyzero.selfplay.evaluated_games import find_evaluator

    found = find_evaluator(address)

    def connect(run: Run) -> RemoteEvaluator:
        if run.settings.search.score_weight:
            raise UserError("--evaluator sends no scores, which search.score_weight needs: leave out one of the two")
        return found(run)

    return connect


@common.with_groups
def trainer(
    run: common.RunOption,
    *,
    device: common.Device = "auto",
    devices: Annotated[
        int, typer.Option(min=1, max=64, help="Number of GPUs of this machine that train together.")
    ] = 1,
    reproducible: Annotated[
        bool, typer.Option(help="Play the games too, in turns: the same seed makes the same games and weights.")
    ] = False,
    budget: common.Budget,
    new: common.RunOptions,
    logs: common.LogOptions,
) -> None:
    """Run the trainer of a run, which trains on its games and publishes models, until it is stopped or over."""
    common.require("torch", "onnx", "onnxruntime")
    opened, stop = begin_role(run, new._replace(options=budget.added_to(new.options)), logs, is_trainer=True)
    _end_if_done(opened)
    from plyzero.ops.processes import ending_at_once
    from plyzero.trainer.loop import run_trainer

    with ExitStack() as starting:
        starting.enter_context(ending_at_once(stop, code=logs.stopped_code))
        if reproducible:
            _train_in_turns(opened, stop=stop, ready=starting.close)
        else:
            start_devices = _prepare_devices(opened, device, devices) if devices > 1 else None
            run_trainer(opened, device=device, start_devices=start_devices, stop=stop, ready=starting.close)
    end_role(opened, stop, logs)


TRAINERS: Final = "plyzero.trainers"
"""The entry-point group of what a trainer can be given. Its only name is `devices`: a function of a run, a device and
the number of devices that returns the `start_devices` of `run_trainer`, or raises UserError."""


def _prepare_devices(run: Run, device: str, devices: int) -> Callable[[Learner], Devices]:
    """Return what starts several devices. Raises UserError if they, or the kit that brings this, are not there."""
    option = f"--devices {devices}"
    entry = find_extensions(TRAINERS).get("devices")
    if entry is None:
        raise UserError(f"{option} needs the kit cluster, which is not installed: {install_command('cluster')}")
    start_devices: Callable[[Learner], Devices] = load_extension(entry, option)(run, device=device, devices=devices)
    return start_devices


def _train_in_turns(run: Run, *, stop: threading.Event, ready: Callable[[], None]) -> None:
    """Play the games that the next steps need, make these steps, publish a model, and so on.

    It goes on until the budget is reached or `stop` is set. Nothing depends on time: a model is published after each
    turn. A turn that a stop interrupts is not repeated in the same way.

    ready: called when the newest state has been loaded.
    Raises UserError if another trainer works on this run.
    """
    from plyzero.network.model_loader import load_newest
    from plyzero.ops.processes import ending_if_hung
    from plyzero.run.metrics import TRAINER, Heartbeat
    from plyzero.search.evaluators import Uniform
    from plyzero.selfplay.games_in_play import GamesInPlay
    from plyzero.selfplay.replay_writer import ReplayWriter
    from plyzero.selfplay.worker import game_seeds
    from plyzero.trainer.loop import Trainer

    heartbeat = Heartbeat(*run.heartbeats(TRAINER))
    with closing(Trainer(run, device="cpu", heartbeat=heartbeat)) as trainer:
        ready()
        trainer.ingest()
        fence, turn = trainer.lease.fence, 0
        seeds = game_seeds(run.seed, TRAINER, f"{fence:08x}")
        games = GamesInPlay(run.game.start, run.settings, seeds=seeds, one_by_one=True)

        def play() -> None:
            """Play until the trainer has enough positions for a turn, and seal the games in one segment."""
            network = load_newest(run.models, run.game, run_id=run.id)
            model = (network.fence, network.step) if network else (0, 0)
            # Before the first model, enough for it; later, enough for 32 steps.
            turn_positions = 32 * run.settings.trainer.batch_size / run.settings.trainer.replay_ratio
            wanted = max(trainer.missing_positions(), turn_positions)
            writing = ReplayWriter(run, worker=TRAINER, incarnation=f"{fence:03x}{turn:05x}")
            with writing as writer, ending_if_hung(stop, run.game.name) as playing:
                while writer.totals()["full_positions"] < wanted and not stop.is_set():
                    trainer.reporter.beat("playing")
                    evaluate = network or Uniform(run.game.start.num_actions)
                    with playing:
                        found = games.run(evaluate, fence=model[0], step=model[1])
                    for finished in found:
                        writer.add(finished)

        while not (stop.is_set() or trainer.reached()):
            play()
            turn += 1
            trainer.ingest()
            while not (trainer.missing_positions() or stop.is_set() or trainer.reached()):
                trainer.reporter.beat("training")
                trainer.train_step()
            if not stop.is_set():
                trainer.publish()
            trainer.maintain()
        trainer.end()


@common.with_groups
def rate(run: common.RunOption, *, new: common.RunOptions, logs: common.LogOptions) -> None:
    """Measure the newest models of a run against the opponents of its ratings, as `train` does, until it is over."""
    common.require("onnx", "onnxruntime")
    opened, stop = begin_role(run, new, logs)
    from plyzero.ops.rating import run_rater

    with suppress(OSError):
        os.nice(19)  # workers and trainer come first
    run_rater(opened, stop=stop)
    end_role(opened, stop, logs)


def _end_if_done(run: Run) -> None:
    """End this command if the training is over, with a line about this and how to continue."""
    from plyzero.run.budget import find_done, how_to_continue, read_trainer

    beat = read_trainer(run)
    if done := find_done(run, beat):
        continued = how_to_continue(run, beat) or "with a trainer that has a larger budget"
        logging.getLogger(__name__).info("done: %s; to continue, start it %s", done, continued)
        raise typer.Exit


def end_role(run: Run, stop: threading.Event, logs: common.LogOptions) -> None:
    """End this command with the exit code of a process that was stopped, if it was and the run is not over."""
    from plyzero.run.budget import read_done

    if logs.stopped_code and stop.is_set() and not read_done(run):
        raise typer.Exit(logs.stopped_code)


def begin_role(
    run: Path, new: common.RunOptions, logs: common.LogOptions, *, is_trainer: bool = False
) -> tuple[Run, threading.Event]:
    """Return the run and the event that stops the process; signals are caught before the slow imports."""
    from plyzero.ops.processes import ending_at_once, on_end_of_pipe, stop_on_signals

    stop = stop_on_signals()
    if logs.until_end_of_input:
        on_end_of_pipe(0, stop.set)
    from plyzero.ops.summary import summarize_files
    from plyzero.run.directory import check_scratch, describe_changed_settings
    from plyzero.run.replay import check_rules
    from plyzero.volume_errors import wait_for

    check_scratch(run, new.scratch)
    set_up_logging(logs.log_format)
    with ending_at_once(stop, code=logs.stopped_code):
        if is_trainer:
            wait_for(lambda: common.check_continues(run, new.options), str(run))
        opened = wait_for(lambda: new.open(run, partial(common.check_new_run, trainer=is_trainer)), str(run))
        check_rules(opened)
        changes = wait_for(lambda: describe_changed_settings(opened), str(run))
        lines = wait_for(lambda: summarize_files(opened), str(run))
    for line in filter(None, [*lines, changes]):
        logging.getLogger(__name__).info("%s", line)
    if not opened.game.is_included:
        common.bound_output_of_c()
    return opened, stop


MOST_LINES: Final = 100
"""Largest number of lines logged from each end of a traceback."""


def set_up_logging(log_format: str) -> None:
    """Let this process log in a format of LOG_FORMATS."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LOG_FORMATS[log_format])
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _shortened(text: str) -> list[str]:
    """Return the lines of a log record, each cut. A long traceback has only its first and last MOST_LINES."""
    lines = text.split("\n")
    if len(lines) > 2 * MOST_LINES:
        lines[MOST_LINES:-MOST_LINES] = ["..."]
    return [cut(line) for line in lines]


class _TextFormatter(logging.Formatter):
    """Formats a log record as a line of text. Text from the volume cannot control a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(plain, _shortened(super().format(record))))

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = plain(record.message)  # one line; a traceback has further ones
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname,
            "logger": record.name,
            "message": "\n".join(_shortened(super().format(record))),  # with a traceback, if there is one
        }
        if isinstance(record.args, dict) and record.args:
            entry["fields"] = record.args
        return json.dumps(entry)


LOG_FORMATS: dict[str, logging.Formatter] = {
    "text": _TextFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"),
    "json": _JsonFormatter("%(message)s"),
}
