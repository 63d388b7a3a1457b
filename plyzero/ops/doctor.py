"""Checks whether a machine and a volume meet plyzero's requirements, and what plyzero does if they do not."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import threading
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Final, Literal

from plyzero.errors import UserError, install_command
from plyzero.files import (
    TEMPORARY,
    free_room,
    list_names,
    lock,
    open_to_append,
    read_file,
    remove,
    watch_directory,
    write_file,
)
from plyzero.machine import find_cores, find_memory
from plyzero.run.directory import read_run
from plyzero.settings import Settings
from plyzero.volume_errors import NO_LINKS, NO_LOCKS
from plyzero.volumes import RemotePath, keeps_first

NUM_SYNCS: Final = 20
"""Number of syncs whose median time is measured."""

EVENT_SECONDS: Final = 2.0
"""Time for which the probe waits for a file event."""

Verdict = Literal["ok", "warning", "failure"]
"""failure = plyzero cannot work until this is repaired. warning = it works, with a restriction."""

ProbeResult = tuple[Verdict, str]
"""The fields `verdict` and `says` of a Finding."""


@dataclass(frozen=True)
class Finding:
    """The result of one probe.

    says: what was found and, if it is not ok, what plyzero does about it or what the user can do.
    """

    name: str
    verdict: Verdict
    says: str


def examine(run: Path | None) -> Iterator[Finding]:
    """Probe this machine, then the volume of the directory `run`, which need not exist; yield one finding per probe.

    The probes leave no file on the volume. An OSError in a probe becomes a failure.
    """
    advice = f"this machine can play and run workers, but not train: {install_command('train')}"
    machine: dict[str, Callable[[], ProbeResult]] = {
        "python": lambda: ("ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        "packages": partial(_installed, ("numpy", "numba", "zarr"), "failure", "install plyzero again"),
        "networks": _networks,
        "training": partial(_installed, ("torch", "onnx"), "warning", advice),
        "cores": _cores,
        "memory": _memory,
    }
    for name, probe in machine.items():
        yield _finding(name, probe)
    if isinstance(run, RemotePath):
        for name, check in {"access": _access, "exclusive names": _keeps_first, "requests": _requests}.items():
            yield _finding(name, partial(check, run))
        return
    if run is None:
        return
    place = next((path for path in (run, *run.parents) if os.path.exists(path)), Path())
    yield _finding("directory", partial(_directory, run, place))
    settings = _settings(run)
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=place) as made:
            directory = Path(made)
            yield _finding("writing", partial(_writing, directory))
            yield _finding("replacing", partial(_replacing, directory))
            yield _finding("exclusive names", partial(_exclusive_names, directory))
            yield _finding("locks", partial(_locks, directory))
            yield _finding("sync", partial(_sync, directory))
            yield _finding("free space", partial(_free_space, directory, settings))
            yield _finding("file events", partial(_file_events, directory, settings))
    except OSError as error:
        says = f"every process of a run must create and remove files in {place}, which fails: {error.strerror}"
        yield Finding("writing", "failure", says)


def _finding(name: str, probe: Callable[[], ProbeResult]) -> Finding:
    try:
        verdict, says = probe()
    except OSError as error:
        verdict, says = "failure", f"the probe failed: {error.strerror or error}"
    return Finding(name=name, verdict=verdict, says=says)


def _installed(packages: Sequence[str], verdict: Verdict, advice: str) -> ProbeResult:
    """Look for packages, without importing them: torch takes seconds to load. `verdict`: where one is missing."""
    found, missing = [], []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    return (verdict, f"not installed: {', '.join(missing)}; {advice}") if missing else ("ok", ", ".join(found))


def _networks() -> ProbeResult:
    """Check ONNX Runtime. A provider means that the package supports it, not that there is a GPU."""
    try:
        import onnxruntime
    except ImportError as error:
        advice = f"{install_command('cpu')}; gpu in place of cpu is for NVIDIA GPUs"
        return "failure", f"networks cannot be evaluated here ({error}): {advice}"
    providers = onnxruntime.get_available_providers()
    device = "an NVIDIA GPU if there is one, otherwise the CPU" if "CUDAExecutionProvider" in providers else "the CPU"
    return "ok", f"onnxruntime {onnxruntime.__version__} ({', '.join(providers)}): networks run on {device}"


def _cores() -> ProbeResult:
    cores = find_cores()
    return "ok", f"{cores.amount} usable, {cores.says}"


def _memory() -> ProbeResult:
    memory = find_memory()
    found = f"{memory.amount / (1 << 30):.1f} GB, {memory.says}"
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:  # macOS
        return "ok", found
    unused = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") / (1 << 30)
    return "ok", f"{found}, {unused:.1f} GB free, not counting the file cache"


def _directory(run: Path, place: Path) -> ProbeResult:
    if (run / "run.toml").exists():
        try:
            return "ok", f"{run} is a run of {read_run(run).game_name}"
        except UserError as error:
            return "failure", str(error)
    if os.path.islink(run) and place != run:
        return "failure", f"{run} is a symbolic link to nothing; remove it, or give another --run directory"
    if place == run:
        return "ok", f"{run} exists and is not a run directory yet; plyzero init makes it one"
    return "ok", f"{run} does not exist yet; {place}, where it would be created, was probed"


def _settings(run: Path) -> Settings:
    try:
        return read_run(run).settings
    except (UserError, OSError):  # reported by `_directory`
        return Settings()


def _writing(directory: Path) -> ProbeResult:
    path, content = directory / "written", os.urandom(4096)
    write_file(path, content)
    if read_file(path, max_bytes=len(content)) != content:
        return "failure", "a file that is read back differs from what was written; use another volume"
    return "ok", "files can be written and read back"


def _replacing(directory: Path) -> ProbeResult:
    path = directory / "replaced"
    for content in (b"old", b"new"):
        write_file(path, content, replace=True)
    if read_file(path, max_bytes=3) != b"new":
        return ("failure", "a replaced file keeps its old content, so processes would miss updates; use another volume")
    return "ok", "a rename replaces an existing file"


def _exclusive_names(directory: Path) -> ProbeResult:
    """Check that a second file of the same name is refused, which needs hard links."""
    path = directory / "made"
    write_file(path, b"first")
    with suppress(FileExistsError):
        write_file(path, b"second")
        return (
            "failure",
            "a file can be created although its name is taken, so files could be lost; use another volume",
        )
    try:
        os.link(path, directory / "link")
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return "warning", (
            "no hard links: two processes that start a new run at the same moment could both believe that they "
            "created it; create it first with plyzero init"
        )
    return "ok", "creating a file that exists fails, as it must"


def _locks(directory: Path) -> ProbeResult:
    """Check that a lock that is held is refused; a second descriptor is treated like another process."""
    path = directory / "locked"
    write_file(path, b"")
    held: list[int] = []
    try:
        for _ in range(2):
            if (descriptor := lock(path)) is not None:
                held.append(descriptor)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return "warning", (
            "no locks: journals of dead workers are sealed only after ten minutes without a heartbeat, and a second "
            "trainer is detected by its fence number instead of being refused at once"
        )
    finally:
        for descriptor in held:
            os.close(descriptor)
    if len(held) == 1:
        return (
            "ok",
            "a lock that is held is refused; whether this is also true across machines cannot be probed from here",
        )
    how = "granted twice at the same time" if held else "refused although no process holds it"
    return "failure", f"a lock is {how}, so processes would disturb each other; mount the volume with working locks"


def _sync(directory: Path) -> ProbeResult:
    with open_to_append(directory / "synced") as file:

        def write() -> None:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

        median = statistics.median(timeit.repeat(write, timer=perf_counter, number=1, repeat=NUM_SYNCS))
    found = f"{median * 1000:.1f} ms to write and sync 4 kB, the median of {NUM_SYNCS}"
    if median > 0.05:
        return "warning", (
            f"{found}, which is slow; the search does not wait for it, because files are written in a thread; "
            "raise selfplay.seal_seconds and store.sync_seconds"
        )
    return "ok", found


def _free_space(directory: Path, settings: Settings) -> ProbeResult:
    """Check what the volume has left for this user against store.min_free_mb and store.min_free_files."""
    free, store = free_room(directory), settings.store
    if free.bytes < store.min_free_mb << 20:
        lacking = f"{free.bytes >> 20} MB, but store.min_free_mb is {store.min_free_mb}"
    elif free.files < store.min_free_files:
        lacking = f"room for {free.files} files, but store.min_free_files is {store.min_free_files}"
    else:
        return "ok", f"{free.bytes >> 20} MB; workers pause below {store.min_free_mb} MB (store.min_free_mb)"
    return "failure", f"{lacking}: workers will pause until there is more"


def _file_events(directory: Path, settings: Settings) -> ProbeResult:
    """Check that a new file causes an event, by which workers detect new models without delay."""
    polling = f"workers find new models by polling every selfplay.poll_seconds ({settings.selfplay.poll_seconds:g} s)"
    seen = threading.Event()
    try:
        end = watch_directory(directory, seen)
    except OSError as error:
        return "warning", f"no file events ({error.strerror}): {polling}"
    try:
        write_file(directory / "noticed", b"")
        if not seen.wait(EVENT_SECONDS):
            return "warning", f"no file events: {polling}"
    finally:
        end()
    across = "whether they also do across machines cannot be probed from here"
    return "ok", f"they arrive on this machine; {across}; if not, {polling}"


def _access(run: RemotePath) -> ProbeResult:
    is_run = (run / "run.toml").exists()
    probe, content = run / f"{TEMPORARY}doctor", os.urandom(4096)
    write_file(probe, content, replace=True)
    read = read_file(probe, max_bytes=len(content))
    listed = probe.name in list_names(run)
    remove(probe)
    if read != content or not listed or probe.name in list_names(run):
        return "failure", "an object that was written or removed looks as before; use another store"
    return "ok", f"{run} is {'a run' if is_run else 'not a run yet'}; objects can be written, listed and removed"


def _keeps_first(run: RemotePath) -> ProbeResult:
    if keeps_first(run):
        return "ok", "creating an object that exists fails, as it must"
    return "failure", "an object can be created although it exists, so games could be lost; use another store"


def _requests(run: RemotePath) -> ProbeResult:
    probe = run / f"{TEMPORARY}doctor"
    write = partial(write_file, probe, bytes(4096), replace=True)
    median = statistics.median(timeit.repeat(write, timer=perf_counter, number=1, repeat=NUM_SYNCS))
    remove(probe)
    return "ok", f"{median * 1000:.1f} ms to write 4 kB, the median of {NUM_SYNCS}"
