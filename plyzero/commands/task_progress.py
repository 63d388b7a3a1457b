"""What `experiment run` shows while tasks run: a table on a terminal, elsewhere a line for each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from plyzero.commands.common import LINE_SECONDS, make_console, make_table
from plyzero.errors import plain

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.manifest import Record
    from experiments.plan import Plan

REFRESH_SECONDS: Final = 0.5
"""Time between two pictures of the table on a terminal, in seconds."""

MAX_WAITING: Final = 8
"""Number of waiting tasks in the table."""

COLOURS: Final = {"failed": "red", "blocked": "red", "done": "green", "running": "yellow"}
"""State of a task -> its colour."""


class TaskProgress:
    """Shows what the tasks do: a table on a terminal, elsewhere a line for each change and every LINE_SECONDS.

    started: whether any task was started.
    """

    def __init__(self, plan: Plan, directory: Path, stop: threading.Event) -> None:
        from rich.live import Live

        self._plan, self._directory, self._stop = plan, directory, stop
        self._console = make_console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._records: Mapping[str, Record] = {}
        self._interval = REFRESH_SECONDS if self._console.is_terminal else LINE_SECONDS
        self._next = time.monotonic() + self._interval
        self._was_stopping = self.started = False

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, records: Mapping[str, Record]) -> None:
        """Show the records of the tasks that have begun."""
        before, self._records = self._records, dict(records)
        for name, record in records.items():
            known = before.get(name)
            self.started = self.started or record.state == "running"
            if known is None or (known.state, known.attempts) != (record.state, record.attempts):
                self._changed(name, record, is_first=not before)
        if self._stop.is_set() and not self._was_stopping:
            self._was_stopping = True
            self._console.print("stopping: the running tasks save what they have, for a minute and a half at most")
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        if self._console.is_terminal:
            self._live.update(self._table(), refresh=True)
        else:
            for name, record in records.items():
                if record.state == "running" and (doing := self._doing(name, record)):
                    self._console.print(f"{name}, {seconds_of(record):.0f} s: {doing}")

    def _changed(self, name: str, record: Record, *, is_first: bool) -> None:
        if record.state == "done" and is_first:
            return  # it was done before
        if record.state == "running":
            if not self._console.is_terminal:
                again = f", attempt {record.attempts}" if record.attempts > 1 else ""
                self._console.print(f"{name} begins{again}")
            return
        took = f" in {seconds_of(record):.0f} s" if record.began else ""
        why = f": {record.reason}" if record.reason else ""
        self._console.print(f"{name} {record.state}{took}{why}", style=COLOURS.get(record.state))

    def _table(self) -> Table:
        """Return the tasks that have not ended well, and how many have."""
        states = {
            each.name: self._records[each.name].state if each.name in self._records else "" for each in self._plan.tasks
        }
        done = sum(state in ("done", "skipped") for state in states.values())
        table = make_table("task", "state", "time", "last line", title=f"{done} of {len(states)} tasks ended")
        waiting = [name for name, state in states.items() if not state]
        for name, state in states.items():
            if state and state not in ("done", "skipped"):
                record = self._records[name]
                table.add_row(
                    name, state, f"{seconds_of(record):.0f} s", self._doing(name, record), style=COLOURS.get(state)
                )
        for name in waiting[:MAX_WAITING]:
            table.add_row(name, "waiting", "", "")
        if len(waiting) > MAX_WAITING:
            table.add_row(f"and {len(waiting) - MAX_WAITING} more", "waiting", "", "")
        return table

    def _doing(self, name: str, record: Record) -> str:
        from experiments.manifest import log_file
        from experiments.runner import last_line

        return record.reason or plain(last_line(log_file(self._directory, name)), 100)


def seconds_of(record: Record) -> float:
    """Return how long a task took, or has taken so far; 0 if it was not started."""
    return 0.0 if record.began is None else (record.ended or time.time()) - record.began
