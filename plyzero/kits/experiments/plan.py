"""The plan of an experiment: its tasks as a directed acyclic graph, with all parameters filled in."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from operator import eq, ge, gt, le, lt, ne
from pathlib import PurePosixPath
from string import Formatter
from types import MappingProxyType
from typing import Final

from plyzero.errors import UserError, nearest, shown
from plyzero.kits.experiments.definition import Definition, TaskDefinition, Value, text_of

OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {">=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt}

OUR_VARIABLES: Final = ("run", "out", "previous", "all")
"""Variables of commands: the directory of the run, the output of the task, the earlier runs, all runs."""

MAX_CPUS: Final = 1024
"""Largest number of cores of a task."""

MAX_GPUS: Final = 64
"""Largest number of GPU slots of a task."""

MAX_RUNS: Final = 1000
"""Largest number of runs."""


@dataclass(frozen=True)
class Condition:
    """A comparison of a value that a task has written: a number in the file `values/NAME` of its output.

    text:  the condition with the numbers filled in.
    task:  the name of the task in the plan.
    value: the name of the value.
    file:  the value's file in the experiment's directory.
    """

    text: str
    task: str
    value: str
    file: str
    operator: str
    bound: float

    def holds(self, value: float) -> bool:
        """Return whether a value fulfils the condition."""
        return OPERATORS[self.operator](value, self.bound)


@dataclass(frozen=True)
class Task:
    """A task of a plan.

    name:       `RUN/KIND`, or only its kind if it does not belong to a run.
    kind:       its name in the definition.
    run:        the directory of its run; None if it does not belong to a run.
    command:    the words of the command, which is started in the experiment's directory.
    out:        its output in that directory.
    needs:      names of tasks that must have succeeded.
    after:      names of tasks that must have ended, in whatever way; without those in `needs`.
    conditions: if one does not hold, the task is left out, and so are the tasks that need it.
    timeout:    in seconds; None = no limit.
    """

    name: str
    kind: str
    run: str | None
    command: tuple[str, ...]
    out: str
    needs: tuple[str, ...]
    after: tuple[str, ...]
    conditions: tuple[Condition, ...]
    cpus: int
    memory_mb: int | None
    node_selector: Mapping[str, str]
    gpus: int
    retries: int
    timeout: float | None


@dataclass(frozen=True)
class Plan:
    """The tasks of an experiment, each after all tasks that it waits for.

    runs: directory of a run -> its variables.
    """

    name: str
    parameters: Mapping[str, Value]
    runs: Mapping[str, Mapping[str, Value]]
    tasks: tuple[Task, ...]


def make_plan(
    definition: Definition, parameters: Mapping[str, Value], *, written: Mapping[str, str] = MappingProxyType({})
) -> Plan:
    """Return the plan of an experiment with these parameters.

    written: name of a parameter -> the text that replaces its value in commands.

    Raises UserError for a task or variable that does not exist, with the nearest one, for a wrong condition, for
    outputs that overlap, and for a cycle.
    """
    runs = _runs(definition, parameters)
    tasks = {}
    for kind, defined in definition.tasks.items():
        _check_references(kind, defined, definition.tasks)
        for run in runs if defined.per_run else (None,):
            task = _make_task(kind, defined, run, definition, parameters, runs, written)
            tasks[task.name] = task
    _check_outputs(tasks)
    return Plan(definition.name, parameters, runs, tuple(_in_order(tasks)))


def renamed(names: Iterable[str], filler: str, form: str) -> dict[str, str]:
    """Return each name with `filler` in place of all characters but small letters and digits.

    form: the new name in messages, such as "the rule {}".

    Raises UserError if two would have the same name.
    """
    owners: dict[str, str] = {}
    for name in names:
        changed = re.sub(r"[^a-z0-9]", filler, name)
        if changed in owners:
            raise UserError(
                f"{name} and {owners[changed]} would both be {form.format(changed)}; rename one of the tasks"
            )
        owners[changed] = name
    return {name: changed for changed, name in owners.items()}


def _runs(definition: Definition, parameters: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Return the runs: one for each combination of the values of the matrix; no run without a matrix."""
    axes: list[list[Value]] = []
    for variable, name in definition.matrix.items():
        if name not in parameters:
            raise UserError(f"[matrix] names the unknown parameter {shown(name)}; {nearest(name, parameters)}")
        if variable in OUR_VARIABLES:
            raise UserError(f"[matrix] has the variable {variable}, which has a meaning of its own; rename it")
        value = parameters[name]
        if isinstance(value, list) and value:
            axes.append(list(value))
        elif isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_RUNS:
            axes.append(list(range(value)))
        else:
            raise UserError(f"expected {name} to be a number from 1 to {MAX_RUNS} or a list of values, got {value!r}")
    for name in parameters:
        if name in OUR_VARIABLES:
            raise UserError(f"the parameter {name} has the name of a variable; rename it")
    combinations = list(itertools.product(*axes)) if axes else []
    if len(combinations) > MAX_RUNS:
        raise UserError(f"expected at most {MAX_RUNS} runs, got {len(combinations)}")
    digits = max(2, len(str(len(combinations) - 1)))
    return {
        f"run-{number:0{digits}d}": dict(zip(definition.matrix, values, strict=True))
        for number, values in enumerate(combinations)
    }


