"""A plan as an Argo WorkflowTemplate: each task is a container with the same command, on a volume that all share.

The parameters of the experiment are arguments of the workflow, `argo submit --from workflowtemplate/NAME -p steps=500`,
and each workflow has a directory of its own. Parameters that decide which tasks there are, or what these need, cannot
change; the first task fails with a sentence if one has. Argo and Kubernetes interpret some texts in a command: `{{`,
which is refused, and `$`, which is doubled.

No task needs a token of the cluster. Argo's own container beside each task does, to report how the task ended, so the
template does not set a service account.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from string import Formatter
from typing import Any, Final

import yaml  # type: ignore[import-untyped]
from hera.workflows import DAG, Container, Parameter, Resources, RetryStrategy, WorkflowTemplate
from hera.workflows import models as m

from plyzero.errors import UserError, shown
from plyzero.kits.experiments.definition import Definition, Value, text_of
from plyzero.kits.experiments.plan import Condition, Plan, Task, make_plan, renamed

NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
"""A name in Kubernetes."""

MAX_NAME: Final = 57
"""Longest name of a template, in characters: Argo adds six for a workflow, and a label can have 63."""

DIRECTORY: Final = "/experiment"
"""The experiment's directory in the containers."""

ENTRYPOINT: Final = "experiment"
"""Name of the template that holds the graph."""

ROOM: Final = 16
"""Number of runs for which a template has tasks, unless it is printed with more. A submission sets how many begin."""

CHECK: Final = "arguments"
"""Name of the first task, which fails if an argument differs from that of the template."""

CHECK_SCRIPT: Final = """
refuse() { echo "expected $1, got $2: print a template with -p $2"; exit 1; }
if [ "$1" ]; then
  [ "$2" -ge 1 ] && [ "$2" -le "$3" ] || refuse "$1 from 1 to $3" "$1=$2"
fi
shift 3
while [ $# -gt 0 ]; do
  [ "$2" = "$3" ] || refuse "$1=$3" "$1=$2"
  shift 3
done
"""
"""The script of the first task. It takes three words for each argument: its name, its value and that of the template.
The first three are for the number of runs, which may be any number for which the template has tasks."""

ARGUMENT: Final = "{{{{workflow.parameters.{}}}}}"
"""The form of an argument of the workflow in a template."""

OUTDIR: Final = "outdir"
"""The argument with the directory on the claim; each workflow has a directory in it."""

PLACE: Final = f"{ARGUMENT.format(OUTDIR)}/{{{{workflow.name}}}}"
"""The experiment's directory on the claim."""

USER: Final = 10001
"""User and group of the containers, as in the Dockerfile."""

LOCKED_DOWN: Final = m.SecurityContext(
    allow_privilege_escalation=False, read_only_root_filesystem=True, capabilities=m.Capabilities(drop=["ALL"])
)

COMPARISONS: Final = {
    ">=": "{value} >= {bound}",
    "<=": "{value} <= {bound}",
    ">": "{value} > {bound}",
    "<": "{value} < {bound}",
    "==": "{value} >= {bound} && {value} <= {bound}",
    "!=": "({value} > {bound} || {value} < {bound})",
}
"""Operator -> the comparison in Argo. `==` and `!=` would compare texts; `>=` and `<=` fail if there is no number."""

ENDED: Final = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted")
"""The states in Argo of a task that has ended, in whatever way."""

GO_NUMBER: Final = re.compile(r"[-+]?(0o[0-7_]+|[0-9._]+([eE][-+]?[0-9_]+)?)")
"""Texts that the YAML parser of Argo may read as numbers. Python's parser reads some of them, such as 1e3, as texts."""


