"""The local engine of experiments: starts each task when it can, repeats what fails, and stops what takes too long."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from plyzero.errors import UserError, plain
from plyzero.files import open_to_append, read_part, remove_tree
from plyzero.kits.experiments.manifest import Record, key_of, log_file, read_record, write_record
from plyzero.kits.experiments.plan import Plan, Task
from plyzero.ops.child import Child
from plyzero.ops.failures import describe_exit

POLL_SECONDS: Final = 0.1
"""Time between two looks at the processes, in seconds."""

STOP_SECONDS: Final = 90.0
"""Time that a task has to save and end after SIGTERM, in seconds; then it is killed. `plyzero train` takes up to 60."""

MARK: Final = "EXPERIMENT_ID"
"""Variable in the environment of every process of an experiment; its value is the experiment's id."""

WATCH: Final = "EXPERIMENT_RUNNER"
"""Variable with a descriptor from which nothing can be read; it comes to its end when the runner dies."""

STOPPED: Final = "stopped"
"""Why an attempt ends that the whole call ends."""

NO_GPU: Final = "slot"
"""Beginning of the names of GPU slots on a machine without a GPU."""


class Slots(NamedTuple):
    """Resources for tasks that run at the same time. A task that asks for more takes all.

    gpus: the GPUs, as CUDA_VISIBLE_DEVICES names them, or NO_GPU and a number.
    """

    cpus: int
    gpus: Sequence[str]


def run_plan(
    plan: Plan,
    directory: Path,
    experiment: str,
    *,
    slots: Slots,
    environment: Mapping[str, str],
    stop: threading.Event,
    fail_fast: bool = False,
    on_change: Callable[[Mapping[str, Record]], None] = lambda records: None,
) -> dict[str, Record]:
    """Run what is missing of a plan in an open experiment, and return the record of each task that was considered.

    A task whose record says that it is done is not run again, unless its command or anything that it waits for has
    changed, or its output is gone. After `stop` nothing is started, and what runs is stopped. All processes have ended
    when this function returns.

    environment: all variables of the tasks.
    fail_fast:   start nothing more after a failure; otherwise only what needs the failed task is not run.
    on_change:   called about ten times a second with the records so far.
    """
    kill_leftovers(experiment)
    tasks = Tasks(plan, directory, slots, {**environment, MARK: experiment})
    try:
        while True:
            tasks.finish_those_that_ended(stop)
            if stop.is_set():
                tasks.ask_to_stop()
            elif not (fail_fast and tasks.has_failed()):
                tasks.start_what_can()
            on_change(tasks.records())
            if not tasks.running:
                return tasks.ended
            time.sleep(POLL_SECONDS)
    finally:
        for attempt in tasks.running.values():  # there are some only if an error has ended the loop
            attempt.kill()


class Tasks:
    """The tasks of a plan that run, and the records of those that have ended, both by name."""

    def __init__(self, plan: Plan, directory: Path, slots: Slots, environment: Mapping[str, str]) -> None:
        self.running: dict[str, Attempt] = {}
        self.ended: dict[str, Record] = {}
        self._plan = plan
        self._directory = directory
        self._slots = slots
        self._environment = environment

    def records(self) -> dict[str, Record]:
        """Return the records of all these tasks."""
        return {**self.ended, **{name: attempt.record for name, attempt in self.running.items()}}

    def has_failed(self) -> bool:
        """Return whether a task has failed, and is not tried again."""
        return any(record.state == "failed" for record in self.ended.values())

    def start_what_can(self) -> None:
        """Start the tasks for which there is room, and whose predecessors have ended."""
        for task in self._plan.tasks:
            waits = not self.ended.keys() >= {*task.needs, *task.after}
            if waits or task.name in self.ended or task.name in self.running:
                continue
            if record := _without_running(task, self._directory, self.ended):
                self.ended[task.name] = record
            elif (gpus := _room(task, self._slots, self.running.values())) is not None:
                self._start(task, gpus, attempts=1)

    def finish_those_that_ended(self, stop: threading.Event) -> None:
        """Write the records of the tasks that have ended; start those again that may be retried, until `stop`."""
        for attempt in [*self.running.values()]:
            record = attempt.poll()
            if record is None:
                continue
            task = attempt.task
            del self.running[task.name]
            write_record(self._directory, task.name, record)
            if record.state == "failed" and record.attempts <= task.retries and not stop.is_set():
                self._start(task, attempt.gpus, attempts=record.attempts + 1)
            else:
                self.ended[task.name] = record

    def ask_to_stop(self) -> None:
        """Stop what runs; it may save first."""
        for attempt in self.running.values():
            attempt.ask_to_stop(STOPPED)

    def _start(self, task: Task, gpus: Sequence[str], *, attempts: int) -> None:
        record = Record("running", key_of(task, self.ended), uuid.uuid4().hex, "", attempts, time.time())
        _make_room(self._directory, task, record.key)
        write_record(self._directory, task.name, record)
        real = [gpu for gpu in gpus if not gpu.startswith(NO_GPU)]
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(real)} if real else {}
        self.running[task.name] = Attempt(task, self._directory, record, gpus, {**self._environment, **visible})


