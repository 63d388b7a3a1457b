"""The built-in tasks of experiments: lookup by name, parameters, and the checks before any of them starts."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from plyzero.commands import common
from plyzero.errors import UserError, nearest, shown

if TYPE_CHECKING:
    from types import ModuleType

    from plyzero.kits.experiments.definition import Value
    from plyzero.kits.experiments.plan import Plan

MODULES: Final = {
    "train": "train",
    "evaluate": "evaluate",
    "examples": "examples",
    "compare": "compare",
    "average": "average",
    "effects": "effects",
    "index": "index",
    "train-plots": "pictures",
    "eval-plots": "pictures",
    "average-plots": "pictures",
}
"""Built-in task -> its module in plyzero.kits.experiments.tasks."""

PACKAGES: Final = {
    "train": ("torch", "onnxruntime"),
    "evaluate": ("onnxruntime",),
    "examples": ("onnxruntime", "PIL"),
    "compare": ("onnxruntime", "matplotlib"),
    "average": ("scipy",),
    "effects": ("scipy",),
    "train-plots": ("matplotlib",),
    "eval-plots": ("matplotlib",),
    "average-plots": ("matplotlib",),
}
"""Built-in task -> packages of extras that it needs."""


def check_tasks(plan: Plan) -> None:
    """Raise UserError if a built-in task of a plan lacks a package, or has parameters that it would refuse."""
    checked = set()
    for name, options in _builtin(plan):
        common.require(*PACKAGES.get(name, ()))
        arguments = parse_arguments(name, options)
        key = json.dumps({key: value for key, value in arguments.items() if key not in ("seed", "previous")})
        check = getattr(_module(name), f"check_{name}", None)
        if check is not None and (name, key) not in checked:
            checked.add((name, key))
            check(**arguments)


def find_task(name: str) -> Callable[..., None]:
    """Return the function of a built-in task. Raises UserError if there is none, with the nearest name."""
    if name not in MODULES:
        raise UserError(f"no task is called {shown(name)}; {nearest(name, MODULES)}")
    function: Callable[..., None] = getattr(_module(name), name.replace("-", "_"))
    return function


def parse_arguments(name: str, options: Sequence[str]) -> dict[str, Any]:
    """Return all parameters of a built-in task, changed by options such as games=20.

    Raises UserError for an unknown one, with the nearest, for a value of another type, and if one is missing.
    """
    from plyzero.kits.experiments.definition import parse_options

    empty_values: dict[str, Value] = {"str": "", "int": 0, "float": 0.0, "bool": False, "Sequence[str]": []}
    types: dict[str, Value] = {}
    arguments: dict[str, Any] = {}
    missing = []
    for each in inspect.signature(find_task(name)).parameters.values():
        if each.kind is not each.KEYWORD_ONLY or each.name == "report":
            continue
        types[each.name] = empty_values[each.annotation]
        if each.default is each.empty:
            missing.append(each.name)
        else:
            arguments[each.name] = each.default
    for key, value in parse_options(f"the task {name}", types, options).items():
        arguments[key] = _split(key, " ".join(value)) if isinstance(value, list) else value
    missing = [key for key in missing if key not in arguments]
    if missing:
        raise UserError(f"the task {name} needs {', '.join(f'-p {key}=...' for key in missing)}")
    return arguments


def _builtin(plan: Plan) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the options of each built-in task."""
    for task in plan.tasks:
        if task.command[:3] == ("plyzero", "experiment", "task"):
            words = task.command[3:]
            name = words[0] if words else ""
            yield name, [option for flag, option in itertools.pairwise(words[1:]) if flag == "-p"]


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"plyzero.kits.experiments.tasks.{MODULES[name]}")


def _split(key: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"expected -p {key}=VALUES with a quote at both ends or none, got {shown(text)}") from error
