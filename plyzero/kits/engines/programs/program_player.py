"""Other programs as players, such as gtp:gnugo --mode gtp.

gtp:COMMAND     a program that speaks the Go Text Protocol
uci:COMMAND     a program that speaks the Universal Chess Interface
text:COMMAND    a program that reads and prints one move in a line

Words KEY=VALUE may stand before the program: `seconds`, `memory` and `nodes` (see `Settings`), `coordinates=points` of
GTP, and the options of a UCI program.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.errors import UserError, plain, shown
from plyzero.kits.engines.programs.program import Command, Program, ProgramError
from plyzero.kits.engines.programs.protocols import Gtp, Limits, Protocol, Resigned, Text, Uci
from plyzero.machine import usable_cores
from plyzero.play.clock import NO_LIMIT, Clock
from plyzero.play.player import Forfeit, Player
from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game

GRACE_SECONDS: Final = 2.0
"""Time for which a program is waited for after the end of its clock."""


def gtp_player(argument: str, game: GameSpec, rng: np.random.Generator, **limits: Any) -> ProgramPlayer:
    """Return the program of a command as a player by GTP."""
    return ProgramPlayer(f"gtp:{argument}", argument, Gtp, game, **limits)


def uci_player(argument: str, game: GameSpec, rng: np.random.Generator, **limits: Any) -> ProgramPlayer:
    """Return the program of a command as a player by UCI."""
    return ProgramPlayer(f"uci:{argument}", argument, Uci, game, **limits)


def text_player(argument: str, game: GameSpec, rng: np.random.Generator, **limits: Any) -> ProgramPlayer:
    """Return the program of a command as a player by lines of text."""
    return ProgramPlayer(f"text:{argument}", argument, Text, game, **limits)


class Settings(NamedTuple):
    """The limits of a program, which words KEY=VALUE before it change.

    seconds: for an answer; a program with a clock has the time of the clock instead.
    memory:  in GB.
    nodes:   for a move of a UCI program; 0 = as many as --simulations, or no limit.
    """

    seconds: float = 60.0
    memory: float = 4.0
    nodes: int = 0

    @classmethod
    def split(cls, words: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
        """Return these settings, and the other words. Raises UserError for a value that is no positive number."""
        values: dict[str, Any] = {}
        for key in cls._fields:
            if key in words:
                is_number = words[key].replace(".", "", key != "nodes").isdecimal() and len(words[key]) < 12
                if not is_number or float(words[key]) == 0:
                    raise UserError(f"expected {key}= with a positive number, got {shown(words[key])}")
                values[key] = cls._field_defaults[key].__class__(float(words[key]))
        return cls(**values), {key: value for key, value in words.items() if key not in cls._fields}


@dataclass(eq=False)
class _Playing:
    """A program in a game.

    moves:    those it knows, from the start on.
    position: after these.
    clock:    its clock in this game.
    has_game: whether it has begun one.
    is_busy:  whether somebody waits for it.
    """

    program: Program
    protocol: Protocol
    position: Game
    moves: list[int] = field(default_factory=list)
    clock: Clock | None = None
    has_game: bool = False
    is_busy: bool = False

    def knows_beginning_of(self, moves: Sequence[int]) -> bool:
        """Return whether its game can go on to the one with `moves`."""
        return self.has_game and self.moves == list(moves[: len(self.moves)])

    def begin_game(self, start: Game, clock: Clock | None) -> None:
        """Let the program begin a game, with all of its time."""
        self.protocol.new_game()
        self.position, self.moves, self.has_game = start, [], True
        self.clock = replace(clock) if clock else None

    def tell(self, move: int) -> None:
        """Report a move that was played."""
        self.protocol.tell(self.position, move)
        self.position = self.position.play_unchecked(move)
        self.moves.append(move)


class ProgramPlayer(Player):
    """A program as a player. Each game that it plays at the same time has a process of its own.

    A program that is slow, ends, plays an illegal move or answers nonsense loses the game, and is started again.
    """

    def __init__(
        self,
        name: str,
        command: str,
        protocol: type[Protocol],
        game: GameSpec,
        *,
        simulations: int | None = None,
        clock: Clock | None = None,
        **_: object,
    ) -> None:
        """Start the program once. Raises UserError if it cannot be started, or does not play the game.

        simulations: nodes for a move of a UCI program.
        clock:       its time.
        """
        self.name, self.game = name, game
        self.takes_limits = True
        self.games_at_once = 1 if clock else usable_cores()
        self._command = Command.parse(command)
        self._settings, self._words = Settings.split(self._command.settings)
        unknown = [] if protocol.keys is None else [key for key in self._words if key not in protocol.keys]
        if unknown:
            known = ", ".join(f"{key}=" for key in (*Settings._fields, *(protocol.keys or ())))
            raise UserError(f"expected one of {known} or the program, got {shown(unknown[0])}=")
        given = None if simulations == NO_LIMIT else simulations
        self._nodes = self._settings.nodes or given
        self._clock, self._protocol, self._directory = clock, protocol, os.getcwd()
        self._programs: list[_Playing] = []  # shared by copies of this player
        self._lock = threading.Lock()
        try:
            first = self._start()
            first.begin_game(game.start, clock)
            first.is_busy = False
        except ProgramError as error:
            raise UserError(str(error)) from error

    @property
    def identity(self) -> str:
        return f"{self.name} {self._command.digest()}"

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Raise UserError: a program follows a game from its start, so its moves are needed."""
        if not positions:
            return []
        raise UserError(f"{self.name} needs the moves of its games, not only positions")

    def choices(self, positions: Sequence[Game], moves: Sequence[Sequence[int]]) -> list[int | Forfeit]:
        games = list(zip(positions, moves, strict=True))
        found: list[int | Forfeit] = []
        together = self.games_at_once or 1
        for first in range(0, len(games), together):
            found += self._choose_together(games[first : first + together])
        return found

    def _choose_together(self, games: Sequence[tuple[Game, Sequence[int]]]) -> list[int | Forfeit]:
        """Ask a program for each game, and then wait for their answers."""
        asked: list[_Playing | Forfeit] = []
        for position, moves in games:
            try:
                asked.append(self._ask(position, moves))
            except ProgramError as error:
                asked.append(self._forfeit(error))
        return [
            each if isinstance(each, Forfeit) else self._answer(each, position)
            for each, (position, _) in zip(asked, games, strict=True)
        ]

    def _answer(self, playing: _Playing, position: Game) -> int | Forfeit:
        clock = playing.clock
        try:
            with clock.running() if clock else nullcontext():
                answer = playing.protocol.answer(position, self._limits(playing))
        except ProgramError as error:
            self._end(playing)
            return self._forfeit(error)
        except BaseException:  # such as of a visitor who has left: the program still thinks
            self._end(playing)
            raise
        playing.is_busy = False
        if isinstance(answer, Resigned):
            return Forfeit(f"{self.name} resigns", resigned=True)
        playing.moves.append(answer)
        playing.position = position.play_unchecked(answer)
        return answer

    def _ask(self, position: Game, moves: Sequence[int]) -> _Playing:
        """Return a program that nobody else waits for, which knows `moves` and is asked for the next one."""
        playing = self._taken(moves) or self._start()
        playing.program.on_wait = self.on_wait
        try:
            if not playing.knows_beginning_of(moves):
                playing.begin_game(self.game.start, self._clock)
            for move in moves[len(playing.moves) :]:
                playing.tell(move)
            playing.protocol.ask(position, self._limits(playing))
        except BaseException:
            self._end(playing)
            raise
        return playing

    def _taken(self, moves: Sequence[int]) -> _Playing | None:
        """Take a program that nobody waits for, of the game with these moves if there is one."""
        with self._lock:
            free = [each for each in self._programs if not each.is_busy]
            same = [each for each in free if each.knows_beginning_of(moves)]
            found = max(same, key=lambda each: len(each.moves)) if same else next(iter(free), None)
            if found:
                found.is_busy = True
            return found

    def _limits(self, playing: _Playing) -> Limits:
        clock = playing.clock
        seconds = clock.left + clock.per_move + GRACE_SECONDS if clock else self._settings.seconds
        return Limits(self._nodes, clock, seconds)

    def _start(self) -> _Playing:
        """Start the program. Raises ProgramError if it fails, and UserError if it does not play the game."""
        memory = int(self._settings.memory * 1e9)
        program = Program(self._command.words, directory=self._directory, memory=memory)
        protocol = self._protocol(program, self.game, self._words, self._settings.seconds)
        protocol.begin()
        playing = _Playing(program, protocol, self.game.start, is_busy=True)
        with self._lock:
            self._programs.append(playing)
        return playing

    def _forfeit(self, error: ProgramError) -> Forfeit:
        return Forfeit(plain(f"{self.name} forfeits: {error}", 400))

    def _end(self, playing: _Playing) -> None:
        """End a program; another one takes its place in the next game."""
        playing.program.end()
        with self._lock:
            self._programs.remove(playing)
