"""The task that averages over runs: means of their curves and of their scores, with 95 % intervals, for each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks.intervals import mean_of, mean_score_of, score_variance
from plyzero.kits.experiments.tasks.results import (
    AVERAGE_COLUMNS,
    AVERAGE_SCORES,
    AVERAGED,
    EVAL_COLUMNS,
    EVAL_TABLE,
    RESULTS,
    TRAIN_COLUMNS,
    TRAIN_TABLE,
    Cell,
    Row,
    is_run,
    number,
    read_rows,
    runs_of,
    write_json,
    write_table,
)

MAX_STEPS: Final = 100
"""Largest number of steps at which the curves of a group are averaged."""

ENDS: Final = ("score_low", "score_high")
"""Columns of train.csv with the interval of the score."""

Curve = Mapping[str, Sequence[tuple[float, float]]]
"""A run: column -> points (step, value), in the order of the steps."""


def average(inputs: Path, out: Path, *, report: Callable[[str], None], runs: Sequence[str], first: int = 0) -> None:
    """Write train.csv and eval.csv with the averages of each group, and missing.json with the runs without tables.

    runs:  directories of runs in `inputs`.
    first: number of these runs that are averaged; 0 = all.

    Raises UserError if no run has a table.
    """
    runs = runs_of(runs, first)
    missing = {
        "train": [run for run in runs if not (inputs / run / TRAIN_TABLE).exists()],
        "evaluate": [run for run in runs if not (inputs / run / EVAL_TABLE).exists()],
    }
    if len(missing["train"]) == len(missing["evaluate"]) == len(runs):
        raise UserError(f"no run has {TRAIN_TABLE} or {EVAL_TABLE}, among {', '.join(runs) or 'none'}; train one first")
    for kind, table in (("train", TRAIN_TABLE), ("evaluate", EVAL_TABLE)):
        for run in missing[kind]:
            report(f"{run} has no {table}; the averages are without it")
    curves = [read_rows(inputs / run / TRAIN_TABLE, TRAIN_COLUMNS) for run in runs if run not in missing["train"]]
    scores: list[Row] = []
    for run in runs:
        if run not in missing["evaluate"]:
            scores += read_rows(inputs / run / EVAL_TABLE, EVAL_COLUMNS)
    write_table(out / "train.csv", AVERAGE_COLUMNS, average_curves(curves))
    write_table(out / "eval.csv", AVERAGE_SCORES, average_scores(scores))
    write_json(out / "missing.json", missing)


def average_curves(runs: Iterable[Sequence[Row]]) -> Iterator[dict[str, Cell]]:
    """Yield the averaged rows of each group, at up to MAX_STEPS steps from its first to its last one.

    A run is included at the steps between its first and its last row with a number, interpolated where it has no row.
    """
    groups: dict[str, list[Curve]] = {}
    for rows in runs:
        if rows:
            curve = {name: _points(rows, name) for name in ["step", *AVERAGED, *ENDS]}
            groups.setdefault(rows[0]["group"], []).append(curve)
    for group, curves in groups.items():
        first = min(curve["step"][0][0] for curve in curves)
        last = max(curve["step"][-1][0] for curve in curves)
        for step in np.unique(np.linspace(first, last, MAX_STEPS).round()).tolist():
            row: dict[str, Cell] = {"group": group, "step": int(step)}
            own = []
            for each in curves:
                low, high = (_value_at(step, each[name]) for name in ENDS)
                if low is not None and high is not None:
                    own.append(score_variance(low, high))
            for name in AVERAGED:
                found = [_value_at(step, each[name]) for each in curves]
                values = [value for value in found if value is not None]
                mean = mean_score_of(values, own) if name == "score" else mean_of(values)
                row |= mean.cells(name, runs=f"{name}_n", digits=6)
            yield row


def average_scores(rows: Iterable[Row]) -> Iterator[dict[str, Cell]]:
    """Yield a row for each group and opponent, without opponents that are bots of other runs."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if not is_run(row["opponent"]) and number(row["score"]) is not None:
            found.setdefault((row["group"], row["opponent"]), []).append(row)
    for (group, opponent), same in found.items():
        own = [score_variance(number(row["low"]), number(row["high"])) for row in same]
        mean = mean_score_of([number(row["score"]) or 0.0 for row in same], own)
        sums: dict[str, Cell] = {}
        for name in ["games", *RESULTS]:
            sums[name] = int(sum(number(row[name]) or 0 for row in same))
        yield {"group": group, "opponent": opponent, **mean.cells("score", digits=6), **sums}


def _points(rows: Sequence[Row], name: str) -> list[tuple[float, float]]:
    pairs = ((number(row["step"]), number(row[name])) for row in rows)
    return sorted((step, value) for step, value in pairs if step is not None and value is not None)


def _value_at(step: float, points: Sequence[tuple[float, float]]) -> float | None:
    """Return the value at `step` on the line through the points; None before the first and after the last one."""
    if not points or not points[0][0] <= step <= points[-1][0]:
        return None
    steps, values = zip(*points, strict=True)
    return float(np.interp(step, steps, values))
