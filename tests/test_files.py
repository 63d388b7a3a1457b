"""Files on the volume: all of one appears, or nothing does."""

import os
import threading
from pathlib import Path

import pytest

from plyzero.files import write_file


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def fail(*_: object, **__: object) -> None:
    raise OSError("no room")


def test_a_written_file_has_its_content_and_nothing_lies_beside_it(tmp_path: Path):
    write_file(tmp_path / "a", b"content")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"content"


def test_an_empty_file_can_be_written(tmp_path: Path):
    write_file(tmp_path / "a", b"")
    assert (tmp_path / "a").read_bytes() == b""


def test_missing_directories_are_made(tmp_path: Path):
    write_file(tmp_path / "b" / "c" / "a", b"content")
    assert names(tmp_path / "b" / "c") == ["a"]


@pytest.mark.parametrize(
    ("call", "replace"),
    [("os.fsync", False), ("os.link", False), ("os.fsync", True), ("os.replace", True)],
)
def test_a_write_that_fails_leaves_no_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, replace: bool
):
    monkeypatch.setattr(call, fail)
    with pytest.raises(OSError, match="no room"):
        write_file(tmp_path / "a", b"content", replace=replace)
    assert names(tmp_path) == []


def test_a_write_that_is_interrupted_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "a", b"content")
    assert names(tmp_path) == []


def test_a_replacement_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_file(tmp_path / "a", b"old")
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no room"):
        write_file(tmp_path / "a", b"new", replace=True)
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path):
    write_file(tmp_path / "a", b"old")
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_file_is_replaced_where_that_is_asked_for(tmp_path: Path):
    write_file(tmp_path / "a", b"old")
    write_file(tmp_path / "a", b"new", replace=True)
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"new"


def test_content_and_directory_are_synced_the_content_before_its_name_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced, fsync = [], os.fsync

    def spy(descriptor: int) -> None:
        is_directory = os.fstat(descriptor).st_ino == tmp_path.stat().st_ino
        synced.append((is_directory, (tmp_path / "a").exists()))
        fsync(descriptor)

    monkeypatch.setattr("os.fsync", spy)
    write_file(tmp_path / "a", b"content")
    assert synced == [(False, False), (True, True)]


def test_a_reader_sees_the_old_or_the_new_content_while_a_file_is_replaced(tmp_path: Path):
    contents = [bytes([i]) * 100_000 for i in range(40)]
    path, seen, done = tmp_path / "a", [], threading.Event()
    write_file(path, contents[0])

    def read() -> None:
        while not done.is_set():
            seen.append(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for content in contents:
            write_file(path, content, replace=True)
    finally:
        done.set()
        reader.join()
    assert set(seen) <= set(contents)


def test_of_many_who_write_one_new_name_exactly_one_succeeds(tmp_path: Path):
    barrier, refused = threading.Barrier(8), []

    def write(number: int) -> None:
        barrier.wait()
        try:
            write_file(tmp_path / "a", bytes([number]) * 1000)
        except FileExistsError:
            refused.append(number)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(refused) == 7
    content = (tmp_path / "a").read_bytes()
    assert names(tmp_path) == ["a"]
    assert content == content[:1] * 1000
    assert content[0] not in refused
