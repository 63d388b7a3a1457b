"""experiment run, ls, task, argo, snakefile: many runs as one graph of tasks."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from plyzero.commands import common
from plyzero.errors import FailedError, UserError, plain
from plyzero.kits.experiments.builtin_tasks import check_tasks, find_task, parse_arguments

if TYPE_CHECKING:
    from rich.table import Table

    from plyzero.kits.experiments.definition import Definition, Value
    from plyzero.kits.experiments.manifest import Manifest, Record
    from plyzero.kits.experiments.plan import Plan

DEFAULT: Final = "train-and-compare"
"""The experiment that is run if a game is named instead of an experiment."""

What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT", help=f"A file.toml, a shipped experiment ({DEFAULT}, sweep), or a game, for {DEFAULT}."
    ),
]

Parameters = Annotated[
    list[str] | None,
    typer.Option("-p", metavar="NAME=VALUE", help="A parameter, such as runs=3; of a list, repeat it for each value."),
]

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The experiment's directory.")]

experiment = common.in_panel("Train")(
    typer.Typer(help="Compare many runs: train, evaluate, plot and average.", no_args_is_help=True)
)


@experiment.command("run")
def run(
    what: What,
    out: Out,
    parameters: Parameters = None,
    cpus: Annotated[int | None, typer.Option(min=1, max=1024, help="CPU slots; default: one per core.")] = None,
    gpus: Annotated[
        int | None,
        typer.Option(min=0, max=64, help="GPU slots; default: one per GPU, or one for trainings where there is none."),
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Start no more tasks after a failure.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Continue with other parameters, and run again the tasks that they change.")
    ] = False,
) -> None:
    """Run an experiment. The same command continues one that was stopped, and runs again only what failed."""
    from plyzero.kits.experiments.manifest import open_experiment
    from plyzero.kits.experiments.runner import Slots, run_plan
    from plyzero.machine import usable_cores
    from plyzero.ops.processes import stop_on_signals

    plan = _plan(what, parameters)
    check_tasks(plan)
    stop = stop_on_signals()
    slots = Slots(cpus or usable_cores(), _gpus(gpus))
    with open_experiment(out, plan, update=update) as experiment, TaskProgress(plan, out, stop) as progress:
        records = run_plan(
            plan,
            out,
            experiment,
            slots=slots,
            environment=_environment(),
            stop=stop,
            fail_fast=fail_fast,
            on_change=progress.update,
        )
    if stop.is_set():
        print("plyzero: stopped; the same command continues the experiment", file=sys.stderr)
        sys.exit(130)
    _summarize(plan, out, records, progress.started)


@experiment.command("ls")
def ls(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="An experiment; without one: the shipped experiments.")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """List the tasks of an experiment: what is there, what is missing, what failed and why."""
    from plyzero.kits.experiments.definition import read_definition, shipped, text_of
    from plyzero.kits.experiments.manifest import read_manifest

    if directory is None:
        found = {name: read_definition(path) for name, path in shipped().items()}
        if as_json:
            print(json.dumps({name: each.model_dump() for name, each in found.items()}))
            return
        for name, each in found.items():
            print(f"{name}: {each.description}")
            table = common.make_table("  parameter", "default")
            for key, value in each.parameters.items():
                table.add_row(f"  {key}", text_of(value))
            common.make_console().print(table)
            print()
        return
    manifest = read_manifest(directory)
    if manifest is None:
        raise UserError(f"{directory} is not an experiment: it has no experiment.json")
    rows = _rows_of(directory, manifest)
    if as_json:
        print(json.dumps({"version": 1, "name": manifest["name"], "parameters": manifest["parameters"], "tasks": rows}))
        return
    console = common.make_console()
    given = {name: text_of(value) for name, value in manifest["parameters"].items()}
    console.print(f"{manifest['name']}: {', '.join(f'{name}={text}' for name, text in given.items() if text)}\n")
    table = common.make_table("task", "state", "seconds", "output", "")
    for row in rows:
        seconds = "" if row["seconds"] is None else f"{row['seconds']:.0f}"
        output = row["out"] if row["exists"] else "missing"
        table.add_row(row["task"], row["state"], seconds, output, row["reason"])
    console.print(table)


@experiment.command("task")
def task(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A built-in task, such as train or evaluate.")],
    inputs: Annotated[Path, typer.Option("--in", metavar="DIR", help="Where the outputs of other tasks are.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The output of this task.")],
    parameters: Parameters = None,
) -> None:
    """Run one task of an experiment by itself."""
    from plyzero.kits.experiments.runner import WATCH
    from plyzero.ops.processes import on_end_of_pipe
    from plyzero.rules.catalog import load_game

    function = find_task(name)
    arguments = parse_arguments(name, parameters or ())
    if WATCH in os.environ:
        on_end_of_pipe(int(os.environ[WATCH]), lambda: os.killpg(0, signal.SIGKILL))  # with all that the task began
    with common.show_progress(f"{name} begins") as report:
        game = load_game(arguments["game"]) if "game" in arguments else None
        with common.playing(game, may_print=True) if game else nullcontext():
            function(inputs, out, report=report, **arguments)
    print(f"{name} has written {out}")


@experiment.command("argo")
def argo(
    what: What,
    parameters: Parameters = None,
    image: Annotated[str, typer.Option(help="The container image of all tasks.")] = "plyzero-trainer",
    claim: Annotated[str, typer.Option(help="A claim for a volume that many nodes can write to.")] = "plyzero-runs",
    name: Annotated[str | None, typer.Option(help="Name of the template, and directory on the claim.")] = None,
) -> None:
    """Print an experiment as an Argo WorkflowTemplate, whose tasks are the same commands."""
    common.require("hera")
    from plyzero.kits.experiments.argo import workflow_template

    definition, values = _experiment(what, parameters)
    print(workflow_template(definition, values, name=name or definition.name, image=image, claim=claim), end="")


@experiment.command("snakefile")
def snakefile(what: What, out: Out, parameters: Parameters = None) -> None:
    """Print an experiment as a Snakefile, whose rules are the same commands."""
    from plyzero.kits.experiments.snakefile import snakefile as make_snakefile

    print(make_snakefile(_plan(what, parameters), out), end="")


def _plan(what: str, parameters: list[str] | None) -> Plan:
    from plyzero.kits.experiments.plan import make_plan

    return make_plan(*_experiment(what, parameters))


def _experiment(what: str, parameters: list[str] | None) -> tuple[Definition, dict[str, Value]]:
    """Return the definition of an experiment, and its parameters."""
    from plyzero.kits.experiments.definition import parse_parameters, read_definition, shipped

    options = list(parameters or ())
    files = shipped()
    if what.endswith(".toml"):
        path = Path(what)
    elif what in files:
        path = files[what]
    else:
        common.find_game(what)
        path = files[DEFAULT]
        options.insert(0, f"game={what}")
    definition = read_definition(path)
    values = parse_parameters(definition, options)
    if isinstance(game := values.get("game"), str):
        common.find_game(game)
    return definition, values


def _gpus(number: int | None) -> list[str]:
    """Return the GPUs to use; without a GPU, slots for trainings."""
    from plyzero.kits.experiments.runner import NO_GPU

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        devices = [path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*")]
        slots = sorted(devices, key=int)
    else:
        slots = [each.strip() for each in visible.split(",") if each.strip()]
    if not slots:
        slots = [f"{NO_GPU} {each}" for each in range(1 if number is None else number)]
    if number is not None and number > len(slots):
        raise UserError(f"expected at most {len(slots)} --gpus, the GPUs that are visible, got {number}")
    return slots if number is None else slots[:number]


def _environment() -> dict[str, str]:
    """Return the environment of tasks: they find this plyzero first, and the modules of the current directory."""
    environment = dict(os.environ)
    for name, first in (("PATH", str(Path(sys.executable).parent)), ("PYTHONPATH", os.getcwd())):
        others = os.environ.get(name)
        environment[name] = f"{first}{os.pathsep}{others}" if others else first
    return environment


def _summarize(plan: Plan, out: Path, records: Mapping[str, Record], started: bool) -> None:
    from plyzero.kits.experiments.manifest import log_file

    states = [record.state for record in records.values()]
    left_out = f", {states.count('skipped')} left out by conditions" if "skipped" in states else ""
    counts = f"{states.count('done')} of {len(plan.tasks)} tasks are done{left_out}"
    failed = {name: record for name, record in records.items() if record.state == "failed"}
    if failed:
        reasons = "; ".join(f"{name}: {record.reason} (see {log_file(out, name)})" for name, record in failed.items())
        raise FailedError(f"{counts}; {len(failed)} failed, which the same command tries again: {reasons}")
    results = next((each.out for each in plan.tasks if each.out.endswith(".html")), "")
    print(f"{'' if started else 'nothing to do: '}{counts}; results: {out / results}")


def _rows_of(directory: Path, manifest: Manifest) -> list[dict[str, Any]]:
    from plyzero.kits.experiments.manifest import is_running, read_record

    has_runner = is_running(directory)
    rows = []
    for each in manifest["tasks"]:
        record = read_record(directory, each["name"])
        state = "waiting" if record is None else record.state
        if state == "running" and not has_runner:
            state = "interrupted"
        has_times = record is not None and record.began and record.ended
        rows.append(
            {
                "task": each["name"],
                "state": state,
                "seconds": seconds_of(record) if record is not None and has_times else None,
                "out": each["out"],
                "exists": (directory / each["out"]).exists(),
                "reason": "" if record is None else plain(record.reason, 400),
            }
        )
    return rows


MAX_WAITING: Final = 8
"""Number of waiting tasks in the table."""

COLOURS: Final = {"failed": "red", "blocked": "red", "done": "green", "running": "yellow"}
"""State of a task -> its colour."""


class TaskProgress:
    """Shows the states of tasks: a table on a terminal, elsewhere a line for each change and every LINE_SECONDS.

    started: whether any task was started.
    """

    def __init__(self, plan: Plan, directory: Path, stop: threading.Event) -> None:
        from rich.live import Live

        self._plan = plan
        self._directory = directory
        self._stop = stop
        self._console = common.make_console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._records: Mapping[str, Record] = {}
        self._interval = 0.5 if self._console.is_terminal else common.LINE_SECONDS
        self._next = time.monotonic() + self._interval
        self._was_stopping = False
        self.started = False

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, records: Mapping[str, Record]) -> None:
        """Show the records of the tasks that have begun."""
        before = self._records
        self._records = dict(records)
        for name, record in records.items():
            known = before.get(name)
            self.started = self.started or record.state == "running"
            if known is None or (known.state, known.attempts) != (record.state, record.attempts):
                self._changed(name, record, is_first=not before)
        if self._stop.is_set() and not self._was_stopping:
            self._was_stopping = True
            self._console.print("stopping: the running tasks save what they have, for a minute and a half at most")
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        if self._console.is_terminal:
            self._live.update(self._table(), refresh=True)
        else:
            for name, record in records.items():
                doing = self._doing(name, record) if record.state == "running" else ""
                if doing:
                    self._console.print(f"{name}, {seconds_of(record):.0f} s: {doing}")

    def _changed(self, name: str, record: Record, *, is_first: bool) -> None:
        if record.state == "done" and is_first:
            return  # it was done before
        if record.state == "running":
            if not self._console.is_terminal:
                again = f", attempt {record.attempts}" if record.attempts > 1 else ""
                self._console.print(f"{name} begins{again}")
            return
        took = f" in {seconds_of(record):.0f} s" if record.began else ""
        why = f": {record.reason}" if record.reason else ""
        self._console.print(f"{name} {record.state}{took}{why}", style=COLOURS.get(record.state))

    def _table(self) -> Table:
        """Return the table of tasks that have not ended; its title has the number of those that have."""
        states = {}
        for each in self._plan.tasks:
            states[each.name] = self._records[each.name].state if each.name in self._records else ""
        done = sum(state in ("done", "skipped") for state in states.values())
        table = common.make_table("task", "state", "time", "last line", title=f"{done} of {len(states)} tasks ended")
        waiting = [name for name, state in states.items() if not state]
        for name, state in states.items():
            if state and state not in ("done", "skipped"):
                record = self._records[name]
                table.add_row(
                    name, state, f"{seconds_of(record):.0f} s", self._doing(name, record), style=COLOURS.get(state)
                )
        for name in waiting[:MAX_WAITING]:
            table.add_row(name, "waiting", "", "")
        if len(waiting) > MAX_WAITING:
            table.add_row(f"and {len(waiting) - MAX_WAITING} more", "waiting", "", "")
        return table

    def _doing(self, name: str, record: Record) -> str:
        from plyzero.kits.experiments.manifest import log_file
        from plyzero.kits.experiments.runner import last_line

        return record.reason or plain(last_line(log_file(self._directory, name)), 100)


def seconds_of(record: Record) -> float:
    """Return the duration of a task so far; 0 if it was not started."""
    return 0.0 if record.began is None else (record.ended or time.time()) - record.began
