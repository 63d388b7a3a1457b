"""bench: what it says of a worker is what the worker does."""

import json
import time

import pytest

from plyzero.network.onnx_network import Network
from plyzero.run.directory import Run
from plyzero.run.segments import list_segments
from plyzero.search.evaluators import EvaluationBatch
from plyzero.selfplay import benchmark
from plyzero.trainer.export import untrained
from tests.helpers.cli import shown

SMALL = ("--blocks", "1", "--channels", "4")
PARTS = {"network", "search", "rules", "record", "other"}


def bench(*arguments: str) -> str:
    """What the command prints after one turn of a twentieth of a second."""
    measure, timed = benchmark.measure, benchmark.timed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "WARM_SECONDS", 0.1)
        patch.setattr(benchmark, "measure", lambda *given, **options: measure(*given, **options | {"seconds": 0.0}))
        patch.setattr(benchmark, "timed", lambda evaluate_for: timed(lambda _: evaluate_for(0.05)))
        return shown("bench", *arguments)


class Slow:
    """A network that takes a millisecond and a half for every batch."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.label = "slow"
        self.positions = 0

    def __call__(self, batch: EvaluationBatch):
        time.sleep(0.0015)
        self.positions += len(batch.observations)
        return self._network(batch)


def test_a_report_counts_what_was_done_and_its_shares_are_all_of_the_time(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benchmark, "WARM_SECONDS", 0.1)
    network, told = Slow(Network(untrained(run), run.game, label="x")), []
    report = benchmark.measure(run, network, seconds=2, on_progress=told.append)
    evaluations = (report["evaluations_per_second"] + report["ceiling_per_second"]) * report["slices"]
    assert network.positions >= 0.25 * evaluations > 0
    assert report["shares"].keys() == PARTS
    assert sum(report["shares"].values()) == pytest.approx(1, abs=0.001)
    assert all(share >= 0 for share in report["shares"].values())
    assert 0 < report["share_of_ceiling"] < 1.5
    low, middle, high = report["share_of_ceiling_quartiles"]
    assert low <= middle <= high
    assert report["simulations_per_second"] > report["positions_per_second"] > 0
    assert report["batch"] == run.settings.selfplay.parallel_games
    assert list(list_segments(run.segments))
    assert len(told) == 2 + report["slices"]


@pytest.mark.parametrize("game", ["tic-tac-toe", "examples.dots_and_boxes:DotsAndBoxes"])
def test_bench_prints_one_object(game: str):
    report = json.loads(bench(game, *SMALL, "-o", "selfplay.parallel_games=4", "--json"))
    assert report["version"] == 2
    assert report["parallel_games"] == 4
    assert report["network"] == "random weights, 1 x 4"


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
    text = bench("tic-tac-toe", "--net", str(path))
    assert "tic-tac-toe v1, mine.onnx, 64 parallel games" in text
    assert "worker relative to the network alone" in text


def test_bench_says_when_the_cache_and_not_the_network_evaluates_the_game(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benchmark, "MANY_HITS", -1)
    for limit, says in ((2, True), (-1, False)):
        monkeypatch.setattr(benchmark, "LITTLE_NETWORK", limit)
        text = bench("tic-tac-toe", *SMALL)
        assert ("so this is not the speed of the network. --no-cache measures without it." in text) == says
