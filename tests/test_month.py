"""A run of 30 days: what reads its metrics, of hundreds of megabytes, costs per new line and misses nothing."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from plyzero.kits.experiments.tasks.train import curve
from plyzero.kits.web.curves import MAX_POINTS, RunSeries
from plyzero.ops.status import snapshot
from plyzero.ops.supervisor import Messages, Observer
from plyzero.run.directory import Run
from plyzero.run.metrics import append_line
from plyzero.run.view import RunView
from tests.helpers.runs import small_run

MODELS = 30 * 24 * 60 * 3  # one every 20 s
GROWTH = 4 << 20
"""Memory that reading one more line may need, in bytes: some parts of a file."""


def line_of(step: int, **more: object) -> dict[str, object]:
    line = {"version": 1, "model": f"000001-{step:09d}-0123abcd.onnx", "policy_loss": 1.0, "value_loss": 0.5}
    rates = {"step": 1, "seconds": 20.0, "games": 3, "positions": 90}
    return line | {name: rate * step for name, rate in rates.items()} | {"time": 1.7e9 + 20 * step, **more}


def write_month(path: Path, first: int, **more: object) -> int:
    """Write a line for each model from the step `first` on; return the size of the file in bytes."""
    with path.open("a") as file:
        file.writelines(json.dumps(line_of(first + each, **more)) + "\n" for each in range(MODELS))
    return path.stat().st_size


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = small_run(tmp_path_factory.mktemp("month") / "r")
    scores = {"random": [20, 0, 0], "mcts:100": [10, 0, 10]}
    size = write_month(run.metrics / "trainer-000001.jsonl", 1, more="x" * 2200)
    size += write_month(run.metrics / "rating.jsonl", 1, scores=scores, more="x" * 200)
    assert size > 300e6
    return run


def growth(call: Callable[[], object]) -> int:
    """Return the largest number of bytes that a call needs."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.slow
def test_train_status_and_the_dashboard_read_each_line_of_a_month_once(run: Run):
    observer, view, series = Observer(run, began=0.0, notify=Messages(print)), RunView(run), RunSeries(RunView(run))
    assert growth(observer.new_reports) < GROWTH  # what was there before `train` is passed over
    series.refresh()
    found = series.since(0)
    assert len(found["learning"]["step"]) == len(found["ratings"]["mcts:100"]["step"]) == MAX_POINTS
    assert found["learning"]["step"][0] == found["ratings"]["mcts:100"]["step"][0] == 1
    for step in (MODELS + 1, MODELS + 2):
        append_line(run.metrics / "trainer-000001.jsonl", line_of(step))
        append_line(run.metrics / "rating.jsonl", line_of(step, scores={"random": [20, 0, 0]}))
        reports = observer.new_reports()
        assert [report.fields["step"] for report in reports] == [step]
        assert growth(series.refresh) < GROWTH
        assert growth(lambda: snapshot(view)) < GROWTH
        assert series.newest["step"] == snapshot(view)["rating"]["step"] == step
    assert reports[0].positions_per_second == 4.5
    assert growth(observer.new_reports) < GROWTH


@pytest.mark.slow
def test_the_table_of_an_experiment_has_every_model_of_a_month(run: Run):
    rows = curve(run)
    steps = [row["step"] for row in rows]
    assert steps == sorted(set(steps))
    assert len(steps) >= MODELS
    assert (rows[MODELS - 1]["seconds"], rows[MODELS - 1]["score"]) == (20.0 * MODELS, 0.5)
