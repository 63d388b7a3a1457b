"""Averages over runs: known answers on small tables, runs of different lengths, and what is missing."""

import json
from pathlib import Path

import pytest

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks.average import MAX_STEPS, average
from plyzero.kits.experiments.tasks.intervals import difference_of, mean_of, mean_score_of, score_variance
from plyzero.kits.experiments.tasks.results import AVERAGE_COLUMNS, AVERAGE_SCORES
from plyzero.play.scores import wilson_interval
from tests.helpers.experiments import rows_of, write_curve, write_scores

T_OF_1 = 12.706204736174694
"""The 97.5 % quantile of Student's t with one degree of freedom, from a table: tan(0.475 π)."""


def write_run(run: str, group: str, curve: dict[int, float], scores: dict[str, tuple[int, int, int]], **columns: dict):
    """Write the tables of a run: step -> policy loss, and opponent -> wins, draws, losses."""
    rows = [
        {"step": step, "policy_loss": loss} | {name: values[step] for name, values in columns.items() if step in values}
        for step, loss in curve.items()
    ]
    write_curve(run, group, *rows)
    write_results(run, group, scores)


def write_results(run: str, group: str, scores: dict[str, tuple[int, int, int]]):
    rows = []
    for opponent, (won, drawn, lost) in scores.items():
        games, score = won + drawn + lost, (won + drawn / 2) / (won + drawn + lost)
        low, high = wilson_interval(score, games)
        counts = {"games": games, "wins": won, "draws": drawn, "losses": lost}
        rows.append({"opponent": opponent, "score": score, "low": low, "high": high, **counts})
    write_scores(run, group, *rows)


def run_average(*runs: str, first: int = 0) -> list[str]:
    said: list[str] = []
    average(Path(), Path("average"), report=said.append, runs=runs, first=first)
    return said


def test_a_mean_has_the_interval_of_students_t():
    # mean 2, sd 1, n 3, t = 4.302653 with two degrees of freedom: 2 ± 4.302653 / √3
    assert mean_of([1, 2, 3]) == pytest.approx((3, 2, 1, 2 - 2.484138, 2 + 2.484138), abs=1e-6)
    assert mean_of([0.25]) == (1, 0.25, None, None, None)
    assert mean_of([]) == (0, None, None, None, None)


def test_a_mean_score_has_the_interval_of_wilson_with_students_t():
    # mean 0.5, variance 0.04 / 3, as a share has in 75 / 4 games; t = 4.302653
    expected = wilson_interval(0.5, 18.75, 4.302653)
    assert mean_score_of([0.3, 0.5, 0.7]) == pytest.approx((3, 0.5, 0.2, *expected), abs=1e-6)
    close = [0.699, 0.7, 0.701]
    assert mean_score_of(close)[3:] == pytest.approx(mean_of(close)[3:], abs=1e-5)  # far from 0 and 1 it is Student's
    assert mean_score_of([0.25]) == (1, 0.25, None, None, None)


def test_a_difference_has_the_intervals_of_both_means_by_newcombe_with_welchs_degrees_of_freedom():
    # variances 1 and 4 of 3 and 3: s² = 1/3 + 4/3, degrees of freedom (5/3)² / ((1/3)²/2 + (4/3)²/2) = 50/17
    # t(2.941176) = 3.218369 lies between 4.302653 for 2 and 3.182446 for 3
    value, low, high = difference_of([0.501, 0.502, 0.503], [0.502, 0.504, 0.506])
    assert value == pytest.approx(-0.002)
    assert (low + high) / 2 == pytest.approx(-0.002, abs=1e-5)
    assert (high - low) / 2 / (5 / 3) ** 0.5 == pytest.approx(3.2183e-3, rel=1e-3)
    assert difference_of([0.5], [0.25, 0.75]) == (0, None, None)


def test_the_interval_of_a_score_is_within_what_scores_can_be():
    several = ([0.0, 0.0], [0.0, 1.0], [0.9, 1.0], [0.18, 0.95], [0.999, 1.0, 1.0], [1.0, 1.0])
    for scores in several:
        mean = mean_score_of(scores, own := [0.01] * len(scores))
        assert 0 <= mean.low <= mean.mean <= mean.high <= 1
        assert mean.low < mean.high
        for others in several:
            value, low, high = difference_of(scores, others, own, [0.01] * len(others))
            assert -1 <= low <= value <= high <= 1


