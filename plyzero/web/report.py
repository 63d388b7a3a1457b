"""The dashboard of a run as one file: the page with its data, scripts and styles inside, which loads nothing."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any, Final

from plyzero.run.directory import RunDirectory
from plyzero.web.run_state import RunView

PAGE: Final = Path(__file__).parent / "page"
"""The directory of what a browser loads."""

NUM_GAMES: Final = 50
"""Number of games in a report."""

POLICY: Final = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"
"""Content-Security-Policy of a report: what is in the file, and nothing from elsewhere."""


def make_report(run: RunDirectory) -> str:
    """Return the dashboard of `run` as an HTML file. Takes seconds: it watches which processes are alive."""
    view = RunView(run, at_once=True)
    return inlined(
        {
            "made": round(time.time()),
            "state": view.state(),
            "series": view.series(0),
            "games": view.games(NUM_GAMES),
        }
    )


def inlined(data: Any) -> str:
    """Return run.html with everything that it loads inside, and `data` as `window.PLYZERO_REPORT`."""
    page = _read("run.html")
    page = re.sub(r'<link rel="icon" href="/static/(.*?)">', lambda found: _icon(found[1]), page)
    page = re.sub(r'<link rel="stylesheet" href="/static/(.*?)">', lambda found: _style(found[1]), page)
    page = re.sub(r'<script src="/static/(.*?)"></script>', lambda found: _script(_read(found[1])), page)
    page = re.sub(r'<script type="module" src="/static/(.*?)"></script>', lambda found: _module(found[1], data), page)
    return page.replace("<head>\n", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n', 1)


def _module(name: str, data: Any) -> str:
    """Return a module as a script in the page; what it imports is a data: address, which an import map names."""
    source = _read(name)
    modules = {
        path: _data_address("text/javascript", _read(path.removeprefix("/static/")))
        for path in re.findall(r'^import .* from "(.*?)";$', source, re.MULTILINE)
    }
    return "\n".join(
        [
            _script(f"window.PLYZERO_REPORT = {as_script(data)};"),
            f'<script type="importmap">{as_script({"imports": modules})}</script>',
            _script(source, ' type="module"'),
        ]
    )


def as_script(data: Any) -> str:
    """Return JSON that may stand in a <script>: no text in it can end that element or begin a comment."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _script(source: str, kind: str = "") -> str:
    return f"<script{kind}>\n{source}\n</script>"


def _style(name: str) -> str:
    return f"<style>\n{_read(name)}\n</style>"


def _icon(name: str) -> str:
    return f'<link rel="icon" href="{_data_address("image/svg+xml", _read(name))}">'


def _data_address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
