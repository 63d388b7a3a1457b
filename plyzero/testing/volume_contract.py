"""Tests of a volume, a directory or a bucket: files are whole, and each name is taken once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from plyzero.files import (
    append,
    list_files,
    list_names,
    modified_at,
    move,
    read_file,
    read_files,
    read_part,
    remove,
    write_file,
)
from plyzero.threads import repeating
from plyzero.volume_errors import UnreadableError

MAX_BYTES: Final = 1 << 20
"""Largest size of a file of these tests, in bytes."""


class VolumeContract:
    """The tests of a volume: a place for a run, as a path that `plyzero.files` accepts.

    ```python
    class TestMount(VolumeContract):
        def volume(self, directory):
            return Path("/mnt/runs") / uuid.uuid4().hex
    ```
    """

    def volume(self, directory: Path) -> Path:
        """Return a directory of the volume, empty or not there yet; `directory` is an empty one on this machine."""
        raise NotImplementedError

    def test_what_is_written_is_there_until_it_is_replaced_or_removed(self, tmp_path: Path) -> None:
        """A file that is gone is not read, and removing it again is no error."""
        volume = self.volume(tmp_path)
        path = volume / "models" / "000001-1f.onnx"
        write_file(path, b"old")
        assert content_of(path) == b"old"
        assert (path.exists(), path.is_file(), path.parent.is_dir()) == (True, True, True)
        write_file(path, b"newer", replace=True)
        assert (content_of(path), list_names(path.parent)) == (b"newer", [path.name])
        assert abs(modified_at(path) - time.time()) < 60
        remove(path)
        remove(path)
        assert not path.exists()
        assert modified_at(path) == 0
        with pytest.raises(FileNotFoundError):
            content_of(path)

    def test_creating_what_exists_is_refused_and_changes_nothing(self, tmp_path: Path) -> None:
        """The content may be the same or another."""
        volume = self.volume(tmp_path)
        path = volume / "segment"
        write_file(path, b"first")
        for content in (b"first", b"other"):
            with pytest.raises(FileExistsError):
                write_file(path, content)
        assert (content_of(path), list_names(volume)) == (b"first", [path.name])

    def test_of_eight_creators_at_once_one_succeeds(self, tmp_path: Path) -> None:
        """A segment has one content, whoever seals it."""
        volume, start = self.volume(tmp_path), threading.Barrier(8)

        def create(path: Path, content: bytes) -> bool:
            start.wait()
            try:
                write_file(path, content)
            except FileExistsError:
                return False
            return True

        contents = [bytes([each]) * 1000 for each in range(8)]
        with ThreadPoolExecutor(8) as threads:
            for number in range(20):
                path = volume / f"{number}"
                succeeded = threads.map(create, [path] * 8, contents)
                winners = [content for content, has in zip(contents, succeeded, strict=True) if has]
                assert winners == [content_of(path)]
            assert sorted(list_names(volume)) == sorted(map(str, range(20)))

    def test_a_reader_sees_the_old_or_the_new_content_while_a_file_is_replaced(self, tmp_path: Path) -> None:
        """It never sees a part of one, nor parts of two."""
        contents = [bytes([number]) * 100_000 for number in range(40)]
        path = self.volume(tmp_path) / "a"
        seen: list[bytes] = []
        written = 0
        write_file(path, contents[0])
        with repeating(lambda: seen.append(content_of(path)), 0.0, name="reader") as reader:
            while min(written, len(seen)) < 40:
                reader.check()
                write_file(path, contents[written % 40], replace=True)
                written += 1
        assert set(seen) <= set(contents)

    def test_a_list_has_all_that_was_written_before_and_nothing_below(self, tmp_path: Path) -> None:
        """This holds for more files than a store lists in one answer."""
        directory = self.volume(tmp_path) / "replay"
        expected = {f"w0.{number:08x}-g1.zarr.zip": number % 7 for number in range(1050)}
        for name, size in expected.items():
            write_file(directory / name, bytes(size), durable=False)
        write_file(directory / "below" / "it", b"")
        assert list_files(directory) == expected
        assert sorted(set(list_names(directory)) - {"below"}) == sorted(expected)
        for name in list(expected)[::2]:
            remove(directory / name)
        assert sorted(list_files(directory)) == sorted(expected)[1::2]
        assert sorted(path.name for path in directory.glob("w0.0000000*")) == [
            f"w0.0000000{n:x}-g1.zarr.zip" for n in range(1, 16, 2)
        ]

    def test_a_list_of_what_is_not_there_is_empty(self, tmp_path: Path) -> None:
        """Copies of a run may leave out empty directories."""
        missing = self.volume(tmp_path) / "missing"
        assert (list_names(missing), list_files(missing)) == ([], {})

    def test_reading_is_bounded(self, tmp_path: Path) -> None:
        """A larger file is not read at all, and a part of a file ends where the file does."""
        path = self.volume(tmp_path) / "lines"
        write_file(path, b"0123456789")
        assert read_file(path, max_bytes=10) == b"0123456789"
        with pytest.raises(UnreadableError, match="more than 9 bytes"):
            read_file(path, max_bytes=9)
        assert [read_part(path, offset, max_bytes=4) for offset in (0, 8, 10, 20)] == [b"0123", b"89", b"", b""]

    def test_many_files_are_read_in_order_and_a_missing_one_is_an_error_of_its_own(self, tmp_path: Path) -> None:
        """The others are read all the same."""
        volume = self.volume(tmp_path)
        paths = [volume / str(number) for number in range(20)]
        for number, path in enumerate(paths):
            if number != 7:
                write_file(path, str(number).encode())
        found = read_files(paths, max_bytes=MAX_BYTES)
        assert isinstance(found.pop(7), FileNotFoundError)
        assert found == [str(number).encode() for number in range(20) if number != 7]

    def test_lines_are_appended(self, tmp_path: Path) -> None:
        """The first append creates the file."""
        path = self.volume(tmp_path) / "metrics" / "lines"
        path.parent.mkdir(parents=True)
        for line in (b"one\n", b"two\n"):
            append(path, line)
        assert content_of(path) == b"one\ntwo\n"

    def test_a_file_is_moved_within_the_volume_and_from_a_disk(self, tmp_path: Path) -> None:
        """The directory is created; a file there with the same name is replaced."""
        volume = self.volume(tmp_path)
        for content in (b"old", b"a"):
            write_file(volume / "replay" / "a", content)
            move(volume / "replay" / "a", volume / "quarantine")
        write_file(tmp_path / "journal" / "b", b"b")
        move(tmp_path / "journal" / "b", volume / "quarantine", name="c")
        assert {path.name: content_of(path) for path in (volume / "quarantine").iterdir()} == {"a": b"a", "c": b"b"}
        assert not (volume / "replay" / "a").exists()
        assert not (tmp_path / "journal" / "b").exists()


def content_of(path: Path) -> bytes:
    """Return the content of a small file."""
    return read_file(path, max_bytes=MAX_BYTES)
