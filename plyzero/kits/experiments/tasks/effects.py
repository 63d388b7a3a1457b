"""The task that estimates effects: the difference of each group of runs to a baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks.intervals import difference_of, mean_of, mean_score_of, score_variance
from plyzero.kits.experiments.tasks.results import (
    EVAL_COLUMNS,
    EVAL_TABLE,
    TRAIN_COLUMNS,
    TRAIN_TABLE,
    Cell,
    Row,
    first_seen,
    is_run,
    number,
    read_rows,
    rounded,
    write_table,
    write_text,
)

COLUMNS: Final = (
    "group",
    "runs",
    "score",
    "score_sd",
    "score_low",
    "score_high",
    "difference",
    "difference_low",
    "difference_high",
    "final_score",
    "last_step",
)
"""Columns of effects.csv."""


class _Run(NamedTuple):
    """The compared figures of a run.

    score:       the mean of its scores against all fixed opponents.
    variance:    the variance of this score, from its games.
    final_score: the last score of its training; None without a score.
    last_step:   the last step of its training; None without a table.
    """

    group: str
    score: float
    variance: float
    final_score: float | None
    last_step: float | None


def effects(
    inputs: Path,
    out: Path,
    *,
    report: Callable[[str], None],
    runs: Sequence[str],
    groups: Sequence[str] = (),
    title: str = "effects",
) -> None:
    """Write effects.csv and effects.md: the mean score of each group, and its difference to the baseline.

    Scores have 95 % intervals by Student's t, differences by Welch's t; one run has no interval. The variance between
    runs is at least the variance of their games.

    runs:   directories of runs in `inputs`; runs without scores are listed below the table.
    groups: their groups in the order of the table, the baseline first; () = in the order of the runs.
    title:  the title above the table.

    Raises UserError if no run of the baseline has scores.
    """
    found = {name: _read(inputs / name) for name in first_seen(runs)}
    missing = [name for name, run in found.items() if run is None]
    for name in missing:
        report(f"{name} has no scores in {EVAL_TABLE}; it is left out")
    measured = [run for run in found.values() if run is not None]
    if not measured:
        raise UserError(f"no run has scores in {EVAL_TABLE}, among {', '.join(missing) or 'none'}; evaluate one first")
    names = first_seen([*groups, *(run.group for run in measured)])
    members = {group: [run for run in measured if run.group == group] for group in names}
    baseline = names[0]
    if not members[baseline]:
        raise UserError(f"no run of the baseline {baseline} has scores, to which the others are compared")
    others = {group: None if group == baseline else members[baseline] for group in names}
    rows = [_row(group, members[group], others[group]) for group in names if members[group]]
    write_table(out / "effects.csv", COLUMNS, rows)
    write_text(out / "effects.md", _describe(rows, title=title, baseline=baseline, missing=missing))


def _read(path: Path) -> _Run | None:
    """Return the figures of a run; None if it has no score against a fixed opponent."""
    if not (path / EVAL_TABLE).exists():
        return None
    rows = [row for row in read_rows(path / EVAL_TABLE, EVAL_COLUMNS) if not is_run(row["opponent"])]
    scores = _scores(rows)
    if not scores:
        return None
    curve = read_rows(path / TRAIN_TABLE, TRAIN_COLUMNS) if (path / TRAIN_TABLE).exists() else []
    measured = _scores(curve)
    variances = [score_variance(number(row["low"]), number(row["high"])) for row in rows]
    return _Run(
        rows[0]["group"],
        fmean(scores),
        sum(variances) / len(scores) ** 2,
        final_score=measured[-1] if measured else None,
        last_step=number(curve[-1]["step"]) if curve else None,
    )


def _scores(rows: Sequence[Row]) -> list[float]:
    """Return the scores in rows that have one."""
    found = [number(row["score"]) for row in rows]
    return [score for score in found if score is not None]


def _row(group: str, runs: Sequence[_Run], others: Sequence[_Run] | None) -> dict[str, Cell]:
    """Return the row of a group. `others`: the runs of the baseline, None if the group is the baseline."""
    scores = [run.score for run in runs]
    variances = [run.variance for run in runs]
    mean = mean_score_of(scores, variances)
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    if others is not None:
        scores_of_others = [run.score for run in others]
        variances_of_others = [run.variance for run in others]
        difference, low, high = difference_of(scores, scores_of_others, variances, variances_of_others)
    final_scores = [run.final_score for run in runs if run.final_score is not None]
    last_steps = [run.last_step for run in runs if run.last_step is not None]
    return {
        "group": group,
        **mean.cells("score"),
        "difference": rounded(difference),
        "difference_low": rounded(low),
        "difference_high": rounded(high),
        "final_score": rounded(mean_of(final_scores).mean),
        "last_step": rounded(mean_of(last_steps).mean, 1),
    }


def _describe(rows: Sequence[Mapping[str, Cell]], *, title: str, baseline: str, missing: Sequence[str]) -> str:
    header = ["group", "runs", "mean score", "sd", "95 % interval", "difference", "95 % interval"]
    header += ["final score of training", "last step"]
    alignments = ["---", *("--:" for _ in header[1:])]
    lines = [f"# {title}", "", f"| {' | '.join(header)} |", f"|{'|'.join(alignments)}|"]
    for row in rows:
        cells = [
            str(row["group"]).replace("|", "\\|") or "(no name)",
            str(row["runs"]),
            _shown(row["score"]),
            _shown(row["score_sd"]),
            _interval(row["score_low"], row["score_high"]),
            "baseline" if row["group"] == baseline else _shown(row["difference"], "+.3f"),
            _interval(row["difference_low"], row["difference_high"], "+.3f"),
            _shown(row["final_score"]),
            _shown(row["last_step"], ".0f"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "The score of a run is the mean of its scores against all fixed opponents, in [0, 1]. Intervals of scores are "
        "by Student's t over runs, those of differences to the baseline by Welch's t, both within what scores can be; "
        "one run has none.",
    ]
    if missing:
        lines += ["", f"Left out, because they have no scores: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _shown(value: Cell, form: str = ".3f") -> str:
    return "" if value is None else format(value, form)


def _interval(low: Cell, high: Cell, form: str = ".3f") -> str:
    return "" if low is None else f"{_shown(low, form)} to {_shown(high, form)}"
