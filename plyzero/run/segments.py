"""Sealed segments: finished games in one immutable file, a complete Zarr v3 store in a zip file that zarr can open.

Guaranteed: a segment is visible completely or not at all, never changes, and is written by one process; a damaged
segment is not decoded. Not guaranteed: any order between writers.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.files import list_names, read_file, write_file
from plyzero.rules.catalog import GameSpec
from plyzero.run.directory import KEY, RunId
from plyzero.run.records import (
    FORMAT_1,
    GAME,
    MOVE,
    POSITION,
    Games,
    JournalName,
    find_valid,
    format_of,
    identify,
    pack_bits,
    unpack_bits,
    with_score,
)
from plyzero.run.zarr_zip import MAX_BYTES, Archive, pack
from plyzero.volume_errors import UnreadableError

SCHEMAS: Final = {1: "plyzero.replay/1", 2: "plyzero.replay/2"}
"""Schema and version of a segment, 2 for a game with points; readers ignore unknown arrays, refuse other versions."""

LUCK: Final = "position/luck"
"""The array that only games with dice have, and only with `trainer.luck_adjustment`."""

NAME: Final = re.compile(r"([a-z0-9_]{1,32})\.([0-9a-f]{8})-(\d{8})-g(\d+)-p(\d+)-f(\d+)-m(\d+)_(\d+)\.zarr\.zip")
"""Pattern of the file name of a segment: the fields of SegmentName in their order."""

UNUSED: Final = ".unused"
"""The end of the name of a file that takes the place of a segment that will never come."""

log = logging.getLogger(__name__)


class SegmentError(Exception):
    """A segment that cannot be used. The message says which one and why."""


class SegmentName(NamedTuple):
    """The fields of a segment's file name. They count its games, so that nobody has to open the file for this.

    worker, incarnation, sequence: those of the journal that its games come from.

    games:       number of games.
    positions:   number of positions.
    full:        number of positions with a full search.
    first_step:  smallest step of the models that evaluated the searched positions; 0 = no model.
    last_step:   largest step of those models; 0 = no model.
    """

    worker: str
    incarnation: str
    sequence: int
    games: int
    positions: int
    full: int
    first_step: int
    last_step: int

    def __str__(self) -> str:
        return (
            f"{self.worker}.{self.incarnation}-{self.sequence:08d}-g{self.games}-p{self.positions}-f{self.full}"
            f"-m{self.first_step}_{self.last_step}.zarr.zip"
        )

    @property
    def journal(self) -> JournalName:
        """The name of the journal that its games come from."""
        return JournalName(self.worker, self.incarnation, self.sequence)

    @property
    def bootstrap(self) -> bool:
        """Whether all games were played before there was a model."""
        return self.last_step == 0

    @staticmethod
    @lru_cache(maxsize=1 << 18)  # every process lists the same names again and again
    def parse(name: str) -> SegmentName | None:
        """Return the fields of the file name `name`, None if it is not the name of a segment."""
        match = NAME.fullmatch(name)
        if not match:
            return None
        worker, incarnation, *numbers = match.groups()
        parsed = SegmentName(worker, incarnation, *map(int, numbers))
        return parsed if str(parsed) == name else None


def write_segment(
    directory: Path, games: Games, game: GameSpec, journal: JournalName, *, run_id: RunId | None = None
) -> Path:
    """Seal `games` of the run `run_id` into `directory`; return the file. Raises FileExistsError if it exists.

    journal: the journal that the games come from; it need not exist.
    """
    path = directory / str(_name_for(games, journal))
    columns = _columns(games)
    if format_of(game) == 1:
        del columns["game/score"]
    write_file(path, pack(columns, _attributes(journal, game) | ({KEY: run_id.text} if run_id else {})))
    return path


def read_segment(path: Path, game: GameSpec, *, run_id: RunId | None = None) -> Games:
    """Return the games in a segment. Those that no worker writes are left out, with a warning.

    run_id: id of the run that it must belong to; None = any.

    Raises SegmentError if the content was read and is damaged, does not match its name, is of another game, run or
    schema, or has no valid game; and OSError if the volume failed to give the content, which may be intact.
    """
    name = SegmentName.parse(path.name)
    if name is None or not 0 < name.games <= name.positions <= 1 << 20:  # workers seal long before
        raise SegmentError(f"{path.name} cannot be read: its file name is not that of a segment")
    try:
        content = read_file(path, max_bytes=MAX_BYTES)
    except UnreadableError as error:
        raise SegmentError(f"{path.name} cannot be read: {error.strerror}") from error
    if not content:
        raise SegmentError(f"{path.name} cannot be read: it is empty")
    try:
        archive = Archive(content)
        has_score = archive.attributes.get("schema") == SCHEMAS[2]
        expected_of = _attributes(name.journal, game) | ({} if has_score else {"schema": SCHEMAS[1]})
        for key, value in expected_of.items():
            if archive.attributes.get(key) != value:
                raise ValueError(f"{key} is {archive.attributes.get(key)!r}, not {value!r}")
        if run_id and (foreign := run_id.find_fault(archive.attributes.get(KEY))):
            raise SegmentError(f"{path.name} is refused: {foreign}")
        positions = _read_records(archive, "position", POSITION, name.positions)
        games = Games(
            games=with_score(_read_records(archive, "game", GAME if has_score else FORMAT_1, name.games), game),
            positions=positions,
            moves=_read_records(archive, "move", MOVE, int(positions["num_legal"].sum())),
            observations=_read_observations(archive, name.positions, game),
            luck=archive.read(LUCK, np.float32, (name.positions,)) if archive.data_type(LUCK) else None,
        )
        valid, fault = find_valid(games, game.start.num_actions)
        expected = _name_for(games, name.journal)
        if expected != name:
            raise ValueError(f"by its content its name would be {expected}")
        if not valid.any():
            raise ValueError(fault)
    except SegmentError:
        raise
    except MemoryError as error:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), str(path)) from error
    except Exception as error:  # zipfile, zlib, zstd and json each raise their own errors for damage
        raise SegmentError(f"{path.name} cannot be read: {error!r}") from error
    if fault:
        log.warning("%s: %d of %d games are left out: %s", path.name, (~valid).sum(), len(valid), fault)
        return games.select(valid)
    return games


def mark_unused(directory: Path, journal: JournalName) -> None:
    """Leave a file that says that no segment with the number of `journal` will ever come, so that nobody waits for it.

    A segment that comes nevertheless is read.
    """
    write_file(unused_file(directory, journal), b"", replace=True)


def unused_file(directory: Path, journal: JournalName) -> Path:
    """Return the file that `mark_unused` leaves."""
    return directory / f"{journal.owner}-{journal.sequence:08d}{UNUSED}"


def parse_unused(name: str) -> JournalName | None:
    """Return the journal named by a file of `mark_unused`; None for any other file name."""
    return JournalName.parse(f"{name.removesuffix(UNUSED)}.wal") if name.endswith(UNUSED) else None


def bootstrap_positions(directory: Path) -> int:
    """Return the number of sealed positions with a full search, from which a run without a model makes its first one.

    They were made without a model, or are those of the run before.
    """
    return sum(name.full for name in list_segments(directory))


def list_segments(directory: Path) -> Iterator[SegmentName]:
    """Yield the name of every sealed segment in `directory`, in no particular order."""
    yield from filter(None, map(SegmentName.parse, list_names(directory)))


def _name_for(games: Games, journal: JournalName) -> SegmentName:
    steps = games.positions["model_step"][games.positions["search"] > 0]
    return SegmentName(
        journal.worker,
        journal.incarnation,
        journal.sequence,
        games=len(games.games),
        positions=len(games.positions),
        full=games.num_full,
        first_step=int(steps.min()) if len(steps) else 0,
        last_step=int(steps.max()) if len(steps) else 0,
    )


def _attributes(journal: JournalName, game: GameSpec) -> dict[str, object]:
    return {"schema": SCHEMAS[format_of(game)], **identify(game), **journal.writer}


def _columns(games: Games) -> dict[str, NDArray[np.generic]]:
    columns = {}
    for group, records in (("game", games.games), ("position", games.positions), ("move", games.moves)):
        for field in records.dtype.names or ():
            columns[f"{group}/{field}"] = records[field]
    if games.observations.dtype.kind == "b":
        columns["position/observation_bits"] = pack_bits(games.observations)
    else:
        columns["position/observation"] = games.observations
    if games.luck is not None:
        columns[LUCK] = games.luck
    return columns


def _read_records(archive: Archive, group: str, dtype: np.dtype[np.void], size: int) -> NDArray[np.void]:
    columns = {field: archive.read(f"{group}/{field}", dtype[field], (size,)) for field in dtype.names or ()}
    records = np.zeros(size, dtype)  # allocated last, when the file is known to hold as much
    for field, column in columns.items():
        records[field] = column
    return records


def _read_observations(archive: Archive, positions: int, game: GameSpec) -> NDArray[np.generic]:
    shape = game.start.observation_shape
    dtype = np.dtype(game.start.observation_dtype)
    if dtype.kind == "b":
        size = -(-int(np.prod(shape)) // 8)
        return unpack_bits(archive.read("position/observation_bits", np.uint8, (positions, size)), shape)
    return archive.read("position/observation", dtype, (positions, *shape))
