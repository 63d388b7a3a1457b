"""The files that processes write: lines that become rare, and event files for TensorBoard."""

import base64
from pathlib import Path

import pytest

from plyzero.run import metrics
from plyzero.run.events import read_lines
from plyzero.run.metrics import LINE_SECONDS, EventFile, SparseLines
from tests.helpers.clock import Clock


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


def test_the_lines_of_models_are_all_written_for_hours_and_few_in_a_year():
    clock, written = Clock(), []
    rows = SparseLines(Path("x.jsonl"), seconds=0.0, clock=clock)
    while clock.now < 1000 + 365 * 86_400:
        clock.now += 15
        if rows.begin():
            written.append(clock.now - 1000)
    assert sum(at <= 6 * 3600 for at in written) == 6 * 240
    assert len(written) < 16_000
    assert not rows.begin()
    assert rows.begin(force=True)


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
