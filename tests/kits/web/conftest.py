"""Games that `plyzero serve` serves, for tests in a real browser."""

from contextlib import ExitStack
from functools import cache

import pytest

from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.server import make_app
from plyzero.rules.catalog import load_game
from tests.helpers.web import serving, wait_until_ready


@pytest.fixture(scope="session")
def serve():
    """Return a function that serves a game and returns its address; every game is served once."""
    with ExitStack() as servers:

        @cache
        def serve_game(name: str) -> str:
            game = load_game(name)
            address = servers.enter_context(serving(make_app(game, Opponents(game))))
            wait_until_ready(address)
            return address

        yield serve_game
