"""Errors of the volume: which of them are transient, their explanation, and trying again."""

from __future__ import annotations

import errno
import logging
import math
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from plyzero.errors import UserError

NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Error numbers of a volume that does not support hard links."""

NO_LOCKS: Final = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF}
"""Error numbers of a volume that does not support locks. NFS that is mounted read-only has EBADF."""

FINAL: Final = {
    errno.ENOENT,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.EINVAL,
    errno.EBADF,
    errno.EXDEV,
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
}
"""Error numbers that stay the same however long a process waits. Every other error of a volume is transient: the volume
recovers, the trainer makes room, or a person gives a permission."""

NO_FILE: Final = {errno.ELOOP, errno.ENXIO, errno.ENODEV}
"""Error numbers of opening a path that is not a regular file: a loop of symbolic links, a socket, a device."""

MAX_PAUSE: Final = 30.0
"""Longest pause before a file that could not be read is read again, in seconds."""

Result = TypeVar("Result")

log = logging.getLogger(__name__)


def is_transient(error: OSError) -> bool:
    """Return whether to wait until an error of the volume is over."""
    return not isinstance(error, UnreadableError) and error.errno is not None and error.errno not in FINAL


class UnreadableError(OSError):
    """The path is not a regular file, or the file is larger than any that plyzero writes; it was not read."""


def explain(error: OSError) -> str:
    """Return the reason of an error as a clause. If a permission is missing, it names the file, its owner and mode."""
    reason = error.strerror or str(error)
    if error.errno not in (errno.EACCES, errno.EPERM) or not isinstance(error.filename, str):
        return reason
    if "://" in error.filename:  # an object of a bucket has no owner
        return reason
    known: list[tuple[Path, os.stat_result]] = []
    file = Path(error.filename)
    for path in (file, *file.absolute().parents):
        with suppress(OSError):
            known.append((path, os.stat(path)))
    if not known:
        return reason
    all_rights = os.R_OK | os.W_OK | os.X_OK
    rights = [all_rights if stat.S_ISDIR(found.st_mode) else os.R_OK for _, found in known]
    refused = (each for each, needed in zip(known, rights, strict=True) if not os.access(each[0], needed))
    path, found = next(refused, known[0])
    owner, mode = found.st_uid, stat.S_IMODE(found.st_mode)
    return f"{reason}: {path} is owned by uid {owner}, mode {mode:04o}; this process runs as uid {os.geteuid()}"


def retry(read: Callable[[], Result], what: str, *, seconds: float = 60.0) -> Result:
    """Return the result of `read`. After a transient error, which is logged once, it is called again, for `seconds`.

    Raises the last error after that time, and any other error at once.
    """
    pause = 1.0
    logged = ""
    while True:
        try:
            return read()
        except OSError as error:
            if not is_transient(error) or seconds <= 0:
                raise
            reason = explain(error)
            if reason != logged:
                log.warning("%s: %s; will try again", what, reason)
                logged = reason
        time.sleep(pause)
        seconds -= pause
        pause = min(2 * pause, MAX_PAUSE)


def wait_for(read: Callable[[], Result], what: str) -> Result:
    """Return the result of `read`, which a process needs to start. Transient errors are waited for without limit.

    This includes those that are the cause of a UserError.
    """

    def attempt() -> Result:
        try:
            return read()
        except UserError as error:
            if isinstance(error.__cause__, OSError) and is_transient(error.__cause__):
                raise error.__cause__ from None
            raise

    return retry(attempt, what, seconds=math.inf)


class _FileError(NamedTuple):
    """The last error of a file: its reason, the seconds before the next attempt, and the time of that attempt."""

    reason: str
    pause: float
    retry_at: float


class FileErrors:
    """The files that cannot be used at the moment: one of them stops no other, and each is logged once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._current: dict[Path, _FileError] = {}

    @contextmanager
    def skipping(self, path: Path, consequence: str, *, writes: bool = False) -> Iterator[None]:
        """Run the body. An OSError ends the body and is logged, with its consequence, unless it is known already.

        A missing file is not an error, unless the body `writes` it.
        """
        try:
            yield
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not writes:
                self._current.pop(path, None)
                return
            before = self._current.get(path)
            reason = explain(error)
            if before is None or before.reason != reason:
                log.warning("%s %s: %s", path.name, consequence, reason)
            pause = min(2 * before.pause, MAX_PAUSE) if before else 1.0
            self._current[path] = _FileError(reason, pause, self._clock() + pause)
        else:
            if self._current.pop(path, None):
                log.info("%s can be used again", path.name)

    def is_due(self, path: Path) -> bool:
        """Return whether to try `path` now: the last attempt succeeded, or the pause since then is over."""
        error = self._current.get(path)
        return error is None or self._clock() >= error.retry_at

    def keep_only(self, paths: Collection[Path]) -> None:
        """Forget the errors of all other files, which do not exist any more."""
        self._current = {path: error for path, error in self._current.items() if path in paths}

    @property
    def summary(self) -> str | None:
        """The number of files that cannot be used, and the reason for the first, as a clause; None if all can."""
        if not self._current:
            return None
        count = len(self._current)
        files = "1 file" if count == 1 else f"{count} files"
        first = next(iter(self._current.values()))
        return f"{files}: {first.reason}"

    @property
    def read_error(self) -> str | None:
        """A sentence about the files that cannot be read at the moment, or None."""
        return self.summary and f"cannot read {self.summary}"
