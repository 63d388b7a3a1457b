"""Threads of plyzero. All are started here, so that an error that ends one is in the log, heartbeats and `status`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plyzero.errors import UserError
from plyzero.volume_errors import explain, is_transient

log = logging.getLogger(__name__)

_errors: dict[str, BaseException] = {}  # name of a thread -> the error that ended it


class Thread(threading.Thread):
    """A thread that logs the error that ends it.

    error: None while it runs, and if it has returned.
    """

    def __init__(self, work: Callable[..., object], *arguments: object, name: str, daemon: bool = True) -> None:
        super().__init__(target=work, args=arguments, name=name, daemon=daemon)
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work. Its error is logged, that of a volume or wrong input as a sentence, others with a traceback."""
        try:
            super().run()
        except BaseException as error:
            self.error = _errors[self.name] = error
            is_known = isinstance(error, UserError) or (isinstance(error, OSError) and error.errno is not None)
            if is_known:
                log.error("the thread %s of this process has ended: %s", self.name, error)
            else:
                log.error("the thread %s of this process has ended", self.name, exc_info=error)

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
    """Do `work` in a thread, again and again after a pause of `seconds`, until the block ends.

    A transient error of the volume is logged, and the work is done again.
    """
    ended = threading.Event()

    def repeat() -> None:
        logged = ""
        while not ended.wait(seconds):
            try:
                work()
            except OSError as error:
                if not is_transient(error):
                    raise
                reason = explain(error)
                if reason != logged:
                    log.warning("%s: %s; will try again", name, reason)
                    logged = reason

    thread = start_thread(repeat, name=name)
    try:
        yield thread
    finally:
        ended.set()
        thread.join()


def thread_error() -> str | None:
    """Return a clause about a thread of this process that an error has ended, None if there is none."""
    for name, error in _errors.items():
        return f"its thread {name} has ended with {type(error).__name__}: {error}; restart the process"
    return None
