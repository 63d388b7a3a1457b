"""The worker: its games are played by the rules and recorded whole, and it is never without the newest model."""

import itertools
import re
import threading
import time
from collections import Counter
from collections.abc import Container
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero import files
from plyzero.errors import UserError
from plyzero.games.connect_four import ConnectFour
from plyzero.games.othello import Othello
from plyzero.network.model_loader import ModelWatch, load_model
from plyzero.rules.catalog import load_game
from plyzero.rules.game import ONGOING, Game, outcome_code
from plyzero.rules.notation import action_names
from plyzero.run import adoption
from plyzero.run.directory import Run
from plyzero.run.events import read_heartbeats, read_lines
from plyzero.run.metrics import Heartbeat
from plyzero.run.records import BY_RULE, TRUNCATED, Games
from plyzero.run.replay import find_disagreement
from plyzero.run.segments import list_segments
from plyzero.search.evaluators import EvaluationBatch, Uniform
from plyzero.search.tree import GUMBEL, PUCT
from plyzero.selfplay import worker
from plyzero.selfplay.backpressure import Backpressure
from plyzero.selfplay.evaluated_games import EvaluatedGames
from plyzero.selfplay.games_in_play import GAMES_WITHOUT_MODEL, GamesInPlay, _step_settings
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.selfplay.step import sample_index, temperature
from plyzero.selfplay.worker import game_seeds, run_worker
from plyzero.settings import SelfplaySettings, Settings
from tests.helpers.beats import fields_of
from tests.helpers.buckets import new_prefix
from tests.helpers.inference import finished
from tests.helpers.journals import leave
from tests.helpers.learning import add_model
from tests.helpers.runs import bytes_of, games_of, moves_of, play_bootstrap, playing, replay, small_run
from tests.helpers.segments import some_games
from tests.helpers.toys import Branching, Relay, watched


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Games]:
    run = small_run(tmp_path_factory.mktemp("run") / "r", "othello(size=6)", "selfplay.opening_plies=4")
    return run, play_bootstrap(run, incarnation="00000001")


def test_every_record_holds_its_position_and_every_game_ends_as_recorded(bootstrap):
    run, games = bootstrap
    lines = replay(run.game.start, games)
    for game, line in zip(games.games, lines, strict=True):
        assert outcome_code(line[-1].outcome()) == game["winner"]
        assert game["end"] == BY_RULE
        assert all(position.outcome() is None for position in line[:-1])
    for i, position in enumerate(position for line in lines for position in line[:-1]):
        assert np.array_equal(games.observations[i], position.observe())
        assert games.positions["to_play"][i] == position.to_play
        assert moves_of(games, i)["action"].tolist() == list(position.legal_actions())


def test_full_searches_are_gumbel_and_fast_ones_puct(bootstrap):
    _, games = bootstrap
    assert all(moves_of(games, i)["visits"].sum() == each["simulations"] for i, each in enumerate(games.positions))
    searched = games.positions[games.positions["search"] > 0]
    full = searched["full"] == 1
    assert (set(searched["search"][full]), set(searched["search"][~full])) == ({GUMBEL}, {PUCT})
    assert (searched["simulations"][full].max() <= 16, searched["simulations"][~full].max() <= 4) == (True, True)
    assert 0.15 < full.mean() < 0.35


def test_a_game_starts_with_up_to_the_given_number_of_random_moves(bootstrap):
    _, games = bootstrap
    assert set(games.games["opening_plies"]) == {0, 1, 2, 3, 4}
    for game in games:
        expected = [ply >= game.games["opening_plies"][0] for ply in range(len(game.positions))]
        assert (game.positions["search"] > 0).tolist() == expected


def test_game_ids_are_unique_over_workers_starts_and_games():
    starts = itertools.product("ab", ("00000001", "00000002"))
    seeds = [seed for each in starts for seed in itertools.islice(game_seeds(0, *each), 50)]
    assert len(set(seeds)) == len(seeds) == 200