def _check_references(kind: str, defined: TaskDefinition, tasks: Mapping[str, TaskDefinition]) -> None:
    for key in ("needs", "after", "previous"):
        for name in getattr(defined, key):
            if name not in tasks:
                raise UserError(f"task {kind}: {key} names the unknown task {shown(name)}; {nearest(name, tasks)}")
            if key == "needs" and tasks[name].per_run and not defined.per_run:
                raise UserError(f"task {kind}: {name} is of each run; write after = [{name!r}], which waits for all")
    if any(not tasks[name].per_run for name in defined.previous) or (defined.previous and not defined.per_run):
        raise UserError(f"task {kind}: previous is for tasks of each run")


def _make_task(
    kind: str,
    defined: TaskDefinition,
    run: str | None,
    definition: Definition,
    parameters: Mapping[str, Value],
    runs: Mapping[str, Mapping[str, Value]],
    written: Mapping[str, str],
) -> Task:
    name = _name(kind, run)
    earlier = [each for each in runs if run is not None and each < run]
    needs = [_name(each, run if definition.tasks[each].per_run else None) for each in defined.needs]
    after: list[str] = []
    for each in defined.after:
        places = list(runs) if definition.tasks[each].per_run else [None]
        after += [_name(each, place) for place in places]
    for each in defined.previous:
        after += [_name(each, place) for place in earlier]
    out = defined.out if defined.out is not None else kind
    if run is not None:
        out = f"{run}/{out}"
    variables = {**parameters, "all": list(runs), "out": out}
    if run is not None:
        variables |= {**runs[run], "run": run, "previous": earlier}
    try:
        words = shlex.split(defined.command)
    except ValueError as error:
        raise UserError(f"task {kind}: its command cannot be split into words: {error}") from error
    conditions = () if defined.when is None else (_condition(kind, defined, run, variables, definition),)
    return Task(
        name=name,
        kind=kind,
        run=run,
        command=tuple(_fill(word, {**variables, **written}, kind) for word in words),
        out=_safe(out, kind),
        needs=tuple(needs),
        after=tuple(each for each in dict.fromkeys(after) if each not in needs and each != name),
        conditions=conditions,
        cpus=_cpus(kind, defined.cpus, parameters),
        memory_mb=defined.memory_mb,
        node_selector=defined.node_selector,
        gpus=_gpus(kind, defined.gpus, parameters),
        retries=defined.retries,
        timeout=None if defined.timeout_minutes is None else 60 * defined.timeout_minutes,
    )


def _cpus(kind: str, cpus: int | str, parameters: Mapping[str, Value]) -> int:
    """Return the number of a task's cores, which may be the value of a parameter."""
    if isinstance(cpus, str):
        number = parameters.get(cpus)
        least = 0
    else:
        number = cpus
        least = 1
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= MAX_CPUS:
        raise UserError(
            f"task {kind}: expected cpus, or a parameter, from {least} to {MAX_CPUS}, got {cpus} = {number}"
        )
    return max(1, number)


