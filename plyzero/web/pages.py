"""Pages as one HTML file that loads nothing: the dashboard of a run, and a recorded game."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

from plyzero.play.game_record import Frame
from plyzero.rules.board_svg import board_css, svg_parts
from plyzero.run.directory import RunDirectory

PAGE: Final = Path(__file__).parent / "page"
"""The directory of what a browser loads."""


def make_report(run: RunDirectory) -> str:
    """Return the dashboard of `run` as an HTML file. Takes seconds: it watches which processes are alive."""
    from plyzero.web.run_state import RunView  # it loads the store, which the page of a game does not need

    view = RunView(run, at_once=True)
    return inlined(
        "run.html",
        {"made": round(time.time()), "state": view.state(), "series": view.series(0), "games": view.games(50)},
    )


def make_page(frames: Sequence[Frame], game: str, result: str) -> str:
    """Return the page.

    game:   the name of the game.
    result: how it ended, as a clause.
    """
    sentence = f"{result[0].upper()}{result[1:]}."
    return inlined("game.html", {"game": game, "result": sentence, "frames": _describe(frames)})


def _describe(frames: Sequence[Frame]) -> list[dict[str, object]]:
    """Return an object for each frame.

    move, by, rolls: as in Frame.
    score:           the expected score of the first player, or None.
    size:            number of parts that the picture is made of.
    parts:           [place, part] of those that differ from the picture before.
    """
    described: list[dict[str, object]] = []
    before: list[str] = []
    for frame in frames:
        parts = [f'<pre tabindex="0">{escape(str(frame.position))}</pre>']
        if frame.board:
            parts = svg_parts(frame.board, last=frame.last, style=False)
        changed = [[i, part] for i, part in enumerate(parts) if i >= len(before) or before[i] != part]
        score = None if frame.score is None else round(frame.score, 4)
        fields = {"move": frame.move, "by": frame.by, "rolls": frame.rolls, "score": score}
        described.append({**fields, "size": len(parts), "parts": changed})
        before = parts
    return described


def inlined(name: str, data: object) -> str:
    """Return a page of `page/` with everything that it loads inside, and `data` as `window.PLYZERO_REPORT`."""
    page = text_of(name)
    icon = f'<link rel="icon" href="{_data_address("image/svg+xml", text_of("icon.svg"))}">'
    page = page.replace('<link rel="icon" href="/static/icon.svg">', icon)
    style = r'<link rel="stylesheet" href="/static/(.*?)">'
    page = re.sub(style, lambda found: f"<style>\n{text_of(found[1])}\n</style>", page)
    page = re.sub(r'<script src="/static/(.*?)"></script>', lambda found: _script(text_of(found[1])), page)
    page = re.sub(r'<script type="module" src="/static/(.*?)"></script>', lambda found: _module(found[1], data), page)
    policy = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"
    return page.replace("<head>\n", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n', 1)


def _module(name: str, data: object) -> str:
    """Return a module as a script in the page; what it imports are data: addresses, which an import map names."""
    modules = {each: _data_address("text/javascript", _source(each)) for each in _imported(name)}
    return "\n".join(
        [
            _script(f"window.PLYZERO_REPORT = {as_script(data)};"),
            f'<script type="importmap">{as_script({"imports": modules})}</script>',
            _script(_source(name), ' type="module"'),
        ]
    )


def _imported(name: str) -> dict[str, None]:
    """Return the modules that a module imports, and those that these import."""
    found: dict[str, None] = {}
    for each in re.findall(r'^import .* from "/static/(.*?)";$', text_of(name), re.MULTILINE):
        found |= {each: None, **_imported(each)}
    return found


def _source(name: str) -> str:
    """Return a module that imports by bare names: in a module with a data: address only these are looked up."""
    return re.sub(r'^(import .* from )"/static/(.*?)";$', r'\1"\2";', text_of(name), flags=re.MULTILINE)


def as_script(data: object) -> str:
    """Return JSON that may stand in a <script>: no text in it can end that element or begin a comment."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def text_of(name: str) -> str:
    """Return a file of `page/`, or the style sheet of boards."""
    return board_css() if name == "board.css" else (PAGE / name).read_text(encoding="utf-8")


def _script(source: str, kind: str = "") -> str:
    return f"<script{kind}>\n{source}\n</script>"


def _data_address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
