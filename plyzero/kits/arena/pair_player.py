"""Pairs of games, one opening with both colours, played by worker processes.

The workers are processes of `multiprocessing`, not commands that `plyzero.ops.child` starts: each takes a pair as an
object whenever it is idle, and answers with the result as another one.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from plyzero.errors import UserError, plain
from plyzero.kits.arena.ladder import RESULTS, Pair, PairResult
from plyzero.play.match import play_match, random_opening
from plyzero.play.player import Player
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.notation import action_names
from plyzero.rules.user_errors import with_location
from plyzero.threads import start_thread

if TYPE_CHECKING:
    from plyzero.kits.arena.entrants import Entrant


class PlayError(Exception):
    """A pair of games could not be played to the end. The message says which one and why."""


class PairPlayer:
    """Plays pairs of games in this process; a result is a function of the seed and the pair alone."""

    def __init__(
        self, game: GameSpec, entrants: Sequence[Entrant], *, models: Path, seed: int, opening_plies: int
    ) -> None:
        self._game = game
        self._models = models
        self._seed = seed
        self._opening_plies = opening_plies
        self._entrants = {entrant.identity: entrant for entrant in entrants}
        self._with_network = lru_cache(maxsize=64)(self._make)

    def play(self, pair: Pair) -> PairResult:
        """Play both games of `pair`."""
        began = time.monotonic()
        digest = hashlib.sha256(repr((self._seed, *pair)).encode()).digest()
        seeds = np.random.SeedSequence(list(digest)).spawn(4)
        opening = random_opening(self._game.start, self._opening_plies, np.random.default_rng(seeds[0]))
        a, b = (self._player(name, np.random.default_rng(seed)) for name, seed in zip(pair[:2], seeds[2:], strict=True))
        results: list[str] = []
        forfeits: list[str | None] = []
        leads: list[float] = []
        for first, second in ((a, b), (b, a)):
            result = play_match(
                first,
                second,
                self._game.start,
                games=1,
                rng=np.random.default_rng(seeds[1]),  # samples the dice, which both games share
                opening_plies=self._opening_plies,
                openings=[opening],
            )
            sign = 1 if first is a else -1
            results.append(RESULTS[1 - sign * (result.wins - result.losses)])
            forfeits.append(plain(result.forfeits[0], 300) if result.forfeits else None)
            leads += [sign * lead for lead in result.leads]
        names = action_names(self._game.start, tuple(opening))
        return PairResult(names, results, forfeits, round(time.monotonic() - began, 3), leads)

    def _player(self, identity: str, rng: np.random.Generator) -> Player:
        """Return a player in the state in which it begins; only networks are kept from one pair to the next."""
        if self._entrants[identity].network is None:
            player = self._make(identity, rng)
        else:
            player = self._with_network(identity, None)
        return player.with_rng(rng) if isinstance(player, Bot) else player

    def _make(self, identity: str, rng: np.random.Generator | None) -> Player:
        return self._entrants[identity].player(self._game, rng or np.random.default_rng(0), models=self._models)


class Processes:
    """Worker processes that play pairs of games. They end with this process, in whatever way it ends."""

    def __init__(self, number: int, game: GameSpec, entrants: Sequence[Entrant], **settings: Any) -> None:
        """Start `number` processes; `settings` are the keyword arguments of PairPlayer."""
        context = get_context("spawn")
        lean = [replace(entrant, network=entrant.network and b"") for entrant in entrants]  # it is in a file
        self._idle: list[Connection] = []
        self._processes = {}
        for _ in range(number):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, game.name, lean, settings), daemon=True)
            process.start()
            theirs.close()
            self._processes[ours] = process
            self._idle.append(ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
        for ours, process in self._processes.items():
            process.join()
            ours.close()

    def play(self, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, PairResult]]:
        """Yield `pairs` with their results, in the order in which they are finished.

        Raises UserError if a player cannot be used, and PlayError if a game cannot be played.
        """
        waiting = [*reversed(pairs)]
        playing: dict[Connection, Pair] = {}
        while waiting or playing:
            while waiting and self._idle:
                ours = self._idle.pop()
                playing[ours] = waiting.pop()
                try:
                    ours.send(playing[ours])
                except OSError as error:
                    raise self._ended(ours, playing[ours]) from error
            ready: list[Any] = connection.wait([*playing])
            for each in ready:
                pair = playing.pop(each)
                yield pair, self._answer(each, pair)
                self._idle.append(each)

    def _answer(self, ours: Connection, pair: Pair) -> PairResult:
        try:
            answer = ours.recv()
        except (EOFError, OSError) as error:
            raise self._ended(ours, pair) from error
        if isinstance(answer, PairResult):
            return answer
        if isinstance(answer, UserError):
            raise answer
        raise PlayError(f"{pair.a} against {pair.b} cannot be played: {answer}")

    def _ended(self, ours: Connection, pair: Pair) -> PlayError:
        self._processes[ours].join()
        code = self._processes[ours].exitcode
        return PlayError(
            f"the process that played {pair.a} against {pair.b} ended with exit code {code}; if that is -9, memory was "
            "probably short. The finished games are kept: the same command goes on"
        )


def _serve(theirs: Connection, game: str, entrants: Sequence[Entrant], settings: Mapping[str, Any]) -> None:
    """Answer each pair that arrives with its result, or with what went wrong, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the command too, which ends this process
    os.dup2(2, 1)  # what a player prints is not the output of the command
    parent = parent_process()
    if parent is not None:
        start_thread(_end_with, parent.sentinel, name="parent")
    play: Callable[[Pair], PairResult] | None = None
    while True:
        try:
            pair: Pair = theirs.recv()
        except EOFError:
            return
        answer: PairResult | Exception | str
        try:
            play = play or PairPlayer(load_game(game), entrants, **settings).play
            answer = play(pair)
        except UserError as error:
            answer = UserError(str(error))
        except (Exception, SystemExit) as error:
            answer = with_location(error)
        try:
            theirs.send(answer)
        except OSError:  # nobody waits for it any more
            return


def _end_with(sentinel: int) -> None:
    """End this process when its parent has ended."""
    connection.wait([sentinel])
    os._exit(1)
