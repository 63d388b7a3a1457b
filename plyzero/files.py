"""All that is done to files on the volume: what a reader finds is whole, and what was written survives a crash.

Nothing else in plyzero writes, removes or locks a file that processes share. `reached` marks the moments at which a
crash would be worst; tests make processes die there.
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

reached: Callable[[str, Path], None] = lambda point, path: None  # noqa: E731
"""Called at every fault point with its name and the file; the names are in POINTS."""

POINTS: Final = (
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

NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
NO_LOCKS: Final = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

TEMPORARY: Final = ".tmp-"
"""How the names of unfinished files begin; no reader looks at them."""


class UnreadableError(OSError):
    """Not a file, or larger than anything plyzero writes; it is not read."""


def write_file(path: Path, content: bytes, *, replace: bool = False, durable: bool = True) -> None:
    """Make `path` appear with `content`, all of it or nothing. FileExistsError if it is there already.

    replace: put it in the place of what is there instead.
    durable: it is on the disk itself when this returns; without it, only safe from a crash of the process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            half = len(content) // 2
            write_at(descriptor, content[:half], 0)
            reached("write: half", path)
            write_at(descriptor, content[half:], half)
            reached("write: before sync", path)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        reached("write: before it appears", path)
        if replace:
            _replace(temporary, path)
        else:
            _rename_to_new(temporary, path)
    except BaseException as error:
        _unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename, error.filename2 = str(path), None  # the name a person knows
        raise
    reached("write: before the directory is synced", path)
    if durable:
        sync_directory(path.parent)


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of `content`, however little the system takes at a time: near a full disk it takes less than asked."""
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view, offset = view[written:], offset + written


def read_file(path: Path, *, max_bytes: int) -> bytes:
    """Return the content of a file. Raises UnreadableError, without reading it, if it has more than `max_bytes`.

    It is opened and read in one go: over NFS a file that is removed meanwhile is gone in mid-read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not hold us up
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
    """Give a file of this directory another name."""
    reached("rename: before", name)
    _replace(path, name)
    sync_directory(name.parent)


def sync(descriptor: int, path: Path) -> None:
    """Put the content of the open file `path` onto the disk itself. After an error nobody knows what is there."""
    reached("append: before sync", path)
    os.fdatasync(descriptor)


def remove(path: Path) -> None:
    """Remove a file; it is no error if it is gone already."""
    reached("remove: before", path)
    _unlink(path)


def move(path: Path, directory: Path) -> None:
    """Move a file into another directory of the volume, over one of that name."""
    directory.mkdir(exist_ok=True)
    reached("move: before", path)
    os.replace(path, directory / path.name)
    sync_directory(directory)
    sync_directory(path.parent)


def open_to_append(path: Path) -> BinaryIO:
    """Open a file that has one writer and only grows."""
    return path.open("ab")


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(path: Path, *, needed: bool = True) -> int | None:
    """Return a descriptor that holds the lock on an existing file; None if another process holds it, or it is gone.

    The lock ends with the process, however it ends, or when the descriptor is closed; that the file exists says
    nothing. Where the volume has no locks OSError with an errno of NO_LOCKS is raised, or, if a lock is not `needed`,
    the descriptor holds none.
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
    """Return how much room the volume has for files of this user."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def _unlink(path: Path) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _replace(temporary: Path, path: Path) -> None:
    try:
        os.replace(temporary, path)
    except OSError:
        if temporary.exists() or not path.exists():  # NFS may report a failure of what it has done
            raise


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename, but fail when the name is taken."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if path.exists():
            if not path.samefile(temporary):  # NFS may report a failure of what it has done
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        elif error.errno in NO_LINKS:
            os.replace(temporary, path)  # a second writer of this name could come between; `doctor` tells
            return
        else:
            raise
    os.unlink(temporary)
