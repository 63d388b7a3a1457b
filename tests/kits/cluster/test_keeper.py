"""A keeper: a process that is started again whenever it has ended."""

from pathlib import Path

import pytest

from plyzero.kits.cluster import keeper
from plyzero.ops.child import Child
from tests.helpers.surroundings import wait_until


def test_a_keeper_restarts_a_process_whose_log_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started: list[str] = []

    def start(name: str, *_: object) -> Child:
        started.append(name)
        child = Child(name, ["false"], log=tmp_path / "gone")
        child.log.unlink()
        return child

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keeper, "start_plyzero", start)
    monkeypatch.setattr(keeper, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(keeper, "FIRST_DELAY", 0.01)
    kept = keeper.Keeper(keeper.Role("w0", []), tmp_path / "w0.log", str(tmp_path), {})
    wait_until(lambda: len(started) >= 3)
    kept.stop()
    assert kept.report().log == f"plyzero: its log {tmp_path}/gone cannot be read: No such file or directory"


def test_a_process_that_ends_again_and_again_is_started_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keeper.Keeper, "_keep", lambda self: None)
    kept = keeper.Keeper(keeper.Role("w0", []), tmp_path / "w0.log", str(tmp_path), {})
    pauses, now = [], 1000.0
    for lasted in [0.0] * 8 + [60.0, 0.0]:
        kept._started = now
        kept._take_note(now + lasted, 1, "")
        pauses.append(kept._next_start - now - lasted)
        now = kept._next_start
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 1, 2]
