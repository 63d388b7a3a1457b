"""Attacks on the processes of a run from outside, and an account of every game that they acknowledge and take in.

A `Crew` is some workers and a trainer (tests/helpers/attacked.py). They have preloaded attacks.c, so `Control` can make
their system calls fail and their clocks stand still. What they acknowledge and take in they also write into a directory
that is never attacked.
"""

import json
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from plyzero.run.directory import Run
from plyzero.run.metrics import TRAINER
from tests.helpers.runs import small_run

ROOT = Path(__file__).parent.parent.parent
WORKERS_UID, TRAINER_UID = 61001, 61002
RESTART_SECONDS = 1.0
"""Time after which a process that has died is started again."""

STOP_SECONDS = 60.0
"""Time within which a process stops that is asked to."""

ATTACKED = (
    "store.min_free_mb=0",
    "store.keep_positions=20000",
    "store.keep_models=2",
    "store.keep_model_minutes=0.05",
    "store.sync_seconds=0.5",
    "selfplay.when_ahead=throttle",
    "selfplay.seal_seconds=1",
    "trainer.publish_seconds=1",
    "trainer.replay_ratio=1",
)
"""Settings under which much happens within seconds, removals too."""

CALLS = ("open", "read", "stat", "list", "link", "rename", "write", "sync", "remove", "lock")
"""Groups of calls that can fail, in the order of their bits in attacks.c."""


class Control:
    """The faults of the processes that have mapped this file; they change while these run."""

    _HEAD, _RULE = struct.Struct("<IIqqq"), struct.Struct("<64sIiII")

    def __init__(self, path: Path, *, seed: int = 0) -> None:
        self.path = path
        self._seed = seed
        self._rules = 0
        path.write_bytes(bytes(self._HEAD.size + 8 * self._RULE.size))
        path.chmod(0o666)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._failed = 0
        self.clock()

    def fail(self, error: int, calls: str, part: str = "", *, share: float = 1.0) -> None:
        """Let calls of these groups (words of CALLS) fail with `error` where `part` is in the path."""
        bits = sum(1 << CALLS.index(call) for call in calls.split())
        rule = self._RULE.pack(part.encode(), bits, error, int(share * 1e6), 0)
        self._map[self._at(self._rules) : self._at(self._rules + 1)] = rule
        self._rules += 1
        self._map[:4] = struct.pack("<I", self._rules)

    def clear(self) -> None:
        """Let all calls work again."""
        self._map[:4] = bytes(4)
        self._failed, self._rules = self.failed, 0

    @property
    def failed(self) -> int:
        """Number of calls that have failed so far."""
        rules = (self._RULE.unpack(self._map[self._at(n) : self._at(n + 1)]) for n in range(self._rules))
        return self._failed + sum(rule[4] for rule in rules)

    def clock(self, *, stands: bool = False, offset: float = 0.0, monotonic_stands: bool = False) -> None:
        """Let the time of day stand still or be wrong by `offset` seconds, and the monotonic clock stand still."""
        real, monotonic = stands * time.time_ns(), monotonic_stands * time.monotonic_ns()
        head = self._HEAD.pack(self._rules, self._seed, int(offset * 1e9), real, monotonic)
        self._map[4 : self._HEAD.size] = head[4:]

    def _at(self, rule: int) -> int:
        return self._HEAD.size + rule * self._RULE.size


@dataclass
class Member:
    """A process of a crew, which is started again whenever it ends. What is changed here holds from its next start on.

    root: the run directory as this process sees it. uid: None = that of the tests.
    """

    name: str
    control: Control
    log: Path
    root: Path
    uid: int | None = None
    umask: int = 0o022
    pid: int | None = None
    start_at: float = 0.0
    expected: bool = False  # to end


