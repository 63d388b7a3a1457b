"""Taking in: every segment once and in its writer's order, and nothing that is lost or damaged stands in the way."""

import errno
import logging
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from plyzero import files
from plyzero.files import list_names
from plyzero.ops.accounts import find_gaps
from plyzero.ops.verify import restore
from plyzero.run.directory import Run
from plyzero.run.journals import Journal
from plyzero.run.records import JournalName
from plyzero.run.segments import mark_unused
from plyzero.trainer.replay_reader import GAP_SECONDS, TRIES, ReplayReader
from plyzero.volume_errors import MAX_PAUSE
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games

A, B = "0000000a", "0000000b"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "r", "connect-four")


@pytest.fixture
def reader(run: Run, clock: Clock) -> ReplayReader:
    return ReplayReader(run, clock=clock)


def put(run: Run, sequence: int, incarnation: str = A, *, step: int | None = None, seed: int = 0) -> Path:
    games = some_games(run.game, seed + sequence)
    games.positions["model_step"][:] = sequence + 1 if step is None else step
    return seal(run, games, sequence, f"w0.{incarnation}")


def put_all(run: Run, sequences: Iterable[int]) -> list[Path]:
    return [put(run, sequence) for sequence in sequences]


def taken(reader: ReplayReader, clock: Clock | None = None, seconds: float = 0) -> list[tuple[str, int]]:
    """Return what is read, `seconds` later by the clock."""
    if clock is not None:
        clock.now += seconds
    return [(name.incarnation, name.sequence) for name, _ in reader.read_new()]


def of(incarnation: str, *sequences: int) -> list[tuple[str, int]]:
    return [(incarnation, sequence) for sequence in sequences]


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def quarantined(run: Run) -> list[str]:
    return sorted(path.name for path in run.quarantine.glob("*"))


def test_every_segment_is_taken_in_once_in_its_writers_order(run: Run, reader: ReplayReader):
    for sequence, step in ((3, 1), (0, 9), (2, 3), (1, 50)):
        put(run, sequence, step=step)
    assert taken(reader) == of(A, 0, 1, 2, 3)
    assert taken(reader) == []
    put(run, 4)
    assert taken(reader) == of(A, 4)
    assert reader.cursor == {A: 5}


def test_writers_do_not_wait_and_the_oldest_models_come_first(run: Run, reader: ReplayReader):
    for sequence in (0, 2):
        put(run, sequence, A, step=20 + sequence)
        put(run, sequence, B, step=10 + sequence)
    assert taken(reader) == [*of(B, 0), *of(A, 0)]
    put(run, 1, A, step=21)
    assert taken(reader) == of(A, 1, 2)
    put(run, 1, B, step=11)
    assert taken(reader) == of(B, 1, 2)
    assert reader.cursor == {A: 3, B: 3}


def test_a_missing_segment_is_waited_for_and_then_a_hole(
    run: Run, reader: ReplayReader, clock: Clock, caplog: pytest.LogCaptureFixture
):
    put_all(run, (0, 3, 4))
    assert taken(reader) == of(A, 0)
    assert taken(reader, clock, GAP_SECONDS - 1) == []
    assert reader.missing_segments == 0
    assert taken(reader, clock, 1) == of(A, 3, 4)
    assert (reader.missing_segments, reader.cursor) == (2, {A: 5})
    assert f"w0.{A}: segments 1 to 2 are missing" in caplog.text


def test_a_number_that_no_segment_will_have_is_no_hole(run: Run, reader: ReplayReader, clock: Clock):
    put_all(run, (0, 2, 4))
    mark_unused(run.segments, JournalName("w0", A, 1))
    assert taken(reader) == of(A, 0, 2)
    assert taken(reader, clock, GAP_SECONDS) == of(A, 4)
    assert reader.missing_segments == 1
    mark_unused(run.segments, JournalName("w0", A, 3))
    assert (taken(reader), reader.missing_segments) == ([], 0)
    put(run, 1)
    assert taken(reader) == of(A, 1)  # it has come nevertheless
    assert not find_gaps(run)


