"""Games between two people in two places, which the server keeps: their moves, rolls, clocks and seats."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from plyzero.errors import UserError
from plyzero.play.clock import Clock
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import move_name, roll_dice
from plyzero.rules.game import Game
from plyzero.rules.notation import play_named

MAX_GAMES: Final = 500
MAX_GAMES_OF_VISITOR: Final = 20
"""Largest number of shared games that a server keeps, and of those that one visitor has opened."""

MAX_IDLE_SECONDS: Final = 3 * 86400.0
"""A shared game that nobody has open is forgotten when its last use is so long ago, in seconds."""

MAX_MOVES: Final = 2000
"""Largest number of moves and rolls of a shared game."""

MAX_FOLLOWERS: Final = 30
MAX_FOLLOWED: Final = 40
"""Largest number of open event streams of one shared game, and of one visitor."""

UNKNOWN: Final = (
    "there is no shared game with this link on the server: it is too old, or the server was started anew; "
    "begin another one with Play with a friend"
)

Now = Callable[[], float]
"""Returns the time in seconds; only differences of it are used."""


class Clocks:
    """The clocks of both players: that of the player to move runs, from the first move of the game on."""

    def __init__(self, text: str, now: Now) -> None:
        """`text`: as of `--clock`. Raises UserError if it is no clock."""
        self._clocks = Clock.parse(text), Clock.parse(text)
        self._now = now
        self._since = 0.0
        self.runs: int | None = None

    def left(self, side: int) -> float:
        """Return the time that a player has left, in seconds, at least 0."""
        spent = self._now() - self._since if side == self.runs else 0.0
        return max(0.0, self._clocks[side].left - spent)

    def stop(self) -> None:
        """Let no clock run."""
        if self.runs is not None:
            self._clocks[self.runs].left = self.left(self.runs)
        self.runs = None

    def turn_to(self, side: int) -> None:
        """Let the clock of `side` run, the player to move. Another player, whose turn has ended, gets the increment."""
        before = self.runs
        self.stop()
        if before is not None and before != side:
            self._clocks[before].left += self._clocks[before].increment
        self.runs, self._since = side, self._now()


class SharedGame:
    """A game between two people, each in a browser, and perhaps some who watch.

    A seat belongs to whoever knows its token. All methods but `tell` are called with `lock` held, so that they may be
    called in a thread.

    key:     names the game in its link; it cannot be guessed. next: that of the game that follows it, or "".
    visitor: the network address from which it was opened.
    changed: is set when there is something new, and then replaced.
    """

    def __init__(self, game: GameSpec, *, side: int, clock: str, visitor: str = "", now: Now = time.monotonic) -> None:
        """`side` is that of whoever opens the game. `clock`: as of `--clock`, "" = none.

        Raises UserError if it is no clock, or if the game is over at its beginning.
        """
        self.key, self.game, self.clock, self.visitor = secrets.token_urlsafe(16), game, clock, visitor
        self.lock, self.changed = asyncio.Lock(), asyncio.Event()
        self.followers = [0, 0, 0]  # of each side, and of those who watch
        self.last_use = now()
        self.next = ""
        self._now = now
        self._clocks = Clocks(clock, now) if clock else None
        self._tokens: list[str | None] = [None, None]
        self._tokens[side] = secrets.token_urlsafe(16)
        self._moves: list[str] = []
        self._resigned: int | None = None
        self._time_over = False
        self._offered_by: int | None = None
        self._rng = np.random.default_rng()
        self._set(*_rolled(game.start, self._rng))
        if self.is_over:
            raise UserError("the game is over in this position; there is nothing to play")

    @property
    def is_over(self) -> bool:
        """Whether the game has ended: by its rules, by resignation, or because a clock has been seen to run out."""
        return self._resigned is not None or self._outcome is not None

    def token_of(self, side: int) -> str | None:
        """Return the token of a seat, None while it is free."""
        return self._tokens[side]

    def join(self) -> str | None:
        """Take the free seat and return its token; None if both are taken."""
        if None not in self._tokens:
            return None
        token = secrets.token_urlsafe(16)
        self._tokens[self._tokens.index(None)] = token
        return token

    def side_of(self, token: str) -> int | None:
        """Return the side of whoever has this token, None for those who watch."""
        for side, own in enumerate(self._tokens):
            if own is not None and secrets.compare_digest(own.encode(), token.encode()):
                return side
        return None

    def play(self, token: str, move: str, at: int) -> None:
        """Play a move, whose name is `move`, after `at` moves and rolls, and roll where chance moves then.

        Raises UserError if it is not legal, or not the turn of whoever has the token.
        """
        side = self._player(token)
        self._look_at_clocks()
        if None in self._tokens:
            raise UserError("the other player has not opened the link yet")
        if self.is_over:
            raise UserError("the game is over")
        if side != int(self._position.to_play) or at != len(self._moves):
            raise UserError("it is not your move")
        if len(self._moves) >= MAX_MOVES:
            raise UserError(
                f"a game in two places has at most {MAX_MOVES} moves and rolls; resign, or agree on a new one"
            )
        try:
            positions, actions = play_named(self._position, [move])
        except ValueError as error:
            raise UserError(str(error).removeprefix("move 1: ")) from error
        name = self._position.action_name(actions[0])
        following, rolls = _rolled(positions[-1], self._rng)
        self._set(following, [name, *rolls])
        if self._clocks and self.is_over:
            self._clocks.stop()
        elif self._clocks:
            self._clocks.turn_to(int(following.to_play))

    def resign(self, token: str) -> None:
        """End the game as lost. Raises UserError if it is over, or for those who watch."""
        side = self._player(token)
        self._look_at_clocks()
        if self.is_over:
            raise UserError("the game is over")
        self._resigned = side
        if self._clocks:
            self._clocks.stop()
        self.last_use = self._now()

    def offer(self, token: str) -> bool:
        """Offer a new game with sides swapped; return whether the other player has offered it too.

        Raises UserError before the end of the game, or for those who watch.
        """
        side = self._player(token)
        self._look_at_clocks()
        if not self.is_over:
            raise UserError("a new game can be offered when this one is over")
        is_agreed = self._offered_by == 1 - side
        self._offered_by = side if self._offered_by is None else self._offered_by
        self.last_use = self._now()
        return is_agreed

    def swapped(self) -> SharedGame:
        """Return a new game with the same players on the other sides, each with the same token."""
        found = SharedGame(self.game, side=0, clock=self.clock, visitor=self.visitor, now=self._now)
        found._tokens = self._tokens[::-1]
        return found

    def describe(self, token: str) -> dict[str, object]:
        """Return what whoever has this token sees, as JSON.

        key:       of the game.
        you:       the side, 0 or 1; null for those who watch.
        begun:     whether both players have come.
        here:      for both sides, whether the game is open in a browser of that player.
        start:     the text of the first position, "" = the initial one.
        moves:     the names of all moves and rolls.
        over:      whether the game has ended.
        resigned:  the side that has resigned or run out of time, or null.
        timeOver:  whether it has run out of time.
        clock:     as of `--clock`, "" = none.
        left:      the time that both sides have left, in seconds; null without a clock.
        runs:      the side whose clock runs, or null.
        offeredBy: the side that offers a new game, or null.
        next:      the key of the new game, or null.
        """
        self._look_at_clocks()
        clocks = self._clocks
        return {
            "key": self.key,
            "you": self.side_of(token),
            "begun": None not in self._tokens,
            "here": [count > 0 for count in self.followers[:2]],
            "start": self.game.text,
            "moves": self._moves,
            "over": self.is_over,
            "resigned": self._resigned,
            "timeOver": self._time_over,
            "clock": self.clock,
            "left": [round(clocks.left(side), 3) for side in range(2)] if clocks else None,
            "runs": clocks.runs if clocks else None,
            "offeredBy": self._offered_by,
            "next": self.next or None,
        }

    def seconds_left(self) -> float:
        """Return the time until a clock runs out; infinite if none runs."""
        clocks = self._clocks
        return clocks.left(clocks.runs) if clocks and clocks.runs is not None else float("inf")

    def tell(self) -> None:
        """Wake whoever waits for `changed`."""
        self.changed.set()
        self.changed = asyncio.Event()

    def _look_at_clocks(self) -> None:
        """End the game if a clock has run out."""
        if self._clocks and self.seconds_left() <= 0:
            self._resigned, self._time_over = self._clocks.runs, True
            self._clocks.stop()

    def _player(self, token: str) -> int:
        side = self.side_of(token)
        if side is None:
            raise UserError("you watch this game; only its two players can do this")
        return side

    def _set(self, position: Game, names: list[str]) -> None:
        self._position, self._outcome = position, position.outcome()
        self._moves = [*self._moves, *names]
        self.last_use = self._now()


class SharedGames:
    """The shared games of a server, in memory only. Safe for several threads."""

    def __init__(self, now: Now = time.monotonic) -> None:
        self._now = now
        self._games: dict[str, SharedGame] = {}
        self._followed: dict[str, int] = {}  # visitor -> number of its event streams
        self._lock = threading.Lock()
        self.has_ended = False  # whether event streams are to end

    def open(self, game: GameSpec, *, side: int, clock: str, visitor: str = "") -> SharedGame:
        """Return a new game that is waiting for its second player.

        The oldest one that nobody has open makes room. Raises UserError if there is none, and as SharedGame does.
        """
        return self._keep(SharedGame(game, side=side, clock=clock, visitor=visitor, now=self._now))

    def find(self, key: str, game: GameSpec) -> SharedGame:
        """Return the shared game of these rules. Raises UserError if there is none."""
        with self._lock:
            self._forget_old()
            found = self._games.get(key)
        if found is None or found.game.identity != game.identity:
            raise UserError(UNKNOWN)
        return found

    def offer(self, shared: SharedGame, token: str) -> None:
        """Offer a new game with sides swapped, or begin it if both players have offered it.

        Raises UserError as SharedGame does.
        """
        if shared.offer(token) and not shared.next:
            shared.next = self._keep(shared.swapped()).key

    @contextmanager
    def followed(self, shared: SharedGame, token: str, visitor: str = "") -> Iterator[None]:
        """Count an event stream of a shared game while it is open. Raises UserError if there are too many."""
        if sum(shared.followers) >= MAX_FOLLOWERS or self._followed.get(visitor, 0) >= MAX_FOLLOWED:
            raise UserError("this game, or your address, has too many open pages already; close one of them")
        side = shared.side_of(token)
        place = 2 if side is None else side
        self._followed[visitor] = self._followed.get(visitor, 0) + 1
        shared.followers[place] += 1
        shared.tell()
        try:
            yield
        finally:
            shared.followers[place] -= 1
            self._followed[visitor] -= 1
            if not self._followed[visitor]:
                del self._followed[visitor]
            shared.last_use = self._now()
            shared.tell()

    def end(self) -> None:
        """Let all event streams end."""
        self.has_ended = True
        for each in [*self._games.values()]:
            each.tell()

    def _keep(self, shared: SharedGame) -> SharedGame:
        with self._lock:
            self._forget_old()
            of_visitor = [each for each in self._games.values() if each.visitor == shared.visitor]
            if len(of_visitor) >= MAX_GAMES_OF_VISITOR:
                self._forget_idle(of_visitor)
            if len(self._games) >= MAX_GAMES:
                self._forget_idle([*self._games.values()])
            self._games[shared.key] = shared
        return shared

    def _forget_idle(self, games: list[SharedGame]) -> None:
        """Forget the one that was not used for longest, of those that nobody has open."""
        idle = [each for each in games if not any(each.followers)]
        if not idle:
            raise UserError(f"{len(games)} games in two places are being played already; try again later")
        del self._games[min(idle, key=lambda each: each.last_use).key]

    def _forget_old(self) -> None:
        for each in list(self._games.values()):
            if not any(each.followers) and self._now() - each.last_use > MAX_IDLE_SECONDS:
                del self._games[each.key]


def _rolled(position: Game, rng: np.random.Generator) -> tuple[Game, list[str]]:
    """Return the position after the rolls that chance makes in `position`, and their names."""
    names = []
    for roll in roll_dice(position, rng)[1]:
        names.append(move_name(position, roll))
        position = position.play_unchecked(roll)
    return position, names
