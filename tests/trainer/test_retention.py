"""Retention: the volume stays bounded, and nothing goes that a state, the window or a process still needs."""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest
import torch

from plyzero import files
from plyzero.files import Room
from plyzero.ops.verify import restore
from plyzero.run.directory import Run
from plyzero.run.journals import Journal
from plyzero.run.metrics import Heartbeat, append_line
from plyzero.run.models import ModelName, list_models
from plyzero.run.records import JournalName
from plyzero.run.segments import SegmentName, list_segments
from plyzero.run.view import GONE_SECONDS, STALLED_SECONDS
from plyzero.trainer.loop import Trainer
from plyzero.trainer.retention import Retention
from plyzero.trainer.state import NUM_STATES, load_state
from tests.helpers.cli import shown
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.learning import training
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games

A, B = "0000000a", "0000000b"
MB = 1 << 20
EVERYTHING = {A: 100, B: 100}


ONE_MODEL = ("store.keep_models=1", "store.keep_model_minutes=0")


def run_with(root: Path, *options: str) -> Run:
    return small_run(root / "r", "tic-tac-toe", "store.min_free_mb=0", *options)


def put(run: Run, sequence: int, incarnation: str = A, *, step: int | None = None, size: int = 10) -> str:
    """A file in the place of a segment of 10 positions."""
    step = sequence if step is None else step
    fields = {"games": 1, "positions": 10, "full": 5, "first_step": step, "last_step": step + 3}
    name = str(SegmentName(worker="w0", incarnation=incarnation, sequence=sequence, **fields))
    (run.segments / name).write_bytes(bytes(size))
    return name


def put_all(run: Run, sequences: Iterable[int], *, size: int = 10) -> list[str]:
    return [put(run, sequence, size=size) for sequence in sequences]


def left(run: Run) -> list[tuple[str, int]]:
    return sorted((name.incarnation, name.sequence) for name in list_segments(run.segments))


def of(incarnation: str, *sequences: int) -> list[tuple[str, int]]:
    return [(incarnation, sequence) for sequence in sequences]


@pytest.mark.parametrize(
    ("limit", "window", "kept"),
    [
        ("keep_positions=50", [], [0, 1, 2, 3, 4]),
        ("keep_mb=5", [], [0, 1, 2, 3, 4]),
        ("keep_positions=30", [], [2, 3, 4]),
        ("keep_mb=3", [], [2, 3, 4]),
        ("keep_positions=30", [0, 2], [0, 2, 4]),
        ("keep_positions=30", [0, 2, 4], [0, 2, 4]),
    ],
)
def test_the_oldest_segments_go_but_none_of_the_window(
    tmp_path: Path, clock: Clock, limit: str, window: list[int], kept: list[int]
):
    run = run_with(tmp_path, f"store.{limit}")
    names = put_all(run, range(5), size=MB)
    for _ in range(2):
        Retention(run, clock=clock).prune(covered=EVERYTHING, window=[names[number] for number in window])
        assert left(run) == of(A, *kept)


def test_the_oldest_segments_of_all_workers_go(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, "store.keep_positions=45")
    for sequence, step in ((0, 30), (1, 31), (2, 32)):
        put(run, sequence, A, step=step)
    for sequence, step in ((7, 10), (8, 11), (9, 60)):
        put(run, sequence, B, step=step)
    Retention(run, clock=clock).prune(covered=EVERYTHING, window=[])
    assert left(run) == [*of(A, 0, 1, 2), *of(B, 9)]