def test_the_same_seed_and_incarnation_play_the_same_games(tmp_path: Path, bootstrap):
    run = small_run(tmp_path / "r", "othello(size=6)", "selfplay.opening_plies=4")
    again, first = play_bootstrap(run, incarnation="00000001"), bootstrap[1]
    shared = min(len(again.positions), len(first.positions))
    assert shared > 500
    assert np.array_equal(again.positions[:shared], first.positions[:shared])


def test_the_bootstrap_is_bounded(bootstrap):
    run, games = bootstrap
    assert 200 <= games.num_full < 2 * 200
    with ReplayWriter(run, worker="w1", incarnation="00000002") as writer:
        assert Backpressure(run, writer).reason(has_model=False) == "waiting for the first model"


def test_a_worker_that_ends_has_written_what_it_did(run: Run):
    play_bootstrap(run, incarnation="00000001")
    (line,) = read_lines(run.metrics / "worker-w0.00000001.jsonl")
    beat = fields_of(run.workers / "w0.00000001.json")
    assert line["positions"] == sum(name.positions for name in list_segments(run.segments))
    assert line["evaluations"] > 200
    assert 0 <= line["network_seconds"] < line["seconds"]
    assert line.items() - {("time", line["time"])} <= beat.items()


def test_games_begin_one_by_one_and_are_spread_over_all_plies():
    settings = Settings(selfplay=SelfplaySettings(parallel_games=32, simulations=2, fast_simulations=2))
    in_play = GamesInPlay(Othello(size=6), settings, seeds=itertools.count(), one_by_one=True)
    uniform = Uniform(Othello(size=6).num_actions)
    assert len(in_play.plies) == 1
    under_way = set[int]()
    while len(in_play.plies) < GAMES_WITHOUT_MODEL:
        in_play.run(uniform)
        under_way.add(len(in_play.plies))
    for _ in range(500):
        in_play.run(uniform)
    assert len(in_play.plies) == GAMES_WITHOUT_MODEL  # no more without a model
    assert under_way == set(range(1, GAMES_WITHOUT_MODEL + 1))
    ends = []
    for _ in range(2000):
        ends.append(len(in_play.run(uniform, fence=1)))
    assert len(in_play.plies) == 32
    assert max(ends[1000:]) <= 8  # each game has about 32 plies; those that begin together end together
    assert max(in_play.plies) - min(in_play.plies) > 20


def test_the_time_in_the_network_is_counted():
    def slow(batch: EvaluationBatch):
        time.sleep(0.02)
        return Uniform(7)(batch)

    settings = Settings(selfplay=SelfplaySettings(parallel_games=3, simulations=2, fast_simulations=2))
    in_play = GamesInPlay(ConnectFour(), settings, seeds=itertools.count())
    for _ in range(10):
        in_play.run(slow)
    assert in_play.seconds["network"] >= 0.2


def test_a_new_model_is_used_in_mid_game_and_stamped_on_every_move(tmp_path: Path):
    run = small_run(tmp_path / "r", "connect-four")
    add_model(run, 10)
    with playing(run) as until:
        until(lambda: any(name.first_step == 10 for name in list_segments(run.segments)))
        add_model(run, 20)
        until(lambda: any(name.first_step == 20 for name in list_segments(run.segments)))
    found = set()
    for game in games_of(run):
        steps = game.positions["model_step"][game.positions["search"] > 0].tolist()
        assert steps == sorted(steps)
        found.add((*sorted({*steps}),))
    assert (10, 20) in found <= {(10,), (20,), (10, 20)}


def test_the_networks_answers_are_recorded(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "selfplay.seal_positions=30")
    name = add_model(run)
    with playing(run) as until:
        until(lambda: list(list_segments(run.segments)))
    games = games_of(run)
    network = load_model(run.models, name, run.game)
    logits, wdl = network(EvaluationBatch(games.observations.astype(np.float32), list))
    for i, record in enumerate(games.positions):
        if record["search"] == 0:
            continue
        moves = moves_of(games, i)
        prior = np.exp(logits[i, moves["action"]])
        assert moves["prior"] == pytest.approx(prior / prior.sum(), abs=1e-5)
        assert record["network_value"] == pytest.approx(wdl[i, 0] - wdl[i, 2], abs=1e-5)


