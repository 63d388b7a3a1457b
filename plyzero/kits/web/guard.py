"""The guard of the web server: what visitors may ask for, what a browser may load, and errors as sentences."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plyzero.errors import UserError, shown
from plyzero.volume_errors import explain

HEADERS: Final = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers that let a page load only what comes from this server, each time anew."""


def guarded(routes: Sequence[BaseRoute], allowed_hosts: Collection[str]) -> Starlette:
    """Return the application with these routes, which answers errors as sentences."""
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, allowed_hosts=frozenset(allowed_hosts))],
        exception_handlers={UserError: _as_sentence, OSError: _as_sentence, HTTPException: _as_sentence},
    )


class Guard:
    """Refuses requests for other host names, which any site can point here, and from other sites; adds HEADERS."""

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
    return JSONResponse({"error": str(error)}, 400)
