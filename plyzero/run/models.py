"""Published models: immutable ONNX files, ordered by their names, which contain the digest of the content.

The newest model is the one with the highest name whose content matches its digest, so there is no pointer to it that
could be out of date.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from plyzero.errors import ModelDamagedError, ModelRefusedError, UserError
from plyzero.files import list_names, read_file, write_file
from plyzero.machine import usable_memory
from plyzero.settings import MAX_MODEL_BYTES
from plyzero.volume_errors import UnreadableError, explain

NAME: Final = re.compile(r"(\d{6})-(\d{9})-([0-9a-f]{8})(\.int8)?\.onnx")
"""Pattern of the file name of a model, or of its 8-bit form: fence, step and the digest of its own content."""


@dataclass(frozen=True, order=True)
class ModelName:
    """The fields of a model's file name. Names are ordered by fence, then by step.

    fence:  number of the trainer's start, so that the models of a later trainer follow all of an earlier one's.
    step:   number of optimiser steps after which the model was published.
    digest: first 8 hex digits of the SHA-256 of the content.
    int8:   whether it is the 8-bit form of a model.
    """

    fence: int
    step: int
    digest: str
    int8: bool = False

    def __str__(self) -> str:
        return f"{self.fence:06d}-{self.step:09d}-{self.digest}{'.int8' if self.int8 else ''}.onnx"

    @staticmethod
    @lru_cache(maxsize=1 << 18)  # every process lists the same names again and again
    def parse(name: str, *, int8: bool = False) -> ModelName | None:
        """Return the fields of the file name of a model, with `int8` of an 8-bit form; None for any other name."""
        match = NAME.fullmatch(name)
        parsed = match and ModelName(int(match[1]), int(match[2]), match[3], int8)
        return parsed if str(parsed) == name else None


def publish_model(directory: Path, content: bytes, *, fence: int, step: int, int8: bytes | None = None) -> ModelName:
    """Write the ONNX file `content` into `directory` and return its name.

    int8: the model's 8-bit form, if the metadata of `content` name one. It is written first, so that nobody sees the
    model without it.
    """
    name = ModelName(fence=fence, step=step, digest=digest_of(content))
    if int8 is not None:
        write_file(directory / str(replace(name, digest=digest_of(int8), int8=True)), int8, replace=True)
    write_file(directory / str(name), content, replace=True)
    return name


def max_model_bytes() -> int:
    """Return the largest size of an ONNX file that is read here, in bytes.

    It is what the format can hold, but at most an eighth of this machine's memory: to load a file takes about four
    times its size, and it may come from somebody else.
    """
    return min(MAX_MODEL_BYTES, max(1 << 27, usable_memory() // 8))  # 128 MB, 33 million weights, on every machine


def list_models(directory: Path, *, int8: bool = False) -> list[ModelName]:
    """Return the names of all models in `directory`, newest first. Raises OSError if it cannot be listed."""
    return select_models(list_names(directory), int8=int8)


def select_models(names: Iterable[str], *, int8: bool = False) -> list[ModelName]:
    """Return those of `names` that are models, or with `int8` the 8-bit forms of models, newest first."""
    newest_first = sorted(names, reverse=True)  # fields have fixed widths
    return [found for name in newest_first if (found := ModelName.parse(name, int8=int8))]


def read_model(directory: Path, name: ModelName) -> bytes:
    """Return the content of a published model.

    Raises ModelDamagedError if it does not match the digest in its name, ModelRefusedError if it is too large, and
    OSError if the volume fails to read it.
    """
    try:
        content = read_file(directory / str(name), max_bytes=max_model_bytes())
    except UnreadableError as error:
        raise ModelRefusedError(f"{name}: {error.strerror}") from error
    if not content:
        raise ModelDamagedError(f"{name} is empty")
    if digest_of(content) != name.digest:
        raise ModelDamagedError(f"{name}: its content has the digest {digest_of(content)}, so it is damaged")
    return content


def read_model_file(path: Path) -> bytes:
    """Return the content of an ONNX file that a person names. Raises UserError if it cannot be read."""
    try:
        return read_file(path, max_bytes=max_model_bytes())
    except OSError as error:
        raise UserError(f"cannot use {path}: {explain(error)}") from error


def digest_of(content: bytes) -> str:
    """Return the digest in the name of a model's file: the first 8 hex digits of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:8]
