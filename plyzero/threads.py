"""Threads of plyzero: each is started here, so that what ends one is in the log, in heartbeats and in `status`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

_errors: dict[str, BaseException] = {}  # by the name of a thread that an error has ended


class Thread(threading.Thread):
    """A daemon thread by default, which logs the `error` that ends it; None while it runs, and if it has returned."""

    def __init__(self, work: Callable[..., object], *arguments: object, name: str, daemon: bool = True) -> None:
        super().__init__(target=work, args=arguments, name=name, daemon=daemon)
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work. Whatever it raises is logged with its traceback."""
        try:
            super().run()
        except BaseException as error:
            self.error = _errors[self.name] = error
            log.exception("the thread %s of this process has ended", self.name)

    def check(self) -> None:
        """Raise the error that ended the thread, if one did."""
        if self.error:
            raise self.error


def start_thread(work: Callable[..., object], *arguments: object, name: str) -> Thread:
    """Start `work` in a thread of its own."""
    thread = Thread(work, *arguments, name=name)
    thread.start()
    return thread


@contextmanager
def repeating(work: Callable[[], object], seconds: float, *, name: str) -> Iterator[Thread]:
    """Do `work` in a thread, again and again after a pause of `seconds`, until the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            work()

    thread = start_thread(repeat, name=name)
    try:
        yield thread
    finally:
        ended.set()
        thread.join()


def thread_error() -> str | None:
    """Return which thread of this process an error has ended, as a clause; None if none."""
    for name, error in _errors.items():
        return f"its thread {name} has ended with {type(error).__name__}: {error}; restart the process"
    return None
