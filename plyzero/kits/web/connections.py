"""Connections of visitors to the web server: the socket, bounds of a request, refused requests, errors as sentences."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from plyzero.errors import UserError, shown
from plyzero.rules.user_errors import with_location
from plyzero.volume_errors import explain

MAX_ADDRESS: Final = 1 << 19
"""Longest head of a request, in bytes: the address names all moves of a game, up to `play_api.MAX_TEXT` of them."""

REQUEST_SECONDS: Final = 20.0
"""Longest time that a request may take to arrive, in seconds."""

HEADERS: Final = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers that let a page load only what comes from this server, each time anew."""


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
    return Server(config, app.state.end_streams)


class Server(uvicorn.Server):
    """A server that ends streams which stay open before it waits for the end of its connections."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)


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


def guarded(
    routes: Sequence[BaseRoute],
    allowed_hosts: Collection[str],
    *,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]],
    end_streams: Callable[[], None],
) -> Starlette:
    """Return the application with these routes, which answers errors as sentences.

    lifespan:    the context in which the server runs.
    end_streams: is called, in the event loop, when the server is to end.
    """
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, allowed_hosts=frozenset(allowed_hosts))],
        exception_handlers=dict.fromkeys((UserError, OSError, HTTPException, Exception), _as_sentence),
    )
    app.state.end_streams = end_streams
    return app


class Guard:
    """Refuses requests for other host names, which any site can point here, and from other sites; adds HEADERS.

    An answer that the end of the server cuts short becomes a sentence, in place of a traceback in the log.
    """

    def __init__(self, app: ASGIApp, allowed_hosts: frozenset[str]) -> None:
        self.app, self.allowed_hosts = app, allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
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
        try:
            await self.app(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # the server ends, and has waited long enough for this answer
            if not has_begun:
                await JSONResponse({"error": "the server has ended"}, 503)(scope, receive, send_with_headers)

    def allows(self, name: str) -> bool:
        """Return whether visitors may use this name of the server: an IP address, localhost, or an allowed name."""
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name == "localhost" or name in self.allowed_hosts
        return True


def _is_of_our_page(headers: Headers) -> bool:
    """Return whether a request comes from a page of this server, or from no page.

    Over HTTPS and to localhost, browsers send `Sec-Fetch-Site`. Otherwise they name the page that asks, unless a page
    of another site forbids it. Programs other than browsers are not restricted.
    """
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    asking = headers.get("origin") or headers.get("referer")
    if asking is None:
        return not headers.get("user-agent", "").startswith("Mozilla/")
    return urlsplit(asking).netloc == headers.get("host")


async def _as_sentence(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": f"{request.url.path}: {error.detail}"}, error.status_code)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"the volume cannot be used at the moment: {explain(error)}"}, 503)
    if isinstance(error, UserError):
        return JSONResponse({"error": str(error)}, 400)
    # The rules have failed. The log has the traceback, and Guard is not passed on this way.
    return JSONResponse({"error": f"this cannot be answered: {with_location(error)}"}, 500, HEADERS)
