"""Measure a large window of the trainer: memory, disk, the time to read it again after a crash, and to sample a batch.

python -m benchmarks.scale.window connect-four --positions 1000000 5000000

One segment of recorded games is read again and again, as by a trainer that resumes with so many different ones.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.scale.calls import resident_mb
from benchmarks.scale.pretended import make_templates, under_new_identity
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import SegmentName, read_segment, write_segment
from plyzero.trainer.intake import Intake
from plyzero.trainer.parts import make_parts

BATCHES: Final = 50


def main() -> None:
    """Print a line for each size of the window."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--positions", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--segment", type=int, default=2500, help="positions of a segment")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run = create_run(
            Path(directory) / "run", load_game(given.game), options=["trainer.window_positions=1000000000"]
        )
        path = write_one(run, given.segment)
        intake = Intake(run, make_parts(run.game, run.settings).make_targets, ahead=False)
        began, cpu, before = time.monotonic(), time.process_time(), resident_mb()
        segments = 0
        for positions in sorted(given.positions):
            while len(intake.window) < positions:
                add(intake, run, path)
                segments += 1
            elapsed, used = time.monotonic() - began, time.process_time() - cpu
            memory = resident_mb() - before
            disk = segments * path.stat().st_size
            sampled = time.process_time()
            for _ in range(BATCHES):
                intake.sampler.take()
            sampled = (time.process_time() - sampled) / BATCHES
            size = len(intake.window)
            print(
                f"{size:,} positions in {segments:,} segments: {memory:,.0f} MB of memory ({memory * 2**20 / size:.0f} "
                f"bytes each), {disk / 2**20:,.0f} MB on disk ({disk / size:.0f} each), read again in {elapsed:.0f} s "
                f"({used:.0f} s of CPU), a batch sampled in {1000 * sampled:.1f} ms of CPU",
                flush=True,
            )
            cpu += BATCHES * sampled


def write_one(run: Run, positions: int) -> Path:
    """Return a segment of recorded games, of which every position is learned."""
    templates = make_templates(run)
    games: list[Games] = []
    while sum(len(each.positions) for each in games) < positions:
        one = under_new_identity(templates[len(games) % len(templates)], seed=len(games), fence=1, step=1)
        one.positions["full"] = one.positions["search"] > 0
        games.append(one)
    return write_segment(
        run.segments, Games.concatenate(games), run.game, JournalName("w0", "0123abcd", 0), run_id=run.id
    )


def add(intake: Intake, run: Run, path: Path) -> None:
    """Read a segment into the window, as a trainer does that resumes."""
    name = SegmentName.parse(path.name)
    assert name
    intake._add_to_window(name, read_segment(path, run.game, run_id=run.id))


if __name__ == "__main__":
    main()
