"""The server of the web page. It keeps no state: the moves of a game come with every request."""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import lru_cache, partial
from mimetypes import guess_type
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

import h11
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from plyzero.errors import UserError, shown
from plyzero.kits.web.home import home_page, list_runs
from plyzero.kits.web.opponents import ANALYSIS, Opponents
from plyzero.kits.web.pages import PAGE, text_of
from plyzero.kits.web.play_api import (
    describe_position,
    describe_sgf,
    network_view,
    parse_moves,
    search_position,
    unfinished_position,
)
from plyzero.kits.web.reviews import review
from plyzero.kits.web.run_state import Dashboard
from plyzero.kits.web.searches import Event, Report, Searches
from plyzero.machine import usable_cores
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, installed_games, load_game
from plyzero.rules.chance import first_decision, is_chance
from plyzero.rules.user_errors import with_location
from plyzero.run.directory import RunDirectory, open_run
from plyzero.volume_errors import explain

MAX_SIMULATIONS: Final = 10_000
"""Most simulations that a visitor may ask for."""

MAX_START: Final = 4000
"""Longest text of a position that a visitor may set up, in characters."""

MAX_BEGUN: Final = 64
"""Number of positions whose moves are remembered."""

MAX_ADDRESS: Final = 1 << 19
"""Longest head of a request, in bytes: the address names all moves of a game, up to `play_api.MAX_TEXT` of them."""

REQUEST_SECONDS: Final = 20.0
"""Time in which a request must arrive, in seconds."""

