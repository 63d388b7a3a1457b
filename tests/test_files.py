"""Files on the volume: all of one appears, or nothing does."""

import errno
import fcntl
import os
import re
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest

from plyzero import files
from plyzero.errors import UserError
from plyzero.files import lock, read_file, watch_directory, write_at, write_file
from plyzero.run.directory import read_run
from plyzero.run.journals import Journal
from plyzero.run.records import JournalName
from plyzero.volume_errors import NO_LINKS, NO_LOCKS, UnreadableError, explain, retry, wait_for
from tests.helpers.fault_points import FAULT_POINTS
from tests.helpers.hostile import failing
from tests.helpers.runs import small_run
from tests.helpers.segments import CONNECT_FOUR, some_games


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


FAILURES = [OSError(number, os.strerror(number)) for number in (errno.EIO, errno.ESTALE, errno.ENOSPC)]


@pytest.mark.parametrize("failure", [*FAILURES, KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize(("call", "replace"), [("fsync", False), ("link", False), ("fsync", True), ("replace", True)])
def test_a_failed_write_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, replace: bool, failure: BaseException
):
    if replace:
        write_file(tmp_path / "a", b"old")
    before = names(tmp_path)
    monkeypatch.setattr(f"plyzero.files.os.{call}", Mock(side_effect=failure))
    with pytest.raises(type(failure)) as raised:
        write_file(tmp_path / "a", b"content", replace=replace)
    if isinstance(failure, OSError):
        assert (raised.value.errno, raised.value.filename) == (failure.errno, str(tmp_path / "a"))
    assert names(tmp_path) == before
    assert not replace or (tmp_path / "a").read_bytes() == b"old"


def test_content_is_synced_before_its_name_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced, fsync = [], os.fsync

    def spy(descriptor: int) -> None:
        is_directory = os.fstat(descriptor).st_ino == tmp_path.stat().st_ino
        synced.append((is_directory, (tmp_path / "a").exists()))
        fsync(descriptor)

    monkeypatch.setattr("os.fsync", spy)
    write_file(tmp_path / "a", b"content")
    assert synced == [(False, False), (True, True)]


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def test_a_write_that_takes_a_few_bytes_at_a_time_writes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pwrite, content = os.pwrite, bytes(range(256)) * 5
    monkeypatch.setattr("plyzero.files.os.pwrite", lambda fd, view, at: pwrite(fd, view[: 1 + at % 7], at))
    write_file(tmp_path / "a", content)
    assert (tmp_path / "a").read_bytes() == content


def test_a_write_that_takes_nothing_is_a_full_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.files.os.pwrite", lambda *_: 0)
    with pytest.raises(OSError, match="No space left on device"):
        write_at(0, b"content", 0)
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_file(tmp_path / "a", b"content")
    assert raised.value.filename == str(tmp_path / "a")
    assert names(tmp_path) == []


@pytest.mark.parametrize("call", ["link", "replace"])
def test_a_failure_of_what_has_happened_is_a_success(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done, reported = getattr(os, call), []

    def deceive(*paths: Path) -> None:
        done(*paths)
        reported.append(True)
        raise error(errno.EIO)

    if call == "replace":
        write_file(tmp_path / "a", b"old")
    monkeypatch.setattr(f"plyzero.files.os.{call}", deceive)
    write_file(tmp_path / "a", b"content", replace=call == "replace")
    assert reported == [True]
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"content"


@pytest.mark.parametrize(("number", "has_links"), [*((each, False) for each in sorted(NO_LINKS)), (errno.EIO, True)])
def test_without_hard_links_files_are_written_and_a_taken_name_is_refused(
    number: int, has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if has_links:
        write_file(tmp_path / "a", b"old")
    monkeypatch.setattr("plyzero.files.os.link", failing(number))
    if not has_links:
        write_file(tmp_path / "a", b"old")
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_file_is_read_up_to_a_size_and_a_larger_one_not_at_all(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_file(tmp_path / "a", max_bytes=5) == b"12345"
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)  # nobody has the memory to read it
    assert read_file(tmp_path / "a", max_bytes=1 << 45) == b"12345"  # no buffer of that size is made
    for name, most in (("a", 4), ("large", 1 << 30)):
        with pytest.raises(UnreadableError, match=f"more than {most} bytes"):
            read_file(tmp_path / name, max_bytes=most)


def test_a_file_that_need_not_survive_a_power_failure_is_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.files.os.fsync", failing(errno.EIO))
    write_file(tmp_path / "a", b"content", durable=False)
    write_file(tmp_path / "a", b"other", replace=True, durable=False)
    assert (tmp_path / "a").read_bytes() == b"other"


def test_a_file_is_locked_until_its_descriptor_is_closed(tmp_path: Path):
    path = tmp_path / "a"
    assert lock(path) is None
    assert names(tmp_path) == []
    path.write_bytes(b"content")
    held = lock(path)
    assert held is not None
    assert lock(path) is lock(path, needed=False) is None
    os.close(held)
    again = lock(path)
    assert again is not None
    os.close(again)
    assert path.read_bytes() == b"content"


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_the_lock_on_a_file_without_its_name_is_no_lock(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, flock, taken = tmp_path / "a", fcntl.flock, []
    path.write_bytes(b"content")

    def slowly(descriptor: int, how: int) -> None:
        path.unlink()
        if change == "replaced":
            (tmp_path / "b").write_bytes(b"")
            path.write_bytes(b"other")
        flock(descriptor, how)
        taken.append(descriptor)

    monkeypatch.setattr("plyzero.files.fcntl.flock", slowly)
    assert lock(path) is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(taken[0])


def test_no_locks_are_an_error_unless_none_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, numbers = tmp_path / "a", [*NO_LOCKS, errno.EIO]
    path.touch()
    for number in numbers:
        before = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr("plyzero.files.fcntl.flock", failing(number))
        with pytest.raises(OSError, match="Errno") as raised:
            lock(path)
        assert raised.value.errno == number
        assert len(os.listdir("/proc/self/fd")) == before
        if number == errno.EIO:
            with pytest.raises(OSError, match="Input/output"):
                lock(path, needed=False)
        else:
            descriptor = lock(path, needed=False)
            assert descriptor is not None
            os.close(descriptor)


def test_every_fault_point_is_reached_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    met: list[str] = []
    monkeypatch.setattr(files, "fault_point", lambda point, path: met.append(point))
    write_file(tmp_path / "a", b"content")
    appear = ["write: half", "write: before sync", "write: before it appears", "write: before the directory is synced"]
    assert met == appear
    write_file(tmp_path / "a", b"content", replace=True, durable=False)
    assert met == 2 * appear
    journal = Journal(tmp_path, CONNECT_FOUR, JournalName("w0", "0123abcd", 0))
    assert met == [*(3 * appear), "rename: before"]
    met.clear()
    journal.append(some_games(CONNECT_FOUR))
    journal.sync()
    journal.close()
    files.move(tmp_path / "a", tmp_path / "there")
    later = ["append: half", "append: before it is checked", "append: before sync", "remove: before", "move: before"]
    assert met == later
    assert [*appear, "rename: before", *later] == list(FAULT_POINTS)


@pytest.mark.parametrize(("directory", "readable"), [(0o755, 0o644), (0o750, 0o640), (0o700, 0o600), (0o777, 0o644)])
def test_who_can_read_a_directory_can_read_its_files(directory: int, readable: int, tmp_path: Path):
    before = os.umask(0o077)
    try:
        place = tmp_path / "place"
        place.mkdir()
        place.chmod(directory)
        write_file(place / "a", b"content")
        files.open_to_append(place / "b").close()
    finally:
        os.umask(before)
    assert [oct(path.stat().st_mode & 0o777) for path in sorted(place.iterdir())] == [oct(readable)] * 2


def test_a_missing_permission_is_explained_by_owner_mode_and_own_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a"
    path.touch(0o600)
    os.chown(path, os.getuid(), -1)
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    owner = f"is owned by uid {os.getuid()}, mode 0600; this process runs as uid {os.geteuid()}"
    assert explain(denied) == f"Permission denied: {path} {owner}"
    allowed = os.access
    monkeypatch.setattr("os.access", lambda found, mode: found != tmp_path and allowed(found, mode))
    tmp_path.chmod(0o711)
    owner = f"is owned by uid {os.getuid()}, mode 0711; this process runs as uid {os.geteuid()}"
    assert explain(denied) == f"Permission denied: {tmp_path} {owner}"
    assert explain(PermissionError(errno.EACCES, "x", str(tmp_path / "new"))).startswith(f"x: {tmp_path} is owned")
    assert explain(error(errno.EIO)) == "Input/output error"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_files_of_another_user_are_named_and_can_be_locked(tmp_path: Path):
    for parent in (tmp_path, *tmp_path.parents):
        if parent.name.startswith(("test_", "popen-", "pytest-")):
            parent.chmod(0o755)
    for name, mode in (("readable", 0o644), ("private", 0o600)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    os.seteuid(65534)
    try:
        held = lock(tmp_path / "readable")
        assert held is not None
        with pytest.raises(PermissionError) as refused:
            read_file(tmp_path / "private", max_bytes=1)
        # os.access asks for the real user, which is root
        assert explain(refused.value).endswith(
            f"{tmp_path / 'private'} is owned by uid 0, mode 0600; this process runs as uid 65534"
        )
        os.close(held)
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("entry", ["socket", "loop"])
def test_what_is_not_a_file_is_not_a_transient_error(entry: str, tmp_path: Path):
    path = tmp_path / "a"
    if entry == "loop":
        path.symlink_to("a")
    else:
        os.mknod(path, 0o600 | stat.S_IFSOCK)
    with pytest.raises(UnreadableError, match="not a file"):
        read_file(path, max_bytes=1)


def test_a_transient_error_is_retried_for_a_while_and_another_is_not(monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []
    monkeypatch.setattr("plyzero.volume_errors.time.sleep", slept.append)

    def read(*errors: int) -> int:
        left = list(errors)

        def once() -> int:
            if left:
                raise error(left.pop(0))
            return len(errors)

        return retry(once, "it")

    assert (read(errno.EIO, errno.ESTALE, errno.EMFILE), slept) == (3, [1, 2, 4])
    slept.clear()
    with pytest.raises(OSError, match="Input/output"):
        read(*[errno.EIO] * 100)
    assert (sum(slept) >= 60, max(slept)) == (True, 30)
    for number in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
        slept.clear()
        with pytest.raises(OSError, match="Errno"):
            read(number)
        assert slept == []


def test_a_file_is_named_until_another_process_renames_or_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a"
    path.touch()
    with path.open() as file:
        assert files.is_named(file.fileno(), path)
        with monkeypatch.context() as patch:  # as over FUSE, where the open succeeds
            patch.setattr("plyzero.files.os.fstat", failing(errno.ENOENT))
            assert not files.is_named(file.fileno(), path)
        path.rename(tmp_path / "b")
        assert not files.is_named(file.fileno(), path)
        path.touch()
        assert not files.is_named(file.fileno(), path)


def test_a_tree_is_removed_without_what_its_links_point_to(tmp_path: Path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    (tmp_path / "tree/inner").mkdir(parents=True)
    (tmp_path / "tree/link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for name in ("tree", "link", "nothing"):
        files.remove_tree(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept/file").exists()


@pytest.mark.parametrize("name", ["ESTALE", "ENOSPC", "EHOSTDOWN", "EACCES", "EROFS"])
def test_a_start_waits_for_what_passes_and_says_for_what(tmp_path: Path, monkeypatch, caplog, name: str):
    run, number = small_run(tmp_path / "r"), getattr(errno, name)
    slept: list[float] = []
    monkeypatch.setattr("plyzero.volume_errors.time.sleep", slept.append)

    monkeypatch.setattr("plyzero.run.directory.read_file", failing(number, 10, then=read_file))
    assert wait_for(lambda: read_run(run.root), "r").settings == run.settings
    assert len(slept) == 10
    (record,) = caplog.records
    assert record.message == f"r: {os.strerror(number)}; will try again"
    (run.root / "run.toml").write_text("format =")
    with pytest.raises(UserError, match="not valid TOML"):
        wait_for(lambda: read_run(run.root), "r")


READS = 0x1 | 0x10 | 0x20
"""Events of inotify: a file or directory was read, closed after reading, opened."""


@pytest.mark.skipif(sys.platform != "linux", reason="file events of Linux")
def test_a_new_file_wakes_who_watches_and_a_list_of_the_directory_wakes_nobody(tmp_path: Path):
    changed = threading.Event()
    try:
        end = watch_directory(tmp_path, changed)
    except OSError as error:
        pytest.skip(f"no file events: {error}")
    try:
        about = ""
        for descriptor in Path("/proc/self/fdinfo").iterdir():
            with suppress(OSError):  # closed since it was listed
                about += descriptor.read_text()
        masks = [int(found, 16) for found in re.findall(rf"ino:{tmp_path.stat().st_ino:x} .* mask:(\w+)", about)]
        assert masks
        assert not any(mask & READS for mask in masks)
        write_file(tmp_path / "a", b"new")
        assert changed.wait(60)
    finally:
        end()
