"""The answers of the web server: about a game, its positions and searches, games in two places, and about a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from plyzero.errors import UserError, shown
from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.engines.plane_cells import PlaneCells
from plyzero.kits.web.play_api import (
    ANALYSIS,
    describe_ends,
    describe_file,
    describe_position,
    describe_sgf,
    exported,
    network_view,
    parse_moves,
    pieces_added,
    search_position,
    unfinished_position,
    unwrapped,
    why_illegal,
)
from plyzero.kits.web.preparation import Preparation
from plyzero.kits.web.review_api import Reviews
from plyzero.kits.web.searches import Event, Report, Searches
from plyzero.play.shared_games import SharedGame, SharedGames
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance
from plyzero.rules.game import Game

if TYPE_CHECKING:
    from plyzero.kits.web.opponents import Opponents
    from plyzero.kits.web.run_state import Dashboard

MAX_SIMULATIONS: Final = 10_000
"""Most simulations that a visitor may ask for."""

MAX_START: Final = 4000
"""Longest text of a position that a visitor may set up, in characters."""

PULSE_SECONDS: Final = 15.0
"""Longest time between two events of a game in two places, which shows a page that it is still connected."""

MAX_FILE: Final = 1 << 22
"""Largest file of games that a visitor may open, in bytes."""

MAX_BEGUN: Final = 64
"""Number of positions whose moves are remembered."""


BegunGame = Callable[[Request], Awaitable[GameSpec]]
"""Returns the game that begins at the position that a request names."""


class GameAnswers:
    """Answers the requests of the page on which a game is played.

    The parameters `start` and `moves` of a request name a position of the game; `step` names a model of the run.
    """

    def __init__(
        self, game: GameSpec, opponents: Opponents, searches: Searches, *, has_run: bool, has_home: bool
    ) -> None:
        """`has_run`, `has_home`: whether there is a dashboard of a run, and a page with all games."""
        self._game = game
        self._opponents = opponents
        self._searches = searches
        self._has_run = has_run
        self._has_home = has_home
        self._reviews = Reviews()
        self._plane_cells = PlaneCells(game.start)
        self._preparation = Preparation(opponents)
        self._ends: object = None  # what `ends` answers, once it has been asked for
        self._begun = {"": game}  # text of a position that a visitor has set up -> the game that begins there

    def prepare(self) -> str | None:
        """Begin to compile the search; return what it waits for, as a clause, or None."""
        return self._preparation.waits_for()

    def end(self) -> None:
        """End what goes on beside this process."""
        self._preparation.end()

    async def about(self, request: Request) -> Response:
        """Return the game, the players to choose from, and whether the search is compiled.

        hasPgn:         whether games can be saved as PGN.
        playsMeanwhile: whether the opponents that search do so as plain Python until then.
        """
        waits_for = self.prepare()
        start = self._game.start
        return JSONResponse(
            {
                **await run_in_threadpool(self._offered),
                "game": self._game.name,
                "identity": self._game.identity,
                "rules": unwrapped(start.rules_text or type(start).__doc__ or ""),
                "sgf": describe_sgf(self._game),
                "hasPgn": start.uci_variant is not None,
                "hasRun": self._has_run,
                "hasHome": self._has_home,
                "ready": waits_for is None,
                "waitsFor": waits_for,
                "playsMeanwhile": self._preparation.has_plain_search,
            }
        )

    async def position(self, request: Request) -> Response:
        """Return the position after `at` moves; a roll that is missing there is made."""
        at = number_of(request, "at")
        game, moves = await self._asked(request)
        game = self._preparation.at_once(game)
        rng, cells_of = np.random.default_rng(), self._plane_cells.cells
        described = await run_in_threadpool(describe_position, game, moves, rng, at=at, cells_of=cells_of)
        return JSONResponse(described)

    async def file(self, request: Request) -> Response:
        """Return the game `number` of a file, which is the body of the request, and the titles of all its games."""
        number = number_of(request, "number") or 0
        content = await body_of(request)
        game = self._preparation.at_once(self._game)

        def search(report: Report) -> Event:
            return describe_file(game, content, number)

        return JSONResponse(await self._searches.result(search, visitor_of(request)))

    async def export(self, request: Request) -> Response:
        """Return a saved game, which is the body of the request, as the `text` of a file of the `kind` pgn or sgf."""
        kind = "sgf" if request.query_params.get("kind") == "sgf" else "pgn"
        content = await body_of(request)
        game = self._preparation.at_once(self._game)

        def search(report: Report) -> Event:
            return {"text": exported(game, content, kind)}

        return JSONResponse(await self._searches.result(search, visitor_of(request)))

    async def why(self, request: Request) -> Response:
        """Return why no legal move begins with the clicks on `cells`."""
        game, moves = await self._asked(request)
        game = self._preparation.at_once(game)
        cells = request.query_params.get("cells", "").split()
        return JSONResponse({"sentence": await run_in_threadpool(why_illegal, game, moves, cells)})

    async def preview(self, request: Request) -> Response:
        """Return the pieces that the move `name` adds."""
        game, moves = await self._asked(request)
        game, name = self._preparation.at_once(game), request.query_params.get("name", "")
        return JSONResponse(await run_in_threadpool(pieces_added, game, moves, name))

    async def ends(self, request: Request) -> Response:
        """Return the first moves and the kinds of ends of random games, which are played once, at the first request."""

        def search(report: Report) -> Event:
            return {"found": describe_ends(self._game)}

        if self._ends is None:
            self._ends = (await self._searches.result(search, visitor_of(request)))["found"]
        return JSONResponse(self._ends)

    async def think(self, request: Request) -> Response:
        """Stream a search by `player`."""
        name = request.query_params.get("player", ANALYSIS)
        step = request.query_params.get("step", "")
        simulations = number_of(request, "simulations")

        def search(game: GameSpec, moves: str, report: Report) -> Event:
            if self._opponents.is_bot(name):
                asked = {"player": name, "step": step, "start": game.text, "moves": moves}
                found = self._preparation.search_meanwhile(report, **asked)
                if found is not None:
                    return found
            position = unfinished_position(game, moves)
            if name == ANALYSIS:
                judge = self._opponents.judge(step, simulations, most=MAX_SIMULATIONS)
                return search_position(judge.bot, position, judge.sentence, self._plane_cells.cells)(report)
            before, made = parse_moves(game, moves)
            player = self._opponents.find(name, step=step, moves=_moves_by(position.to_play, before[:-1]))
            return search_position(player, position, moves=made)(report)

        return self._stream(request, search)

    async def review_game(self, request: Request) -> Response:
        """Stream the review of a game, or of what is played after `since` moves and rolls of it.

        `resigned` is the player who has resigned. Measuring the scale has a time of its own, before the review.
        """
        step = request.query_params.get("step", "")
        simulations, since = number_of(request, "simulations"), number_of(request, "since") or 0
        resigned = number_of(request, "resigned", most=1)

        def record_of(game: GameSpec, text: str) -> GameRecord:
            positions, moves = parse_moves(game, text)
            begin = min(since, len(moves))
            return GameRecord(positions[begin:], moves[begin:], resigned=resigned)

        def measure(game: GameSpec, moves: str, report: Report) -> Event:
            record_of(game, moves)
            self._reviews.measure(self._opponents.judge(step, simulations, most=MAX_SIMULATIONS), report)
            return {}

        def search(game: GameSpec, moves: str, report: Report) -> Event:
            judge = self._opponents.judge(step, simulations, most=MAX_SIMULATIONS)
            return self._reviews.review(judge, record_of(game, moves), report)

        return self._stream(request, measure, search)

    async def inspect_network(self, request: Request) -> Response:
        """Return the network's input and output in a position."""
        step = request.query_params.get("step", "")
        game, moves = await self._asked(request)

        def view() -> dict[str, object]:
            position = unfinished_position(game, moves)
            return network_view(self._opponents.network(step), position, self._plane_cells.cells(position))

        return JSONResponse(await run_in_threadpool(view))

    async def _asked(self, request: Request) -> tuple[GameSpec, str]:
        return await self.begun_game(request), request.query_params.get("moves", "")

    async def begun_game(self, request: Request) -> GameSpec:
        """Return the game, which begins at the position `start` of the request if a visitor has set one up.

        The moves to a new position are found in a search, so that a visitor who asks for many waits alone.
        """
        start = request.query_params.get("start", "")
        if len(start) > MAX_START:
            raise UserError(f"expected a position of at most {MAX_START} characters, got {len(start)}")
        if start not in self._begun:
            game = await self._set_up(start, visitor_of(request))
            if len(self._begun) > MAX_BEGUN:
                oldest = next(text for text in self._begun if text)
                del self._begun[oldest]
            self._begun[start] = game
        return self._begun[start]

    async def _set_up(self, start: str, visitor: str) -> GameSpec:
        def search(report: Report) -> Event:
            return {"game": self._game.set_up(start, "the text")}

        found = await self._searches.result(search, visitor)
        return cast(GameSpec, found["game"])

    def _stream(self, request: Request, *searches: Callable[[GameSpec, str, Report], Event]) -> Response:
        """Return the response that streams the events of searches in the position of a request, one after the other.

        Only the last one has a last event, unless one before it fails.
        """

        async def events() -> AsyncIterator[Event]:
            try:
                game, moves = await self._asked(request)
            except UserError as error:
                yield {"done": True, "error": str(error)}
                return
            for search in searches:
                async for event in self._searches.stream(partial(search, game, moves), visitor_of(request)):
                    if search is searches[-1] or "error" in event or not event.get("done"):
                        yield event
                if "error" in event:
                    return

        return stream_of(events())

    def _offered(self) -> dict[str, object]:
        """Return the players to choose from, that of a new game, and the newest model of the run."""
        opponents = self._opponents
        strengths = opponents.strengths()
        return {
            "players": [
                {"id": key, "name": name, "strength": strengths.get(key)} for key, name in opponents.names().items()
            ],
            "opponent": opponents.usual(),
            "newest": opponents.newest_step(),
            "hasNetwork": opponents.has_network,
        }


