"""Attacks on the processes of a run from outside, and an account of every game that they acknowledge and take in.

A `Crew` is some workers and a trainer. They are forked from one process (`python -m tests.helpers.attacks`) that has
imported and compiled everything and that has preloaded attacks.c, so `Control` can make their system calls fail and
their clocks stand still. What they acknowledge and take in they also write into a directory that is never attacked.
"""

import ctypes
import json
import logging
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from plyzero.run.directory import Run
from plyzero.run.records import Games
from tests.helpers import victims
from tests.helpers.runs import small_run

ROOT = Path(__file__).parent.parent.parent
WORKERS_UID, TRAINER_UID = 61001, 61002
TRAINER = "trainer"
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

KINDS = ("directory", "socket", "loop", "fifo", "unreadable")
"""Kinds of entries that cannot be read as a file."""

MARK = "99009"
"""In the name of every such entry, followed by the number of its kind."""

NAMES = (
    "journal/bad.00MARK-00000000.wal",
    "journal/bad.00MARK-00000000.taken",
    "replay/bad.00MARK-00000000-g1-p5-f1-m0_0.zarr.zip",
    "models/999999-000MARK-00000000.onnx",
    "workers/bad.00MARK.json",
    "trainer/state-999999-000MARK.pt",
    "trainer/fence-MARK.json",
    "metrics/trainer-MARK.jsonl",
)
"""Names under which they lie where a worker, the trainer or `train` looks."""