def workflow_template(
    definition: Definition, parameters: Mapping[str, Value], *, name: str, image: str, claim: str
) -> str:
    """Return an experiment with these parameters as the YAML of an Argo WorkflowTemplate.

    It has a template for each kind of task and one for the graph. The words in which the tasks of a kind differ are
    input parameters. On the volume of the claim, a workflow uses `outdir`/NAME OF THE WORKFLOW; `outdir` is an argument
    of the workflow, by default `name`. If the runs are numbered, the argument with their number can be up to ROOM, or
    the number here if that is larger. A task has as many cores as it asks for, so a training has no more workers.

    Raises UserError for names that Kubernetes or Argo cannot use, and for a command that Argo would change.
    """
    number = _number_of_runs(definition, parameters)
    most = parameters if number is None else {**parameters, number: _room(parameters[number])}
    for task in make_plan(definition, most).tasks:
        for word in [*task.command, task.out]:
            if "{{" in word:
                raise UserError(f"task {task.name}: Argo would read the braces in {shown(word)}; write it without {{{{")
    fixed = _shape(definition).union(definition.matrix.values()) - {number}
    arguments = {each: text_of(value) for each, value in parameters.items()}
    written = {each: ARGUMENT.format(each) for each in arguments if each not in fixed}
    plan = make_plan(definition, most, written=written)
    if NAME.fullmatch(name) is None or len(name) > MAX_NAME:
        raise UserError(
            f"expected --name to be at most {MAX_NAME} small letters, digits and -, with a letter or digit at both "
            f"ends, got {shown(name)}"
        )
    if OUTDIR in arguments:
        raise UserError(f"the parameter {OUTDIR} would be the directory in Argo; rename it")
    names = renamed([CHECK, *(task.name for task in plan.tasks)], "-", "{} in Argo")
    kinds: dict[str, list[Task]] = {}
    for task in plan.tasks:
        kinds.setdefault(task.kind, []).append(task)
    values = _values(plan)
    template_names = renamed([ENTRYPOINT, CHECK, *kinds], "-", "{} in Argo")
    places = {run: place for place, run in enumerate(plan.runs)}
    compared = {each: arguments[each] for each in parameters if each in fixed}
    templates: list[Container | DAG] = [_check(number, len(plan.runs), compared, image=image)]
    graph: dict[str, m.DAGTask] = {}
    for kind, tasks in kinds.items():
        inputs = _inputs(tasks, has_values=kind in values)
        template = template_names[kind]
        templates.append(_container(tasks[0], template, inputs, values.get(kind, ()), image=image))
        for position, task in enumerate(tasks):
            given = {parameter: words[position] for parameter, words in inputs.items()}
            fewer = [f"{ARGUMENT.format(number)} > {places[task.run]}"] if number and task.run else []
            graph[task.name] = _dag_task(task, template, given, names, fewer=fewer)
    first = m.DAGTask(name=CHECK, template=CHECK)
    templates.append(DAG(name=ENTRYPOINT, fail_fast=False, tasks=[first, *(graph[task.name] for task in plan.tasks)]))
    workflow = WorkflowTemplate(
        name=name,
        entrypoint=ENTRYPOINT,
        security_context=m.PodSecurityContext(
            run_as_non_root=True,
            run_as_user=USER,
            run_as_group=USER,
            fs_group=USER,
            fs_group_change_policy="OnRootMismatch",  # otherwise each container changes every file of the volume
        ),
        arguments=[Parameter(name=each, value=text) for each, text in {**arguments, OUTDIR: name}.items()],
        templates=list(templates),
        volumes=[
            m.Volume(name="experiment", persistent_volume_claim=m.PersistentVolumeClaimVolumeSource(claim_name=claim)),
            m.Volume(name="tmp", empty_dir=m.EmptyDirVolumeSource()),
        ],
    )
    return _yaml(workflow.to_dict())


def _values(plan: Plan) -> dict[str, list[str]]:
    """Return the values that conditions compare: kind of the task that writes them -> their names."""
    kinds = {task.name: task.kind for task in plan.tasks}
    found: dict[str, list[str]] = {}
    for task in plan.tasks:
        for condition in task.conditions:
            names = found.setdefault(kinds[condition.task], [])
            if condition.value not in names:
                names.append(condition.value)
    return found


def _shape(definition: Definition) -> set[str]:
    """Return the parameters that decide whether tasks run, where they write, and what they need."""
    found: set[str] = set()
    for task in definition.tasks.values():
        for text in (task.when or "", task.out or ""):
            found.update(name for _, name, _, _ in Formatter().parse(text) if name)
        found.update((str(task.cpus), str(task.gpus)))
    return found


def _number_of_runs(definition: Definition, parameters: Mapping[str, Value]) -> str | None:
    """Return the parameter that is only the number of runs; None if there is no such parameter."""
    names = list(definition.matrix.values())
    if len(names) != 1 or isinstance(parameters[names[0]], list) or names[0] in _shape(definition):
        return None
    return names[0]


def _room(runs: Value) -> Value:
    """Return the number of runs for which a template has tasks."""
    return max(runs, ROOM) if isinstance(runs, int) else runs


def _inputs(tasks: Sequence[Task], *, has_values: bool) -> dict[str, list[str]]:
    """Return the input parameters of a kind of task: name -> its value for each task."""
    columns = zip(*(_words(task) for task in tasks), strict=True)
    found: dict[str, list[str]] = {}
    for position, words in enumerate(columns):
        if len(set(words)) > 1:
            found[f"word-{position}"] = list(words)
    if has_values and len(tasks) > 1:
        found["out"] = [task.out for task in tasks]
    return found


