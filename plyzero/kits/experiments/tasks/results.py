"""The files that tasks exchange: names, columns, reading and writing."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from plyzero.errors import UserError
from plyzero.files import write_file
from plyzero.lines import read_text

AGENT: Final = "train/agent.onnx"
"""The trained bot of a run."""

CARD: Final = "train/card.json"
"""Facts about the bot."""

TRAIN_TABLE: Final = "train/train.csv"
"""The curves of a training."""

EVAL_TABLE: Final = "evaluate/eval.csv"
"""The results of the bot's matches."""

AVERAGES: Final = "average"
"""The directory of the averages over all runs."""

MEASURED: Final = ("games", "positions", "replay_ratio", "policy_loss", "value_loss", "policy_learned", "value_learned")
"""Columns of train.csv with fields of the trainer's lines."""

TRAIN_SCORES: Final = ("score", "score_low", "score_high")
"""Columns for measured models only: the score against the strongest opponent, with its 95 % interval."""

TRAIN_COLUMNS: Final = ("run", "group", "step", "seconds", *MEASURED, "first_won", "second_won", "drawn", *TRAIN_SCORES)
"""Columns of train.csv."""

RESULTS: Final = ("wins", "draws", "losses")
"""Results of the bot's games. Columns with first_ or second_ before them count the games with this side."""

EVAL_COLUMNS: Final = (
    "run",
    "group",
    "opponent",
    "simulations",
    "games",
    *RESULTS,
    *(f"first_{result}" for result in RESULTS),
    *(f"second_{result}" for result in RESULTS),
    "score",
    "low",
    "high",
    "elo",
    "elo_low",
    "elo_high",
    "distinct",
)
"""Columns of eval.csv: results of the bot, with 95 % intervals of its score and of the Elo difference.

A game with points has a last column `points`, the mean lead of the bot."""

AVERAGED: Final = [name for name in TRAIN_COLUMNS[3:] if name not in ("score_low", "score_high")]
"""Columns of train.csv that are averaged; the interval of a mean score is made from the scores of the runs."""

AVERAGE_COLUMNS: Final = (
    "group",
    "step",
    *(name + end for name in AVERAGED for end in ("", "_sd", "_n", "_low", "_high")),
)
"""Columns of average/train.csv: for each averaged column the mean, standard deviation, number of runs and 95 %
interval."""

AVERAGE_SCORES: Final = (
    "group",
    "opponent",
    "runs",
    "score",
    "score_sd",
    "score_low",
    "score_high",
    "games",
    *RESULTS,
)
"""Columns of average/eval.csv; games and results are sums."""

MISSING: Final = "; run the task that writes it first"
"""The advice if a file cannot be read."""

Cell = str | int | float | None
"""A value in a row; None = empty."""

Row = dict[str, str]
"""A row of a file: column -> text, "" for an empty cell."""


def read_json(path: Path) -> dict[str, object]:
    """Return the object in a JSON file. Raises UserError if there is none."""
    try:
        found = json.loads(read_text(path, "JSON", max_bytes=1 << 26, advice=MISSING))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}; write it again") from error
    if not isinstance(found, dict):
        raise UserError(f"expected {path} to hold a JSON object, got a {type(found).__name__}; write it again")
    return found


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write an object as a JSON file."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file of text."""
    write_file(path, text.encode(), replace=True)


def is_run(opponent: str) -> bool:
    """Return whether an opponent is the bot of another run, such as run-03."""
    return re.fullmatch(r"run-\d+", opponent) is not None


def first_seen(names: Iterable[str]) -> list[str]:
    """Return names, each once, in their order."""
    return list(dict.fromkeys(names))


def runs_of(names: Iterable[str], first: int) -> list[str]:
    """Return the directories of runs, each once; only the first `first` of them, unless it is 0."""
    runs = first_seen(names)
    return runs[:first] if first > 0 else runs


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
    text = read_text(path, "a CSV file with a header", max_bytes=1 << 28, advice=MISSING)
    reader = csv.DictReader(io.StringIO(text), restval="")
    found = reader.fieldnames or ()
    if missing := [name for name in columns if name not in found]:
        raise UserError(f"{path} has no column {missing[0]}; it has {', '.join(found) or 'none'}; write it again")
    return list(reader)


def columns_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return rows, at least one, as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def number(text: str | None) -> float | None:
    """Return a cell as a finite number; None if it is empty or not a number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Return a number rounded to `digits` after the point; None stays None."""
    return None if value is None else round(value, digits) + 0.0  # not -0.0
