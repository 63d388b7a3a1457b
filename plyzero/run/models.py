"""Published models: immutable ONNX files, ordered by their names, which contain the digest of the content.

The newest model is the one with the highest name whose content matches its digest, so there is no pointer to it that
could be out of date.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from plyzero.errors import ModelDamagedError, ModelRefusedError, UserError
from plyzero.files import list_names, read_file, write_file
from plyzero.machine import usable_memory
from plyzero.run.metrics import read_lines
from plyzero.settings import MAX_MODEL_BYTES
from plyzero.volume_errors import UnreadableError, explain

NAME: Final = re.compile(r"(\d{6})-(\d{9})-([0-9a-f]{8})(\.int8)?\.onnx")
"""Pattern of the file name of a model, or of its 8-bit form: fence, step and the digest of its own content."""


CONFIRMED: Final = "confirmed"
"""The field of a line of ratings with a confirmation of a score, and of the trainer's heartbeat with all of them."""


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


def best_model(directory: Path, metrics: Path) -> ModelName:
    """Return the best model that has been measured; of equals, the newest.

    It is the newest one that reached a condition of the budget. If none did, it is the one with the best scores against
    the opponents of `plyzero train`. Raises UserError if no existing model has been measured.
    """
    counts: dict[ModelName, dict[str, tuple[int, int, int]]] = {}
    reached: set[ModelName] = set()
    for found in read_scores(metrics):
        counts.setdefault(found.model, {}).update(found.counts)
        if found.reached:
            reached.add(found.model)
    measured = [name for name in list_models(directory) if name in counts]
    if not measured:
        raise UserError(
            f"no model in {directory} has been measured yet; `plyzero train` does this while it runs; use the newest"
        )
    if ended := reached.intersection(measured):
        return max(ended)
    return max(measured, key=lambda name: (_points(counts[name]), name))


def _points(counts: Mapping[str, tuple[int, int, int]]) -> float:
    """Return the sum of all scores.

    Ratings may have different numbers of games. A win and a loss are added to each score, so that two games won do not
    count for more than nineteen of twenty.
    """
    return sum((won + drawn / 2 + 1) / (won + drawn + lost + 2) for won, drawn, lost in counts.values())


class Scores(NamedTuple):
    """The scores that `train` has measured for a model.

    counts:  opponent -> wins, draws and losses.
    reached: whether they confirm that the model reaches the condition of a budget.
    """

    model: ModelName
    counts: dict[str, tuple[int, int, int]]
    reached: bool = False


def read_scores(metrics: Path) -> Iterator[Scores]:
    """Yield the scores in the lines of ratings of a run, oldest first."""
    yield from filter(None, map(parse_scores, read_lines(metrics / "rating.jsonl")))


def parse_scores(line: dict[str, Any]) -> Scores | None:
    """Return the scores in a line of ratings, without those that no match has; None if there are none."""
    model, scores = model_of(line), line.get("scores")
    if model is None or not isinstance(scores, dict):
        return None
    counts = {opponent: (*found,) for opponent, found in scores.items() if _are_counts(found)}
    confirmation = line.get(CONFIRMED)
    reached = isinstance(confirmation, dict) and confirmation.get("reached") is True
    return Scores(model, counts, reached) if counts else None


def _are_counts(found: object) -> bool:
    if not isinstance(found, list) or len(found) != 3 or not all(type(each) is int for each in found):
        return False
    return all(0 <= each <= 1_000_000 for each in found) and any(found)


def model_of(fields: Mapping[str, Any]) -> ModelName | None:
    """Return the model that a heartbeat or a line names; None if it names none."""
    label = fields.get("model")
    return ModelName.parse(label) if isinstance(label, str) else None
