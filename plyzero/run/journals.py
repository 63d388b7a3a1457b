"""Journals: finished games that are not sealed yet, one file per worker, which others seal if the worker dies.

A game is acknowledged when `Journal.append` returns: it then survives the death of the process, and after the next
`sync` also a power failure. The worker that owns a journal holds the lock on it until its process ends, so a journal
that can be locked has no owner.

A file is a sequence of frames, magic | u32 size | u32 CRC-32 of the body | body, little-endian. The first body is a
JSON object that identifies the game and its shapes; each of the others is one batch of finished games. Bytes after the
last valid frame were never acknowledged.
"""

from __future__ import annotations

import json
import logging
import os
import re
import struct
import uuid
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from plyzero import files
from plyzero.rules.catalog import GameSpec
from plyzero.run.directory import Run
from plyzero.run.records import GAME, MOVE, POSITION, Games, check_games
from plyzero.run.segments import list_segments, write_segment

SCHEMA: Final = "plyzero.journal/1"
"""Schema and version in the header of a journal; a reader refuses any other."""

MAGIC: Final = b"PZJ1"
"""First bytes of every frame."""

FRAME: Final = struct.Struct("<4sII")
"""Header of a frame: magic, size of the body in bytes, CRC-32 of the body."""

MAX_BYTES: Final = 1 << 30
"""Largest size of a journal file that is read, in bytes."""

NAME: Final = re.compile(r"(?P<worker>[a-z0-9_]{1,32})\.(?P<incarnation>[0-9a-f]{8})-(?P<sequence>\d{8})\.wal")
"""Pattern of the file name of a journal."""

log = logging.getLogger(__name__)


class Journal:
    """A journal that this process owns. Every method may raise OSError; acknowledged games are not affected by it."""

    def __init__(self, directory: Path, game: GameSpec, *, worker: str, incarnation: str, sequence: int) -> None:
        self._path = directory / journal_name(worker, incarnation, sequence)
        unfinished = directory / f"{files.TEMPORARY}{uuid.uuid4().hex}"
        header = {"schema": SCHEMA, **_identity(game)}
        files.write_file(unfinished, _frame(json.dumps(header).encode()))
        held = None
        try:
            held = files.lock(unfinished, needed=False)  # before other processes can see it
            assert held is not None
            self._descriptor, self._size = held, os.fstat(held).st_size
            files.rename(unfinished, self._path)
        except BaseException:
            files.remove(unfinished)
            if held is not None:
                os.close(held)
            raise

    def append(self, games: Games) -> None:
        """Append and thereby acknowledge `games`. After an error the call may be repeated: the offset has not moved."""
        frame = _frame(_encode(games))
        half = len(frame) // 2
        files.write_at(self._descriptor, frame[:half], self._size)
        files.fault_point("append: half", self._path)
        files.write_at(self._descriptor, frame[half:], self._size + half)
        self._size += len(frame)

    def sync(self) -> None:
        """Sync what was appended to disk. After an error its state on disk is unknown, so seal the games instead."""
        files.sync(self._descriptor, self._path)

    def close(self) -> None:
        """Remove the journal, whose games are all sealed, and release the lock."""
        try:
            files.remove(self._path)
        finally:
            os.close(self._descriptor)


def journal_name(worker: str, incarnation: str, sequence: int) -> str:
    """Return the file name of a journal; its games become the segment of the same worker, incarnation and sequence."""
    return f"{worker}.{incarnation}-{sequence:08d}.wal"


