"""Files of JSON lines that grow, and event files, decoded by hand, frame by frame, as TensorBoard does."""

import errno
import struct
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from plyzero.run import metrics
from plyzero.run.metrics import LINE_SECONDS, EventFile, NewLines, SparseLines, append_line, last_line, read_lines
from tests.helpers.clock import Clock


def test_new_lines_are_read_once_whatever_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metrics, "PART_BYTES", 200)
    path = tmp_path / "x.jsonl"
    new = NewLines(path)
    assert list(new.read()) == []
    for count in (1, 30, 0, 2):
        for number in range(count):
            append_line(path, {"number": number})
        assert [line["number"] for line in new.read()] == list(range(count))


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metrics, "PART_BYTES", 200)
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"b": "' + 1000 * "x" + '"}\n{"c": 1}\n')
    assert list(NewLines(path).read()) == [{"a": 1}, {"c": 1}]


def test_after_an_error_reading_goes_on_behind_the_last_line_that_was_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, original, errors = tmp_path / "x.jsonl", metrics.read_part, iter([None, OSError(errno.EIO, "broken")])
    for number in range(20):
        append_line(path, {"number": number})

    def fail(*arguments: Any, **more: Any) -> bytes:
        if error := next(errors, None):
            raise error
        return original(*arguments, **more)

    monkeypatch.setattr(metrics, "PART_BYTES", 200)
    monkeypatch.setattr(metrics, "read_part", fail)
    new, read = NewLines(path), list[int]()
    with pytest.raises(OSError, match="broken"):
        read.extend(line["number"] for line in new.read())
    assert 0 < len(read) < 20
    read.extend(line["number"] for line in new.read())
    assert read == [*range(20)]


def test_the_last_line_is_read_without_those_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, sizes, original = tmp_path / "x.jsonl", list[int](), metrics.read_part
    monkeypatch.setattr(metrics, "read_part", lambda *a, **k: [part := original(*a, **k), sizes.append(len(part))][0])
    monkeypatch.setattr(metrics, "PART_BYTES", 200)
    assert last_line(tmp_path / "none" / "x.jsonl") is last_line(path) is None
    for number in range(1000):
        append_line(path, {"number": number})
    with path.open("a") as file:
        file.write('{"number": 1000')  # its writer was killed
    assert (last_line(path) or {})["number"] == 999
    assert sum(sizes) <= 400


def test_a_line_a_minute_is_written_for_a_day_and_few_in_a_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clock, written = Clock(), []
    monkeypatch.setattr(metrics, "append_line", lambda path, fields: written.append(clock.now - 1000))
    lines = SparseLines(tmp_path / "x.jsonl", clock=clock)
    while clock.now < 1000 + 365 * 86_400:
        clock.now += 30
        lines.add({})
    assert written[:3] == [LINE_SECONDS, 2 * LINE_SECONDS, 3 * LINE_SECONDS]
    assert sum(at <= 86_400 for at in written) == 1440
    assert len(written) < 11_000
    assert written[-1] - written[-2] < 86_400 / 3


def test_a_line_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog):
    lines = SparseLines(tmp_path / "none" / "x.jsonl")
    for _ in range(2):
        lines.add({}, force=True)
    assert [record.message for record in caplog.records] == ["x.jsonl cannot be written: No such file or directory"]
    (tmp_path / "none").mkdir()
    lines.add({"a": 1}, force=True)
    (line,) = read_lines(tmp_path / "none" / "x.jsonl")
    assert line["a"] == 1


def contents(data: bytes) -> list[bytes]:
    """The contents of the frames, whose checksums must fit."""
    found = []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        content, rest = data[12 : 12 + size], data[12 + size :]
        for checked, stored in ((data[:8], data[8:12]), (content, rest[:4])):
            crc = google_crc32c.value(checked)
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
    assert [record.message for record in caplog.records] == ["file cannot be written: File exists"]