class Control:
    """What fails in the processes that have mapped this file; it changes while they run."""

    _HEAD, _RULE = struct.Struct("<IIqqq"), struct.Struct("<64sIiII")

    def __init__(self, path: Path, *, seed: int = 0) -> None:
        self.path, self._seed, self._rules = path, seed, 0
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
        """How many calls have failed so far."""
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
    """What became of the games, counted by the test alone: `read` brings it up to date.

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
            kind, *numbers = line.split() or [""]
            if kind == "taken":
                self.taken_in += map(int, numbers)
            elif kind == "resumed":
                games, self.resumed = int(numbers[0]), self.resumed + 1
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
        """How many games were taken in more than once."""
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

    def work_until_taken_in(self, *, games: int, seconds: float = 60.0) -> None:
        """Let everybody work until so many games more are taken in than now; AssertionError after `seconds`."""
        wanted, deadline = len(self.account.read().taken_in) + games, time.monotonic() + seconds
        while len(self.account.read().taken_in) < wanted:
            assert time.monotonic() < deadline, (
                f"{len(self.account.taken_in)} games taken in, not {wanted}: {Counter(self.died)}"
            )
            self.work(0.2)

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
        [sys.executable, "-m", __name__],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), **os.environ, "LD_PRELOAD": str(library())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(*question: object) -> Any:
    """Return what the process that starts all members answers."""
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


def lacks(*needed: str) -> str | None:
    """Return a sentence that says which of these is missing here: gcc, root, bindfs, loop. None = nothing is."""
    for each in needed:
        if each == "root" and os.geteuid() != 0:
            return "this attack needs root"
        if each == "gcc" and not shutil.which("gcc"):
            return "this attack needs gcc, which compiles the library that makes system calls fail"
        if each in ("bindfs", "loop"):
            with tempfile.TemporaryDirectory() as directory:
                try:
                    path = Path(directory)
                    mount = two_mounts(path, source=path) if each == "bindfs" else image(path, megabytes=8)
                    with mount:
                        pass
                except (OSError, subprocess.CalledProcessError) as error:
                    return f"{'bindfs' if each == 'bindfs' else 'an ext4 image'} cannot be mounted here: {error}"
    return None


@contextmanager
def two_mounts(directory: Path, source: Path) -> Iterator[list[Path]]:
    """Yield two mounts in `directory` of the directory `source`, across which locks do not reach."""
    mounts = [directory / name for name in ("one", "other")]
    mounted = []
    try:
        for mount in mounts:
            mount.mkdir(exist_ok=True)
            _run("bindfs", str(source), str(mount))
            mounted.append(mount)
        yield mounts
    finally:
        for mount in mounted:
            unmount(mount)


@contextmanager
def image(directory: Path, *, megabytes: int, inodes: int = 4096) -> Iterator[Path]:
    """Yield the directory of an ext4 volume of this size."""
    file, mount = directory / "image", directory / "volume"
    mount.mkdir(exist_ok=True)
    with file.open("wb") as made:
        made.truncate(megabytes << 20)
    _run("mkfs.ext4", "-q", "-m", "0", "-N", str(inodes), str(file))
    _run("mount", "-o", "loop", str(file), str(mount))
    try:
        mount.chmod(0o777)
        yield mount
    finally:
        unmount(mount)


def unmount(mount: Path) -> None:
    """Unmount, also if something still uses it."""
    subprocess.run(["umount", "-l", str(mount)] if os.geteuid() == 0 else ["fusermount3", "-uz", str(mount)])


@contextmanager
def full(volume: Path, *, inodes: bool) -> Iterator[None]:
    """Take all free inodes, or all free space, of a volume."""
    ballast = volume / "ballast"
    ballast.mkdir(exist_ok=True)
    try:
        with suppress(OSError):
            if inodes:
                for number in range(os.statvfs(volume).f_ffree + 100):
                    (ballast / str(number)).touch()
            else:
                with (ballast / "space").open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(1 << 16))
        yield
    finally:
        shutil.rmtree(ballast)


@contextmanager
def bad_entries(root: Path, kinds: Iterable[str] = KINDS, names: Iterable[str] = NAMES) -> Iterator[list[Path]]:
    """Put entries that cannot be read under names that processes look for; yield them."""
    made = []
    try:
        for kind in kinds:
            for name in names:
                if kind == "unreadable" and name.startswith("trainer/"):
                    continue  # it may be of a trainer of another user, and must not be passed over
                path = root / name.replace("MARK", f"{MARK}{KINDS.index(kind)}")
                put_bad_entry(path, kind)
                made.append(path)
        yield made
    finally:
        for path in made:
            for left in (path, root / "quarantine" / path.name):
                with suppress(FileNotFoundError):
                    left.rmdir() if left.is_dir() and not left.is_symlink() else left.unlink()


def put_bad_entry(path: Path, kind: str) -> None:
    """Make a directory, a socket, a symlink to itself, a pipe, or a file that nobody but root may read."""
    if kind == "directory":
        path.mkdir()
    elif kind == "socket":
        there = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(there)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"secret")
        path.chmod(0)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


# What follows runs in the process that starts the others, and in them.


def log_taken_in(log: Path) -> None:
    """Write into `log` every game that the trainer takes in, and with how many games it resumes."""
    from trainer.loop import Trainer
    from trainer.replay_reader import ReplayReader

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    begin, read_new = Trainer.__init__, ReplayReader.read_new

    def begun(trainer: Any, *arguments: Any, **named: Any) -> None:
        begin(trainer, *arguments, **named)
        os.write(descriptor, f"\nresumed {trainer.games}\n".encode())

    def read(reader: Any) -> Iterator[Any]:
        for item in read_new(reader):
            yield item  # and when the next is asked for, this one is in the window
            ids = next(each for each in item if isinstance(each, Games)).games["id"]
            os.write(descriptor, f"\ntaken {' '.join(map(str, ids))}\n".encode())

    Trainer.__init__ = begun  # type: ignore[method-assign]
    ReplayReader.read_new = read  # type: ignore[method-assign]


def be(name: str, root: str, counted: str, control: str, log: str, uid: int | None, umask: int) -> None:
    """Be a member of a crew."""
    preloaded = ctypes.CDLL(None)
    if failed := preloaded.attack_from(control.encode()):
        raise OSError(failed, os.strerror(failed), control)
    (log_taken_in if name == TRAINER else victims.log_acknowledged)(Path(counted))
    os.umask(umask)
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        preloaded.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: otherwise /proc/self/fd would not be its own
    preloaded.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if name == TRAINER:
        victims.train(Path(root))
    else:
        from plyzero.ops.processes import stop_on_signals
        from plyzero.run.directory import open_run
        from selfplay.worker import run_worker

        run_worker(open_run(Path(root)), name=name, stop=stop_on_signals())


def fork(name: str, *arguments: Any) -> int:
    """Start a member in a process of its own, which writes what it says into its log."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        log = os.open(arguments[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        be(name, *arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def warm_up() -> None:
    """Import and compile what a worker and a trainer need, since another user may not even read where it lies.

    No gradient is computed: after that torch does not let a process fork.
    """
    from contextlib import closing

    import torch
    import torch._dynamo  # which the optimiser's first step would import

    from plyzero.search.evaluators import Uniform
    from selfplay.games_in_play import GamesInPlay
    from selfplay.replay_writer import ReplayWriter
    from selfplay.worker import game_seeds
    from trainer.export import untrained
    from trainer.loop import Trainer

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as directory:
        run = small_run(Path(directory) / "r", "tic-tac-toe")
        games = GamesInPlay(run.game.start, run.settings, seeds=game_seeds(0, "w", "00000000"))
        with ReplayWriter(run, worker="w", incarnation="00000000") as writer:
            for _ in range(300):
                for finished in games.run(Uniform(run.game.start.num_actions)):
                    writer.add(finished)
        for _ in range(2):  # the second resumes
            with closing(Trainer(run, device="cpu")) as trainer:
                trainer.ingest()
                trainer.maintain()
                trainer.save()
        untrained(run)


def main() -> None:
    """Answer questions on standard input, one JSON line each, until it ends; then kill all that were started."""
    warm_up()
    running: set[int] = set()
    for line in sys.stdin:
        question, *arguments = json.loads(line)
        if question == "start":
            answer: Any = fork(*arguments)
            running.add(answer)
        else:
            answer = []
            while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                running.discard(ended[0])
                answer.append((ended[0], os.waitstatus_to_exitcode(ended[1])))
        print(json.dumps(answer), flush=True)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
