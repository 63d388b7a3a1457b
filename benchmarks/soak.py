"""Run a run's processes for a long time, killed again and again or left alone, and check every result.

python benchmarks/soak.py --run runs/soak --minutes 20 --workers 3 --kills
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from plyzero.files import open_to_append, write_file
from plyzero.machine import usable_cores
from plyzero.ops.verify import find_faults
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run
from plyzero.run.events import read_heartbeat, read_lines
from plyzero.run.journals import list_journals
from plyzero.run.metrics import TRAINER, append_line
from plyzero.run.models import list_models
from plyzero.run.segments import SegmentName, list_segments, read_segment

LINE_SECONDS = 10.0
WORKER_KILL_SECONDS = 3.0, 9.0
TRAINER_KILL_SECONDS = 20.0, 40.0
DRAIN_SECONDS = 60.0
"""Largest time for the trainer to take in and train what is there at the end."""

FIRST_MODEL_SECONDS = 300.0


def main() -> int:
    """Soak, stop everything, check, and return 1 if something that has to hold does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a new directory")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--kills", action=argparse.BooleanOptionalAction, default=True, help="SIGKILL, at random times")
    parser.add_argument("--seed", type=int, default=0, help="of the kills and of the run")
    parser.add_argument("--game", default="connect-four")
    parser.add_argument("-o", dest="options", action="append", default=[], metavar="SETTING", help="as for plyzero")
    given = parser.parse_args()

    options = ["selfplay.when_ahead=throttle", *given.options]
    run = create_run(given.run, load_game(given.game), seed=given.seed, options=options)
    with Crew(run, workers=given.workers) as crew:
        chance = random.Random(given.seed) if given.kills else None
        segments = soak(run, crew, seconds=60 * given.minutes, chance=chance)
        drained = stop_in_order(run, crew)
    report = {
        "cores": usable_cores(),
        "minutes": given.minutes,
        "workers": given.workers,
        "kills": {"worker": crew.kills["worker"], "trainer": crew.kills["trainer"]},
        "drain_seconds": drained,
        **check(run, crew, segments),
        "memory": {} if given.kills else summarise_memory(list(read_lines(run.root / "soak.jsonl")), given.minutes),
    }
    write_file(run.root / "soak.json", (json.dumps(report, indent=1) + "\n").encode(), replace=True)
    print(json.dumps(report, indent=1))
    return 0 if all(report["holds"].values()) else 1


def soak(run: Run, crew: "Crew", *, seconds: float, chance: random.Random | None) -> set[SegmentName]:
    """Work for `seconds` after the first model, and return all segments that were ever seen.

    chance: decides what is killed and when; None = nothing is.
    """
    deadline = time.monotonic() + FIRST_MODEL_SECONDS
    while not list_models(run.models):
        if time.monotonic() > deadline:
            raise SystemExit(f"there is no model after {FIRST_MODEL_SECONDS:.0f} s; see {run.logs}")
        crew.revive()
        time.sleep(0.1)
    began = time.monotonic()
    next_line = began
    kill_worker_at = began + chance.uniform(*WORKER_KILL_SECONDS) if chance else np.inf
    kill_trainer_at = began + chance.uniform(*TRAINER_KILL_SECONDS) if chance else np.inf
    segments: set[SegmentName] = set()
    while (now := time.monotonic()) < began + seconds:
        crew.revive()
        if chance and now >= kill_worker_at:
            crew.kill(chance.choice(crew.workers))
            kill_worker_at = time.monotonic() + chance.uniform(*WORKER_KILL_SECONDS)
        if chance and now >= kill_trainer_at:
            crew.kill(TRAINER)
            kill_trainer_at = time.monotonic() + chance.uniform(*TRAINER_KILL_SECONDS)
        if now >= next_line:
            segments |= set(list_segments(run.segments))
            log(run, crew, seconds=now - began, segments=segments)
            next_line += LINE_SECONDS
        time.sleep(0.1)
    return segments


