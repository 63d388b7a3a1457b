"""Why a process or a measurement failed: one sentence, and whether the rules of the game are the cause."""

from __future__ import annotations

import inspect
import re
import shlex
import signal
import sys
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from traceback import FrameSummary, extract_tb

from plyzero.errors import UserError, plain
from plyzero.rules.catalog import GameSpec
from plyzero.rules.user_errors import is_own, is_toolkit


def describe_error(error: BaseException, game: GameSpec) -> str:
    """Return the sentence for an error that was caught in this process."""
    if isinstance(error, UserError):
        return plain(str(error), 400)
    return _describe(f"{type(error).__name__}: {error}", extract_tb(error.__traceback__), game)


def describe_exit(exit_code: int) -> str:
    """Return what ended a process: "killed by SIGKILL", or "exit code 1"."""
    return f"killed by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"exit code {exit_code}"


def describe_log(log: str, exit_code: int, game: GameSpec) -> str:
    """Return the sentence for a process that ended with `exit_code` and wrote `log`."""
    _, found, tail = log.rpartition("Traceback (most recent call last):\n")
    if found:
        lines_of_code = re.findall(r'^  File "(.+)", line (\d+), in (.+)$', tail, re.MULTILINE)
        frames = [FrameSummary(file, int(line), function) for file, line, function in lines_of_code]
        message = next((line for line in tail.splitlines() if line.strip() and not line.startswith(" ")), "an error")
        return _describe(message, frames, game)
    if exit_code <= 0:
        return _describe_silent_end(exit_code, game)
    lines = log.strip().splitlines()
    last = next((line for line in reversed(lines) if line.startswith("plyzero: ")), lines[-1] if lines else "")
    return plain(last.removeprefix("plyzero: "), 400) or f"{describe_exit(exit_code)}, and nothing in its log"


def _describe_silent_end(exit_code: int, game: GameSpec) -> str:
    """Return the sentence for a process that nobody had asked to end, and that has not said why it did."""
    if exit_code == -signal.SIGKILL:
        return "it was killed by SIGKILL, most often because the machine ran out of memory"
    text = "it ended with exit code 0, which nobody had asked it to"
    if exit_code:
        text = f"it was {describe_exit(exit_code)}"
        if exit_code in (-signal.SIGTERM, -signal.SIGINT):
            return text
        text += f" ({signal.strsignal(-exit_code)})"
    if not game.is_included:
        text += f"; if its rules did that, this says which function: plyzero check {shlex.quote(game.name)}"
    return text


def _describe(message: str, frames: Iterable[FrameSummary], game: GameSpec) -> str:
    """Return the error's first line, where it happened if that is not in the toolkit, and what to do about rules."""
    calls = [*frames][::-1]  # the innermost first
    files = _files_of_classes(game)
    rules = {file for file in files if not is_toolkit(file)}
    inner = [*takewhile(lambda call: not is_toolkit(call.filename), calls)]
    of_rules = [call for call in inner if call.filename in rules]
    text = plain(message.strip().partition("\n")[0], 400)
    for call in (of_rules or [call for call in inner if is_own(call.filename)])[:1]:
        text += f", in {plain(call.filename)}, line {call.lineno} ({plain(call.name)})"
    checking = {Path(file).parent for file in files - rules}  # of Game, and of what adapts another toolkit
    is_refused = bool(calls) and Path(calls[0].filename).parent in checking
    if of_rules or is_refused or "observe()" in text:
        text += f"; to test the rules: plyzero check {shlex.quote(game.name)}"
    return text


def _files_of_classes(game: GameSpec) -> set[str]:
    """Return the files that define the class of the game and the classes that it inherits from."""
    files = set()
    for cls in type(game.start).__mro__:
        module = sys.modules.get(cls.__module__)
        file = inspect.getsourcefile(module) if module and hasattr(module, "__file__") else None
        if file:
            files.add(file)
    return files
