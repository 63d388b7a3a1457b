"""A recorded game as one HTML file: its board, its moves to click on, and the curve of its recorded values."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from plyzero.play.game_record import Frame
from plyzero.rules.board_svg import svg_parts
from plyzero.web.single_file import inlined


def make_page(frames: Sequence[Frame], game: str, result: str) -> str:
    """Return the page.

    game:   the name of the game.
    result: how it ended, as a clause.
    """
    sentence = f"{result[0].upper()}{result[1:]}."
    return inlined("game.html", {"game": game, "result": sentence, "frames": _describe(frames)})


def _describe(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """Return an object for each frame.

    move, by, rolls: as in Frame.
    score:           the expected score of the first player, or None.
    size:            number of parts that the picture is made of.
    parts:           [place, part] of those that differ from the picture before.
    """
    described: list[dict[str, Any]] = []
    before: list[str] = []
    for frame in frames:
        parts = _parts(frame)
        changed = [[i, part] for i, part in enumerate(parts) if i >= len(before) or before[i] != part]
        score = None if frame.score is None else round(frame.score, 4)
        fields = {"move": frame.move, "by": frame.by, "rolls": frame.rolls, "score": score}
        described.append({**fields, "size": len(parts), "parts": changed})
        before = parts
    return described


def _parts(frame: Frame) -> list[str]:
    if frame.board is None:
        return [f'<pre tabindex="0">{escape(str(frame.position))}</pre>']
    return svg_parts(frame.board, last=frame.last, style=False)