def test_a_late_segment_is_read_in_order(run: Run, reader: ReplayReader, clock: Clock):
    put(run, 1)
    assert taken(reader) == []
    clock.now += GAP_SECONDS - 1
    put(run, 0)
    assert taken(reader) == of(A, 0, 1)
    clock.now += GAP_SECONDS
    put(run, 3)
    assert taken(reader) == []
    assert taken(reader, clock, GAP_SECONDS - 1) == []
    put(run, 2)
    assert taken(reader) == of(A, 2, 3)
    assert reader.missing_segments == 0


def test_what_is_still_in_a_journal_is_no_hole(run: Run, reader: ReplayReader, clock: Clock):
    journal = Journal(run.journals, run.game, JournalName("w0", A, 1), run_id=run.id)
    put_all(run, (0, 2))
    assert taken(reader) == of(A, 0)
    assert taken(reader, clock, 10 * GAP_SECONDS) == []
    journal.close()
    put(run, 1)
    assert taken(reader) == of(A, 1, 2)
    assert reader.missing_segments == 0


def test_a_damaged_segment_is_tried_again_then_quarantined(
    run: Run, reader: ReplayReader, caplog: pytest.LogCaptureFixture
):
    paths = put_all(run, range(4))
    damage(paths[1])
    damage(paths[2])
    assert taken(reader) == of(A, 0)
    for _ in range(TRIES - 2):
        assert taken(reader) == []
        assert quarantined(run) == []
    for _ in range(TRIES - 1):
        assert taken(reader) == []
        assert quarantined(run) == [paths[1].name]
    assert taken(reader) == of(A, 3)
    assert quarantined(run) == [paths[1].name, paths[2].name]
    assert [path.name for path in sorted(run.segments.iterdir())] == [paths[0].name, paths[3].name]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [text.split(" cannot")[0] for text in warnings] == [
        f"moved to quarantine: {path.name}" for path in paths[1:3]
    ]
    assert reader.missing_segments == 0