def test_runs_of_equal_scores_are_not_taken_to_be_certain():
    own = [0.01, 0.03]  # mean 0.02, variances of each score by its games
    expected = wilson_interval(0.7, 0.7 * 0.3 / (0.02 / 2), T_OF_1)
    assert mean_score_of([0.7, 0.7], own) == pytest.approx((2, 0.7, 0, *expected))
    assert mean_score_of([0.6, 0.8], own)[3:] == pytest.approx(expected)  # by their scores 0.02, too
    assert mean_score_of([0.3, 0.7], own) == mean_score_of([0.3, 0.7])  # a floor, not a sum
    value, low, high = difference_of([0.95, 0.95], [0.75, 0.75], own, own)
    assert value == pytest.approx(0.2)
    assert low < 0 < high
    assert mean_score_of([0.95, 0.95])[3:] == (None, None)  # nobody says how exact they are
    assert difference_of([0.5, 0.5], [0.25, 0.25]) == (0.25, None, None)


def test_the_variance_of_a_score_follows_from_its_interval():
    assert score_variance(*wilson_interval(0.5, 10_000)) == pytest.approx(0.25 / 10_000, rel=1e-3)
    assert score_variance(*wilson_interval(1.0, 10)) > 0.004
    assert score_variance(None, None) == score_variance(0.5, None) == 0


def test_equal_scores_of_few_games_have_a_wide_interval():
    for run in ("run-00", "run-01"):
        scores = {"score": {5: 0.95}, "score_low": {5: 0.72}, "score_high": {5: 0.99}}
        write_run(run, "", {5: 1.0}, {"random": (9, 1, 0)}, **scores)
    run_average("run-00", "run-01")
    (row,), (step,) = rows_of("average/eval.csv"), rows_of("average/train.csv")
    for found, variance in ((row, score_variance(*wilson_interval(0.95, 10))), (step, (0.27 / 3.92) ** 2)):
        near = min(0.95, 1 - (variance / 2) ** 0.5)
        expected = wilson_interval(0.95, near * (1 - near) / (variance / 2), T_OF_1)
        assert (float(found["score_low"]), float(found["score_high"])) == pytest.approx(expected, abs=1e-3)
    assert (row["score"], row["score_sd"]) == ("0.95", "0.0")
    assert (step["policy_loss_sd"], step["policy_loss_low"]) == ("0.0", "")


def test_curves_of_different_lengths_are_interpolated_and_never_extrapolated():
    write_run("run-00", "", {0: 1.0, 100: 0.0}, {"random": (2, 0, 0)})
    write_run("run-01", "", {50: 2.0, 200: 0.5}, {"random": (1, 0, 1)})
    run_average("run-00", "run-01")
    rows = {int(row["step"]): row for row in rows_of("average/train.csv")}
    assert (min(rows), max(rows)) == (0, 200)
    assert len(rows) == MAX_STEPS
    for step, row in rows.items():
        values = ([1 - step / 100] if step <= 100 else []) + ([2 - 0.01 * (step - 50)] if step >= 50 else [])
        assert int(row["policy_loss_n"]) == len(values)
        assert float(row["policy_loss"]) == pytest.approx(sum(values) / len(values), abs=1e-6)
        if len(values) == 2:
            sd = abs(values[0] - values[1]) / 2**0.5
            assert float(row["policy_loss_sd"]) == pytest.approx(sd, abs=1e-6)
            half = T_OF_1 * sd / 2**0.5
            assert float(row["policy_loss_high"]) - float(row["policy_loss"]) == pytest.approx(half, abs=1e-5)
        else:
            assert row["policy_loss_sd"] == row["policy_loss_low"] == row["policy_loss_high"] == ""
    assert {len(row) for row in rows.values()} == {len(AVERAGE_COLUMNS)}


