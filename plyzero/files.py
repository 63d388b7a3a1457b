"""Every operation on files of the volume: readers only see complete files, and what was written survives a crash.

No other module of plyzero writes, removes or locks a file that processes share. `fault_point` marks the moments at
which a crash is most dangerous; tests kill processes there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

fault_point: Callable[[str, Path], None] = lambda point, path: None  # noqa: E731
"""Hook that is called at every fault point with its name, one of FAULT_POINTS, and the file; tests replace it."""

FAULT_POINTS: Final = (
    "write: half",
    "write: before sync",
    "write: before it appears",
    "write: before the directory is synced",
    "rename: before",
    "append: half",
    "append: before sync",
    "remove: before",
    "move: before",
)
"""Names of all fault points."""

NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Error numbers of a volume that does not support hard links."""

NO_LOCKS: Final = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Error numbers of a volume that does not support locks."""

TEMPORARY: Final = ".tmp-"
"""Prefix of the names of unfinished files; readers ignore them."""


class UnreadableError(OSError):
    """Raised instead of reading what is not a regular file, or is larger than any file that plyzero writes."""


def write_file(path: Path, content: bytes, *, replace: bool = False, durable: bool = True) -> None:
    """Create the file `path` with `content` atomically. Raises FileExistsError if it exists.

    replace: replace an existing file instead.
    durable: sync the file to disk before returning; otherwise it only survives a crash of the process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
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
        _unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename, error.filename2 = str(path), None  # the name that the user knows
        raise
    fault_point("write: before the directory is synced", path)
    if durable:
        sync_directory(path.parent)


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of `content` at `offset`. Near a full disk the system may write less per call than it was given."""
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view, offset = view[written:], offset + written


def read_file(path: Path, *, max_bytes: int) -> bytes:
    """Return the content of a file. Raises UnreadableError, without reading it, if it has more than `max_bytes`.

    The file is read at once rather than in parts, because over NFS a file that another machine removes cannot be read
    any further.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe must not block
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableError(errno.EINVAL, "not a file", str(path))
        if found.st_size > max_bytes:
            raise UnreadableError(errno.EFBIG, f"more than {max_bytes} bytes", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(found.st_size)
    finally:
        os.close(descriptor)


def rename(path: Path, name: Path) -> None:
    """Rename a file within its directory, durably."""
    fault_point("rename: before", name)
    _replace(path, name)
    sync_directory(name.parent)


def sync(descriptor: int, path: Path) -> None:
    """Sync the content of the open file `path` to disk. After an error, what the disk has of it is unknown."""
    fault_point("append: before sync", path)
    os.fdatasync(descriptor)


def remove(path: Path) -> None:
    """Remove a file; it is not an error if it does not exist."""
    fault_point("remove: before", path)
    _unlink(path)


def move(path: Path, directory: Path) -> None:
    """Move a file into another directory of the volume; a file of that name is replaced."""
    directory.mkdir(exist_ok=True)
    fault_point("move: before", path)
    os.replace(path, directory / path.name)
    sync_directory(directory)
    sync_directory(path.parent)


def open_to_append(path: Path) -> BinaryIO:
    """Open a file that has a single writer and only grows."""
    return path.open("ab")


def sync_directory(directory: Path) -> None:
    """Sync a directory, so that the names in it survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(path: Path, *, needed: bool = True) -> int | None:
    """Return a descriptor that holds the lock on an existing file; None if it is held already or the file is gone.

    The lock is released when the descriptor is closed or the process ends, in whatever way; the existence of the file
    means nothing. If the volume does not support locks, this raises OSError with an errno of NO_LOCKS, or, if the lock
    is not `needed`, returns a descriptor without one.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
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


def free_bytes(directory: Path) -> int:
    """Return the free space of the volume for this user, in bytes."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


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
            os.replace(temporary, path)  # not safe against a second writer of this name; `plyzero doctor` says so
            return
        else:
            raise
    os.unlink(temporary)
