"""Mailboxes in shared memory, by which `plyzero evaluator` serves the workers of its machine, on Linux.

A worker connects to a Unix socket in the run directory, describes its game, and receives a block of memory that both
map. It writes a batch into one of the block's mailboxes and sends the number of the mailbox; the evaluator writes the
evaluation there and sends the number back. Containers only need to share the directory. The end of either process
closes the connection, which the other notices at once, and the kernel frees the block with the last of them. A counter
in the block shows whether the evaluator runs: it stops in a suspended process.
"""

from __future__ import annotations

import fcntl
import json
import logging
import math
import mmap
import os
import socket
import stat
import struct
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, plain
from plyzero.files import TEMPORARY, remove, rename, socket_address, write_at
from plyzero.kits.cluster import wire
from plyzero.kits.cluster.batcher import Batcher, NoModelError, Request
from plyzero.lines import parse_object
from plyzero.rules.game import Game
from plyzero.run.directory import Run
from plyzero.search.evaluators import Answer
from plyzero.threads import repeating

VERSION: Final = 2
"""Version of the messages and of the block; a worker with another version uses gRPC."""

MAILBOXES: Final = 2
"""Number of mailboxes of a worker, which has up to two batches on their way."""

MAX_WORKERS: Final = 256
"""Largest number of connections; further workers use gRPC."""

BEAT_SECONDS: Final = 0.5
"""Seconds between two increments of a block's counter."""

PACKET_BYTES: Final = 1 << 13
"""Largest size of a message. Each is one packet of the socket."""

REQUEST: Final = struct.Struct("<II")
"""A message of a worker: mailbox, number of positions of the batch."""

ANSWER: Final = struct.Struct("<II")
"""The answer: mailbox, number of columns of wdl; then the name of the model. 0 columns: the evaluation has failed, and
the reason follows as a sentence."""

log = logging.getLogger(__name__)


def socket_ending(port: int) -> str:
    """Return the ending of the socket names of this machine's evaluators with `port`. Raises OSError if not on Linux.

    It contains the id of the system's start, which all containers of a machine share. Other machines may see the same
    directory, but a worker connects only to sockets of its own machine, and removes only these.
    """
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    return f".{boot_id[:8]}.{port}.sock"


def describe(run: Run) -> dict[str, object]:
    """Return the first message of a worker: the facts on which an evaluator and its workers must agree."""
    return {
        "version": VERSION,
        "model": wire.model_name(run),
        "observations": wire.shape_text(run.game.start),
        "actions": run.game.start.num_actions,
    }


class Block:
    """The memory that a worker and its evaluator share.

    beat:         `[1]` int64, the counter.
    observations: `[MAILBOXES, positions, C, H, W]` float32.
    logits:       `[MAILBOXES, positions, A]` float32.
    wdl:          `[MAILBOXES, positions * 4]` float32: the rows of each evaluation, with three or four columns.
    """

    def __init__(self, descriptor: int, start: Game, positions: int) -> None:
        """Map the file `descriptor`, which may be closed afterwards.

        Raises OSError or ValueError if it is too small, or could be made smaller: reading memory that is gone would end
        this process.
        """
        if not _is_sealed(descriptor):
            raise ValueError("expected memory that is sealed against being made smaller, got other memory")
        memory = mmap.mmap(descriptor, block_bytes(start, positions))
        end = 64

        def next_array(*shape: int) -> NDArray[np.float32]:
            nonlocal end
            array: NDArray[np.float32] = np.ndarray((MAILBOXES, *shape), np.float32, memory, end)
            end += array.nbytes
            return array

        self.positions = positions
        self.beat: NDArray[np.int64] = np.ndarray(1, np.int64, memory)
        self.observations = next_array(positions, *start.observation_shape)
        self.logits = next_array(positions, start.num_actions)
        self.wdl = next_array(positions * 4)


