"""Journals: finished games that are not sealed yet, in a file of their own worker's, which others take over if it dies.

A game is acknowledged when `Journal.append` returns: a process that is killed loses nothing of it, and a machine that
loses power at most what was appended since the last `sync`. The owner holds the lock on its journal as long as it
lives, so a journal that can be locked has no owner.

A file is a sequence of frames, magic | u32 size | u32 CRC-32 of the body | body, little-endian. The first body is a
JSON object that says whose games follow; each of the others is one batch of finished games. What follows the last
frame that is right was never acknowledged.
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
MAGIC: Final = b"PZJ1"
FRAME: Final = struct.Struct("<4sII")
MAX_BYTES: Final = 1 << 30

NAME = re.compile(r"(?P<worker>[a-z0-9_]{1,32})\.(?P<incarnation>[0-9a-f]{8})-(?P<sequence>\d{8})\.wal")

log = logging.getLogger(__name__)


class Journal:
    """A journal that this process owns. Every method may raise OSError; what was acknowledged stays so."""

    def __init__(self, directory: Path, game: GameSpec, *, worker: str, incarnation: str, sequence: int) -> None:
        self._path = directory / journal_name(worker, incarnation, sequence)
        unfinished = directory / f"{files.TEMPORARY}{uuid.uuid4().hex}"
        header = {"schema": SCHEMA, **_identity(game)}
        files.write_file(unfinished, _frame(json.dumps(header).encode()))
        held = None
        try:
            held = files.lock(unfinished, needed=False)  # before anybody can see it
            assert held is not None
            self._descriptor, self._size = held, os.fstat(held).st_size
            files.rename(unfinished, self._path)
        except BaseException:
            files.remove(unfinished)
            if held is not None:
                os.close(held)
            raise

    def append(self, games: Games) -> None:
        """Acknowledge `games`. After an error the same call may be tried again: it writes to the same place."""
        frame = _frame(_encode(games))
        half = len(frame) // 2
        files.write_at(self._descriptor, frame[:half], self._size)
        files.reached("append: half", self._path)
        files.write_at(self._descriptor, frame[half:], self._size + half)
        self._size += len(frame)

    def sync(self) -> None:
        """Put what was appended onto the disk itself. After an error it is not known what is there: seal, anew."""
        files.sync(self._descriptor, self._path)

    def close(self) -> None:
        """Remove the journal: its games are sealed, or there are none."""
        try:
            files.remove(self._path)
        finally:
            os.close(self._descriptor)


def journal_name(worker: str, incarnation: str, sequence: int) -> str:
    """Return the file name of a journal; it becomes the segment of the same worker, incarnation and sequence."""
    return f"{worker}.{incarnation}-{sequence:08d}.wal"


def read_journal(path: Path, game: GameSpec) -> list[Games]:
    """Return the batches of games that were acknowledged, in order.

    Raises ValueError if the file is of another schema or game, or if a whole frame holds what no worker writes, and
    OSError if the volume does not give it.
    """
    try:
        bodies = _bodies(files.read_file(path, max_bytes=MAX_BYTES))
    except files.UnreadableError as error:
        raise ValueError(f"{path.name}: {error.strerror}") from error
    header = json.loads(next(bodies, b"null"))
    expected = {"schema": SCHEMA, **_identity(game)}
    if header != expected:
        raise ValueError(f"{path.name} is of {header!r}, not of {expected!r}")
    batches = [_decode(body, game) for body in bodies]
    for batch in batches:
        check_games(batch, game.start.num_actions)
    return batches


def adopt_journals(run: Run, *, gone: Collection[str] = ()) -> int:
    """Seal the journals of `run` whose owners are dead, under the names that those would use; return how many games.

    Whoever gets the lock does it, and it is done once: a journal whose segment is there already is only removed. One
    that is damaged is moved to `quarantine`, and one that the volume does not give just now is left for later, both
    with a warning.

    gone: `<worker>.<incarnation>` of those held to be dead where the volume has no locks.
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
            log.warning("%s waits for somebody to seal it: %s", path.name, error)
        finally:
            os.close(held)
    return adopted


def _adopt(run: Run, path: Path, worker: str, incarnation: str, sequence: int) -> int:
    """Do with one journal, whose lock we hold, what is to be done; return how many games were sealed."""
    try:
        batches = read_journal(path, run.game)
    except OSError:
        raise
    except Exception as error:  # damage has many words
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
        log.info("sealed %s for a process that is gone", segment.name)
        adopted = len(games.games)
    files.remove(path)
    return adopted


def owners(journals: Path) -> set[str] | None:
    """Return `<worker>.<incarnation>` of every process that holds a journal; None where the volume has no locks."""
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
    """Yield the body of every frame up to the first that is not right."""
    at = 0
    while len(content) - at >= FRAME.size:
        magic, size, checksum = FRAME.unpack_from(content, at)
        body = content[at + FRAME.size : at + FRAME.size + size]
        if magic != MAGIC or len(body) < size or zlib.crc32(body) != checksum:
            return
        yield body
        at += FRAME.size + size


def _encode(games: Games) -> bytes:
    observations = games.observations
    if observations.dtype.kind == "b":
        observations = np.packbits(observations.reshape(len(observations), -1), axis=1)
    parts = (games.games, games.positions, games.moves, observations)
    return struct.pack("<I", len(games.games)) + b"".join(part.tobytes() for part in parts)


def _decode(body: bytes, game: GameSpec) -> Games:
    """Raises ValueError where the counts in the records and the size of the body disagree."""
    (size,) = struct.unpack_from("<I", body)
    games, at = _take(body, 4, GAME, size)
    positions, at = _take(body, at, POSITION, int(games["positions"].sum()))
    moves, at = _take(body, at, MOVE, int(positions["num_legal"].sum()))
    shape, dtype = game.start.observation_shape, np.dtype(game.start.observation_dtype)
    numbers = int(np.prod(shape))
    if dtype.kind == "b":
        packed, at = _take(body, at, np.dtype(np.uint8), len(positions) * -(-numbers // 8))
        flat = np.unpackbits(packed.reshape(len(positions), -1), axis=1, count=numbers).astype(np.bool_)
    else:
        flat, at = _take(body, at, dtype, len(positions) * numbers)
    if at != len(body):
        raise ValueError(f"a frame of {len(body)} bytes holds games for {at}")
    return Games(games, positions, moves, flat.reshape(len(positions), *shape))


def _take(body: bytes, at: int, dtype: np.dtype[Any], size: int) -> tuple[np.ndarray[Any, Any], int]:
    return np.frombuffer(body, dtype, size, at), at + size * dtype.itemsize
