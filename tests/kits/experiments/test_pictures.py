"""The pictures: made from tables alone, of the declared size, with what the tables say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks import pictures
from plyzero.kits.experiments.tasks.average import average
from plyzero.kits.experiments.tasks.pictures import average_plots, eval_plots, train_plots
from tests.helpers.experiments import write_curve, write_scores

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are written."""
    found: list[Any] = []
    write = pictures.write_picture
    monkeypatch.setattr(pictures, "write_picture", lambda figure, path: (found.append(figure), write(figure, path)))
    return found


def check_size(path: str, figure: Any):
    with Image.open(path) as picture:
        picture.load()
        width, height = figure.get_size_inches() * figure.dpi
        assert (picture.format, picture.size) == ("PNG", (int(width), int(height)))


def test_the_curves_of_a_training_are_those_columns_that_have_numbers(figures: list[Any]):
    write_curve(
        "run-00",
        "g",
        {"step": 10, "policy_loss": 2.0, "replay_ratio": 1.0},
        {"step": 20, "policy_loss": 1.5, "replay_ratio": 2.0, "score": 0.5, "score_low": 0.25, "score_high": 0.75},
        {"step": 30, "policy_loss": 1.0, "replay_ratio": 3.0, "score": 1.0, "score_low": 0.75, "score_high": 1.0},
    )
    train_plots(Path("run-00"), Path("run-00/train-plots"), report=print)
    (figure,) = figures
    assert [chart.get_ylabel() for chart in figure.axes] == ["policy_loss", "score", "replay_ratio"]
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[10, 2], [20, 1.5], [30, 1]]
    assert [len(chart.collections) for chart in figure.axes] == [0, 1, 0]  # the score has a band
    check_size("run-00/train-plots/train.png", figure)


def test_scores_are_plotted_from_top_to_bottom_with_their_intervals(figures: list[Any]):
    strong, weak = {"score": 0.9, "low": 0.7, "high": 1.0}, {"score": 0.4, "low": 0.2, "high": 0.6}
    write_scores("run-00", "", {"opponent": "random", **strong}, {"opponent": "mcts:50", **weak})
    eval_plots(Path("run-00"), Path("run-00/eval-plots"), report=print)
    (figure,) = figures
    (chart,) = figure.axes
    assert [label.get_text() for label in chart.get_yticklabels()] == ["random", "mcts:50"]
    assert chart.yaxis_inverted()
    segments = np.array(chart.containers[0][2][0].get_segments())
    assert segments[:, :, 0] == pytest.approx(np.array([[0.7, 1.0], [0.2, 0.6]]))
    assert segments[:, :, 1].tolist() == [[0, 0], [1, 1]]
    check_size("run-00/eval-plots/eval.png", figure)


def test_averages_have_a_curve_for_each_group_and_a_band_only_of_several_runs(figures: list[Any]):
    for run, group, loss, score in (("run-00", "a", 2.0, 0.5), ("run-01", "a", 3.0, 0.7), ("run-02", "b", 3.0, 0.9)):
        write_curve(run, group, {"step": 10, "policy_loss": loss}, {"step": 20, "policy_loss": loss - 1})
        write_scores(run, group, {"opponent": "random", "score": score})
    average(Path(), Path("average"), report=print, runs=["run-00", "run-01", "run-02"])
    average_plots(Path(), Path("average-plots"), report=print)
    curve, score = figures
    (chart,) = curve.axes
    assert [(line.get_label(), line.get_ydata()[0]) for line in chart.lines] == [("a", 2.5), ("b", 3.0)]
    assert len(chart.collections) == 1
    (chart,) = score.axes
    lines = [container[0].get_xydata().tolist() for container in chart.containers]
    assert np.array(lines)[:, 0, 0] == pytest.approx([0.6, 0.9])
    check_size("average-plots/train.png", curve)
    check_size("average-plots/eval.png", score)


def test_averages_without_matches_have_only_curves(figures: list[Any]):
    write_curve("run-00", "", {"step": 10, "policy_loss": 2.0})
    average(Path(), Path("average"), report=print, runs=["run-00"])
    average_plots(Path(), Path("average-plots"), report=print)
    assert [path.name for path in Path("average-plots").iterdir()] == ["train.png"]


def test_what_is_missing_is_said():
    with pytest.raises(UserError, match=r"cannot read run-00/train/train.csv: No such file .*; run the task"):
        train_plots(Path("run-00"), Path("p"), report=print)
    with pytest.raises(UserError, match=r"cannot read average/train.csv"):
        average_plots(Path(), Path("p"), report=print)
    write_scores("run-00", "")
    with pytest.raises(UserError, match=r"run-00/evaluate/eval.csv has no rows"):
        eval_plots(Path("run-00"), Path("p"), report=print)
    write_curve("run-00", "", {"step": 10})
    with pytest.raises(UserError, match=r"expected a number in one of policy_loss, .* but all are empty"):
        train_plots(Path("run-00"), Path("p"), report=print)
    assert not Path("p").exists()
