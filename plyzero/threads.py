"""Threads of plyzero: each is started here, so that what ends one is in the log, in heartbeats and in `status`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plyzero.errors import UserError
from plyzero.volume_errors import explain, is_transient

log = logging.getLogger(__name__)

_errors: dict[str, BaseException] = {}  # by the name of a thread that an error has ended


class Thread(threading.Thread):
    """A daemon thread by default, which logs the `error` that ends it; None while it runs, and if it has returned."""

    def __init__(self, work: Callable[..., object], *arguments: object, name: str, daemon: bool = True) -> None:
        super().__init__(target=work, args=arguments, name=name, daemon=daemon)
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work. Whatever it raises is logged, an error of the volume as a sentence, others with a traceback."""
        try:
            super().run()
        except BaseException as error:
            self.error = _errors[self.name] = error
            is_known = isinstance(error, UserError) or (isinstance(error, OSError) and error.errno is not None)
            text, info = (f": {error}", None) if is_known else ("", error)
            log.error("the thread %s of this process has ended%s", self.name, text, exc_info=info)

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
                if logged != (logged := explain(error)):
                    log.warning("%s: %s; will try again", name, logged)

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
