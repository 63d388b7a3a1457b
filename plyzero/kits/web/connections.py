"""The connections of the web server: the socket that it listens on, and how long a request may take to arrive."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from plyzero.errors import UserError

MAX_ADDRESS: Final = 1 << 19
"""Longest head of a request, in bytes: the address names all moves of a game, up to `play_api.MAX_TEXT` of them."""

REQUEST_SECONDS: Final = 20.0
"""Longest time that a request may take to arrive, in seconds."""


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