def played(start: Game, count: int, **selfplay: Any) -> list[Games]:
    """At least `count` games, three at a time, with two simulations a move."""
    settings = SelfplaySettings(**{"parallel_games": 3, "simulations": 2, "fast_simulations": 2, **selfplay})
    in_play, found = GamesInPlay(start, Settings(selfplay=settings), seeds=itertools.count()), []
    while len(found) < count:
        found += in_play.run(Uniform(start.num_actions))
    return found


def test_a_game_longer_than_it_may_be_is_given_up_and_has_no_outcome():
    start = ConnectFour()
    start.max_plies = 3
    for games in played(start, 20, opening_plies=3):
        record = games.games[0]
        assert (record["positions"], record["end"], record["winner"]) == (3, TRUNCATED, ONGOING)


ASKED: Counter[tuple[str, tuple[int, ...]]] = Counter()
"""The number of calls of the rules, by method and by the moves so far."""


def count(position: Branching, question: str, *action: int) -> None:
    ASKED[question, (*position.moves, *action)] += 1


@pytest.mark.parametrize("reuse_trees", [False, True])
def test_the_rules_are_asked_once_about_each_position_of_a_game(reuse_trees: bool):
    ASKED.clear()
    position = watched(Branching, count)()
    played(position, 1, parallel_games=1, simulations=20, fast_simulations=20, cache_mb=0, reuse_trees=reuse_trees)
    once = {question for question, times in ASKED.items() if times == 1 and question[1]}
    assert sum(name == "observe" and len(moves) > 1 for name, moves in once) > 20
    # the second game has begun, so its first positions, and the start, are asked about again
    assert {moves for (_, moves), times in ASKED.items() if times > 1} <= {(), (0,), (1,), (2,)}


@pytest.mark.parametrize("dtype", [bool, np.float32])
def test_games_of_any_length_are_recorded_page_by_page(dtype: type, monkeypatch: pytest.MonkeyPatch):
    start = ConnectFour()
    start.observation_dtype = dtype
    expected = played(start, 20)
    monkeypatch.setattr("plyzero.selfplay.games_in_play.PAGE_BYTES", 50 if dtype is bool else 1500)
    monkeypatch.setattr("plyzero.selfplay.games_in_play.PAGE_MOVES", 16)
    found = played(start, 20)
    assert {one.observations.dtype for one in found} == {np.dtype(dtype)}
    assert [bytes_of(one) for one in found] == [bytes_of(other) for other in expected]


@pytest.mark.parametrize("game", ["connect-four", "examples.breakthrough:Breakthrough"])
def test_a_share_of_the_games_begins_at_given_positions_and_their_records_replay(game: str, tmp_path: Path):
    start, file = load_game(game).start, tmp_path / "starts.txt"
    texts = {"connect-four": ["4 4 4", "1 7"], "examples.breakthrough:Breakthrough": ["a2-a3 a5-a4", "f2-f3"]}[game]
    file.write_text("\n\n".join(texts))
    begun = Counter()
    games = played(start, 60, starts=str(file), start_share=0.5, opening_plies=0)
    for one in games:
        actions = one.positions["action"].tolist()
        opening = actions[: one.games["opening_plies"][0]]
        begun[" ".join(action_names(start, tuple(opening)))] += 1
        assert (one.positions["search"] > 0).tolist() == [ply >= len(opening) for ply in range(len(actions))]
        assert find_disagreement(one, start) is None
    assert begun.keys() == {"", *texts}
    assert 0.25 < begun[""] / len(games) < 0.75
    assert played(start, 5, opening_plies=0)[0].games["opening_plies"] == 0


