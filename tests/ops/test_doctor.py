"""The doctor: what a machine or a volume lacks is said, and nothing of the probes stays."""

import errno
import itertools
import json
import os
import sys
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from unittest.mock import Mock

import pytest

from plyzero.ops import doctor
from plyzero.ops.doctor import NUM_SYNCS, Finding, examine
from plyzero.run.directory import Run
from tests.helpers.cli import plyzero, shown
from tests.helpers.hostile import failing
from tests.helpers.runs import small_run
from tests.helpers.surroundings import python

MACHINE = ["python", "packages", "networks", "training", "cores", "memory"]
PROBES = ["writing", "replacing", "exclusive names", "locks", "sync", "free space", "file events"]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs that take a millisecond, and patience with events on a busy machine."""
    monkeypatch.setattr(doctor, "perf_counter", ticking(1))
    monkeypatch.setattr(doctor, "EVENT_SECONDS", 60)


def found(run: Path | None) -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(run)}


def unwell(run: Path) -> dict[str, str]:
    """Verdicts that are not ok."""
    return {name: finding.verdict for name, finding in found(run).items() if finding.verdict != "ok"}


def tree(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


def test_a_machine_that_has_all_is_fit():
    findings = found(None)
    assert list(findings) == MACHINE
    assert {finding.verdict for finding in findings.values()} == {"ok"}
    assert version("numba") in findings["packages"].says
    assert "CPUExecutionProvider" in findings["networks"].says
    assert version("torch") in findings["training"].says


@pytest.mark.parametrize(
    ("package", "name", "verdict", "says"),
    [
        ("zarr", "packages", "failure", "not installed: zarr;"),
        ("torch", "training", "warning", "play and run workers, but not train: pip install -e '.[train]'"),
        ("onnx", "training", "warning", "not installed: onnx;"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str, name: str, verdict: str, says: str):
    missing = Mock(side_effect=PackageNotFoundError)
    monkeypatch.setattr(doctor, "version", lambda asked: missing() if asked == package else "1.0")
    finding = found(None)[name]
    assert finding.verdict == verdict
    assert says in finding.says


def test_onnx_runtime_for_gpus_alone_promises_no_gpu(monkeypatch: pytest.MonkeyPatch):
    assert found(None)["networks"].says.endswith("networks run on the CPU")
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: providers)
    assert found(None)["networks"].says.endswith("networks run on an NVIDIA GPU if there is one, otherwise the CPU")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    finding = found(None)["networks"]
    assert (finding.verdict, "pip install -e '.[cpu]'" in finding.says) == ("failure", True)


def test_an_ordinary_directory_is_fit_and_left_as_it_was(tmp_path: Path):
    findings, seen = dict[str, Finding](), set[str]()
    for finding in examine(tmp_path):
        findings[finding.name] = finding
        seen |= {path.name for path in tmp_path.iterdir()}
    assert list(findings) == [*MACHINE, "directory", *PROBES]
    assert {finding.verdict for finding in findings.values()} == {"ok"}
    assert "is not a run directory yet" in findings["directory"].says
    assert f"the median of {NUM_SYNCS}" in findings["sync"].says
    (name,) = seen  # all probes happen in one directory, at which no reader looks
    assert (name.startswith(".tmp-"), tree(tmp_path)) == (True, [])


def test_the_nearest_directory_that_exists_is_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert unwell(Path("not/there")) == {}
    findings = found(tmp_path / "not" / "there")
    assert f"{tmp_path}, where it would be created, was probed" in findings["directory"].says
    assert findings["writing"].verdict == "ok"
    assert tree(tmp_path) == []


def test_a_run_is_opened(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "store.min_free_mb=7", "selfplay.poll_seconds=3")
    before = tree(tmp_path)
    findings = found(run.root)
    assert findings["directory"] == Finding("directory", "ok", f"{run.root} is a run of tic-tac-toe")
    assert "below 7 MB" in findings["free space"].says
    assert "(3 s)" in findings["file events"].says
    assert tree(tmp_path) == before


@pytest.mark.parametrize("content", ["format = 1000", None])
def test_a_run_that_does_not_open_is_unfit_and_its_volume_is_probed(tmp_path: Path, content: str | None):
    path = tmp_path / "run.toml"
    path.write_text(content) if content else path.mkdir()
    assert unwell(tmp_path) == {"directory": "failure"}
    assert list(found(tmp_path)) == [*MACHINE, "directory", *PROBES]
    says = "has format 1000;" if content else "cannot be read: not a file"
    assert found(tmp_path)["directory"].says.startswith(f"{path} {says}")


def test_a_file_is_no_place_for_a_run(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for run in (tmp_path / "file", tmp_path / "file" / "r"):
        assert unwell(run) == {"writing": "failure"}


link = os.link


def fail_at_last(source: Path, target: Path) -> None:
    (failing(errno.EIO) if target.name == "link" else link)(source, target)


NO_LINKS = (
    "no hard links: two processes that start a new run at the same moment could both believe that they created "
    "it; create it first with plyzero init"
)
NO_LOCKS = (
    "no locks: journals of dead workers are sealed only after ten minutes without a heartbeat, and a second "
    "trainer is detected by its fence number instead of being refused at once"
)


def ticking(milliseconds: int) -> Callable[[], float]:
    """A clock by which every sync takes so long."""
    ticks = itertools.count()
    return lambda: next(ticks) * milliseconds / 1000


def with_room(megabytes: int, inodes: int, free: int) -> Callable[[Path], os.statvfs_result]:
    numbers = (4096, 4096, 10**9, 10**9, megabytes * 256, inodes, free, free, 0, 255)
    return lambda _: os.statvfs_result(numbers)


CLOCK, PAUSE = "plyzero.ops.doctor.perf_counter", "workers will pause until there is more"
SLOW = "51.0 ms", "raise selfplay.seal_seconds and store.sync_seconds"
NOT_REPLACED = "plyzero.ops.doctor.read_file", lambda *_, **__: b"old"
NOT_EXCLUSIVE = "plyzero.ops.doctor.write_file", lambda path, content, **_: path.write_bytes(content)


@pytest.mark.parametrize(
    ("call", "replacement", "verdict", "probes", "says"),
    [
        ("os.fsync", failing(errno.EIO), "failure", [p for p in PROBES if p != "free space"], ["the probe failed:"]),
        *(
            ("os.mkdir", failing(number), "failure", ["writing"], ["which fails: ", os.strerror(number)])
            for number in (errno.EROFS, errno.EACCES)
        ),
        (*NOT_REPLACED, "failure", ["writing", "replacing"], ["another volume"]),
        ("os.link", failing(errno.EPERM), "warning", ["exclusive names"], [NO_LINKS]),
        ("os.link", fail_at_last, "failure", ["exclusive names"], ["the probe failed: Input/output error"]),
        (*NOT_EXCLUSIVE, "failure", ["exclusive names"], ["a file can be created although its name is taken"]),
        ("fcntl.flock", failing(errno.ENOLCK), "warning", ["locks"], [NO_LOCKS]),
        ("fcntl.flock", failing(errno.EIO), "failure", ["locks"], ["the probe failed: Input/output error"]),
        ("fcntl.flock", lambda *_: None, "failure", ["locks"], ["granted twice at the same time"]),
        ("fcntl.flock", failing(errno.EAGAIN), "failure", ["locks"], ["refused although no process holds it"]),
        (CLOCK, ticking(49), "ok", [], []),
        (CLOCK, ticking(51), "warning", ["sync"], SLOW),
        ("os.statvfs", with_room(200, 10**6, 500), "ok", [], []),
        ("os.statvfs", with_room(200, 0, 0), "ok", [], []),  # a file system that makes inodes by need
        ("os.statvfs", with_room(199, 10**6, 500), "failure", ["free space"], ["199 MB", PAUSE]),
        ("os.statvfs", with_room(200, 10**6, 499), "failure", ["free space"], ["room for 499 files", PAUSE]),
    ],
)
def test_what_a_volume_lacks_is_reported_by_its_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, replacement, verdict: str, probes: list[str], says
):
    monkeypatch.setattr(call, replacement)
    assert unwell(tmp_path) == dict.fromkeys(probes, verdict)
    assert all(part in found(tmp_path)[probe].says for probe in probes for part in says)
    assert tree(tmp_path) == []


def test_no_descriptor_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("watchdog.observers.api.BaseObserver.schedule", failing(errno.ENOSPC))
    found(tmp_path)
    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr("fcntl.flock", failing(errno.ENOLCK))
    found(tmp_path)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    ("call", "replacement", "reason"),
    [
        ("watchdog.observers.api.BaseObserver.schedule", lambda *_, **__: None, ""),  # no event comes
        ("watchdog.observers.api.BaseObserver.start", failing(errno.ENOSPC), " (No space left on device)"),  # no watch
        ("watchdog.observers.Observer", failing(errno.EMFILE), " (Too many open files)"),  # no inotify instance
    ],
)
def test_without_file_events_workers_poll(tmp_path: Path, monkeypatch, call: str, replacement, reason: str):
    threads = threading.active_count()
    monkeypatch.setattr(call, replacement)
    monkeypatch.setattr(doctor, "EVENT_SECONDS", 0.01)
    finding = found(tmp_path)["file events"]
    says = f"no file events{reason}: workers find new models by polling every selfplay.poll_seconds (2 s)"
    assert finding == Finding("file events", "warning", says)
    assert (tree(tmp_path), threading.active_count()) == ([], threads)


def test_an_interrupted_probe_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        found(tmp_path)
    assert tree(tmp_path) == []


def test_the_command_shows_every_finding_and_ends_with_a_sentence(tmp_path: Path):
    _, *findings, _, last = shown("doctor", "--run", str(tmp_path)).splitlines()
    assert [line.split()[0] for line in findings] == ["ok"] * len([*MACHINE, "directory", *PROBES])
    assert last == "plyzero can run on this machine and this volume: no warnings."
    assert shown("doctor").splitlines()[-1] == "plyzero can run on this machine: no warnings."


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_failure_ends_the_command_with_exit_code_1_and_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
):
    monkeypatch.setattr("os.mkdir", failing(errno.EROFS))
    done = plyzero("doctor", "--run", str(tmp_path), *arguments)
    assert (done.returncode, done.stderr) == (1, "plyzero: cannot run here until these are fixed: writing\n")
    assert os.strerror(errno.EROFS) in done.stdout
    if arguments:
        told = json.loads(done.stdout)
        assert (told["fit"], told["findings"][-1]["verdict"]) == (False, "failure")


def test_the_findings_as_json_and_a_warning_in_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("watchdog.observers.api.BaseObserver.schedule", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "EVENT_SECONDS", 0.01)
    told = json.loads(shown("doctor", "--run", str(tmp_path), "--json"))
    assert (told.keys(), told["version"], told["fit"]) == ({"version", "findings", "fit"}, 1, True)
    assert [finding["name"] for finding in told["findings"]] == [*MACHINE, "directory", *PROBES]
    assert all(finding.keys() == {"name", "verdict", "says"} for finding in told["findings"])
    assert told["findings"][-1]["verdict"] == "warning"
    text = shown("doctor", "--run", str(tmp_path))
    assert "no file events: workers find new models by polling every selfplay.poll_seconds (2 s)" in text
    assert text.splitlines()[-1] == "plyzero can run on this machine and this volume: 1 warning."


def test_torch_is_looked_up_and_not_imported(run: Run):
    code = (
        "import sys; from pathlib import Path; from plyzero.commands.machine import doctor; "
        f"doctor(Path({str(run.root)!r})); print({{'torch', 'onnx'}} & set(sys.modules))"
    )
    printed = python("-c", code).stdout
    assert version("torch") in printed
    assert printed.splitlines()[-1] == "set()"
