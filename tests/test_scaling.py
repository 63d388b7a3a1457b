"""The arithmetic of scaling and the simulated loop: known answers, and requests as real processes send them."""

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pytest

from benchmarks import bucket_speed, loop_comparison, loop_costs, loop_load, scaling
from benchmarks.loop_load import Figures, Store
from benchmarks.loop_simulation import Loop, simulate
from plyzero.play.model_loader import ModelWatch
from plyzero.run.adoption import Adoption
from plyzero.run.metrics import TRAINER, Heartbeat, SparseLines, read_heartbeats
from plyzero.run.models import publish_model
from plyzero.run.records import Games
from plyzero.run.segments import write_segment
from plyzero.search.evaluators import Uniform
from plyzero.settings import SelfplaySettings, Settings, TrainerSettings
from selfplay.backpressure import Backpressure
from selfplay.games_in_play import GamesInPlay
from selfplay.replay_writer import ReplayWriter
from selfplay.worker import game_seeds
from tests.helpers.buckets import new_prefix
from tests.helpers.runs import play_segment, small_run
from trainer.export import untrained
from trainer.loop import Trainer

HOUR = 3600.0
RATE = 100.0


def loop(*, workers: int = 4, trained: float, selfplay: Any = (), trainer: Any = (), **more: Any) -> Loop:
    settings = Settings(
        selfplay=SelfplaySettings(**{"bootstrap_positions": 64, **dict(selfplay)}),
        trainer=TrainerSettings(**{"window_positions": 10**9, **dict(trainer)}),
    )
    return Loop(workers=workers, full_per_second=RATE, trained_per_second=trained, settings=settings, **more)


# --- the simulated loop ---


def test_a_trainer_that_takes_no_time_trains_what_the_ratio_wants_and_waits_for_the_rest():
    report = simulate(loop(trained=1e9), HOUR)
    batch = 256
    assert 8 - batch / (4 * RATE * (HOUR - 20)) <= report.ratio <= 8  # less than a batch is left
    assert report.trainer_waits > 0.99
    assert report.workers_wait == report.skipped == 0


@pytest.mark.parametrize("workers", [1, 4, 16])
@pytest.mark.parametrize("trained", [500, 2000, 9000])
def test_the_ratio_is_the_smaller_one_of_what_is_wanted_and_of_the_trainers_speed_by_that_of_the_workers(
    workers, trained
):
    report = simulate(loop(workers=workers, trained=trained), HOUR)
    assert report.ratio == pytest.approx(min(8, trained / (workers * RATE)), rel=0.02)
    assert report.full == pytest.approx(workers * RATE, rel=0.02)
    assert report.trainer_waits == pytest.approx(max(0, 1 - 8 * workers * RATE / trained), abs=0.02)


def test_processes_that_share_cores_slow_each_other_down_equally():
    """A trainer that is always busy takes a third of two cores, as each of two workers does."""
    report = simulate(loop(workers=2, trained=1000, cores=2), HOUR)
    assert report.full == pytest.approx(2 * RATE * 2 / 3, rel=0.01)
    assert report.trained == pytest.approx(1000 * 2 / 3, rel=0.01)
    beside = simulate(loop(workers=2, trained=1000, cores=2, beside=1), HOUR)
    assert beside.trained == pytest.approx(1000 / 2, rel=0.01)
    assert beside.ratio == pytest.approx(report.ratio, rel=0.01)


def test_a_trainer_that_waits_leaves_its_core_to_the_workers():
    """It works for the share f of the time that is a solution of f 2/3 s = 8 W g (2/3 f + 1 - f)."""
    speed, made = 5000, 8 * 2 * RATE
    share = made / (2 / 3 * speed + made / 3)
    report = simulate(loop(workers=2, trained=speed, cores=2), HOUR)
    assert 1 - report.trainer_waits == pytest.approx(share, rel=0.03)
    assert report.trained == pytest.approx(share * 2 / 3 * speed, rel=0.02)
    assert report.ratio == pytest.approx(8, rel=0.01)