def test_temperature_falls_by_halves_to_the_final_one():
    selfplay = SelfplaySettings(temperature=1.0, final_temperature=0.2, temperature_plies=2)
    settings = _step_settings(Settings(selfplay=selfplay), 9, packs_bits=True)[0]
    for plies, expected in ((0, 1.0), (2, 0.6), (4, 0.4)):
        assert temperature(plies, settings) == pytest.approx(expected)


def test_a_move_is_drawn_from_the_policy_sharpened_by_the_temperature():
    rng = np.random.default_rng(0)
    policy = np.array([0.6, 0.0, 0.3, 0.1])
    for degree, expected in ((1.0, policy), (0.5, policy**2 / (policy**2).sum())):
        drawn = np.bincount([sample_index(policy, degree, rng.random()) for _ in range(20_000)], minlength=4) / 20_000
        assert drawn == pytest.approx(expected, abs=0.015)
        assert drawn[1] == 0
    assert {sample_index(policy, 0.01, rng.random()) for _ in range(100)} == {0}
    assert (sample_index(policy, 1.0, 0.0), sample_index(policy, 1.0, np.nextafter(1, 0))) == (0, 3)
    assert sample_index(np.array([0.0, 1.0, 0.0]), 1.0, 0.0) == sample_index(np.array([0.0, 1.0, 0.0]), 1.0, 1.0) == 1


@pytest.mark.parametrize("opening_plies", [0, 8])
def test_non_binary_planes_are_refused_where_bits_are_declared(opening_plies: int):
    class HalfPlanes(Relay):
        observation_dtype = bool

        def observe(self):
            return np.full(self.observation_shape, 0.5)

    with pytest.raises(ValueError, match="not all 0 and 1"):
        played(HalfPlanes(9), 1, opening_plies=opening_plies)


def test_a_worker_seals_the_journal_of_a_killed_one_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "BUCKET_SECONDS", 0.05)
    monkeypatch.setattr(adoption, "STALLED_SECONDS", 0.1)
    run = changed(small_run(new_prefix("memory")), scratch=tmp_path)
    lost = some_games(run.game, seed=1, lengths=(6, 5))
    leave(run.journals, run, lost, owner="w0.00000001")  # as by SIGKILL: the lock is free and the file is there
    with playing(run, name="w1") as until:
        until(lambda: "00000001" in {name.incarnation for name in list_segments(run.segments)})
    found = games_of(run)
    assert set(lost.games["id"]) <= set(found.games["id"])
    assert len(found.games) == len(set(found.games["id"])) > 2
    assert list(run.journals.iterdir()) == []
    assert "w0.00000001" not in read_heartbeats(run.workers)
    assert {beat.state for beat in read_heartbeats(run.workers).values()} == {"stopped"}


def test_a_worker_whose_heartbeat_thread_ends_ends_too(run: Run, monkeypatch: pytest.MonkeyPatch):
    def fail(_: Backpressure) -> None:
        if threading.current_thread().name == "heartbeat":
            raise RuntimeError("a mistake")

    monkeypatch.setattr(Backpressure, "refresh", fail)
    with pytest.raises(RuntimeError, match="a mistake"):
        run_worker(run, name="w0", stop=threading.Event())


def test_a_worker_has_a_heartbeat_while_it_compiles(run: Run, monkeypatch: pytest.MonkeyPatch):
    seen = list[object]()

    def compile_slowly(*_: object, **__: object) -> None:
        while not seen:
            seen.extend(beat.state for beat in read_heartbeats(run.workers).values())
        raise InterruptedError

    monkeypatch.setattr("plyzero.selfplay.worker.EvaluatedGames", compile_slowly)
    with pytest.raises(InterruptedError):
        run_worker(run, name="w0", stop=threading.Event())
    assert seen == ["compiling"]


