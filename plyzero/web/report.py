"""The dashboard of a run as one file: the page with its data, scripts and styles inside, which loads nothing."""

from __future__ import annotations

import time
from typing import Final

from plyzero.run.directory import RunDirectory
from plyzero.web.run_state import RunView
from plyzero.web.single_file import inlined

NUM_GAMES: Final = 50
"""Number of games in a report."""


def make_report(run: RunDirectory) -> str:
    """Return the dashboard of `run` as an HTML file. Takes seconds: it watches which processes are alive."""
    view = RunView(run, at_once=True)
    return inlined(
        "run.html",
        {
            "made": round(time.time()),
            "state": view.state(),
            "series": view.series(0),
            "games": view.games(NUM_GAMES),
        },
    )
