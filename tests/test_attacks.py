"""Real processes under attack from outside: no game is lost, none counts twice, nobody dies who was not killed.

The errors come from the C library (tests/helpers/attacks.c), below Python. Games are counted by the tests themselves.
"""

import errno
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plyzero.trainer.loop import MAINTAIN_SECONDS
from tests.helpers.attacks import (
    ATTACKED,
    CALLS,
    TRAINER_UID,
    WORKERS_UID,
    Control,
    Crew,
    attacked_run,
    library,
    permit,
)
from tests.helpers.runs import SMALL
from tests.helpers.volumes import KINDS, MARK, bad_entries, full, image, lacks, two_mounts

RATED = ("rating.games=2", "rating.opponents=random")
PASSING = (errno.EIO, errno.ESTALE, errno.EMFILE, errno.EACCES, errno.ENOMEM)


def need(*what: str) -> None:
    if missing := lacks("gcc", *what):
        pytest.skip(missing)


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    """Two workers and a trainer that have taken in the first games."""
    need()
    with Crew(tmp_path, attacked_run(tmp_path / "run")) as crew:
        crew.work_until_taken_in(games=100)
        yield crew


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that other users may enter, as they may not enter pytest's."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="attacks-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def quarantined(crew: Crew) -> list[str]:
    return [path.name for path in crew.run.quarantine.glob("w*")]


def check(crew: Crew) -> dict[str, Any]:
    """Settle, and check that no game is lost or counted twice, and that nobody has died."""
    found = crew.settle()
    print(found, "quarantined:", len(quarantined(crew)), crew.warnings(), sep="\n")
    assert found["acknowledged"] > 0
    assert (found["lost"], found["twice"], found["died"], found["faults"]) == (0, 0, {}, [])
    assert quarantined(crew) == []
    return found


@pytest.mark.slow
def test_transient_errors_on_reading_segments_lose_no_game(crew: Crew):
    control = crew.trainer.control
    for error in PASSING:
        before = control.failed
        control.fail(error, "open read", "replay/w")
        crew.work_until(lambda before=before: control.failed > before)
        control.clear()
        crew.work_until_taken_in(games=1)
    check(crew)


@pytest.mark.slow
def test_nobody_dies_of_transient_errors_whatever_they_read_list_or_write(crew: Crew):
    errors = itertools.cycle(PASSING)
    for directory in ("models", "replay", "workers", "journal", "trainer"):
        for calls, share in (("list", 1.0), ("open read stat", 1.0), (" ".join(CALLS), 0.5)):
            for member in crew.members.values():
                member.control.fail(next(errors), calls, f"/{directory}", share=share)
            crew.work(1.2)
            for member in crew.members.values():
                member.control.clear()
    assert crew.report()["failed calls"]
    check(crew)


@pytest.mark.slow
def test_entries_that_cannot_be_read_stop_nothing(crew: Crew):
    """They lie in all directories while everybody is killed, starts again and removes what is not needed."""
    run = crew.run
    before = {path for directory in (run.segments, run.models) for path in directory.iterdir()}
    with bad_entries(run.root):
        for member in crew.members.values():
            member.control.fail(errno.EACCES, "open", f"{MARK}{KINDS.index('unreadable')}")  # which root may read
        crew.work(2)
        crew.kill(*crew.members.values())
        crew.work_until_taken_in(games=200)
        crew.work_until(lambda: not all(path.exists() for path in before))  # the trainer looks after the volume
        crew.kill(crew.workers[0])
        check(crew)


@pytest.fixture
def crew_on_two_mounts(tmp_path: Path) -> Iterator[Crew]:
    """Workers that see the run through one mount and a trainer that sees it through another; locks do not cross."""
    need("bindfs")
    source = tmp_path / "source"
    source.mkdir()
    with two_mounts(tmp_path, source=source) as (one, other):
        run = attacked_run(source / "run", "selfplay.seal_seconds=8", "selfplay.seal_positions=100000")
        crew = Crew(tmp_path, run)
        for member in crew.workers:
            member.root = one / "run"
        crew.trainer.root = other / "run"
        with crew:
            crew.work_until_taken_in(games=100)
            yield crew


@pytest.mark.slow
def test_across_two_mounts_without_locks_no_game_is_lost(crew_on_two_mounts: Crew):
    crew = crew_on_two_mounts
    for _ in range(2):
        crew.work(3)
        crew.kill(crew.trainer)
        crew.work(4)  # in which the new one looks for journals without an owner
        crew.kill(*crew.workers)
    check(crew)


@pytest.mark.slow
def test_across_two_mounts_a_worker_may_be_suspended_for_long(crew_on_two_mounts: Crew):
    crew = crew_on_two_mounts
    crew.signal(signal.SIGSTOP, *crew.workers)
    crew.work(30)  # so long that the trainer takes them for dead
    crew.signal(signal.SIGCONT, *crew.workers)
    crew.work(1)
    crew.kill(*crew.workers)
    check(crew)


