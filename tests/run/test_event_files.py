"""Event files: decoded by hand, frame by frame, as TensorBoard does."""

import struct
from pathlib import Path

import pytest

from plyzero.run.event_files import EventFile, crc32c


def contents(data: bytes) -> list[bytes]:
    """The contents of the frames, whose checksums must fit."""
    found = []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        content, rest = data[12 : 12 + size], data[12 + size :]
        for checked, stored in ((data[:8], data[8:12]), (content, rest[:4])):
            crc = crc32c(checked)
            rotated = (crc >> 15) | ((crc << 17) & 0xFFFFFFFF)
            assert struct.unpack("<I", stored)[0] == (rotated + 0xA282EAD8) % 2**32
        found.append(content)
        data = rest[4:]
    return found


def fields(content: bytes) -> list[tuple[int, object]]:
    """The fields of a message of protocol buffers."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = content[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(content):
        key = varint()
        match key & 7:
            case 0:
                value: object = varint()
            case 1:
                (value,), at = struct.unpack("<d", content[at : at + 8]), at + 8
            case 2:
                size = varint()
                value, at = content[at : at + size], at + size
            case 5:
                (value,), at = struct.unpack("<f", content[at : at + 4]), at + 4
        found.append((key >> 3, value))
    return found


def test_the_checksum_is_that_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_a_reader_finds_every_scalar_at_its_step(tmp_path: Path):
    events = EventFile(tmp_path / "tb" / "trainer")
    events.add(128, {"loss/policy": 0.5, "loss/value": None})
    events.add(300_000, {"score/mcts:100": 0.25, "score/random": 1.0})
    (path,) = (tmp_path / "tb" / "trainer").iterdir()
    assert path.name.startswith("events.out.tfevents.")
    first, *rest = map(fields, contents(path.read_bytes()))
    assert first[0][1] == pytest.approx(path.stat().st_mtime, abs=60)
    assert first[-1] == (3, b"brain.Event:2")
    steps, scalars = [], []
    for event in rest:
        found = dict(event)
        steps.append(found[2])
        scalars.append({dict(fields(value))[1]: dict(fields(value))[2] for _, value in fields(found[5])})
    assert steps == [128, 300_000]
    assert scalars == [{b"loss/policy": 0.5}, {b"score/mcts:100": 0.25, b"score/random": 1.0}]


def test_events_that_cannot_be_written_are_logged_once(tmp_path: Path, caplog):
    (tmp_path / "file").write_text("")
    events = EventFile(tmp_path / "file")
    for step in (1, 2):
        events.add(step, {"a": 1.0})
    assert [record.message for record in caplog.records] == ["cannot write for TensorBoard: File exists"]
