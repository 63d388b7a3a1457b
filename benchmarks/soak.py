"""Let a run's processes work for long, killed again and again or left alone, and check that all of it came out right.

python benchmarks/soak.py --run runs/soak --minutes 20 --workers 3 --kills
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch

from plyzero.files import open_to_append, write_file
from plyzero.machine import usable_cores
from plyzero.network.model_loader import load_model
from plyzero.ops.verify import find_faults
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run
from plyzero.run.journals import list_journals
from plyzero.run.metrics import TRAINER, append_line, read_heartbeat, read_lines
from plyzero.run.models import ModelName, list_models
from plyzero.run.segments import SegmentName, list_segments, read_segment
from plyzero.search.evaluators import EvaluationBatch
from trainer.loss import loss
from trainer.targets import make_samples
from trainer.window import Batch, Window

LINE_SECONDS = 10.0
WORKER_KILL_SECONDS = 3.0, 9.0
TRAINER_KILL_SECONDS = 20.0, 40.0
DRAIN_SECONDS = 60.0
"""What the trainer gets at the end to take in and to train what is there."""

FIRST_MODEL_SECONDS = 300.0
"""What the first model may take."""

HELD_OUT_SECONDS = 20.0
HELD_OUT_ATTEMPTS = 6
"""On a loaded machine a worker may not finish a game in so many seconds; it is started again, for twice as long."""

SAMPLED = 4096
"""Positions on which losses are measured."""

MARKS = 3, 5, 10, 15, 20
"""Minutes at which the memory is reported."""


def main() -> int:
    """Soak, stop everybody, check, and return 1 if something that has to hold does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a new directory")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--kills", action=argparse.BooleanOptionalAction, default=True, help="SIGKILL, at random times")
    parser.add_argument("--seed", type=int, default=0, help="of the kills and of the run")
    parser.add_argument("--game", default="connect-four")
    parser.add_argument("-o", dest="options", action="append", default=[], metavar="SETTING", help="as for plyzero")
    given = parser.parse_args()

    game, options = load_game(given.game), ["selfplay.when_ahead=throttle", *given.options]
    run = create_run(given.run, game, seed=given.seed, options=options)
    held_out = create_run(given.run / "held-out", game, seed=given.seed + 1, options=options)
    with Crew(run, workers=given.workers) as crew:
        chance = random.Random(given.seed) if given.kills else None
        segments = soak(run, crew, seconds=60 * given.minutes, chance=chance, keep_first_model_in=held_out.models)
        drained = stop_in_order(run, crew)
    report = {
        "cores": usable_cores(),
        "minutes": given.minutes,
        "workers": given.workers,
        "kills": {"worker": crew.kills["worker"], "trainer": crew.kills["trainer"]},
        "drain_seconds": drained,
        **check(run, crew, segments),
        "held_out": measure_held_out(run, held_out),
        "memory": {} if given.kills else summarise_memory([*read_lines(run.root / "soak.jsonl")], given.minutes),
    }
    write_file(run.root / "soak.json", (json.dumps(report, indent=1) + "\n").encode(), replace=True)
    print(json.dumps(report, indent=1))
    return 0 if all(report["holds"].values()) else 1


def soak(
    run: Run, crew: "Crew", *, seconds: float, chance: random.Random | None, keep_first_model_in: Path
) -> set[SegmentName]:
    """Keep everybody at work for `seconds` after the first model, and return all segments that were ever seen.

    chance: what decides who is killed and when; None = nobody.
    """
    deadline = time.monotonic() + FIRST_MODEL_SECONDS
    while not list_models(run.models):
        if time.monotonic() > deadline:
            raise SystemExit(f"there is no model after {FIRST_MODEL_SECONDS:.0f} s; see {run.logs}")
        crew.revive()
        time.sleep(0.1)
    copy_models(run.models, list_models(run.models)[-1:], keep_first_model_in)
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
            tell(run, crew, seconds=now - began, segments=segments)
            next_line += LINE_SECONDS
        time.sleep(0.1)
    return segments


def stop_in_order(run: Run, crew: "Crew") -> float:
    """Stop the workers; then the trainer, once it has taken in and trained what there is. Return how long that took."""
    crew.stop(crew.workers)
    began = time.monotonic()
    while time.monotonic() < began + DRAIN_SECONDS:
        crew.revive([TRAINER])
        beat = trainer_beat(run)
        games = sum(name.games for name in list_segments(run.segments))
        if not journals(run) and beat.get("games", 0) >= games and beat.get("state", "").startswith("waiting"):
            break
        time.sleep(0.5)
    drained = time.monotonic() - began
    crew.stop([TRAINER])
    return round(drained, 1)


def tell(run: Run, crew: "Crew", *, seconds: float, segments: set[SegmentName]) -> None:
    """Print a line, and append all there is to tell to soak.jsonl."""
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
    """Return what was found in the run after its end, and whether all that has to hold does."""
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
            "nobody ended by itself, and all stopped when asked": not crew.ended and beat["state"] == "stopped",
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