@pytest.mark.slow
def test_a_trainer_of_another_user_loses_no_private_game(open_path: Path):
    """If it cannot read them it waits until somebody permits it."""
    need("root")
    crew = Crew(open_path, attacked_run(open_path / "run"))
    for member in crew.workers:
        member.uid, member.umask = WORKERS_UID, 0o077
    crew.trainer.uid = TRAINER_UID
    with crew:
        crew.work(12)
        for member in crew.workers:
            member.umask = 0o022
            crew.kill(member)
        permit(crew.run)
        crew.work(3)
        check(crew)


@pytest.mark.slow
def test_a_volume_without_room_costs_no_game_and_nobody_ends(tmp_path: Path):
    """First it has no free inodes, then no free space; processes that start meanwhile wait for room too."""
    need("root", "loop")
    with image(tmp_path, megabytes=96, inodes=4000) as volume, Crew(tmp_path, attacked_run(volume / "run")) as crew:
        crew.work_until_taken_in(games=100)
        for inodes in (True, False):
            with full(volume, inodes=inodes):
                crew.work(3)
                crew.kill(crew.workers[0], crew.trainer)
                crew.work(5)
            crew.work_until_taken_in(games=10)
        check(crew)


@pytest.mark.slow
def test_a_clock_that_stands_still_or_is_wrong_stops_nobody(crew: Crew):
    for wrong in ({"stands": True}, {"offset": -1e9}, {"offset": 1e9}, {"monotonic_stands": True, "stands": True}, {}):
        for member in crew.members.values():
            member.control.clock(**wrong)
        if wrong and "monotonic_stands" not in wrong:
            crew.work_until_taken_in(games=100)
        crew.work(1.5)
    check(crew)


@pytest.mark.slow
def test_processes_suspended_for_longer_than_files_are_kept_go_on(crew: Crew):
    for members, seconds in ((crew.workers, MAINTAIN_SECONDS + 2), ([crew.trainer], 5)):
        crew.signal(signal.SIGSTOP, *members)
        crew.work(seconds)
        crew.signal(signal.SIGCONT, *members)
        crew.work_until_taken_in(games=50)
    check(crew)


class Train:
    """`plyzero train`, started again where it has ended. ended: what it said last, by attack."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.control = directory, Control(directory / "control")
        self.run = directory / "run"
        self.ended: dict[str, str] = {}
        self._said = directory / "said"
        self.start()

    def start(self) -> None:
        options = [part for option in (*SMALL, *ATTACKED, *RATED) for part in ("-o", option)]
        command = ["train", "tic-tac-toe", "--run", str(self.run), "--workers", "1", *options]
        preload = {"LD_PRELOAD": str(library()), "ATTACKED_FROM": str(self.control.path)}
        with self._said.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "plyzero", *command], env=os.environ | preload, stdout=said, stderr=said
            )

    def goes_on(self, attack: str, *, models: int = 2) -> None:
        """Wait until it has told of some models more, or has ended; then start it again."""
        rows, deadline = self.rows(), time.monotonic() + 240
        while self.process.poll() is None and self.rows() < rows + models and time.monotonic() < deadline:
            time.sleep(0.1)
        if self.process.poll() is not None:
            self.ended[attack] = self._said.read_text().strip().splitlines()[-1]
            self.start()
            self.goes_on("restart")
        elif self.rows() < rows + models:
            self.ended[attack] = "tells of no model"

    def rows(self) -> int:
        """Return of how many models it has told."""
        return len(re.findall(r"^ +\d+:\d\d ", self._said.read_text(), re.MULTILINE))


@pytest.mark.slow
def test_train_goes_on_whatever_happens_to_the_processes_and_the_volume(tmp_path: Path):
    need()
    train = Train(tmp_path)
    try:
        train.goes_on("nothing")
        train.process.send_signal(signal.SIGSTOP)
        time.sleep(6)
        train.process.send_signal(signal.SIGCONT)
        train.goes_on("suspended for longer than models are kept")
        train.control.clock(stands=True)
        train.goes_on("the time of day stands still")
        train.control.clock()
        for error, calls, part in (
            (errno.ENOENT, "open", ".onnx"),
            (errno.EIO, "list open read", "/models"),
            (errno.EIO, "list open read stat", "/metrics"),
            (errno.ESTALE, "list open read stat", "/workers"),
            (errno.ENOSPC, "open write", "rating.jsonl"),
        ):
            train.control.fail(error, calls, part)
            time.sleep(3)
            train.control.clear()
            train.goes_on(f"{errno.errorcode[error]} of {calls} in {part}")
        train.process.kill()
        train.start()
        train.goes_on("killed and started again at once")
    finally:
        train.process.kill()
    print(json.dumps(train.ended, indent=1))
    assert train.ended == {}
