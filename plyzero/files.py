"""Every operation on files of the volume: readers see only complete files, and written files survive a crash.

The volume is a directory, or a bucket if the path is a RemotePath. No other module of plyzero writes, removes or locks
a file that processes share. `fault_point` marks the moments at which a crash is most dangerous; tests kill processes
there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from plyzero.errors import UserError
from plyzero.volume_errors import NO_FILE, NO_LINKS, NO_LOCKS, UnreadableError
from plyzero.volumes import RemotePath

fault_point: Callable[[str, Path], None] = lambda point, path: None  # noqa: E731
"""Hook that is called at every fault point with its name and the file; tests replace it."""

TEMPORARY: Final = ".tmp-"
"""Prefix of the names of unfinished files; readers ignore them."""

MANY_FILES: Final = 64
"""Number of files from which on they are read at the same time."""

BUCKET_SECONDS: Final = 5.0
"""Shortest time between two looks at a bucket: each is a request, which takes time and may cost money."""


def write_file(path: Path, content: bytes, *, replace: bool = False, durable: bool = True) -> None:
    """Create the file `path` with `content` atomically. Raises FileExistsError if it exists.

    replace: replace an existing file instead.
    durable: sync the file to disk before returning; otherwise it only survives a crash of the process. The name of a
             file that exists is synced too: an attempt before this one may have failed after it had created it.
    """
    if isinstance(path, RemotePath):
        fault_point("write: before it appears", path)
        if replace:
            path.put(content)
        else:
            path.create(content)
        fault_point("write: before the directory is synced", path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            _let_read(descriptor, path.parent)
            half = len(content) // 2
            write_at(descriptor, content[:half], 0)
            fault_point("write: half", path)
            write_at(descriptor, content[half:], half)
            fault_point("write: before sync", path)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        fault_point("write: before it appears", path)
        if replace:
            _replace(temporary, path)
        else:
            _rename_to_new(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # the trainer removes it later
            _unlink(temporary)
        if isinstance(error, FileExistsError) and durable:
            sync_directory(path.parent)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename, error.filename2 = str(path), None  # the name that the user knows
        raise
    fault_point("write: before the directory is synced", path)
    if durable:
        sync_directory(path.parent)


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of `content` at `offset`, in several calls if the system writes only a part, as on a full disk."""
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view, offset = view[written:], offset + written


def read_file(path: Path, *, max_bytes: int) -> bytes:
    """Return the content of a file. Raises UnreadableError, without reading it, if it has more than `max_bytes`.

    The file is read at once, not in parts, because over NFS a file that another machine has removed cannot be read.
    """
    if isinstance(path, RemotePath):
        content = path.read(max_bytes=max_bytes)
    else:
        with _opened(path) as (file, size):
            content = file.read(size) if size <= max_bytes else None
    if content is None:
        raise UnreadableError(errno.EFBIG, f"more than {max_bytes} bytes", str(path))
    return content


def read_files(paths: Sequence[Path], *, max_bytes: int) -> list[bytes | OSError]:
    """Return the content of each file, or the error of reading it.

    Many files, and objects of a bucket, are read at the same time: each takes the time of a call.
    """

    def read(path: Path) -> bytes | OSError:
        try:
            return read_file(path, max_bytes=max_bytes)
        except OSError as error:
            return error

    if len(paths) < MANY_FILES and not any(isinstance(path, RemotePath) for path in paths):
        return [read(path) for path in paths]
    with ThreadPoolExecutor(16) as threads:
        return list(threads.map(read, paths))


