"""Workers and a trainer on a Ray cluster: each is a plyzero command that an actor starts, and starts again."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from plyzero.errors import UserError, plain
from plyzero.ops.failures import describe_log
from plyzero.ops.processes import Child, stop_on_signals
from plyzero.ops.supervisor import STOP_SECONDS, RunView
from plyzero.run.directory import Run

POLL_SECONDS: Final = 0.5
"""Time between two looks at the actors, in seconds."""

PROGRESS_SECONDS: Final = 10.0
"""Time between two lines that say what the processes are doing, in seconds."""

FIRST_DELAY, LAST_DELAY, STEADY_SECONDS = 1.0, 60.0, 60.0
"""A process that has ended starts again after the first delay, which doubles up to the last one. It is the first one
again after a process has lasted for STEADY_SECONDS. In seconds."""

STORE_BYTES: Final = 100 << 20
"""Memory for Ray's objects on a cluster that is started here, in bytes; plyzero has none there."""


class Role(NamedTuple):
    """A process to keep running.

    name:      of the process and of its log.
    arguments: of its command.
    gpus:      number of GPUs that it needs.
    """

    name: str
    arguments: list[str]
    gpus: int = 0


class Report(NamedTuple):
    """What an actor says of its process.

    node:    the host.
    actor:   the process number of the actor.
    process: the process number of the command; 0 while it has ended.
    ended:   exit code and log of the process before, None if there was none.
    """

    node: str
    actor: int
    process: int
    ended: tuple[int, str] | None


def keep_running(
    run: Run,
    roles: Sequence[Role],
    *,
    address: str | None,
    on_line: Callable[[str], None],
) -> None:
    """Keep the processes of `roles` running on a Ray cluster, until a signal stops this process and them.

    address: of the cluster, auto = one that this machine belongs to, None = start one on this machine.
    on_line: called with every change, and from time to time with what the processes are doing.

    Raises UserError if there is no such cluster.
    """
    import ray

    stop = _connect(address, cpus=len(roles))
    try:
        environment = {key: value for key, value in os.environ.items() if key.startswith("PLYZERO_")}
        keeper, actors = ray.remote(Keeper), {}
        for role in roles:
            options = {"num_cpus": 1, "num_gpus": role.gpus, "max_restarts": -1}
            log = run.logs / f"{role.name}.log"
            actors[role.name] = keeper.options(**options).remote(role, log, os.getcwd(), environment)
        watch = Watch(run, actors, on_line)
        while not stop.wait(POLL_SECONDS):
            watch.look()
            watch.tell_progress()
        watch.stop()
    finally:
        ray.shutdown()


def _connect(address: str | None, *, cpus: int) -> threading.Event:
    """Connect to a cluster, or start one with so many CPU slots. Return the event that signals set."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    try:
        ray.init(address=address or "local", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"--address {address}: there is no Ray cluster: {plain(str(error), 200)}") from error
    return stop_on_signals()  # only now: Ray has a handler of its own


class Keeper:
    """The actor: a command in a child process, which is started again whenever it has ended.

    The child stops when its standard input ends, which is a pipe from here, so it never outlives the actor.
    """

    def __init__(self, role: Role, log: Path, directory: str, environment: Mapping[str, str]) -> None:
        """Start the command in `directory`, where that exists, as modules of games are looked for there."""
        with suppress(OSError):
            os.chdir(directory)
        os.environ.update(environment)
        self._role, self._log = role, log
        self._ended: tuple[int, str] | None = None
        self._delay, self._is_stopping = FIRST_DELAY, False
        self._child: Child | None = None
        self._next_start = 0.0
        self._lock = threading.Lock()
        threading.Thread(target=self._keep, name="keeper", daemon=True).start()

    def report(self) -> Report:
        """Return what the process is doing."""
        with self._lock:
            process = self._child.pid if self._child else 0
            return Report(socket.gethostname(), os.getpid(), process, self._ended)

    def stop(self) -> None:
        """Let the process store what it has and end, and start no other."""
        with self._lock:
            self._is_stopping = True
            if self._child:
                self._child.ask_to_stop()

    def _keep(self) -> None:
        while True:
            with self._lock:
                self._look()
            time.sleep(POLL_SECONDS)

    def _look(self) -> None:
        now = time.monotonic()
        if self._child is None:
            if now >= self._next_start and not self._is_stopping:
                self._child, self._started = Child(self._role.name, self._role.arguments, self._log), now
        elif (code := self._child.exit_code()) is not None:
            self._ended = (code, self._child.read_log())
            self._delay = FIRST_DELAY if now - self._started >= STEADY_SECONDS else min(LAST_DELAY, 2 * self._delay)
            self._next_start = now + self._delay
            self._child = None


class Watch:
    """Asks the actors what they do, and tells every change."""

    def __init__(self, run: Run, actors: Mapping[str, Any], on_line: Callable[[str], None]) -> None:
        self._run, self._actors, self._on_line = run, actors, on_line
        self._began = time.monotonic()
        self._view = RunView(run, began=self._began)
        self._questions: dict[Any, str] = {}  # reference to an answer that has not come yet -> name
        self._reports: dict[str, Report] = {}  # the newest ones
        self._absent: set[str] = set(actors)  # actors that have not answered since they were started, or have died
        self._next_progress = 0.0

    def look(self) -> None:
        """Tell what has changed."""
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
                    self._tell(f"{name}: its actor has died, Ray starts it again; its process ends by itself")
                continue
            self._absent.discard(name)
            self._compare(name, self._reports.get(name), report)
            self._reports[name] = report

    def _compare(self, name: str, before: Report | None, report: Report) -> None:
        ended = report.ended if before is None or report.ended != before.ended else None
        if ended:
            code, log = ended
            self._tell(f"{name} has ended" + (f": {describe_log(log, code, self._run.game)}" if code else ""))
        if report.process and (before is None or report.process != before.process):
            again = " again" if before else ""
            self._tell(f"{name} runs{again}, process {report.process} on {report.node}")

    def tell_progress(self) -> None:
        """Every PROGRESS_SECONDS, tell what the processes are doing."""
        if time.monotonic() < self._next_progress:
            return
        self._next_progress = time.monotonic() + PROGRESS_SECONDS
        try:
            self._view.refresh()
        except OSError as error:
            self._tell(f"warning: cannot read the run: {error}")
            return
        absent = f"Ray starts {', '.join(sorted(self._absent))}" if self._absent else ""
        self._tell(", ".join(filter(None, [absent, self._view.describe([], rating=None)])))

    def stop(self) -> None:
        """Stop all processes and wait until they have ended, for STOP_SECONDS at most."""
        self._tell("stopping: the workers store their finished games, the trainer saves")
        for actor in self._actors.values():
            actor.stop.remote()
        deadline = time.monotonic() + STOP_SECONDS
        while left := sorted(name for name, report in self._reports.items() if report.process):
            if time.monotonic() >= deadline:
                self._tell(f"not ended within {STOP_SECONDS:.0f} s: {', '.join(left)}")
                return
            time.sleep(POLL_SECONDS)
            self.look()

    def _tell(self, text: str) -> None:
        seconds = int(time.monotonic() - self._began)
        self._on_line(f"{seconds // 60:3d}:{seconds % 60:02d}  {plain(text)}")
