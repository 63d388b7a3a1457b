"""Why a process or a measurement failed: one sentence, and whether the rules of the game are the cause."""

from __future__ import annotations

import inspect
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import plyzero
from plyzero.errors import plain
from plyzero.rules.catalog import GameSpec

ROOT: Final = Path(plyzero.__file__).resolve().parent.parent
TOOLKIT: Final = tuple(str(ROOT / package) for package in ("plyzero", "selfplay", "trainer"))
LIBRARIES: Final = (sys.prefix, sys.base_prefix, "<")
"""How the paths of the toolkit's own files begin, and of those of Python and of installed packages."""

FRAME: Final = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)
"""A line of a traceback: file, line and function."""


class Frame(NamedTuple):
    """One call in a traceback."""

    file: str
    line: int
    function: str


def describe_error(error: BaseException, game: GameSpec) -> str:
    """Return the sentence for an error that was caught in this process."""
    frames = [Frame(each.filename, each.lineno or 0, each.name) for each in traceback.extract_tb(error.__traceback__)]
    return _describe(f"{type(error).__name__}: {error}", frames, game)


def describe_log(log: str, exit_code: int, game: GameSpec) -> str:
    """Return the sentence for a process that ended with `exit_code` and wrote `log`."""
    _, found, tail = log.rpartition("Traceback (most recent call last):\n")
    if found:
        frames = [Frame(file, int(line), function) for file, line, function in FRAME.findall(tail)]
        message = next((line for line in tail.splitlines() if line.strip() and not line.startswith(" ")), "an error")
        return _describe(message, frames, game)
    if exit_code < 0:
        hint = ", most often because the machine ran out of memory" if exit_code == -signal.SIGKILL else ""
        return f"it was killed by {signal.Signals(-exit_code).name}{hint}"
    lines = log.strip().splitlines()
    last = next((line for line in reversed(lines) if line.startswith("plyzero: ")), lines[-1] if lines else "")
    return plain(last.removeprefix("plyzero: "), 400) or f"exit code {exit_code}, and nothing in its log"


def _describe(message: str, frames: Sequence[Frame], game: GameSpec) -> str:
    """Return the error's first line, where it happened if that is not in the toolkit, and what to do about rules."""
    inner = list(frames)
    for number, frame in enumerate(frames):
        if frame.file.startswith(TOOLKIT):
            inner = list(frames[number + 1 :])
    inner = [frame for frame in inner if not frame.file.startswith(LIBRARIES) or frame.file in _rule_files(game)]
    of_rules = [frame for frame in inner if frame.file in _rule_files(game)]
    where = (of_rules or inner)[-1:]
    text = plain(message.strip().partition("\n")[0], 400)
    for frame in where:
        text += f", in {plain(frame.file)}, line {frame.line} ({plain(frame.function)})"
    is_refused = bool(frames) and frames[-1].file.startswith(str(ROOT / "plyzero" / "rules"))
    if of_rules or is_refused or "observe()" in text:
        name = f"'{game.name}'" if "(" in game.name else game.name
        text += f"; to test the rules: plyzero check {name}"
    return text


def _rule_files(game: GameSpec) -> set[str]:
    """Return the files that define the class of the game and what it inherits, without the toolkit's."""
    files = set()
    for cls in type(game.start).__mro__:
        module = sys.modules.get(cls.__module__)
        file = inspect.getsourcefile(module) if module and hasattr(module, "__file__") else None
        if file and not file.startswith(TOOLKIT):
            files.add(file)
    return files
