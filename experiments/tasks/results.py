"""What tasks leave for each other: the names and columns of their files, and how they are read and written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from plyzero.errors import UserError
from plyzero.files import read_file, write_file
from plyzero.volume_errors import explain

AGENT: Final = "train/agent.onnx"
"""The trained bot of a run."""

CARD: Final = "train/card.json"
"""What is known of the bot."""

TRAIN_TABLE: Final = "train/train.csv"
"""The curves of a training."""

EVAL_TABLE: Final = "evaluate/eval.csv"
"""The results of the bot's matches."""

AVERAGES: Final = "average"
"""The directory of the averages over all runs."""

MEASURED: Final = ("games", "positions", "replay_ratio", "policy_loss", "value_loss", "policy_learned", "value_learned")
"""Columns of train.csv that are fields of the trainer's lines."""

TRAIN_SCORES: Final = ("score", "score_low", "score_high")
"""Columns that only measured models have: the score against the strongest opponent, with its 95 % interval."""

TRAIN_COLUMNS: Final = ("run", "group", "step", "seconds", *MEASURED, "first_won", "second_won", "drawn", *TRAIN_SCORES)
"""Columns of train.csv."""

RESULTS: Final = ("wins", "draws", "losses")
"""Results of the bot's games; in columns with first_ before them, of those in which it moved first."""

EVAL_COLUMNS: Final = (
    *("run", "group", "opponent", "simulations", "games", *RESULTS),
    *(f"{side}_{result}" for side in ("first", "second") for result in RESULTS),
    *("score", "low", "high", "elo", "elo_low", "elo_high", "distinct"),
)
"""Columns of eval.csv: results of the bot, with 95 % intervals of its score and of the Elo difference."""

AVERAGED: Final = [name for name in TRAIN_COLUMNS[3:] if name not in ("score_low", "score_high")]
"""Columns of train.csv that are averaged; the interval of a mean score is made from the scores of the runs."""

AVERAGE_COLUMNS: Final = (
    *("group", "step"),
    *(name + end for name in AVERAGED for end in ("", "_sd", "_n", "_low", "_high")),
)
"""Columns of average/train.csv: of each one the mean, standard deviation, number of runs and 95 % interval."""

AVERAGE_SCORES: Final = (
    *("group", "opponent", "runs", "score", "score_sd", "score_low", "score_high"),
    *("games", *RESULTS),
)
"""Columns of average/eval.csv; games and results are sums."""

MAX_BYTES: Final = 1 << 26
"""Largest size of a JSON file that is read, in bytes."""


def need(path: Path, task: str) -> Path:
    """Return `path`. Raises UserError if there is no such file, which `task` writes."""
    if not path.is_file():
        raise UserError(f"expected {path}, which the task {task} writes, but it is not there; run that task first")
    return path


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises UserError if there is none."""
    try:
        found = json.loads(read_file(path, max_bytes=MAX_BYTES))
    except OSError as error:
        raise UserError(f"cannot read {path}: {explain(error)}; run the task that writes it first") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}; write it again") from error
    if not isinstance(found, dict):
        raise UserError(f"expected {path} to hold a JSON object, got a {type(found).__name__}; write it again")
    return found


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object as a JSON file."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file of text."""
    write_file(path, text.encode(), replace=True)


def group_of(run: Path) -> str:
    """Return the group of a run by the card of its bot. Raises UserError if there is no card."""
    return str(read_json(run / CARD).get("group", ""))


def is_run(opponent: str) -> bool:
    """Return whether an opponent is the bot of another run, such as run-03."""
    return re.fullmatch(r"run-\d+", opponent) is not None


def first_seen(names: Iterable[str]) -> list[str]:
    """Return names, each once, in the order in which they come."""
    return [*dict.fromkeys(names)]
