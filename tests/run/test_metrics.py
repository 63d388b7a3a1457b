"""Files of JSON lines that grow, and event files for TensorBoard."""

import base64
import errno
from pathlib import Path
from typing import Any

import pytest

from plyzero.run import events, metrics
from plyzero.run.events import NewLines, last_line, read_lines
from plyzero.run.metrics import LINE_SECONDS, EventFile, SparseLines, append_line
from tests.helpers.clock import Clock


def test_new_lines_are_read_once_whatever_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(events, "PART_BYTES", 200)
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"b": "' + 1000 * "x" + '"}\n{"c": 1}\n')
    assert list(NewLines(path).read()) == [{"a": 1}, {"c": 1}]  # of a line that is too long nothing
    path.unlink()
    new = NewLines(path)
    assert list(new.read()) == []
    for count in (1, 30, 0, 2):
        for number in range(count):
            append_line(path, {"number": number})
        assert [line["number"] for line in new.read()] == list(range(count))


def test_after_an_error_reading_goes_on_behind_the_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, original, errors = tmp_path / "x.jsonl", events.read_part, iter([None, OSError(errno.EIO, "broken")])
    for number in range(20):
        append_line(path, {"number": number})

    def fail(*arguments: Any, **more: Any) -> bytes:
        if error := next(errors, None):
            raise error
        return original(*arguments, **more)

    monkeypatch.setattr(events, "PART_BYTES", 200)
    monkeypatch.setattr(events, "read_part", fail)
    new, read = NewLines(path), list[int]()
    with pytest.raises(OSError, match="broken"):
        read.extend(line["number"] for line in new.read())
    assert 0 < len(read) < 20
    read.extend(line["number"] for line in new.read())
    assert read == [*range(20)]


def test_the_last_line_is_read_without_those_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, sizes, original = tmp_path / "x.jsonl", list[int](), events.read_part
    monkeypatch.setattr(events, "read_part", lambda *a, **k: [part := original(*a, **k), sizes.append(len(part))][0])
    monkeypatch.setattr(events, "PART_BYTES", 200)
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


def test_what_cannot_be_written_is_logged_once(tmp_path: Path, caplog):
    path = tmp_path / "none" / "x.jsonl"
    lines, events = SparseLines(path), EventFile(path.parent)
    path.parent.write_text("")
    for step in range(2):
        lines.add({}, force=True)
        events.add(step, {"a": 1.0})
    assert [record.message for record in caplog.records] == [
        "x.jsonl cannot be written: Not a directory",
        "none cannot be written: File exists",
    ]
    path.parent.unlink()
    path.parent.mkdir()
    lines.add({"a": 1}, force=True)
    (line,) = read_lines(path)
    assert line["a"] == 1


EVENTS = base64.b64decode(
    "GAAAAAAAAACjf0siCQAAAED8VNlBGg1icmFpbi5FdmVudDoy7O2PnSIAAAAAAAAAeBE9/QkAAABA/FTZQRCAASoUChIKC2xvc3MvcG9saWN5FQAA"
    "AD9lbOl0OwAAAAAAAAAaI6xcCQAAAED8VNlBEOCnEiosChUKDnNjb3JlL21jdHM6MTAwFQAAgD4KEwoMc2NvcmUvcmFuZG9tFQAAgD9PXqj0"
)
"""An event file: three records with their checksums, of the version of the format and the scalars of two steps."""


def test_scalars_are_written_as_tensorboard_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("time.time", lambda: 1.7e9)
    events = EventFile(tmp_path / "tb" / "trainer")
    events.add(128, {"loss/policy": 0.5, "loss/value": None})
    events.add(300_000, {"score/mcts:100": 0.25, "score/random": 1.0})
    (path,) = (tmp_path / "tb" / "trainer").iterdir()
    assert path.name.startswith("events.out.tfevents.1700000000.")
    assert path.read_bytes() == EVENTS
