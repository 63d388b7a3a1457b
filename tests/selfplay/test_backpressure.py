"""Back-pressure: a worker waits for what will come, and for nothing else."""

import errno
import json
from pathlib import Path

import pytest

from plyzero.files import Room
from plyzero.run.directory import Run
from plyzero.run.metrics import Heartbeat
from plyzero.selfplay.backpressure import PROGRESS_SECONDS, REFRESH_SECONDS, Backpressure
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.settings import SelfplaySettings
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games

ENOUGH = {"role": "trainer", "state": "training", "credit": 500, "credit_enough": 500}


def parts(root: Path, clock: Clock, *options: str) -> tuple[Run, ReplayWriter, Backpressure]:
    run = small_run(root / "r", "connect-four", "store.min_free_mb=0", *options)
    writer = ReplayWriter(run, worker="w0", incarnation="0123abcd")
    return run, writer, Backpressure(run, writer, clock=clock)


def moved(backpressure: Backpressure, clock: Clock, run: Run, trained: int, **fields: object) -> str | None:
    """The reason to wait, one look after the trainer has trained `trained` positions."""
    Heartbeat(run.workers / "trainer.json").beat({**ENOUGH, **fields, "trained_positions": trained}, force=True)
    clock.now += REFRESH_SECONDS
    backpressure.refresh()
    return backpressure.reason(has_model=True)


def waiting(root: Path, clock: Clock) -> tuple[Run, Backpressure]:
    """A worker that waits for a trainer, which has trained 20 positions."""
    run, _, backpressure = parts(root, clock, "selfplay.when_ahead=throttle")
    moved(backpressure, clock, run, 10)
    assert moved(backpressure, clock, run, 20)
    return run, backpressure


def test_a_worker_pauses_while_much_waits_for_the_disk(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    run, writer, backpressure = parts(tmp_path, clock)
    monkeypatch.setattr("plyzero.selfplay.replay_writer.BUFFER_POSITIONS", 10)
    writer.add(some_games(run.game, 0, (9,)))
    assert backpressure.reason(has_model=True) is None
    writer.add(some_games(run.game, 1, (1,)))
    assert backpressure.reason(has_model=True) == "paused: the volume is slower than self-play"
    writer.write_error = "cannot write to the volume: No space left on device"
    assert backpressure.reason(has_model=True) == "paused: cannot write to the volume: No space left on device"
    writer._write()
    assert backpressure.reason(has_model=True) is None


@pytest.mark.parametrize(
    ("less", "reason"),
    [
        (Room(bytes=(200 << 20) - 1, files=60), "199 MB left, store.min_free_mb is 200; free some space"),
        (Room(bytes=200 << 20, files=59), "room for 59 more files, store.min_free_files is 60; remove some files"),
    ],
)
def test_a_worker_pauses_below_the_reserve(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, less: Room, reason: str
):
    _, _, backpressure = parts(tmp_path, clock, "store.min_free_mb=200", "store.min_free_files=60")
    enough = Room(bytes=200 << 20, files=60)
    monkeypatch.setattr("plyzero.selfplay.backpressure.free_room", lambda _: enough)
    backpressure.refresh()
    assert backpressure.reason(has_model=True) is None
    monkeypatch.setattr("plyzero.selfplay.backpressure.free_room", lambda _: less)
    assert backpressure.reason(has_model=True) is None  # it has not looked again
    backpressure.refresh()
    paused = f"paused: the volume has {reason}"
    assert backpressure.reason(has_model=True) == backpressure.reason(has_model=False) == paused
    monkeypatch.setattr("plyzero.selfplay.backpressure.free_room", lambda _: enough)
    backpressure.refresh()
    assert backpressure.reason(has_model=True) is None


def test_without_a_model_a_worker_waits_once_the_bootstrap_is_made(tmp_path: Path, clock: Clock):
    games = some_games(parts(tmp_path / "x", clock)[0].game, 0, (40,))
    games.positions["model_step"][:] = 0
    run, writer, backpressure = parts(tmp_path, clock, f"selfplay.bootstrap_positions={2 * games.num_full}")
    seal(run, games, 0, owner="w1.0123abcd")
    backpressure.refresh()
    assert backpressure.reason(has_model=False) is None
    seal(run, some_games(run.game, 0, (40,)), owner="imported.0123abcd")  # those of the run before count
    backpressure.refresh()
    assert backpressure.reason(has_model=False) == "waiting for the first model"
    assert writer._seal_asked
    assert backpressure.reason(has_model=True) is None


def test_unsealed_games_count_and_are_sealed_before_they_are_many(tmp_path: Path, clock: Clock):
    games = some_games(parts(tmp_path / "x", clock)[0].game, 0, (40,))
    _, writer, backpressure = parts(tmp_path, clock, f"selfplay.bootstrap_positions={16 * games.num_full}")
    writer.add(games)
    assert backpressure.reason(has_model=False) is None
    assert not writer._seal_asked
    writer.add(games)
    assert backpressure.reason(has_model=False) is None
    assert writer._seal_asked
    for _ in range(14):
        writer.add(games)
    assert backpressure.reason(has_model=False) == "waiting for the first model"


ENOUGH_IS, TURN_IS = (
    "waiting for the trainer, " + reason for reason in ("which has enough positions", "whose turn it is")
)


@pytest.mark.parametrize(
    ("when_ahead", "looks"),
    [
        ("throttle", [({}, None), ({}, ENOUGH_IS), ({}, ENOUGH_IS), ({"credit": 499}, None), ({}, ENOUGH_IS)]),
        (
            "turns",
            [({}, None), ({}, TURN_IS), ({}, TURN_IS), ({"state": "waiting for 9 positions"}, None), ({}, TURN_IS)],
        ),
        ("keep", [({}, None)] * 10),
    ],
)
def test_who_throttles_or_takes_turns_waits_while_the_trainer_trains_and_who_keeps_playing_never(
    tmp_path: Path, clock: Clock, when_ahead: str, looks: list
):
    run, _, backpressure = parts(tmp_path, clock, f"selfplay.when_ahead={when_ahead}")
    for trained, (fields, reason) in enumerate(looks):  # at the first look it is not known yet whether it trains
        assert moved(backpressure, clock, run, 10 * trained, **fields) == reason
    clock.now += PROGRESS_SECONDS  # it hangs
    assert backpressure.reason(has_model=True) is None


def test_workers_wait_while_the_trainer_makes_the_first_model(tmp_path: Path, clock: Clock):
    run, _, backpressure = parts(tmp_path, clock)
    found = []
    for trained, state in enumerate(("training", "training", "waiting for 9 positions", "training")):
        moved(backpressure, clock, run, 10 * trained, state=state)
        found.append(backpressure.reason(has_model=False))
    assert found == [None, "waiting for the first model", None, "waiting for the first model"]
    clock.now += PROGRESS_SECONDS  # it hangs
    assert backpressure.reason(has_model=False) is None


def test_a_trainer_that_hangs_with_a_full_account_puts_nobody_to_sleep(tmp_path: Path, clock: Clock):
    run, backpressure = waiting(tmp_path, clock)
    since = clock.now
    reasons = []
    while clock.now < since + 2 * PROGRESS_SECONDS:
        reasons.append((moved(backpressure, clock, run, 20) is not None, clock.now - since < PROGRESS_SECONDS))
    assert all(waits == early for waits, early in reasons)
    assert moved(backpressure, clock, run, 21)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"[1, 2]",
        json.dumps({**ENOUGH, "beats": 1, "pid": 1, "host": "h", "credit": "much", "trained_positions": 7}).encode(),
        json.dumps({**ENOUGH, "beats": 1, "pid": 1, "host": "h", "credit_enough": None}).encode(),
    ],
)
def test_a_trainer_without_a_sensible_heartbeat_holds_nobody_back(content: bytes | None, tmp_path: Path, clock: Clock):
    run, backpressure = waiting(tmp_path, clock)
    path = run.workers / "trainer.json"
    path.unlink() if content is None else path.write_bytes(content)
    for _ in range(3):
        clock.now += REFRESH_SECONDS
        backpressure.refresh()
        assert backpressure.reason(has_model=True) is None


