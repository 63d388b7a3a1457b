"""The directory of an experiment: its manifest, the lock of its runner, and the record of each task."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypedDict

from plyzero.errors import UserError, shown
from plyzero.files import holding, lock, read_file, write_file
from plyzero.kits.experiments.definition import Value, text_of
from plyzero.kits.experiments.plan import Plan, Task
from plyzero.lines import parse_object
from plyzero.volume_errors import explain

VERSION: Final = 1
"""Format version of experiment.json and of the files in state/; docs/formats.md lists the fields."""

MANIFEST: Final = "experiment.json"
LOCK: Final = "experiment.lock"
STATE: Final = "state"
LOGS: Final = "logs"
"""Names in the directory of an experiment."""


@dataclass(frozen=True)
class Record:
    """The state of a task.

    state:    running, done, failed, skipped (by a condition) or blocked (by a task that failed).
    key:      a digest of its command and of the tasks that it waited for; if it differs, the task must run again.
    id:       new for each attempt.
    reason:   why it failed, was skipped or is blocked, in words.
    attempts: how often it was started since it last succeeded.
    began:    start of the last attempt, in Unix seconds.
    ended:    its end, in Unix seconds.
    """

    state: str
    key: str = ""
    id: str = ""
    reason: str = ""
    attempts: int = 0
    began: float | None = None
    ended: float | None = None


class Manifest(TypedDict):
    """The content of experiment.json."""

    version: int
    id: str
    place: list[int]
    name: str
    parameters: dict[str, Value]
    runs: dict[str, dict[str, Value]]
    tasks: list[dict[str, Any]]
    calls: list[dict[str, object]]


@contextmanager
def open_experiment(directory: Path, plan: Plan, *, update: bool = False) -> Iterator[str]:
    """Create or continue an experiment; no other process may run it meanwhile. Yield its id.

    update: the parameters may differ from those of earlier calls.

    Raises UserError if `directory` has other content, or an experiment with other parameters, or is in use.
    """
    _check(directory, plan, update=update)
    refusal = f"another process runs the experiment in {directory}; wait for it, or stop it first"
    with holding(directory / LOCK, refusal):
        before = read_manifest(directory)
        found = os.stat(directory)
        place = [found.st_dev, found.st_ino]  # a copy has another place, and so gets another id
        is_same = before is not None and before.get("place") == place
        identity = before["id"] if before is not None and is_same else uuid.uuid4().hex
        earlier_calls = before["calls"] if before is not None else []
        manifest: Manifest = {
            "version": VERSION,
            "id": identity,
            "place": place,
            "name": plan.name,
            "parameters": dict(plan.parameters),
            "runs": {run: dict(variables) for run, variables in plan.runs.items()},
            "tasks": [asdict(task) for task in plan.tasks],
            "calls": [*earlier_calls, about_this_call()],
        }
        _write(directory / MANIFEST, manifest)
        yield identity


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of an experiment, None if there is none. Raises UserError if plyzero has not written it."""
    path = directory / MANIFEST
    try:
        found: Manifest = json.loads(read_file(path, max_bytes=1 << 26))
        if found["version"] != VERSION or not isinstance(found["id"], str):
            raise ValueError(found["version"])
        _check_fields(found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = explain(error) if isinstance(error, OSError) else "it is damaged, or of another version"
        raise UserError(f"cannot use {path}: {why}; give --out another directory") from error
    return found


def _check_fields(found: Manifest) -> None:
    """Raise an error if a manifest lacks what its readers use."""
    list(found["parameters"])
    list(found["calls"])
    for task in found["tasks"]:
        task["name"] + task["out"]


def is_running(directory: Path) -> bool:
    """Return whether a process runs the experiment; always False if the volume has no locks."""
    if not (directory / LOCK).exists():
        return False
    held = lock(directory / LOCK, needed=False)
    if held is not None:
        os.close(held)
    return held is None


def about_this_call() -> dict[str, object]:
    """Return the time, the git commit of the current directory with its changes, the versions and the machine."""
    versions = {}
    for package in ("plyzero", "numpy", "torch", "onnxruntime", "numba", "zarr"):
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "time": round(time.time(), 3),
        "git": _git_state(),
        "versions": {"python": platform.python_version(), **versions},
        "machine": {"host": platform.node(), "system": platform.platform(), "cores": os.cpu_count()},
    }


def key_of(task: Task, records: Mapping[str, Record]) -> str:
    """Return the digest that decides whether a task must run again, given the records of the tasks it waits for."""
    waited = {}
    for name in [*task.needs, *task.after]:
        waited[name] = records[name].id if records[name].state == "done" else records[name].state
    content = [task.command, task.out, [condition.text for condition in task.conditions], waited]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def read_record(directory: Path, task: str) -> Record | None:
    """Return the record of a task, None if it was never started or its record is damaged."""
    try:
        found: dict[str, Any] = parse_object(read_file(_record_file(directory, task), max_bytes=1 << 16))
        del found["version"]
        return Record(**found)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def write_record(directory: Path, task: str, record: Record) -> None:
    """Replace the record of a task."""
    _write(_record_file(directory, task), {"version": VERSION, **asdict(record)})


def log_file(directory: Path, task: str) -> Path:
    """Return the file with what a task has printed."""
    return directory / LOGS / f"{task}.log"


def _record_file(directory: Path, task: str) -> Path:
    return directory / STATE / f"{task}.json"


def _check(directory: Path, plan: Plan, *, update: bool) -> None:
    """Raise UserError unless `directory` is empty, or has this experiment with these parameters."""
    found = read_manifest(directory)
    if found is None:
        names = os.listdir(directory) if directory.exists() else ()
        if any(name != LOCK and not name.startswith(".tmp-") for name in names):
            raise UserError(f"{directory} is not an experiment: it has no {MANIFEST}; give --out another directory")
        return
    if found["name"] != plan.name:
        raise UserError(
            f"{directory} is the experiment {shown(found['name'])}, not {plan.name}; give --out another one"
        )
    old, new = found["parameters"], dict(plan.parameters)
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if changed and not update:
        changes = ", ".join(f"{name} {_shown(old.get(name))} -> {_shown(new.get(name))}" for name in changed)
        raise UserError(
            f"{directory} was begun with other parameters: {changes}; give --out another directory, or --update to run "
            "again what they change"
        )


def _shown(value: Value | None) -> str:
    return "(none)" if value is None else text_of(value) or "(empty)"


def _git_state() -> dict[str, str | None] | None:
    """Return the commit of the repository around the current directory and a digest of its uncommitted changes."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout

    try:
        commit = git("rev-parse", "HEAD").decode().strip()
        changes = git("diff", "HEAD", "--binary") + git("status", "--porcelain")
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "changes": hashlib.sha256(changes).hexdigest()[:16] if changes else None}


def _write(path: Path, content: Mapping[str, object]) -> None:
    write_file(path, (json.dumps(content, indent=1) + "\n").encode(), replace=True)
