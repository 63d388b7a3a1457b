"""Says whether a machine and a volume are fit for plyzero, and what plyzero does about what they lack."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Final, Literal

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from plyzero.errors import UserError
from plyzero.files import NO_LINKS, NO_LOCKS, TEMPORARY, free_bytes, lock, open_to_append, read_file, write_file
from plyzero.ops.processes import usable_cores
from plyzero.run.directory import open_run
from plyzero.settings import Settings

SYNCS: Final = 20
SLOW_SYNC: Final = 0.05
EVENT_SECONDS: Final = 2.0

Verdict = Literal["ok", "warning", "failure"]
Answer = tuple[Verdict, str]


@dataclass(frozen=True)
class Finding:
    """What one probe found.

    name:    what was probed.
    verdict: failure = plyzero cannot do its work before it is mended; warning = it can, in a lesser way.
    says:    what was found and, if it is not ok, what plyzero does about it or what a person can do.
    """

    name: str
    verdict: Verdict
    says: str


def examine(run: Path | None) -> Iterator[Finding]:
    """Probe this machine and then the volume on which `run` is, or would be; yield each finding as it is made.

    No file of the probes stays on the volume. Of OSErrors come failures.
    """
    machine = {"python": _python, "packages": _packages, "networks": _networks, "training": _training}
    for name, probe in {**machine, "cores": _cores, "memory": _memory}.items():
        yield _finding(name, probe)
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
        says = f"every process of a run must make and remove files in {place}, which fails: {error.strerror}"
        yield Finding("writing", "failure", says)


def _finding(name: str, probe: Callable[[], Answer]) -> Finding:
    try:
        return Finding(name, *probe())
    except OSError as error:
        return Finding(name, "failure", f"the probe of this failed: {error.strerror or error}")


def _python() -> Answer:
    """The interpreter."""
    return "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _packages() -> Answer:
    """What every process needs."""
    found = {package: _version(package) for package in ("numpy", "numba", "zarr")}
    if missing := [package for package, its_version in found.items() if its_version is None]:
        return "failure", f"not installed: {', '.join(missing)}; pip install plyzero"
    return "ok", ", ".join(f"{package} {its_version}" for package, its_version in found.items())


def _networks() -> Answer:
    """What runs networks; a provider tells what the package could use, not that a GPU is there."""
    try:
        import onnxruntime
    except ImportError as error:
        return "failure", f"no network can be run here ({error}): pip install 'plyzero[cpu]' or 'plyzero[gpu]'"
    providers = onnxruntime.get_available_providers()
    gpu = "an NVIDIA GPU if there is one, else the CPU" if "CUDAExecutionProvider" in providers else "the CPU"
    return "ok", f"onnxruntime {onnxruntime.__version__} ({', '.join(providers)}): networks run on {gpu}"


def _training() -> Answer:
    """What a trainer needs besides; looked up, not imported, for torch takes seconds to load."""
    found = {package: _version(package) for package in ("torch", "onnx")}
    if missing := [package for package, its_version in found.items() if its_version is None]:
        return "warning", (
            f"not installed: {', '.join(missing)}; this machine can play and work, not train: "
            "pip install 'plyzero[train]'"
        )
    return "ok", ", ".join(f"{package} {its_version}" for package, its_version in found.items())


def _cores() -> Answer:
    """Cores, as `train` counts them when it starts workers."""
    return "ok", f"{usable_cores()} usable"


def _memory() -> Answer:
    """Memory of the machine, whatever a container may use of it."""
    page = os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    whole, unused = (os.sysconf(name) * page for name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    return "ok", f"{whole:.1f} GB, {unused:.1f} GB of it unused even as file cache"


def _directory(run: Path, place: Path) -> Answer:
    """What is there already."""
    if (run / "run.toml").exists():
        try:
            return "ok", f"{run} is a run of {open_run(run).game.name}"
        except UserError as error:
            return "failure", str(error)
    if place == run:
        return "ok", f"{run} is there and is not a run yet; plyzero init makes it one"
    return "ok", f"{run} does not exist yet; probed is {place}, where it would be made"


def _settings(run: Path) -> Settings:
    try:
        return open_run(run).settings
    except (UserError, OSError):  # said by `_directory`
        return Settings()


def _writing(directory: Path) -> Answer:
    """Whether what is written can be read."""
    path, content = directory / "written", os.urandom(4096)
    write_file(path, content)
    if read_file(path, max_bytes=len(content)) != content:
        return "failure", "a file does not read as it was written; use another volume"
    return "ok", "a file reads as it was written"


def _replacing(directory: Path) -> Answer:
    """Whether a rename puts a new file in the place of an old one."""
    path = directory / "replaced"
    for content in (b"old", b"new"):
        write_file(path, content, replace=True)
    if read_file(path, max_bytes=3) != b"new":
        return "failure", "a replaced file reads as before, so processes would miss what is new; use another volume"
    return "ok", "a rename puts a new file in the place of an old one"


def _exclusive_names(directory: Path) -> Answer:
    """Whether of two who make a file of one name the second is refused, which takes hard links."""
    path = directory / "made"
    write_file(path, b"first")
    try:
        write_file(path, b"second")
    except FileExistsError:
        pass
    else:
        return "failure", "two files of one name can be made, so a file could be lost; use another volume"
    try:
        os.link(path, directory / "link")
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return "warning", (
            "no hard links: two processes that start a new run in the same instant could both believe they made it; "
            "make it first with plyzero init"
        )
    return "ok", "a name that is taken is refused"


def _locks(directory: Path) -> Answer:
    """Whether a lock that is held is refused; another descriptor is as good as another process."""
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
            "no locks: journals of dead workers are taken over only after ten minutes of silence, and a second trainer "
            "is noticed by its fence number, not refused at once"
        )
    finally:
        for descriptor in held:
            os.close(descriptor)
    if len(held) == 1:
        return "ok", "a held lock is refused on this machine; whether it is on another cannot be probed from here"
    got = "given to two at once" if held else "refused though nobody holds it"
    return "failure", f"a lock is {got}, so processes would disturb each other; mount the volume with working locks"


def _sync(directory: Path) -> Answer:
    """How long it takes until 4 kB are on the disk itself."""
    seconds = []
    with open_to_append(directory / "synced") as file:
        for _ in range(SYNCS):
            start = perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            seconds.append(perf_counter() - start)
    median = statistics.median(seconds)
    found = f"{median * 1000:.1f} ms to write and sync 4 kB, the median of {SYNCS}"
    if median > SLOW_SYNC:
        return "warning", (
            f"{found}, which is slow: sealing happens in a thread, so the search does not wait; "
            "raise selfplay.seal_seconds and store.sync_seconds"
        )
    return "ok", found


def _free_space(directory: Path, settings: Settings) -> Answer:
    """Room for files of this user, against the reserve."""
    free, reserve = free_bytes(directory) >> 20, settings.store.min_free_mb
    if free < reserve:
        return "failure", f"{free} MB, store.min_free_mb is {reserve}: workers will pause until there is room"
    return "ok", f"{free} MB; workers pause below {reserve} MB (store.min_free_mb)"


def _file_events(directory: Path, settings: Settings) -> Answer:
    """Whether a new file makes itself known, as a new model does to a worker."""
    polling = f"workers find new models by polling every selfplay.poll_seconds ({settings.selfplay.poll_seconds:g} s)"
    seen, observer = threading.Event(), Observer()
    try:
        try:
            observer.schedule(_Notice(seen), str(directory), recursive=False)
            observer.start()
        except OSError as error:  # the system's limit on watches, say
            return "warning", f"no file events ({error.strerror}): {polling}"
        write_file(directory / "noticed", b"")
        if not seen.wait(EVENT_SECONDS):
            return "warning", f"no file events: {polling}"
    finally:
        if observer.is_alive():
            observer.stop()
            observer.join()
    return "ok", f"they arrive from this machine; whether from another cannot be probed from here, and if not {polling}"


class _Notice(FileSystemEventHandler):
    def __init__(self, seen: threading.Event) -> None:
        self._seen = seen

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._seen.set()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
