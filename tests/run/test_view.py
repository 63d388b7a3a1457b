"""Liveness: a process is alive if the counter in its heartbeat is seen to change, or if it holds its lock."""

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from plyzero import files
from plyzero.run.directory import Run
from plyzero.run.journals import Journal
from plyzero.run.lease import Lease
from plyzero.run.metrics import Heartbeat
from plyzero.run.records import JournalName
from plyzero.run.view import GONE_SECONDS, STALLED_SECONDS, UNLOCKED_SECONDS, RunView, watch_run
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing

WORKER = "w0.0123abcd"


def beating(run: Run, name: str = WORKER, role: str = "selfplay") -> Callable[..., None]:
    """A process as others see it: a function that lets it beat once."""
    heartbeat = Heartbeat(run.workers / f"{name}.json")
    return lambda state="playing": heartbeat.beat({"role": role, "state": state}, force=True)


def hold_journal(run: Run) -> Journal:
    return Journal(run.journals, run.game, JournalName("w0", "0123abcd", 0), run_id=run.id)


def test_a_process_whose_count_moves_is_well_without_any_lock(run: Run, clock: Clock):
    beat, view = beating(run), RunView(run, clock=clock)
    beat()
    view.refresh()
    assert (view.liveness(WORKER), view.has_changed(WORKER), view.unchanged(WORKER)) == ("ok", False, 0)
    for _ in range(5):
        beat()
        view.refresh()
        assert view.liveness(WORKER) == "ok"
        clock.now += STALLED_SECONDS - 0.5
        assert view.liveness(WORKER) == "ok"
    assert view.has_changed(WORKER)
    assert view.unchanged(WORKER) == STALLED_SECONDS - 0.5


def after(clock: Clock, seconds: float, view: RunView, name: str = WORKER) -> str:
    """Return the liveness of a process `seconds` later."""
    clock.now += seconds
    view.refresh()
    return view.liveness(name)


@pytest.mark.parametrize("name", [WORKER, "trainer"])
def test_a_silent_process_is_stalled_with_its_lock_and_gone_without(name: str, run: Run, clock: Clock):
    beat, view = beating(run, name, "any"), RunView(run, clock=clock)
    release = hold_journal(run).abandon if name == WORKER else Lease(run.trainer, {}).release
    beat()
    assert after(clock, 0, view, name) == "ok"
    assert after(clock, STALLED_SECONDS, view, name) == "stalled"
    beat()
    assert after(clock, 0, view, name) == "ok"
    release()
    assert after(clock, STALLED_SECONDS, view, name) == "gone"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_who_can_only_read_a_run_sees_who_was_killed(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
):
    opened = os.open

    def open_to_read(path: Path, flags: int, *rest: int) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY and os.path.exists(path):
            raise OSError(number, os.strerror(number), str(path))
        return opened(path, flags, *rest)

    beat, journal, view = beating(run), hold_journal(run), RunView(run, clock=clock)
    beat()
    monkeypatch.setattr(os, "open", open_to_read)
    view.refresh()
    assert after(clock, STALLED_SECONDS, view) == "stalled"
    journal.abandon()
    assert after(clock, 0, view) == "gone"
    assert caplog.text == ""


