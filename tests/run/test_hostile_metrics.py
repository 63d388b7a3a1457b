"""Untrusted heartbeats and metric lines: invalid ones are ignored, and `status` shows the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from plyzero.errors import UserError
from plyzero.ops.status import snapshot
from plyzero.run.directory import Run
from plyzero.run.events import best_model, read_heartbeat, read_lines
from plyzero.run.models import publish_model
from plyzero.run.view import RunView
from tests.helpers.fuzz import ODD, TRAINER, WORKER, look
from tests.helpers.hostile import NOT_JSON, at_most, put


@pytest.mark.parametrize(("name", "beat"), [("w0.00000000.json", WORKER), ("trainer.json", TRAINER)])
def test_status_survives_fields_of_any_kind(tmp_path: Path, run: Run, name: str, beat: dict[str, Any]):
    put(run.workers, "w9.00000009.json", WORKER)
    for key in (*beat, "name", "life", "new"):
        for value in ODD:
            look(run, put(tmp_path, name, {**beat, key: value}))
        look(run, put(tmp_path, name, {other: value for other, value in beat.items() if other != key}))


GARBAGE = (
    *NOT_JSON,
    *(json.dumps(TRAINER).encode()[:-1], json.dumps({**TRAINER, "more": "x" * 70_000}).encode()),
    *(json.dumps({**TRAINER, "beats": "1"}).encode(), json.dumps({**TRAINER, "pid": 1.5}).encode()),
)


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: f"{content[:10]!r}-{len(content)}")
def test_a_heartbeat_that_is_none_is_passed_over(tmp_path: Path, run: Run, content: bytes):
    put(run.workers, "w9.00000009.json", WORKER)
    path = put(run.workers, "trainer.json", content)
    with at_most(megabytes=32):
        assert read_heartbeat(path) is None
        view = RunView(run)
        view.refresh()
        assert [each["name"] for each in snapshot(view)["processes"]] == ["w9.00000009"]


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: f"{content[:10]!r}-{len(content)}")
def test_a_line_that_is_none_is_passed_over(tmp_path: Path, content: bytes):
    good = b'{"a": 1}\n'
    with at_most(megabytes=32):
        path = put(tmp_path, "rating.jsonl", good + content.replace(b"\n", b" ") + b"\n" + good + content)
        lines = [*read_lines(path)]
    objects = [line for line in lines if line != {"a": 1}]
    assert len(lines) - len(objects) == 2
    assert all(line.keys() >= TRAINER.keys() for line in objects)


def test_a_measurement_that_is_none_is_passed_over(run: Run):
    name = publish_model(run.models, b"x", fence=1, step=1)
    for scores in (None, 1, "x", [], *({"a": each} for each in (1, "abc", [1, 2], [[], [], []], [10**400, 0, 0]))):
        put(run.metrics, "rating.jsonl", {"model": str(name), "scores": scores})
        with pytest.raises(UserError, match="has been measured"):
            best_model(run.models, run.metrics)
