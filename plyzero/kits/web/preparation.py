"""The preparation of the search of a server, and the child process that searches as plain Python until it is done."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from plyzero.errors import UserError
from plyzero.kits.web.searches import Event, Report, run_search
from plyzero.ops.child import PYTHON, Child
from plyzero.play.clock import Clock
from plyzero.play.player import Player
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import first_decision
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.user_errors import with_location
from plyzero.search.numba_kernel import is_compiled, is_plain_python
from plyzero.threads import Thread, start_thread

if TYPE_CHECKING:
    from plyzero.kits.web.opponents import Opponents

MOMENT: Final = 2.0
"""Time in which machine code that is on disk is loaded, in seconds. There is no child process before."""

SECONDS: Final = 0.7
"""Longest time for a move of the child process, in seconds."""

RATE: Final = 300.0
"""Simulations per second of the child process until they are measured, in its first search."""

SWITCH_SECONDS: Final = 0.0005
"""Longest time that the answer to a visitor waits for Python code that compiles, each time, in seconds."""

LOOK_SECONDS: Final = 0.1
"""Time between two looks whether the visitor has left, in seconds."""

COMMAND: Final = "from plyzero.kits.web.preparation import answer_requests; answer_requests()"


class Preparation:
    """The first search of a server, which compiles what searches need. It is repeated until it succeeds.

    is_ready: whether it has succeeded.
    """

    def __init__(self, opponents: Opponents) -> None:
        self.is_ready = False
        self._opponents = opponents
        self._has_rules = False
        self._waits_for = "preparing the search, which takes up to a minute, once per machine"
        self._thread: Thread | None = None
        self._plain: PlainSearch | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()

    def waits_for(self) -> str | None:
        """Return what the first search waits for, or why it has failed, as a clause; None once it has succeeded.

        The search is started in a thread if none runs. It does not keep the server from ending.
        """
        if self.is_ready:
            return None
        is_first = self._thread is None
        if self._thread is None or not self._thread.is_alive():
            self._thread = start_thread(self._attempt, name="preparation")
        if is_first:
            self._plan_plain_search()
        return self._waits_for

    @property
    def has_plain_search(self) -> bool:
        """Whether a child process searches for the opponents meanwhile."""
        plain = self._plain
        return plain is not None and plain.is_running()

    def at_once(self, game: GameSpec) -> GameSpec:
        """Return the game with rules that nobody waits for: as plain Python until they are compiled."""
        if self._has_rules or not isinstance(game.start, CompiledGame):
            return game
        return replace(game, start=game.start.as_plain_python())

    def search_meanwhile(self, report: Report, **asked: str) -> Event | None:
        """Return the result of a search by an opponent in the child process; None without one, or if it has ended.

        asked: `player`, `step`, `start` and `moves`. Raises what `report` raises, and UserError if the search fails.
        """
        plain = self._plain
        return plain.search(asked, report) if plain else None

    def end(self) -> None:
        """End the child process; none is started any more."""
        with self._lock:
            self._ended.set()
            plain, self._plain = self._plain, None
        if plain:
            plain.end()

    def _attempt(self) -> None:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            first_search(self._opponents, on_rules=self._note_rules)
        except (Exception, SystemExit) as error:
            self._waits_for = f"not ready: {error if isinstance(error, UserError) else with_location(error)}"
            return
        finally:
            sys.setswitchinterval(usual)
        self.is_ready = True
        self.end()

    def _note_rules(self) -> None:
        self._has_rules = True

    def _plan_plain_search(self) -> None:
        """Start the child process, after a moment if this one has only to load what is compiled."""
        if is_plain_python():
            return
        if is_compiled():
            start_thread(self._begin_plain_search, MOMENT, name="plain search")
        else:
            self._begin_plain_search(0.0)

    def _begin_plain_search(self, seconds: float) -> None:
        self._ended.wait(seconds)
        with self._lock, suppress(OSError):  # without another process, the opponents wait too
            if not self._ended.is_set():
                self._plain = PlainSearch(self._opponents)


def first_search(opponents: Opponents, on_rules: Callable[[], None]) -> None:
    """Search with the network and with the judge; before that, compile the rules, and call `on_rules`."""
    start = opponents.game.start
    if isinstance(start, CompiledGame):
        _ = start.rules
    on_rules()
    for bot in (opponents.network(), opponents.judge().bot):
        bot.with_simulations(1).search([first_decision(start)])


class PlainSearch:
    """A child process that searches for the opponents as plain Python, SECONDS for a move, one move at a time.

    It ends with this process, however that ends.
    """

    def __init__(self, opponents: Opponents) -> None:
        """Raises OSError if it cannot be started."""
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
        self._child = Child("plain search", [*PYTHON, "-c", COMMAND], environment=environment, answers=True)
        self._lock = threading.Lock()
        self._number = 0  # of the last request; the answers to those that were given up are skipped
        with suppress(OSError):  # it has ended already
            self._send(opponents.as_fields())

    def is_running(self) -> bool:
        """Whether it has not ended, as it does if it cannot find the game."""
        return self._child.exit_code() is None

    def search(self, asked: Mapping[str, str], report: Report) -> Event | None:
        """Return the result of a search; None if the process has ended. `report` is called while it is waited for.

        Raises what `report` raises, and UserError if the search fails.
        """
        while not self._lock.acquire(timeout=LOOK_SECONDS):
            report({})
        try:
            self._number += 1
            self._send({**asked, "number": self._number})
            event = self._answer(report)
        except (OSError, EOFError):
            return None
        finally:
            self._lock.release()
        if "error" in event:
            raise UserError(str(event["error"]))
        return event

    def end(self) -> None:
        """End it at once."""
        self._child.kill()
        self._child.wait(1.0)

    def _send(self, message: Mapping[str, object]) -> None:
        self._child.input.send_bytes(json.dumps(message).encode())

    def _answer(self, report: Report) -> Event:
        while True:
            while not self._child.input.poll(LOOK_SECONDS):
                report({})
            number, event = json.loads(self._child.input.recv_bytes())
            if number == self._number:
                found: Event = event
                return found


def answer_requests() -> None:
    """Be the child process: search for the opponents that the first message describes, until the input ends."""
    from plyzero.kits.web.opponents import Opponents
    from plyzero.kits.web.play_api import search_position, unfinished_position

    connection = Connection(os.dup(0))
    sys.stdin = io.StringIO()  # the input is not for the rules
    os.dup2(2, 1)  # nor is the output of the server
    messages: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def read() -> None:
        try:
            while True:
                messages.put(json.loads(connection.recv_bytes()))
        except (EOFError, OSError):
            os._exit(0)  # also in the middle of a search

    start_thread(read, name="requests")
    try:
        opponents = Opponents.of_fields(messages.get())
    except (Exception, SystemExit):  # the server says what is wrong, if this is not known from this process alone
        os._exit(1)
    bot_of = lru_cache(lambda name, step: _hurried(opponents.bot(name, step)))
    with suppress(Exception, SystemExit):
        bot_of(opponents.usual(), opponents.newest_name())
    while True:
        asked = messages.get()

        def search(report: Report, asked: Mapping[str, Any] = asked) -> Event:
            position = unfinished_position(opponents.game.set_up(asked["start"], "the text"), asked["moves"])
            player = bot_of(asked["player"], asked["step"] or opponents.newest_name())
            return search_position(player, position)(report)

        events: list[Event] = []
        run_search(search, events.append)
        connection.send_bytes(json.dumps([asked["number"], events[-1]]).encode())


def _hurried(player: Player) -> Player:
    """Return a bot with a clock of SECONDS for a move."""
    if not isinstance(player, Bot) or not player.simulations:
        return player
    return player.with_clock(Clock(per_move=SECONDS, rate=[RATE]), simulations=player.simulations)
