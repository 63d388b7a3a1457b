"""Events of a run: lines of files that grow, and records whose fields are what formats.md lists."""

import errno
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from plyzero.run import events
from plyzero.run.events import Beat, Event, NewLines, TrainerLine, TrainerLines, WorkerLine, last_line
from plyzero.run.metrics import append_line

FORMATS = Path(__file__).parents[2] / "docs" / "formats.md"


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


@pytest.mark.parametrize("record", [Beat, TrainerLine, WorkerLine])
def test_the_fields_of_a_record_are_in_formats_md(record: type[Event]):
    documented = {*re.findall(r"`(\w+)`", FORMATS.read_text())}
    assert get_type_hints(record).keys() - {"fields"} <= documented


def test_a_field_of_another_kind_is_missing():
    line = TrainerLine.parse(
        {"step": "3", "games": True, "policy_loss": [], "warning": 1, "confirmed": 2, "won": [0.5]}
    )
    assert (line.step, line.games, line.policy_loss, line.warning, line.model) == (0, 0, None, None, None)
    assert (line.confirmed, line.budget, line.done, line.won) == ({}, None, "", (None, None))
    assert line.figures(("step", "games")) == {"step": None, "games": None}
    assert line.fields["games"] is True


def test_the_lines_of_all_starts_of_a_trainer_are_read_once_and_their_times_added(tmp_path: Path):
    def write(fence: int, step: int, seconds: float) -> None:
        append_line(tmp_path / f"trainer-{fence:06d}.jsonl", {"step": step, "seconds": seconds})

    write(1, 10, 5.0)
    lines, new = TrainerLines(tmp_path), TrainerLines(tmp_path, from_now=True)
    assert [line.step for line in lines.read()] == [10]
    assert [*new.read()] == []
    write(2, 8, 2.0)
    write(1, 20, 7.0)
    assert [line.step for line in lines.read()] == [line.step for line in new.read()] == [20, 8]
    assert [*lines.read()] == []
    assert (lines.seconds(), lines.seconds(3.5), lines.seconds(0.5)) == (9.0, 7.0 + 3.5, 7.0 + 2.0 + 0.5)
