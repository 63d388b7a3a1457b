"""Measure a run with many workers, which are pretended: they write recorded games, as many as real ones would.

python -m benchmarks.scale --workers 1 10 100 1000 --minutes 5 --write build/scale.jsonl

Everything else is the product: the workers' writer, heartbeat and model watch, a trainer with a small network, a rater,
`status --watch` and a dashboard. Every row is a run of its own. With --kills, processes are killed at random, and the
games are recounted at the end.

__main__   starts all processes, takes the counts twice, and recounts the games
pretended  the workers
role       a process of the product whose calls on the volume are counted
calls      calls on the volume, counted and delayed
ledger     which games were acknowledged, when they were first used, and the recount
"""

import argparse
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from benchmarks.scale.ledger import Recount, delays, read_logs, recount
from plyzero.files import list_files
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.run.events import read_heartbeat
from plyzero.run.journals import list_journals
from plyzero.run.models import list_models
from plyzero.run.segments import list_segments, read_segment

SETTINGS: Final = (
    "network.blocks=1",
    "network.channels=8",
    "trainer.batch_size=256",
    "trainer.replay_ratio=2",
    "trainer.publish_seconds=15",
    "trainer.window_positions=100000",
    "selfplay.bootstrap_positions=512",
    "selfplay.simulations=64",
    "rating.games=2",
    "store.keep_positions=1000000000",
    "store.keep_mb=100000",
)
"""Settings of the run: a small network, and nothing is removed, so that the games can be recounted."""

IN_A_PROCESS: Final = 50
"""Number of workers of one process, which are killed at once. More of them wait for each other's turn in Python."""

HANDLES: Final = 4
"""Number of files that a worker has open at most: its journal, what it seals, its file events, what it reads."""

KILL_SECONDS: Final = 20.0, 60.0
"""Time between two kills."""

DRAIN_SECONDS: Final = 120.0
"""Time without progress after which nobody waits for dead workers' journals to be sealed, and the games to be read."""

FIRST_MODEL_SECONDS: Final = 900.0


def main() -> int:
    """Print a row for each number of workers; return 1 if a game was lost or counted twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--minutes", type=float, default=5.0, help="after the first model, for each row")
    parser.add_argument("--rate", type=float, default=40.0, help="positions/s of a worker; a slow plain game: 2")
    parser.add_argument("--game", default="connect-four")
    parser.add_argument("--evaluator", action="store_true", help="one process of each machine evaluates")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="of each call on the volume")
    parser.add_argument("--bucket", action="store_true", help="the run is in a bucket of an S3 server in Python")
    parser.add_argument("--kills", action="store_true", help="SIGKILL 50 workers or the trainer, at random times")
    parser.add_argument("--seed", type=int, default=0, help="of the kills")
    parser.add_argument("--out", type=Path, default=None, help="keep the runs and logs here")
    parser.add_argument("--write", type=Path, default=None, help="append each row to this file of JSON lines")
    parser.add_argument("-o", dest="options", action="append", default=[], metavar="SETTING", help="as for plyzero")
    given = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # no process may be left
    check_handles(max(given.workers))
    are_right = True
    for workers in given.workers:
        with ExitStack() as row:
            directory = given.out or Path(row.enter_context(tempfile.TemporaryDirectory(prefix="scale-")))
            out = directory / f"workers-{workers}"
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            measured = measure(given, workers=workers, out=out, root=_place(row, out, bucket=given.bucket))
        print(json.dumps(measured, indent=1), flush=True)
        if given.write:
            with given.write.open("a") as file:
                file.write(json.dumps(measured) + "\n")
        are_right &= measured["recount"]["holds"]
    return 0 if are_right else 1


def check_handles(workers: int) -> None:
    """Raise SystemExit if a process of pretended workers may not open as many files as it needs."""
    permitted, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 64 + HANDLES * min(workers, IN_A_PROCESS)
    if needed > permitted:
        raise SystemExit(
            f"a process of {min(workers, IN_A_PROCESS)} pretended workers opens up to {needed} files, and {permitted} "
            f"are permitted: call ulimit -n {needed} first"
        )


def _place(row: ExitStack, out: Path, *, bucket: bool) -> Path:
    """Return where the run is: in `out`, or in a bucket of a server that ends with `row`."""
    if not bucket:
        return out / "run"
    from tests.helpers.buckets import connected, new_prefix, s3_server

    row.enter_context(connected(row.enter_context(s3_server())))
    return new_prefix()


def measure(given: argparse.Namespace, *, workers: int, out: Path, root: Path) -> dict[str, Any]:
    """Return the figures of one run with so many workers."""
    create_run(root, load_game(given.game), options=[*SETTINGS, *given.options])
    with Crew(root, out, given, workers=workers) as crew:
        run = open_run(root, scratch=crew.scratch)
        crew.start_all()
        wait_for_model(run, crew)
        time.sleep(5)
        first, began = crew.counts(), time.time()
        kills = crew.work(seconds=60 * given.minutes)
        last, ended = crew.counts(), time.time()
        status = timed(lambda: crew.command("status", "--run", str(root)))
        answer = crew.first_answer_of_dashboard()
        beat = read_heartbeat(run.workers / "trainer.json")
        segments = len(list(list_segments(run.segments)))
        files = {name: len(list_files(folder)) for name, folder in folders(run).items()}
        found = crew.stop()
        recounted = count_again(run, out, *found)
    figures = summarise(first, last, seconds=ended - began, workers=workers)
    waits = delays(read_logs(out.glob("acknowledged-*")), read_logs(out.glob("used-*")), since=began, until=ended)
    return {
        "workers": workers,
        "rate": given.rate,
        "latency_ms": given.latency_ms,
        "bucket": given.bucket,
        "evaluator": given.evaluator,
        "seconds": round(ended - began, 1),
        "load": [round(each, 1) for each in os.getloadavg()],
        "kills": kills,
        **figures,
        "delay_seconds": {f"{share} %": round(float(np.percentile(waits, share)), 1) for share in (50, 95, 99)}
        if len(waits)
        else {},
        "trainer": beat and {key: beat.fields.get(key) for key in SHOWN},
        "segments": segments,
        "files": files,
        "status_seconds": round(status, 2),
        "dashboard_seconds": round(answer, 2),
        "recount": {**vars(recounted), "holds": recounted.holds},
    }


SHOWN: Final = ("step", "games", "trained_per_second", "waited_seconds", "seconds", "replay_ratio", "warning", "state")
"""Fields of the trainer's heartbeat in a row."""