def stop_in_order(run: Run, crew: "Crew") -> float:
    """Stop the workers, then the trainer once it has trained on all games; return the seconds that the latter took."""
    crew.stop(crew.workers)
    began = time.monotonic()
    while time.monotonic() < began + DRAIN_SECONDS:
        crew.revive([TRAINER])
        beat = trainer_beat(run)
        games = sum(name.games for name in list_segments(run.segments))
        if not journals(run) and beat.get("games", 0) >= games and beat.get("state", "").startswith("waiting"):
            break
        time.sleep(0.5)
    drained = round(time.monotonic() - began, 1)
    crew.stop([TRAINER])
    return drained


def log(run: Run, crew: "Crew", *, seconds: float, segments: set[SegmentName]) -> None:
    """Print a line, and append all figures to soak.jsonl."""
    beat, memory = trainer_beat(run), crew.memory()
    made = sum(name.games for name in segments)
    append_line(
        run.root / "soak.jsonl",
        {
            "seconds": round(seconds, 1),
            "kills": dict(crew.kills),
            "ended": crew.ended,
            "segments": len(segments),
            "games_sealed": made,
            "journals": len(journals(run)),
            "models": len(list_models(run.models)),
            "trainer": beat,
            "memory": memory,
        },
    )
    kills = f"killed {crew.kills['worker']} workers, {crew.kills['trainer']} trainers"
    learned = f"games {made}, taken in {beat.get('games', 0)}, step {beat.get('step', 0)}"
    ratio = f"ratio {beat.get('replay_ratio', 0):.2f}, {beat.get('state', 'no trainer yet')}"
    sizes = " ".join(f"{name} {each['rss_mb']:.0f}" for name, each in memory.items())
    print(f"{int(seconds) // 60:3}:{int(seconds) % 60:02}  {kills}; {learned}, {ratio}; MB {sizes}", flush=True)


def check(run: Run, crew: "Crew", segments: set[SegmentName]) -> dict[str, Any]:
    """Return the state of the run after its end, and which of the conditions hold."""
    beat = trainer_beat(run)
    faults = [f"{file}: {fault}" for file, fault in find_faults(run) if fault]
    present = set(list_segments(run.segments))
    ids = [int(each) for name in present for each in read_segment(run.segments / str(name), run.game).games["id"]]
    retired = sum(name.games for name in segments - present)
    ratio, wanted = beat["replay_ratio"], beat["replay_ratio_wanted"]
    return {
        "holds": {
            "verify finds nothing": not faults,
            "every game is there once": len(ids) == len(set(ids)) > 0,
            "the trainer has counted every game once": beat["games"] == len(ids) + retired,
            "no journal is left": not journals(run),
            "no holes": beat["holes"] == 0,
            "nothing in quarantine": not list(run.quarantine.glob("*")),
            "no process ended by itself, and all stopped when asked": not crew.ended and beat["state"] == "stopped",
        },
        "replay_ratio": {"measured": ratio, "wanted": wanted, "within 5 %": abs(ratio / wanted - 1) <= 0.05},
        "faults": faults,
        "ended": crew.ended,
        "games": {"in segments": len(ids), "distinct": len(set(ids)), "retired": retired, "trainer": beat["games"]},
        "segments": len(present),
        "adopted_segments_in_logs": sum(
            path.read_text(errors="replace").count("for a dead process") for path in run.logs.glob("*.log")
        ),
        "trainer": beat,
    }


