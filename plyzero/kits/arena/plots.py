"""Plots by matplotlib: curves from CSV files and JSON lines, and ratings with their intervals."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, shown
from plyzero.files import write_file
from plyzero.lines import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: Final = (".png", ".svg", ".pdf")
"""Endings of pictures."""

Cell = str | float | None
Table = Mapping[str, Sequence[Cell]]
"""Columns of equal length: numbers, texts, or None where a row has no value."""


def plot_curves(tables: Mapping[str, Table], x: str, columns: Sequence[str], *, title: str = "") -> Figure:
    """Return a figure with a chart for each of `columns`, one below the other, with one curve per table over `x`.

    Columns with `_low` and `_high` after the name give the curve a band. Values that are not numbers are left out.

    tables: label -> table. Raises UserError if a table lacks `x`, or if no table has one of `columns` with numbers.
    """
    for label, table in tables.items():
        if x not in table:
            raise UserError(f"{label} has no column {shown(x)}; it has {', '.join(table)}")
    figure = _figure(height=0.6 + 2.6 * len(columns))
    charts = figure.subplots(len(columns), sharex=True, squeeze=False)[:, 0]
    for chart, column in zip(charts, columns, strict=True):
        found = {label: _numbers(table, x, column) for label, table in tables.items() if column in table}
        if not any(len(points) for points in found.values()):
            named = {name for table in tables.values() for name in table if len(_numbers(table, x, name))}
            raise UserError(f"no file has numbers in a column {shown(column)}; there are {', '.join(sorted(named))}")
        for label, points in found.items():
            line = chart.plot(points[:, 0], points[:, 1], label=label, marker="o" if len(points) <= 30 else "")[0]
            low, high = (_numbers(tables[label], x, column + end) for end in ("_low", "_high"))
            if len(low) and np.array_equal(low[:, 0], high[:, 0]):
                chart.fill_between(low[:, 0], low[:, 1], high[:, 1], color=line.get_color(), alpha=0.2, linewidth=0)
        chart.set_ylabel(column)
        chart.grid(alpha=0.3)
        if len(tables) > 1:
            chart.legend()
    charts[-1].set_xlabel(x)
    charts[0].set_title(title)
    return figure


def plot_ratings(players: Sequence[Mapping[str, Any]], *, anchor: str = "", title: str = "") -> Figure:
    """Return a figure with the players of a ladder from the strongest to the weakest, with their intervals.

    players: with the fields `player`, `elo`, `low` and `high`. anchor: the player with 0 Elo.
    """
    rated = sorted(players, key=lambda each: float(each["elo"]), reverse=True)
    rows = [(str(each["player"]), float(each["elo"]), float(each["low"]), float(each["high"])) for each in rated]
    x = "Elo with 95 % interval"
    if anchor:
        x += f"; {anchor} = 0"
    return plot_intervals({"": rows}, x, title=title)


def plot_intervals(groups: Mapping[str, Sequence[tuple[Any, ...]]], x: str, *, title: str) -> Figure:
    """Return a figure with values and their intervals, one name below the other.

    groups: label -> rows (name, value, low end, high end); the ends are None without an interval.
    """
    all_rows = itertools.chain.from_iterable(groups.values())
    names = list(dict.fromkeys(row[0] for row in all_rows))
    figure = _figure(height=1.2 + 0.35 * len(names) * len(groups))
    chart = figure.subplots()
    for place, (label, rows) in enumerate(groups.items()):
        shift = 0.7 * ((place + 0.5) / len(groups) - 0.5)
        value, low, high = np.array([row[1:] for row in rows], np.float64).T
        heights = [names.index(row[0]) + shift for row in rows]
        chart.errorbar(value, heights, xerr=[value - low, high - value], fmt="o", capsize=3, label=label)
    chart.set_ylim(len(names) - 0.5, -0.5)
    chart.set_yticks(range(len(names)), names)
    chart.set_xlabel(x)
    chart.set_title(title)
    chart.grid(axis="x", alpha=0.3)
    if len(groups) > 1:
        figure.legend(loc="outside lower center")
    return figure


def read_table(path: Path) -> Table:
    """Return a CSV file with a header, or a file of JSON lines, as columns. Raises UserError if it is neither."""
    text = read_text(path, "a CSV file or JSON lines", max_bytes=1 << 28)
    is_json = text.lstrip().startswith("{")
    rows = _json_rows(text, path) if is_json else list(csv.DictReader(io.StringIO(text)))
    if not rows:
        raise UserError(f"{path} has no rows; expected a CSV file with a header, or JSON lines")
    names = dict.fromkeys(name for row in rows for name in row if isinstance(name, str))
    return {name: [row.get(name) for row in rows] for name in names}


def check_picture(path: Path) -> None:
    """Raise UserError if `path` is not the name of a picture, and ImportError if matplotlib is missing."""
    if path.suffix not in KINDS:
        raise UserError(f"expected a file that ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {path}")
    import matplotlib.figure  # noqa: F401  # fail now if it is missing, before anything is computed


def write_picture(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the ending of `path` names."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], metadata={} if path.suffix == ".png" else {"Creator": "plyzero"})
    write_file(path, content.getvalue(), replace=True)


def _figure(*, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(8, height), layout="constrained")


def _numbers(table: Table, x: str, column: str) -> NDArray[np.float64]:
    """Return `[points, 2]`: the rows with numbers in both columns, sorted by `x`; no row without the column."""
    pairs = [[_number(one), _number(other)] for one, other in zip(table[x], table.get(column, ()), strict=False)]
    points = np.array(pairs, np.float64).reshape(-1, 2)
    points = points[np.isfinite(points).all(1)]
    return points[np.argsort(points[:, 0], kind="stable")]


def _number(value: Cell) -> float:
    try:
        return math.nan if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _json_rows(text: str, path: Path) -> list[dict[str, Cell]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: expected a JSON object, {error}") from error
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: expected a JSON object, got {shown(row)}")
        rows.append(row)
    return rows
