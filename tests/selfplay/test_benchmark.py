"""bench: what it reports of a worker is what the worker of `train` does."""

import copy
import json
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.network.onnx_network import Network
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import Run, create_run, plan_run
from plyzero.run.segments import list_segments
from plyzero.search.evaluators import EvaluationBatch, Uniform
from plyzero.selfplay import benchmark
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.trainer.export import untrained
from tests.helpers.cli import plyzero, shown
from tests.helpers.clock import Clock
from tests.helpers.runs import small_run

SMALL = ("--blocks", "1", "--channels", "4")
PARTS = {"network", "search", "rules", "record", "other"}
COSTS = {"play": 0.001, "outcome": 0.001, "legal_actions": 0.003, "observe": 0.002, "network": 0.016}
"""Seconds of a call, in the games of `Costly`."""


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights are made here: a process that imports torch takes seconds."""
    monkeypatch.setattr("plyzero.commands.common.in_another_process", lambda function, *given: function(*given))


def bench(*arguments: str) -> str:
    """What the command prints after one turn of a twentieth of a second."""
    measure, timed = benchmark.measure, benchmark.timed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "WARM_SECONDS", 0.1)
        patch.setattr(benchmark, "measure", lambda *given, **options: measure(*given, **options | {"seconds": 0.0}))
        patch.setattr(benchmark, "timed", lambda evaluate_for: timed(lambda _: evaluate_for(0.05)))
        return shown("bench", *arguments)


def measured_run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Run, Network]:
    """The run and the network whose worker the command would measure."""
    given: list[tuple[Run, Network]] = []

    def measure(run: Run, network: Network, **_: object) -> None:
        given.append((run, network))
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark, "measure", measure)
    with pytest.raises((KeyboardInterrupt, AssertionError)):
        shown("bench", *arguments)
    return given[0]


class Slow:
    """A network that counts its positions and its batches, each of which takes 16 ms of a clock."""

    label, precision = "slow", "fp32"

    def __init__(self, network: Network, clock: Clock) -> None:
        self._network, self._clock = network, clock
        self.positions = self.batches = 0

    def __call__(self, batch: EvaluationBatch):
        self._clock.now += COSTS["network"]
        self.positions += len(batch.observations)
        self.batches += 1
        return self._network(batch)


class Costly(TicTacToe, version=1):
    """Rules that take known times of a clock, and count their calls; `legal_actions` asks for the outcome once."""

    clock = Clock()
    calls: ClassVar[Counter[str]] = Counter()

    def take(self, rule: str) -> None:
        self.calls[rule] += 1
        self.clock.now += COSTS[rule]

    def play(self, action: int):
        self.take("play")
        after = copy.copy(self)
        after.board = (*self.board[:action], self.to_play + 1, *self.board[action + 1 :])
        return after

    def legal_actions(self):
        self.take("legal_actions")
        return super().legal_actions()

    def outcome(self):
        self.take("outcome")
        return super().outcome()

    def observe(self):
        self.take("observe")
        return super().observe()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the worker that is measured, and of `Costly`."""
    clock = Clock()
    monkeypatch.setattr(Costly, "clock", clock)
    monkeypatch.setattr(Costly, "calls", Counter())
    monkeypatch.setattr(benchmark, "time", SimpleNamespace(perf_counter=lambda: clock(), process_time=clock))
    return clock


@pytest.fixture
def costly(tmp_path: Path, clock: Clock) -> Iterator[tuple[benchmark.MeasuredWorker, Slow, Clock]]:
    run = create_run(tmp_path / "costly", GameSpec("costly", Costly()), options=["selfplay.parallel_games=4"])
    network = Slow(Network(untrained(run), run.game, label="x"), clock)
    with ReplayWriter(run, worker="bench", incarnation="00000000") as writer:
        yield benchmark.MeasuredWorker(run, network, writer), network, clock


def test_shares_are_those_of_what_each_part_has_cost(costly: tuple[benchmark.MeasuredWorker, Slow, Clock]):
    worker, network, _ = costly
    worker.play(0.5)
    worker.reset_clocks()
    batches = network.batches
    Costly.calls.clear()
    turn = benchmark.timed(worker.play)
    elapsed = turn.cpu_seconds
    shares = worker.shares([turn])
    spent = sum(COSTS[rule] * calls for rule, calls in Costly.calls.items())
    assert shares["rules"] == pytest.approx(spent / elapsed, abs=1e-4)
    assert shares["network"] == pytest.approx((network.batches - batches) * COSTS["network"] / elapsed, abs=1e-4)
    assert shares["rules"] + shares["network"] == pytest.approx(1, abs=1e-3)
    assert 0.1 < shares["network"] < 0.9


def test_games_are_at_different_plies_from_the_beginning_and_later_ones_have_the_usual_opening(run: Run):
    settings = run.settings.model_copy(
        update={"selfplay": run.settings.selfplay.model_copy(update={"opening_plies": 0})}
    )
    start = load_game("connect-four").start
    plies = GamesInPlay(start, settings, seeds=count(), spread=20).plies
    assert len(plies) == 8
    assert len(set(plies)) > 3
    assert max(plies) > 8
    games = GamesInPlay(start, settings, seeds=count(), spread=20)
    found = []
    while len(found) < 16:
        found += games.run(Uniform(start.num_actions))
    assert max(int(each.games["opening_plies"][0]) for each in found[:4]) > 0
    assert not any(each.games["opening_plies"][0] for each in found if each.games["id"][0] >= 8)


