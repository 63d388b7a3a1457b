"""Processes that tests kill: what they acknowledge or publish is also written where the test can read it.

`start` forks them from a server that has imported everything, so that each is at work within milliseconds.
"""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import numpy as np

from plyzero import files
from plyzero.ops.processes import ending_at_once, stop_on_signals
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, open_run
from plyzero.run.journals import Journal
from plyzero.run.models import publish_model
from plyzero.run.records import Games
from plyzero.run.segments import list_segments, read_segment
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.volumes import to_path
from tests.helpers.runs import small_run
from tests.helpers.segments import some_games

TIC_TAC_TOE = load_game("tic-tac-toe")  # compiled here, once for all processes
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__, "plyzero.selfplay.worker", "plyzero.trainer.loop"])


def start(role: str, *arguments: object, scratch: Path | None = None) -> ForkServerProcess:
    """Start `main` with these arguments in a process of its own; kill or join it.

    scratch: of a run in a bucket; the process then has the environment of this one, and looks at the bucket often.
    """
    environment = dict(os.environ) if scratch else None
    process = PROCESSES.Process(target=begin, args=(environment, scratch, role, *map(str, arguments)), daemon=True)
    process.start()
    return process


def log_acknowledged(log: Path) -> None:
    """Write the id of every game into `log` once the journal has it."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    append = Journal.append

    def logged(journal: Journal, games: Games) -> None:
        append(journal, games)
        os.write(descriptor, "".join(f"{identity}\n" for identity in games.games["id"]).encode())

    Journal.append = logged  # type: ignore[method-assign]


def die_at(point: str, part_of_name: str, nth: int) -> None:
    """Be killed the `nth` time that `point` is reached with a file that has `part_of_name` in its path."""
    count = 0

    def hook(reached: str, path: Path) -> None:
        nonlocal count
        count += reached == point and part_of_name in str(path)
        if count == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    files.fault_point = hook


def numbered_games(first: int, count: int) -> list[Games]:
    """Tic-tac-toe games with ids from `first`."""
    made = []
    for identity in range(first, first + count):
        games = some_games(TIC_TAC_TOE, seed=identity, lengths=(6,))
        games.games["id"] = identity
        made.append(games)
    return made


def fill_store(root: Path, log: Path, incarnation: str) -> None:
    """Add 40 games to a store that seals every few of them."""
    log_acknowledged(log)
    first = int(incarnation, 16) * 1000
    with ReplayWriter(open_run(root), worker="w0", incarnation=incarnation) as writer:
        for number, games in enumerate(numbered_games(first, 40)):
            writer.add(games)
            if number % 4 == 3:
                writer.seal_soon()
                while writer.unsealed_full_positions and writer.write_error is None:
                    time.sleep(0.001)


def outlast(root: Path, limit: str) -> None:
    """Add games until there is no room for more, make room, and print what became of them."""
    run = small_run(root / "r", "tic-tac-toe", "store.min_free_mb=0", "selfplay.seal_seconds=0.02")
    make_room = take_the_volume(root) if limit == "volume" else take_the_quota()
    found: dict[str, object] = {}
    with ReplayWriter(run, worker="w0", incarnation="00000001") as writer:
        added = 0
        while writer.write_error is None:
            (games,) = numbered_games(added, 1)
            writer.add(games)
            added += 1
            time.sleep(0.002)
        found |= {"trouble": writer.write_error, "visible": visible(run).total()}
        found["unfinished"] = [path.name for path in run.segments.glob(".tmp-*")]
        make_room()
        while writer.write_error is not None:
            time.sleep(0.01)
    times = visible(run)
    found |= {"added": added, "lost": added - len(times), "doubled": times.total() - len(times)}
    print(json.dumps(found))


def visible(run: Run) -> Counter[int]:
    """Number of segments that each game is in; SegmentError if one of them is not whole."""
    names = list_segments(run.segments)
    return Counter(int(i) for name in names for i in read_segment(run.segments / str(name), run.game).games["id"])


def take_the_volume(root: Path) -> Callable[[], None]:
    ballast, left = root / "ballast", 200_000
    ballast.write_bytes(bytes(shutil.disk_usage(root).free - left))
    return ballast.unlink


def take_the_quota() -> Callable[[], None]:
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, most))  # enough for a journal with a game or two
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def work(run: Run, log: Path, name: str) -> None:
    """Be a worker."""
    log_acknowledged(log)
    play(run, name)


def play(run: Run, name: str) -> None:
    """Do what `plyzero selfplay` does."""
    from plyzero.selfplay.worker import run_worker

    stop = stop_on_signals()
    with ExitStack() as starting:
        starting.enter_context(ending_at_once(stop))
        run_worker(run, name=name, stop=stop, on_ready=starting.close)


def command(log: Path, *arguments: str) -> None:
    """Be a command of plyzero."""
    from plyzero.commands.cli import main

    log_acknowledged(log)
    sys.argv = ["plyzero", *arguments]
    main()


def train(run: Run) -> None:
    """Be the trainer: do what `plyzero trainer` does."""
    from plyzero.trainer.loop import run_trainer

    stop = stop_on_signals()
    with ExitStack() as starting:
        starting.enter_context(ending_at_once(stop))
        run_trainer(run, device="cpu", stop=stop, ready=starting.close)


def publish(root: Path, template: Path, first: int) -> None:
    """Publish model after model, without end."""
    import onnx

    run = open_run(root)
    model = onnx.load_from_string(template.read_bytes())
    for step in range(first, first + 100_000):
        for entry in model.metadata_props:
            if entry.key == "step":
                entry.value = str(step)
        publish_model(run.models, model.SerializeToString(), fence=1, step=step)
        for old in sorted(run.models.glob("*.onnx"))[:-8]:
            old.unlink()


def end_with_the_tests() -> None:
    """Leave no process behind if the process of the tests is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def begin(environment: dict[str, str] | None, scratch: Path | None, role: str, *arguments: str) -> None:
    if environment is not None:
        os.environ.update(environment)
        files.BUCKET_SECONDS = 0.5  # type: ignore[misc]
    main(role, *arguments, scratch=scratch)


def main(role: str, *arguments: str, scratch: Path | None = None) -> None:
    threading.Thread(target=end_with_the_tests, daemon=True).start()
    given = list(arguments)
    if "--die-at" in given:
        at = given.index("--die-at")
        point, part, nth = given[at + 1 :]
        die_at(point, part, int(nth))
        given = given[:at]
    paths = [to_path(each) for each in given[:2]]
    np.seterr(all="raise")
    if role == "outlast":
        outlast(paths[0], given[1])
    elif role == "store":
        fill_store(paths[0], paths[1], given[2])
    elif role == "worker":
        work(open_run(paths[0], scratch=scratch), paths[1], given[2])
    elif role == "command":
        command(paths[0], *given[1:])
    elif role == "trainer":
        train(open_run(paths[0], scratch=scratch))
    elif role == "publisher":
        publish(paths[0], paths[1], int(given[2]))


if __name__ == "__main__":
    main(*sys.argv[1:])
