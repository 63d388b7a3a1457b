"""The web server: which address does what.

The moves of a game come with every request. Only games between two people in two places are kept, in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from functools import lru_cache
from mimetypes import guess_type
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from plyzero.errors import UserError, shown
from plyzero.kits.web.answers import GameAnswers, RunAnswers, SharedAnswers
from plyzero.kits.web.connections import guarded
from plyzero.kits.web.home import home_page, list_runs
from plyzero.kits.web.opponents import Opponents, usual_opponent
from plyzero.kits.web.pages import PAGE, text_of
from plyzero.kits.web.run_state import Dashboard
from plyzero.kits.web.searches import Searches
from plyzero.machine import usable_cores
from plyzero.play.shared_games import SharedGames
from plyzero.rules.catalog import GameSpec, installed_games, load_game
from plyzero.run.directory import RunDirectory, open_run


def game_routes(game: GameAnswers) -> list[BaseRoute]:
    """Return the routes of the page on which a game is played."""
    return [
        Route("/", lambda request: FileResponse(PAGE / "index.html")),
        Route("/api/about", game.about),
        Route("/api/ends", game.ends),
        Route("/api/position", game.position),
        Route("/api/file", game.file, methods=["POST"]),
        Route("/api/export", game.export, methods=["POST"]),
        Route("/api/why", game.why),
        Route("/api/preview", game.preview),
        Route("/api/think", game.think),
        Route("/api/review", game.review_game),
        Route("/api/inspect", game.inspect_network),
    ]


def two_places_routes(answers: SharedAnswers) -> list[BaseRoute]:
    """Return the routes of games between two people in two places."""
    return [
        Route("/api/shared/open", answers.open, methods=["POST"]),
        Route("/api/shared/join", answers.join, methods=["POST"]),
        Route("/api/shared/play", answers.play, methods=["POST"]),
        Route("/api/shared/resign", answers.resign, methods=["POST"]),
        Route("/api/shared/offer", answers.offer, methods=["POST"]),
        Route("/api/shared/follow", answers.follow),
    ]


def run_routes(run: RunAnswers) -> list[BaseRoute]:
    """Return the routes of the dashboard of a run."""
    return [
        Route("/run", lambda request: FileResponse(PAGE / "run.html")),
        Route("/api/run/state", run.state),
        Route("/api/run/series", run.series),
        Route("/api/run/games", run.games),
    ]


def shared_routes() -> list[BaseRoute]:
    """Return the route of the files that all pages load."""
    names = {"board.css", *(path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file())}

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in names:
            raise HTTPException(404)
        return Response(text_of(name), media_type=guess_type(name)[0])  # a thread, as in StaticFiles, takes longer

    return [Route("/static/{name:path}", file)]


def make_app(
    game: GameSpec, opponents: Opponents, *, allowed_hosts: Collection[str] = (), run: RunDirectory | Path | None = None
) -> Starlette:
    """Return the application that serves `game`.

    allowed_hosts: names under which visitors may reach the server, besides localhost and IP addresses.
    run:           a run whose dashboard is served too, or the directory in which there will be one.
    """
    shared = SharedGames()
    answers = GameAnswers(game, opponents, Searches(usable_cores()), has_run=run is not None, has_home=False)
    routes = _routes(answers, SharedAnswers(game, shared, answers.begun_game), run=run)
    lifespan = _running(answers.end, begin=answers.prepare)
    return guarded([*routes, *shared_routes()], allowed_hosts, lifespan=lifespan, end_streams=shared.end)


def make_home(folder: Path, *, allowed_hosts: Collection[str] = ()) -> Starlette:
    """Return the application that serves all installed games, and the runs in `folder` and in `folder`/runs.

    The rules of a run are imported when a visitor opens its page.
    """
    folder = folder.absolute()
    searches, shared = Searches(usable_cores()), SharedGames()
    ending = ExitStack()

    def router_of(
        game: GameSpec,
        opponents: Opponents,
        run: RunDirectory | None = None,
        others: Callable[[], Sequence[str]] = lambda: (),
    ) -> Router:
        answers = GameAnswers(game, opponents, searches, has_run=run is not None, has_home=True)
        ending.callback(answers.end)
        return Router(_routes(answers, SharedAnswers(game, shared, answers.begun_game), run=run, others=others))

    @lru_cache
    def page_of(kind: str, name: str) -> Router:
        if kind == "game" and name in installed_games():
            game = load_game(name)
            return router_of(game, Opponents(game))
        path = list_runs(folder).get(name) if kind == "run" else None
        if path is None:
            raise UserError(f"there is no {shown(kind)} {shown(name)} here")
        run = open_run(path)

        def other_runs() -> list[str]:
            return [each for each in list_runs(folder) if each != name]

        return router_of(run.game, Opponents(run.game, run=path), run, other_runs)

    async def visit(scope: Scope, receive: Receive, send: Send) -> None:
        page = await run_in_threadpool(page_of, scope["path_params"]["kind"], scope["path_params"]["name"])
        await page(scope, receive, send)

    home = Route("/", lambda request: HTMLResponse(home_page(folder, usual_opponent)))
    routes = [home, *shared_routes(), Mount("/{kind}/{name}", visit)]
    return guarded(routes, allowed_hosts, lifespan=_running(ending.close), end_streams=shared.end)


def _routes(
    answers: GameAnswers,
    two_places: SharedAnswers,
    *,
    run: RunDirectory | Path | None = None,
    others: Callable[[], Sequence[str]] = lambda: (),
) -> list[BaseRoute]:
    """Return the routes of one game, and of a run of it; `others` returns the names of the other runs."""
    routes = game_routes(answers) + two_places_routes(two_places)
    if run is not None:
        routes += run_routes(RunAnswers(Dashboard(run), others))
    return routes


def _running(
    end: Callable[[], object], begin: Callable[[], object] = lambda: None
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """Return the context of a server that calls `begin` before it answers, and `end` when it has answered all."""

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        begin()
        try:
            yield
        finally:
            end()

    return running
