"""The checks of references that Argo makes of a WorkflowTemplate beyond its schema."""

import json
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any

from hera.workflows import models

STATES = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted")
TEXT = re.compile(r"\{\{(.*?)\}\}")
RESULT = re.compile(r"([A-Za-z0-9-]+)\.([A-Za-z]+)")


def check_keys(template: dict[str, Any]) -> list[str]:
    """Return the keys of a WorkflowTemplate that Argo does not have: its models drop them silently."""
    back = models.WorkflowTemplate.model_validate(template).model_dump_json(exclude_none=True, by_alias=True)
    return list(_lost(template, json.loads(back), ""))


def check_references(template: dict[str, Any]) -> list[str]:
    """Return the faults in the names of a WorkflowTemplate."""
    spec = template["spec"]
    templates = {each["name"]: each for each in spec["templates"]}
    known = {f"workflow.parameters.{each['name']}" for each in _parameters(spec, "arguments")} | {"workflow.name"}
    volumes = {each["name"] for each in spec.get("volumes", ())}
    found = [] if len(templates) == len(spec["templates"]) else ["two templates have the same name"]
    if spec["entrypoint"] not in templates:
        found.append(f"entrypoint: no template is called {spec['entrypoint']}")
    for name, each in templates.items():
        if "dag" in each:
            found += _check_dag(each["dag"]["tasks"], templates, known)
        else:
            found += _check_container(name, each, volumes, known)
    return found


def command_in_pod(
    template: dict[str, Any], task: dict[str, Any], submitted: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return the words that a container starts for a task: Argo has put in its arguments, and Kubernetes reads `$`.

    submitted: arguments of the workflow in place of the default ones, as `argo submit -p` gives them.
    """
    container = next(each for each in template["spec"]["templates"] if each["name"] == task["template"])["container"]
    workflow = {each["name"]: each["value"] for each in _parameters(template["spec"], "arguments")}
    known = {f"workflow.parameters.{name}": text for name, text in {**workflow, **submitted}.items()}
    for each in _parameters(task, "arguments"):
        known[f"inputs.parameters.{each['name']}"] = _filled(each["value"], known)
    words = [_filled(word, known) for word in [*container["command"], *container["args"]]]
    return tuple(re.sub(r"\$\$|\$\([^)]*\)", _as_kubernetes, word) for word in words)


def _as_kubernetes(found: re.Match[str]) -> str:
    return "$" if found[0] == "$$" else "?"


def _filled(text: str, known: Mapping[str, str]) -> str:
    return TEXT.sub(lambda match: known[match[1]], text)


def _check_dag(tasks: list[dict[str, Any]], templates: dict[str, Any], known: set[str]) -> Iterator[str]:
    by_name = {each["name"]: each for each in tasks}
    if len(by_name) != len(tasks):
        yield "two tasks have the same name"
    graph = {}
    for name, task in by_name.items():
        results = RESULT.findall(task.get("depends", ""))
        graph[name] = {other for other, _ in results}
        yield from (f"{name}: depends names no task: {other}" for other in graph[name] - by_name.keys())
        yield from (f"{name}: depends has the unknown state {state}" for _, state in results if state not in STATES)
        if task["template"] not in templates:
            yield f"{name}: no template is called {task['template']}"
            continue
        given, wanted = (
            {parameter["name"] for parameter in _parameters(each, key)}
            for each, key in ((task, "arguments"), (templates[task["template"]], "inputs"))
        )
        if given != wanted:
            yield f"{name}: its arguments differ from the inputs of {task['template']} in {sorted(given ^ wanted)}"
        for text in {*TEXT.findall(json.dumps(task))} - known:
            yield from _check_output(name, text, graph[name], by_name, templates)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"tasks wait for each other: {error.args[1]}"


def _check_output(
    name: str, text: str, waits: set[str], tasks: dict[str, Any], templates: dict[str, Any]
) -> Iterator[str]:
    match = re.fullmatch(r"tasks\.([a-z0-9-]+)\.outputs\.parameters\.([a-z0-9_-]+)", text)
    if match is None:
        yield f"{name}: no variable is called {text}"
        return
    other, value = match.groups()
    if other not in waits:
        yield f"{name}: it reads a value of {other}, for which it does not wait"
    elif value not in {each["name"] for each in _parameters(templates[tasks[other]["template"]], "outputs")}:
        yield f"{name}: {other} has no output parameter {value}"


def _check_container(name: str, template: dict[str, Any], volumes: set[str], known: set[str]) -> Iterator[str]:
    inputs = {f"inputs.parameters.{each['name']}" for each in _parameters(template, "inputs")}
    used = {*TEXT.findall(json.dumps(template))} - known
    yield from (f"{name}: no input parameter is called {text}" for text in sorted(used - inputs))
    yield from (f"{name}: nothing uses {text}" for text in sorted(inputs - used))
    mounts = template["container"].get("volumeMounts", ())
    yield from (f"{name}: no volume is called {each['name']}" for each in mounts if each["name"] not in volumes)
    paths = [each["mountPath"] for each in mounts]
    for output in _parameters(template, "outputs"):
        if not any(output["valueFrom"]["path"].startswith(f"{path}/") for path in paths):
            yield f"{name}: the output parameter {output['name']} is on no volume"


def _parameters(owner: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return list(owner.get(key, {}).get("parameters", ()))


def _lost(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from (f"{path}.{key}" for key in before.keys() ^ after.keys())
        for key in before.keys() & after.keys():
            yield from _lost(before[key], after[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _lost(one, other, f"{path}[{number}]")
    elif before != after:
        yield f"{path}: {before!r} becomes {after!r}"
