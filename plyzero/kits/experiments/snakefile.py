"""A plan as a Snakefile: each task is a rule with the same command, and a file that marks its end.

    snakemake -s Snakefile --cores 2 --resources gpus=1 --keep-going

starts it, if `plyzero` is on the PATH. The outputs of the tasks are not declared, since Snakemake would delete them
before each attempt; so outputs that another command has left are not removed. Two things differ from `plyzero
experiment run`: a task that waits for a failed one is not run, so after a failed run there are no averages; and
Snakemake passes the time limits to a cluster that it uses, but does not stop a task itself.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from plyzero.kits.experiments.manifest import LOGS, STATE
from plyzero.kits.experiments.plan import Condition, Plan, Task, renamed

TARGET: Final = "all"
"""Name of the rule that makes everything."""


def snakefile(plan: Plan, directory: Path) -> str:
    """Return a plan as a Snakefile that runs it in `directory`. Raises UserError if two rules have the same name."""
    tasks = {task.name: task for task in plan.tasks}
    names = renamed([TARGET, *tasks], "_", "the rule {}")
    flags = [_flag(name) for name in tasks]
    rules = [
        f"workdir: {str(directory.absolute())!r}\n",
        "\n".join([f"rule {TARGET}:", *_listed("input", flags)]) + "\n",
        *("\n".join(_rule(task, names[task.name], tasks)) + "\n" for task in plan.tasks),
    ]
    return "\n\n".join(rules)


def _flag(task: str) -> str:
    """Return the file that exists once a task has succeeded or was left out."""
    return f"{STATE}/snakemake/{task}"


def _rule(task: Task, name: str, tasks: Mapping[str, Task]) -> Iterator[str]:
    resources = {
        "gpus": task.gpus,
        "mem_mb": task.memory_mb,
        "runtime": 0 if task.timeout is None else math.ceil(task.timeout / 60),  # in minutes
    }
    log = f"{LOGS}/{task.name}.log"
    shell = [  # Snakemake would delete a declared log before each attempt
        f"mkdir -p {shlex.quote(str(Path(log).parent))}",
        f"exec >> {shlex.quote(log)} 2>&1",
        *map(_check, _conditions(task, tasks)),
        f"exec {shlex.join(task.command)}",  # exec takes a program, never a word of the shell's language
    ]
    yield f"rule {name}:"
    if task.needs or task.after:
        yield from _listed("input", [_flag(other) for other in [*task.needs, *task.after]])
    yield f"    output: touch({_flag(task.name)!r})"
    yield f"    threads: {task.cpus}"
    if any(resources.values()):
        yield f"    resources: {', '.join(f'{key}={value}' for key, value in resources.items() if value)}"
    if task.retries:
        yield f"    retries: {task.retries}"
    yield "    shell:"
    for line in shell:
        escaped = line.replace("{", "{{").replace("}", "}}")  # Snakemake replaces names in braces
        text = repr(f"{escaped}\n")
        yield f"        {text}"


def _listed(key: str, values: list[str]) -> Iterator[str]:
    yield f"    {key}:"
    yield from (f"        {value!r}," for value in values)


def _conditions(task: Task, tasks: Mapping[str, Task]) -> list[Condition]:
    """Return the conditions of all tasks that a task needs, then its own. Unless all hold, the task is left out."""
    found: list[Condition] = []
    for name in task.needs:
        found += _conditions(tasks[name], tasks)
    found += task.conditions
    return list(dict.fromkeys(found))


def _check(condition: Condition) -> str:
    """Return a line that ends a rule, as a success if a condition is false, as a failure if there is no number."""
    comparison = f"$1 {condition.operator} {condition.bound!r}"
    number = r"^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$"  # nan is not a number here
    program = f"BEGIN {{code = 2}} $1 ~ /{number}/ {{code = !({comparison})}} END {{exit code}}"
    return f"awk {shlex.quote(program)} {shlex.quote(condition.file)} || exit $(($? - 1))"
