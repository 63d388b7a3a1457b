"""Published models: immutable ONNX files whose names order them and carry their digest; nothing points to the newest.

The newest is the highest name whose content matches its digest, so there is no pointer that could go stale.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from plyzero.errors import ModelRefusedError, UserError
from plyzero.files import UnreadableError, read_file, write_file
from plyzero.run.metrics import read_lines

NAME = re.compile(r"(?P<fence>\d{6})-(?P<step>\d{9})-(?P<digest>[0-9a-f]{8})\.onnx")

MAX_BYTES: Final = 1 << 31
"""An ONNX file cannot be larger."""


@dataclass(frozen=True, order=True)
class ModelName:
    """What a file name tells. Names order by fence, then by step.

    fence:  number of the trainer's start; a later trainer's models come after all of an earlier one's.
    step:   optimiser steps behind the weights.
    digest: first 8 hex digits of the content's SHA-256.
    """

    fence: int
    step: int
    digest: str

    def __str__(self) -> str:
        return f"{self.fence:06d}-{self.step:09d}-{self.digest}.onnx"

    @staticmethod
    def parse(name: str) -> ModelName | None:
        """Return what `name` tells, None if it is not the name of a model."""
        match = NAME.fullmatch(name)
        parsed = ModelName(int(match["fence"]), int(match["step"]), match["digest"]) if match else None
        return parsed if str(parsed) == name else None


def publish_model(directory: Path, content: bytes, *, fence: int, step: int) -> ModelName:
    """Put an ONNX file into `directory` for everybody to load."""
    name = ModelName(fence, step, _digest(content))
    write_file(directory / str(name), content, replace=True)
    return name


def list_models(directory: Path) -> list[ModelName]:
    """Return the names of all models, newest first."""
    names = (ModelName.parse(path.name) for path in directory.glob("*.onnx"))
    return sorted((name for name in names if name), reverse=True)


def read_model(directory: Path, name: ModelName) -> bytes:
    """Return the ONNX file of a published model. Raises ModelRefusedError if its content does not match its digest."""
    try:
        content = read_file(directory / str(name), max_bytes=MAX_BYTES)
    except UnreadableError as error:
        raise ModelRefusedError(f"{name}: {error.strerror}") from error
    if _digest(content) != name.digest:
        raise ModelRefusedError(f"{name}: its content has digest {_digest(content)}, so it is damaged")
    return content


def best_model(directory: Path, metrics: Path) -> ModelName:
    """Return the model with the most points against the fixed opponents of `train`, the newest of equals.

    Raises UserError where no model that is still there was measured.
    """
    points = dict(filter(None, map(_points, read_lines(metrics / "rating.jsonl"))))
    measured = [name for name in list_models(directory) if str(name) in points]
    if not measured:
        raise UserError(f"no model in {directory} has been measured, which `plyzero train` does; use the newest")
    return max(measured, key=lambda name: (points[str(name)], name))


def _points(line: dict[str, Any]) -> tuple[str, float] | None:
    try:
        return str(line["model"]), sum(float(won + drawn / 2) for won, drawn, _ in line["scores"].values())
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):  # not a line of ours
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