def test_below_the_reserve_segments_go(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    run = small_run(tmp_path / "r", "tic-tac-toe", "store.min_free_mb=200", "store.min_free_files=60")
    put_all(run, range(6), size=MB)
    for room, kept in (((200 * MB, 60), 6), ((198 * MB + 1, 60), 4), ((200 * MB, 57), 1)):
        monkeypatch.setattr("plyzero.trainer.retention.free_room", lambda _, room=room: Room(*room))
        Retention(run, clock=clock).prune(covered=EVERYTHING, window=[])
        assert left(run) == of(A, *range(6 - kept, 6))
    names = put_all(run, range(5))
    monkeypatch.setattr("plyzero.trainer.retention.free_room", lambda _: Room(bytes=0, files=0))
    Retention(run, clock=clock).prune(covered={A: 4}, window=[names[1]])
    assert left(run) == of(A, 1, 4, 5)


def model(run: Run, step: int) -> ModelName:
    name = ModelName(1, step, "0123abcd")
    (run.models / str(name)).write_bytes(b"model")
    return name


def models(run: Run, steps: Iterable[int]) -> list[ModelName]:
    return [model(run, step) for step in steps]


def steps(run: Run) -> list[int]:
    return sorted(name.step for name in list_models(run.models))


def prune(retention: Retention, clock: Clock | None = None, seconds: float = 0) -> None:
    """Prune once, `seconds` later by the clock."""
    if clock is not None:
        clock.now += seconds
    retention.view.refresh()
    retention.prune(covered={}, window=[])


def test_the_newest_models_stay_and_older_ones_for_some_minutes(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, "store.keep_models=3", "store.keep_model_minutes=5")
    models(run, range(1, 7))
    retention = Retention(run, clock=clock)
    prune(retention)
    prune(retention, clock, 299)
    assert steps(run) == [1, 2, 3, 4, 5, 6]
    prune(retention, clock, 1)
    assert steps(run) == [1, 4, 5, 6]
    model(run, 7)
    prune(retention)
    prune(retention, clock, 299)
    assert steps(run) == [1, 4, 5, 6, 7]
    prune(retention, clock, 10**9)
    prune(retention)
    assert steps(run) == [1, 5, 6, 7]


def test_the_first_model_of_a_run_stays(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, *ONE_MODEL)
    for step in range(128, 1000, 128):
        model(run, step)
        prune(Retention(run, clock=clock))
    assert steps(run) == [128, 896]


def test_the_minutes_count_by_the_trainers_own_clock_from_its_start(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, "store.keep_models=1", "store.keep_model_minutes=5")
    for step in (0, 1, 2):
        path = run.models / str(model(run, step))
        os.utime(path, (0, 0))
    first = Retention(run, clock=clock)
    prune(first)
    prune(first, clock, 299)
    restarted = Retention(run, clock=clock)
    prune(restarted)
    prune(restarted, clock, 299)
    assert steps(run) == [0, 1, 2]
    prune(restarted, clock, 1)
    assert steps(run) == [0, 2]


def beating(run: Run, worker: str, name: ModelName) -> Callable[..., None]:
    heartbeat = Heartbeat(run.workers / f"{worker}.json")
    fields = {"role": "selfplay", "model": str(name)}
    return lambda state="playing": heartbeat.beat({**fields, "state": state}, force=True)


def test_the_models_of_those_who_live_stay_and_those_of_the_dead_go(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, *ONE_MODEL)
    names = models(run, range(6))[1:]
    moving, silent, dead = (beating(run, f"w{n}.0000000{n}", names[n]) for n in range(3))
    Journal(run.journals, run.game, JournalName("w1", "00000001", 0), run_id=run.id)  # it hangs, but it lives
    retention = Retention(run, clock=clock)
    for beat in (moving, silent, dead):
        beat()
    prune(retention)
    assert steps(run) == [0, 1, 2, 3, 5]
    clock.now += STALLED_SECONDS
    moving()
    prune(retention)
    assert steps(run) == [0, 1, 2, 5]


def test_the_best_model_stays(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, *ONE_MODEL)
    names = models(run, range(1, 5))
    for name, won in zip(names, (3, 9, 5, 1), strict=True):
        append_line(run.metrics / "rating.jsonl", {"model": str(name), "scores": {"random": [won, 0, 10 - won]}})
    prune(Retention(run, clock=clock))
    assert steps(run) == [1, 2, 4]


def test_a_heartbeat_that_names_no_model_keeps_none(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, *ONE_MODEL)
    models(run, (0, 1, 2))
    for number, label in enumerate((None, 7, "best.onnx", ["000001-000000001-0123abcd.onnx"])):
        beat = {"role": "selfplay", "state": "playing", "model": label}
        Heartbeat(run.workers / f"w{number}.0000000{number}.json").beat(beat)
    prune(Retention(run, clock=clock))
    assert steps(run) == [0, 2]


def test_what_killed_writers_left_is_removed_once_it_is_old(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path)
    places = [run.segments, run.journals, run.models, run.trainer, run.workers, run.metrics]
    for place in places:
        (place / ".tmp-old").write_bytes(b"x")
        (place / "kept").write_bytes(b"x")
    retention = Retention(run, clock=clock)
    prune(retention)
    clock.now += GONE_SECONDS - 1
    for place in places:
        (place / ".tmp-new").write_bytes(b"x")
    prune(retention)
    assert all((place / ".tmp-old").exists() for place in places)
    prune(retention, clock, 1)
    assert [path.name for place in places for path in sorted(place.iterdir())] == [".tmp-new", "kept"] * len(places)


def test_metrics_of_living_workers_and_newest_ones_stay(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.trainer.retention.KEPT_WORKER_METRICS", 2)
    run = run_with(tmp_path)
    Heartbeat(run.workers / "w0.00000000.json").beat({"role": "selfplay", "state": "playing"})
    for number in range(5):
        path = run.metrics / f"worker-w0.0000000{number}.jsonl"
        path.write_text("{}\n")
        os.utime(path, (100 + number, 100 + number))
    (run.metrics / "trainer-000001.jsonl").write_text("{}\n")
    os.utime(run.metrics / "trainer-000001.jsonl", (1, 1))
    prune(Retention(run, clock=clock))
    kept = sorted(path.name for path in run.metrics.iterdir())
    assert kept == ["trainer-000001.jsonl", *(f"worker-w0.0000000{number}.jsonl" for number in (0, 3, 4))]


def test_an_unfinished_file_of_a_name_seen_before_is_new_again(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path)
    path, retention = run.segments / ".tmp-1", Retention(run, clock=clock)
    path.touch()
    prune(retention)
    path.unlink()
    prune(retention, clock, GONE_SECONDS)
    path.touch()
    prune(retention)
    assert path.exists()


def test_heartbeats_are_removed_long_after_their_process(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path)
    name = ModelName(1, 1, "0123abcd")
    moving, stopped, dead = (beating(run, f"w{n}.0000000{n}", name) for n in range(3))
    retention = Retention(run, clock=clock)
    dead()
    stopped("stopped")
    for seconds in (0, STALLED_SECONDS, GONE_SECONDS - 1):
        clock.now = 1000 + seconds
        moving()
        prune(retention)
        assert len(list(run.workers.iterdir())) == 3
    clock.now = 1000 + GONE_SECONDS
    moving()
    prune(retention)
    assert [path.name for path in run.workers.iterdir()] == ["w0.00000000.json"]


def test_the_socket_of_an_evaluator_is_removed_once_it_has_no_heartbeat(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path)
    living = beating(run, "evaluator.00000000", ModelName(1, 1, "0123abcd"))
    for number in range(2):
        (run.workers / f"evaluator.0000000{number}.01234567.8001.sock").touch()
    retention = Retention(run, clock=clock)
    for seconds in (0, STALLED_SECONDS, GONE_SECONDS):
        clock.now = 1000 + seconds
        living()
        prune(retention)
    kept = sorted(path.name for path in run.workers.iterdir())
    assert kept == ["evaluator.00000000.01234567.8001.sock", "evaluator.00000000.json"]


def test_the_heartbeat_of_a_dead_worker_stays_until_its_journal_is_sealed(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path)
    beating(run, "w0.00000000", ModelName(1, 1, "0123abcd"))()
    journal = run.journals / str(JournalName("w0", "00000000", 3))
    journal.touch()
    retention = Retention(run, clock=clock)
    prune(retention)
    prune(retention, clock, GONE_SECONDS)
    assert len(list(run.workers.iterdir())) == 1  # where there are no locks nothing else says whose it was
    journal.unlink()
    prune(retention)
    assert list(run.workers.iterdir()) == []


@pytest.fixture
def small(tmp_path: Path) -> Run:
    """A run whose store should be next to nothing and whose window is one segment."""
    one = ("trainer.batch_size=2", "trainer.window_positions=1", "trainer.window_growth=0", "store.keep_positions=1")
    return run_with(tmp_path, "selfplay.bootstrap_positions=1", *one)


def put_games(run: Run, *sequences: int) -> None:
    for sequence in sequences:
        games = some_games(run.game, sequence, (6, 6))
        games.positions["full"][:] = 1
        games.positions["model_step"][:] = sequence + 1
        seal(run, games, sequence, f"w0.{A}")


def learn(trainer: Trainer) -> None:
    trainer.ingest()
    trainer.train_step()


def test_a_restarted_trainer_keeps_what_the_state_before_its_own_needs(small: Run):
    put_games(small, 0, 1)
    with training(small) as trainer:
        trainer.publisher.save()
    with closing(Trainer(small, device="cpu")) as trainer:
        put_games(small, 2, 3)
        learn(trainer)
        trainer.maintain()
        assert left(small) == of(A, 0, 1, 2, 3)
        trainer.publisher.save()
        trainer.maintain()
        assert (A, 0) not in left(small)
        assert {*of(A, 2, 3)} <= {*left(small)}


def test_the_segments_after_both_states_are_there(small: Run):
    with closing(Trainer(small, device="cpu")) as trainer:
        for sequence in range(0, 12, 2):
            put_games(small, sequence)
            learn(trainer)
            trainer.publisher.save()
            put_games(small, sequence + 1)
            trainer.ingest()
            trainer.publisher.save()  # as when a model could not be published: the same step, and the same name
            trainer.maintain()
            there = [number for _, number in left(small)]
            for path in small.trainer.glob("state-*.pt"):
                cursor = torch.load(path, weights_only=True)["cursor"]
                assert there[-1] == sequence + 1
                assert set(range(cursor[A], sequence + 2)) <= set(there), path.name
    assert len(there) < 12


def test_the_windows_of_both_states_stay_though_the_trainer_has_moved_on(small: Run):
    with closing(Trainer(small, device="cpu")) as trainer:
        for sequence in range(0, 8, 2):
            put_games(small, sequence)
            learn(trainer)
            trainer.publisher.save()
            put_games(small, sequence + 1)
            learn(trainer)
            trainer.maintain()
            there = {path.name for path in small.segments.iterdir()}
            for path in small.trainer.glob("state-*.pt"):
                assert {*torch.load(path, weights_only=True)["window"]} <= there, path.name
    with closing(Trainer(small, device="cpu")) as restarted:
        assert restarted.intake.window.names
        put_games(small, 8)
        learn(restarted)
        restarted.maintain()
        assert {*load_state(small.trainer)["window"]} <= {path.name for path in small.segments.iterdir()}


def test_a_trainer_whose_segments_somebody_removed_waits_for_new_ones(small: Run):
    put_games(small, 0, 1)
    with training(small) as trainer:
        trainer.publisher.save()
    for path in small.segments.iterdir():
        path.unlink()
    with training(small, steps=0) as trainer:
        trainer.publisher.is_first = False
        assert trainer.missing_positions() > 0
        assert not trainer.publish_is_due(waiting=False)
        trainer.end()
        assert list_models(small.models) == []
        put_games(small, 2)
        trainer.ingest()
        assert trainer.missing_positions() == 0
        trainer.train_step()


def test_a_restored_segment_is_not_removed_before_it_is_read(tmp_path: Path, clock: Clock):
    run = run_with(tmp_path, "store.keep_positions=1")
    put_all(run, range(4))
    retention = Retention(run, clock=clock)
    for step in range(NUM_STATES):
        retention.remember_state(1, {"step": step, "cursor": {A: 4}, "skipped": {A: [(1, 2, False)]}, "window": []})
    retention.prune_for_states()
    assert left(run) == of(A, 1)


def test_a_file_that_stays_stops_no_other(tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture):
    run = run_with(tmp_path, "store.keep_positions=1", *ONE_MODEL)
    put_all(run, range(3))
    models(run, range(1, 5))
    odd = [
        next(run.segments.glob("*-00000000-*")),
        run.models / str(list_models(run.models)[-2]),
    ]  # the first model stays
    for path in odd:
        path.unlink()
        path.mkdir()
    (run.workers / ".tmp-odd").mkdir()
    (run.workers / ".tmp-old").touch()
    retention = Retention(run, clock=clock)
    for _ in range(3):
        retention.view.refresh()
        retention.prune(covered=EVERYTHING, window=[])
        clock.now += GONE_SECONDS
    assert left(run) == of(A, 0)
    assert steps(run) == [1, 2, 4]
    assert [path.name for path in run.workers.iterdir()] == [".tmp-odd"]
    assert sorted(record.message.partition(" cannot")[0] for record in caplog.records) == sorted(
        [".tmp-odd", *(path.name for path in odd)]
    )


def test_a_step_of_retention_that_fails_is_a_warning_and_stops_no_other(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    run = run_with(tmp_path, *ONE_MODEL)
    models(run, (1, 2, 3))
    monkeypatch.setattr("plyzero.trainer.retention.free_room", failing(errno.EIO))
    monkeypatch.setattr("plyzero.trainer.retention.list_journals", failing(errno.EIO))
    monkeypatch.setattr("plyzero.run.events.read_lines", failing(errno.EIO))
    prune(Retention(run, clock=clock))
    assert steps(run) == [1, 3]  # the first and the last
    assert "replay cannot be pruned: Input/output error" in caplog.text


def test_a_transient_error_during_a_resume_drops_nothing(small: Run, monkeypatch: pytest.MonkeyPatch):
    put_games(small, 0, 1)
    with training(small) as trainer:
        trainer.publisher.save()
        names = trainer.intake.window.names
    flaky = files.read_file
    for error, times in ((errno.ESTALE, 3), (errno.EACCES, 1), (errno.EIO, 2)):
        flaky = failing(error, times, then=flaky)
    monkeypatch.setattr("plyzero.volume_errors.time.sleep", lambda _: None)
    monkeypatch.setattr("plyzero.run.segments.read_file", flaky)
    with closing(Trainer(small, device="cpu")) as trainer:
        assert trainer.intake.window.names == names
    flaky(small.segments / names[0], max_bytes=10**6)  # no failure is left


def test_a_state_of_version_0_2_is_opened_without_skipped_segments(small: Run):
    put_games(small, 0)
    with training(small) as trainer:
        trainer.publisher.save()
    (path,) = small.trainer.glob("state-*.pt")
    state = torch.load(path, weights_only=True)
    del state["skipped"], state["invalid_games"]
    torch.save(state, path)
    with closing(Trainer(small, device="cpu")) as trainer:
        assert (trainer.intake.replay_reader.skipped, trainer.intake.replay_reader.invalid_games) == ({}, 0)
        assert trainer.intake.replay_reader.cursor == {A: 1}


def test_what_was_skipped_is_known_after_a_restart(small: Run):
    put_games(small, 0, 1, 2)
    lost = next(small.segments.glob("*-00000001-*"))
    small.quarantine.mkdir()
    lost.rename(small.quarantine / lost.name)
    with training(small) as trainer:
        trainer.publisher.save()
        assert trainer.intake.replay_reader.cursor == {A: 3}
    assert list(restore(small)) == [(lost.name, None)]
    with closing(Trainer(small, device="cpu")) as trainer:
        before = trainer.intake.games
        trainer.ingest()
        assert trainer.intake.games == before + 2
        trainer.publisher.save()
    with training(small, steps=0) as trainer:
        assert trainer.intake.games == before + 2


def test_a_read_error_of_the_trainer_is_in_its_heartbeat_and_in_status(small: Run, monkeypatch: pytest.MonkeyPatch):
    def refuse(path: Path, *, max_bytes: int) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    put_games(small, 0)
    (segment,) = small.segments.iterdir()
    segment.chmod(0o600)
    with closing(Trainer(small, device="cpu")) as trainer:
        with monkeypatch.context() as patch:
            patch.setattr("plyzero.run.segments.read_file", refuse)
            trainer.ingest()
        beat = trainer.reporter.describe("stopped")
        Heartbeat(small.workers / "trainer.json").beat(beat)
    owner = f"{segment} is owned by uid {os.getuid()}, mode 0600; this process runs as uid {os.geteuid()}"
    assert beat["read_error"] == f"cannot read 1 file: Permission denied: {owner}"
    assert "trainer: cannot read 1 file: Permission denied" in shown("status", "--run", str(small.root))


def test_the_size_of_a_segment_is_asked_for_once_and_counts_until_it_is_removed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    run = run_with(tmp_path, "store.keep_mb=2")
    put_all(run, [0, 1], size=MB)
    asked: list[str] = []

    def counted(directory: Path, *, wanted: Callable[[str], bool]) -> dict[str, int]:
        sizes = files.list_files(directory, wanted=wanted)
        asked.extend(sizes)
        return sizes

    monkeypatch.setattr("plyzero.trainer.retention.list_files", counted)
    retention = Retention(run, clock=clock)
    for sequences in ([0, 1], [0, 1], [1, 2]):
        put(run, sequences[-1], size=MB)
        retention.prune(covered=EVERYTHING, window=[])
        assert left(run) == [(A, sequence) for sequence in sequences]
    assert sorted(asked) == sorted({*asked})
    assert len(asked) == 3
