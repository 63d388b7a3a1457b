"""The CPU cores and the memory that a process may use on this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def usable_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many bytes of memory this machine has, or its container may use."""
    found = 1 << 33  # where the system does not report it
    with suppress(OSError, ValueError):  # another system
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # cgroup version 2, version 1
        with suppress(OSError, ValueError):  # no such cgroup, or a limit of "max"
            return min(found, int((cgroup / file).read_text()))
    return found


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many CPU cores this process may use, by its affinity and by the CPU quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # not on macOS
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # cgroup version 2, version 1
        try:
            quota, period = " ".join((cgroup / file).read_text() for file in files).split()
            return max(1, min(cores, int(quota) // int(period))) if int(quota) > 0 else cores
        except (OSError, ValueError):  # no such cgroup, or a quota of "max"
            continue
    return cores
