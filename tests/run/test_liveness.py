"""Liveness: a process lives if its count moves under the eyes of an observer, or if it holds its lock."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from plyzero.run import liveness
from plyzero.run.directory import Run
from plyzero.run.journals import Journal
from plyzero.run.lease import Lease
from plyzero.run.liveness import GONE_SECONDS, STALLED_SECONDS, UNHELD_SECONDS, LivenessMonitor, watch_run
from plyzero.run.metrics import Heartbeat
from tests.helpers.clock import Clock
from tests.helpers.runs import small_run

WORKER = "w0.0123abcd"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "r", "tic-tac-toe")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def beating(run: Run, name: str = WORKER, role: str = "selfplay") -> Callable[..., None]:
    """A process as others see it: a function that lets it beat once."""
    heartbeat = Heartbeat(run.workers / f"{name}.json")
    return lambda state="playing": heartbeat.beat({"role": role, "state": state}, force=True)


def hold_journal(run: Run) -> Journal:
    return Journal(run.journals, run.game, worker="w0", incarnation="0123abcd", sequence=0)


def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("plyzero.files.fcntl.flock", refuse)


def test_a_process_whose_count_moves_is_well_whether_it_holds_a_lock_or_not(run: Run, clock: Clock):
    beat, observer = beating(run), LivenessMonitor(run, clock=clock)
    beat()
    observer.look()
    for _ in range(5):
        beat()
        observer.look()
        assert observer.judge(WORKER) == "ok"
        clock.now += STALLED_SECONDS - 0.5
        assert observer.judge(WORKER) == "ok"
    assert observer.has_moved(WORKER)
    assert observer.silence(WORKER) == STALLED_SECONDS - 0.5


def test_a_silent_process_that_holds_its_journal_is_stalled(run: Run, clock: Clock):
    beat, journal, observer = beating(run), hold_journal(run), LivenessMonitor(run, clock=clock)
    beat()
    observer.look()
    clock.now += STALLED_SECONDS
    observer.look()
    assert observer.judge(WORKER) == "stalled"
    beat()
    observer.look()
    assert observer.judge(WORKER) == "ok"
    clock.now += STALLED_SECONDS
    os.close(journal._descriptor)
    observer.look()
    assert observer.judge(WORKER) == "gone"


def test_the_lock_of_another_process_proves_nothing(run: Run, clock: Clock):
    Journal(run.journals, run.game, worker="w0", incarnation="ffffffff", sequence=0)
    beat, observer = beating(run), LivenessMonitor(run, clock=clock)
    beat()
    observer.look()
    clock.now += STALLED_SECONDS
    observer.look()
    assert observer.judge(WORKER) == "gone"


def test_a_silent_trainer_is_stalled_while_it_holds_the_lease_and_gone_without(run: Run, clock: Clock):
    beat, lease, observer = (
        beating(run, "trainer", "trainer"),
        Lease(run.trainer, {}),
        LivenessMonitor(run, clock=clock),
    )
    beat("training")
    observer.look()
    clock.now += STALLED_SECONDS
    observer.look()
    assert observer.judge("trainer") == "stalled"
    lease.release()
    observer.look()
    assert observer.judge("trainer") == "gone"


def test_after_a_very_long_silence_even_who_holds_a_lock_is_gone(run: Run, clock: Clock):
    beat, observer = beating(run), LivenessMonitor(run, clock=clock)
    hold_journal(run)
    beat()
    observer.look()
    clock.now += GONE_SECONDS - 1
    observer.look()
    assert observer.judge(WORKER) == "stalled"
    clock.now += 1
    assert observer.judge(WORKER) == "gone"


def test_where_there_are_no_locks_a_silent_process_is_gone_only_after_a_long_time(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    no_locks(monkeypatch)
    beat, observer = beating(run), LivenessMonitor(run, clock=clock)
    hold_journal(run)
    beat()
    Lease(run.trainer, {})
    observer.look()
    for seconds, life in ((STALLED_SECONDS, "stalled"), (GONE_SECONDS - 1, "stalled"), (GONE_SECONDS, "gone")):
        clock.now = 1000 + seconds
        observer.look()
        assert observer.judge(WORKER) == life


def test_a_process_that_said_it_stopped_has_stopped_however_long_ago(run: Run, clock: Clock):
    beat, observer = beating(run), LivenessMonitor(run, clock=clock)
    beat("stopped")
    for _ in range(3):
        observer.look()
        assert observer.judge(WORKER) == "stopped"
        clock.now += GONE_SECONDS


def test_a_process_seen_for_the_first_time_has_the_benefit_of_the_doubt(run: Run, clock: Clock):
    beating(run)()
    observer = LivenessMonitor(run, clock=clock)
    observer.look()
    assert (observer.judge(WORKER), observer.has_moved(WORKER), observer.silence(WORKER)) == ("ok", False, 0)


@pytest.mark.parametrize("years", [-10, 10])
def test_neither_the_times_of_files_nor_the_date_matter(
    years: int, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    seconds = years * 365 * 86400
    held, silent, moving = beating(run), beating(run, "w1.00000001"), beating(run, "w2.00000002")
    journal, observer = hold_journal(run), LivenessMonitor(run, clock=clock)

    def shift() -> None:
        for path in run.root.glob("*/*"):
            os.utime(path, (path.stat().st_atime + seconds, path.stat().st_mtime + seconds))

    monkeypatch.setattr("time.time", lambda: 1.0e9 + seconds)
    for beat in (held, silent, moving):
        beat()
    shift()
    observer.look()
    clock.now += STALLED_SECONDS
    moving()
    shift()
    observer.look()
    verdicts = {name: observer.judge(name) for name in observer.beats}
    assert verdicts == {WORKER: "stalled", "w1.00000001": "gone", "w2.00000002": "ok"}
    journal.close()


def test_a_restarted_process_of_the_same_name_counts_as_moving(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    observer = LivenessMonitor(run, clock=clock)
    beating(run, "trainer", "trainer")("training")
    observer.look()
    clock.now += STALLED_SECONDS
    observer.look()
    assert observer.judge("trainer") == "gone"
    monkeypatch.setattr("os.getpid", lambda: 4242424)
    beating(run, "trainer", "trainer")("training")  # its count is 1, as before
    observer.look()
    assert observer.judge("trainer") == "ok"
    assert observer.has_moved("trainer")


def test_a_process_whose_heartbeat_was_removed_is_forgotten(run: Run, clock: Clock):
    beating(run)()
    observer = LivenessMonitor(run, clock=clock)
    observer.look()
    (run.workers / f"{WORKER}.json").unlink()
    observer.look()
    assert observer.beats == {}


@pytest.mark.parametrize("state", ["stopped", None])
def test_nobody_waits_where_everything_has_stopped(state: str | None, run: Run, monkeypatch: pytest.MonkeyPatch):
    def sleep(_: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr("plyzero.run.liveness.time.sleep", sleep)
    if state:
        beating(run)(state)
    assert [*watch_run(run).beats] == ([WORKER] if state else [])


def test_an_observer_waits_until_it_has_seen_every_process_move(run: Run, monkeypatch: pytest.MonkeyPatch):
    beats, looks = [beating(run, f"w{number}.00000000") for number in range(3)], []

    def sleep(_: float) -> None:
        if len(looks) < 3:
            beats[len(looks)]()
        looks.append(True)

    for beat in beats:
        beat()
    beating(run, "idle.00000000")("stopped")
    monkeypatch.setattr("plyzero.run.liveness.time.sleep", sleep)
    observer = watch_run(run)
    assert all(observer.has_moved(f"w{number}.00000000") for number in range(3))
    assert len(looks) == 3


def test_an_observer_waits_only_for_those_it_is_told_to(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.liveness.time.sleep", lambda _: pytest.fail("it waits"))
    beating(run)()
    observer = watch_run(run, only=lambda beat: beat["role"] == "trainer")
    assert not observer.has_moved(WORKER)


def test_an_observer_gives_up_on_who_does_not_move_and_can_judge_it(run: Run, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(liveness.time, "monotonic", clock)
    monkeypatch.setattr(liveness.time, "sleep", lambda seconds: setattr(clock, "now", clock.now + seconds))
    monkeypatch.setattr(LivenessMonitor.__init__, "__kwdefaults__", {"clock": clock})
    beating(run)()
    observer = watch_run(run)
    assert observer.judge(WORKER) == "gone"
    assert UNHELD_SECONDS <= clock.now - 1000 < UNHELD_SECONDS + 1


def test_heartbeats_that_are_none_are_passed_over(run: Run, clock: Clock):
    beating(run)()
    for name, text in (("a", ""), ("b", "[]"), ("c", "{}"), ("d", '{"beats": "x"}'), ("e", "[" * 100_000)):
        (run.workers / f"{name}.json").write_text(text)
    (run.workers / "f.json").write_bytes(b"\xff\xfe")
    (run.workers / "g.json").write_bytes(b" " * (1 << 17))
    observer = LivenessMonitor(run, clock=clock)
    observer.look()
    assert [*observer.beats] == [WORKER]


def test_looking_from_many_threads_never_takes_a_living_process_for_gone(run: Run, clock: Clock):
    beating(run)()
    hold_journal(run)
    verdicts: list[str] = []

    def look() -> None:
        observer = LivenessMonitor(run, clock=clock)
        observer._last[WORKER] = ((os.getpid(), 1), clock.now - STALLED_SECONDS, True)
        for _ in range(20):
            observer.look()
            verdicts.append(observer.judge(WORKER))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(verdicts) == {"stalled"}
    assert len(verdicts) == 80
