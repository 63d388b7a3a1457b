"""Sealed segments: finished games in one immutable file, a complete Zarr v3 store in a zip, which plain zarr opens.

Guaranteed: a segment is visible whole or not at all and never changes; one process writes it; a damaged one does not
decode. Not guaranteed: any order between writers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.files import read_file, write_file
from plyzero.rules.catalog import GameSpec
from plyzero.run.records import GAME, MOVE, POSITION, Games, check_games
from plyzero.run.zarr_zip import MAX_BYTES, Archive, pack

SCHEMA = "plyzero.replay/1"
"""Readers ignore arrays they do not know and refuse another number."""

NAME = re.compile(
    r"(?P<worker>[a-z0-9_]{1,32})\.(?P<incarnation>[0-9a-f]{8})-(?P<sequence>\d{8})"
    r"-g(?P<games>\d+)-p(?P<positions>\d+)-f(?P<full>\d+)-m(?P<low>\d+)_(?P<high>\d+)\.zarr\.zip"
)


MAX_POSITIONS: Final = 1 << 20
"""Of a segment that is read; workers seal long before."""


class SegmentError(Exception):
    """A segment that cannot be used; says which and why."""


@dataclass(frozen=True, order=True)
class SegmentName:
    """What a file name tells, so that nobody has to open or stat a file to count.

    worker, incarnation: the writer; a new incarnation (8 hex digits) with every start of a process.
    sequence:            0, 1, 2, ... per incarnation.
    games, positions, full: how many; full = positions with a full search.
    low, high:           smallest and largest step of the models that were asked; 0 = no model yet.
    """

    worker: str
    incarnation: str
    sequence: int
    games: int
    positions: int
    full: int
    low: int
    high: int

    def __str__(self) -> str:
        return (
            f"{self.worker}.{self.incarnation}-{self.sequence:08d}-g{self.games}-p{self.positions}-f{self.full}"
            f"-m{self.low}_{self.high}.zarr.zip"
        )

    @property
    def bootstrap(self) -> bool:
        """Made before there was a model."""
        return self.high == 0

    @staticmethod
    @lru_cache(maxsize=1 << 16)  # everybody lists the same names again and again
    def parse(name: str) -> SegmentName | None:
        """Return what `name` tells, None if it is not the name of a segment."""
        match = NAME.fullmatch(name)
        if not match:
            return None
        worker, incarnation, *numbers = match.groups()
        parsed = SegmentName(worker, incarnation, *map(int, numbers))
        return parsed if str(parsed) == name else None


def write_segment(
    directory: Path, games: Games, game: GameSpec, *, worker: str, incarnation: str, sequence: int
) -> Path:
    """Seal `games` into `directory` and return the file. FileExistsError if it has been sealed under this name."""
    name = _name(games, worker, incarnation, sequence)
    path = directory / str(name)
    write_file(path, pack(_columns(games), _attributes(name, game)))
    return path


def read_segment(path: Path, game: GameSpec) -> Games:
    """Return the games in a segment, which are as a worker makes them: see `check_games`.

    Raises SegmentError if it is damaged, does not hold what its name says, or is of another game or schema, and
    FileNotFoundError if it is gone.
    """
    try:
        name = SegmentName.parse(path.name)
        if name is None or not 0 < name.games <= name.positions <= MAX_POSITIONS:
            raise ValueError("it has not the name of a segment")
        archive = Archive(read_file(path, max_bytes=MAX_BYTES))
        for key, value in _attributes(name, game).items():
            if archive.attributes.get(key) != value:
                raise ValueError(f"{key} is {archive.attributes.get(key)!r}, not {value!r}")
        positions = _read_records(archive, "position", POSITION, name.positions)
        games = Games(
            _read_records(archive, "game", GAME, name.games),
            positions,
            _read_records(archive, "move", MOVE, int(positions["num_legal"].sum())),
            _read_observations(archive, name.positions, game),
        )
        check_games(games, game.start.num_actions)
        if (inside := _name(games, name.worker, name.incarnation, name.sequence)) != name:
            raise ValueError(f"by what is inside its name is {inside}")
    except FileNotFoundError:
        raise
    except Exception as error:  # the system, zipfile, zlib, zstd and json each have their own words for damage
        raise SegmentError(f"{path.name} cannot be read: {error!r}") from error
    return games


def list_segments(directory: Path) -> Iterator[SegmentName]:
    """Yield the name of every sealed segment, in no particular order."""
    for file in os.listdir(directory):
        name = SegmentName.parse(file)
        if name:
            yield name


def _name(games: Games, worker: str, incarnation: str, sequence: int) -> SegmentName:
    steps = games.positions["model_step"][games.positions["search"] > 0]
    low, high = (int(steps.min()), int(steps.max())) if len(steps) else (0, 0)
    counts = (len(games.games), len(games.positions), games.num_full)
    return SegmentName(worker, incarnation, sequence, *counts, low, high)


def _attributes(name: SegmentName, game: GameSpec) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "game": game.identity,
        "observation_shape": list(game.start.observation_shape),
        "num_actions": game.start.num_actions,
        "worker": name.worker,
        "incarnation": name.incarnation,
        "sequence": name.sequence,
    }


def _columns(games: Games) -> dict[str, NDArray[Any]]:
    columns = {}
    for group, records in (("game", games.games), ("position", games.positions), ("move", games.moves)):
        for field in records.dtype.names or ():
            columns[f"{group}/{field}"] = records[field]
    if games.observations.dtype.kind == "b":
        flat = games.observations.reshape(len(games.observations), -1)
        columns["position/observation_bits"] = np.packbits(flat, axis=1)
    else:
        columns["position/observation"] = games.observations
    return columns


def _read_records(archive: Archive, group: str, dtype: np.dtype[Any], size: int) -> NDArray[np.void]:
    columns = {field: archive.read(f"{group}/{field}", dtype[field], (size,)) for field in dtype.names or ()}
    records = np.zeros(size, dtype)  # only now: the file is known to hold as much
    for field, column in columns.items():
        records[field] = column
    return records


def _read_observations(archive: Archive, positions: int, game: GameSpec) -> NDArray[Any]:
    shape = game.start.observation_shape
    dtype = np.dtype(game.start.observation_dtype)
    if dtype.kind == "b":
        size = int(np.prod(shape))
        bits = archive.read("position/observation_bits", np.uint8, (positions, -(-size // 8)))
        return np.unpackbits(bits, axis=1, count=size).astype(np.bool_).reshape(positions, *shape)
    return archive.read("position/observation", dtype, (positions, *shape))
