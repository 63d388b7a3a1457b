"""The bytes of a shared game by parts, and how long a visitor waits for them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Final, NamedTuple

from plyzero.kits.browser.web_runtime import FILES as RUNTIME

BITS_PER_SECOND: Final = 10_000_000
"""The line of a visitor, which is named with each time."""

PARTS: Final = {
    "rules.wasm": "rules",
    "game.json": "board",
    "board.css": "board",
    "model.onnx": "model",
    "model.json": "model",
    **dict.fromkeys(RUNTIME, "runtime"),
}
"""The part to which a file belongs; the others are the page."""

ORDER: Final = ("rules", "board", "page", "model", "runtime")

NOT_LOADED: Final = ("LICENSE", ".txt")
"""Ends of the names of files that no page loads."""


class Size(NamedTuple):
    """Bytes of files, as they are and as most servers send them, by gzip."""

    plain: int
    compressed: int

    def seconds(self) -> tuple[float, float]:
        """Return how long a visitor waits for them on a line of BITS_PER_SECOND: sent as they are, and compressed."""
        return 8 * self.plain / BITS_PER_SECOND, 8 * self.compressed / BITS_PER_SECOND


def sizes_of(files: Mapping[str, bytes]) -> dict[str, Size]:
    """Return the size of each part of ORDER that a page loads.

    files: content by name.
    """
    found = dict.fromkeys(ORDER, Size(0, 0))
    for name, content in files.items():
        if name.endswith(NOT_LOADED):
            continue
        before = found[PARTS.get(name, "page")]
        packed = len(gzip.compress(content, mtime=0))
        found[PARTS.get(name, "page")] = Size(before.plain + len(content), before.compressed + packed)
    return found


def total(sizes: Mapping[str, Size]) -> Size:
    """Return the size of several parts together."""
    return Size(sum(each.plain for each in sizes.values()), sum(each.compressed for each in sizes.values()))


def describe_sizes(sizes: Mapping[str, Size]) -> list[str]:
    """Return the lines that a person reads."""
    lines = [
        f"{name:<9}{_kilobytes(each.plain)} kB{_kilobytes(each.compressed)} kB by gzip" for name, each in sizes.items()
    ]
    first = total({name: each for name, each in sizes.items() if name not in ("model", "runtime")})
    moves, answers = first.seconds()[1], total(sizes).seconds()
    megabits = BITS_PER_SECOND // 1_000_000
    return [
        *lines,
        f"At {megabits} Mbit/s a visitor can move after {moves:.1f} s, and the bot answers after {answers[1]:.1f} s if "
        f"the server sends files by gzip, else after {answers[0]:.1f} s; after the first visit at once.",
    ]


def _kilobytes(count: int) -> str:
    return f"{count / 1000:>9,.1f}"