def _is_sealed(descriptor: int) -> bool:
    """Return whether a file is memory that nobody can make smaller; only Linux has such memory."""
    if sys.platform != "linux":
        return False
    try:
        return bool(fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:  # another kind of file
        return False


def block_bytes(start: Game, positions: int) -> int:
    """Return the size of a block."""
    return 64 + 4 * MAILBOXES * positions * (math.prod(start.observation_shape) + start.num_actions + 4)


@contextmanager
def serving_mailboxes(run: Run, batcher: Batcher, *, name: str, port: int, positions: int) -> Iterator[None]:
    """Serve the workers of this machine until the block ends, if the system and the volume can.

    name:      the name of the evaluator's heartbeat, the beginning of its socket's name.
    port:      the port that identifies the evaluator.
    positions: largest number of positions in a batch.
    """
    try:
        path = run.local / "workers" / f"{name}{socket_ending(port)}"
        listening = _listen(path)
    except OSError as error:  # a volume without sockets, another system
        log.info("workers of this machine use gRPC, not shared memory: %s", error)
        yield
        return
    connections: set[_Connection] = set()

    def accept() -> None:
        with suppress(OSError):  # the worker has gone
            connection, _ = listening.accept()
            if len(connections) < MAX_WORKERS:
                _Connection(connection, run, batcher, positions, connections)
            else:
                connection.close()

    def beat() -> None:
        for each in connections.copy():
            if block := each.block:
                block.beat += 1

    batcher.watch(listening, accept)
    try:
        with repeating(beat, BEAT_SECONDS, name="mailboxes"):
            yield
    finally:
        with suppress(OSError):
            remove(path)
        batcher.unwatch(listening)
        listening.close()
        for each in connections.copy():
            with suppress(OSError):
                each.socket.shutdown(socket.SHUT_RDWR)  # makes the thread for batches close it


def _listen(path: Path) -> socket.socket:
    """Return a socket that listens at `path`. Everyone who may write in the directory may connect.

    The path appears when the socket listens, so a refused connection means that it has ended.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.setblocking(False)
    with socket_address(unfinished) as address:
        listening.bind(address)
    listening.listen(128)
    os.chmod(unfinished, stat.S_IMODE(os.stat(path.parent).st_mode) & 0o666)
    rename(unfinished, path)
    return listening


class _Connection:
    """The connection to a worker. It gets its block once it has described its game."""

    def __init__(
        self, connection: socket.socket, run: Run, batcher: Batcher, positions: int, others: set[_Connection]
    ) -> None:
        """`others`: all open connections; this one is added."""
        connection.setblocking(False)  # a worker that does not read delays nobody
        self.socket = connection
        self._run = run
        self._batcher = batcher
        self._positions = positions
        self._others = others
        self.block: Block | None = None
        self._waiting: dict[int, Request] = {}
        others.add(self)
        batcher.watch(connection, self._read)

    def _read(self) -> None:
        """Read a message. A wrong one ends this connection, but no other."""
        try:
            packet = self.socket.recv(PACKET_BYTES)
            if not packet:
                self._close()
            elif self.block is None:
                self._begin(packet)
            else:
                self._submit(self.block, packet)
        except Exception as error:
            if not isinstance(error, OSError):
                log.warning("a worker sent an impossible message: %s", plain(repr(error), 200))
            self._close()

    def _begin(self, packet: bytes) -> None:
        expected = describe(self._run)
        found = parse_object(packet)
        if found != expected:
            self._reject(
                f"this evaluator is for {expected}, got a worker of {plain(str(found), 300)}; give both the same --run "
                "and the same version of plyzero"
            )
            return
        if self._batcher.label is None:
            self._reject(str(NoModelError()))
            return
        start = self._run.game.start
        if sys.platform != "linux":
            raise OSError("no sealed memory")
        descriptor = os.memfd_create("plyzero", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            write_at(descriptor, b"\0", block_bytes(start, self._positions) - 1)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            block = Block(descriptor, start, self._positions)
            socket.send_fds(self.socket, [json.dumps({"positions": self._positions}).encode()], [descriptor])
        finally:
            os.close(descriptor)
        self.block = block

    def _reject(self, reason: str) -> None:
        self.socket.send(json.dumps({"error": reason}).encode())
        self._close()

    def _submit(self, block: Block, packet: bytes) -> None:
        mailbox, positions = REQUEST.unpack(packet)
        if mailbox >= MAILBOXES or not 0 < positions <= block.positions or mailbox in self._waiting:
            raise ValueError(f"{positions} positions in mailbox {mailbox}")
        observations = block.observations[mailbox, :positions].copy()  # the worker may still write to the block
        try:
            wire.check_observations(observations)
        except UserError as error:
            self._answer(mailbox, error)
            return
        request = Request(observations, partial(self._answer, mailbox))
        self._waiting[mailbox] = request
        self._batcher.add(request)

    def _answer(self, mailbox: int, found: Answer | Exception) -> None:
        self._waiting.pop(mailbox, None)
        if self.block is None:
            return
        try:
            if isinstance(found, Exception):
                columns = 0
                text = plain(str(found), 300)
            else:
                logits, wdl = found.evaluation
                columns = wdl.shape[1]
                text = found.label
                self.block.logits[mailbox, : len(logits)] = logits
                self.block.wdl[mailbox, : wdl.size] = wdl.ravel()
            self.socket.send(ANSWER.pack(mailbox, columns) + text.encode())
        except Exception:  # the worker has gone; any other error also ends only this connection
            self._close()

    def _close(self) -> None:
        if self in self._others:
            self._others.remove(self)
            self._batcher.unwatch(self.socket)
            self.socket.close()
            self.block = None
            for request in self._waiting.values():
                request.cancel()
            self._waiting.clear()