@dataclass
class Account:
    """The fate of the games, counted by the test alone: `read` brings it up to date.

    acknowledged: by a worker, since its journal has them. taken_in: by the trainer, in its order; what a crash has
    undone is not in it. resumed: how often a trainer has started. faults: what cannot be, such as a state that counts
    other games than were taken in.
    """

    directory: Path
    acknowledged: set[int] = field(default_factory=set)
    taken_in: list[int] = field(default_factory=list)
    resumed: int = 0
    faults: list[str] = field(default_factory=list)
    _read: dict[Path, int] = field(default_factory=dict)

    def read(self) -> Self:
        for path in self.directory.glob("acknowledged-*"):
            self.acknowledged.update(int(line) for line in self._new_lines(path) if line.isdecimal())
        for line in self._new_lines(self.directory / "taken-in"):
            words = line.split()
            kind = words[0] if words else ""
            numbers = words[1:]
            if kind == "taken":
                self.taken_in += map(int, numbers)
            elif kind == "resumed":
                games = int(numbers[0])
                self.resumed += 1
                if games > len(self.taken_in):
                    self.faults.append(f"a state counts {games} games, but {len(self.taken_in)} were taken in")
                del self.taken_in[games:]
        return self

    @property
    def missing(self) -> set[int]:
        """The games that were acknowledged and are not taken in yet; at the end they are lost."""
        return self.acknowledged.difference(self.taken_in)

    @property
    def twice(self) -> int:
        """Number of games that were taken in more than once."""
        return sum(count > 1 for count in Counter(self.taken_in).values())

    def _new_lines(self, path: Path) -> list[str]:
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            whole, end, _ = file.read().rpartition(b"\n")
        self._read[path] = self._read.get(path, 0) + len(whole) + len(end)
        return whole.decode().splitlines()


