"""plot: pictures of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from plyzero.errors import UserError

X_NAMES: Final = ("step", "games", "time", "seconds")
"""Columns that are the horizontal axis unless another is named, the first that all files have."""

RATING: Final = ("player", "elo", "low", "high")
"""Columns of a table of ratings."""


def plot(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="CSV files with a header, or JSON lines; one curve each.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PICTURE", help="A .png, .svg or .pdf file.")],
    columns: Annotated[
        list[str] | None, typer.Option("-y", metavar="COLUMN", help="A column to plot; may be repeated.")
    ] = None,
    x: Annotated[
        str | None, typer.Option("-x", metavar="COLUMN", help=f"The horizontal axis. Default: {', '.join(X_NAMES)}.")
    ] = None,
    title: Annotated[str, typer.Option(help="Text above the plot.")] = "",
) -> None:
    """Plot columns of CSV files or JSON lines, such as the metrics of a run; or the ratings.csv of a ladder.

    Columns with _low and _high after the name of a plotted one are its band.
    """
    from plyzero.web.plots import check_picture, plot_curves, plot_ratings, read_table, write_picture

    check_picture(output)
    tables = {str(path): read_table(path) for path in files}
    if not columns and len(tables) == 1 and all(name in table for table in tables.values() for name in RATING):
        (table,) = tables.values()
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        figure = plot_ratings(rows, title=title)
    elif columns:
        usual = next((name for name in X_NAMES if all(name in table for table in tables.values())), X_NAMES[0])
        figure = plot_curves(tables, x or usual, columns, title=title)
    else:
        names = sorted({name for table in tables.values() for name in table})
        raise UserError(f"expected -y COLUMN, one of {', '.join(names)}")
    write_picture(figure, output)
    print(output)
