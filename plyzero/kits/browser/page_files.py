"""The files of a shared page that do not depend on the game: parts of the page of `plyzero serve`, and its own.

There is one source of what both pages show. In the folder, files of `plyzero serve` lie in static/, as they do at its
server; a file of kits/browser/page/static of the same name replaces one of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from plyzero.files import read_file
from plyzero.kits.web.pages import PAGE as PAGE_OF_WEB

PAGE: Final = Path(__file__).parent / "page"
"""The directory of the files of the shared page alone."""

FROM_WEB: Final = (
    "address.js",
    "analysis.js",
    "board.js",
    "clock.js",
    "confirm.js",
    "files.js",
    "history.js",
    "html.js",
    "icon.svg",
    "judged.js",
    "moves.js",
    "network.js",
    "overlay.js",
    "pinned.js",
    "play.css",
    "play.js",
    "players.js",
    "review.js",
    "rules.js",
    "sgf.js",
    "shared.js",
    "status.js",
    "style.css",
    "vendor/htm-LICENSE",
    "vendor/htm.js",
    "vendor/preact-LICENSE",
    "vendor/preact-hooks.js",
    "vendor/preact.js",
)
"""Files of kits/web/page that the shared page loads, and those that these load."""

STATIC: Final = "static/"
"""The folder of these files, which load each other by relative addresses."""

MAX_BYTES: Final = 4 << 20
"""Largest file that is read."""


def page_files() -> dict[str, bytes]:
    """Return the files by name, with folders separated by /."""
    found = {STATIC + name: PAGE_OF_WEB / name for name in FROM_WEB}
    own = (each for each in sorted(PAGE.rglob("*")) if each.is_file())
    found |= {each.relative_to(PAGE).as_posix(): each for each in own}
    return {name: read_file(path, max_bytes=MAX_BYTES) for name, path in found.items()}
