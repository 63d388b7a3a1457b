"""Adoption: the journal of a dead worker is sealed once, and that of a living one costs nothing."""

import errno
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plyzero import files
from plyzero.run import adoption as adoption_module
from plyzero.run.adoption import Adoption, seal_taken, take_journal
from plyzero.run.directory import Run
from plyzero.run.journals import Journal, list_journals, read_journal
from plyzero.run.liveness import GONE_SECONDS, STALLED_SECONDS
from plyzero.run.metrics import Heartbeat
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import list_segments
from selfplay import replay_writer
from selfplay.replay_writer import ReplayWriter
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.journals import adopt_journals
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games
from tests.helpers.victims import visible

WRITER = {"worker": "w0", "incarnation": "0000000a"}
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


def test_the_copy_of_a_journal_counts_nothing_twice(run: Run):
    begin(run, 1, 2).abandon()
    copy = run.journals / str(JournalName("w1", "0000000b", 3))
    copy.write_bytes((run.journals / str(FIRST)).read_bytes())
    assert adopt_journals(run) == 2
    assert visible(run) == Counter([1, 2])
    assert [each.name for each in run.quarantine.iterdir()] == [copy.name]


class KilledError(BaseException):
    """Ends a process of `Schedule` as SIGKILL does: nothing is cleaned up."""


class Schedule:
    """Two threads, the writer and the adopter, of which one runs at a time; `turns` says who after each step.

    kills: the number of the step at which each of them is killed, None if it is not.
    """

    def __init__(self, turns: list[int], kills: tuple[int | None, int | None]) -> None:
        self._turns, self._kills = iter(turns), kills
        self._steps, self._done = [0, 0], [False, False]
        self._running, self._wake = 0, threading.Condition()
        self.errors: list[BaseException] = []

    def step(self, *_: object) -> None:
        """Called by the running thread where another may go on."""
        me = getattr(threading.current_thread(), "number", None)
        if me is None:
            return
        self._steps[me] += 1
        if self._kills[me] is not None and self._steps[me] >= self._kills[me]:
            raise KilledError
        with self._wake:
            self._hand_on(next(self._turns, me))
            self._wake.wait_for(lambda: self._running == me)

    def run(self, *bodies: Callable[[], None]) -> None:
        threads = [threading.Thread(target=self._thread, args=(i, body)) for i, body in enumerate(bodies)]
        for number, thread in enumerate(threads):
            thread.number = number
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

    def _hand_on(self, to: int) -> None:
        self._running = 1 - to if self._done[to] else to
        self._wake.notify_all()

    def _thread(self, me: int, body: Callable[[], None]) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._running == me)
        try:
            body()
        except KilledError:
            pass
        except BaseException as error:
            self.errors.append(error)
        with self._wake:
            self._done[me] = True
            self._hand_on(1 - me)


def stepping(schedule: Schedule, call: Callable) -> Callable:
    """`call` with a step before and one behind it."""

    def stepped(*arguments: object, **keywords: object) -> object:
        schedule.step()
        result = call(*arguments, **keywords)
        schedule.step()
        return result

    return stepped