def folders(run: Run) -> dict[str, Path]:
    """Return the folders of a run whose files are counted."""
    return {path.name: path for path in (run.segments, run.journals, run.models, run.workers, run.metrics)}


def wait_for_model(run: Run, crew: "Crew") -> None:
    """Wait for the first model of a run."""
    deadline = time.monotonic() + FIRST_MODEL_SECONDS
    while not list_models(run.models):
        if time.monotonic() > deadline:
            raise SystemExit(f"there is no model after {FIRST_MODEL_SECONDS:.0f} s; see {crew.out}")
        crew.check()
        time.sleep(0.5)


def timed(action: Callable[[], object]) -> float:
    """Return how many seconds an action takes."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


class Crew:
    """The processes of a run. Use it in a `with`; at its end none is left."""

    def __init__(self, root: Path, out: Path, given: argparse.Namespace, *, workers: int) -> None:
        self._root, self.out, self._given = root, out, given
        self.scratch = out / "scratch" if given.bucket else None
        self._sizes = [len(part) for part in np.array_split(range(workers), max(1, math.ceil(workers / IN_A_PROCESS)))]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    @property
    def _workers(self) -> list[str]:
        return [f"w{number}" for number in range(len(self._sizes))]

    def start_all(self) -> None:
        """Start every process."""
        for name in (*self._workers, "trainer", "rater", "status", "web"):
            self._start(name)

    def check(self) -> None:
        """Raise SystemExit if a process has ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise SystemExit(f"{name} has ended with exit code {process.returncode}; see {self.out / name}.log")

    def work(self, *, seconds: float) -> dict[str, int]:
        """Let all work, and with `kills` kill some; return how many of each were killed."""
        chance, kills = random.Random(self._given.seed), Counter[str]()
        end = time.monotonic() + seconds
        next_kill = time.monotonic() + chance.uniform(*KILL_SECONDS) if self._given.kills else math.inf
        while time.monotonic() < end:
            if time.monotonic() >= next_kill:
                name = chance.choice([*self._workers, "trainer"])
                self._processes[name].kill()
                self._processes[name].wait()
                self._start(name)
                kills["trainer" if name == "trainer" else "workers"] += self._size(name)
                next_kill = time.monotonic() + chance.uniform(*KILL_SECONDS)
            self.check()
            time.sleep(0.2)
        return dict(kills)

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return name -> counts of each process that has written any."""
        found = {}
        for path in self.out.glob("calls-*.json"):
            found[path.stem.removeprefix("calls-")] = json.loads(path.read_text())
        return found

    def command(self, *arguments: str) -> None:
        """Run a command of plyzero, counted like the others."""
        subprocess.run(self._role(arguments[0] + "-once", *arguments), check=True, stdout=subprocess.DEVNULL)

    def first_answer_of_dashboard(self) -> float:
        """Return the seconds from the start of a new dashboard's listening to its first answer about the run."""
        process = self._start("new-web", command=self._web(port := self._port(1)))
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/run", timeout=1).read()
                break
            time.sleep(0.05)
        address = f"http://127.0.0.1:{port}/api/run/state"
        seconds = timed(lambda: urllib.request.urlopen(address, timeout=300).read())
        process.kill()
        process.wait()
        del self._processes["new-web"]
        return seconds

    def stop(self) -> tuple[int, int]:
        """Stop the workers, then the trainer once it has read all; return the games that it has counted, and left."""
        for name in ("status", "web", "rater"):
            self._processes.pop(name).kill()
        for name in self._workers:
            self._processes[name].terminate()
        for name in self._workers:
            self._processes.pop(name).wait(120)
        run = open_run(self._root, scratch=self.scratch)
        progress: tuple[float, int, int] | None = None
        while True:
            beat = read_heartbeat(run.workers / "trainer.json")
            sealed = sum(name.games for name in list_segments(run.segments))
            left = len(list_journals(run.journals))
            now = (beat.games if beat else 0.0, sealed, left)
            if now[0] >= sealed and not left:
                break
            if now != progress:
                progress, deadline = now, time.monotonic() + DRAIN_SECONDS
            if time.monotonic() >= deadline:
                break
            time.sleep(1)
        trainer = self._processes.pop("trainer")
        trainer.send_signal(signal.SIGTERM)
        trainer.wait(120)
        last = read_heartbeat(run.workers / "trainer.json")
        return int(last.games) if last else 0, left

    def _start(self, name: str, command: list[str] | None = None) -> "subprocess.Popen[bytes]":
        self._starts[name] += 1
        with (self.out / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command or self._command(name), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._processes[name] = process
        return process

    def _command(self, name: str) -> list[str]:
        given, root = self._given, str(self._root)
        scratch = ["--scratch", str(self.scratch)] if self.scratch else []
        if name in self._workers:
            own = ["--run", root, "--out", str(self.out), "--name", f"{name}_{self._starts[name]}"]
            own += ["--workers", str(self._size(name)), "--rate", str(given.rate), "--latency-ms"]
            own += [str(given.latency_ms), *scratch, *(["--evaluator"] if given.evaluator else [])]
            return [sys.executable, "-m", "benchmarks.scale.pretended", *own]
        if name == "trainer":
            return self._role(f"trainer-{self._starts[name]}", "trainer", "--run", root, "--device", "cpu", *scratch)
        if name == "rater":
            return self._role(name, "rate", "--run", root, *scratch)
        if name == "status":
            return self._role(name, "status", "--run", root, "--watch")
        return self._web(self._port(0))

    def _web(self, port: int) -> list[str]:
        return self._role("web", "serve", "--run", str(self._root), "--port", str(port))

    def _role(self, name: str, *command: str) -> list[str]:
        place = [str(self.out), name, str(self._root), str(self._given.latency_ms)]
        return [sys.executable, "-m", "benchmarks.scale.role", *place, *command]

    def _port(self, number: int) -> int:
        return 20_000 + os.getpid() % 20_000 + number

    def _size(self, name: str) -> int:
        return self._sizes[int(name[1:])] if name in self._workers else 1


def summarise(
    first: dict[str, dict[str, Any]], last: dict[str, dict[str, Any]], *, seconds: float, workers: int
) -> dict[str, Any]:
    """Return the rates between two counts of all processes, those of all workers together."""
    calls: dict[str, Counter[str]] = {}
    read: dict[str, Counter[str]] = {}
    cpu: Counter[str] = Counter()
    memory: dict[str, float] = {}
    parts: Counter[str] = Counter()
    for name, found in last.items():
        before = first.get(name, {"calls": {}, "bytes": {}, "cpu": 0.0, "parts": {}})
        kind = "workers" if name.startswith("w") and name[1:2].isdigit() else name.partition("-")[0]
        calls.setdefault(kind, Counter()).update(Counter(found["calls"]) - Counter(before["calls"]))
        read.setdefault(kind, Counter()).update(Counter(found["bytes"]) - Counter(before["bytes"]))
        cpu[kind] += found["cpu"] - before["cpu"]
        memory[kind] = max(memory.get(kind, 0.0), found["rss_mb"])
        if kind == "trainer":
            parts.update({key: value - before["parts"].get(key, 0.0) for key, value in found["parts"].items()})
    minutes = seconds / 60
    return {
        "calls_per_worker_and_minute": round(calls["workers"].total() / workers / minutes, 1),
        "calls_per_second": {kind: round(each.total() / seconds, 1) for kind, each in calls.items()},
        "calls_of_workers_per_minute_and_worker": by_kind(calls["workers"], workers * minutes),
        "calls_per_minute": {kind: by_kind(each, minutes) for kind, each in calls.items() if kind != "workers"},
        "read_mb_per_second": {kind: by_kind(each, seconds * 2**20) for kind, each in read.items()},
        "cpu_share": {kind: round(each / seconds, 3) for kind, each in cpu.items()},
        "trainer_parts": {part: round(each / seconds, 4) for part, each in parts.items()},
        "rss_mb": {kind: round(each) for kind, each in memory.items()},
    }


def by_kind(counts: Counter[str], divisor: float) -> dict[str, float]:
    """Return the largest counts, divided."""
    return {kind: round(count / divisor, 3) for kind, count in counts.most_common(16)}


def count_again(run: Run, out: Path, read: int, journals: int) -> Recount:
    """Return what became of the games of a run that has ended."""
    acknowledged = read_logs(out.glob("acknowledged-*"))["id"].tolist()
    sealed: list[int] = []
    for name in list_segments(run.segments):
        sealed += read_segment(run.segments / str(name), run.game, run_id=run.id).games["id"].tolist()
    if journals:
        print(f"{journals} journals are left", file=sys.stderr)
    return recount(acknowledged, sealed, read=read)


if __name__ == "__main__":
    sys.exit(main())