def test_workers_that_throttle_wait_for_as_long_as_the_trainer_is_too_slow():
    speed = 8 * 4 * RATE / 4
    report = simulate(loop(trained=speed, selfplay={"when_ahead": "throttle"}), 4 * HOUR)
    assert report.workers_wait == pytest.approx(3 / 4, abs=0.01)
    assert report.ratio == pytest.approx(8, rel=0.02)
    assert report.skipped == 0


def test_what_a_trainer_cannot_train_is_skipped_where_workers_keep_playing():
    trainer = {"window_positions": 1000, "window_growth": 0}
    report = simulate(loop(trained=8 * 4 * RATE / 4, trainer=trainer), HOUR)
    assert report.skipped == pytest.approx(3 / 4, abs=0.01)
    assert report.ratio == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize(("publish", "poll"), [(30, 5), (30, 0), (8, 2), (20, 20)])
def test_a_model_is_half_a_period_and_half_a_poll_old_on_average(publish, poll):
    report = simulate(loop(workers=20, trained=1e9, trainer={"publish_seconds": publish}, poll=poll), HOUR)
    period = publish + 0.1  # the trainer, which waits, looks every 0.2 s
    assert report.model_age == pytest.approx(period / 2 + poll / 2, abs=0.15)
    figures = Figures(publish_seconds=publish, load_cost=0)
    assert loop_load.model_age(figures, poll=poll) == publish / 2 + poll / 2


def test_segments_are_sealed_by_time_or_by_positions():
    slow = loop(trained=1e9, positions_for_full=5)
    assert simulate(slow, HOUR).segments == pytest.approx(4 / 10, rel=0.02)
    fast = replace(slow, full_per_second=4 * 8192 / 5)
    assert simulate(fast, HOUR / 12).segments == pytest.approx(4 * 4, rel=0.05)
    for each in (slow, fast):
        made = each.full_per_second
        figures = Figures(full_per_second=made, positions_for_full=5, seal_seconds=10)
        assert simulate(each, HOUR / 12).segments == pytest.approx(4 * figures.segments_per_second, rel=0.05)


def test_costs_of_the_trainer_come_off_its_training():
    costly = loop(trained=1000, segment_cost=0.1, position_cost=2e-5, publish_cost=0.75, maintain_cost=0.2)
    figures = Figures(
        full_per_second=RATE,
        positions_for_full=5,
        trained_per_second=1000,
        segment_cost=0.1,
        position_cost=2e-5,
        name_cost=0,
        beat_cost=0.05,  # of four heartbeats every ten seconds
        publish_cost=0.75,
        publish_seconds=15,
        seal_seconds=10,
    )
    upkeep = 0.04 + 0.04 + 0.05 + 0.02
    assert loop_load.upkeep(figures, 4, Store()) == pytest.approx(upkeep)
    assert loop_load.reached_ratio(figures, 4, Store()) == pytest.approx((1 - upkeep) * 1000 / 400)
    assert simulate(costly, HOUR).ratio == pytest.approx((1 - upkeep) * 1000 / 400, rel=0.02)


@pytest.mark.parametrize("run", list(loop_comparison.measured()), ids=lambda run: f"{run.what}, {run.minutes:g} min")
def test_the_simulated_loop_comes_as_near_to_the_measured_ones_as_the_page_says(run: loop_comparison.Measured):
    found = loop_comparison.simulated(run)
    assert found.ratio == pytest.approx(run.ratio, rel=0.15)
    if run.trainer_waits is not None:
        assert found.trainer_waits == pytest.approx(run.trainer_waits, abs=0.1)


# --- the arithmetic ---