HEADERS: Final = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers that let a page load only what comes from this server, each time anew."""


def make_app(
    game: GameSpec, opponents: Opponents, *, allowed_hosts: Collection[str] = (), run: RunDirectory | Path | None = None
) -> Starlette:
    """Return the application that serves `game`.

    allowed_hosts: names under which visitors may reach the server, besides localhost and IP addresses.
    run:           whose dashboard is served too, or the directory in which there will be one.
    """
    routes = game_routes(game, opponents, Searches(usable_cores()), run=run)
    return guarded([*routes, *shared_routes()], allowed_hosts)


def make_home(folder: Path, *, allowed_hosts: Collection[str] = ()) -> Starlette:
    """Return the application that serves all installed games, and the runs in `folder` and in `folder`/runs.

    The rules of a run are imported when a visitor opens its page.
    """
    folder, searches = folder.absolute(), Searches(usable_cores())

    @lru_cache
    def page_of(kind: str, name: str) -> Router:
        if kind == "game" and name in installed_games():
            game = load_game(name)
            return Router(game_routes(game, Opponents(game), searches, others=lambda: ()))
        path = list_runs(folder).get(name) if kind == "run" else None
        if path is None:
            raise UserError(f"there is no {shown(kind)} {shown(name)} here")
        run, others = open_run(path), lambda: [each for each in list_runs(folder) if each != name]
        return Router(game_routes(run.game, Opponents(run.game, run=path), searches, run=run, others=others))

    async def visit(scope: Scope, receive: Receive, send: Send) -> None:
        page = await run_in_threadpool(page_of, scope["path_params"]["kind"], scope["path_params"]["name"])
        await page(scope, receive, send)

    home = Route("/", lambda request: HTMLResponse(home_page(folder)))
    return guarded([home, *shared_routes(), Mount("/{kind}/{name}", visit)], allowed_hosts)


def guarded(routes: Sequence[BaseRoute], allowed_hosts: Collection[str]) -> Starlette:
    """Return the application with these routes, which answers errors as sentences."""
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, allowed_hosts=frozenset(allowed_hosts))],
        exception_handlers={UserError: _as_sentence, OSError: _as_sentence, HTTPException: _as_sentence},
    )


def shared_routes() -> list[BaseRoute]:
    """Return the route of what all pages load. It reads at once: the threads of StaticFiles take longer than a file."""
    names = {"board.css", *(path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file())}

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in names:
            raise HTTPException(404)
        return Response(text_of(name), media_type=guess_type(name)[0])

    return [Route("/static/{name:path}", file)]


def game_routes(
    game: GameSpec,
    opponents: Opponents,
    searches: Searches,
    *,
    run: RunDirectory | Path | None = None,
    others: Callable[[], Sequence[str]] | None = None,
) -> list[Route]:
    """Return the routes of one game, and of a run of it; the arguments are those of `make_app`.

    others: where there is a page with all games, two levels above: returns the names of the other runs there.
    """
    view = Dashboard(run) if run else None
    warming: asyncio.Task[str] | None = None
    waits_for = "the search is being compiled"

    async def about(request: Request) -> Response:
        nonlocal warming, waits_for
        if warming is None or (warming.done() and warming.result()):
            waits_for = warming.result() if warming else waits_for
            warming = asyncio.create_task(run_in_threadpool(warm_up))
        ready = warming.done() and not warming.result()
        return JSONResponse(
            {
                "game": game.name,
                "identity": game.identity,
                "rules": inspect.cleandoc(game.start.rules_text or type(game.start).__doc__ or ""),
                "sgf": describe_sgf(game),
                "players": await run_in_threadpool(players),
                "opponent": opponents.usual(),
                "newest": await run_in_threadpool(opponents.newest_step),
                "hasNetwork": opponents.has_network,
                "hasRun": view is not None,
                "hasHome": others is not None,
                "ready": ready,
                "waitsFor": None if ready else waits_for,
            }
        )

    def players() -> list[dict[str, str | None]]:
        strengths = opponents.strengths()
        return [{"id": key, "name": name, "strength": strengths.get(key)} for key, name in opponents.names().items()]

    def warm_up() -> str:
        """Compile what a search needs. Return "", or what is missing, such as a first model."""
        try:
            find_bot("").with_simulations(1).search([first_decision(game.start)])
        except (Exception, SystemExit) as error:
            return str(error) if isinstance(error, UserError) else with_location(error)
        return ""

    def find_bot(step: str) -> Bot:
        player = opponents.find(ANALYSIS, step=step)
        assert isinstance(player, Bot)
        return player

    begun = {"": game}  # by the texts of the positions that visitors have set up

    async def asked(request: Request) -> tuple[GameSpec, str]:
        """Return the game, which begins at the position `start` if a visitor has set one up, and the moves.

        The moves to a new position are found in a search, so that a visitor who asks for many waits alone.
        """
        start = request.query_params.get("start", "")
        if len(start) > MAX_START:
            raise UserError(f"expected a position of at most {MAX_START} characters, got {len(start)}")
        if start not in begun:
            found = await searches.result(lambda report: {"game": game.set_up(start, "the text")}, _visitor(request))
            if len(begun) > MAX_BEGUN:
                del begun[next(text for text in begun if text)]
            begun[start] = cast(GameSpec, found["game"])
        return begun[start], request.query_params.get("moves", "")

    async def position(request: Request) -> Response:
        at, rng, (begins, moves) = _number(request, "at"), np.random.default_rng(), await asked(request)
        return JSONResponse(await run_in_threadpool(describe_position, begins, moves, rng, at=at))

    async def think(request: Request) -> Response:
        """Stream a search, as events whose data is JSON."""
        step = request.query_params.get("step", "")
        name, simulations = request.query_params.get("player", ANALYSIS), _number(request, "simulations")

        def search(begins: GameSpec, moves_text: str, report: Report) -> Event:
            position = unfinished_position(begins, moves_text)
            before = parse_moves(begins, moves_text)[0][:-1]
            moves = sum(each.to_play == position.to_play for each in before if not is_chance(each))
            player = opponents.find(name, step=step, moves=moves)
            if name == ANALYSIS and simulations is not None and isinstance(player, Bot):
                player = player.with_simulations(simulations, most=MAX_SIMULATIONS)
            return search_position(player, position)(report)

        return _stream(request, searches, asked, search)

    async def review_game(request: Request) -> Response:
        step, simulations = request.query_params.get("step", ""), _number(request, "simulations")

        def search(begins: GameSpec, moves: str, report: Report) -> Event:
            bot, judge = opponents.judge(step, simulations, most=MAX_SIMULATIONS)
            return {**review(bot, *parse_moves(begins, moves))(report), "judge": judge}

        return _stream(request, searches, asked, search)

    async def inspect_network(request: Request) -> Response:
        step, (begins, moves) = request.query_params.get("step", ""), await asked(request)
        return JSONResponse(
            await run_in_threadpool(lambda: network_view(find_bot(step), unfinished_position(begins, moves)))
        )

    return [
        Route("/", lambda request: FileResponse(PAGE / "index.html")),
        Route("/api/about", about),
        Route("/api/position", position),
        Route("/api/think", think),
        Route("/api/review", review_game),
        Route("/api/inspect", inspect_network),
        *(_run_routes(view, others or (lambda: ())) if view else ()),
    ]


def _run_routes(view: Dashboard, others: Callable[[], Sequence[str]]) -> list[Route]:
    """Return the routes of a run: its page, its state with the names of `others`, its curves and its newest games."""

    # Not coroutines: starlette calls them in a thread, so a slow volume does not block other requests.
    def state(request: Request) -> Response:
        return JSONResponse({**view.state(), "others": others()})

    def series(request: Request) -> Response:
        return JSONResponse(view.series(_number(request, "since", most=1 << 53) or 0))

    def games(request: Request) -> Response:
        newest = _number(request, "newest", most=200)
        return JSONResponse(view.games(50 if newest is None else newest))

    page = Route("/run", lambda request: FileResponse(PAGE / "run.html"))
    return [page, *(Route(f"/api/run/{each.__name__}", each, methods=["GET"]) for each in (state, series, games))]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Raises UserError if it cannot be used."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UserError(f"cannot listen on {host} port {port}: {error.strerror}; choose another --port") from error
    return listening


def serve_forever(app: Starlette, listening: socket.socket) -> None:
    """Serve `app` until a signal ends it."""
    server_of(app).run(sockets=[listening])


def server_of(app: Starlette) -> uvicorn.Server:
    """Return the server of `app`, which is not running yet."""
    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=MAX_ADDRESS,
    )
    return uvicorn.Server(config)


class Connection(H11Protocol):
    """A connection that is cut if a request does not arrive in REQUEST_SECONDS."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit = self.loop.call_later(REQUEST_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_complete = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)
        if self._limit and is_complete:
            self._limit.cancel()
            self._limit = None
        elif not self._limit and not is_complete:
            self._limit = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)


