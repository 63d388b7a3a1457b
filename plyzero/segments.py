"""Sealed segments: finished games in one immutable file, a complete Zarr v3 store in a zip, which plain zarr opens.

Guaranteed: a segment is visible whole or not at all and never changes; one process writes it; a damaged one does not
decode. Not guaranteed: any order between writers.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray
from zarr.codecs import ZstdCodec
from zarr.core.buffer import Buffer, default_buffer_prototype
from zarr.storage import MemoryStore

from plyzero.catalog import GameSpec
from plyzero.files import write_file
from plyzero.records import GAME, MOVE, POSITION, Games

SCHEMA = "plyzero.replay/1"
"""Readers ignore arrays they do not know and refuse another number."""

NAME = re.compile(
    r"(?P<worker>[a-z0-9_]{1,32})\.(?P<incarnation>[0-9a-f]{8})-(?P<sequence>\d{8})"
    r"-g(?P<games>\d+)-p(?P<positions>\d+)-f(?P<full>\d+)-m(?P<low>\d+)_(?P<high>\d+)\.zarr\.zip"
)


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
    def parse(name: str) -> SegmentName | None:
        """Return what `name` tells, None if it is not the name of a segment."""
        match = NAME.fullmatch(name)
        if not match:
            return None
        worker, incarnation, *numbers = match.groups()
        return SegmentName(worker, incarnation, *map(int, numbers))


def write_segment(
    directory: Path, games: Games, game: GameSpec, *, worker: str, incarnation: str, sequence: int
) -> Path:
    """Seal `games` into `directory` and return the file. Two segments are never written under one name."""
    steps = games.positions["model_step"][games.positions["search"] > 0]
    low, high = (int(steps.min()), int(steps.max())) if len(steps) else (0, 0)
    counts = (len(games.games), len(games.positions), games.num_full)
    name = SegmentName(worker, incarnation, sequence, *counts, low, high)
    attributes = {
        "schema": SCHEMA,
        "game": game.identity,
        "observation_shape": list(game.start.observation_shape),
        "num_actions": game.start.num_actions,
        "worker": worker,
        "incarnation": incarnation,
        "sequence": sequence,
    }
    path = directory / str(name)
    write_file(path, _encode(games, attributes, np.dtype(game.start.observation_dtype)))
    return path


def read_segment(path: Path, game: GameSpec) -> Games:
    """Return the games in a segment. Raises SegmentError if it is damaged, or of another game or schema."""
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            from_bytes = default_buffer_prototype().buffer.from_bytes
            members = {name: from_bytes(archive.read(name)) for name in archive.namelist()}
        root = zarr.open_group(MemoryStore(members), mode="r")
        _check(root.attrs.asdict(), game)
        positions = _read_records(root, "position", POSITION)
        observations = _read_observations(root, len(positions), game)
        games = Games(_read_records(root, "game", GAME), positions, _read_records(root, "move", MOVE), observations)
        _check_lengths(games)
    except Exception as error:  # zipfile, zlib, zarr and json each have their own words for damage
        raise SegmentError(f"{path.name} cannot be read: {error!r}") from error
    return games


def list_segments(directory: Path) -> Iterator[SegmentName]:
    """Yield the name of every sealed segment, in no particular order."""
    for path in directory.glob("*.zarr.zip"):
        name = SegmentName.parse(path.name)
        if name:
            yield name


def _encode(games: Games, attributes: dict[str, Any], observation_dtype: np.dtype[Any]) -> bytes:
    members: dict[str, Buffer] = {}
    store = MemoryStore(members)
    root = zarr.create_group(store, zarr_format=3, attributes=attributes)
    for group, records in (("game", games.games), ("position", games.positions), ("move", games.moves)):
        for field in records.dtype.names or ():
            _write_array(root, f"{group}/{field}", records[field])
    if observation_dtype.kind == "b":
        _write_array(root, "position/observation_bits", np.packbits(_flat(games.observations), axis=1))
    else:
        _write_array(root, "position/observation", games.observations)
    with warnings.catch_warnings():  # consolidated metadata: inline, and right for a store that never changes
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(store)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for key in sorted(members):
            member = zipfile.ZipInfo(key, (1980, 1, 1, 0, 0, 0))  # the same games give the same bytes
            metadata = key.endswith("zarr.json")
            member.compress_type = zipfile.ZIP_DEFLATED if metadata else zipfile.ZIP_STORED
            archive.writestr(member, members[key].to_bytes())
    return file.getvalue()


def _write_array(root: zarr.Group, name: str, data: NDArray[Any]) -> None:
    root.create_array(
        name,
        data=np.ascontiguousarray(data),
        chunks=tuple(max(1, n) for n in data.shape),
        compressors=ZstdCodec(level=1, checksum=True),
        config={"write_empty_chunks": True},
    )


def _read_records(root: zarr.Group, group: str, dtype: np.dtype[Any]) -> NDArray[np.void]:
    columns = {field: _read_array(root, f"{group}/{field}") for field in dtype.names or ()}
    records = np.zeros(len(next(iter(columns.values()))), dtype)
    for field, column in columns.items():
        if column.shape != records.shape:
            raise ValueError(f"{group}/{field} has shape {column.shape}, not {records.shape}")
        records[field] = column
    return records


def _read_observations(root: zarr.Group, positions: int, game: GameSpec) -> NDArray[Any]:
    shape = game.start.observation_shape
    dtype: DTypeLike = game.start.observation_dtype
    if np.dtype(dtype).kind == "b":
        bits = _read_array(root, "position/observation_bits")
        flat = np.unpackbits(bits, axis=1, count=int(np.prod(shape)))
        return flat.astype(np.bool_).reshape(positions, *shape)
    return _read_array(root, "position/observation").reshape(positions, *shape)


def _read_array(root: zarr.Group, name: str) -> NDArray[Any]:
    array = root[name]
    if not isinstance(array, zarr.Array):
        raise ValueError(f"{name} is not an array")
    if array.nchunks_initialized != array.nchunks:
        raise ValueError(f"{name} has lost a chunk")  # zarr itself would read zeros
    return np.asarray(array[...])


def _check(attributes: dict[str, Any], game: GameSpec) -> None:
    start = game.start
    expected = {
        "schema": SCHEMA,
        "game": game.identity,
        "observation_shape": list(start.observation_shape),
        "num_actions": start.num_actions,
    }
    for key, value in expected.items():
        if attributes.get(key) != value:
            raise ValueError(f"{key} is {attributes.get(key)!r}, not {value!r}")


def _check_lengths(games: Games) -> None:
    n, m = int(games.games["positions"].sum()), int(games.positions["num_legal"].sum())
    if (n, m) != (len(games.positions), len(games.moves)):
        raise ValueError(
            f"games count {n} positions and {m} moves; there are {len(games.positions)}, {len(games.moves)}"
        )


def _flat(observations: NDArray[Any]) -> NDArray[Any]:
    return observations.reshape(len(observations), -1)