class SharedAnswers:
    """Answers the requests of pages on which two people in two places play a game.

    The parameter `key` of a request names the shared game, and `token` the seat of whoever asks, if there is one.
    """

    def __init__(self, game: GameSpec, games: SharedGames, begun_game: BegunGame) -> None:
        self._game, self._games, self._begun_game = game, games, begun_game

    async def open(self, request: Request) -> Response:
        """Open a game, in which the visitor has the side `side`, with a clock, and return its key and the token."""
        side, clock = number_of(request, "side", most=1) or 0, request.query_params.get("clock", "")
        game = await self._begun_game(request)
        shared = await run_in_threadpool(self._games.open, game, side=side, clock=clock, visitor=visitor_of(request))
        return JSONResponse({"key": shared.key, "token": shared.token_of(side)})

    async def join(self, request: Request) -> Response:
        """Take the free seat, and return its token, null if there is none."""
        shared = self._asked(request)
        async with shared.lock:
            token = shared.join()
        shared.tell()
        return JSONResponse({"token": token})

    async def play(self, request: Request) -> Response:
        """Play `move` after `at` moves and rolls."""
        move, at = request.query_params.get("move", ""), number_of(request, "at") or 0
        return await self._change(request, lambda shared, token: shared.play(token, move, at))

    async def resign(self, request: Request) -> Response:
        """Resign."""
        return await self._change(request, lambda shared, token: shared.resign(token))

    async def offer(self, request: Request) -> Response:
        """Offer a new game with sides swapped, or accept it."""
        return await self._change(request, self._games.offer)

    async def follow(self, request: Request) -> Response:
        """Stream what the visitor sees of the game, each time when it has changed, and after PULSE_SECONDS."""
        token = token_of(request)

        async def events() -> AsyncIterator[Event]:
            try:
                shared = self._asked(request)
                with self._games.followed(shared, token, visitor_of(request)):
                    while not self._games.has_ended:
                        changed = shared.changed
                        async with shared.lock:
                            event = shared.describe(token)
                            seconds = min(PULSE_SECONDS, shared.seconds_left())
                        yield event
                        with suppress(TimeoutError):
                            async with asyncio.timeout(seconds):
                                await changed.wait()
            except UserError as error:
                yield {"done": True, "error": str(error)}

        return stream_of(events())

    def _asked(self, request: Request) -> SharedGame:
        return self._games.find(request.query_params.get("key", ""), self._game)

    async def _change(self, request: Request, change: Callable[[SharedGame, str], None]) -> Response:
        """Change a shared game in a thread, since its rules may take their time, and tell whoever follows it."""
        shared = self._asked(request)
        try:
            async with shared.lock:
                await run_in_threadpool(change, shared, token_of(request))
        finally:
            shared.tell()
        return JSONResponse({})