def _without_running(task: Task, directory: Path, ended: Mapping[str, Record]) -> Record | None:
    """Return the record of a task that must not be run; None if it must be. All that it waits for has ended."""
    before = read_record(directory, task.name)
    record = _left_out(task, directory, ended)
    if record is None:
        done = before is not None and (before.state, before.key) == ("done", key_of(task, ended))
        return before if done and (directory / task.out).exists() else None
    if record != before:
        write_record(directory, task.name, record)
    return record


def _left_out(task: Task, directory: Path, ended: Mapping[str, Record]) -> Record | None:
    """Return why a task cannot or must not run; None if it can."""
    for name in task.needs:
        if ended[name].state == "skipped":
            return Record("skipped", reason=f"it needs {name}, which was left out")
        if ended[name].state != "done":
            verb = "failed" if ended[name].state == "failed" else "was not run"
            return Record("blocked", reason=f"it needs {name}, which {verb}")
    for condition in task.conditions:
        path = directory / condition.file
        try:
            value = float(read_part(path, 0, max_bytes=100).decode())
        except (OSError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            return Record("failed", reason=f"cannot judge {condition.text}: expected a number in {condition.file}")
        if not condition.holds(value):
            return Record("skipped", reason=f"{condition.text} is false: {condition.task} has {value:g}")
    return None


def _room(task: Task, slots: Slots, running: Iterable[Attempt]) -> Sequence[str] | None:
    others = [*running]
    taken = sum(min(each.task.cpus, slots.cpus) for each in others)
    free = [gpu for gpu in slots.gpus if not any(gpu in each.gpus for each in others)]
    wanted = min(task.gpus, len(slots.gpus))
    has_room = taken + min(task.cpus, slots.cpus) <= slots.cpus and len(free) >= wanted
    return free[:wanted] if has_room else None


def _make_room(directory: Path, task: Task, key: str) -> None:
    """Remove what another command, or the same one with other inputs, has left; keep what the same one began."""
    before = read_record(directory, task.name)
    if before is None or before.key != key or before.state == "done":
        remove_tree(directory / task.out)


class Attempt:
    """A task that runs, in a child process.

    record: what is known of it so far.
    gpus:   the GPU slots that it holds.
    """

    def __init__(
        self, task: Task, directory: Path, record: Record, gpus: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.task = task
        self.record = record
        self.gpus = gpus
        self._why = ""  # the reason why it cannot start, or is stopped
        self._began = time.monotonic()
        self._log = log_file(directory, task.name)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._child: Child | None = None
        try:
            with open_to_append(self._log) as log:
                log.write(f"$ {' '.join(task.command)}\n".encode())
            self._child = Child(
                task.name, task.command, log=self._log, directory=directory, environment=environment, watched=WATCH
            )
        except OSError as error:  # no such program
            self._why = f"cannot start {task.command[0]}: {error.strerror}"

    def poll(self) -> Record | None:
        """Return the record once the task has ended, otherwise None. A task that takes too long is stopped."""
        if self._child is None:
            return self._ended("failed", self._why)
        code = self._child.exit_code()
        if code is None:
            limit = self.task.timeout
            if limit is not None and time.monotonic() - self._began > limit:
                self.ask_to_stop(f"it took longer than {limit / 60:g} minutes")
            return None
        self._child.kill()  # what the task has left behind in its group
        if self._why == STOPPED:
            return self._ended("stopped", "stopped before it was finished")
        if code == 0 and not self._why:
            return self._ended("done")
        return self._ended("failed", self._why or self._last_words(code))

    def ask_to_stop(self, why: str) -> None:
        """Send SIGTERM to the task, once; it is killed if it has not ended STOP_SECONDS later."""
        if self._child is not None and not self._why:
            self._why = why
            self._child.ask_to_stop(STOP_SECONDS)

    def kill(self) -> None:
        """End the task at once."""
        if self._child is not None:
            self._child.kill()

    def _ended(self, state: str, reason: str = "") -> Record:
        return replace(self.record, state=state, reason=reason, ended=time.time())

    def _last_words(self, code: int) -> str:
        line = last_line(self._log)
        return f"{describe_exit(code)}: {line}" if line else describe_exit(code)


def last_line(log: Path) -> str:
    """Return the last line that is not empty of the last attempt in a log; "" if there is none."""
    try:
        size = log.stat().st_size
        text = read_part(log, max(0, size - 4096), max_bytes=4096).decode(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.rpartition("\n$ ")[2].splitlines()[1:] if line.strip()]
    return plain(lines[-1].strip(), 300) if lines else ""


def kill_leftovers(experiment: str) -> None:
    """Kill the processes that an earlier runner of an experiment has left because it was killed itself.

    They are found by their environment, which only Linux shows; elsewhere nothing is done. Raises UserError if they do
    not end.
    """
    mark, deadline = f"{MARK}={experiment}".encode(), time.monotonic() + 20
    while found := [*_processes_with(mark)]:
        if time.monotonic() > deadline:
            raise UserError(f"processes of an earlier call do not end: {found}; kill them and start again")
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def _processes_with(mark: bytes) -> Iterator[int]:
    """Yield the numbers of the other processes that have `mark` in their environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        with suppress(OSError):  # it has ended, or is another user's
            if pid != os.getpid() and mark in read_part(path, 0, max_bytes=1 << 20).split(b"\0"):
                yield pid