def read_journal(path: Path, game: GameSpec) -> list[Games]:
    """Return the acknowledged batches of games, in order.

    Raises ValueError if the file is of another schema or game, or if a valid frame holds records that no worker writes,
    and OSError if the volume fails to read it.
    """
    try:
        bodies = _bodies(files.read_file(path, max_bytes=MAX_BYTES))
    except files.UnreadableError as error:
        raise ValueError(f"{path.name}: {error.strerror}") from error
    header = json.loads(next(bodies, b"null"))
    expected = {"schema": SCHEMA, **_identity(game)}
    if header != expected:
        raise ValueError(f"{path.name} has the header {header!r}, expected {expected!r}")
    batches = [_decode(body, game) for body in bodies]
    for batch in batches:
        check_games(batch, game.start.num_actions)
    return batches


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a journal, which describes its game. Raises ValueError or OSError if it cannot be read."""
    header = json.loads(next(_bodies(files.read_file(path, max_bytes=MAX_BYTES)), b"null"))
    if not isinstance(header, dict):
        raise ValueError(f"{path.name} has no header")
    return header


def adopt_journals(run: Run, *, gone: Collection[str] = ()) -> int:
    """Seal the journals of `run` whose owners are dead, under the owners' names; return the number of games sealed.

    The process that gets the lock seals a journal. This happens once: if the segment exists already, the journal is
    only removed. A damaged journal is moved to `quarantine`; one that the volume fails to read is left for a later
    call. Both are logged as warnings.

    gone: `<worker>.<incarnation>` of the owners that count as dead if the volume does not support locks.
    """
    adopted = 0
    for path in sorted(run.journals.glob("*.wal")):
        match = NAME.fullmatch(path.name)
        if not match:
            continue
        worker, incarnation, sequence = match["worker"], match["incarnation"], int(match["sequence"])
        try:
            held = files.lock(path, needed=f"{worker}.{incarnation}" not in gone)
        except OSError as error:
            if error.errno not in files.NO_LOCKS:
                raise
            continue
        if held is None:
            continue
        try:
            adopted += _adopt(run, path, worker, incarnation, sequence)
        except OSError as error:
            log.warning("%s is not sealed yet: %s", path.name, error)
        finally:
            os.close(held)
    return adopted


def _adopt(run: Run, path: Path, worker: str, incarnation: str, sequence: int) -> int:
    """Seal, remove or quarantine one journal, whose lock this process holds; return the number of games sealed."""
    try:
        batches = read_journal(path, run.game)
    except OSError:
        raise
    except Exception as error:  # damage causes errors of many types
        log.warning("moved to quarantine: %s cannot be read: %r", path.name, error)
        files.move(path, run.quarantine)
        return 0
    sealed = {(name.incarnation, name.sequence) for name in list_segments(run.segments)}
    adopted = 0
    if batches and (incarnation, sequence) not in sealed:
        games = Games.concatenate(batches)
        segment = write_segment(
            run.segments, games, run.game, worker=worker, incarnation=incarnation, sequence=sequence
        )
        log.info("sealed %s for a dead process", segment.name)
        adopted = len(games.games)
    files.remove(path)
    return adopted


def owners(journals: Path) -> set[str] | None:
    """Return `<worker>.<incarnation>` of every process that holds the lock of a journal; None if there are no locks."""
    alive = set()
    for path in journals.glob("*.wal"):
        match = NAME.fullmatch(path.name)
        try:
            held = files.lock(path)
        except OSError:
            return None
        if held is not None:
            os.close(held)
        elif match:
            alive.add(f"{match['worker']}.{match['incarnation']}")
    return alive


def _identity(game: GameSpec) -> dict[str, Any]:
    start = game.start
    return {
        "game": game.identity,
        "observation_shape": list(start.observation_shape),
        "observation_dtype": np.dtype(start.observation_dtype).name,
        "num_actions": start.num_actions,
    }


def _frame(body: bytes) -> bytes:
    return FRAME.pack(MAGIC, len(body), zlib.crc32(body)) + body


def _bodies(content: bytes) -> Iterator[bytes]:
    """Yield the body of every frame up to the first invalid one."""
    offset = 0
    while len(content) - offset >= FRAME.size:
        magic, size, checksum = FRAME.unpack_from(content, offset)
        body = content[offset + FRAME.size : offset + FRAME.size + size]
        if magic != MAGIC or len(body) < size or zlib.crc32(body) != checksum:
            return
        yield body
        offset += FRAME.size + size


def _encode(games: Games) -> bytes:
    observations = games.observations
    if observations.dtype.kind == "b":
        observations = np.packbits(observations.reshape(len(observations), -1), axis=1)
    parts = (games.games, games.positions, games.moves, observations)
    return struct.pack("<I", len(games.games)) + b"".join(part.tobytes() for part in parts)


def _decode(body: bytes, game: GameSpec) -> Games:
    """Return the games in a body. Raises ValueError if the counts in the records do not match the size of the body."""
    (num_games,) = struct.unpack_from("<I", body)
    games, offset = _read_array(body, 4, GAME, num_games)
    positions, offset = _read_array(body, offset, POSITION, int(games["positions"].sum()))
    moves, offset = _read_array(body, offset, MOVE, int(positions["num_legal"].sum()))
    shape, dtype = game.start.observation_shape, np.dtype(game.start.observation_dtype)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        packed, offset = _read_array(body, offset, np.dtype(np.uint8), len(positions) * -(-size // 8))
        flat = np.unpackbits(packed.reshape(len(positions), -1), axis=1, count=size).astype(np.bool_)
    else:
        flat, offset = _read_array(body, offset, dtype, len(positions) * size)
    if offset != len(body):
        raise ValueError(f"a frame of {len(body)} bytes has games of {offset} bytes")
    observations = flat.reshape(len(positions), *shape)
    return Games(games=games, positions=positions, moves=moves, observations=observations)


def _read_array(body: bytes, offset: int, dtype: np.dtype[Any], size: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return `size` elements of `body` from `offset`, and the offset after them."""
    return np.frombuffer(body, dtype, size, offset), offset + size * dtype.itemsize
