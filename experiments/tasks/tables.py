"""CSV files with fixed columns: written at once, and read with a sentence about what is missing."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from plyzero.errors import UserError
from plyzero.files import read_file, write_file
from plyzero.volume_errors import explain

MAX_BYTES: Final = 1 << 28
"""Largest size of a table that is read, in bytes."""

Cell = str | int | float | None
"""What a row has in a column; None = nothing."""

Row = dict[str, str]
"""A row as it is read: column -> text, empty where the row has nothing."""


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> None:
    """Write rows as a CSV file with a header. Raises ValueError if a row has a column that is not in `columns`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_file(path, text.getvalue().encode(), replace=True)


def read_rows(path: Path, columns: Iterable[str]) -> list[Row]:
    """Return the rows of a CSV file with a header.

    Raises UserError if there is no such file, or if it lacks one of `columns`.
    """
    try:
        text = read_file(path, max_bytes=MAX_BYTES).decode()
    except OSError as error:
        raise UserError(f"cannot read {path}: {explain(error)}; run the task that writes it first") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text; expected a CSV file with a header") from error
    reader = csv.DictReader(io.StringIO(text), restval="")
    found = reader.fieldnames or ()
    if missing := [name for name in columns if name not in found]:
        raise UserError(f"{path} has no column {missing[0]}; it has {', '.join(found) or 'none'}; write it again")
    return [*reader]


def columns_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return rows, of which there is at least one, as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def number(text: str | None) -> float | None:
    """Return a cell as a finite number; None if it is empty, or no number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Return a number with so many digits after the point; None stays None."""
    return None if value is None else round(value, digits) + 0.0  # not -0.0
