"""Files of JSON lines that grow: read on from where the last reading ended, and written ever more rarely."""

import errno
from pathlib import Path
from typing import Any

import pytest

from plyzero.run import metrics
from plyzero.run.metrics import LINE_SECONDS, NewLines, SparseLines, append_line, last_line, read_lines
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
    assert [record.message for record in caplog.records] == ["cannot write metrics: No such file or directory"]
    (tmp_path / "none").mkdir()
    lines.add({"a": 1}, force=True)
    (line,) = read_lines(tmp_path / "none" / "x.jsonl")
    assert line["a"] == 1