def summarise_memory(lines: list[dict[str, Any]], minutes: float) -> dict[str, dict[str, Any]]:
    """Return process -> MB at the marks, and the growth after the first quarter of the time, which is the warm-up."""
    summary: dict[str, dict[str, Any]] = {}
    for name in lines[-1]["memory"] if lines else ():
        told = [(line["seconds"] / 60, line["memory"][name]) for line in lines if name in line["memory"]]
        at = np.array([minute for minute, _ in told])
        summary[name] = {}
        for kind in ("rss_mb", "pss_mb"):
            size = np.array([memory[kind] for _, memory in told])
            marks = [mark for mark in (3, 5, 10, 15, 20) if mark <= minutes]
            summary[name][kind] = {f"minute {mark}": float(size[np.abs(at - mark).argmin()]) for mark in marks}
            warm = at >= minutes / 4
            growth = np.polyfit(at[warm], size[warm], 1)[0] if warm.sum() > 2 else np.nan
            summary[name][kind] |= {"last": float(size[-1]), "most": float(size.max())}
            summary[name][kind]["growth_per_minute"] = round(float(growth), 3)
    return summary


class Crew:
    """The processes of a run, by name. Use it in a `with`; at its end none is left.

    kills: of workers and of the trainer. ended: processes that ended by themselves or not when asked, with their last
    log lines.
    """

    def __init__(self, run: Run, *, workers: int) -> None:
        self._run = run
        self.workers = [f"w{number}" for number in range(workers)]
        self._names = [TRAINER, *self.workers]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: Counter[str] = Counter()
        self.ended: list[str] = []

    def __enter__(self) -> Self:
        for name in self._names:
            self._start(name)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def kill(self, name: str) -> None:
        self._processes[name].kill()
        self._processes[name].wait()
        self.kills["trainer" if name == TRAINER else "worker"] += 1
        self._start(name)

    def revive(self, names: Iterable[str] | None = None) -> None:
        for name in names or self._names:
            if self._processes[name].poll() is not None:
                self._note(name, "ended by itself")
                self._start(name)

    def stop(self, names: Iterable[str]) -> None:
        """Send SIGTERM once they have a handler for it, and wait until they have stopped."""
        latest = time.monotonic() + 60
        for name in names:
            process = self._processes[name]
            while process.poll() is None and not handles_sigterm(process.pid) and time.monotonic() < latest:
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
        for name in names:
            try:
                if self._processes[name].wait(60) != 0:
                    self._note(name, "did not stop cleanly")
            except subprocess.TimeoutExpired:
                self._processes[name].kill()
                self._note(name, "did not stop within a minute")

    def memory(self) -> dict[str, dict[str, float]]:
        """Return the megabytes of each process that runs: resident, and with shared pages counted in parts."""
        sizes = {name: memory_of(process.pid) for name, process in self._processes.items()}
        return {name: size for name, size in sizes.items() if size}

    def _start(self, name: str) -> None:
        role = ["trainer"] if name == TRAINER else ["selfplay", "--name", name]
        command = [sys.executable, "-m", "plyzero", *role, "--run", str(self._run.root), "--until-end-of-input"]
        if name in self._processes and (pipe := self._processes[name].stdin):
            pipe.close()
        self._run.logs.mkdir(exist_ok=True)
        with open_to_append(self._log(name)) as log:
            self._processes[name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _note(self, name: str, what: str) -> None:
        words = self._log(name).read_text(errors="replace").strip().splitlines()
        self.ended.append(f"{name} {what}, code {self._processes[name].poll()}: {words[-1] if words else 'nothing'}")

    def _log(self, name: str) -> Path:
        return self._run.logs / f"{name}.log"


def handles_sigterm(pid: int) -> bool:
    """Return whether a process has a handler for SIGTERM; False if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def memory_of(pid: int) -> dict[str, float] | None:
    """Return the megabytes of a process, None if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {"rss_mb": round(sizes["Rss"], 1), "pss_mb": round(sizes["Pss"], 1)} if "Rss" in sizes else None


def trainer_beat(run: Run) -> dict[str, Any]:
    beat = read_heartbeat(run.workers / f"{TRAINER}.json")
    return {**beat.fields} if beat else {}


def journals(run: Run) -> list[Path]:
    return [run.journals / str(name) for name in list_journals(run.journals)]


if __name__ == "__main__":
    sys.exit(main())