def measure_held_out(run: Run, held_out: Run) -> dict[str, Any]:
    """Return the losses of the first and the newest model on games that nobody has trained on, by the newest model."""
    copy_models(run.models, list_models(run.models)[:1], held_out.models)
    for attempt in range(HELD_OUT_ATTEMPTS):
        with Crew(held_out, workers=1, trainer=False) as crew:
            time.sleep(HELD_OUT_SECONDS * 2**attempt)
            crew.stop(crew.workers)
        if len(window := read_window(held_out)):
            break
    else:
        raise SystemExit(f"no game was over in {HELD_OUT_ATTEMPTS} attempts; see {held_out.logs}")
    models = list_models(held_out.models)
    batch = window.sample(SAMPLED, np.random.default_rng(0), symmetries=False)
    return {
        "positions": len(window),
        "first": {"model": str(models[-1]), **losses_of(held_out, models[-1], batch)},
        "newest": {"model": str(models[0]), **losses_of(held_out, models[0], batch)},
        "least possible value loss": float(-(batch.wdl * np.log(np.maximum(batch.wdl, 1e-9))).sum(axis=1).mean()),
    }


def read_window(run: Run) -> Window:
    """Return the positions of all games of `run` that a model has played."""
    window = Window(run.game.start)
    for name in list_segments(run.segments):
        games = read_segment(run.segments / str(name), run.game)
        samples = make_samples(games, search=run.settings.search, trainer=run.settings.trainer)
        window.add(str(name), samples, size=10**9)
    return window


def losses_of(run: Run, model: ModelName, batch: Batch) -> dict[str, float]:
    """Return KL(target || policy) and the cross-entropy of win, draw and loss, in nats."""
    logits, wdl = load_model(run.models, model, run.game)(EvaluationBatch(batch.observations, list))
    log_wdl = np.log(np.maximum(wdl, 1e-9))  # logits: their softmax is wdl
    found = loss(*(torch.from_numpy(each) for each in (logits, log_wdl, batch.legal, batch.policy, batch.wdl)))
    return {"policy": round(found.policy.item(), 4), "value": round(found.value.item(), 4)}


def summarise_memory(lines: list[dict[str, Any]], minutes: float) -> dict[str, dict[str, Any]]:
    """Return process -> MB at the marks, and how fast it grows once warmed up, which is after a quarter of the time."""
    summary: dict[str, dict[str, Any]] = {}
    for name in lines[-1]["memory"] if lines else ():
        told = [(line["seconds"] / 60, line["memory"][name]) for line in lines if name in line["memory"]]
        at = np.array([minute for minute, _ in told])
        summary[name] = {}
        for kind in ("rss_mb", "pss_mb"):
            size = np.array([memory[kind] for _, memory in told])
            marks = [mark for mark in MARKS if mark <= minutes]
            summary[name][kind] = {f"minute {mark}": float(size[np.abs(at - mark).argmin()]) for mark in marks}
            warm = at >= minutes / 4
            growth = np.polyfit(at[warm], size[warm], 1)[0] if warm.sum() > 2 else np.nan
            summary[name][kind] |= {"last": float(size[-1]), "most": float(size.max())}
            summary[name][kind]["growth_per_minute"] = round(float(growth), 3)
    return summary


class Crew:
    """The processes of a run, by name. Use it in a `with`; at its end none is left.

    kills: of workers and of the trainer. ended: who stopped by itself, or not when asked to, and its last words.
    """

    def __init__(self, run: Run, *, workers: int, trainer: bool = True) -> None:
        self._run = run
        self.workers = [f"w{number}" for number in range(workers)]
        self._names = [*([TRAINER] if trainer else []), *self.workers]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: Counter[str] = Counter()
        self.ended: list[str] = []

    def __enter__(self) -> Self:
        for name in self._names:
            self._start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def kill(self, name: str) -> None:
        """Send SIGKILL, and start it again at once."""
        self._processes[name].kill()
        self._processes[name].wait()
        self.kills["trainer" if name == TRAINER else "worker"] += 1
        self._start(name)

    def revive(self, names: Iterable[str] | None = None) -> None:
        """Start again whoever has ended by itself."""
        for name in names or self._names:
            if self._processes[name].poll() is not None:
                self._note(name, "ended by itself")
                self._start(name)

    def stop(self, names: Iterable[str]) -> None:
        """Send SIGTERM to all of `names`, once they answer it, and wait until they have stopped."""
        latest = time.monotonic() + 60
        for name in names:
            process = self._processes[name]
            # it may have been started a moment ago
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


def copy_models(source: Path, names: list[ModelName], target: Path) -> None:
    """Copy published models into another directory."""
    target.mkdir(exist_ok=True)
    for name in names:
        shutil.copyfile(source / str(name), target / str(name))


def trainer_beat(run: Run) -> dict[str, Any]:
    """Return what the trainer has said last; {} if it has not yet."""
    return read_heartbeat(run.workers / f"{TRAINER}.json") or {}


def journals(run: Run) -> list[Path]:
    """Return the games that wait to be sealed."""
    return [run.journals / str(name) for name in list_journals(run.journals)]


if __name__ == "__main__":
    sys.exit(main())
