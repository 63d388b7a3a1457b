"""Measure the replay store: writing and reading at once, drawing batches from the window, and a disk that stalls.

python benchmarks/store.py --seconds 20 --writers 2
"""

import argparse
import itertools
import json
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import numpy as np

import selfplay.replay_writer
from plyzero import files
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.run.models import publish_model
from plyzero.run.records import Games
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch
from plyzero.search.slots import SearchSlots
from plyzero.settings import SearchSettings, SelfplaySettings, Settings, TrainerSettings
from selfplay.games_in_play import GamesInPlay
from selfplay.replay_writer import ReplayWriter
from selfplay.worker import run_worker
from trainer.export import untrained
from trainer.replay_reader import ReplayReader
from trainer.targets import Samples, make_samples
from trainer.window import Window

WINDOW = 1_000_000
STALL_SECONDS = 2.0


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of writing and reading")
    parser.add_argument("--writers", type=int, default=2, help="processes that write")
    parser.add_argument("--directory", type=Path, help="on the volume to measure; default: a temporary one")
    parser.add_argument("--window", type=int, default=WINDOW, help="positions that batches are drawn from")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        root = Path(directory)
        games = play_games(200, seed=0)
        report = {
            "write": measure_writing(root / "write", games, writers=given.writers, seconds=given.seconds),
            "sample": measure_sampling(games, window=given.window),
            "stall": {
                "syncs": measure_stall(root / "syncs", writes_too=False),
                "syncs and writes": measure_stall(root / "writes", writes_too=True),
            },
        }
    if given.json:
        print(json.dumps(report, indent=1))
    else:
        for figure, value, target in table(report):
            print(f"{figure:<58} {value:>32}  {target}".rstrip())


