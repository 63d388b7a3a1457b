"""Adoption: the journal of a dead worker is sealed once, and that of a living one costs nothing."""

import errno
import os
import stat
from collections import Counter
from pathlib import Path

import pytest

from plyzero.run import adoption as adoption_module
from plyzero.run.adoption import Adoption
from plyzero.run.directory import Run
from plyzero.run.journals import Journal, list_journals
from plyzero.run.metrics import Heartbeat
from plyzero.run.records import Games, JournalName
from plyzero.run.view import GONE_SECONDS, STALLED_SECONDS
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.journals import adopt_journals
from tests.helpers.runs import small_run
from tests.helpers.segments import some_games
from tests.helpers.victims import visible

OWNER = "w0.0000000a"
FIRST = JournalName("w0", "0000000a", 0)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "r", "tic-tac-toe", "selfplay.seal_seconds=1000")


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks that do not cross: everybody gets them."""
    monkeypatch.setattr("plyzero.files.fcntl.flock", lambda *_: None)


def game(run: Run, identity: int) -> Games:
    games = some_games(run.game, identity, (4,))
    games.games["id"] = identity
    return games


def begin(run: Run, *identities: int) -> Journal:
    journal = Journal(run.journals, run.game, FIRST, run_id=run.id)
    for identity in identities:
        journal.append(game(run, identity))
    return journal


def journals(run: Run) -> list[str]:
    return [str(name) for name in list_journals(run.journals)]


def test_a_journal_is_taken_after_a_silence_and_sealed_after_another(run: Run, clock: Clock):
    begin(run, 1, 2).abandon()
    adoption = Adoption(run, clock=clock)
    for seconds, there in ((0, "wal"), (STALLED_SECONDS - 1, "wal"), (1, "taken"), (STALLED_SECONDS - 1, "taken")):
        clock.now += seconds
        assert adoption.adopt() == 0
        assert journals(run) == [f"{OWNER}-00000000.{there}"]
    clock.now += 1
    assert adoption.adopt() == 2
    assert (journals(run), visible(run)) == ([], Counter([1, 2]))


@pytest.mark.parametrize("sign", ["heartbeat", "journal", "lock"])
def test_a_living_workers_journal_is_never_adopted(sign: str, run: Run, clock: Clock, request: pytest.FixtureRequest):
    journal, heartbeat = begin(run, 1), Heartbeat(run.workers / f"{OWNER}.json")
    adoption = Adoption(run, clock=clock)
    if sign != "lock":
        request.getfixturevalue("no_locks")
    for identity in range(2, 12):
        if sign == "heartbeat":
            heartbeat.beat({"role": "selfplay", "state": "playing"}, force=True)
        elif sign == "journal":
            journal.append(game(run, identity))
        assert adoption.adopt() == 0
        clock.now += GONE_SECONDS if sign == "lock" else STALLED_SECONDS - 1
    assert journals(run) == [str(FIRST)]


def test_without_locks_a_journal_is_adopted_after_a_long_silence(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("plyzero.files.fcntl.flock", failing(errno.ENOLCK))
    begin(run, 1).abandon()
    adoption = Adoption(run, clock=clock)
    assert adoption.adopt() == 0
    clock.now += GONE_SECONDS - 1
    assert adoption.adopt() == 0
    assert journals(run) == [str(FIRST)]
    clock.now += 1
    adoption.adopt()
    clock.now += GONE_SECONDS
    assert adoption.adopt() == 1


def test_an_unreadable_heartbeat_is_no_silence(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, no_locks: None):
    begin(run, 1)
    Heartbeat(run.workers / f"{OWNER}.json").beat({"role": "selfplay", "state": "playing"})
    adoption = Adoption(run, clock=clock)
    adoption.adopt()
    clock.now += STALLED_SECONDS / 2
    with monkeypatch.context() as patch:
        patch.setattr("plyzero.run.adoption.files.read_file", failing(errno.EIO))
        adoption.adopt()
    clock.now += STALLED_SECONDS / 2
    adoption.adopt()
    assert journals(run) == [str(FIRST)]


ENTRIES = {
    "socket": lambda path: os.mknod(path, 0o600 | stat.S_IFSOCK),
    "directory": os.mkdir,
    "link to itself": lambda path: os.symlink(path.name, path),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_unreadable_journal_stops_no_other(entry: str, run: Run, clock: Clock, caplog: pytest.LogCaptureFixture):
    begin(run, 1).abandon()
    odd = run.journals / str(JournalName("a0", "00000000", 0))
    ENTRIES[entry](odd)
    adoption, sealed = Adoption(run, clock=clock), 0
    for _ in range(6):
        sealed += adoption.adopt()
        clock.now += STALLED_SECONDS
    assert (sealed, visible(run)) == (1, Counter([1]))
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [text.partition(":")[0] for text in warnings] == [f"{odd.name} is not sealed yet"]
    assert adoption.error.startswith("cannot seal 1 file: ")


def test_the_sound_games_of_a_damaged_journal_are_sealed_and_it_is_kept(run: Run):
    begin(run, 1, 2, 3).abandon()
    path = run.journals / str(FIRST)
    content = path.read_bytes()
    at = content.index(b"PZJ1", content.index(b"PZJ1", 1) + 1) + 20  # in the second game
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    assert adopt_journals(run) == 2
    assert (visible(run), journals(run)) == (Counter([1, 3]), [])
    assert [each.name for each in run.quarantine.iterdir()] == [path.name]


def test_journals_that_cannot_be_listed_are_adopted_later(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    begin(run, 1).abandon()
    adoption, original = Adoption(run, clock=clock), adoption_module.list_journals
    monkeypatch.setattr(adoption_module, "list_journals", failing(errno.EMFILE))
    assert [adoption.adopt(), adoption.adopt()] == [0, 0]
    assert adoption.error == "cannot seal 1 file: Too many open files"
    monkeypatch.setattr(adoption_module, "list_journals", original)
    adopted = 0
    for _ in range(4):
        adopted += adoption.adopt()
        clock.now += STALLED_SECONDS + 1
    assert (adopted, adoption.error) == (1, None)
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [
        "journal cannot be read: Too many open files"
    ]


def test_the_journal_of_a_process_that_was_seen_to_beat_costs_no_call_until_it_is_silent(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    begin(run, 1).abandon()
    adoption = Adoption(run, clock=clock)
    with monkeypatch.context() as patch:
        patch.setattr("plyzero.run.adoption.os.stat", failing(errno.EIO))
        patch.setattr("plyzero.run.adoption.files.lock", failing(errno.EIO))
        for _ in range(3):
            assert adoption.adopt(beating={OWNER}) == 0
            clock.now += STALLED_SECONDS
    assert adoption.error is None
    assert adoption.adopt() == 0
    assert journals(run) == [f"{OWNER}-00000000.wal"]  # its silence begins only now
    clock.now += STALLED_SECONDS
    adoption.adopt(beating={"w1.0123abcd"})
    clock.now += STALLED_SECONDS
    assert adoption.adopt(beating={OWNER}) == 1  # what is taken is sealed, whoever beats
