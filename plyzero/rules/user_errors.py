"""Errors in a user's code: which frames of a traceback are the user's, and what a message says about them.

A frame is the toolkit's, Python's, an installed package's, or else the user's. The included games in a checkout and
the template of a new game count as the user's, although they are in the toolkit's folder: their lines are rules.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from itertools import takewhile
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1]
"""The folder of the toolkit."""

TEMPLATE: Final = str(PACKAGE / "check" / "template")
"""The template of a user's own game, whose files count as the user's."""

TOOLKIT: Final = os.path.join(PACKAGE, "")
GAMES: Final = os.path.join(PACKAGE, "games", "")
"""Prefixes of the paths of the toolkit's files, and of the rules of included games among them."""

LIBRARIES: Final = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen",
)
"""Prefixes of the paths of Python's files and of those of packages."""


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the calls in an error's traceback that are in a user's code: not in the toolkit, Python or a library."""
    return [each for each in traceback.extract_tb(error.__traceback__) if is_own(each.filename)]


def is_own(file: str) -> bool:
    """Return whether a file of a traceback is a user's. Packages may be in another environment than this one."""
    if file.startswith(TEMPLATE):
        return True
    is_installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    return not (is_installed or is_toolkit(file) or file.startswith(LIBRARIES))


def is_toolkit(file: str) -> bool:
    """Return whether a file of a traceback is the toolkit's own, and not the rules of an included game."""
    return file.startswith(TOOLKIT) and not file.startswith(GAMES)


def with_location(error: BaseException) -> str:
    """Return the type and message of an error in a user's code as one line, with its file, line and function.

    A line of the toolkit is never named, because it would not help the user.
    """
    message = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if isinstance(error, SyntaxError):  # its message has the file and line
        return message
    innermost_first = traceback.extract_tb(error.__traceback__)[::-1]
    below_toolkit = takewhile(lambda call: not is_toolkit(call.filename), innermost_first)
    candidates = [*reversed(own_frames(error)), *below_toolkit]
    if not candidates:
        return message
    place = candidates[0]
    function = "" if place.name.startswith("<") else f", in {place.name}"  # not <module>
    return f"{message} ({Path(place.filename).name}, line {place.lineno}{function})"
