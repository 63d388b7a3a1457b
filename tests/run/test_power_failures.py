"""A power failure: whatever the disk may have kept of what was not synced, nothing that was promised is missing."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero import files
from plyzero.run.directory import Run
from plyzero.run.segments import list_segments, read_segment
from selfplay.replay_writer import ReplayWriter
from tests.helpers.journals import adopt_journals
from tests.helpers.runs import small_run
from tests.helpers.victims import numbered_games


class Disk:
    """Stands in for `os` in plyzero.files: does everything, and remembers what of it a power failure may undo.

    log: (kind, inode or directory, what) of every change, and of every sync.
    """

    def __init__(self, *, syncs: bool) -> None:
        self.log: list[tuple[str, Any, Any]] = []
        self._syncs = syncs
        self._inodes: dict[int, int] = {}  # descriptor -> inode
        self._names: dict[str, int] = {}
        self._next = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        if flags & os.O_CREAT:
            self._next += 1
            self._names[str(path)] = self._next
            self.log.append(("enter", str(path), self._next))
        self._inodes[descriptor] = self._names.get(str(path), -1)
        if self._inodes[descriptor] == -1:
            self._names.setdefault(str(path), -1)
            self._inodes[descriptor] = hash(str(path))  # a directory
            self.log.append(("directory", hash(str(path)), str(path)))
        return descriptor

    def pwrite(self, descriptor: int, content: memoryview, offset: int) -> int:
        self.log.append(("write", self._inodes[descriptor], (offset, bytes(content))))
        return os.pwrite(descriptor, content, offset)

    def fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)
        if self._syncs:
            self.log.append(("sync", self._inodes[descriptor], None))

    fdatasync = fsync

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)
        self._names[str(target)] = self._names[str(source)]
        self.log.append(("enter", str(target), self._names[str(target)]))

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)
        self._names[str(target)] = self._names.pop(str(source))
        self.log.append(("enter", str(target), self._names[str(target)]))
        self.log.append(("leave", str(source), None))

    def unlink(self, path: Path) -> None:
        os.unlink(path)
        self.log.append(("leave", str(path), None))


def survives(log: list[tuple[str, Any, Any]], root: Path, into: Path, rng: np.random.Generator | None) -> None:
    """Make in `into` what the disk may hold of `root` after `log`: what was synced, and of the rest what `rng` says.

    Without `rng` all names are there and nothing that was not synced is in the files: the worst order of all.
    """
    directories = {number: path for kind, number, path in log if kind == "directory"}
    synced_up_to: dict[Any, int] = {}
    for at, (kind, what, _) in enumerate(log):
        if kind == "sync":
            synced_up_to[directories.get(what, what)] = at
    entries: dict[str, int] = {}
    contents: dict[int, bytearray] = {}
    for at, (kind, what, detail) in enumerate(log):
        if kind in ("enter", "leave"):
            safe = at < synced_up_to.get(str(Path(what).parent), -1)
            if safe or (rng.random() < 0.5 if rng is not None else kind == "enter"):
                if kind == "enter":
                    entries[what] = detail
                else:
                    entries.pop(what, None)
        elif kind == "write":
            offset, content = detail
            safe = at < synced_up_to.get(what, -1)
            if not safe:
                kept = int(rng.integers(len(content) + 1)) if rng is not None else 0
                content = content[:kept]
            data = contents.setdefault(what, bytearray())
            data.extend(bytes(max(0, offset + len(content) - len(data))))
            data[offset : offset + len(content)] = content
    for name, inode in entries.items():
        path = into / Path(name).relative_to(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.get(inode, b""))


def play_into_store(run: Run, disk: Disk) -> Iterator[tuple[int, set[int]]]:
    """Yield, as games go through a store one after another: how long the log is, and which games must survive."""
    store = ReplayWriter(run, worker="w0", incarnation="00000001")
    store._open_journal()
    for number, games in enumerate(numbered_games(0, 12)):
        store.add(games)
        if number % 5 == 4:
            store.seal_soon()
        store._write()
        yield len(disk.log), set(range(number + 1))


def lost_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, syncs: bool) -> list[set[int]]:
    run = small_run(tmp_path / "r", "tic-tac-toe", "store.sync_seconds=0")
    disk = Disk(syncs=syncs)
    monkeypatch.setattr(files, "os", disk)
    promised = [(0, set()), *play_into_store(run, disk)]
    monkeypatch.undo()
    lost = []
    for at in range(len(disk.log) + 1):
        must = max((games for size, games in promised if size <= at), key=len)
        for seed in (None, 0, 1, 2):
            state = replace(run, root=tmp_path / f"{at}-{seed}")
            for directory in (state.segments, state.journals):
                directory.mkdir(parents=True)
            rng = None if seed is None else np.random.default_rng([at, seed])
            survives(disk.log[:at], run.root, state.root, rng)
            adopt_journals(state)
            found: list[int] = []
            for name in list_segments(state.segments):
                found += read_segment(state.segments / str(name), run.game).games["id"].tolist()
            assert len(found) == len(set(found)), "doubled"
            lost.append(must - set(found))
    return lost


def test_a_game_that_is_synced_survives_a_power_failure_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lost = lost_games(tmp_path, monkeypatch, syncs=True)
    assert len(lost) > 200
    assert lost == [set()] * len(lost)


def test_without_syncs_the_same_power_failures_lose_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BaseException):  # noqa: B017, PT011  # lost, or a segment that cannot be read
        assert not any(lost_games(tmp_path, monkeypatch, syncs=False))