def read_part(path: Path, offset: int, *, max_bytes: int) -> bytes:
    """Return the content of a file from `offset` on, at most `max_bytes`. Raises UnreadableError if it is no file."""
    if isinstance(path, RemotePath):
        return path.read_part(offset, max_bytes=max_bytes)
    with _opened(path) as (file, _):
        file.seek(offset)
        return file.read(max_bytes)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file; yield it and its size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe must not block
    except OSError as error:
        if error.errno in NO_FILE and not _may_be_file(path):
            raise UnreadableError(errno.EINVAL, "not a file", str(path)) from error
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableError(errno.EINVAL, "not a file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            yield file, found.st_size
    finally:
        os.close(descriptor)


def _may_be_file(path: Path) -> bool:
    """Return whether a path that cannot be opened may be a regular file on a volume that is away for a while."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        return error.errno != errno.ELOOP


def rename(path: Path, name: Path) -> None:
    """Rename a file within its directory, durably."""
    fault_point("rename: before", name)
    _replace(path, name)
    sync_directory(name.parent)


def sync(descriptor: int, path: Path) -> None:
    """Sync the content of the open file `path` to disk. After an error, it is unknown how much of it is on disk."""
    fault_point("append: before sync", path)
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:  # macOS
        os.fsync(descriptor)


def remove(path: Path) -> None:
    """Remove a file; it is not an error if it does not exist."""
    fault_point("remove: before", path)
    if isinstance(path, RemotePath):
        path.remove()
    else:
        _unlink(path)


def remove_tree(path: Path) -> None:
    """Remove a file, or a directory with its content, without following links; a missing one is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        _unlink(path)


def move(path: Path, directory: Path, *, name: str | None = None) -> None:
    """Move a file into another directory of the volume, under its own or another name; a file there is replaced.

    To and from a bucket it is copied and then removed, so a process that is killed between these may leave both.
    """
    directory.mkdir(exist_ok=True)
    fault_point("move: before", path)
    target = directory / (name or path.name)
    if isinstance(path, RemotePath) or isinstance(target, RemotePath):
        write_file(target, read_file(path, max_bytes=sys.maxsize), replace=True)
        remove(path)
        return
    os.replace(path, target)
    sync_directory(directory)
    sync_directory(path.parent)


def append(path: Path, content: bytes) -> None:
    """Append to a file that has a single writer and only grows. In a bucket the whole object is written again."""
    if isinstance(path, RemotePath):
        before = path.read(max_bytes=sys.maxsize) if path.is_file() else b""
        path.put((before or b"") + content)
        return
    with open_to_append(path) as file:
        file.write(content)


def open_to_append(path: Path) -> BinaryIO:
    """Open a file of this machine that has a single writer and only grows."""
    file = path.open("ab")
    _let_read(file.fileno(), path.parent)
    return file


def sync_directory(directory: Path) -> None:
    """Sync a directory, so that the names in it survive a power failure, as those in a bucket always do."""
    if isinstance(directory, RemotePath):
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """Yield an address of the Unix socket at `path` that is short enough: Linux accepts at most 107 bytes."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def lock(path: Path, *, needed: bool = True, to_write: bool = False) -> int | None:
    """Return a descriptor that holds the lock on an existing file; None if it is held already or the file is gone.

    The lock is released when the descriptor is closed or the process ends, in whatever way; the existence of the file
    means nothing.

    needed:   if the volume does not support locks, raise OSError with an errno of NO_LOCKS; otherwise return a
              descriptor without a lock.
    to_write: raise OSError for a file that may only be read; otherwise lock it too.
    """
    if isinstance(path, RemotePath):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    try:
        descriptor = os.open(path, os.O_RDWR)  # over NFS a lock needs a file that is open to write
    except FileNotFoundError:
        return None
    except OSError as error:
        is_read_only = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)  # another user's file, read-only mount
        if to_write or not is_read_only:
            raise
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as error:
        if error.errno in NO_LOCKS and not needed:
            return descriptor
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


@contextmanager
def holding(path: Path, refusal: str) -> Iterator[None]:
    """Hold the lock on a file; create the file if there is none. Raises UserError with `refusal` if it is held."""
    if not path.exists():
        with suppress(FileExistsError):  # another process created it first
            write_file(path, b"")
    held = lock(path, needed=False)
    if held is None:
        raise UserError(refusal)
    try:
        yield
    finally:
        os.close(held)


def list_names(directory: Path) -> list[str]:
    """Return the names of all files in a directory; [] if it does not exist: copies may leave out empty directories."""
    if isinstance(directory, RemotePath):
        return list(directory.sizes())
    with suppress(FileNotFoundError):
        return os.listdir(directory)
    return []


def list_files(directory: Path, *, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, int]:
    """Return name -> size in bytes of the regular files in a directory, without links; {} if it does not exist.

    wanted: which names; each costs a call.
    """
    if isinstance(directory, RemotePath):
        return {name: size for name, size in directory.sizes().items() if wanted(name)}
    sizes: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if not wanted(entry.name):
                continue
            with suppress(FileNotFoundError):  # removed since the listing
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    sizes[entry.name] = found.st_size
    return sizes


def is_named(descriptor: int, path: Path) -> bool:
    """Return whether `path` is still the name of an open file, which another process may have renamed or removed.

    The path is opened, because NFS and FUSE may return its status from a cache.
    """
    try:
        found = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.path.samestat(os.fstat(found), os.fstat(descriptor))
        finally:
            os.close(found)
    except FileNotFoundError:  # over FUSE, fstat raises it too if another mount has removed the open file
        return False


def interval(directory: Path, seconds: float) -> float:
    """Return the time between two looks at a directory, or updates of a file in it: `seconds`, longer in a bucket."""
    return max(seconds, BUCKET_SECONDS) if isinstance(directory, RemotePath) else seconds


def watch_directory(directory: Path, changed: threading.Event) -> Callable[[], None]:
    """Set `changed` at each new file in `directory`, until the function that this returns is called.

    That others list the directory, or read its files, is no event: with many processes on a machine each of these would
    wake all the others.

    Raises OSError if the system reports no changes, for example because its limit on watches is reached, or its limit
    on inotify instances, which all containers of a user share.
    """
    from watchdog import events, observers

    class SetOnChange(events.FileSystemEventHandler):
        def on_any_event(self, event: events.FileSystemEvent) -> None:
            changed.set()

    wanted: list[type[events.FileSystemEvent]] = [events.FileCreatedEvent, events.FileMovedEvent]
    observer = observers.Observer()

    def end() -> None:
        observer.stop()
        if observer.is_alive():
            observer.join()

    try:
        observer.schedule(SetOnChange(), str(directory), recursive=False, event_filter=wanted)
        observer.start()
    except OSError:
        end()
        raise
    return end


class Room(NamedTuple):
    """The bytes that a volume has left for this user, and the number of files that can be created."""

    bytes: int
    files: int


def free_room(directory: Path) -> Room:
    """Return the room that is left on the volume of `directory`."""
    if isinstance(directory, RemotePath):
        return Room(sys.maxsize, sys.maxsize)
    found = os.statvfs(directory)
    # Some file systems, such as Btrfs, create inodes when they are needed, and report 0 of them.
    return Room(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else sys.maxsize)


def modified_at(path: Path) -> float:
    """Return when a file was last changed, by the clock of its volume, in Unix seconds; 0 if it is gone."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _let_read(descriptor: int, directory: Path) -> None:
    """Make an open file readable for everyone who may read its directory, whatever the umask of this process is.

    Otherwise a worker and a trainer of different users could share a directory, but not the files in it.
    """
    readers = stat.S_IMODE(os.stat(directory).st_mode) & 0o044
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode | readers != mode:
        with suppress(OSError):  # the volume has no modes, or this process does not own the file
            os.fchmod(descriptor, mode | readers)


def _unlink(path: Path) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _replace(temporary: Path, path: Path) -> None:
    try:
        os.replace(temporary, path)
    except OSError:
        if temporary.exists() or not path.exists():  # NFS may report an error although it did the work
            raise


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename, but raise FileExistsError if the name is taken."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if path.exists():
            if not path.samefile(temporary):  # NFS may report an error although it did the work
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        elif error.errno in NO_LINKS:
            os.replace(temporary, path)  # not safe against a second writer of this name; `plyzero doctor` warns of it
            return
        else:
            raise
    os.unlink(temporary)