class Crew:
    """Workers and a trainer of one run. Use it in a `with`; at its end none is left.

    account: of their games. kills: how many. died: who ended without being killed or asked to, and its last words.
    """

    def __init__(self, directory: Path, run: Run, *, workers: int = 2, seed: int = 0) -> None:
        """directory: for logs and what is acknowledged; it exists and is not attacked."""
        self.directory, self.run = directory, run
        self.account = Account(directory)
        self.kills: Counter[str] = Counter()
        self.died: list[str] = []
        self.members = {
            name: Member(name, Control(directory / f"control-{name}", seed=seed), directory / f"{name}.log", run.root)
            for name in [TRAINER, *(f"w{number}" for number in range(workers))]
        }
        self.workers = [member for name, member in self.members.items() if name != TRAINER]
        self.trainer = self.members[TRAINER]

    def __enter__(self) -> Self:
        for member in self.members.values():
            self.start(member)
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            member.start_at = float("inf")
            if member.pid is not None:
                member.expected = True
                os.kill(member.pid, signal.SIGKILL)
        while any(member.pid for member in self.members.values()):
            self.look()
            time.sleep(0.01)

    def start(self, member: Member) -> None:
        """Start a process that does not run."""
        acknowledged = self.directory / ("taken-in" if member is self.trainer else f"acknowledged-{member.name}")
        given = [str(member.root), str(acknowledged), str(member.control.path), str(member.log)]
        member.pid = ask("start", member.name, *given, member.uid, member.umask)
        member.expected = False

    def kill(self, *members: Member) -> None:
        """Send SIGKILL; `look` starts them again, at once."""
        for member in members:
            if member.pid is not None:
                member.expected = True
                os.kill(member.pid, signal.SIGKILL)
                member.start_at = time.monotonic()
                self.kills["trainer" if member is self.trainer else "worker"] += 1

    def stop(self, *members: Member) -> None:
        """Ask these processes to stop, and wait until they have."""
        self.signal(signal.SIGTERM, *members)
        for member in members:
            member.expected, member.start_at = True, float("inf")
        deadline = time.monotonic() + STOP_SECONDS
        while any(member.pid for member in members) and time.monotonic() < deadline:
            self.look()
            time.sleep(0.05)
        for member in members:
            if member.pid is not None:
                self.died.append(f"{member.name} did not stop within {STOP_SECONDS:.0f} s")
                os.kill(member.pid, signal.SIGKILL)

    def signal(self, number: int, *members: Member) -> None:
        for member in members:
            if member.pid is not None:
                os.kill(member.pid, number)

    def look(self) -> None:
        """Note who has died, and start again whoever does not run."""
        for pid, code in ask("ended"):
            member = next(each for each in self.members.values() if each.pid == pid)
            if not member.expected or code not in (0, -signal.SIGKILL, -signal.SIGTERM):
                lines = member.log.read_text(errors="replace").strip().splitlines() or ["nothing"]
                last = re.sub(r"[0-9a-f]{8,}|\d{4,}", "#", lines[-1].replace(f"{member.root}/", ""))[:300]
                self.died.append(f"{member.name} ended with {code}: {last}")
                member.start_at = min(member.start_at, time.monotonic() + RESTART_SECONDS)
            member.pid = None
        for member in self.members.values():
            if member.pid is None and time.monotonic() >= member.start_at:
                member.start_at = float("inf")
                self.start(member)

    def work(self, seconds: float) -> None:
        """Let everybody work for some time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.look()
            time.sleep(0.05)

    def work_until(self, holds: Callable[[], object], *, seconds: float = 60.0) -> None:
        """Let everybody work until `holds()` is true; AssertionError after `seconds`."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, (
                f"waited in vain; {len(self.account.read().taken_in)} games taken in: {Counter(self.died)}"
            )
            self.work(0.2)

    def work_until_taken_in(self, *, games: int, seconds: float = 60.0) -> None:
        """Let everybody work until `games` more are taken in; AssertionError after `seconds`."""
        wanted = len(self.account.read().taken_in) + games
        self.work_until(lambda: len(self.account.read().taken_in) >= wanted, seconds=seconds)

    def settle(self, *, patience: float = 90.0) -> dict[str, Any]:
        """Stop the workers, wait until the trainer has taken in everything, stop it, and report what became of it.

        patience: seconds without a new game after which the missing ones are lost.
        """
        for member in self.members.values():
            member.control.clear()
            member.control.clock()
        self.signal(signal.SIGCONT, *self.members.values())
        self.work(2 * RESTART_SECONDS)
        self.stop(*self.workers)
        self.account.read()
        taken_in, since = -1, time.monotonic()
        while (self.account.missing or self._journals()) and time.monotonic() < since + patience:
            self.work(0.5)
            if len(self.account.read().taken_in) != taken_in:
                taken_in, since = len(self.account.taken_in), time.monotonic()
        self.stop(self.trainer)
        return self.report()

    def warnings(self, *, each: int = 12) -> str:
        """Return the last warnings and errors in the logs, for a person who looks for what went wrong."""
        found = []
        for member in self.members.values():
            lines = member.log.read_text(errors="replace").splitlines() if member.log.exists() else []
            told = [line.replace(f"{member.root}/", "")[:300] for line in lines if " INFO " not in line]
            found += [f"{member.name}: {line}" for line in told[-each:]]
        return "\n".join(found)

    def report(self) -> dict[str, Any]:
        """Return the figures as of now; before `settle` the games that are on their way count as lost."""
        account = self.account.read()
        return {
            "acknowledged": len(account.acknowledged),
            "lost": len(account.missing),
            "twice": account.twice,
            "died": dict(Counter(self.died)),
            "faults": account.faults,
            "kills": dict(self.kills),
            "failed calls": sum(member.control.failed for member in self.members.values()),
        }

    def _journals(self) -> list[Path]:
        """The journals of our workers that are not sealed yet, whatever they are called by then."""
        return [path for path in self.run.journals.glob("w*") if path.is_file()]


@cache
def forker() -> "subprocess.Popen[str]":
    """Start the process that starts all members; it ends, and kills them, when its standard input does."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.attacked"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), **os.environ, "LD_PRELOAD": str(library())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(*question: object) -> Any:
    """Return the answer of the process that starts all members."""
    process = forker()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    assert answer, "the process that starts the others has ended"
    return json.loads(answer)


def attacked_run(root: Path, *options: str) -> Run:
    """A small run whose directories everybody may write."""
    run = small_run(root, "tic-tac-toe", *ATTACKED, *options)
    for directory in (root, *(path for path in root.iterdir() if path.is_dir())):
        directory.chmod(0o777)
    return run


def permit(run: Run) -> None:
    """Let everybody read the games of a run, as somebody does who reads that the trainer may not."""
    for directory in (run.segments, run.journals):
        for path in directory.glob("w*"):
            with suppress(FileNotFoundError):
                path.chmod(0o644)


@cache
def library() -> Path:
    """Compile attacks.c, once per process."""
    made = Path(tempfile.mkdtemp(prefix="attacks-")) / "attacks.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"], check=True)
    made.parent.chmod(0o755)
    return made
