"""Count the calls on the volume of one look of each process at a run with many workers. No process is started.

python -m benchmarks.scale.looks --workers 1 10 100 1000 --segments 10

The run is laid out as workers leave it: a heartbeat and a locked journal of each, and some segments of each. So the
counts depend on nothing but the code.
"""

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.scale.calls import Calls
from benchmarks.scale.pretended import make_templates, under_new_identity
from plyzero.kits.web.run_state import Dashboard
from plyzero.ops.status import snapshot
from plyzero.rules.catalog import load_game
from plyzero.run.adoption import Adoption
from plyzero.run.directory import Run, create_run
from plyzero.run.journals import Journal
from plyzero.run.metrics import CURSOR, Heartbeat, append_line
from plyzero.run.models import publish_model
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import write_segment
from plyzero.run.view import RunView
from plyzero.selfplay.backpressure import Backpressure
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.trainer.replay_reader import ReplayReader
from plyzero.trainer.retention import Retention

TRAINER_BEAT: Final = {"role": "trainer", "state": "training", "step": 100, "trained_positions": 1000}


@dataclass
class LaidOut:
    """A run as many workers leave it, with `segments` of each. `beat` lets each of them beat once more."""

    run: Run
    workers: int
    segments: int
    games: Games
    beat: Callable[[], None]


@contextmanager
def laid_out(root: Path, *, workers: int, segments: int) -> Iterator[LaidOut]:
    """Yield a run with so many workers, and with as many segments of each."""
    run = create_run(root, load_game("tic-tac-toe"))
    template = make_templates(run, count=1)[0]
    games = under_new_identity(template, seed=1, fence=1, step=1)
    publish_model(run.models, b"no network", fence=1, step=100)
    beats, journals = [], []
    for number in range(workers):
        name, incarnation = f"w{number}", f"{number:08x}"
        beats.append(Heartbeat(run.workers / f"{name}.{incarnation}.json"))
        journals.append(Journal(run.journals, run.game, JournalName(name, incarnation, segments), run_id=run.id))
        first = write_segment(run.segments, games, run.game, JournalName(name, incarnation, 0), run_id=run.id)
        for sequence in range(1, segments):
            os.link(first, str(first).replace("-00000000-", f"-{sequence:08d}-"))
        append_line(run.metrics / f"worker-{name}.{incarnation}.jsonl", {"positions": 1, "seconds": 60})
    trainer, cursor = Heartbeat(run.workers / "trainer.json"), Heartbeat(run.trainer / CURSOR)

    def beat() -> None:
        trainer.beat(TRAINER_BEAT, force=True)
        cursor.beat({"games": 0, "cursor": {f"{number:08x}": segments for number in range(workers)}}, force=True)
        for each in beats:
            each.beat({"role": "selfplay", "state": "playing", "model": None, "positions": 10}, force=True)

    beat()
    try:
        yield LaidOut(run, workers, segments, games, beat)
    finally:
        for journal in journals:
            journal.close()


def looks_at(found: LaidOut, clock: "Clock") -> dict[str, Callable[[], object]]:
    """Return name -> one look of a process at a run. Each was done once before, as by a process that goes on."""
    run = found.run
    retention = Retention(run, clock=clock)
    adoption = Adoption(run, clock=clock)
    reader = ReplayReader(run, clock=clock)
    reader.cursor = dict.fromkeys((f"{number:08x}" for number in range(found.workers)), found.segments)
    view, dashboard = RunView(run, clock=clock), Dashboard(run, clock=clock)
    writer = ReplayWriter(run, worker="counted", incarnation="ffffffff")
    writer._open_journal()
    backpressure = Backpressure(run, writer, clock=clock)

    def seal() -> None:
        writer.add(found.games)
        writer.seal_soon()
        writer._write()

    def watch() -> None:
        view.refresh()
        snapshot(view)

    def maintain() -> None:
        retention.view.refresh()
        adoption.adopt(beating=retention.view.beating())
        retention.prune_for_states()

    looks: dict[str, Callable[[], object]] = {
        "worker: seals": seal,
        "worker: looks": backpressure.refresh,
        "trainer: looks for games": lambda: [*reader.read_new()],
        "trainer: maintains": maintain,
        "status --watch": watch,
        "dashboard": dashboard.state,
    }
    for look in looks.values():
        look()
    clock.now += 3
    found.beat()
    for look in looks.values():  # by now every counter has changed
        look()
    clock.now += 3
    found.beat()
    return looks


class Clock:
    """A clock that others set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def count(calls: Calls, *, workers: int, segments: int) -> dict[str, dict[str, Any]]:
    """Return look -> its calls by kind, and the bytes that it reads."""
    counted = {}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "run"
        with laid_out(root, workers=workers, segments=segments) as found:
            looks = looks_at(found, Clock())
            calls.begin(root)
            for name, look in looks.items():
                calls.counts, calls.bytes = Counter(), Counter()
                look()
                kinds = dict(calls.counts.most_common())
                counted[name] = {"calls": calls.counts.total(), "bytes": calls.bytes.total(), "kinds": kinds}
            calls.begin(Path("/nowhere"))
    return counted


def main() -> None:
    """Print the counts of each look, a column for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--segments", type=int, default=10, help="of each worker")
    parser.add_argument("--json", action="store_true", help="a line for each number of workers, with each kind of call")
    given = parser.parse_args()
    calls = Calls(Path("/nowhere"), 0.0)
    calls.install()
    columns = [count(calls, workers=workers, segments=given.segments) for workers in given.workers]
    if given.json:
        for column in columns:
            print(json.dumps(column))
        return
    print(f"{'calls (and kB read) of one look':36}" + "".join(f"{workers:>18}" for workers in given.workers))
    for name in columns[0]:
        cells = (f"{column[name]['calls']} ({column[name]['bytes'] / 1000:.1f})" for column in columns)
        print(f"{name:36}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