class RunAnswers:
    """Answers the requests of the dashboard of a run.

    Its methods are not coroutines: starlette calls them in a thread, so a slow volume does not block other requests.
    """

    def __init__(self, view: Dashboard, others: Callable[[], Sequence[str]]) -> None:
        """`others` returns the names of the other runs that this server shows."""
        self._view = view
        self._others = others

    def state(self, request: Request) -> Response:
        """Return the state of the run, and the names of the other runs."""
        return JSONResponse({**self._view.state(), "others": self._others()})

    def series(self, request: Request) -> Response:
        """Return the points of all curves from the number `since` on."""
        return JSONResponse(self._view.series(number_of(request, "since", most=1 << 53) or 0))

    def games(self, request: Request) -> Response:
        """Return the `newest` games."""
        newest = number_of(request, "newest", most=200)
        return JSONResponse(self._view.games(50 if newest is None else newest))


def number_of(request: Request, name: str, *, most: int = 99_999_999) -> int | None:
    """Return the number that a request gives as `name`, None without one. Raises UserError unless it is 0 to `most`."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (len(text) <= 16 and text.isascii() and text.isdigit() and int(text) <= most):
        raise UserError(f"expected {name} from 0 to {most}, got {shown(text)}")
    return int(text)


async def body_of(request: Request) -> bytes:
    """Return the body of a request. Raises UserError if it has more than MAX_FILE bytes."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MAX_FILE:
            raise UserError(f"expected a file of at most {MAX_FILE >> 20} MiB, got a larger one; cut it into parts")
    return bytes(content)


def token_of(request: Request) -> str:
    """Return the token of a seat that a request has, "" without one."""
    return request.query_params.get("token", "")


def stream_of(events: AsyncIterator[Event]) -> Response:
    """Return the response that streams these events."""

    async def lines() -> AsyncIterator[str]:
        async for event in events:
            yield f"data: {json.dumps(event)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


def visitor_of(request: Request) -> str:
    """Return the network address that a request comes from."""
    return request.client.host if request.client else ""


def _moves_by(player: int, positions: Sequence[Game]) -> int:
    """Return the number of `positions` in which `player` moves."""
    return sum(position.to_play == player for position in positions if not is_chance(position))
