"""Effects of groups of runs: means, differences to the baseline, and what is left out."""

import math
from pathlib import Path
from typing import Any

import pytest

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks.effects import COLUMNS, effects
from plyzero.play.scores import wilson_interval
from tests.helpers.experiments import rows_of, write_curve, write_scores


def write_run(run: str, group: str, scores: dict[str, float], *, last: tuple[int, float] | None = None):
    write_scores(run, group, *({"opponent": name, "score": score} for name, score in scores.items()))
    if last:
        step, score = last
        write_curve(run, group, {"step": 1, "score": 0.1}, {"step": step - 1, "score": score}, {"step": step})


def run_effects(*runs: str, **options: Any) -> tuple[dict[str, dict[str, str]], str, list[str]]:
    said: list[str] = []
    effects(Path(), Path("effects"), report=said.append, runs=runs, **options)
    rows = {row["group"]: row for row in rows_of("effects/effects.csv")}
    return rows, Path("effects/effects.md").read_text(), said


def test_equal_scores_of_few_games_are_no_certain_effect():
    for run, group, score in (("a", "old", 0.8), ("b", "old", 0.8), ("c", "new", 0.9), ("d", "new", 0.9)):
        row = {"opponent": "random", "score": score, "low": 0.5, "high": 0.892}
        write_scores(run, group, row, row | {"opponent": "mcts:50"})
    rows, _, _ = run_effects(*"abcd", groups=["old", "new"])
    # Each score has the variance (0.392 / 3.92)² / 2, the mean of two half of it: as in 0.16 / 0.0025 games
    expected = wilson_interval(0.8, 64, 12.706205)  # t(1)
    assert (float(rows["old"]["score_low"]), float(rows["old"]["score_high"])) == pytest.approx(expected, abs=1e-4)
    low, high = (float(rows["new"][f"difference_{end}"]) for end in ("low", "high"))
    assert -0.3 < low < 0 < 0.1 < high < 0.4


def test_a_group_has_the_mean_of_its_runs_and_its_difference_to_the_baseline():
    for number, (a, b) in enumerate([(0.2, 0.4), (0.4, 0.6), (0.6, 0.8)]):  # means 0.3, 0.5, 0.7
        write_run(f"run-{2 * number:02d}", "old", {"random": a, "mcts:50": b}, last=(100, 0.5))
        scores = {"random": a + 0.2, "mcts:50": b + 0.2, "run-00": 0.0}  # means 0.5, 0.7, 0.9
        write_run(f"run-{2 * number + 1:02d}", "new", scores, last=(200 + number, 0.8 + number / 10))
    rows, text, _ = run_effects(*(f"run-{number:02d}" for number in range(6)), groups=["old", "new"])
    old, new = rows["old"], rows["new"]
    assert [*old] == [*COLUMNS]
    assert (old["runs"], old["score"], old["score_sd"]) == ("3", "0.5", "0.2")
    # variance 0.04 / 3, as a share has in 18.75 games; t(2) = 4.302653
    expected = wilson_interval(0.5, 18.75, 4.302653)
    assert (float(old["score_low"]), float(old["score_high"])) == pytest.approx(expected, abs=1e-4)
    assert (old["difference"], old["difference_low"], old["difference_high"]) == ("", "", "")
    assert (new["score"], new["difference"]) == ("0.7", "0.2")
    # equal variances of 3 and 3 runs, so 4 degrees of freedom: t(4) = 2.776445
    (low, high), (its_low, its_high) = (wilson_interval(p, p * (1 - p) * 75, 2.776445) for p in (0.5, 0.7))
    expected = 0.2 - math.hypot(0.7 - its_low, high - 0.5), 0.2 + math.hypot(its_high - 0.7, 0.5 - low)
    assert (float(new["difference_low"]), float(new["difference_high"])) == pytest.approx(expected, abs=1e-4)
    assert (old["final_score"], old["last_step"]) == ("0.5", "100.0")
    assert (new["final_score"], new["last_step"]) == ("0.9", "201.0")
    assert "| old | 3 | 0.500 | 0.200 | 0.148 to 0.852 | baseline |  | 0.500 | 100 |\n" in text
    assert "| new | 3 | 0.700 | 0.200 | 0.238 to 0.946 | +0.200 | -0.231 to +0.539 | 0.900 | 201 |\n" in text
    assert "Left out" not in text
    assert [*run_effects(*(f"run-{number:02d}" for number in range(6)), groups=["new", "old"])[0]] == ["new", "old"]


def test_groups_of_one_run_have_no_intervals():
    write_run("run-00", "a", {"random": 0.25})
    write_run("run-01", "b", {"random": 0.75})
    rows, text, _ = run_effects("run-00", "run-01")
    filled = {group: [name for name, cell in row.items() if cell] for group, row in rows.items()}
    assert filled == {"a": ["group", "runs", "score"], "b": ["group", "runs", "score", "difference"]}
    assert rows["b"]["difference"] == "0.5"
    assert "| b | 1 | 0.750 |  |  | +0.500 |  |  |  |\n" in text


def test_runs_without_scores_are_named_below_the_table():
    write_run("run-00", "a", {"random": 0.25})
    write_run("run-02", "b", {"run-00": 0.5})  # no fixed opponent
    rows, text, said = run_effects("run-00", "run-01", "run-02", title="a sweep")
    assert [*rows] == ["a"]
    assert text.startswith("# a sweep\n\n|")
    assert text.endswith("Left out, because they have no scores: run-01, run-02.\n")
    assert said[0] == "run-01 has no scores in evaluate/eval.csv; it is left out"


def test_without_scores_of_the_baseline_there_is_no_table():
    write_run("run-00", "a", {"random": 0.25})
    with pytest.raises(UserError, match="no run of the baseline c has scores, to which the others are compared"):
        run_effects("run-00", groups=["c", "a"])
    with pytest.raises(UserError, match=r"no run has scores in evaluate/eval.csv, among run-01"):
        run_effects("run-01")
