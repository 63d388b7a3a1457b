"""Event files for TensorBoard: scalars by step, in TFRecord frames, without a dependency.

A frame is the size of its content (u8), a checksum of these 8 bytes, the content, and a checksum of the content. The
content is an Event of TensorFlow's event.proto in the encoding of protocol buffers.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plyzero.files import open_to_append
from plyzero.run.metrics import Writing

MARK: Final = "events.out.tfevents"
"""Beginning of a file name by which TensorBoard finds an event file."""

SCALARS: Final = {
    "loss/policy": "policy_loss",
    "loss/value": "value_loss",
    "learned/policy": "policy_learned",
    "learned/value": "value_learned",
    "learned/policy_window": "window_policy_learned",
    "learned/value_window": "window_value_learned",
    "run/replay_ratio": "replay_ratio",
    "run/games": "games",
    "run/positions": "positions",
}
"""Tags -> fields of the trainer's lines of metrics."""

FILE_VERSION: Final = b"brain.Event:2"
"""The content of the first event of a file."""

POLYNOMIAL: Final = 0x82F63B78
"""Of CRC-32C, with its bits reversed."""


class EventFile:
    """Appends scalars to an event file of this process, which is made with the first of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path: Path | None = None
        self._writing = Writing("for TensorBoard")

    def add(self, step: int, scalars: Mapping[str, float | None]) -> None:
        """Append the values by tag at a step; None is left out. An OSError is only logged."""
        now, frames = time.time(), b""
        if self._path is None:
            frames = framed(_event(now) + _bytes_field(3, FILE_VERSION))
        frames += framed(_event(now, step) + _bytes_field(5, _summary(scalars)))
        path = self._path or self._directory / f"{MARK}.{int(now)}.{socket.gethostname()}.{os.getpid()}"
        with self._writing:
            self._directory.mkdir(parents=True, exist_ok=True)
            with open_to_append(path) as file:
                file.write(frames)
            self._path = path


def select_scalars(line: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the scalars of a line of the trainer's metrics, by tag."""
    return {tag: line.get(field) for tag, field in SCALARS.items()}


def framed(content: bytes) -> bytes:
    """Return `content` as a TFRecord."""
    size = struct.pack("<Q", len(content))
    return size + _checksum(size) + content + _checksum(content)


def _event(at: float, step: int = 0) -> bytes:
    """Return the fields `wall_time` and `step` of an Event."""
    return b"\x09" + struct.pack("<d", at) + b"\x10" + _varint(step)


def _summary(scalars: Mapping[str, float | None]) -> bytes:
    """Return a Summary of values with `tag` and `simple_value`."""
    values = ((tag.encode(), value) for tag, value in scalars.items() if value is not None)
    return b"".join(_bytes_field(1, _bytes_field(1, tag) + b"\x15" + struct.pack("<f", value)) for tag, value in values)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Return a number in groups of 7 bits, the lowest first; the highest bit of a byte says that more follow."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def _checksum(content: bytes) -> bytes:
    """Return the CRC-32C of `content`, masked as TFRecord wants it, since a checksum of checksums is a weak one."""
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def crc32c(content: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of `content`."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE: Final = tuple(map(_remainder, range(256)))