class Guard:
    """Refuses other host names, which any site can let point here, and requests of other sites; adds HEADERS."""

    def __init__(self, app: ASGIApp, allowed_hosts: frozenset[str]) -> None:
        self.app, self.allowed_hosts = app, allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        if not self.allows(name.strip("[]").lower()):
            why = f"this server does not answer for {shown(name)}; start it with --allow-host {name} if it should"
            return await JSONResponse({"error": why}, 400)(scope, receive, send_with_headers)
        if "/api/" in scope["path"] and not _is_of_our_page(Headers(scope=scope)):
            why = (
                "this request comes from a page of another site; open this server's own page, and if there is a proxy "
                "between, let it keep the header Host"
            )
            return await JSONResponse({"error": why}, 403)(scope, receive, send_with_headers)
        return await self.app(scope, receive, send_with_headers)

    def allows(self, name: str) -> bool:
        """Return whether visitors may use this name of the server: one that no page can choose, or an allowed one."""
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name == "localhost" or name in self.allowed_hosts
        return True


def _is_of_our_page(headers: Headers) -> bool:
    """Return whether a request is by a page of this server, or by no page.

    Browsers say so themselves, but only to localhost and over HTTPS; to others they name the page that asks, unless a
    page of another site forbids it. Programs other than browsers are not restricted.
    """
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    asking = headers.get("origin") or headers.get("referer")
    if asking is None:
        return not headers.get("user-agent", "").startswith("Mozilla/")
    return urlsplit(asking).netloc == headers.get("host")


def _number(request: Request, name: str, *, most: int = 99_999_999) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (len(text) <= 16 and text.isascii() and text.isdigit() and int(text) <= most):
        raise UserError(f"expected {name} from 0 to {most}, got {shown(text)}")
    return int(text)


def _visitor(request: Request) -> str:
    return request.client.host if request.client else ""


def _stream(
    request: Request,
    searches: Searches,
    asked: Callable[[Request], Awaitable[tuple[GameSpec, str]]],
    search: Callable[[GameSpec, str, Report], Event],
) -> Response:
    async def events() -> AsyncIterator[Event]:
        try:
            game, moves = await asked(request)
        except UserError as error:
            yield {"done": True, "error": str(error)}
            return
        async for event in searches.stream(partial(search, game, moves), _visitor(request)):
            yield event

    async def lines() -> AsyncIterator[str]:
        async for event in events():
            yield f"data: {json.dumps(event)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def _as_sentence(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": f"{request.url.path}: {error.detail}"}, error.status_code)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"the volume cannot be used at the moment: {explain(error)}"}, 503)
    return JSONResponse({"error": str(error)}, 400)
