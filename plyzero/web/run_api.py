"""A run for a browser: the addresses below /api/run/, which only read."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from plyzero.errors import shown
from plyzero.run.directory import RunDirectory
from plyzero.web.run_state import RunView

MAX_GAMES = 200
"""Largest number of games in one answer."""


def run_routes(run: RunDirectory | Path) -> list[Route]:
    """Return the routes of a run: its state, its curves and its newest games.

    run: a run, or the directory in which there will be one. The answers then say what they wait for.
    """
    view = RunView(run)

    # Not coroutines: starlette calls them in a thread, so a slow volume stops nobody else.
    def state(request: Request) -> JSONResponse:
        return JSONResponse(view.state())

    def series(request: Request) -> JSONResponse:
        since = read_count(request, "since", default=0, most=1 << 53)
        return _refused(since) if isinstance(since, str) else JSONResponse(view.series(since))

    def games(request: Request) -> JSONResponse:
        newest = read_count(request, "newest", default=50, most=MAX_GAMES)
        return _refused(newest) if isinstance(newest, str) else JSONResponse(view.games(newest))

    answers = {"state": state, "series": series, "games": games}
    return [Route(f"/api/run/{name}", answer, methods=["GET"]) for name, answer in answers.items()]


def read_count(request: Request, name: str, *, default: int, most: int) -> int | str:
    """Return a number of the address, or a sentence that says why it is none."""
    text = request.query_params.get(name, str(default))
    if len(text) <= 16 and text.isascii() and text.isdigit() and int(text) <= most:
        return int(text)
    return f"expected {name} from 0 to {most}, got {shown(text)}"


def _refused(reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, status_code=400)
