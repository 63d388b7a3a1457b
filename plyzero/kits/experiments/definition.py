"""Definitions of experiments: the content of a TOML file, its JSON schema, and values for its parameters."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from plyzero.errors import UserError, nearest, shown
from plyzero.lines import read_text
from plyzero.setting_types import without_nul

FOLDER: Final = Path(__file__).parent
"""The folder of the shipped definitions."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60)]
"""A name of a parameter, a variable or a task."""

Value = bool | int | float | str | list[str]
"""A value of a parameter."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _check_value(cls, value: object) -> object:
        return without_nul(value)


class TaskDefinition(_Table):
    """One task, or with `per_run` one for each run."""

    command: str = Field(min_length=1, description="The command, split as a shell does; {name} is replaced.")
    per_run: bool = Field(False, description="Whether there is one such task for each run.")
    needs: list[Name] = Field([], description="Tasks, of the same run if they have one, that must have succeeded.")
    after: list[Name] = Field([], description="Tasks, of all runs, that must have ended, in whatever way.")
    previous: list[Name] = Field([], description="Tasks of the runs before this one that must have ended.")
    when: str | None = Field(None, description="A condition such as train.score >= 0.55, on a task that it needs.")
    cpus: int | str = Field(1, description="CPU cores that it takes, or the parameter with their number; 0 = 1.")
    memory_mb: int | None = Field(None, ge=1, description="Memory that a cluster keeps free for it, in MB.")
    gpus: int | str = Field(
        0, description="GPU slots that it takes, or the parameter with the device: none for cpu, otherwise one."
    )
    node_selector: dict[str, str] = Field({}, description="Labels of the nodes in Kubernetes that may run it.")
    retries: int = Field(0, ge=0, le=100, description="How often it is repeated after a failure.")
    timeout_minutes: float | None = Field(None, gt=0, description="Time after which an attempt fails.")
    out: str | None = Field(None, description="Its output in the experiment's directory; default: the task's name.")


class Definition(_Table):
    """An experiment: its parameters with their defaults, its runs and its tasks."""

    version: Literal[1] = Field(description="Format version.")
    name: Name = Field(description="The name in the manifest and above the results.")
    description: str = Field("", description="One sentence.")
    parameters: dict[Name, Value] = Field({}, description="Parameters and their defaults, which also give their types.")
    matrix: dict[Name, Name] = Field(
        {}, description="A variable of the runs -> a parameter: a number of runs, or a list of values."
    )
    tasks: dict[Name, TaskDefinition] = Field(min_length=1, description="The tasks.")


def read_definition(path: Path) -> Definition:
    """Return the definition in a TOML file. Raises UserError with the wrong key, and the nearest known one."""
    try:
        found = tomllib.loads(read_text(path, "TOML", max_bytes=1 << 20))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not TOML: {error}") from error
    try:
        return Definition.model_validate(found)
    except ValidationError as error:
        raise UserError(f"{path}: {_describe(error)}") from error


def shipped() -> dict[str, Path]:
    """Return the files of the shipped definitions by their names."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def schema() -> dict[str, object]:
    """Return the JSON schema of a definition."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Definition.model_json_schema()}


def parse_parameters(definition: Definition, options: Iterable[str]) -> dict[str, Value]:
    """Return all parameters, changed by options such as runs=5. Raises what `parse_options` raises."""
    return {**definition.parameters, **parse_options(definition.name, definition.parameters, options)}


def parse_options(owner: str, defaults: Mapping[str, Value], options: Iterable[str]) -> dict[str, Value]:
    """Return the parameters in options such as runs=5. An option of a list adds a value to a new list.

    Raises UserError for a parameter that `owner` does not have, with the nearest known one, and for a value whose type
    differs from that of the default.
    """
    changed: dict[str, Value] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise UserError(f"expected -p NAME=VALUE, such as -p runs=3, got {shown(option)}")
        if name not in defaults:
            raise UserError(f"{owner} has no parameter {shown(name)}; {nearest(name, defaults)}")
        value = _parse_value(name, text, defaults[name])
        before = changed.get(name)
        changed[name] = [*before, *value] if isinstance(before, list) and isinstance(value, list) else value
    return changed


def _parse_value(name: str, text: str, default: Value) -> Value:
    wanted: str
    try:
        if isinstance(default, bool):
            wanted = "true or false"
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, int):
            wanted = "a whole number"
            return int(text)
        if isinstance(default, float):
            wanted = "a number"
            value = float(text)
            if not math.isfinite(value):
                raise ValueError(text)
            return value
    except (ValueError, KeyError) as error:
        raise UserError(f"expected -p {name}={wanted.upper()}, got {shown(text)}") from error
    return [text] if isinstance(default, list) else text


def text_of(value: Value) -> str:
    """Return a value as a part of a command; the values of a list are quoted for a shell."""
    if isinstance(value, list):
        return shlex.join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe(error: ValidationError) -> str:
    first = error.errors()[0]
    location = [str(part) for part in first["loc"] if part != "[key]"]
    where = location[:-1]
    key = location[-1]
    place = f"[{'.'.join(where)}]" if where else "the file"
    if first["type"] == "extra_forbidden":
        known: Mapping[str, object] = TaskDefinition.model_fields if where else Definition.model_fields
        return f"{place} has the unknown key {shown(key)}; {nearest(key, known)}"
    if first["type"] == "missing":
        return f"{place} has no {key}"
    if "pattern" in first["type"]:
        return f"{place} has the name {shown(key)}; expected small letters, digits, - and _, with a letter first"
    text = re.sub(r"^(Value error,|Input) ", "", first["msg"])
    return f"{key} in {place} {text}, got {shown(first['input'])}"