def test_each_rule_has_its_share_the_largest_first(costly: tuple[benchmark.MeasuredWorker, Slow, Clock]):
    worker, _, clock = costly
    worker.play(0.5)
    began, methods = clock(), dict(vars(Costly))
    Costly.calls.clear()
    rules = benchmark.time_rules(worker, Costly(), 2.0)
    elapsed = clock() - began
    nested = COSTS["outcome"] * Costly.calls["legal_actions"] / elapsed  # each of them asks for the outcome
    expected = {rule: COSTS[rule] * calls / elapsed for rule, calls in Costly.calls.items()}
    expected["legal_actions"] += nested
    expected["outcome"] -= nested
    assert [*rules] == sorted(rules, key=lambda rule: -expected[rule])
    assert next(iter(rules)) == "legal_actions"
    assert rules == pytest.approx(expected, abs=1e-4)
    assert dict(vars(Costly)) == methods  # nothing is timed any longer


def test_a_report_counts_what_was_done_and_its_shares_are_all_of_the_time(run: Run, clock: Clock):
    network, heard = Slow(Network(untrained(run), run.game, label="x"), clock), []
    report = benchmark.measure(run, network, seconds=2, on_progress=heard.append)
    evaluations = (report["evaluations_per_second"] + report["ceiling_per_second"]) * report["slices"]
    assert network.positions >= 0.25 * evaluations > 0
    assert report["shares"].keys() == PARTS
    assert sum(report["shares"].values()) == pytest.approx(1, abs=0.001)
    assert report["shares"]["network"] == pytest.approx(1, abs=0.001)
    assert report["rules"] == {}
    assert 0 < report["share_of_ceiling"] < 1.5
    low, middle, high = report["share_of_ceiling_quartiles"]
    assert low <= middle <= high
    assert report["simulations_per_second"] > report["positions_per_second"] > 0
    assert report["batch"] == run.settings.selfplay.parallel_games
    assert list(list_segments(run.segments))
    assert len(heard) == 2 + report["slices"]


@pytest.mark.parametrize("game", ["tic-tac-toe", "examples.dots_and_boxes:DotsAndBoxes", "pig"])
def test_what_is_measured_has_the_settings_of_train(game: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    run, network = measured_run(monkeypatch, game)
    assert run.settings == plan_run(tmp_path / "r", run.game).settings
    assert (network.label, network.fence) == ("random weights, 3 x 32", 1)


@pytest.mark.parametrize(("flags", "precision"), [({"avx512_vnni"}, "int8"), (set(), "fp32")])
def test_the_network_is_loaded_as_a_worker_would(flags: set[str], precision: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.network.onnx_network.cpu_flags", lambda: flags)
    _, network = measured_run(monkeypatch, "tic-tac-toe")
    assert network.precision == precision


def test_options_and_those_of_earlier_versions_change_settings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.network.onnx_network.cpu_flags", lambda: {"avx512_vnni"})
    given = (*SMALL, "--precision", "fp32", "--no-cache", "--preset", "gpu", "-o", "selfplay.simulations=8")
    run, network = measured_run(monkeypatch, "tic-tac-toe", *given)
    assert (run.settings.network.blocks, run.settings.network.channels, network.precision) == (1, 4, "fp32")
    selfplay = run.settings.selfplay
    assert (selfplay.cache_mb, selfplay.parallel_games, selfplay.simulations) == (0, 512, 8)


def test_a_run_is_measured_with_its_settings_and_its_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from plyzero.commands.machine import publish_first

    trained = small_run(tmp_path / "trained")
    publish_first(trained.root)
    run, network = measured_run(monkeypatch, "tic-tac-toe", "--net", str(trained.root), "-o", "selfplay.threads=2")
    assert run.settings.selfplay == trained.settings.selfplay.model_copy(update={"threads": 2})
    assert network.label.startswith("000001-000000001-")
    refused = plyzero("bench", "tic-tac-toe", "--net", str(trained.root), "--preset", "gpu", code=2)
    assert "expected no --preset beside the run" in refused.stderr


@pytest.mark.parametrize("game", ["tic-tac-toe", "examples.dots_and_boxes:DotsAndBoxes"])
def test_bench_prints_one_object(game: str):
    report = json.loads(bench(game, *SMALL, "-o", "selfplay.parallel_games=4", "--json"))
    assert report["version"] == 2
    assert report["parallel_games"] == 4
    assert report["network"] == "random weights, 1 x 4"
    assert bool(report["rules"]) == (game != "tic-tac-toe")
    assert report["bot_evaluations_per_cpu_second"] > 0


def test_bench_through_an_evaluator(run: Run, tmp_path):
    path = tmp_path / "mine.onnx"
    path.write_bytes(untrained(run))
    report = json.loads(bench("tic-tac-toe", "--net", str(path), "--evaluator", "--json"))
    assert (report["evaluator"], report["share_of_ceiling_cpu"]) == (True, None)
    assert report["batch"] == report["parallel_games"] // 2
    assert report["evaluations_per_second"] > 0


def test_bench_of_a_model_names_it_and_shows_a_table(run: Run, tmp_path):
    path = tmp_path / "mine.onnx"
    path.write_bytes(untrained(run))
    text = bench("tic-tac-toe", "--net", str(path), "--precision", "fp32")
    assert "tic-tac-toe v1, mine.onnx, fp32, 64 parallel games" in text
    assert "64 simulations for 25% of the moves, 16 for the others" in text
    assert "worker relative to the network alone" in text
    assert "times as many positions" in text
    assert "one core of this machine makes" in text


def test_bench_says_when_the_cache_and_not_the_network_evaluates_the_game(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benchmark, "MANY_HITS", -1)
    for limit, says in ((2, True), (-1, False)):
        monkeypatch.setattr(benchmark, "LITTLE_NETWORK", limit)
        text = bench("tic-tac-toe", *SMALL)
        assert ("so this is not the speed of the network. --no-cache measures without it." in text) == says
