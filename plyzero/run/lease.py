"""One trainer per run: a lock that ends with its process, and a number that outlives it.

The lock refuses a second trainer. The number, the fence, grows with every start and stands in front of every name that
a trainer writes, so that one which was paused and wakes up behind its successor changes nothing that anybody reads.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from plyzero import files
from plyzero.errors import UserError

LOCK: Final = "lease.lock"
MAX_BYTES: Final = 1 << 16
PATIENCE_SECONDS: Final = 1.0
"""`status` holds the lock for an instant when it looks whether anybody else does."""

log = logging.getLogger(__name__)


class Lease:
    """Held from its making to the end of the process or `release`.

    fence: 1, 2, 3, ... for every start of a trainer of the run.
    """

    def __init__(self, directory: Path, about: Mapping[str, Any]) -> None:
        """Raises UserError, which names the holder, if another trainer has the lease."""
        self._directory = directory
        self._held = _lock(directory)
        self.fence = _next_fence(directory, about)

    def check(self) -> None:
        """Raise UserError if another trainer has taken over, which can only be where the lock was lost."""
        newest = max(_fences(directory=self._directory), default=0)
        if newest > self.fence:
            raise UserError(
                f"another trainer ({_holder(self._directory)}) has taken over {self._directory.parent}; this one, "
                f"fence {self.fence}, stops and changes nothing more"
            )

    def release(self) -> None:
        """Let another trainer start."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def is_held(directory: Path) -> bool | None:
    """Tell whether a trainer lives; None where the volume has no locks."""
    try:
        held = files.lock(directory / LOCK)
    except OSError:
        return None
    if held is None:
        return (directory / LOCK).exists()
    os.close(held)
    return False


def _lock(directory: Path) -> int | None:
    path = directory / LOCK
    if not path.exists():
        with suppress(FileExistsError):  # another process was faster
            files.write_file(path, b"")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            held = files.lock(path)
        except OSError as error:
            if error.errno not in files.NO_LOCKS:
                raise
            log.warning("%s has no locks: a second trainer is noticed by its fence only", directory)
            return None
        if held is not None:
            return held
        if time.monotonic() > deadline:
            raise UserError(f"{directory.parent} has a trainer already ({_holder(directory)}); stop that one first")
        time.sleep(0.05)


def _next_fence(directory: Path, about: Mapping[str, Any]) -> int:
    """Claim the next number; no two get the same."""
    while True:
        fence = max(_fences(directory), default=0) + 1
        try:
            files.write_file(directory / f"fence-{fence:06d}.json", (json.dumps(dict(about)) + "\n").encode())
        except FileExistsError:
            continue
        return fence


def _fences(directory: Path) -> list[int]:
    numbers = (path.stem.removeprefix("fence-") for path in directory.glob("fence-*.json"))
    return [int(number) for number in numbers if number.isdecimal()]


def _holder(directory: Path) -> str:
    """Return who claimed the newest fence."""
    fence = max(_fences(directory), default=0)
    try:
        about = json.loads(files.read_file(directory / f"fence-{fence:06d}.json", max_bytes=MAX_BYTES))
        return f"process {about['pid']} on {about['host']}, fence {fence}"
    except (OSError, ValueError, TypeError, KeyError):
        return f"fence {fence}"
