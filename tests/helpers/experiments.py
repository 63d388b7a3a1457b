"""Experiments for tests: definitions made from their tasks, the shipped ones, trained bots, and tables."""

import csv
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from plyzero.kits.experiments.definition import Definition, Value, parse_parameters, read_definition, shipped
from plyzero.kits.experiments.tasks.results import EVAL_COLUMNS, EVAL_TABLE, TRAIN_COLUMNS, TRAIN_TABLE, write_table
from plyzero.play import bundled_bots

BOT = Path(bundled_bots.__file__).parent / "bots" / "tic-tac-toe.onnx"

Experiment = tuple[Definition, dict[str, Value]]
"""A definition and its parameters, from which a plan is made."""

SHIPPED = {"train-and-compare": ["runs=3", "min_score=0.55"], "sweep": ["seeds=3"]}
"""The shipped experiments, each with options that make it small."""


def shipped_experiment(name: str) -> Experiment:
    definition = read_definition(shipped()[name])
    return definition, parse_parameters(definition, SHIPPED[name])


def experiment_of(
    tasks: Mapping[str, Any],
    options: Sequence[str] = (),
    *,
    matrix: Mapping[str, str] = MappingProxyType({"seed": "runs"}),
    **parameters: Any,
) -> Experiment:
    table = {"version": 1, "name": "small", "parameters": parameters, "matrix": dict(matrix), "tasks": tasks}
    definition = Definition.model_validate(table)
    return definition, parse_parameters(definition, options)


def plant_bot(run: str) -> None:
    """Give a run in the current directory the bundled bot of tic-tac-toe as its agent."""
    Path(run, "train").mkdir(parents=True)
    shutil.copy(BOT, Path(run, "train/agent.onnx"))


def write_curve(run: str, group: str, *rows: Mapping[str, Any]) -> None:
    write_table(Path(run, TRAIN_TABLE), TRAIN_COLUMNS, [{"run": run, "group": group, **row} for row in rows])


def write_scores(run: str, group: str, *rows: Mapping[str, Any]) -> None:
    about = {"run": run, "group": group, "games": 10}
    write_table(Path(run, EVAL_TABLE), EVAL_COLUMNS, [{**about, **row} for row in rows])


def rows_of(path: Path | str) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with open(path) as file:
        return list(csv.DictReader(file))
