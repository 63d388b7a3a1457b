"""File events: learns at once that a directory has changed, where the system reports it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer


def watch_directory(directory: Path, changed: threading.Event) -> Callable[[], None]:
    """Set `changed` at each change in `directory`, until the function that this returns is called.

    Raises OSError if the system reports no changes, for example because its limit on watches or, per user and shared by
    all containers of this user, on inotify instances is reached.
    """
    observer = Observer()

    def end() -> None:
        observer.stop()
        if observer.is_alive():
            observer.join()

    try:
        observer.schedule(_SetOnChange(changed), str(directory), recursive=False)
        observer.start()
    except OSError:
        end()
        raise
    return end


class _SetOnChange(FileSystemEventHandler):
    def __init__(self, woken: threading.Event) -> None:
        self._woken = woken

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in ("created", "moved", "modified"):
            self._woken.set()