def test_a_worker_logs_its_progress(run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    monkeypatch.setattr("plyzero.selfplay.worker.LOG_SECONDS", 0)
    monkeypatch.setattr("plyzero.selfplay.worker.REFRESH_SECONDS", 0.02)
    counts = r"\d+ games with \d+ positions, \d+ with a full search, [\d.]+/s, model None"
    line = re.compile(rf"^[a-z ]+: {counts}$", re.MULTILINE)
    with playing(run) as until:
        until(lambda: line.search("\n".join(caplog.messages)))


FOUR_AT_A_TIME = {"parallel_games": 4, "simulations": 3, "cache_mb": 0, "reuse_trees": True}


def failing_rules(method: str, error: BaseException, fails_at: Container[int]) -> Game:
    """Rules that fail at some of the calls of a method."""
    calls = itertools.count()

    def fail(_: Game, asked: str, *action: int) -> None:
        if asked == method and next(calls) in fails_at:
            raise error

    return watched(Relay, fail)()


@pytest.mark.parametrize("error", [OSError("gone"), SystemExit(3), KeyError(1)], ids=repr)
@pytest.mark.parametrize("method", ["play", "observe", "outcome"])
def test_a_game_in_which_the_rules_fail_is_given_up_and_no_other(method, error, caplog):
    games = played(failing_rules(method, error, (45,)), 20, **FOUR_AT_A_TIME)
    ids = {int(each.games["id"][0]) for each in games}
    assert len(set(range(16)) - ids) == 1
    assert all(each.games["winner"][0] == 0 and each.games["positions"][0] == 4 for each in games)
    (warning,) = (record.getMessage() for record in caplog.records)
    assert warning.startswith(f"a game was given up: {__name__}:")
    assert f"cannot be played: {type(error).__name__}: " in warning
    assert "(test_worker.py, line " in warning
    assert warning.endswith("Watched tests the rules")


def test_a_game_whose_observation_no_network_can_take_is_given_up_and_no_other(caplog: pytest.LogCaptureFixture):
    settings = Settings.model_validate({"selfplay": FOUR_AT_A_TIME})
    games = GamesInPlay(Relay(), settings, seeds=itertools.count())
    assert not games.give_up_impossible()
    games.search.trees.observations[2] = np.nan
    assert games.give_up_impossible()
    games.answer(None, evaluator=None)
    finished: list[int] = []
    while len(finished) < 12:
        finished += [int(each.games["id"][0]) for each in games.run(Uniform(1))]
    assert set(range(8)) - set(finished) == {2}
    assert "observe() returns numbers beyond 65504, or NaN; plyzero check tests.helpers.toys:Relay" in caplog.text


def test_rules_that_show_infinite_numbers_are_blamed_and_not_the_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    run = small_run(tmp_path / "r", "tests.helpers.toys:InfiniteNumbers")
    add_model(run)
    with ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch:
        games = EvaluatedGames(run, itertools.count(), watch)
        games.refresh()
        with pytest.raises(
            UserError, match=r"InfiniteNumbers cannot be played: observe\(\) returns numbers beyond 65504"
        ):
            finished(games, 100)
    assert games.has_model
    assert "the model is no longer used" not in caplog.text


@pytest.mark.parametrize("first", [0, 100])
def test_rules_that_fail_again_and_again_end_the_worker_with_one_sentence(first):
    with pytest.raises(UserError, match=r"OSError: gone \(test_worker.py, line \d+, in \w+\); plyzero check .*Watched"):
        played(failing_rules("play", OSError("gone"), range(first, 10**6)), 1000, **FOUR_AT_A_TIME)


def test_a_worker_of_a_thousand_takes_its_intervals_from_the_heartbeat_of_the_trainer(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    writers: list[ReplayWriter] = []
    spread: list[float] = []

    def noted(*given: Any, **more: Any) -> ReplayWriter:
        writers.append(ReplayWriter(*given, **more))
        return writers[-1]

    monkeypatch.setattr(worker, "ReplayWriter", noted)
    monkeypatch.setattr(ModelWatch, "spread", lambda _, workers: spread.append(workers))
    heartbeat = Heartbeat(run.workers / "trainer.json")
    heartbeat.beat({"role": "trainer", "state": "training", "workers": 1000})
    with playing(run) as until:
        until(lambda: spread)
    assert (writers[0].seal_seconds, spread[0]) == (25, 1000)
