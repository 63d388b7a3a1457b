"""A game as the records of a run describe it: enough to read them, without importing its rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from plyzero.files import read_file
from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game
from plyzero.run import journals
from plyzero.run.directory import RunDirectory
from plyzero.run.run_id import KEY
from plyzero.run.segments import list_segments
from plyzero.run.zarr_zip import MAX_BYTES, Archive

DTYPES: Final = ("bool", "uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64")
"""Types that observations may have."""

MAX_SIZE: Final = 1 << 24
"""Largest number of actions, and of numbers in an observation."""


@dataclass(frozen=True)
class Shapes:
    """What records say of a game: the attributes of `Game` that their readers use."""

    version: int
    num_actions: int
    observation_shape: tuple[int, ...]
    observation_dtype: str


def find_recorded_game(run: RunDirectory) -> GameSpec | None:
    """Return the game of `run` as its first readable segment or journal describes it, None if there is none.

    Only the sizes are known: its `start` is a Shapes, which cannot be played.
    """
    version = int(run.identity.rpartition(" v")[2])
    for fields in _descriptions(run):
        if run.id and run.id.find_fault(fields.get(KEY)):
            continue
        shape, actions, dtype = (fields.get(key) for key in ("observation_shape", "num_actions", "observation_dtype"))
        sizes = [actions, *shape] if isinstance(shape, list) and len(shape) == 3 else [0]
        known = all(type(size) is int and 0 < size <= MAX_SIZE for size in sizes) and dtype in DTYPES
        if known and math.prod(sizes[1:]) <= MAX_SIZE:
            shapes = Shapes(version, sizes[0], tuple(sizes[1:]), str(dtype))
            return GameSpec(run.game_name, cast(Game, shapes))
    return None


def _descriptions(run: RunDirectory) -> Iterator[dict[str, Any]]:
    """Yield the attributes of the segments and the headers of the journals that can be read."""
    for name in sorted(list_segments(run.segments)):
        try:
            archive = Archive(read_file(run.segments / str(name), max_bytes=MAX_BYTES))
            yield {**archive.attributes, "observation_dtype": archive.data_type("position/observation") or "bool"}
        except Exception:  # damage causes errors of many types, and is reported where the file is verified
            continue
    for journal in journals.list_journals(run.journals):
        try:
            yield journals.read_header(run.journals / str(journal))
        except Exception:
            continue
