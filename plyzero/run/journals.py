"""Journals: finished games that are not sealed yet, one file per worker, which the trainer seals if the worker dies.

A game is acknowledged when `Journal.append` returns: it then survives the death of the process, and after the next
`sync` also a power failure. The worker that owns a journal holds the lock on it until its process ends.

A file is a sequence of frames, magic | u32 size | u32 CRC-32 of the body | body, little-endian. The first body is a
JSON object that names the game, its shapes and the writer; each of the others is one batch of finished games. An
incomplete frame at the end was never acknowledged: its writer was killed. An invalid frame before others, or one that
is complete and has another checksum, is damage: it is reported, and the frames after it are read.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import struct
import time
import uuid
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from plyzero import files
from plyzero.errors import plain
from plyzero.lines import parse_object
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
from plyzero.volume_errors import NO_LOCKS, FileErrors, UnreadableError

SCHEMAS: Final = {1: "plyzero.journal/1", 2: "plyzero.journal/2"}
"""Schema and version in the header of a journal, 2 for a game with points; a reader refuses any other."""

MAGIC: Final = b"PZJ1"
"""First bytes of every frame."""

FRAME: Final = struct.Struct("<4sII")
"""Header of a frame: magic, size of the body in bytes, CRC-32 of the body."""

MAX_BYTES: Final = 1 << 30
"""Largest size of a journal file that is read, in bytes."""

log = logging.getLogger(__name__)


class TakenError(Exception):
    """Another process has taken a journal, because it took the owner for dead, and seals its acknowledged games.

    written: whether the batch that was to be appended may be in the file that was taken.
    """

    def __init__(self, *, written: bool) -> None:
        super().__init__("another process has taken the journal")
        self.written = written


class Journal:
    """A journal that this process owns. Every method may raise OSError; acknowledged games are not affected by it.

    owned_at: when it was last known that no other process had taken it, by the clock `now`.
    """

    def __init__(self, directory: Path, game: GameSpec, name: JournalName, *, run_id: RunId | None = None) -> None:
        self._path = directory / str(name)
        self._may_be_written = False  # a batch behind the acknowledged ones
        self.owned_at = now()
        unfinished = directory / f"{files.TEMPORARY}{uuid.uuid4().hex}"
        self._format = format_of(game)
        header = {"schema": SCHEMAS[self._format], **_identity(game), **name.writer}
        header |= {KEY: run_id.text} if run_id else {}
        files.write_file(unfinished, _frame(json.dumps(header).encode()))
        held = None
        try:
            held = files.lock(unfinished, needed=False, to_write=True)  # other processes cannot see it yet
            if held is None:  # this process was suspended for so long that the trainer has removed the file
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(unfinished))
            self._descriptor = held
            self._size = os.fstat(held).st_size
            files.rename(unfinished, self._path)
        except BaseException:
            if held is not None:
                os.close(held)
            with suppress(OSError):  # the trainer removes it later
                files.remove(unfinished)
            raise

    def append(self, games: Games) -> None:
        """Append and thereby acknowledge `games`. After an OSError, repeat the call: the offset has not moved.

        Raises TakenError if the journal is not this process's any more. Whoever takes a journal renames it and then
        reads it. So what was written while it had its name is read by the other process, and is acknowledged; what was
        written later is not acknowledged, because the name is checked after each write.
        """
        self._check_owner()
        self._may_be_written = True
        frame = _frame(_encode(games, self._format))
        half = len(frame) // 2
        files.write_at(self._descriptor, frame[:half], self._size)
        files.fault_point("append: half", self._path)
        files.write_at(self._descriptor, frame[half:], self._size + half)
        files.fault_point("append: before it is checked", self._path)
        self._check_owner()
        self._size += len(frame)
        self._may_be_written = False

    def is_owned(self) -> bool:
        """Return whether the file still has its name, so that no other process has taken it."""
        before = now()
        if not files.is_named(self._descriptor, self._path):
            return False
        self.owned_at = before
        return True

    def _check_owner(self) -> None:
        """Raise TakenError if the file has another name now, or none."""
        if not self.is_owned():
            raise TakenError(written=self._may_be_written)

    def sync(self) -> None:
        """Sync what was appended to disk. After an error its state on disk is unknown, so seal the games instead."""
        files.sync(self._descriptor, self._path)

    def close(self) -> None:
        """Remove the journal, whose games are all sealed, and release the lock."""
        try:
            files.remove(self._path)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release the lock and leave the file, which another process has taken."""
        os.close(self._descriptor)


