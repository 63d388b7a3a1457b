"""The memory that a process may use on this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

UNKNOWN_MEMORY: Final = 1 << 33
"""Bytes of memory that are assumed where the system does not report them."""


def usable_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many bytes of memory this machine has, or its container may use."""
    found = UNKNOWN_MEMORY
    with suppress(OSError, ValueError):  # another system
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # cgroup version 2, version 1
        with suppress(OSError, ValueError):  # no such cgroup, or a limit of "max"
            return min(found, int((cgroup / file).read_text()))
    return found
