"""The tasks that make pictures of tables: train-plots, eval-plots and average-plots."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from plyzero.errors import UserError
from plyzero.kits.arena.plots import plot_curves, plot_intervals, write_picture
from plyzero.kits.experiments.tasks.results import (
    AVERAGE_COLUMNS,
    AVERAGE_SCORES,
    AVERAGES,
    EVAL_COLUMNS,
    EVAL_TABLE,
    TRAIN_COLUMNS,
    TRAIN_TABLE,
    Row,
    columns_of,
    number,
    read_rows,
)

CURVES: Final = ("policy_loss", "value_loss", "score", "replay_ratio")
"""Columns that are shown over steps, if they have numbers."""


def train_plots(inputs: Path, out: Path, *, report: Callable[[str], None]) -> None:
    """Write train.png, the curves of a training, from train/train.csv.

    Raises UserError if the table is missing or has no numbers.
    """
    rows = _rows(inputs / TRAIN_TABLE, TRAIN_COLUMNS)
    report(f"plotting {len(rows)} models")
    write_curves({"training": columns_of(rows)}, out / "train.png", title=_about(rows))


def eval_plots(inputs: Path, out: Path, *, report: Callable[[str], None]) -> None:
    """Write eval.png, the score against each opponent, from evaluate/eval.csv.

    Raises UserError if the table is missing or empty.
    """
    rows = _rows(inputs / EVAL_TABLE, EVAL_COLUMNS)
    report(f"plotting {len(rows)} opponents")
    title = f"{_about(rows)}, {rows[0]['games']} games for each opponent"
    write_scores({"": rows}, ("low", "high"), out / "eval.png", title=title)


def average_plots(inputs: Path, out: Path, *, report: Callable[[str], None]) -> None:
    """Write train.png and eval.png from average/train.csv and average/eval.csv; a table without rows has no picture.

    The mean of one run has no band. Raises UserError if a table is missing, or if both have no rows.
    """
    directory = inputs / AVERAGES
    curves = _by_group(read_rows(directory / "train.csv", AVERAGE_COLUMNS))
    scores = _by_group(read_rows(directory / "eval.csv", AVERAGE_SCORES))
    if not curves and not scores:
        raise UserError(f"train.csv and eval.csv in {directory} have no rows; run the task average again")
    if curves:
        report("plotting the curves")
        tables = {group: columns_of(rows) for group, rows in curves.items()}
        write_curves(tables, out / "train.png", title="mean of the runs with 95 % interval")
    if scores:
        report("plotting the scores")
        write_scores(scores, ("score_low", "score_high"), out / "eval.png", title="mean of the runs")


def write_curves(tables: Mapping[str, Mapping[str, Sequence[str]]], path: Path, *, title: str) -> None:
    """Write a picture of the CURVES of each table over its steps, with bands from columns with _low and _high.

    tables: label -> table. Raises UserError if none of the columns has a number.
    """
    columns = []
    for name in CURVES:
        cells = itertools.chain.from_iterable(table[name] for table in tables.values())
        if any(number(cell) is not None for cell in cells):
            columns.append(name)
    if not columns:
        raise UserError(f"expected a number in one of {', '.join(CURVES)}, but all are empty; train longer")
    write_picture(plot_curves(tables, "step", columns, title=title), path)


def write_scores(groups: Mapping[str, Sequence[Row]], ends: tuple[str, str], path: Path, *, title: str) -> None:
    """Write a picture with the score against each opponent, from top to bottom, and its interval if it has one.

    groups: label -> rows with `opponent`, `score` and `ends`, the columns of the interval.
    """
    low, high = ends
    found = {}
    for label, rows in groups.items():
        found[label] = [(row["opponent"], number(row["score"]), number(row[low]), number(row[high])) for row in rows]
    figure = plot_intervals(found, "score with 95 % interval", title=title)
    figure.axes[0].axvline(0.5, color="gray", linewidth=0.8)
    figure.axes[0].set_xlim(-0.02, 1.02)
    write_picture(figure, path)


def _rows(path: Path, columns: Sequence[str]) -> list[Row]:
    rows = read_rows(path, columns)
    if not rows:
        raise UserError(f"{path} has no rows; run the task that writes it again")
    return rows


def _about(rows: Sequence[Row]) -> str:
    return " ".join(filter(None, (rows[0]["run"], rows[0]["group"])))


def _by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"] or "all runs", []).append(row)
    return groups
