"""Orderly stops of this process: by a signal, by the death of its parent, and although code of others hangs."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

from plyzero.threads import repeating, start_thread

HUNG_SECONDS: Final = 8.0
"""Time in which code of others must return once its process is to stop, in seconds."""

_stops: Final = list[threading.Event]()  # those that `stop_on_signals` has returned
log = logging.getLogger(__name__)


def stop_on_signals() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set; must be called in the main thread."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    _stops.append(stop)
    return stop


def note_signal() -> None:
    """Set the events of `stop_on_signals`, from a thread: Python calls no handler while code in C runs."""
    for stop in _stops:
        stop.set()


def interrupt_on_signals(on_repeat: Callable[[], None] = lambda: None) -> threading.Event:
    """Like `stop_on_signals`, but the first signal also raises KeyboardInterrupt in the main thread.

    The exception alone is not enough: if it is raised while Numba compiles, it is lost in a callback.

    on_repeat: called at every further signal, in a signal handler.
    """
    stop = threading.Event()

    def interrupt(*_: object) -> None:
        if not stop.is_set():
            stop.set()
            raise KeyboardInterrupt
        on_repeat()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    return stop


def on_end_of_pipe(descriptor: int, act: Callable[[], object]) -> None:
    """Call `act`, in a thread, when `descriptor` ends: the parent process, at the other end of the pipe, has died."""

    def watch() -> None:
        while os.read(descriptor, 4096):  # not a file object: a thread blocked on stdin breaks the interpreter's exit
            pass
        act()

    start_thread(watch, name="end-of-pipe")


@contextmanager
def ending_at_once(stop: threading.Event, *, code: int = 0) -> Iterator[None]:
    """While the block runs, end this process with exit code `code` as soon as `stop` is set.

    For a start that has nothing to save yet, and that may last a minute: compiling cannot be interrupted otherwise.
    """

    def look() -> None:
        if stop.is_set():
            log.info("stopped while it started; there is nothing to store")
            os._exit(code)

    with repeating(look, 0.1, name="start"):
        yield


class Calls:
    """Calls of code of others, which may never return: each is a `with` block.

    is_in:   whether one has not returned yet.
    longest: time that the longest of those took that have returned, in seconds.
    """

    def __init__(self) -> None:
        self.is_in = False
        self.longest = self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.monotonic()
        self.is_in = True

    def __exit__(self, *_: object) -> None:
        self.is_in = False
        self.longest = max(self.longest, time.monotonic() - self._began)


@contextmanager
def ending_if_hung(stop: threading.Event, game: str) -> Iterator[Calls]:
    """Yield the calls in which `game` is played. The rules of a game that is not included may never return.

    If a call has not returned HUNG_SECONDS after `stop` was set, or three times what the longest took, end this process
    with exit code 1 and a sentence. Nothing that is in the journal is lost by that.
    """
    calls = Calls()
    looks = 0
    pause = HUNG_SECONDS / 20
    why = f"the games have not gone on for {HUNG_SECONDS:g} s since this process was to stop"
    why += f"; if its rules hang, this says which function: plyzero check {shlex.quote(game)}"

    def look() -> None:
        nonlocal looks
        if stop.is_set() and calls.is_in:
            looks += 1
        if looks * pause > max(HUNG_SECONDS, 3 * calls.longest):  # they are counted: a suspended process makes none
            print(f"plyzero: {why}", file=sys.stderr, flush=True)
            os._exit(1)

    with repeating(look, pause, name="hung") if ":" in game else nullcontext():
        yield calls
