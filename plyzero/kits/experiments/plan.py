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

    text:   the condition as people read it, with the numbers filled in.
    task:   the name of the task in the plan.
    file:   the value's file in the experiment's directory.
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

    name:       `RUN/KIND`, or only its kind if it is of no run.
    kind:       its name in the definition.
    run:        the directory of its run; None if it is of no run.
    command:    the words of the command, which is started in the experiment's directory.
    out:        its output in that directory.
    needs:      names of tasks that must have succeeded.
    after:      names of tasks that must have ended, in whatever way; without those in `needs`.
    conditions: without them it is left out, and so is what needs it.
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
    """The tasks of an experiment, each after all that it waits for.

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

    written: name of a parameter -> what commands have in place of its value.
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
    """Return each name with `filler` for all but small letters and digits.

    form: of messages, such as "the rule {}". Raises UserError if two would have the same name.
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
    """Return the runs: one for each combination of the values of the matrix; without a matrix none."""
    axes: list[list[Value]] = []
    for variable, name in definition.matrix.items():
        if name not in parameters:
            raise UserError(f"[matrix] names the unknown parameter {shown(name)}; {nearest(name, parameters)}")
        if variable in OUR_VARIABLES:
            raise UserError(f"[matrix] has the variable {variable}, which has a meaning of its own; rename it")
        value = parameters[name]
        if isinstance(value, list) and value:
            axes.append([*value])
        elif isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_RUNS:
            axes.append([*range(value)])
        else:
            raise UserError(f"expected {name} to be a number from 1 to {MAX_RUNS} or a list of values, got {value!r}")
    for name in parameters:
        if name in OUR_VARIABLES:
            raise UserError(f"the parameter {name} has the name of a variable; rename it")
    combinations = [*itertools.product(*axes)] if axes else []
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
    name, earlier = _name(kind, run), [each for each in runs if run is not None and each < run]
    needs = [_name(each, run if definition.tasks[each].per_run else None) for each in defined.needs]
    after = [
        *(
            _name(each, other)
            for each in defined.after
            for other in (runs if definition.tasks[each].per_run else (None,))
        ),
        *(_name(each, other) for each in defined.previous for other in earlier),
    ]
    out = defined.out if defined.out is not None else kind
    if run is not None:
        out = f"{run}/{out}"
    variables = {**parameters, "all": [*runs], "out": out}
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
    """Return the cores of a task, of which a parameter may have the number."""
    number, least = (parameters.get(cpus), 0) if isinstance(cpus, str) else (cpus, 1)
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= MAX_CPUS:
        raise UserError(
            f"task {kind}: expected cpus, or a parameter, from {least} to {MAX_CPUS}, got {cpus} = {number}"
        )
    return max(1, number)


def _gpus(kind: str, gpus: int | str, parameters: Mapping[str, Value]) -> int:
    """Return the GPU slots of a task, which needs none if the parameter with its device says so."""
    device = parameters.get(gpus) if isinstance(gpus, str) else None
    if isinstance(gpus, str) and not isinstance(device, str):
        raise UserError(f"task {kind}: expected gpus, or a parameter with a device, got {gpus} = {device}")
    number = gpus if isinstance(gpus, int) else int(device != "cpu")
    if not 0 <= number <= MAX_GPUS:
        raise UserError(f"task {kind}: expected gpus from 0 to {MAX_GPUS}, got {number}")
    return number


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
    of_run = run if definition.tasks[other].per_run else None
    out = definition.tasks[other].out or other
    file = f"{out if of_run is None else f'{of_run}/{out}'}/values/{value}"
    return Condition(text, _name(other, of_run), value, file, operator, float(bound))


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
        for parent in (task.out, *(str(each) for each in PurePosixPath(task.out).parents)):
            if (other := owners.get(parent, task.name)) != task.name:
                raise UserError(f"tasks {task.name} and {other} have the same output {parent}; change out")


def _in_order(tasks: Mapping[str, Task]) -> Iterator[Task]:
    """Yield each task after all that it waits for, otherwise in the order of `tasks`. Raises UserError for a cycle."""
    waiting = TopologicalSorter({name: (*task.needs, *task.after) for name, task in tasks.items()})
    places = {name: place for place, name in enumerate(tasks)}
    try:
        waiting.prepare()
    except CycleError as error:
        raise UserError(f"the tasks wait for each other: {' -> '.join(error.args[1][::-1])}") from error
    while ready := sorted(waiting.get_ready(), key=places.__getitem__):
        waiting.done(*ready)
        yield from map(tasks.__getitem__, ready)