def now() -> float:
    """Return a time in seconds, by a clock that also counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def list_journals(directory: Path) -> list[JournalName]:
    """Return the names of all journals, those that were taken included, in order."""
    names = (JournalName.parse(file) for file in files.list_names(directory))
    return sorted(name for name in names if name)


def read_journal(
    path: Path, game: GameSpec, *, run_id: RunId | None = None, on_fault: Callable[[str], None] = log.warning
) -> list[Games]:
    """Return the acknowledged batches of games, in order, without games that no worker writes.

    run_id:   id of the run that it must belong to; None = any.
    on_fault: called with a sentence for every damaged part of the file and for every batch with such a game.

    Raises ValueError if the file is of another schema, game, run or writer, and OSError if the volume did not give it.
    """
    try:
        frames = _frames(files.read_file(path, max_bytes=MAX_BYTES))
    except UnreadableError as error:
        raise ValueError(f"{path.name}: {error.strerror}") from error
    _, header = next(frames, (0, None))
    version = _check_header(path, header or b"", game, run_id)
    batches = []
    for offset, body in frames:
        if body is None:
            on_fault(f"{path.name} is damaged at byte {offset}")
            continue
        try:
            batch = _decode(body, game, version)
            valid, fault = find_valid(batch, game.start.num_actions)
        except (ValueError, OverflowError, struct.error) as error:
            on_fault(f"{path.name}: the batch at byte {offset} is left out: {error}")
            continue
        if fault:
            count, total = int((~valid).sum()), len(valid)
            on_fault(f"{path.name}: of the batch at byte {offset}, {count} of {total} games are left out: {fault}")
        if valid.any():
            batches.append(batch if valid.all() else batch.select(valid))
    return batches


def read_header(path: Path) -> dict[str, object]:
    """Return the header of a journal. Raises ValueError if there is none, OSError if the file cannot be read."""
    _, body = next(_frames(files.read_file(path, max_bytes=MAX_BYTES)), (0, None))
    return parse_object(body or b"null")


def owners(directory: Path, file_errors: FileErrors, *, known: Collection[str] = ()) -> set[str] | None:
    """Return the owners of all journals that are locked; None without locks. One that cannot be opened is skipped.

    known: owners that are known to be alive, whose locks are not tested.
    """
    alive = set(known)
    for name in list_journals(directory):
        if name.owner in alive:
            continue
        path = directory / str(name)
        with file_errors.skipping(path, "cannot be opened"):
            try:
                held = files.lock(path)
            except OSError as error:
                if error.errno in NO_LOCKS:
                    return None
                raise
            if held is None:
                alive.add(name.owner)
            else:
                os.close(held)
    return alive


def _check_header(path: Path, header: bytes, game: GameSpec, run_id: RunId | None) -> int:
    """Return the version of a journal.

    Raises ValueError if it is not of this game and run, or not the file that its writer made.
    """
    if not header:
        raise ValueError(f"{path.name} is empty, or has no whole header")
    try:
        found = parse_object(header)
    except ValueError as error:
        raise ValueError(f"{path.name} has a header that cannot be read: {error}") from error
    carried = found.pop(KEY, None)
    version = format_of(game) if found.get("schema") != SCHEMAS[1] else 1
    expected = {"schema": SCHEMAS[version], **_identity(game)}
    name = JournalName.parse(path.name)
    if "worker" in found and name is not None:  # version 0.2 did not name the writer
        expected |= name.writer
    if found != expected:
        raise ValueError(f"{path.name} has the header {plain(repr(found), 300)}, expected {expected!r}")
    if run_id and (foreign := run_id.find_fault(carried)):
        raise ValueError(f"{path.name} is refused: {foreign}")
    return version


def _identity(game: GameSpec) -> dict[str, object]:
    return {**identify(game), "observation_dtype": np.dtype(game.start.observation_dtype).name}


def _frame(body: bytes) -> bytes:
    return FRAME.pack(MAGIC, len(body), zlib.crc32(body)) + body


def _frames(content: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield (offset, body) of every valid frame, and (offset, None) of every damaged part; it ends at the next frame.

    An incomplete frame at the end is not yielded.
    """
    offset = 0
    checked, most = 0, (1 << 20) + 2 * len(content)  # bytes read in search of valid frames
    while offset < len(content):
        body, after = _frame_at(content, offset)
        if body is not None:
            yield offset, body
            offset = after
            continue
        following = offset
        while body is None and checked <= most:
            following = content.find(MAGIC, following + 1)
            if following < 0:
                break
            body, after = _frame_at(content, following)
            checked += 4096 + after - following  # an attempt costs something even if the frame is short
        if body is None:
            if not _is_incomplete(content, offset):
                yield offset, None
            return
        yield offset, None
        offset = following


