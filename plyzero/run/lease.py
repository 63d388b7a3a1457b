"""The lease, which allows one trainer per run: a lock that is released with its process, and a fence number.

The lock refuses a second trainer. The fence is incremented with every start, and the names of all files that a trainer
writes begin with it. So the files of a trainer that was suspended, and resumes after its successor has started, come
before the successor's files, and no reader uses them.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from plyzero import files
from plyzero.errors import UserError
from plyzero.lines import parse_object
from plyzero.volume_errors import NO_LOCKS

LOCK: Final = "lease.lock"
"""The file that is locked."""

LAST_FENCE: Final = 999_999
"""The largest fence: the names of states and models have six digits for it."""

LOCK_WAIT_SECONDS: Final = 1.0
"""Time that a trainer waits for the lock, in seconds: `plyzero status` holds it for a moment when it tests it."""

log = logging.getLogger(__name__)


class Lease:
    """A lease, held until `release` or the end of the process; `fence` is the number of this start, from 1 on."""

    def __init__(self, directory: Path, about: Mapping[str, object]) -> None:
        """Acquire the lease for a process described by `about`. Raises UserError with the holder if it is held."""
        self._directory = directory
        self._held = hold(
            directory / LOCK,
            refusal=lambda: f"{directory.parent} already has a trainer ({_holder(directory)}); stop that one first",
        )
        if self._held is None:
            log.warning("%s does not support locks: a second trainer is detected only by its fence", directory)
        try:
            self.fence = _next_fence(directory, about)
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Raise UserError if another trainer has taken over, which is only possible if the lock was lost."""
        newest = max(_fences(self._directory), default=0)
        if newest > self.fence:
            raise UserError(
                f"another trainer ({_holder(self._directory)}) has taken over {self._directory.parent}; this trainer, "
                f"fence {self.fence}, stops and writes nothing more"
            )

    def release(self) -> None:
        """Release the lock, so that another trainer can start."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def is_held(directory: Path) -> bool | None:
    """Return whether a trainer holds the lease; None if the volume does not support locks."""
    try:
        held = files.lock(directory / LOCK)
    except OSError:
        return None
    if held is None:
        return (directory / LOCK).exists()
    os.close(held)
    return False


def hold(path: Path, *, refusal: Callable[[], str]) -> int | None:
    """Lock a file, which is created, until the descriptor that is returned is closed; None where there are no locks.

    Raises UserError with the sentence of `refusal` if another process holds it for longer than LOCK_WAIT_SECONDS.
    """
    if not path.exists():
        with suppress(FileExistsError):  # another process created it first
            files.write_file(path, b"")
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            held = files.lock(path)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return None
        if held is not None:
            return held
        if time.monotonic() > deadline:
            raise UserError(refusal())
        time.sleep(0.05)


def _next_fence(directory: Path, about: Mapping[str, object]) -> int:
    """Create the file of the next fence, a number that no other trainer gets. Raises UserError if there is none."""
    while True:
        fence = max(_fences(directory), default=0) + 1
        if fence > LAST_FENCE:
            raise UserError(
                f"{directory}/fence-{LAST_FENCE}.json has the highest possible number, so no trainer can start after "
                "it; remove that file if plyzero has not written it, otherwise start a new run"
            )
        try:
            files.write_file(directory / f"fence-{fence:06d}.json", (json.dumps(dict(about)) + "\n").encode())
        except FileExistsError:
            continue
        return fence


def _fences(directory: Path) -> list[int]:
    """Return the numbers of all fences; files with any other name, and what is not a file, are ignored."""
    matches = (re.fullmatch(r"fence-([0-9]{6})\.json", file) for file in files.list_files(directory))
    return [int(match[1]) for match in matches if match]


def _holder(directory: Path) -> str:
    fence = max(_fences(directory), default=0)
    try:
        about = parse_object(files.read_file(directory / f"fence-{fence:06d}.json", max_bytes=1 << 16))
        return f"process {about['pid']} on {about['host']}, fence {fence}"
    except (OSError, ValueError, TypeError, KeyError):
        return f"fence {fence}"
