"""The errors whose message is shown to the user without a traceback, and how text from elsewhere is shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Wrong input. The message has what was expected, what came, where, and what to do."""


class FailedError(Exception):
    """A failure although the input is valid: exit code 1 of a command. The message has what failed, and why."""


class ModelRefusedError(UserError):
    """A model that cannot be used. The message has the model and the reason."""


class ModelDamagedError(ModelRefusedError):
    """A model whose content does not match its name. Over NFS it may be complete at the next attempt."""


def install_command(extras: str) -> str:
    """Return the command that installs extras of plyzero, such as "cpu,train". plyzero is in no package registry."""
    return f"pip install -e '.[{extras}]' in a checkout of plyzero, or pip install 'FILE.whl[{extras}]'"


def shown(value: object) -> str:
    """Return `value` as a message quotes it: its repr, cut to 80 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, or nesting that is too deep
        return f"a value of type {type(value).__name__} that is too large to show"
    return plain(text, 80)


def plain(text: str, limit: int = 2000) -> str:
    """Return `text` as one line for a terminal: at most `limit` characters, each control or escape replaced by `?`.

    Names of files, models, heartbeats and logs come from a volume that others can write to. What str.isprintable
    refuses could move the cursor, change colours or reverse the direction of the text.
    """
    return "".join(map(_printable, cut(text, limit)))


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char == "\n" else "?"


def cut(text: str, limit: int = 2000) -> str:
    """Return `text`, or its beginning and `...` if it has more than `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the most similar of the known words, as the end of a sentence."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.0)
    return f"the nearest is {found[0]}" if found else "there are none"