@given(
    turns=st.lists(st.integers(0, 1), max_size=120),
    writer_dies=st.none() | st.integers(1, 80),
    adopter_dies=st.none() | st.integers(1, 30),
)
@settings(max_examples=80, deadline=None)
def test_whatever_the_order_no_game_is_lost_and_none_comes_twice(
    tmp_path_factory: pytest.TempPathFactory, turns: list[int], writer_dies: int | None, adopter_dies: int | None
):
    run = small_run(tmp_path_factory.mktemp("run") / "r", "tic-tac-toe", "selfplay.seal_seconds=1000")
    schedule, acknowledged, added = Schedule(turns, (writer_dies, adopter_dies)), set(), 6
    append = Journal.append

    def logged(journal: Journal, games: Games) -> None:
        append(journal, games)
        acknowledged.update(games.games["id"].tolist())

    def write() -> None:
        writer = ReplayWriter(run, **WRITER)
        writer._open_journal()
        for identity in range(added):
            writer.add(game(run, identity))
            writer._seal_asked = identity % 3 == 2
            write_until_done(writer)
        writer._closing = True
        write_until_done(writer)

    def write_until_done(writer: ReplayWriter) -> None:
        for _ in range(200):
            try:
                writer._write()
            except FileExistsError:
                continue
            if not writer._unchecked and not writer._waiting and not (writer._closing and writer._journaled):
                return
        raise AssertionError("the writer does not come to an end")

    def adopt() -> None:
        for _ in range(4):
            for name in list_journals(run.journals):
                with_no_file(lambda name=name: seal_taken(run, name) if name.taken else take_journal(run, name))

    def with_no_file(call: Callable[[], object]) -> None:
        with suppress(FileNotFoundError):
            call()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plyzero.files.fcntl.flock", lambda *_: None)
        patch.setattr("plyzero.files.os.fsync", lambda _: None)
        patch.setattr(Journal, "append", logged)
        patch.setattr(files, "fault_point", schedule.step)
        patch.setattr(files, "is_named", stepping(schedule, files.is_named))
        for module in (adoption_module, replay_writer):
            patch.setattr(module, "list_segments", stepping(schedule, lambda path: list(list_segments(path))))
        patch.setattr(adoption_module, "read_journal", stepping(schedule, read_journal))
        schedule.run(write, adopt)
        patch.setattr(files, "fault_point", lambda *_: None)
        adopt()  # the next trainer
    assert schedule.errors == []
    found = visible(run)
    by_number = Counter((name.incarnation, name.sequence) for name in list_segments(run.segments))
    assert set(by_number.values()) <= {1}, "two segments of one number, of which the trainer reads one"
    assert acknowledged <= found.keys(), "lost"
    assert set(found.values()) <= {1}, "doubled"
    assert journals(run) == []
    if writer_dies is None:
        assert found.keys() == set(range(added)), "a living writer has dropped a game"


@pytest.mark.parametrize("sealed", [(), (1,), (1, 2, 3)])
def test_games_of_a_taken_journal_are_written_anew(sealed: tuple[int, ...], run: Run, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(replay_writer, "now", clock)
    monkeypatch.setattr("plyzero.run.journals.now", clock)
    writer = ReplayWriter(run, **WRITER)
    writer._open_journal()
    for identity in (1, 2, 3):
        writer.add(game(run, identity))
        writer._write()
    taken = run.journals / str(take_journal(run, FIRST))
    writer.add(game(run, 4))
    writer._write()
    for _ in range(3):
        clock.now += GONE_SECONDS  # as long as it is there somebody will seal it
        writer._write()
    assert writer.unsealed_full_positions == sum(game(run, identity).num_full for identity in (1, 2, 3, 4))
    taken.unlink()
    if sealed:
        games = Games.concatenate([game(run, identity) for identity in sealed])
        seal(run, games, owner=OWNER)
    for _ in range(2):
        clock.now += replay_writer.LISTING_SECONDS
        writer._write()
    writer._closing = True
    writer._write()
    assert visible(run) == Counter([1, 2, 3, 4])
    assert writer.unsealed_full_positions == 0


def test_a_writer_that_slept_for_long_writes_no_game_again(run: Run, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(replay_writer, "now", clock)
    monkeypatch.setattr("plyzero.run.journals.now", clock)
    writer = ReplayWriter(run, **WRITER)
    writer._open_journal()
    writer.add(game(run, 1))
    writer._write()
    (run.journals / str(FIRST)).unlink()  # sealed, read and removed by retention
    clock.now += GONE_SECONDS
    writer.add(game(run, 2))
    writer._write()
    writer._closing = True
    writer._write()
    writer._write()
    assert visible(run) == Counter([2])


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