def table(report: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield figure, value and target for a person."""
    write, sample = report["write"], report["sample"]
    yield f"{write['writers']} writers, positions/s in journals", f"{write['acknowledged_per_second']:,.0f}", "200,000"
    yield "positions/s in segments", f"{write['sealed_per_second']:,.0f}", "200,000"
    yield "reader, positions/s meanwhile", f"{write['read_per_second']:,.0f}", ""
    yield "reader was behind at the end by, positions", f"{write['reader_behind']:,}", ""
    yield "bytes/position in journals", f"{write['journal_bytes_per_position']:.1f}", ""
    yield "bytes/position in segments", f"{write['segment_bytes_per_position']:.1f}", ""
    yield "share of the time in which the store was full", f"{write['full_share']:.0%}", ""
    cpu = f"{write['writer_cpu_microseconds']:.2f}, {write['reader_cpu_microseconds']:.2f}"
    yield "CPU µs/position, writer and reader", cpu, ""
    yield "games written, read once", f"{write['games_written']:,}, {write['games_read_once']:,}", "equal"
    spread = f"{sample['slowest']:,.0f} to {sample['fastest']:,.0f}"
    yield f"positions/s drawn from {sample['window']:,}", f"{sample['per_second']:,.0f}", "1,000,000"
    yield "slowest and fastest of 5 slices", spread, ""
    yield "ms of the first batch after a segment has come", f"{sample['first_batch_ms']:.0f}", ""
    for what, stall in report["stall"].items():
        yield f"longest gap between batches, ms, {what} stall for {STALL_SECONDS:g} s", f"{stall['during_ms']:.0f}", ""
        yield "    before the stall", f"{stall['before_ms']:.0f}", ""
        yield "    batches in a stall, the fewest", f"{stall['batches']}", "above 0"


def measure_writing(root: Path, games: list[Games], *, writers: int, seconds: float) -> dict[str, Any]:
    """Let processes write as fast as their stores take it, while one reads as the trainer does, and count."""
    create_run(root, load_game("othello"))
    context = multiprocessing.get_context("spawn")
    start, written = context.Barrier(writers + 1), context.Event()
    told: Queue[dict[str, Any]] = context.Queue()
    reader = context.Process(target=read, args=(root, seconds, start, written, told))
    processes = [
        context.Process(target=write, args=(root, games, number, seconds, start, told)) for number in range(writers)
    ]
    for process in (reader, *processes):
        process.start()
    counts = [told.get() for _ in processes]
    for process in processes:
        process.join()
    written.set()
    found = told.get()
    reader.join()

    acknowledged, sealed = (sum(count[key] for count in counts) for key in ("acknowledged", "sealed"))
    wanted = {identity(count["number"], game) for count in counts for game in range(count["games"])}
    positions = sum(count["positions"] for count in counts)
    return {
        "writers": writers,
        "acknowledged_per_second": acknowledged / seconds,
        "sealed_per_second": sealed / seconds,
        "read_per_second": found["in_time"] / seconds,
        "reader_behind": sealed - found["in_time"],
        "journal_bytes_per_position": sum(count["journal_bytes"] for count in counts) / positions,
        "segment_bytes_per_position": found["bytes"] / found["positions"],
        "full_share": sum(count["full_seconds"] for count in counts) / seconds / writers,
        "writer_cpu_microseconds": 1e6 * sum(count["cpu_seconds"] for count in counts) / positions,
        "reader_cpu_microseconds": 1e6 * found["cpu_seconds"] / found["positions"],
        "games_written": len(wanted),
        "games_read_once": sum(count == 1 and number in wanted for number, count in found["ids"].items()),
        "games_read": sum(found["ids"].values()),
    }


def write(root: Path, games: list[Games], number: int, seconds: float, start: Barrier, told: Queue) -> None:
    """Add games to a store as fast as it takes them, waiting only while it is full."""
    tally = count_what_is_stored()
    added, full_seconds = 0, 0.0
    with ReplayWriter(open_run(root), worker=f"w{number}", incarnation=f"{number:08x}") as store:
        start.wait()
        cpu, until = time.process_time(), time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            if store.is_full:
                time.sleep(0.002)
                full_seconds += time.monotonic() - now
                continue
            store.add(numbered(games[added % len(games)], identity(number, added)))
            added += 1
        in_time = dict(tally)
    told.put(
        {
            "number": number,
            "games": added,
            "acknowledged": in_time["acknowledged"],
            "sealed": in_time["sealed"],
            "positions": tally["acknowledged"],
            "journal_bytes": tally["journal_bytes"],
            "full_seconds": full_seconds,
            "cpu_seconds": time.process_time() - cpu,
        }
    )


def count_what_is_stored() -> dict[str, int]:
    """Return counts that grow with what any store of this process writes."""
    tally = {"acknowledged": 0, "sealed": 0, "journal_bytes": 0}
    write_segment = selfplay.replay_writer.write_segment

    class CountingJournal(selfplay.replay_writer.Journal):
        def append(self, games: Games) -> None:
            before = self._size
            super().append(games)
            tally["acknowledged"] += len(games.positions)
            tally["journal_bytes"] += self._size - before

    def counting_write_segment(directory: Path, games: Games, *arguments: Any, **more: Any) -> Path:
        path = write_segment(directory, games, *arguments, **more)
        tally["sealed"] += len(games.positions)
        return path

    selfplay.replay_writer.Journal, selfplay.replay_writer.write_segment = CountingJournal, counting_write_segment
    return tally


def read(root: Path, seconds: float, start: Barrier, written: Event, told: Queue) -> None:
    """Take segments in as the trainer does, and remove each, until all that was written is read."""
    run = open_run(root)
    reader, window = ReplayReader(run), Window(run.game.start)
    samples_of(run, play_games(1, seed=1)[0])  # compiles
    ids: list[int] = []
    positions = in_time = size = 0
    start.wait()
    cpu, until = time.process_time(), time.monotonic() + seconds
    while True:
        is_last = written.is_set()
        for name, games in reader.read_new():
            window.add(str(name), samples_of(run, games), size=WINDOW)
            path = run.segments / str(name)
            size += path.stat().st_size
            path.unlink()
            positions += name.positions
            in_time += name.positions if time.monotonic() < until else 0
            ids += games.games["id"].tolist()
        if is_last:
            break
        time.sleep(0.1)
    seen, times = np.unique(np.array(ids, np.uint64), return_counts=True)
    told.put(
        {
            "ids": dict(zip(seen.tolist(), times.tolist(), strict=True)),
            "positions": positions,
            "in_time": in_time,
            "bytes": size,
            "cpu_seconds": time.process_time() - cpu,
        }
    )


def measure_sampling(games: list[Games], *, window: int, slices: int = 5) -> dict[str, float]:
    """Draw batches of 1024 from a full window, in slices of about a second."""
    game = load_game("othello").start
    samples = make_samples(Games.concatenate(games), search=SearchSettings(), trainer=TrainerSettings())
    filled, rng = Window(game), np.random.default_rng(0)
    while len(filled) < window:
        filled.add(f"segment {len(filled)}", samples, size=window)
    filled.sample(1024, rng)
    filled.add("one more", samples, size=window)
    first = seconds_of(lambda: filled.sample(1024, rng))
    batches = max(1, round(1.0 / seconds_of(lambda: filled.sample(1024, rng))))
    speeds = [
        1024 * batches / seconds_of(lambda: [filled.sample(1024, rng) for _ in range(batches)]) for _ in range(slices)
    ]
    return {
        "window": len(filled),
        "per_second": float(np.median(speeds)),
        "slowest": min(speeds),
        "fastest": max(speeds),
        "first_batch_ms": 1000 * first,
    }


def measure_stall(root: Path, *, writes_too: bool, count: int = 3) -> dict[str, float]:
    """Let a worker play while its disk stalls, several times, and return the longest gaps between two searched batches.

    writes_too: whether what does not wait for the disk itself, such as a heartbeat, stalls as well.
    """
    options = ["selfplay.seal_positions=200", "selfplay.parallel_games=16", "selfplay.simulations=16"]
    run = create_run(root, load_game("connect-four"), options=options)
    publish_model(run.models, untrained(run), fence=1, step=1)
    stop = threading.Event()
    times: list[float] = []
    with stamping_batches(times), stalling_disk(writes_too=writes_too) as stall:
        worker = threading.Thread(target=run_worker, args=(run,), kwargs={"name": "w0", "stop": stop})
        worker.start()
        while not times:  # it compiles
            time.sleep(0.1)
        time.sleep(2.0)
        calm = time.monotonic()
        time.sleep(4.0)
        stalls = []
        for _ in range(count):
            stalls.append(stall())
            time.sleep(STALL_SECONDS + 0.7)
        stop.set()
        worker.join()
    return {
        "before_ms": 1000 * longest_gap(times, calm, stalls[0]),
        "during_ms": 1000 * max(longest_gap(times, began, began + STALL_SECONDS) for began in stalls),
        "batches": min(sum(began <= each < began + STALL_SECONDS for each in times) for began in stalls),
    }


@contextmanager
def stamping_batches(times: list[float]) -> Iterator[None]:
    """Note in `times` when each batch has been asked for."""
    ask = SearchSlots.ask

    def stamped(slots: SearchSlots, evaluate: Evaluate) -> None:
        ask(slots, evaluate)
        times.append(time.monotonic())

    SearchSlots.ask = stamped
    try:
        yield
    finally:
        SearchSlots.ask = ask


@contextmanager
def stalling_disk(*, writes_too: bool) -> Iterator[Callable[[], float]]:
    """Yield a function after whose call the disk answers nobody for STALL_SECONDS; it returns when that began."""
    held = os.fsync, os.fdatasync, files.write_at
    until = 0.0

    def stall() -> float:
        nonlocal until
        until = time.monotonic() + STALL_SECONDS
        return until - STALL_SECONDS

    def stalled(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            time.sleep(max(0.0, until - time.monotonic()))
            return call(*arguments)

        return called

    os.fsync, os.fdatasync = stalled(os.fsync), stalled(os.fdatasync)
    if writes_too:
        files.write_at = stalled(files.write_at)
    try:
        yield stall
    finally:
        os.fsync, os.fdatasync, files.write_at = held


def longest_gap(times: list[float], since: float, until: float) -> float:
    """Return the longest time without a batch that lies in part between `since` and `until`."""
    inside = [each for each in times if since <= each < until]
    before = max((each for each in times if each < since), default=since)
    after = min((each for each in times if each >= until), default=until)
    return float(np.diff([before, *inside, after]).max())


def play_games(count: int, *, seed: int) -> list[Games]:
    """Return records of Othello games as a worker makes them, with guesses for what its network says."""
    rng = np.random.default_rng(seed)
    start = load_game("othello").start

    def guess(leaves: EvaluationBatch) -> Evaluation:
        n = len(leaves.observations)
        logits = rng.normal(scale=2, size=(n, start.num_actions))
        return Evaluation(logits.astype(np.float32), rng.dirichlet([5, 1, 5], size=n).astype(np.float32))

    games = GamesInPlay(
        start, Settings(selfplay=SelfplaySettings(parallel_games=min(count, 64))), seeds=itertools.count(seed)
    )
    played: list[Games] = []
    while len(played) < count:
        played += games.run(guess, fence=1, step=1000)
    return played[:count]


def samples_of(run: Run, games: Games) -> Samples:
    """Return what the trainer of `run` learns of `games`."""
    return make_samples(games, search=run.settings.search, trainer=run.settings.trainer)


def identity(writer: int, game: int) -> int:
    """Return the id of a writer's game."""
    return writer << 40 | game


def numbered(games: Games, number: int) -> Games:
    """Return the record of one game under another id."""
    game = games.games.copy()
    game["id"] = number
    return replace(games, games=game)


def seconds_of(call: Callable[[], Any]) -> float:
    """Return how long `call` takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