@pytest.mark.parametrize("how", ["cannot be quarantined", "dangling link", "mended"])
def test_a_damaged_segment_delays_its_writer_only_for_a_while(
    how: str, run: Run, reader: ReplayReader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    path, _ = put_all(run, (0, 1))
    whole = path.read_bytes()
    if how == "dangling link":
        path.unlink()
        path.symlink_to("nothing")
    else:
        damage(path)
    if how == "cannot be quarantined":
        monkeypatch.setattr("plyzero.files.os.replace", failing(errno.EROFS))
    assert [taken(reader) for _ in range(TRIES - 1)] == [[]] * (TRIES - 1)
    if how == "mended":
        path.write_bytes(whole)
        assert (taken(reader), quarantined(run)) == (of(A, 0, 1), [])
    else:
        assert taken(reader) == of(A, 1)
    assert ("Read-only file system" in caplog.text) == (how == "cannot be quarantined")


@pytest.mark.parametrize("is_mended", [True, False])
def test_a_segment_that_cannot_be_quarantined_is_looked_at_again(
    is_mended: bool, run: Run, reader: ReplayReader, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog
):
    path, _ = put_all(run, (0, 1))
    whole = path.read_bytes()
    damage(path)
    with monkeypatch.context() as patch:
        patch.setattr("plyzero.files.os.replace", failing(errno.EROFS))
        assert [taken(reader) for _ in range(TRIES)] == [*[[]] * (TRIES - 1), of(A, 1)]
        assert taken(reader, clock, MAX_PAUSE) == []
    if is_mended:
        path.write_bytes(whole)
    assert (taken(reader, clock, MAX_PAUSE - 1), quarantined(run)) == ([], [])
    assert (taken(reader, clock, 1), quarantined(run)) == ((of(A, 0), []) if is_mended else ([], [path.name]))
    assert taken(reader, clock, MAX_PAUSE) == []
    assert caplog.text.count("Read-only file system") == 1


def test_after_a_crash_quarantined_segments_are_not_waited_for(run: Run, reader: ReplayReader, clock: Clock):
    paths = put_all(run, range(5))
    damage(paths[1])
    damage(paths[2])
    for _ in range(2 * TRIES):
        taken(reader)
    assert reader.cursor == {A: 5}
    restarted = ReplayReader(run, clock=clock)
    restarted.cursor = {A: 1}
    assert taken(restarted) == of(A, 3, 4)
    assert restarted.missing_segments == 0


def test_a_gap_beside_a_quarantined_segment_is_waited_for(run: Run, clock: Clock):
    paths = put_all(run, range(4))
    run.quarantine.mkdir()
    paths[1].rename(run.quarantine / paths[1].name)
    other = run.quarantine / paths[2].name.replace(A, B)
    paths[2].rename(other)  # another writer's
    restarted = ReplayReader(run, clock=clock)
    assert taken(restarted) == of(A, 0)
    assert taken(restarted, clock, GAP_SECONDS) == of(A, 3)


TRANSIENT = ("EIO", "EACCES", "EHOSTDOWN")  # tests/test_volume_errors.py tries all


@pytest.mark.parametrize("name", TRANSIENT)
def test_a_read_error_is_not_damage(
    name: str, run: Run, reader: ReplayReader, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog
):
    for sequence in range(3):
        put(run, sequence, A)
        put(run, sequence, B)
    error, tries, read_file = getattr(errno, name), [], files.read_file

    def refuse(path: Path, *, max_bytes: int) -> bytes:
        if A not in path.name:
            return read_file(path, max_bytes=max_bytes)
        tries.append(path)
        raise OSError(error, os.strerror(error), str(path))

    with monkeypatch.context() as patch:
        patch.setattr("plyzero.run.segments.read_file", refuse)
        assert taken(reader) == of(B, 0, 1, 2)  # the others go on
        for _ in range(200):
            assert taken(reader, clock, 1) == []
        assert len(tries) == 4 + 200 // 30 + 1  # after 1, 2, 4, 8, 16, 30, 30, ... seconds
        assert quarantined(run) == []
        assert reader.read_error.startswith(f"cannot read 1 file: {os.strerror(error)}")
    assert taken(reader, clock, 30) == of(A, 0, 1, 2)
    assert (reader.read_error, reader.missing_segments, reader.skipped) == (None, 0, {})
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_an_unreadable_directory_is_listed_again(
    run: Run, reader: ReplayReader, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    put(run, 0)
    for number, unreadable in ((2, run.segments), (3, run.quarantine)):

        def listed(directory: Path, unreadable: Path = unreadable) -> list[str]:
            if directory == unreadable:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(directory))
            return list_names(directory)

        with monkeypatch.context() as patch:
            patch.setattr("plyzero.trainer.replay_reader.list_names", listed)
            put(run, number)
            assert taken(reader) in ([], of(A, 0))
            assert "Stale file handle" in reader.read_error
    put(run, 1)
    clock.now += 1
    assert taken(reader)[-3:] == of(A, 1, 2, 3)
    assert reader.read_error is None


def test_a_segment_that_comes_late_is_taken_in_once(run: Run, reader: ReplayReader, clock: Clock):
    put_all(run, (0, 4, 5))
    taken(reader)
    assert taken(reader, clock, GAP_SECONDS) == of(A, 4, 5)
    assert (reader.missing_segments, reader.skipped) == (3, {A: [(1, 4, True)]})
    put(run, 2)
    assert taken(reader) == of(A, 2)
    assert (reader.missing_segments, reader.skipped) == (2, {A: [(1, 2, True), (3, 4, True)]})
    assert taken(reader) == []
    put(run, 1)
    put(run, 3)
    put(run, 6)
    assert taken(reader) == of(A, 1, 3, 6)
    assert (reader.missing_segments, reader.skipped, reader.cursor) == (0, {}, {A: 7})
    assert taken(reader) == []


def test_a_segment_that_is_brought_back_from_quarantine_is_taken_in_once(run: Run, reader: ReplayReader):
    paths = put_all(run, range(3))
    whole = paths[1].read_bytes()
    damage(paths[1])
    assert [number for _ in range(TRIES + 1) for _, number in taken(reader)] == [0, 2]
    assert reader.skipped == {A: [(1, 2, False)]}
    (run.quarantine / paths[1].name).write_bytes(whole)
    assert list(restore(run)) == [(paths[1].name, None)]
    assert taken(reader) == of(A, 1)
    assert (taken(reader), reader.skipped) == ([], {})
    put(run, 3)
    assert taken(reader) == of(A, 3)


def test_invalid_games_are_counted(run: Run, reader: ReplayReader):
    games = some_games(run.game, 0, (3, 4, 5))
    games.positions["to_play"][4] = 2
    seal(run, games)
    ((_, found),) = reader.read_new()
    assert found.games["positions"].tolist() == [3, 5]
    assert reader.invalid_games == 1
