"""The CPU cores and the memory that a process may use on this machine, and what sets these limits.

A quota may be set for any cgroup that a process is in: that of its container, of a systemd service, of a Slurm job. The
smallest one counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path("/sys/fs/cgroup")
"""The directory of the cgroups: of version 2, or of version 1 with a directory for each controller."""

OWN: Final = Path("/proc/self/cgroup")
"""The file that names the cgroups of this process."""


class Share(NamedTuple):
    """An amount that a process may use, and what sets it, as the end of a sentence."""

    amount: int
    says: str


def usable_memory(cgroup: Path = ROOT, own: Path = OWN) -> int:
    """Return the number of bytes of memory that this machine has, or that a cgroup of this process may use."""
    return find_memory(cgroup, own).amount


def usable_cores(cgroup: Path = ROOT, own: Path = OWN) -> int:
    """Return the number of CPU cores that this process may use, by its affinity and the CPU quotas of its cgroups."""
    return find_cores(cgroup, own).amount


def find_memory(cgroup: Path = ROOT, own: Path = OWN) -> Share:
    """Return the result of `usable_memory`, with its source."""
    found = Share(1 << 33, "assumed")  # if the system does not report it
    with suppress(OSError, ValueError):  # another system
        found = Share(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "that of this machine")
    for directory in _cgroups("memory", cgroup, own):
        for file in ("memory.max", "memory.limit_in_bytes"):  # version 2, version 1
            with suppress(OSError, ValueError):  # no such cgroup, or a limit of "max"
                limit = Share(int((directory / file).read_text()), f"by the limit of {directory}")
                found = min(found, limit, key=lambda share: share.amount)
    return found


def find_cores(cgroup: Path = ROOT, own: Path = OWN) -> Share:
    """Return the result of `usable_cores`, with its source."""
    if hasattr(os, "sched_getaffinity"):
        cores = Share(len(os.sched_getaffinity(0)), "by the affinity of this process")
    else:  # macOS
        cores = Share(os.cpu_count() or 1, "those of this machine")
    smallest = float(cores.amount)
    for directory in _cgroups("cpu", cgroup, own):
        for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):  # version 2, version 1
            with suppress(OSError, ValueError):  # no such cgroup, or a quota of "max"
                text = " ".join((directory / file).read_text() for file in files)
                quota, period = map(int, text.split())
                if 0 < quota < smallest * period:
                    smallest = quota / period
                    cores = Share(max(1, int(smallest)), f"by the quota of {directory}, {smallest:g} cores")
    return cores


def _cgroups(controller: str, cgroup: Path, own: Path) -> Iterator[Path]:
    """Yield the directories of the cgroups of this process, from its own up to the root, for each version."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # another system
        lines = []
    # A line of version 2 names no controller. Without a namespace of its own, a container sees its cgroup at the root.
    inner = {controller: Path(), "": Path()}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for name in {controller, ""}.intersection(controllers.split(",")):
            inner[name] = Path() if ".." in path else Path(path.lstrip("/"))
    for root, innermost in (
        (cgroup / controller, inner[controller]),  # version 1
        (cgroup / "unified", inner[""]),  # version 2 beside version 1
        (cgroup, inner[""]),  # version 2
    ):
        yield root / innermost
        for parent in innermost.parents:
            yield root / parent