def test_known_answers_of_the_arithmetic():
    figures = Figures(
        full_per_second=10,
        positions_for_full=4,
        positions_per_game=20,
        seal_seconds=10,
        seal_positions=8192,
        publish_seconds=20,
        poll_seconds=2,
        segment_bytes=1000,
        position_bytes=10,
        model_bytes=2000,
        state_bytes=3000,
        keep_positions=1_000_000,
        parallel_games=64,
        load_cost=0,
        cpu_hour=0.36,
        put_price=1,
        get_price=0.5,
    )
    assert (figures.games_per_second, figures.positions_per_segment, figures.kept_segments) == (2, 400, 2500)
    assert loop_load.bytes_in(figures, 3) == pytest.approx(3 * 500 + 250)
    assert loop_load.bytes_out(figures, 3) == pytest.approx(3 * 500 + 3 * 100)
    worker = loop_load.requests_of_a_worker(figures)
    assert worker["PUT"] == pytest.approx(1 / 5 + 1 / 10 + 1 / 60)
    assert worker["LIST"] == pytest.approx(1 / 5 + 3 / 10)
    assert loop_load.sample_age(figures, poll=2, trainer_poll=1) == 10 + 1 + 16 + 5 + 0.5
    workers, trainer, paid = loop_load.dollars_per_million_games(figures, 4, bucket=False)
    assert (workers, trainer, paid) == pytest.approx((50, 12.5, 0))
    rate = loop_load.requests(figures, 4)
    dear = loop_load.dollars_per_million_games(figures, 4, bucket=True)[2]
    assert dear == pytest.approx(125_000 / 1000 * (rate["PUT"] + rate["LIST"] + (rate["GET"] + rate["HEAD"]) / 2))


@pytest.mark.parametrize("workers", [1, 15, 16, 31, 1000])
def test_the_trainer_waits_for_sixteen_heartbeats_as_for_one(workers: int):
    figures = Figures(publish_seconds=20, seal_seconds=10, keep_positions=1000, get_cost=0)
    heartbeats = math.ceil((workers + 1) / 16)
    lists = 4 + (2 if workers < 1000 else 4) + 7
    requests = (lists + heartbeats + 1) / 10 + 1 / 5 + (3 + 2) / 20  # maintain, a look at replay/, publish
    waits = loop_load.upkeep(figures, workers, Store(get=0.02)) - loop_load.upkeep(figures, workers, Store())
    assert waits == pytest.approx(0.02 * requests)
    asked = loop_load.requests_of_the_trainer(figures, workers)
    assert asked["GET"] == pytest.approx(workers * figures.segments_per_second + (workers + 1) / 10 + 1 / 20)


def test_heartbeats_take_the_processor_of_the_trainer_where_answers_come_fast():
    figures = Figures(get_cost=0.001)
    assert loop_load.seconds_for_beats(figures, 160, Store(get=0.03)) == pytest.approx(10 * 0.03)
    assert loop_load.seconds_for_beats(figures, 160, Store(get=0.002)) == pytest.approx(160 * 0.001)
    assert loop_load.seconds_for_beats(figures, 160, Store()) == 0


def test_the_largest_number_of_workers_is_found():
    assert loop_load.largest(lambda workers: workers <= 1234) == 1234
    assert loop_load.largest(lambda workers: False) == 0
    assert loop_load.largest(lambda workers: True, most=50) == 50


def test_an_option_replaces_a_figure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "sys.argv", ["scaling.py", "--no-simulation", "--trained-per-second", "1230000", "--cpu-hour", "7.5"]
    )
    scaling.main()
    shown = capsys.readouterr().out
    assert "| `trained_per_second` | 1,230,000 |" in shown
    assert "| `cpu_hour` | 7.5 |" in shown


