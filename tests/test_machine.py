"""The machine: of all quotas that bound a process the smallest one counts, wherever it is set."""

import os
from pathlib import Path

import pytest

from plyzero.machine import find_cores, find_memory, usable_cores, usable_memory

PERIOD = "cpu.cfs_period_us"
V2 = "0::/system.slice/train.service\n"
V1 = "3:memory:/slurm/job_7\n2:cpu,cpuacct:/slurm/job_7\n0::/\n"


def cgroups(directory: Path, own: str, files: dict[str, str]) -> tuple[Path, Path]:
    for name, text in files.items():
        (directory / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "fs" / name).write_text(text)
    (directory / "own").write_text(own)
    return directory / "fs", directory / "own"


@pytest.mark.parametrize(
    ("own", "files", "where"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, "."),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, "."),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("", {"cpu.max": "150000 100000\n"}, "."),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "100000\n", f"cpu/{PERIOD}": "100000\n"}, "cpu"),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", f"cpu/{PERIOD}": "100000\n"}, None),
        (V2, {"system.slice/train.service/cpu.max": "100000 100000\n"}, "system.slice/train.service"),
        (V2, {"system.slice/cpu.max": "100000 100000\n", "cpu.max": "190000 100000"}, "system.slice"),
        (V2, {"another.slice/cpu.max": "100000 100000\n"}, None),
        (
            V1,
            {"cpu/slurm/job_7/cpu.cfs_quota_us": "100000\n", f"cpu/slurm/job_7/{PERIOD}": "100000\n"},
            "cpu/slurm/job_7",
        ),
        ("1:cpu:/docker/0123\n", {"cpu/cpu.cfs_quota_us": "100000\n", f"cpu/{PERIOD}": "100000\n"}, "cpu"),
        ("0::/../other\n", {"cpu.max": "100000 100000\n"}, "."),
    ],
)
def test_of_all_quotas_of_a_process_the_smallest_one_counts(
    tmp_path: Path, own: str, files: dict[str, str], where: str | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    found = find_cores(*cgroups(tmp_path, own, files))
    assert found.amount == usable_cores(tmp_path / "fs", tmp_path / "own") == (4 if where is None else 1)
    expected = "by the affinity of this process" if where is None else f"by the quota of {tmp_path / 'fs' / where}, "
    assert found.says.startswith(expected)


@pytest.mark.parametrize(
    ("own", "files", "where"),
    [
        ("0::/\n", {"memory.max": "max\n"}, None),
        ("0::/\n", {"memory.max": "1000000\n"}, "."),
        (V2, {"system.slice/memory.max": "1000000\n", "memory.max": "2000000\n"}, "system.slice"),
        (V1, {"memory/slurm/memory.limit_in_bytes": "1000000\n"}, "memory/slurm"),
        (V1, {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
    ],
)
def test_of_all_limits_of_memory_the_smallest_one_counts(
    tmp_path: Path, own: str, files: dict[str, str], where: str | None
):
    found = find_memory(*cgroups(tmp_path, own, files))
    assert found.amount == usable_memory(tmp_path / "fs", tmp_path / "own")
    assert (found.amount == 1_000_000) == (where is not None)
    says = "that of this machine" if where is None else f"by the limit of {tmp_path / 'fs' / where}"
    assert found.says == says
