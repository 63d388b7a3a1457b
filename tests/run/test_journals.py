"""Journals: an acknowledged game outlives its worker, and is sealed once."""

import errno
import logging
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plyzero import files
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import Run, RunId
from plyzero.run.journals import Journal, owners, read_journal
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import list_segments, read_segment
from plyzero.volume_errors import FileErrors
from tests.helpers.hostile import failing
from tests.helpers.journals import adopt_journals
from tests.helpers.journals import leave as leave_journal
from tests.helpers.runs import small_run
from tests.helpers.segments import CONNECT_FOUR, RELAY, same, seal, some_games

WRITER = {"worker": "w0", "incarnation": "0123abcd"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "r", "connect-four")


def begin(
    directory: Path, game: GameSpec, sequence: int = 0, incarnation: str = "0123abcd", run_id: RunId | None = None
) -> Journal:
    return Journal(directory, game, JournalName("w0", incarnation, sequence), run_id=run_id)


def finished(game: GameSpec, count: int, seed: int = 0) -> list[Games]:
    return [some_games(game, seed + number, (1 + number % 3,)) for number in range(count)]


def leave(run: Run, games: list[Games], sequence: int = 0) -> Path:
    return leave_journal(run.journals, run, *games, sequence=sequence)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def test_a_journal_whose_unfinished_file_is_removed_while_it_begins_is_a_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def lock_late(path: Path, *, needed: bool, to_write: bool) -> None:
        path.unlink()  # as retention does after ten minutes, in which the worker was suspended

    monkeypatch.setattr(files, "lock", lock_late)
    with pytest.raises(FileNotFoundError):
        begin(tmp_path, RELAY)
    assert names(tmp_path) == []


@pytest.mark.parametrize("game", [CONNECT_FOUR, RELAY], ids=["bits", "floats"])
def test_a_journal_torn_anywhere_gives_the_games_whose_frames_are_complete(game: GameSpec, tmp_path: Path):
    path, journal, games = tmp_path / str(JournalName(**WRITER, sequence=0)), begin(tmp_path, game), finished(game, 3)
    ends = [path.stat().st_size]
    for each in games:
        journal.append(each)
        ends.append(path.stat().st_size)
    whole = path.read_bytes()
    assert ends[-1] == len(whole)
    near_ends = {size for end in ends for size in range(end - 20, end + 20)}
    for size in sorted(near_ends.union(range(0, len(whole), 7)).intersection(range(ends[0], len(whole) + 1))):
        path.write_bytes(whole[:size])
        found = read_journal(path, game)
        assert len(found) == sum(end <= size for end in ends[1:])
        assert all(same(*pair) for pair in zip(found, games, strict=False))


def test_a_journal_that_may_only_be_read_for_a_moment_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    open_file = os.open

    def refuse_to_write(path: Path, flags: int, *more: int) -> int:
        if flags & os.O_RDWR and not flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open_file(path, flags, *more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse_to_write)
        with pytest.raises(PermissionError):
            begin(tmp_path, RELAY)
    (game,) = finished(RELAY, 1)
    begin(tmp_path, RELAY).append(game)  # a descriptor without a right to write would be a bad one


def test_a_journal_that_is_empty_or_sealed_already_is_only_removed(run: Run):
    leave(run, [])
    assert adopt_journals(run) == 0
    assert names(run.journals) == names(run.quarantine) == []
    (unused,) = names(run.segments)
    assert unused.endswith(".unused")  # no reader waits for this number
    (run.segments / unused).unlink()
    games = finished(run.game, 2)
    seal(run, Games.concatenate(games))
    sealed = names(run.segments)
    leave(run, games)
    assert adopt_journals(run) == 0
    assert (names(run.segments), names(run.journals)) == (sealed, [])


def foreign(run: Run, path: Path) -> None:
    path.unlink()
    other = load_game("tic-tac-toe")
    leave(replace(run, game=other), finished(other, 1))


def lying(run: Run, path: Path) -> None:
    games = some_games(run.game, lengths=(8,))
    games.positions["to_play"][3] = 2
    path.unlink()
    leave(run, [games])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda run, path: path.write_bytes(b""), "is empty, or has no whole header"),
        (lambda run, path: path.write_bytes(path.read_bytes()[:40]), "is empty, or has no whole header"),
        (lambda run, path: path.write_bytes(b"x" + path.read_bytes()[1:]), "is empty, or has no whole header"),
        (foreign, "tic-tac-toe v1"),
        (lying, "position/to_play has an impossible value at index 3"),
    ],
    ids=["empty", "torn", "damaged", "foreign", "lying"],
)
def test_an_unreadable_journal_is_put_away_and_the_next_one_adopted(
    damage, reason: str, run: Run, caplog: pytest.LogCaptureFixture
):
    path = leave(run, finished(run.game, 2))
    damage(run, path)
    content = path.read_bytes()
    leave(run, finished(run.game, 3), sequence=1)
    assert adopt_journals(run) == 3
    assert (names(run.journals), names(run.quarantine)) == ([], [path.name])
    assert (run.quarantine / path.name).read_bytes() == content
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert f"moved to quarantine: {path.stem}.taken" in warning.getMessage()
    assert reason in warning.getMessage()


def test_a_journal_larger_than_any_is_put_away_unread(run: Run, monkeypatch: pytest.MonkeyPatch):
    path = leave(run, finished(run.game, 2))
    monkeypatch.setattr("plyzero.run.journals.MAX_BYTES", path.stat().st_size - 1)
    assert adopt_journals(run) == 0
    assert names(run.quarantine) == [path.name]


def test_files_that_are_no_journals_are_left_alone(run: Run):
    for name in ("w0.0123abcd-0.wal", "notes.wal", ".tmp-1"):
        (run.journals / name).touch()
    assert adopt_journals(run) == 0
    assert len(names(run.journals)) == 3


def test_owners_are_those_who_hold_a_journal_and_unknown_without_locks(run: Run, monkeypatch: pytest.MonkeyPatch):
    journals = [begin(run.journals, run.game, incarnation=f"0000000{number}", run_id=run.id) for number in range(3)]
    assert owners(run.journals, FileErrors()) == {"w0.00000000", "w0.00000001", "w0.00000002"}
    journals[0].abandon()
    journals[2].close()
    assert owners(run.journals, FileErrors()) == {"w0.00000001"}
    assert len(names(run.journals)) == 2  # looking changes nothing
    monkeypatch.setattr("plyzero.files.fcntl.flock", failing(errno.ENOLCK))
    assert owners(run.journals, FileErrors()) is None


def test_a_journal_that_cannot_be_begun_holds_no_descriptor(run: Run, monkeypatch: pytest.MonkeyPatch):
    before = len(os.listdir("/proc/self/fd"))
    for call in ("plyzero.files.rename", "plyzero.files.lock"):
        with monkeypatch.context() as patch:
            patch.setattr(call, failing(errno.EIO))
            with pytest.raises(OSError, match="Input/output"):
                begin(run.journals, run.game, run_id=run.id)
    assert len(os.listdir("/proc/self/fd")) == before
    assert names(run.journals) == []


def test_luck_is_kept_where_a_game_has_it(run: Run):
    (first, second) = finished(CONNECT_FOUR, 2)
    lucky = replace(second, luck=np.full(len(second.positions), 0.5, np.float32))
    path = leave(run, [first, lucky])
    assert all(map(same, read_journal(path, run.game), [first, lucky]))
    adopt_journals(run)
    (name,) = list_segments(run.segments)
    assert same(read_segment(run.segments / str(name), run.game), Games.concatenate([first, lucky]))
