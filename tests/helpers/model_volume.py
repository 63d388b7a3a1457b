"""A volume on which a test decides, call by call, what happens: to the call, to the process that makes it, to the disk.

`Process` does one thing at a time and can be stopped or killed at any call of the system; `ModelVolume` takes the place
of `os` and `fcntl` in the modules that use files, and of the store of a bucket in memory.
"""

import errno
import fcntl
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from plyzero import files
from plyzero.kits.cluster import bucket
from plyzero.run import adoption, journals

TROUBLES = ("stops", "killed", "fails", "fails though done", "repeated", "short")
"""Troubles at a call. stops = the process is suspended before it. killed = it ends before it. fails = an error, and
nothing is done. fails though done = an error after it was done. repeated = a store is asked again, because its first
answer was lost. short = a write takes half of the bytes."""

LOCKS = ("locks", "no locks", "locks that do not cross")
"""no locks = locking is an error. locks that do not cross = everybody gets every lock."""


class KilledError(BaseException):
    """Ends the work of a process, as SIGKILL does: no code cleans up."""


class IdleError(BaseException):
    """Ends the work of a process when it would wait."""


class Trouble(NamedTuple):
    """One of TROUBLES, and the number of the call from now, from 1, or the fault point before the call."""

    at: int | str
    what: str


class Process:
    """A process that does one piece of work after another, in a thread of its own where it may stand still.

    running: the process whose work goes on now, None if it is none's.
    alive:  whether it has not been killed.
    paused: whether its work stands still in a call.
    met:    the trouble that it met in its last piece of work, and the last fault point before it; "" if none.
    """

    running: "Process | None" = None

    def __init__(self) -> None:
        self.alive = True
        self.paused = False
        self.met = ""
        self.descriptors: set[int] = set()
        self.fault_point = "start"
        self._trouble: Trouble | None = None
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._error: BaseException | None = None

    def do(self, work: Callable[[], object], trouble: Trouble | None = None) -> None:
        """Do `work` until it is done, or stands still. Raises what it raises, unless it is killed or waits."""
        assert self.alive
        assert not self.paused

        self._trouble, self.met = trouble, ""
        if trouble and trouble.what == "stops":
            threading.Thread(target=self._run, args=(work,), daemon=True).start()
        else:
            self._run(work)
        self._wait()

    def _run(self, work: Callable[[], object]) -> None:
        Process.running = self
        try:
            work()
        except KilledError:
            self.alive = False
        except IdleError:
            pass
        except BaseException as error:
            self._error = error
        Process.running = None
        self._back.release()

    def go_on(self, trouble: Trouble | None = None) -> None:
        """Go on with the work that stands still."""
        assert self.paused
        self._trouble = trouble
        self.paused = False
        self.met = ""
        self._turn.release()
        self._wait()

    def kill(self) -> None:
        """End it. Its descriptors are closed, as the system does it."""
        self.alive = False
        if self.paused:
            self.go_on()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def call(self, perform: Callable[[], Any], failed: Exception, *, opens: bool = False, repeats: bool = False) -> Any:
        """Return the result of a system call.

        failed:  the error that it raises if it fails.
        opens:   whether its effect is lost with its answer.
        repeats: whether it is repeated if its answer is lost.
        """
        what = self._next_trouble()
        if what == "stops":
            self.paused, Process.running = True, None
            self._back.release()
            self._turn.acquire()
            Process.running = self
        elif what == "killed":
            self.alive = False
        if not self.alive:
            raise KilledError
        if what == "fails" or (what == "fails though done" and opens):
            raise failed
        result = perform()
        if what == "fails though done":
            raise failed
        return perform() if what == "repeated" and repeats else result

    def reach(self, point: str) -> None:
        """Note that it has reached a fault point."""
        self.fault_point = point
        if self._trouble and self._trouble.at == point:
            self._trouble = self._trouble._replace(at=1)

    def _next_trouble(self) -> str:
        if not self._trouble:
            return ""
        at, what = self._trouble
        if isinstance(at, str) or at > 1:
            self._trouble = Trouble(at if isinstance(at, str) else at - 1, what)
            return ""
        self._trouble = None
        self.met = f"{what} after {self.fault_point}"
        return what

    def takes(self, what: str) -> bool:
        """Return whether the next call meets this trouble, which is then over."""
        if self._trouble != (1, what):
            return False
        return self._next_trouble() == what

    def _wait(self) -> None:
        self._back.acquire()
        if not self.alive and not self.paused:
            self.kill()
        if self._error:
            error, self._error = self._error, None
            raise error


class _Change(NamedTuple):
    """An unsynced change: bytes at an offset of an inode, or names that go from and come to directories."""

    where: frozenset[object]
    offset: int = 0
    content: bytes = b""
    gone: Path | None = None
    there: Path | None = None
    inode: int = 0