def _frame_at(content: bytes, offset: int) -> tuple[bytes | None, int]:
    """Return the body of the frame at `offset`, None if there is no valid one, and the offset after what was read."""
    if len(content) - offset < FRAME.size:
        return None, offset
    magic, size, checksum = FRAME.unpack_from(content, offset)
    after = offset + FRAME.size + size
    if magic != MAGIC or after > len(content):
        return None, offset
    body = content[offset + FRAME.size : after]
    return (body if zlib.crc32(body) == checksum else None), after


def _is_incomplete(content: bytes, offset: int) -> bool:
    """Return whether the bytes from `offset` on are the partial frame left by a killed process or a power failure."""
    if len(content) - offset < FRAME.size:
        return True
    magic, size, _ = FRAME.unpack_from(content, offset)
    starts = magic == MAGIC and offset + FRAME.size + size > len(content)
    return starts or content.count(0, offset) == len(content) - offset


def _encode(games: Games, version: int) -> bytes:
    observations = games.observations
    records = games.games if version == 2 else games.games[[*(FORMAT_1.names or ())]].astype(FORMAT_1)
    if observations.dtype.kind == "b":
        observations = pack_bits(observations)
    luck = () if games.luck is None else (games.luck,)
    parts = (records, games.positions, games.moves, observations, *luck)
    return struct.pack("<I", len(games.games)) + b"".join(part.tobytes() for part in parts)


Scalar = TypeVar("Scalar", bound=np.generic)


def _decode(body: bytes, game: GameSpec, version: int) -> Games:
    """Return the games in a body. Raises ValueError if the counts in the records do not match the size of the body."""
    (num_games,) = struct.unpack_from("<I", body)
    games, offset = _read_array(body, 4, GAME if version == 2 else FORMAT_1, num_games)
    positions, offset = _read_array(body, offset, POSITION, int(games["positions"].sum()))
    moves, offset = _read_array(body, offset, MOVE, int(positions["num_legal"].sum()))
    shape, dtype = game.start.observation_shape, np.dtype(game.start.observation_dtype)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        packed, offset = _read_array(body, offset, np.dtype(np.uint8), len(positions) * -(-size // 8))
        observations: NDArray[np.generic] = unpack_bits(packed.reshape(len(positions), -1), shape)
    else:
        flat, offset = _read_array(body, offset, dtype, len(positions) * size)
        observations = flat.reshape(len(positions), *shape)
    luck = None
    if offset != len(body):
        luck, offset = _read_array(body, offset, np.dtype(np.float32), len(positions))
    if offset != len(body):
        raise ValueError(f"a frame of {len(body)} bytes has games of {offset} bytes")
    games = with_score(games, game)
    return Games(games=games, positions=positions, moves=moves, observations=observations, luck=luck)


def _read_array(body: bytes, offset: int, dtype: np.dtype[Scalar], size: int) -> tuple[NDArray[Scalar], int]:
    return np.frombuffer(body, dtype, size, offset), offset + size * dtype.itemsize
