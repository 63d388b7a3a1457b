"""The lease: one trainer at a time, and one that wakes up behind its successor changes nothing."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from plyzero.errors import UserError
from plyzero.run import lease as lease_module
from plyzero.run.directory import Run
from plyzero.run.lease import Lease, is_held
from plyzero.run.models import list_models
from plyzero.trainer import publisher
from plyzero.trainer.loop import Trainer
from tests.helpers.hostile import at_once, failing
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games

HOLD = """
import os, socket, sys
from pathlib import Path
from plyzero.run.lease import Lease
lease = Lease(Path(sys.argv[1]), {"pid": os.getpid(), "host": socket.gethostname()})
print(lease.fence, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "r" / "trainer"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def hold(directory: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a process that holds the lease."""
    started = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(directory)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline().strip().isdecimal()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "LOCK_WAIT_SECONDS", 0.0)


def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plyzero.files.fcntl.flock", failing(errno.ENOLCK))


def test_a_second_trainer_is_refused_in_one_sentence_that_names_the_first(directory: Path, hold, impatient):
    holder = hold()
    sentence = (
        f"{directory.parent} already has a trainer (process {holder.pid} on {socket.gethostname()}, fence 1); "
        "stop that one first"
    )
    with pytest.raises(UserError) as refused:
        Lease(directory, {})
    assert str(refused.value) == sentence
    assert [path.name for path in directory.glob("fence-*")] == ["fence-000001.json"]
    assert is_held(directory) is True


def test_a_lease_whose_holder_is_killed_is_free(directory: Path, hold):
    holder = hold()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert is_held(directory) is False
    assert Lease(directory, {}).fence == 2


def test_who_only_looks_does_not_stand_in_a_trainers_way(directory: Path, monkeypatch: pytest.MonkeyPatch):
    Lease(directory, {}).release()
    looking = lease_module.files.lock(directory / lease_module.LOCK)
    assert looking is not None
    monkeypatch.setattr(lease_module.time, "sleep", lambda _: os.close(looking))
    assert Lease(directory, {}).fence == 2


def test_without_locks_the_fence_decides(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    no_locks(monkeypatch)
    first = Lease(directory, {})
    assert "does not support locks: a second trainer is detected only by its fence" in caplog.text
    assert is_held(directory) is None
    first.check()
    second = Lease(directory, {"pid": 77, "host": "elsewhere"})
    with pytest.raises(UserError, match=r"another trainer \(process 77 on elsewhere, fence 2\) has taken over .*/r; "):
        first.check()
    second.check()
    first.release()


def test_fences_grow_with_every_start(directory: Path):
    for expected in range(1, 12):
        assert is_held(directory) is False
        lease = Lease(directory, {"number": expected})
        assert lease.fence == expected
        assert is_held(directory) is is_held(directory) is True  # looking changes nothing
        lease.release()
        lease.release()
    assert json.loads((directory / "fence-000011.json").read_text()) == {"number": 11}
    for path in directory.glob("fence-00000[1-9].json"):
        path.unlink()
    (directory / "fence-x.json").touch()
    assert Lease(directory, {}).fence == 12


@pytest.mark.parametrize("has_locks", [True, False])
def test_of_trainers_that_start_at_once_one_gets_the_lease(
    has_locks: bool, directory: Path, monkeypatch: pytest.MonkeyPatch, impatient
):
    held, refused = list[Lease](), list[str]()
    if not has_locks:
        no_locks(monkeypatch)

    def start(_: int) -> None:
        try:
            held.append(Lease(directory, {}))
        except UserError as error:
            refused.append(str(error))

    at_once(12, start)
    assert sorted(lease.fence for lease in held) == ([1] if has_locks else list(range(1, 13)))
    assert len(refused) == 12 - len(held)
    assert all("already has a trainer" in text for text in refused)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"pid": 1}'])
def test_a_holder_who_cannot_be_read_is_named_by_its_fence(content: bytes, directory: Path, impatient):
    Lease(directory, {})
    (directory / "fence-000001.json").write_bytes(content)
    with pytest.raises(UserError, match=r"already has a trainer \(fence 1\); stop that one first"):
        Lease(directory, {})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with something to learn from, of which next to nothing should be kept."""
    options = ("trainer.batch_size=2", "trainer.window_positions=1", "store.keep_positions=1", "store.min_free_mb=0")
    run = small_run(tmp_path / "run", "tic-tac-toe", "trainer.window_growth=0", *options)
    for sequence in range(4):
        seal_some(run, sequence)
    return run


def seal_some(run: Run, sequence: int) -> None:
    games = some_games(run.game, sequence, (6, 6))
    games.positions["full"][:] = 1
    seal(run, games, sequence)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def states(run: Run) -> list[str]:
    return sorted(path.name for path in run.trainer.glob("state-*"))


def test_a_trainer_that_wakes_up_behind_its_successor_changes_nothing(run: Run):
    with closing(Trainer(run, device="cpu")) as old:
        for _ in range(2):
            old.ingest()
            old.train_step()
            old.publish()
        old.lease.release()  # its lock is lost while it sleeps
        with closing(Trainer(run, device="cpu")) as new:
            assert new.lease.fence == old.lease.fence + 1
            new.ingest()
            new.train_step()
            new.publish()
            seal_some(run, 4)
            places = (run.models, run.trainer, run.segments, run.metrics)
            before = [contents(place) for place in places]
            for _ in range(5):
                old.train_step()
            for does in (old.publish, old.publisher.save, old.end, old.maintain):
                with pytest.raises(UserError, match="this trainer, fence 1, stops and writes nothing more"):
                    does()
            assert [contents(place) for place in places] == before
            newest = list_models(run.models)[0]
            assert (newest.fence, newest.step) == (new.lease.fence, new.learner.step)
            assert states(run)[-1] == f"state-{new.lease.fence:06d}-{new.learner.step:09d}.pt"
            new.ingest()
            new.publish()


def test_a_successor_who_comes_during_an_export_is_not_overtaken(run: Run, monkeypatch: pytest.MonkeyPatch):
    export, successors = publisher.export, []

    def slowly(*arguments: object, **keywords: object) -> bytes:
        content = export(*arguments, **keywords)
        if not successors:
            old.lease.release()
            successors.append(Trainer(run, device="cpu"))
        return content

    with closing(Trainer(run, device="cpu")) as old:
        old.ingest()
        old.train_step()
        monkeypatch.setattr(publisher, "export", slowly)
        with pytest.raises(UserError, match="has taken over"):
            old.publish()
    assert list_models(run.models) == []
    successors[0].close()


def test_a_trainer_that_could_not_start_does_not_keep_the_lease(run: Run, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(publisher.Publisher, "resume", Mock(side_effect=UserError("a state of another network")))
        with pytest.raises(UserError, match="a state of another network"):
            Trainer(run, device="cpu")
    assert is_held(run.trainer) is False


@pytest.mark.parametrize("name", ["fence-999999999999.json", "fence-0000007.json", "fence-7.json", "fence-٠٠٠٠٠٩.json"])
def test_a_fence_that_plyzero_does_not_write_is_ignored(name: str, directory: Path):
    (directory / name).touch()
    lease = Lease(directory, {})
    assert lease.fence == 1
    lease.check()


def test_after_the_highest_fence_a_trainer_is_refused_with_a_sentence(directory: Path):
    (directory / "fence-999998.json").touch()
    lease = Lease(directory, {})
    assert lease.fence == 999_999
    lease.release()
    for _ in range(2):
        with pytest.raises(UserError, match=r"fence-999999.json has the highest possible number, .* remove that file"):
            Lease(directory, {})


@pytest.mark.parametrize("call", ["plyzero.run.lease.files.write_file", "plyzero.files.fcntl.flock"])
def test_a_lease_that_could_not_be_taken_is_free(call: str, directory: Path, monkeypatch: pytest.MonkeyPatch):
    Lease(directory, {}).release()
    with monkeypatch.context() as patch:
        patch.setattr(call, failing(errno.EIO))  # which is not taken for a volume without locks
        with pytest.raises(OSError, match="Input/output"):
            Lease(directory, {})
    assert Lease(directory, {}).fence == 2