def test_a_heartbeat_that_cannot_be_read_for_a_moment_is_no_progress(tmp_path: Path, clock: Clock):
    run, backpressure = waiting(tmp_path, clock)
    clock.now += PROGRESS_SECONDS
    (run.workers / "trainer.json").write_bytes(b"")
    backpressure.refresh()
    assert moved(backpressure, clock, run, 20) is None


def test_an_unreadable_volume_pauses_a_new_worker_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    run, writer, running = parts(tmp_path, Clock())
    with monkeypatch.context() as patch:
        patch.setattr("plyzero.selfplay.backpressure.free_room", failing(errno.EIO))
        patch.setattr("plyzero.selfplay.backpressure.bootstrap_positions", failing(errno.EIO))
        new = Backpressure(run, writer)
        for _ in range(3):
            new.refresh()
            running.refresh()
            assert new.reason(has_model=False) == "paused: cannot read the volume: 2 files: Input/output error"
            assert running.reason(has_model=False) is None
            assert new.read_error == running.read_error == "cannot read 2 files: Input/output error"
        assert len(caplog.records) == 4  # each of the two files once for each worker
    new.refresh()
    assert new.reason(has_model=False) is None


def test_the_trainer_says_how_many_workers_there_are(tmp_path: Path, clock: Clock):
    run, _, backpressure = parts(tmp_path, clock)
    assert backpressure.workers == 1
    for told, counted in ((1000, 1000), (0, 1), (-5, 1), ("many", 1), (7, 7)):
        moved(backpressure, clock, run, 10, workers=told)
        assert backpressure.workers == counted
    (run.workers / "trainer.json").unlink()
    backpressure.refresh()
    assert backpressure.workers == 1


@pytest.mark.parametrize(
    ("setting", "workers", "seconds"),
    [(10, 1, 10), (10, 400, 10), (10, 800, 20), (10, 1000, 25), (10, 100_000, 25), (4, 160, 4), (60, 1000, 60)],
)
def test_many_workers_seal_less_often_than_one_but_after_25_seconds_at_the_latest(
    setting: float, workers: int, seconds: float
):
    assert SelfplaySettings(seal_seconds=setting).seal_interval(workers) == seconds


def test_a_worker_of_many_looks_less_often_but_every_five_seconds(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    _, _, backpressure = parts(tmp_path, clock)
    looks: list[float] = []
    monkeypatch.setattr(backpressure, "refresh", lambda: looks.append(clock.now))
    for workers, seconds in ((1, 0.5), (100, 0.5), (1000, 2.5), (100_000, 5.0)):
        backpressure.workers = workers
        clock.now += 10
        looks.clear()
        for _ in range(40):
            backpressure.look()
            clock.now += 0.5
        assert len(looks) == 20 / seconds