def _gpus(kind: str, gpus: int | str, parameters: Mapping[str, Value]) -> int:
    """Return the number of a task's GPU slots; for a parameter with its device, 0 if that is `cpu`, otherwise 1."""
    if isinstance(gpus, str):
        device = parameters.get(gpus)
        if not isinstance(device, str):
            raise UserError(f"task {kind}: expected gpus, or a parameter with a device, got {gpus} = {device}")
        return 0 if device == "cpu" else 1
    if not 0 <= gpus <= MAX_GPUS:
        raise UserError(f"task {kind}: expected gpus from 0 to {MAX_GPUS}, got {gpus}")
    return gpus


def _name(kind: str, run: str | None) -> str:
    return kind if run is None else f"{run}/{kind}"


def _condition(
    kind: str, defined: TaskDefinition, run: str | None, variables: Mapping[str, Value], definition: Definition
) -> Condition:
    assert defined.when is not None
    text = _fill(defined.when, variables, kind).strip()
    match = re.fullmatch(r"([a-z][a-z0-9_-]*)\.([a-z][a-z0-9_-]*)\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)", text)
    if match is None:
        raise UserError(
            f"task {kind}: expected when = 'TASK.VALUE >= NUMBER', such as 'train.score >= 0.55', got {shown(text)}"
        )
    other, value, operator, bound = match.groups()
    if other not in defined.needs:
        raise UserError(f"task {kind}: when compares a value of {other}, which is not in needs; add it there")
    run_of_other = run if definition.tasks[other].per_run else None
    out = definition.tasks[other].out or other
    if run_of_other is not None:
        out = f"{run_of_other}/{out}"
    return Condition(text, _name(other, run_of_other), value, f"{out}/values/{value}", operator, float(bound))


def _fill(text: str, variables: Mapping[str, Value], kind: str) -> str:
    """Return a text with each {name} replaced by the variable's value; {{ and }} stand for braces."""
    filled = ""
    try:
        for literal, name, form, conversion in Formatter().parse(text):
            filled += literal
            if name is None:
                continue
            if name not in variables or form or conversion:
                raise UserError(f"task {kind}: no variable is called {{{name}}}; {nearest(name, variables)}")
            filled += text_of(variables[name])
    except ValueError as error:
        raise UserError(f"task {kind}: a brace without its other half in {shown(text)}; write {{{{ for one") from error
    return filled


def _safe(out: str, kind: str) -> str:
    parts = PurePosixPath(out).parts
    ours = ("state", "logs", "experiment.json", "experiment.lock")
    if not parts or out.startswith("/") or ".." in parts or "." in out.split("/") or parts[0] in ours:
        raise UserError(f"task {kind}: expected out to be a name in the experiment's directory, got {shown(out)}")
    return "/".join(parts)


def _check_outputs(tasks: Mapping[str, Task]) -> None:
    """Raise UserError if the output of a task is, or is in, that of another one."""
    owners = {task.out: task.name for task in tasks.values()}
    for task in tasks.values():
        out = PurePosixPath(task.out)
        for parent in [out, *out.parents]:
            other = owners.get(str(parent), task.name)
            if other != task.name:
                raise UserError(f"tasks {task.name} and {other} have the same output {parent}; change out")


def _in_order(tasks: Mapping[str, Task]) -> Iterator[Task]:
    """Yield each task after the tasks it waits for, otherwise in the order of `tasks`. Raises UserError for a cycle."""
    waiting = TopologicalSorter({name: (*task.needs, *task.after) for name, task in tasks.items()})
    places = {name: place for place, name in enumerate(tasks)}
    try:
        waiting.prepare()
    except CycleError as error:
        raise UserError(f"the tasks wait for each other: {' -> '.join(error.args[1][::-1])}") from error
    while ready := sorted(waiting.get_ready(), key=lambda name: places[name]):
        waiting.done(*ready)
        for name in ready:
            yield tasks[name]
