"""Liveness: a process is alive if the counter in its heartbeat is seen to change, or if it holds its lock."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plyzero.run import liveness
from plyzero.run.directory import Run
from plyzero.run.journals import Journal
from plyzero.run.lease import Lease
from plyzero.run.liveness import GONE_SECONDS, STALLED_SECONDS, UNLOCKED_SECONDS, LivenessMonitor, watch_run
from plyzero.run.metrics import Heartbeat
from plyzero.run.records import JournalName
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
    beat, monitor = beating(run), LivenessMonitor(run, clock=clock)
    beat()
    monitor.refresh()
    assert (monitor.liveness(WORKER), monitor.has_changed(WORKER), monitor.unchanged(WORKER)) == ("ok", False, 0)
    for _ in range(5):
        beat()
        monitor.refresh()
        assert monitor.liveness(WORKER) == "ok"
        clock.now += STALLED_SECONDS - 0.5
        assert monitor.liveness(WORKER) == "ok"
    assert monitor.has_changed(WORKER)
    assert monitor.unchanged(WORKER) == STALLED_SECONDS - 0.5


def after(clock: Clock, seconds: float, monitor: LivenessMonitor, name: str = WORKER) -> str:
    """Return the liveness of a process `seconds` later."""
    clock.now += seconds
    monitor.refresh()
    return monitor.liveness(name)


@pytest.mark.parametrize("name", [WORKER, "trainer"])
def test_a_silent_process_is_stalled_with_its_lock_and_gone_without(name: str, run: Run, clock: Clock):
    beat, monitor = beating(run, name, "any"), LivenessMonitor(run, clock=clock)
    release = hold_journal(run).abandon if name == WORKER else Lease(run.trainer, {}).release
    beat()
    assert after(clock, 0, monitor, name) == "ok"
    assert after(clock, STALLED_SECONDS, monitor, name) == "stalled"
    beat()
    assert after(clock, 0, monitor, name) == "ok"
    release()
    assert after(clock, STALLED_SECONDS, monitor, name) == "gone"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_who_can_only_read_a_run_sees_who_was_killed(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
):
    opened = os.open

    def open_to_read(path: Path, flags: int, *rest: int) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY and os.path.exists(path):
            raise OSError(number, os.strerror(number), str(path))
        return opened(path, flags, *rest)

    beat, journal, monitor = beating(run), hold_journal(run), LivenessMonitor(run, clock=clock)
    beat()
    monkeypatch.setattr(os, "open", open_to_read)
    monitor.refresh()
    assert after(clock, STALLED_SECONDS, monitor) == "stalled"
    journal.abandon()
    assert after(clock, 0, monitor) == "gone"
    assert caplog.text == ""


def test_the_lock_of_another_process_proves_nothing(run: Run, clock: Clock):
    Journal(run.journals, run.game, JournalName("w0", "ffffffff", 0), run_id=run.id)
    monitor = LivenessMonitor(run, clock=clock)
    beating(run)()
    assert after(clock, 0, monitor) == "ok"
    assert after(clock, STALLED_SECONDS, monitor) == "gone"


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_silent_process_is_gone_after_ten_minutes(
    has_locks: bool, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    if not has_locks:
        monkeypatch.setattr("plyzero.files.fcntl.flock", failing(errno.ENOLCK))
    beat, monitor = beating(run), LivenessMonitor(run, clock=clock)
    hold_journal(run)
    beat()
    Lease(run.trainer, {})
    monitor.refresh()
    assert after(clock, STALLED_SECONDS, monitor) == "stalled"
    assert after(clock, GONE_SECONDS - STALLED_SECONDS - 1, monitor) == "stalled"
    assert after(clock, 1, monitor) == "gone"


def test_who_said_to_have_stopped_has_stopped(run: Run, clock: Clock):
    beat, monitor = beating(run), LivenessMonitor(run, clock=clock)
    beat("stopped")
    assert after(clock, 0, monitor) == after(clock, GONE_SECONDS, monitor) == "stopped"
    (run.workers / f"{WORKER}.json").unlink()
    monitor.refresh()
    assert monitor.heartbeats == {}


@pytest.mark.parametrize("years", [-10, 10])
def test_neither_times_of_files_nor_the_date_matter(
    years: int, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    seconds = years * 365 * 86400
    held, silent, moving = beating(run), beating(run, "w1.00000001"), beating(run, "w2.00000002")
    journal, monitor = hold_journal(run), LivenessMonitor(run, clock=clock)

    def shift() -> None:
        for path in run.root.glob("*/*"):
            os.utime(path, (path.stat().st_atime + seconds, path.stat().st_mtime + seconds))

    monkeypatch.setattr("time.time", lambda: 1.0e9 + seconds)
    for beat in (held, silent, moving):
        beat()
    shift()
    monitor.refresh()
    clock.now += STALLED_SECONDS
    moving()
    shift()
    monitor.refresh()
    verdicts = {name: monitor.liveness(name) for name in monitor.heartbeats}
    assert verdicts == {WORKER: "stalled", "w1.00000001": "gone", "w2.00000002": "ok"}
    journal.close()


def test_a_restarted_process_of_the_same_name_counts_as_moving(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    monitor = LivenessMonitor(run, clock=clock)
    beating(run, "trainer", "trainer")("training")
    monitor.refresh()
    assert after(clock, STALLED_SECONDS, monitor, "trainer") == "gone"
    monkeypatch.setattr("os.getpid", lambda: 4242424)
    beating(run, "trainer", "trainer")("training")  # its count is 1, as before
    assert after(clock, 0, monitor, "trainer") == "ok"
    assert monitor.has_changed("trainer")


@pytest.mark.parametrize("state", ["stopped", None])
def test_nobody_waits_where_everything_has_stopped(state: str | None, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.liveness.time.sleep", lambda _: pytest.fail("it waits"))
    if state:
        beating(run)(state)
    assert [*watch_run(run).heartbeats] == ([WORKER] if state else [])
    beating(run, "w1.00000001")()
    monitor = watch_run(run, waits_for=lambda beat: beat["role"] == "trainer")
    assert not monitor.has_changed("w1.00000001")


def test_a_monitor_waits_until_it_has_seen_every_process_move(run: Run, monkeypatch: pytest.MonkeyPatch):
    beats, looks = [beating(run, f"w{number}.00000000") for number in range(3)], []

    def sleep(_: float) -> None:
        if len(looks) < 3:
            beats[len(looks)]()
        looks.append(True)

    for beat in beats:
        beat()
    beating(run, "idle.00000000")("stopped")
    monkeypatch.setattr("plyzero.run.liveness.time.sleep", sleep)
    monitor = watch_run(run)
    assert all(monitor.has_changed(f"w{number}.00000000") for number in range(3))
    assert len(looks) == 3


def test_a_monitor_gives_up_on_who_does_not_move_and_can_judge_it(run: Run, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(liveness.time, "monotonic", clock)
    monkeypatch.setattr(liveness.time, "sleep", lambda seconds: setattr(clock, "now", clock.now + seconds))
    monkeypatch.setattr(LivenessMonitor.__init__, "__kwdefaults__", {"clock": clock})
    beating(run)()
    monitor = watch_run(run)
    assert monitor.liveness(WORKER) == "gone"
    assert UNLOCKED_SECONDS <= clock.now - 1000 < UNLOCKED_SECONDS + 1
