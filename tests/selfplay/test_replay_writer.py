"""The worker's end of the store: no finished game is dropped, none comes twice, and no disk holds up the games."""

import errno
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plyzero.run.directory import Run
from plyzero.run.journals import read_journal
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import list_segments, read_segment
from plyzero.selfplay.replay_writer import ReplayWriter
from tests.helpers.runs import small_run
from tests.helpers.segments import some_games
from tests.helpers.victims import visible as sealed

WRITER = {"worker": "w0", "incarnation": "0123abcd"}


def run_with(root: Path, *options: str) -> Run:
    """A run whose store seals by nothing but what `options` say."""
    return small_run(
        root / "r", "connect-four", "selfplay.seal_positions=100000", "selfplay.seal_seconds=1000", *options
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_with(tmp_path)


def finished(run: Run, count: int, positions: int = 5, seed: int = 0) -> list[Games]:
    return [some_games(run.game, seed + number, (positions,)) for number in range(count)]


def add(writer: ReplayWriter, games: list[Games]) -> None:
    for each in games:
        writer.add(each)


def ids(games: list[Games]) -> Counter[int]:
    return Counter(int(each.games["id"][0]) for each in games)


def journaled(run: Run, sequence: int = 0) -> int:
    """Number of games in a journal; 0 if there is none."""
    try:
        return len(read_journal(run.journals / str(JournalName(**WRITER, sequence=sequence)), run.game))
    except FileNotFoundError:
        return 0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Disk:
    """Wraps a call of the system: while `error` is set it fails for the files for which `fails_for` is true."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        call: str,
        error: int | None = None,
        fails_for: Callable[[Path], bool] = lambda _: True,
    ) -> None:
        self.error, self._fails_for = error, fails_for
        self.failed = 0
        self._call = getattr(os, call)
        monkeypatch.setattr(f"plyzero.files.os.{call}", self)

    def __call__(self, descriptor: int, *arguments: int) -> int:
        if self.error is not None and self._fails_for(Path(os.readlink(f"/proc/self/fd/{descriptor}"))):
            self.failed += 1
            raise OSError(self.error, os.strerror(self.error))
        return self._call(descriptor, *arguments)


def test_a_segment_is_sealed_when_its_games_take_much_memory(run: Run, monkeypatch: pytest.MonkeyPatch):
    games = finished(run, 3)
    monkeypatch.setattr("plyzero.selfplay.replay_writer.SEAL_BYTES", games[0].nbytes + 1)
    with ReplayWriter(run, **WRITER) as writer:
        add(writer, games)
        until(lambda: list(list_segments(run.segments)))
        assert next(list_segments(run.segments)).games == 2


def test_a_segment_is_sealed_when_its_first_game_is_old(tmp_path: Path):
    run = run_with(tmp_path, "selfplay.seal_seconds=0.05")
    games = finished(run, 2)
    with ReplayWriter(run, **WRITER) as writer:
        writer.add(games[0])
        until(lambda: sealed(run) == ids(games[:1]))
        writer.add(games[1])
        until(lambda: sealed(run) == ids(games))


def test_a_segment_is_sealed_at_once_where_that_is_asked_for(run: Run):
    games = finished(run, 2)
    with ReplayWriter(run, **WRITER) as writer:
        writer.seal_soon()  # of nothing
        until(lambda: not writer._seal_asked)
        assert [*run.segments.iterdir()] == []
        writer.add(games[0])
        until(lambda: journaled(run) == 1)
        assert sealed(run) == Counter()
        writer.seal_soon()
        until(lambda: sealed(run) == ids(games[:1]))
        writer.add(games[1])
    assert sealed(run) == ids(games)


def test_at_the_end_every_game_is_in_one_segment_in_order(tmp_path: Path):
    run = run_with(tmp_path, "selfplay.seal_positions=37")
    games = finished(run, 40)
    with ReplayWriter(run, **WRITER) as writer:
        add(writer, games)
    names = sorted(list_segments(run.segments))
    assert [name.sequence for name in names] == [0, 1, 2, 3, 4]
    in_order = [number for name in names for number in read_segment(run.segments / str(name), run.game).games["id"]]
    assert in_order == list(ids(games))
    assert list(run.journals.iterdir()) == []
    assert (writer.unsealed_full_positions, writer.write_error) == (0, None)


def test_games_count_once_added_and_are_unsealed_until_sealed(run: Run):
    games = finished(run, 3)
    full = sum(each.num_full for each in games)
    assert full
    with ReplayWriter(run, **WRITER) as writer:
        add(writer, games)
        assert writer.totals() == {"games": 3, "positions": 15, "full_positions": full}
        assert writer.unsealed_full_positions == full
        writer.seal_soon()
        until(lambda: not writer.unsealed_full_positions)
    assert sum(name.full for name in list_segments(run.segments)) == full
    assert writer.totals()["full_positions"] == full


@pytest.mark.parametrize("seconds", ["0", "0.05"])
def test_the_journal_is_put_onto_the_disk_itself(seconds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = run_with(tmp_path, f"store.sync_seconds={seconds}")
    path, fdatasync, synced = run.journals / str(JournalName(**WRITER, sequence=0)), os.fdatasync, []

    def spy(descriptor: int) -> None:
        synced.append(len(read_journal(path, run.game)))
        fdatasync(descriptor)

    monkeypatch.setattr("plyzero.files.os.fdatasync", spy)
    with ReplayWriter(run, **WRITER) as writer:
        for number, each in enumerate(finished(run, 3), 1):
            writer.add(each)
            until(lambda number=number: number in synced)


def test_while_the_volume_is_full_games_wait_for_room(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("plyzero.selfplay.replay_writer.BUFFER_POSITIONS", 15)
    disk, games = Disk(monkeypatch, "pwrite"), finished(run, 6)
    with ReplayWriter(run, **WRITER) as writer:
        writer.add(games[0])
        until(lambda: journaled(run) == 1)
        disk.error = errno.ENOSPC
        for number, each in enumerate(games[1:]):
            assert writer.is_full == (number >= 3)
            writer.add(each)
        until(lambda: writer.write_error)
        assert writer.write_error == "cannot write to the volume: No space left on device"
        assert writer.is_full
        until(lambda: disk.failed >= 2)
        disk.error = None
        until(lambda: writer.write_error is None)
        until(lambda: journaled(run) == 6)
        assert not writer.is_full
    assert sealed(run) == ids(games)
    assert caplog.text.count("cannot write to the volume, will try again: No space left on device") == 1


def test_a_lasting_error_ends_the_store_and_is_raised_everywhere(run: Run, monkeypatch: pytest.MonkeyPatch):
    disk, games = Disk(monkeypatch, "pwrite"), finished(run, 2)

    def ended() -> bool:
        try:
            return writer.is_full
        except OSError as error:
            return error.errno == errno.EINVAL

    writer = ReplayWriter(run, **WRITER)
    with pytest.raises(OSError, match="Invalid argument"), writer:  # noqa: PT012
        writer.add(games[0])
        until(lambda: journaled(run) == 1)
        disk.error = errno.EINVAL
        writer.add(games[1])
        until(ended)
        with pytest.raises(OSError, match="Invalid argument"):
            writer.add(games[1])
    assert disk.failed == 1  # it has not tried again
    assert journaled(run) == 1


def test_an_error_of_the_worker_itself_is_not_hidden_by_one_of_the_store(run: Run, monkeypatch: pytest.MonkeyPatch):
    disk = Disk(monkeypatch, "pwrite")
    with pytest.raises(ZeroDivisionError), ReplayWriter(run, **WRITER) as writer:  # noqa: PT012
        writer.add(finished(run, 1)[0])
        disk.error = errno.EINVAL
        raise ZeroDivisionError


def test_a_volume_that_cannot_be_written_is_found_at_the_start(run: Run, monkeypatch: pytest.MonkeyPatch):
    Disk(monkeypatch, "pwrite").error = errno.EINVAL
    with pytest.raises(OSError, match="Invalid argument"), ReplayWriter(run, **WRITER):
        pass


def test_games_that_cannot_be_written_when_the_worker_ends_are_an_error(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.selfplay.replay_writer.CLOSING_SECONDS", 0.0)
    disk = Disk(monkeypatch, "pwrite")
    with pytest.raises(OSError, match="No space left"), ReplayWriter(run, **WRITER) as writer:  # noqa: PT012
        writer.add(finished(run, 1)[0])
        until(lambda: journaled(run) == 1)
        disk.error = errno.ENOSPC
    assert journaled(run) == 1


def test_a_disk_that_stalls_holds_up_nobody_who_adds(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.selfplay.replay_writer.BUFFER_POSITIONS", 20)
    pwrite, games = os.pwrite, finished(run, 8)
    stalled, go_on = threading.Event(), threading.Event()

    def stall(descriptor: int, content: bytes, offset: int) -> int:
        stalled.set()
        go_on.wait()
        return pwrite(descriptor, content, offset)

    def fill() -> None:
        add(writer, games)
        assert writer.is_full

    with ReplayWriter(run, **WRITER) as writer:
        monkeypatch.setattr("plyzero.files.os.pwrite", stall)
        adder = threading.Thread(target=fill, daemon=True)
        try:
            adder.start()
            adder.join(60)
            assert not adder.is_alive()
            assert stalled.wait(60)
            assert writer.is_full
            assert sealed(run) == Counter()
        finally:
            go_on.set()
        until(lambda: not writer.is_full)
    assert sealed(run) == ids(games)


def test_an_invalid_game_is_refused_before_acknowledgement(run: Run, caplog: pytest.LogCaptureFixture):
    games = finished(run, 6)
    games[2].positions["root_value"][1] = np.nan
    games[4].moves["prior"][0] = 2
    with ReplayWriter(run, **WRITER) as writer:
        add(writer, games)
        until(lambda: journaled(run) == 4)
    assert sealed(run) == ids([games[number] for number in (0, 1, 3, 5)])
    assert (writer.refused_games, writer.unsealed_full_positions, writer.is_full) == (2, 0, False)
    errors = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert [text.partition(" is not stored, the trainer would refuse it: ")[2] for text in errors] == [
        "position/root_value has an impossible value at index 1",
        "move/prior has an impossible value at index 0",
    ]


def test_a_game_too_large_for_a_segment_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch):
    games = [*finished(run, 2), *finished(run, 1, positions=30, seed=9)]
    monkeypatch.setattr("plyzero.selfplay.replay_writer.MAX_GAME_BYTES", games[2].nbytes - 1)
    with ReplayWriter(run, **WRITER) as writer:
        add(writer, games)
    assert (sealed(run), writer.refused_games) == (ids(games[:2]), 1)


PASSING = ("EIO", "EACCES", "EHOSTDOWN", "ENOSPC", "ENOENT")  # tests/test_volume_errors.py tries all


@pytest.mark.parametrize("name", PASSING)
def test_an_error_that_passes_ends_no_writer(name: str, run: Run, monkeypatch: pytest.MonkeyPatch):
    number, games = getattr(errno, name), finished(run, 2)
    disk = Disk(monkeypatch, "pwrite", number)
    with ReplayWriter(run, **WRITER) as writer:
        for game in games:  # at the start, and later
            disk.error = number
            writer.add(game)
            until(lambda: writer.write_error)
            assert writer.write_error.startswith(f"cannot write to the volume: {os.strerror(number)}")
            disk.error = None
            until(lambda: writer.write_error is None)
    assert sealed(run) == ids(games)


def test_a_segment_is_sealed_without_a_list_of_those_of_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = run_with(tmp_path, "selfplay.seal_positions=10")
    lists: list[Path] = []
    list_names = os.listdir
    monkeypatch.setattr("plyzero.files.os.listdir", lambda path: lists.append(path) or list_names(path))
    games = finished(run, 6)
    with ReplayWriter(run, **WRITER) as writer:
        add(writer, games)
    monkeypatch.undo()
    assert (sealed(run), len(list(list_segments(run.segments))), lists) == (ids(games), 3, [])


def test_after_a_failed_attempt_to_seal_the_segments_are_listed_and_no_game_is_there_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = run_with(tmp_path, "selfplay.seal_positions=10")
    disk = Disk(monkeypatch, "fsync", errno.EIO, lambda path: path == run.segments)  # the segment is there by then
    games = finished(run, 2)
    with ReplayWriter(run, **WRITER) as writer:
        add(writer, games)
        until(lambda: disk.failed)
        disk.error = None
    assert (sealed(run), [name.sequence for name in list_segments(run.segments)]) == (ids(games), [0])
