"""A real server of the web page in a thread, and requests to it."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette

from plyzero.kits.web import preparation
from plyzero.kits.web.connections import listen, server_of


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """Serve `app` on a free port of 127.0.0.1 and yield its address."""
    listening = listen("127.0.0.1", 0)
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def get(address: str, path: str, *, headers: dict[str, str] | None = None, **fields: Any) -> tuple[int, Any]:
    """Return the status and the JSON object that the server answers."""
    request = urllib.request.Request(f"{address}{path}?{urlencode(fields)}", headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def events(address: str, path: str, **fields: Any) -> list[dict[str, Any]]:
    """Return all events of a search."""
    with urllib.request.urlopen(f"{address}{path}?{urlencode(fields)}", timeout=120) as answer:
        return [json.loads(line[6:]) for line in answer if line.startswith(b"data: ")]


def wait_until_ready(address: str) -> dict[str, Any]:
    """Wait until the server has compiled its search; return its answer to /api/about."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        status, about = get(address, "/api/about")
        assert status == 200
        if about["ready"]:
            return about
        time.sleep(0.2)
    raise AssertionError(f"not ready: {about['waitsFor']}")


def violations(page: Any) -> list[tuple[str, str]]:
    """Return the violations of rules for people who cannot see or use a mouse: the rule of axe and the element."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install -e '.[browser]'").Axe()
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in axe.run(page).response["violations"]]


def hold_back_preparation(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hold back the first search of every server, as if nothing were compiled. Return the event that lets it go on."""
    go_on, original = threading.Event(), preparation.first_search

    def first_search(*arguments: Any, **named: Any) -> None:
        go_on.wait()
        original(*arguments, **named)

    monkeypatch.setattr(preparation, "first_search", first_search)
    monkeypatch.setattr(preparation, "is_compiled", lambda: False)
    return go_on
