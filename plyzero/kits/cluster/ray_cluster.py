"""Workers and a trainer on a Ray cluster: each is a plyzero command that an actor starts, and starts again."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from plyzero.errors import UserError, plain
from plyzero.kits.cluster.keeper import Keeper, Report, Role
from plyzero.ops.failures import describe_log
from plyzero.ops.local_processes import STOP_SECONDS
from plyzero.ops.processes import stop_on_signals
from plyzero.ops.summary import summarize_files
from plyzero.ops.supervisor import Messages, Observer
from plyzero.run.budget import read_done
from plyzero.run.directory import Run

POLL_SECONDS: Final = 0.5
"""Seconds between two looks at the actors."""


def keep_running(run: Run, roles: Sequence[Role], *, address: str | None, on_line: Callable[[str], None]) -> None:
    """Keep the processes of `roles` running on a Ray cluster, until the run is done or a signal stops this process.

    address: address of the cluster; auto = the one of this machine, None = start one on this machine.
    on_line: called with a line about every change, and regularly about the state of the processes.

    Raises UserError if there is no such cluster.
    """
    import ray

    if done := read_done(run):
        on_line(f"done: {done}")
        return
    stop = _connect(address, cpus=len(roles))
    try:
        environment = {key: value for key, value in os.environ.items() if key.startswith(("PLYZERO_", "AWS_"))}
        keeper = ray.remote(Keeper)
        actors = {}
        for role in roles:
            options = {"num_cpus": 1, "num_gpus": role.gpus, "max_restarts": -1}
            log = run.logs / f"{role.name}.log"
            actors[role.name] = keeper.options(**options).remote(role, log, os.getcwd(), environment)
        watch = Watch(run, actors, on_line)
        while not (stop.wait(POLL_SECONDS) or watch.is_over()):
            watch.look()
            watch.report_progress()
        watch.stop()
    finally:
        ray.shutdown()


def _connect(address: str | None, *, cpus: int) -> threading.Event:
    """Connect to a cluster, or start one with `cpus` slots. Return an event that is set by signals."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no statistics to Ray's makers
    options: dict[str, object] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        store = 100 << 20  # bytes for Ray's objects; plyzero makes none
        options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": store}
    try:
        _check_reachable(address)
        ray.init(address=address or "local", **options)
    except (OSError, ValueError, RuntimeError) as error:
        where = f"there is no Ray cluster at --address {address}" if address else "Ray does not start here"
        raise UserError(f"{where}: {plain(str(error), 200)}") from error
    return stop_on_signals()  # only now: Ray has a handler of its own


def _check_reachable(address: str | None) -> None:
    """Raise OSError if nobody listens at HOST:PORT; Ray itself would report this only after many minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.removeprefix("ray://"), int(port)), timeout=10.0).close()


class Watch:
    """Asks the actors for their state, and reports every change."""

    def __init__(self, run: Run, actors: Mapping[str, Any], on_line: Callable[[str], None]) -> None:
        self._run = run
        self._actors = actors
        self._on_line = on_line
        self._began = time.monotonic()
        self._messages = Messages(self._report_line)
        self._observer = Observer(run, began=self._began, notify=self._messages)
        self._questions: dict[Any, str] = {}  # reference to an answer that has not come yet -> name of the actor
        self._reports: dict[str, Report] = {}  # name of an actor -> its newest report
        self._absent: set[str] = set(actors)  # actors that have not answered since their start, or have died
        self._next_progress = 0.0
        self._reached = ""  # the last report about the files of the run
        self._rater_ended: int | None = None  # how often the rater had ended when the run was done

    def is_over(self) -> bool:
        """Return whether the run is done, and the rater, if there is one, has measured everything and ended."""
        rater = self._reports.get("rater")
        if self._rater_ended is None and (done := read_done(self._run)):
            self._rater_ended = rater.ended if rater else 0
            self._report_line(f"done: {done}")
            for name in self._actors.keys() - {"rater"}:
                self._actors[name].stop.remote()
        return self._rater_ended is not None and (rater is None or rater.ended > self._rater_ended)

    def look(self) -> None:
        """Ask the actors, and report all changes."""
        import ray

        asked = set(self._questions.values())
        for name, actor in self._actors.items():
            if name not in asked:
                self._questions[actor.report.remote()] = name
        done, _ = ray.wait(list(self._questions), num_returns=len(self._questions), timeout=POLL_SECONDS)
        for answer in done:
            name = self._questions.pop(answer)
            try:
                report = ray.get(answer)
            except ray.exceptions.RayActorError:
                if name not in self._absent:
                    self._absent.add(name)
                    self._report_line(f"{name}: its actor has died, Ray starts it again; its process ends by itself")
                continue
            self._absent.discard(name)
            self._compare(name, self._reports.get(name), report)
            self._reports[name] = report

    def _compare(self, name: str, before: Report | None, report: Report) -> None:
        if report.ended and (before is None or report.ended != before.ended):
            reason = f": {describe_log(report.log, report.exit_code, self._run.game)}" if report.exit_code else ""
            self._report_line(f"{name} has ended{reason}")
        if report.process and (before is None or report.process != before.process):
            again = " again" if before else ""
            self._report_line(f"{name} runs{again}, process {report.process} on {report.node}")

    def report_progress(self) -> None:
        """Report the state of the processes, every ten seconds."""
        if time.monotonic() < self._next_progress:
            return
        self._next_progress = time.monotonic() + 10.0
        if not self._messages.unless_error(self._observer.refresh):
            return
        lines = self._messages.unless_error(lambda: summarize_files(self._run))
        if lines and lines[0] != self._reached:
            self._reached = lines[0]
            self._report_line(self._reached)
        parts = [self._observer.describe([], rating=None)]
        if self._absent:
            parts.insert(0, f"Ray starts {', '.join(sorted(self._absent))}")
        self._report_line(", ".join(filter(None, parts)))

    def stop(self) -> None:
        """Stop all processes, and wait for up to STOP_SECONDS until they have ended."""
        self._report_line("stopping: the workers store their finished games, the trainer saves")
        for actor in self._actors.values():
            actor.stop.remote()
        deadline = time.monotonic() + STOP_SECONDS
        while left := sorted(name for name, report in self._reports.items() if report.process):
            if time.monotonic() >= deadline:
                self._report_line(f"not ended within {STOP_SECONDS:.0f} s: {', '.join(left)}")
                return
            time.sleep(POLL_SECONDS)
            self.look()

    def _report_line(self, text: str) -> None:
        seconds = int(time.monotonic() - self._began)
        self._on_line(f"{seconds // 60:3d}:{seconds % 60:02d}  {plain(text)}")
