"""Mailboxes in shared memory: how `plyzero evaluator` serves the workers of its machine, on Linux.

A worker connects to a Unix socket in the run directory, says what it plays, and receives a block of memory that both
map. It writes a batch into one of the block's mailboxes and sends the number of the mailbox; the evaluator writes the
evaluation there and sends the number back. Containers need only the directory in common. The end of either process
closes the connection, which the other notices at once, and the kernel frees the block with the last of them. A counter
in the block shows whether the evaluator runs: it stands still in a suspended process.
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
"""Version of the messages and of the block; a worker of another one uses gRPC."""

MAILBOXES: Final = 2
"""Number of mailboxes of a worker, which has two batches on their way."""

MAX_WORKERS: Final = 256
"""Largest number of connections; further workers use gRPC."""

BEAT_SECONDS: Final = 0.5
"""Time between two increments of a block's counter."""

PACKET_BYTES: Final = 1 << 13
"""Largest size of a message. Each is one packet of the socket."""

REQUEST: Final = struct.Struct("<II")
"""A batch of a worker: mailbox, number of positions."""

ANSWER: Final = struct.Struct("<II")
"""Its evaluation: mailbox, columns of wdl; the name of the model follows. Without columns it has failed, and a sentence
that says why follows."""

log = logging.getLogger(__name__)


def socket_ending(port: int) -> str:
    """Return how the names of the sockets of this machine's evaluators with `port` end. Raises OSError if not on Linux.

    They have the number of the system's start, which its containers have in common: other machines may see the same
    directory, and a worker only connects to, and only removes, what is of its own.
    """
    return f".{Path('/proc/sys/kernel/random/boot_id').read_text()[:8]}.{port}.sock"


def describe(run: Run) -> dict[str, object]:
    """Return what an evaluator and its workers must agree on, the first message of a worker."""
    shape, actions = wire.shape_text(run.game.start), run.game.start.num_actions
    return {"version": VERSION, "model": wire.model_name(run), "observations": shape, "actions": actions}


class Block:
    """The memory that a worker and its evaluator share.

    beat:         `[1]` int64, the counter.
    observations: `[MAILBOXES, positions, C, H, W]` float32.
    logits:       `[MAILBOXES, positions, A]` float32.
    wdl:          `[MAILBOXES, positions * 4]` float32: the rows of each evaluation, which have three or four columns.
    """

    def __init__(self, descriptor: int, start: Game, positions: int) -> None:
        """Map the file `descriptor`, which may be closed then.

        Raises OSError or ValueError if it is too small, or may become so: reading what is no longer there would end
        this process.
        """
        if not _is_sealed(descriptor):
            raise ValueError("expected memory that is sealed against being made smaller, got other memory")
        memory, at = mmap.mmap(descriptor, block_bytes(start, positions)), 64
        self.positions, self.beat = positions, np.ndarray(1, np.int64, memory)
        shapes = (positions, *start.observation_shape), (positions, start.num_actions), (positions * 4,)
        arrays = []
        for shape in shapes:
            arrays.append(np.ndarray((MAILBOXES, *shape), np.float32, memory, at))
            at += arrays[-1].nbytes
        self.observations, self.logits, self.wdl = arrays


def _is_sealed(descriptor: int) -> bool:
    """Return whether a file is memory that nobody can make smaller, which only Linux has."""
    if sys.platform != "linux":
        return False
    try:
        return bool(fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:  # it is no memory, but another kind of file
        return False


def block_bytes(start: Game, positions: int) -> int:
    """Return the size of a block."""
    return 64 + 4 * MAILBOXES * positions * (math.prod(start.observation_shape) + start.num_actions + 4)


@contextmanager
def serving_mailboxes(run: Run, batcher: Batcher, *, name: str, port: int, positions: int) -> Iterator[None]:
    """Serve the workers of this machine until the block ends, where that is possible.

    name:      of the evaluator's heartbeat, with which the name of its socket begins.
    port:      by which workers know the evaluator.
    positions: largest number in a batch.
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
        with suppress(OSError):  # it has gone
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
                each.socket.shutdown(socket.SHUT_RDWR)  # the thread for batches then closes it


def _listen(path: Path) -> socket.socket:
    """Return a socket that listens at `path`, which appears when it does: refused there means that it has ended.

    Whoever may write in the directory may connect.
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
    """The connection to a worker, which gets its block once it has said what it plays."""

    def __init__(
        self, connection: socket.socket, run: Run, batcher: Batcher, positions: int, others: set[_Connection]
    ) -> None:
        """`others`: all open connections, of which it becomes one."""
        connection.setblocking(False)  # a worker that does not read delays nobody
        self.socket, self._run, self._batcher, self._positions = connection, run, batcher, positions
        self._others = others
        self.block: Block | None = None
        self._waiting: dict[int, Request] = {}
        others.add(self)
        batcher.watch(connection, self._read)

    def _read(self) -> None:
        """Read a message. Whatever is wrong with it ends this connection and no other."""
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
        start, expected, found = self._run.game.start, describe(self._run), parse_object(packet)
        if found != expected or self._batcher.label is None:
            wrong = (
                f"this evaluator is for {expected}, got a worker of {plain(str(found), 300)}; give both the same --run"
            )
            reason = str(NoModelError()) if found == expected else f"{wrong} and the same version of plyzero"
            self.socket.send(json.dumps({"error": reason}).encode())
            self._close()
            return
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
        request = self._waiting[mailbox] = Request(observations, partial(self._answer, mailbox))
        self._batcher.add(request)

    def _answer(self, mailbox: int, found: Answer | Exception) -> None:
        self._waiting.pop(mailbox, None)
        if self.block is None:
            return
        try:
            if isinstance(found, Exception):
                columns, text = 0, plain(str(found), 300)
            else:
                (logits, wdl), text = found.evaluation, found.label
                columns = wdl.shape[1]
                self.block.logits[mailbox, : len(logits)] = logits
                self.block.wdl[mailbox, : wdl.size] = wdl.ravel()
            self.socket.send(ANSWER.pack(mailbox, columns) + text.encode())
        except Exception:  # it has gone; whatever else it is ends this connection and no other
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