def _words(task: Task) -> list[str]:
    return [_escaped(word) for word in task.command]


def _escaped(word: str) -> str:
    """Return a word in the form in which Kubernetes leaves it unchanged."""
    return word.replace("$", "$$")  # $(NAME) is a variable to Kubernetes, and $$ is one $


def _check(number: str | None, runs: int, compared: Mapping[str, str], *, image: str) -> Container:
    """Return the first task.

    number:   the argument that is only the number of runs, None if there is no such argument.
    runs:     the largest number of runs.
    compared: arguments that cannot change -> their values.
    """
    words = [number or "", ARGUMENT.format(number) if number else "", str(runs)]
    for name, value in compared.items():
        if "{{" in value:
            raise UserError(f"Argo would read the braces in {name}={shown(value)}; write it without {{{{")
        words += [name, ARGUMENT.format(name), _escaped(value)]
    return Container(
        name=CHECK,
        image=image,
        command=["sh"],
        args=["-c", _escaped(CHECK_SCRIPT.strip()), CHECK, *words],
        resources=Resources(cpu_request="100m", memory_request="64Mi"),
        security_context=LOCKED_DOWN,
    )


def _container(
    task: Task, kind: str, inputs: Mapping[str, Sequence[str]], values: Sequence[str], *, image: str
) -> Container:
    words = _words(task)
    for position in range(len(words)):
        if f"word-{position}" in inputs:
            words[position] = f"{{{{inputs.parameters.word-{position}}}}}"
    out = "{{inputs.parameters.out}}" if "out" in inputs else task.out
    return Container(
        name=kind,
        inputs=[Parameter(name=parameter) for parameter in inputs],
        outputs=[
            Parameter(name=value, value_from=m.ValueFrom(path=f"{DIRECTORY}/{out}/values/{value}", default="nan"))
            for value in values
        ],
        image=image,
        command=words[:1],
        args=words[1:],
        working_dir=DIRECTORY,
        env=[m.EnvVar(name="PYTHONPATH", value="/games")],  # modules of games in the image
        resources=Resources(
            cpu_request=task.cpus,
            cpu_limit=task.cpus,  # the number of cores that a program in the container finds
            memory_request=f"{task.memory_mb}Mi" if task.memory_mb else None,
            gpus=task.gpus or None,
        ),
        node_selector={**task.node_selector} or None,
        security_context=LOCKED_DOWN,
        volume_mounts=[
            m.VolumeMount(name="experiment", mount_path=DIRECTORY, sub_path=PLACE),
            m.VolumeMount(name="tmp", mount_path="/tmp"),
        ],
        # Always: also if the pod was killed or the node was lost.
        retry_strategy=RetryStrategy(limit=task.retries, retry_policy="Always") if task.retries else None,
        active_deadline_seconds=None if task.timeout is None else math.ceil(task.timeout),
    )


def _dag_task(
    task: Task, kind: str, arguments: Mapping[str, str], names: Mapping[str, str], *, fewer: Sequence[str]
) -> m.DAGTask:
    depends = [f"{names[each]}.Succeeded" for each in task.needs] or [f"{CHECK}.Succeeded"]
    for each in task.after:
        ended = [f"{names[each]}.{state}" for state in ENDED]
        depends.append(f"({' || '.join(ended)})")
    conditions = [*fewer, *(_comparison(each, names) for each in task.conditions)]
    parameters = [m.Parameter(name=each, value=word) for each, word in arguments.items()]
    return m.DAGTask(
        name=names[task.name],
        template=kind,
        arguments=m.Arguments(parameters=parameters) if parameters else None,
        depends=" && ".join(depends),
        when=" && ".join(conditions) or None,
    )


def _comparison(condition: Condition, names: Mapping[str, str]) -> str:
    value = f"{{{{tasks.{names[condition.task]}.outputs.parameters.{condition.value}}}}}"
    bound = f"{Decimal(repr(condition.bound)):f}"  # Argo does not know 1e-05
    return COMPARISONS[condition.operator].format(value=value, bound=bound)


def _yaml(content: Mapping[str, object]) -> str:
    """Return YAML in which all texts that Argo could read as numbers have quotes."""
    dumper: Any = type("Dumper", (yaml.SafeDumper,), {})
    first_letters = list("+-.0123456789")
    dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(f"(?:{GO_NUMBER.pattern})$"), first_letters)
    return str(yaml.dump(content, Dumper=dumper, sort_keys=False, width=120))