class ModelVolume:
    """Stands in for `os`, performs all calls, and remembers the changes that a power failure may undo.

    root: the directory of the files; existing ones are on the disk.
    """

    def __init__(self, root: Path, locks: str) -> None:
        self._root = root
        self._locks = locks
        self._next = 0
        self.buckets = _Bucket()
        self._open: dict[int, int | Path] = {}  # descriptor -> inode or directory
        self._start()

    def _start(self) -> None:
        """Take what is there now for what is on the disk."""
        self._unsynced: list[_Change] = []
        self._names: dict[Path, int] = {}
        self._contents: dict[int, bytearray] = {}
        for path in self._root.rglob("*"):
            if path.is_file():
                self._names[path] = self._new_inode(path.read_bytes())
        self._on_disk = dict(self._names)

    def _new_inode(self, content: bytes = b"") -> int:
        self._next += 1
        self._contents[self._next] = bytearray(content)
        return self._next

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Let plyzero use this volume."""
        with (
            patch.dict(bucket._stores, {("memory:", "runs"): self.buckets}, clear=True),
            patch.object(files, "os", self),
            patch.object(journals, "os", self),
            patch.object(adoption, "os", self),
            patch.object(files, "fcntl", _Locks(self)),
            patch.object(files, "fault_point", _note_fault_point),
        ):
            yield

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor: int = _call(lambda: os.open(path, flags, mode), opens=True)
        if process := _running():
            process.descriptors.add(descriptor)
        path = Path(path)
        if flags & os.O_CREAT and path not in self._names:
            self._change_names(None, path, self._new_inode())
        self._open[descriptor] = self._names.get(path, path)
        return descriptor

    def close(self, descriptor: int) -> None:
        if process := _running():
            process.descriptors.discard(descriptor)
        os.close(descriptor)

    def pwrite(self, descriptor: int, content: memoryview, offset: int) -> int:
        process = _running()
        if process and process.takes("short"):
            content = content[: -(-len(content) // 2)]

        def write() -> int:
            inode = self._open[descriptor]
            self._unsynced.append(_Change(frozenset((inode,)), offset, bytes(content)))
            return os.pwrite(descriptor, content, offset)

        return int(_call(write))

    def fsync(self, descriptor: int) -> None:
        what = self._open[descriptor]
        try:
            _call(lambda: self._sync(what))
        except OSError:  # the system gives up what it could not write, and the next sync succeeds
            self._unsynced = [change for change in self._unsynced if what not in change.where or not change.content]
            raise

    fdatasync = fsync

    def link(self, source: Path, target: Path) -> None:
        def link() -> None:
            os.link(source, target)
            self._change_names(None, target, self._names[source])

        _call(link)

    def replace(self, source: Path, target: Path) -> None:
        def replace() -> None:
            os.replace(source, target)
            self._change_names(source, target, self._names[source])

        _call(replace)

    def unlink(self, path: Path) -> None:
        def unlink() -> None:
            os.unlink(path)
            self._change_names(path, None, 0)

        _call(unlink)

    def listdir(self, path: Path) -> list[str]:
        return list(_call(lambda: os.listdir(path), opens=True))

    def scandir(self, path: Path) -> Any:
        return _call(lambda: os.scandir(path), opens=True)

    def lock(self, descriptor: int, how: int) -> None:
        if self._locks == "no locks":
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        if self._locks == "locks":
            _call(lambda: fcntl.flock(descriptor, how))

    def fail_of_power(self, kept: str, chance: random.Random) -> None:
        """Make of the files what the disk has after a power failure, in which no process survives.

        kept: of what was not synced: "nothing", "names" (all, and no content), or "some" (what `chance` says).
        """
        for change in self._unsynced:
            if change.content:
                size = chance.randint(0, len(change.content)) if kept == "some" else 0
                self._write(change, size)
            elif kept == "names" or (kept == "some" and chance.random() < 0.5):
                self._rename(change)
        found = {path: bytes(self._contents[inode]) for path, inode in self._on_disk.items()}
        for path in self._root.rglob("*"):
            if path.is_file():
                path.unlink()
        for path, content in found.items():
            path.write_bytes(content)
        self._start()

    def _change_names(self, gone: Path | None, there: Path | None, inode: int) -> None:
        if gone:
            self._names.pop(gone, None)
        if there:
            self._names[there] = inode
        directories = frozenset(path.parent for path in (gone, there) if path)
        self._unsynced.append(_Change(directories, gone=gone, there=there, inode=inode))

    def _sync(self, what: int | Path) -> None:
        for change in self._unsynced:
            if what in change.where and change.content:
                self._write(change, len(change.content))
            elif what in change.where:
                self._rename(change)
        self._unsynced = [change for change in self._unsynced if what not in change.where]

    def _write(self, change: _Change, size: int) -> None:
        (inode,) = change.where
        data, end = self._contents[inode], change.offset + size  # type: ignore[index]
        data.extend(bytes(max(0, end - len(data))))
        data[change.offset : end] = change.content[:size]

    def _rename(self, change: _Change) -> None:
        if change.gone:
            self._on_disk.pop(change.gone, None)
        if change.there:
            self._on_disk[change.there] = change.inode


class _Locks:
    """Stands in for `fcntl`."""

    LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB

    def __init__(self, volume: ModelVolume) -> None:
        self.flock = volume.lock


class _Bucket:
    """A store in memory, each request to which is a call."""

    def __init__(self) -> None:
        from obstore.store import MemoryStore

        self._store = MemoryStore()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from obstore.exceptions import GenericError

        method = getattr(self._store, name)

        def request(*arguments: Any, **options: Any) -> Any:
            process = _running()
            if process is None:
                return method(*arguments, **options)
            failed = GenericError("HTTP error: error sending request")
            return process.call(lambda: method(*arguments, **options), failed, repeats=True)

        return request


def _running() -> Process | None:
    """Return the process whose work goes on now, None if it is the test itself that does something."""
    return Process.running


def _call(perform: Callable[[], Any], *, opens: bool = False) -> Any:
    process = _running()
    if process is None:
        return perform()
    return process.call(perform, OSError(errno.EIO, os.strerror(errno.EIO)), opens=opens)


def _note_fault_point(point: str, path: Path) -> None:
    if process := _running():
        process.reach(point)
