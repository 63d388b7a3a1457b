"""Calls on the volume, counted and delayed: what a process asks of the file system, or of the store, of one run.

A call is one that a server of a shared file system would answer: opening, listing, stating, renaming, syncing. For a
run in a bucket it is a request; a list has one for each thousand names.
"""

import builtins
import fcntl
import io
import json
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final

from plyzero import files
from plyzero.kits.cluster.bucket import BucketPath
from plyzero.volumes import RemotePath

BY_PATH: Final = ("stat", "lstat", "listdir", "replace", "rename", "link", "unlink", "mkdir", "statvfs", "chmod")
"""Functions of `os` that are counted by their first argument."""

BY_DESCRIPTOR: Final = ("fsync", "fdatasync", "pwrite")
"""Functions of `os` that are counted if the descriptor is of a file of the run."""

REQUESTS: Final = {"create": "put", "put": "put", "read": "get", "read_part": "get", "remove": "delete", "stat": "head"}
"""Methods of a path in a bucket -> the request that they send."""

LIST_PAGE: Final = 1000
"""Number of names in one answer of a store."""

DUMP_SECONDS: Final = 1.0


class Calls:
    """The calls of this process on the volume of one run.

    counts: "KIND FOLDER" -> number, such as "open replay"; the folder is the one directly below the run.
    bytes:  folder -> bytes read.
    cpu:    name of a part of a process -> CPU seconds, for those who measure parts.
    """

    def __init__(self, root: Path, latency: float) -> None:
        """latency: seconds that each call takes longer."""
        self._prefix = str(root)
        self._latency = latency
        self._lock = threading.Lock()
        self._descriptors: dict[int, str] = {}
        self._sleep = time.sleep
        self.counts: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.cpu: Counter[str] = Counter()

    def folder(self, path: object) -> str | None:
        """Return the folder of the run to which a path belongs; None for a path elsewhere."""
        if not isinstance(path, str | os.PathLike):
            return None
        text = str(path)
        if not text.startswith(self._prefix):
            return None
        rest = text[len(self._prefix) :].lstrip("/")
        return rest.partition("/")[0] if "/" in rest or "." not in rest else "run"

    def note(self, kind: str, folder: str, *, calls: int = 1) -> None:
        """Count `calls`, and wait for the latency of each."""
        with self._lock:
            self.counts[f"{kind} {folder or 'run'}"] += calls
        if self._latency:
            self._sleep(calls * self._latency)

    def note_bytes(self, folder: str, size: int) -> None:
        """Count bytes that were read."""
        with self._lock:
            self.bytes[folder] += size

    def begin(self, root: Path) -> None:
        """Count the calls on another run from now on."""
        self._prefix = str(root)

    def install(self) -> None:
        """Count the calls of this process from now on."""
        for name in BY_PATH:
            setattr(os, name, self._by_path(name, getattr(os, name)))
        for name in BY_DESCRIPTOR:
            setattr(os, name, self._by_descriptor(name, getattr(os, name)))
        fcntl.flock = self._by_descriptor("flock", fcntl.flock)
        self._install_open()
        os.scandir = self._scandir(os.scandir)
        files._opened = self._opened(files._opened)
        self._install_requests()

    def _by_path(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(*arguments: Any, **words: Any) -> Any:
            folder = self.folder(arguments[0]) if arguments else None
            if folder is not None:
                self.note(name, folder)
            return call(*arguments, **words)

        return counted

    def _by_descriptor(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(descriptor: Any, *arguments: Any) -> Any:
            if (folder := self._descriptors.get(descriptor)) is not None:
                self.note(name, folder)
            return call(descriptor, *arguments)

        return counted

    def _install_open(self) -> None:
        open_descriptor, close, open_file = os.open, os.close, io.open

        @wraps(open_descriptor)
        def counted_open(path: Any, *arguments: Any, **words: Any) -> int:
            folder = self.folder(path)
            if folder is not None:
                self.note("open", folder)
            descriptor = open_descriptor(path, *arguments, **words)
            if folder is not None:
                self._descriptors[descriptor] = folder
            return descriptor

        @wraps(close)
        def counted_close(descriptor: int) -> None:
            self._descriptors.pop(descriptor, None)
            close(descriptor)

        @wraps(open_file)
        def counted_open_file(path: Any, *arguments: Any, **words: Any) -> Any:
            if (folder := self.folder(path)) is not None:
                self.note("open", folder)
            return open_file(path, *arguments, **words)

        os.open, os.close = counted_open, counted_close
        io.open = builtins.open = counted_open_file

    def _scandir(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(path: Any = ".") -> Any:
            folder = self.folder(path)
            if folder is None:
                return call(path)
            self.note("listdir", folder)
            return _Entries(self, folder, call(path))

        return counted

    def _opened(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def counted(path: Path) -> Iterator[Any]:
            with call(path) as (file, size):
                if (folder := self.folder(path)) is not None:
                    self.note("read", folder)
                    self.note_bytes(folder, size)
                yield file, size

        return counted

    def _install_requests(self) -> None:
        for name, kind in REQUESTS.items():
            setattr(BucketPath, name, self._request(kind, getattr(BucketPath, name)))
        sizes = BucketPath.sizes

        def counted_sizes(path: BucketPath) -> dict[str, int]:
            found = sizes(path)
            self.note("list", path.name, calls=1 + len(found) // LIST_PAGE)
            return found

        BucketPath.sizes = counted_sizes  # type: ignore[method-assign]

    def _request(self, kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(path: RemotePath, *arguments: Any, **words: Any) -> Any:
            folder = path.parent.name
            self.note(kind, folder)
            answer = call(path, *arguments, **words)
            if kind == "get" and answer:
                self.note_bytes(folder, len(answer))
            return answer

        return counted


class _Entries:
    """The entries of `os.scandir`, of which each stat is a call too."""

    def __init__(self, calls: Calls, folder: str, entries: Any) -> None:
        self._calls, self._folder, self._entries = calls, folder, entries

    def __enter__(self) -> "_Entries":
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def close(self) -> None:
        self._entries.close()

    def __iter__(self) -> Iterator[Any]:
        for entry in self._entries:
            yield _Entry(self._calls, self._folder, entry)


class _Entry:
    def __init__(self, calls: Calls, folder: str, entry: os.DirEntry[str]) -> None:
        self._calls, self._folder, self._entry = calls, folder, entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> str:
        return self._entry.path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        self._calls.note("stat", self._folder)
        return self._entry.stat(follow_symlinks=follow_symlinks)


def watch(calls: Calls, path: Path) -> None:
    """Write the counts, the memory and the CPU time of this process into a file, every second."""

    def write() -> None:
        while True:
            time.sleep(DUMP_SECONDS)
            dump(calls, path)

    threading.Thread(target=write, daemon=True).start()


def dump(calls: Calls, path: Path) -> None:
    """Write the counts, the memory and the CPU time of this process into a file."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "time": time.time(),
        "calls": dict(calls.counts),
        "bytes": dict(calls.bytes),
        "parts": dict(calls.cpu),
        "cpu": used.ru_utime + used.ru_stime,
        "rss_mb": resident_mb(),
    }
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(found))
    temporary.rename(path)


def resident_mb() -> float:
    """Return the memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