def test_a_further_store_is_a_further_column(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.argv", ["scaling.py", "--no-simulation", "--store", "mine", "5", "0", "0", "0"])
    scaling.main()
    shown = capsys.readouterr().out
    assert "| mine: upkeep | ratio |" in shown
    assert "| mine: any of its time is left | 0 | 0 | 0 |" in shown  # the trainer asks once a second at least


def test_the_committed_page_is_that_of_the_committed_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("sys.argv", ["scaling.py", "--write", str(tmp_path / "page.md")])
    scaling.main()
    assert (tmp_path / "page.md").read_text() == (Path(scaling.__file__).parent / "results" / "scaling.md").read_text()


@pytest.mark.slow
def test_costs_are_measured_with_a_run_that_is_only_read(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    run = small_run(tmp_path / "r")
    publish_model(run.models, untrained(run), fence=1, step=1)
    games, finished = GamesInPlay(run.game.start, run.settings, seeds=game_seeds(0, "w0", "00000001")), []
    while len(finished) < 40:
        finished += games.run(Uniform(run.game.start.num_actions), fence=1, step=1)
    sealed = Games.concatenate(finished)
    write_segment(run.segments, sealed, run.game, run_id=run.id, worker="w0", incarnation="00000001", sequence=0)
    small = {"PLAYED_SECONDS": 0.1, "YARDSTICK_SECONDS": 0.01, "SLICES": 2, "STEPS": 2, "NAMES": 20, "BEATS": 2}
    for name, value in {**small, "POSITIONS": (20, 60), "SEGMENT_POSITIONS": 50}.items():
        monkeypatch.setattr(loop_costs, name, value)
    before = {path: path.stat().st_mtime_ns for path in run.root.rglob("*")}
    monkeypatch.setattr("sys.argv", ["loop_costs.py", "--run", str(run.root), "-o", "trainer.batch_size=16"])
    loop_costs.main()
    report = json.loads(capsys.readouterr().out)
    assert {path: path.stat().st_mtime_ns for path in run.root.rglob("*")} == before
    (playing,) = report["self-play"].values()
    assert playing["positions_per_second"][0] > playing["full_positions_per_second"][0] > 0
    assert [size["positions"] >= least for size, least in zip(report["intake"], (20, 60), strict=True)] == [True, True]
    assert all(low <= median <= high for median, low, high in (size["seconds"] for size in report["intake"]))
    assert report["trainer"]["trained_per_second"][0] > 0


def test_the_speed_of_a_bucket_is_measured_and_nothing_is_left_in_it(capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bucket_speed, "REQUESTS", 10)
    monkeypatch.setattr(bucket_speed, "NAMES", (3, 12))
    place = new_prefix("memory")
    monkeypatch.setattr("sys.argv", ["bucket_speed.py", str(place)])
    bucket_speed.main()
    assert re.search(
        r"LIST of 12 objects: [\d.]+ ms \([\d.]+ to [\d.]+\)\n--store NAME( -?[\d.]+){4} --get-cost [\d.]+\n",
        capsys.readouterr().out,
    )
    assert not place.is_dir()


# --- requests as they are sent ---


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Counter[str]]:
    """Return a function that calls another and counts the requests to buckets by then, without removals."""
    sent: Counter[str] = Counter()

    def counting(name: str, kind: str) -> None:
        send = getattr(obstore, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            sent["HEAD" if more.get("options") else kind] += 1
            return send(*arguments, **more)

        monkeypatch.setattr(obstore, name, counted)

    for name, kind in {"put": "PUT", "get": "GET", "get_range": "GET", "head": "HEAD"}.items():
        counting(name, kind)
    counting("list_with_delimiter", "LIST")

    def count_of(call: Callable[[], Any]) -> Counter[str]:
        sent.clear()
        call()
        return Counter(sent)

    return count_of


def per(seconds: float, sent: Counter[str]) -> Counter[str]:
    return Counter({kind: number / seconds for kind, number in sent.items()})


def test_the_trainers_requests_are_those_of_the_arithmetic(tmp_path: Path, count):
    run = replace(small_run(new_prefix("memory"), "tic-tac-toe", "selfplay.precision=fp32"), scratch=tmp_path)
    run.journals.mkdir(parents=True)
    figures, workers = Figures(publish_seconds=8, seal_seconds=4), 3
    with_trainer = Trainer(run, device="cpu")
    for name in (TRAINER, "w0.00000001", "w1.00000002", "w2.00000003"):
        Heartbeat(run.workers / f"{name}.json").beat({"role": "selfplay", "state": "playing"})
    play_segment(run)
    with_trainer.ingest()
    for _ in range(2):
        with_trainer.train_step()
        with_trainer.publish()
    with_trainer.train_step()
    published = count(with_trainer.publish)
    play_segment(run, sequence=1)
    play_segment(run, sequence=2)
    read, polled = count(with_trainer.ingest), count(with_trainer.ingest)
    kept = count(with_trainer.maintain)
    beat = count(lambda: Heartbeat(run.workers / f"{TRAINER}.json").beat({"role": "trainer", "state": "training"}))
    with_trainer.close()
    assert (published["PUT"], kept["GET"], read["GET"], polled) == (3, workers + 1, 2, Counter(LIST=1))
    sent = per(8, published) + per(5, polled) + per(10, kept) + per(5, beat)
    sent += Counter(GET=workers * figures.segments_per_second)
    expected = loop_load.requests_of_the_trainer(replace(figures, keep_positions=1000), workers)
    assert dict(sent) == pytest.approx(dict(expected))


def test_the_trainer_reads_sixteen_heartbeats_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each GET waits until 16 are there, so those of 32 heartbeats end only if 16 are sent at the same time."""
    run = replace(small_run(new_prefix("memory")), scratch=tmp_path)
    for name in (TRAINER, *(f"w{number}.{number:08x}" for number in range(31))):
        Heartbeat(run.workers / f"{name}.json").beat({"role": "selfplay", "state": "playing"})
    rounds: list[int] = []
    threads: set[int] = set()
    sixteen, send = threading.Barrier(16, action=lambda: rounds.append(16), timeout=20), obstore.get

    def waiting(*arguments: Any, **more: Any) -> Any:
        threads.add(threading.get_ident())
        sixteen.wait()
        return send(*arguments, **more)

    monkeypatch.setattr(obstore, "get", waiting)
    assert len(read_heartbeats(run.workers)) == 32
    assert (len(rounds), len(threads)) == (2, 16)
    assert loop_load.seconds_for_beats(Figures(get_cost=0), 32, Store(get=1)) == len(rounds)


def test_a_workers_requests_are_those_of_the_arithmetic(tmp_path: Path, count):
    run = replace(small_run(new_prefix("memory")), scratch=tmp_path)
    publish_model(run.models, untrained(run), fence=1, step=1)
    games = GamesInPlay(run.game.start, run.settings, seeds=game_seeds(0, "w0", "00000001"))
    run.journals.mkdir(parents=True, exist_ok=True)
    finished: list[Any] = []
    while not finished:
        finished = games.run(Uniform(run.game.start.num_actions))
    writer = ReplayWriter(run, worker="w0", incarnation="00000001")
    with ModelWatch(run.models, run.game, poll_seconds=0, threads=1) as watch:
        loaded = count(watch.newer)
        watch._next_poll = 0
        polled = count(watch.newer)
    with writer:
        beat = count(lambda: Heartbeat(run.workers / "w0.00000001.json").beat({"role": "selfplay", "state": "playing"}))
        pressure, adoption = Backpressure(run, writer), Adoption(run)
        pressure.reason(has_model=True)
        looked = count(pressure.refresh) + count(adoption.adopt)
        lines = SparseLines(run.metrics / "worker-w0.00000001.jsonl")
        lines.add({}, force=True)
        line = count(lambda: lines.add({}, force=True))
        writer.add(finished[0])
        sealed = count(lambda: writer.__exit__(None, None, None))
    assert (polled, sealed, loaded - polled) == (Counter(LIST=1), Counter(LIST=1, PUT=1), Counter(GET=1))
    figures = Figures(publish_seconds=8, poll_seconds=2, seal_seconds=4, keep_positions=1000)
    sent = per(5, polled) + per(8, loaded - polled) + per(5, beat) + per(5, looked) + per(60, line)
    sent += per(1 / figures.segments_per_second, sealed)
    assert dict(sent) == pytest.approx(dict(loop_load.requests_of_a_worker(figures)))
