"""Troubles: files that cannot be used at the moment. Each is logged once when it begins, and once when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plyzero.volume_errors import MAX_PAUSE, explain

log = logging.getLogger(__name__)


@dataclass
class _Trouble:
    """What is known of a file that cannot be used.

    reason:   the explanation of the last error.
    pause:    seconds until the next attempt, which double.
    retry_at: time of the next attempt.
    """

    reason: str
    pause: float
    retry_at: float


class Troubles:
    """Remembers which files could not be used, so that one of them stops no other and fills no log."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._current: dict[Path, _Trouble] = {}

    @contextmanager
    def skipping(self, path: Path, consequence: str) -> Iterator[None]:
        """Run the body. An OSError ends the body and is logged, with its consequence, if it is not known already.

        That the file does not exist, or no longer, is no trouble.
        """
        try:
            yield
        except FileNotFoundError:
            self._current.pop(path, None)
        except OSError as error:
            self._begin(path, consequence, explain(error))
        else:
            self.end(path)

    def is_due(self, path: Path) -> bool:
        """Return whether to try `path` now: the last attempt succeeded, or the pause since then is over."""
        trouble = self._current.get(path)
        return trouble is None or self._clock() >= trouble.retry_at

    def end(self, path: Path) -> None:
        """Forget the trouble with `path`, if there was any."""
        if self._current.pop(path, None):
            log.info("%s can be used again", path.name)

    def keep_only(self, paths: Collection[Path]) -> None:
        """Forget the trouble with all other files; they do not exist any more."""
        self._current = {path: trouble for path, trouble in self._current.items() if path in paths}

    @property
    def summary(self) -> str | None:
        """How many files cannot be used, and why the first of them, as a clause; None if all can."""
        if not self._current:
            return None
        count = len(self._current)
        return f"{count} file{'' if count == 1 else 's'}: {next(iter(self._current.values())).reason}"

    def _begin(self, path: Path, consequence: str, reason: str) -> None:
        before = self._current.get(path)
        if before is None or before.reason != reason:
            log.warning("%s %s: %s", path.name, consequence, reason)
        pause = min(2 * before.pause, MAX_PAUSE) if before else 1.0
        self._current[path] = _Trouble(reason, pause, self._clock() + pause)