def test_scores_are_interpolated_between_the_rows_that_have_them():
    losses = dict.fromkeys((10, 12, 14, 16), 1.0)
    write_run("run-00", "", losses, {"random": (1, 0, 1)}, score={12: 0.5, 16: 0.7}, score_low={12: 0.1, 16: 0.2})
    run_average("run-00")
    rows = rows_of("average/train.csv")
    assert [int(row["step"]) for row in rows] == [10, 11, 12, 13, 14, 15, 16]
    assert [row["score"] for row in rows] == ["", "", "0.5", "0.55", "0.6", "0.65", "0.7"]
    assert [row["score_n"] for row in rows] == ["0", "0", *["1"] * 5]
    assert {row["score_low"] for row in rows} == {""}  # no interval of one run, and none of its own


def test_groups_are_averaged_by_themselves():
    write_run("run-00", "c=1", {5: 1.0}, {"random": (1, 0, 0)})
    write_run("run-01", "c=2", {7: 3.0}, {"random": (0, 0, 1)})
    run_average("run-00", "run-01")
    curves = [(row["group"], row["step"], row["policy_loss"]) for row in rows_of("average/train.csv")]
    assert curves == [("c=1", "5", "1.0"), ("c=2", "7", "3.0")]
    assert [(row["group"], row["score"]) for row in rows_of("average/eval.csv")] == [("c=1", "1.0"), ("c=2", "0.0")]


def test_scores_have_means_of_runs_and_sums_of_games_without_other_runs():
    write_run("run-00", "", {5: 1.0}, {"random": (8, 0, 2), "mcts:50": (4, 2, 4)})
    write_run("run-01", "", {5: 1.0}, {"random": (10, 0, 0), "mcts:50": (6, 2, 2), "run-00": (5, 0, 5)})
    run_average("run-00", "run-01")
    first, second = rows_of("average/eval.csv")
    assert [*first] == [*AVERAGE_SCORES]
    columns = ("opponent", "runs", "score", "games", "wins", "draws", "losses")
    assert [first[name] for name in columns] == ["random", "2", "0.9", "20", "18", "0", "2"]
    assert [second[name] for name in columns] == ["mcts:50", "2", "0.6", "20", "10", "4", "6"]
    assert float(first["score_sd"]) == pytest.approx(0.2 / 2**0.5, abs=1e-6)
    expected = wilson_interval(0.9, 0.9 * 0.1 / 0.1**2, T_OF_1)
    assert (float(first["score_low"]), float(first["score_high"])) == pytest.approx(expected, abs=1e-6)


def test_runs_without_tables_are_named():
    write_run("run-00", "", {5: 1.0}, {"random": (1, 0, 1)})
    write_results("run-02", "", {"random": (1, 0, 0)})
    said = run_average("run-00", "run-01", "run-02")
    missing = {"train": ["run-01", "run-02"], "evaluate": ["run-01"]}
    assert json.loads(Path("average/missing.json").read_text()) == missing
    lacks = ["run-01 has no train/train.csv", "run-02 has no train/train.csv", "run-01 has no evaluate/eval.csv"]
    assert said == [f"{each}; the averages are without it" for each in lacks]
    assert [row["runs"] for row in rows_of("average/eval.csv")] == ["2"]


def test_only_the_first_runs_count_if_so_many_were_asked_for():
    for run, score in (("run-00", (1, 0, 0)), ("run-01", (1, 0, 0)), ("run-02", (0, 0, 1))):
        write_run(run, "", {5: 1.0}, {"random": score})
    assert run_average("run-00", "run-01", "run-02", "run-03", first=2) == []
    assert [(row["runs"], float(row["score"])) for row in rows_of("average/eval.csv")] == [("2", 1.0)]
    assert json.loads(Path("average/missing.json").read_text()) == {"train": [], "evaluate": []}


def test_without_a_table_there_is_no_average():
    with pytest.raises(UserError, match=r"no run has train/train.csv or evaluate/eval.csv, among run-00, run-01"):
        run_average("run-00", "run-01")
    assert not Path("average").exists()


def test_a_table_with_other_columns_is_refused():
    Path("run-00/train").mkdir(parents=True)
    Path("run-00/train/train.csv").write_text("step,loss\n1,2\n")
    with pytest.raises(UserError, match=r"run-00/train/train.csv has no column run; it has step, loss"):
        run_average("run-00")
