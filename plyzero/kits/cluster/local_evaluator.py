"""A worker's connection to `plyzero evaluator` on its own machine: batches go through mailboxes in shared memory."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from contextlib import suppress
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import plain, shown
from plyzero.files import list_names, remove, socket_address
from plyzero.kits.cluster.mailboxes import ANSWER, MAILBOXES, PACKET_BYTES, REQUEST, Block, describe, socket_ending
from plyzero.lines import parse_object
from plyzero.run.directory import Run
from plyzero.search.evaluators import Evaluation

SILENT_SECONDS: Final = 2.25
"""Seconds without a change of a block's counter until its evaluator counts as suspended. The counter is read twice a
second, so a worker waits for at most 3 s."""

MOST_POSITIONS: Final = 1 << 20
"""Largest number of positions of a mailbox that is accepted."""

Said = tuple[str, Evaluation]
"""An unchecked answer of an evaluator: the name of a model, and its evaluation."""


class LocalEvaluator:
    """A connection, ready once `find_fault` has returned None. After a failure it is closed and replaced."""

    def __init__(self, run: Run, connection: socket.socket) -> None:
        """Send the description of the worker's game to the evaluator. Raises OSError if the evaluator has ended."""
        self._start = run.game.start
        self._socket = connection
        self._block: Block | None = None
        self._positions = dict[int, int]()  # mailbox -> number of positions of the batch on its way
        self._answers = dict[int, Said | str]()  # mailbox -> its answer, or why there is none
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._late = time.monotonic() + 2 * SILENT_SECONDS
        connection.send(json.dumps(describe(run)).encode())

    @classmethod
    def find(cls, run: Run, port: int) -> Self | None:
        """Return a new connection to an evaluator of `run` on this machine; None if there is none. It never waits.

        Sockets of evaluators that were killed are removed.

        port: the port that identifies the evaluator.
        """
        directory = run.local / "workers"
        with suppress(OSError):
            ending = socket_ending(port)
            for name in list_names(directory):
                if not name.endswith(ending):
                    continue
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                try:
                    connection.setblocking(False)
                    with socket_address(directory / name) as address:
                        connection.connect(address)
                    return cls(run, connection)
                except ConnectionRefusedError:
                    remove(directory / name)
                except OSError:  # no permission, it has gone meanwhile, or it has too many workers
                    pass
                connection.close()
        return None

    def done(self, seconds: float = 0.0) -> bool:
        """Wait for up to `seconds`; return whether the evaluator has answered, has gone, or is late."""
        return bool(self._poll.poll(1000 * seconds)) or time.monotonic() > self._late

    def find_fault(self) -> str | None:
        """Read the evaluator's first message; return why it cannot be used, None if it can."""
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._socket, PACKET_BYTES, 1)
            try:
                if not packet:
                    return "it has closed the connection"
                found = parse_object(packet)
                if "error" in found:
                    return plain(str(found["error"]), 500)
                positions = found.get("positions")
                if type(positions) is not int or not 0 < positions <= MOST_POSITIONS or not descriptors:
                    raise ValueError(f"expected a number of positions, and memory for them, got {shown(found)}")
                self._block = Block(descriptors[0], self._start, positions)
            finally:
                for each in descriptors:
                    os.close(each)
        except BlockingIOError:
            return "it does not answer"
        except (OSError, ValueError) as error:
            return f"its shared memory cannot be used: {plain(str(error), 200)}"
        return None

    def send(self, observations: NDArray[np.float32]) -> int | None:
        """Send a batch, and return its mailbox; None if there is no room for it."""
        free = (each for each in range(MAILBOXES) if each not in self._positions)
        mailbox = next(free, None)
        if mailbox is None or self._block is None or len(observations) > self._block.positions:
            return None
        self._positions[mailbox] = len(observations)
        self._block.observations[mailbox, : len(observations)] = observations
        with suppress(OSError):  # `receive` reports it
            self._socket.send(REQUEST.pack(mailbox, len(observations)))
        return mailbox

    def receive(self, mailbox: int, deadline: float) -> Said | str:
        """Wait for the answer to the batch in `mailbox`, and free the mailbox; or return why there is no answer.

        deadline: in the time of time.monotonic(). An evaluator that has ended is noticed at once, a suspended one
                  within 3 s.
        """
        quiet_since = time.monotonic()
        beat = self._beat()
        while mailbox not in self._answers:
            if self._block is None:
                return "the connection was closed"
            if self._poll.poll(500):
                try:
                    self._read(self._block)
                except OSError:
                    return "its process has ended"
                except (ValueError, LookupError, struct.error) as error:
                    return f"its message cannot be read: {plain(repr(error), 200)}"
                continue
            now = time.monotonic()
            if now > deadline:
                return "it has not answered a batch in time"
            if self._beat() != beat:
                quiet_since = now
                beat = self._beat()
            elif now - quiet_since > SILENT_SECONDS:
                return "its process is suspended"
        del self._positions[mailbox]
        return self._answers.pop(mailbox)

    def _beat(self) -> int:
        return int(self._block.beat[0]) if self._block else 0

    def _read(self, block: Block) -> None:
        packet = self._socket.recv(PACKET_BYTES)
        if not packet:
            raise ConnectionError
        mailbox, columns = ANSWER.unpack_from(packet)
        text = packet[ANSWER.size :].decode()
        n = self._positions[mailbox]
        if columns:  # copied before the check, since the evaluator may still write to the block
            wdl = block.wdl[mailbox, : n * columns].reshape(n, columns).copy()
            self._answers[mailbox] = text, Evaluation(block.logits[mailbox, :n].copy(), wdl)
        else:
            self._answers[mailbox] = text

    def close(self) -> None:
        """End the connection; the evaluator drops the batches on their way."""
        self._socket.close()
        self._block = None