def test_the_lock_of_another_process_proves_nothing(run: Run, clock: Clock):
    Journal(run.journals, run.game, JournalName("w0", "ffffffff", 0), run_id=run.id)
    view = RunView(run, clock=clock)
    beating(run)()
    assert after(clock, 0, view) == "ok"
    assert after(clock, STALLED_SECONDS, view) == "gone"


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_silent_process_is_gone_after_ten_minutes(
    has_locks: bool, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    if not has_locks:
        monkeypatch.setattr("plyzero.files.fcntl.flock", failing(errno.ENOLCK))
    beat, view = beating(run), RunView(run, clock=clock)
    hold_journal(run)
    beat()
    Lease(run.trainer, {})
    view.refresh()
    assert after(clock, STALLED_SECONDS, view) == "stalled"
    assert after(clock, GONE_SECONDS - STALLED_SECONDS - 1, view) == "stalled"
    assert after(clock, 1, view) == "gone"


def test_who_said_to_have_stopped_has_stopped(run: Run, clock: Clock):
    beat, view = beating(run), RunView(run, clock=clock)
    beat("stopped")
    assert after(clock, 0, view) == after(clock, GONE_SECONDS, view) == "stopped"
    (run.workers / f"{WORKER}.json").unlink()
    view.refresh()
    assert view.heartbeats == {}


@pytest.mark.parametrize("years", [-10, 10])
def test_neither_times_of_files_nor_the_date_matter(
    years: int, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    seconds = years * 365 * 86400
    held, silent, moving = beating(run), beating(run, "w1.00000001"), beating(run, "w2.00000002")
    journal, view = hold_journal(run), RunView(run, clock=clock)

    def shift() -> None:
        for path in run.root.glob("*/*"):
            os.utime(path, (path.stat().st_atime + seconds, path.stat().st_mtime + seconds))

    monkeypatch.setattr("time.time", lambda: 1.0e9 + seconds)
    for beat in (held, silent, moving):
        beat()
    shift()
    view.refresh()
    clock.now += STALLED_SECONDS
    moving()
    shift()
    view.refresh()
    verdicts = {name: view.liveness(name) for name in view.heartbeats}
    assert verdicts == {WORKER: "stalled", "w1.00000001": "gone", "w2.00000002": "ok"}
    journal.close()


def test_a_restarted_process_of_the_same_name_counts_as_moving(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    view = RunView(run, clock=clock)
    beating(run, "trainer", "trainer")("training")
    view.refresh()
    assert after(clock, STALLED_SECONDS, view, "trainer") == "gone"
    monkeypatch.setattr("os.getpid", lambda: 4242424)
    beating(run, "trainer", "trainer")("training")  # its count is 1, as before
    assert after(clock, 0, view, "trainer") == "ok"
    assert view.has_changed("trainer")


@pytest.mark.parametrize("state", ["stopped", None])
def test_nobody_waits_where_everything_has_stopped(state: str | None, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.view.time.sleep", lambda _: pytest.fail("it waits"))
    if state:
        beating(run)(state)
    assert [*watch_run(run).heartbeats] == ([WORKER] if state else [])
    beating(run, "w1.00000001")()
    view = watch_run(run, waits_for=lambda beat: beat.role == "trainer")
    assert not view.has_changed("w1.00000001")


def test_a_view_waits_until_it_has_seen_every_process_move(run: Run, monkeypatch: pytest.MonkeyPatch):
    beats, looks = [beating(run, f"w{number}.00000000") for number in range(3)], []

    def sleep(_: float) -> None:
        if len(looks) < 3:
            beats[len(looks)]()
        looks.append(True)

    for beat in beats:
        beat()
    beating(run, "idle.00000000")("stopped")
    monkeypatch.setattr("plyzero.run.view.time.sleep", sleep)
    view = watch_run(run)
    assert all(view.has_changed(f"w{number}.00000000") for number in range(3))
    assert len(looks) == 3


def test_a_view_gives_up_on_who_does_not_move_and_can_judge_it(run: Run, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr("plyzero.run.view.time.monotonic", clock)
    monkeypatch.setattr("plyzero.run.view.time.sleep", lambda seconds: setattr(clock, "now", clock.now + seconds))
    monkeypatch.setattr(RunView.__init__, "__kwdefaults__", {"clock": clock, "from_now": False})
    beating(run)()
    view = watch_run(run)
    assert view.liveness(WORKER) == "gone"
    assert UNLOCKED_SECONDS <= clock.now - 1000 < UNLOCKED_SECONDS + 1


def test_the_lock_of_a_process_is_tested_only_while_it_is_silent(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    """Each test is a call of the volume, and a run may have a thousand workers."""
    beat, journal, view = beating(run), hold_journal(run), RunView(run, clock=clock)
    tested: list[str] = []
    lock = files.lock
    monkeypatch.setattr("plyzero.run.journals.files.lock", lambda path: tested.append(path.suffix) or lock(path))

    def tests_of_journals() -> int:
        tested.clear()
        view.refresh()
        return tested.count(".wal")

    beat()
    assert tests_of_journals() == 1  # nobody has seen it change
    for _ in range(3):
        clock.now += STALLED_SECONDS - 1
        beat()
        assert (tests_of_journals(), view.liveness(WORKER)) == (0, "ok")
    clock.now += STALLED_SECONDS
    assert view.liveness(WORKER) == "stalled"  # it was alive when its lock was not tested
    assert (tests_of_journals(), view.liveness(WORKER)) == (1, "stalled")
    journal.abandon()
    assert (tests_of_journals(), view.liveness(WORKER)) == (1, "gone")


def test_hundreds_of_workers_are_viewed_with_few_file_handles(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    names = {f"w{number}.{number:08x}" for number in range(300)}
    for name in names:
        beating(run, name)()
        worker, incarnation = name.split(".")
        Journal(run.journals, run.game, JournalName(worker, incarnation, 0), run_id=run.id).abandon()
    tested: list[str] = []
    lock = files.lock
    monkeypatch.setattr("plyzero.run.journals.files.lock", lambda path: tested.append(path.name) or lock(path))
    view, (soft, hard) = RunView(run), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (24 + max(map(int, os.listdir("/proc/self/fd"))), hard))
    try:
        view.refresh()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert view.heartbeats.keys() == names
    assert sum(name.endswith(".wal") for name in tested) == len(names)
    assert caplog.messages == []
