"""Protocols in which programs are asked for moves: GTP, UCI, and lines of text.

```
begin       once, when the program has started
new_game    it is at the first position
tell        a move or a roll was played
ask         the player to move is asked for a move
answer      its move, which counts as played; Resigned
```
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from plyzero.errors import UserError, shown
from plyzero.kits.engines.graphics import COLOURS
from plyzero.kits.engines.pgn_games import parse_spelling
from plyzero.kits.engines.points import Points, Words, spell
from plyzero.kits.engines.programs.program import Program, ProgramError
from plyzero.play.clock import Clock
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import is_chance, move_name, parse_move
from plyzero.rules.game import Game, board_of
from plyzero.rules.notation import moves_to

PASS: Final = "pass"
"""The name of a move that some programs do not accept: they pass by themselves where they must."""

USUAL_MOVETIME: Final = 1.0
"""Seconds for a move of a UCI program for which nothing else limits its search."""


class Limits(NamedTuple):
    """The limits of a program's search.

    nodes:   number for a move, None = no limit.
    clock:   its clock in this game, None = it has none.
    seconds: time after which it is no longer waited for.
    """

    nodes: int | None
    clock: Clock | None
    seconds: float


class Resigned:
    """The answer of a program that gives the game up."""


class Protocol(ABC):
    """The side of plyzero of a protocol. A program that breaks it raises ProgramError.

    keys: of the words KEY=VALUE before the command that the protocol has for itself; None = any.
    """

    keys: ClassVar[Sequence[str] | None] = ()

    def __init__(self, program: Program, game: GameSpec, settings: Mapping[str, str], seconds: float) -> None:
        """Talk to a program that has just been started.

        seconds: time for an answer that is not a move.
        """
        self.program, self.game, self.settings, self.seconds = program, game, settings, seconds

    def _tell_start(self) -> None:
        """Report the moves from the initial position to `game.start`. Raises UserError if there are none."""
        if not self.game.text:
            return
        position = load_game(self.game.name).start
        try:
            moves = moves_to(position, self.game.text)
        except ValueError as error:
            raise UserError(
                f"it cannot begin at this position of {self.game.name}: expected names of moves as the position, or a "
                "board that moves reach by filling cells"
            ) from error
        for move in moves:
            self.tell(position, move)
            position = position.play_unchecked(move)

    @abstractmethod
    def begin(self) -> None:
        """Agree on the game. Raises UserError if the program does not play it."""

    @abstractmethod
    def new_game(self) -> None:
        """Begin a game at `game.start`."""

    @abstractmethod
    def tell(self, position: Game, move: int) -> None:
        """Report that an action, or a roll, was played in `position`."""

    @abstractmethod
    def ask(self, position: Game, limits: Limits) -> None:
        """Ask for a move in `position`, in which no roll is due."""

    @abstractmethod
    def answer(self, position: Game, limits: Limits) -> int | Resigned:
        """Return the answer to `ask`."""


def parse_answer(position: Game, word: str) -> int:
    """Return the action that a program names by a word. Raises ProgramError if it is not legal."""
    try:
        return position.parse_action(word)
    except Exception as error:  # of the rules, which may not expect such a word
        raise _illegal(word) from error


def _illegal(word: str) -> ProgramError:
    return ProgramError(f"it plays {shown(word)}, which is not a legal move")


# --- GTP ---

REQUIRED: Final = ("boardsize", "clear_board", "komi", "play", "genmove")
"""Commands of every program."""


class Gtp(Protocol):
    """The Go Text Protocol, version 2. Player 0 is black, and player 1 white."""

    keys = ("coordinates",)

    def begin(self) -> None:
        """Agree on the size of the board and the komi."""
        form = self.settings.get("coordinates", "names")
        if form not in ("names", "points"):
            raise UserError(f"expected coordinates=names or coordinates=points, got {shown(form)}")
        board = board_of(self.game.start)
        self._board = Points(board) if board and board.cells else None
        self._points = self._board if form == "points" else None
        if form == "points" and self._points is None:
            raise UserError(f"{self.game.name} has no board, so there are no points on it")
        text, is_known = self._response("list_commands")
        self._commands = set(text.split()) if is_known else set(REQUIRED)
        self._set_size()
        komi = self.game.parameter("komi")
        if komi is not None:
            self._agree(f"komi {komi}")

    def new_game(self) -> None:
        self.asked("clear_board")
        self._has_clock = False
        self._tell_start()

    def tell(self, position: Game, move: int) -> None:
        if is_chance(position):
            self.asked(f"play roll {position.roll_name(move)}")
            return
        words = spell(position, self._points)[move] if self._points else (position.action_name(move),)
        for word in words:
            text, is_accepted = self._response(f"play {COLOURS[position.to_play]} {word}")
            if not is_accepted and word.lower() != PASS:
                raise ProgramError(f"it refuses the legal move {word}: {shown(text)}")

    def ask(self, position: Game, limits: Limits) -> None:
        self._tell_time(position, limits.clock)
        self.program.send(f"genmove {COLOURS[position.to_play]}")

    def answer(self, position: Game, limits: Limits) -> int | Resigned:
        ways = spell(position, self._points) if self._points else {}
        names = {" ".join(words).lower(): action for action, words in ways.items()}
        begun: Words = ()
        while True:
            text, is_accepted = self._read(limits.seconds)
            if not is_accepted:
                raise ProgramError(f"it answers genmove with {shown(text)}")
            if text.lower() == "resign":
                return Resigned()
            begun = (*begun, text)
            said = " ".join(begun).lower()
            if not any(name.startswith(f"{said} ") for name in names):
                return self._action(position, names, said)
            self.program.send(f"genmove {COLOURS[position.to_play]}")  # a move of several points

    def _action(self, position: Game, names: Mapping[str, int], said: str) -> int:
        """Return the action of an answer: by its name, else by its point, as programs for this game print it."""
        if said in names:
            return names[said]
        try:
            return parse_answer(position, said)
        except ProgramError:
            points = spell(position, self._board) if self._board and not names else {}
            by_point = {" ".join(words).lower(): action for action, words in points.items()}
            if said not in by_point:
                raise
            return by_point[said]

    def _set_size(self) -> None:
        board = self._board
        if board is None or board.columns == 1 or board.rows == 1:
            return
        if board.columns == board.rows:
            self._agree(f"boardsize {board.columns}")
        elif "rectangular_boardsize" in self._commands:
            self._agree(f"rectangular_boardsize {board.columns} {board.rows}")

    def _agree(self, command: str) -> None:
        """Send a command about the game. Raises UserError if the program knows it, and refuses."""
        text, is_accepted = self._response(command)
        if not is_accepted and command.split()[0] in self._commands:
            raise UserError(f"it does not play {self.game.name}: it answers {command} with {shown(text)}")

    def _tell_time(self, position: Game, clock: Clock | None) -> None:
        if clock is None or "time_settings" not in self._commands:
            return
        if not self._has_clock:
            self._has_clock = True
            period = max(1, round(clock.per_move)) if clock.per_move else 0  # GTP counts whole seconds
            self.asked(f"time_settings {clock.main:.0f} {period} {1 if period else 0}")
        if clock.main and "time_left" in self._commands:
            self.asked(f"time_left {COLOURS[position.to_play]} {clock.left:.0f} 0")

    def asked(self, command: str) -> str:
        """Return the text of a response. Raises ProgramError if the command fails."""
        text, is_accepted = self._response(command)
        if not is_accepted:
            raise ProgramError(f"it answers {command} with {shown(text)}")
        return text

    def _response(self, command: str) -> tuple[str, bool]:
        self.program.send(command)
        return self._read(self.seconds, f"answer to {command.split()[0]}")

    def _read(self, seconds: float, waited_for: str = "move") -> tuple[str, bool]:
        """Return the text of the next response, and whether it is a success. Lines before it are ignored."""
        line = self.program.read(seconds, waited_for)
        while not re.match(r"[=?]\d*(\s|$)", line):
            line = self.program.read(seconds, waited_for)
        lines = [line]
        while lines[-1].strip():  # an empty line ends it
            lines.append(self.program.read(seconds, waited_for))
        first = re.sub(r"^[=?]\d*\s?", "", line)
        return "\n".join([first, *lines[1:]]).strip(), line.startswith("=")


# --- UCI ---


class Uci(Protocol):
    """The Universal Chess Interface. Player 0 is white, and player 1 black."""

    keys = None  # options of the program

    def begin(self) -> None:
        """Choose the variant of the game, and set the options that are given."""
        options: dict[str, str] = {}
        self.program.send("uci")
        while (line := self.program.read(self.seconds, "uciok")).strip() != "uciok":
            if found := re.match(r"option name (.+?) type (.*)", line):
                options[found[1].lower()] = found[2]
        variant = self.game.start.uci_variant
        if variant == "chess960" and "uci_chess960" in options:  # it has an option of its own
            self._set("UCI_Chess960", "true")
            variant = "chess"
        offered = options.get("uci_variant", "var chess")
        if variant and variant not in offered.split():
            raise UserError(f"it does not play {self.game.name}: it has no UCI_Variant {variant}")
        if variant and "uci_variant" in options:
            self._set("UCI_Variant", variant)
        for name, value in self.settings.items():
            if name.lower() not in options:
                raise UserError(f"it has no option {shown(name)}; it has {', '.join(options) or 'none'}")
            self._set(name, value)
        self._wait_until_ready()

    def new_game(self) -> None:
        self._moves: list[str] = []
        self.program.send("ucinewgame")
        self._wait_until_ready()
        fen = self.game.start.fen() if self.game.text else ""
        self._start = f"fen {fen}" if fen else "startpos"
        if not fen:
            self._tell_start()

    def tell(self, position: Game, move: int) -> None:
        fen = position.set_up(move).fen() if position.awaits_setup else ""
        if fen:
            self._start = f"fen {fen}"
        else:
            self._moves.append(uci_name(position, move))

    def ask(self, position: Game, limits: Limits) -> None:
        moves = " ".join(["moves", *self._moves]) if self._moves else ""
        self.program.send(f"position {self._start} {moves}".rstrip())
        self.program.send(f"go {self._limit(limits)}")

    def answer(self, position: Game, limits: Limits) -> int | Resigned:
        line = self.program.read(limits.seconds, "move")
        while line.split()[:1] != ["bestmove"]:
            line = self.program.read(limits.seconds, "move")
        word = "".join(line.split()[1:2])
        try:
            action = parse_uci(position, word)
        except Exception as error:  # of the rules, which may not expect such a word
            raise _illegal(word) from error
        self.tell(position, action)
        return action

    def _limit(self, limits: Limits) -> str:
        if limits.nodes is not None:
            return f"nodes {limits.nodes}"
        clock = limits.clock or Clock(per_move=USUAL_MOVETIME)
        if clock.per_move:
            return f"movetime {1000 * clock.per_move:.0f}"
        left, more = f"{1000 * clock.left:.0f}", f"{1000 * clock.increment:.0f}"
        return f"wtime {left} btime {left} winc {more} binc {more}"

    def _set(self, name: str, value: str) -> None:
        self.program.send(f"setoption name {name} value {value}")

    def _wait_until_ready(self) -> None:
        self.program.send("isready")
        while self.program.read(self.seconds, "readyok").strip() != "readyok":
            pass


def parse_uci(position: Game, word: str) -> int:
    """Return the legal action, or the roll, with a name in UCI. Raises ValueError if there is none."""
    return parse_move(position, word) if is_chance(position) else parse_spelling(position, word)


def uci_name(position: Game, move: int) -> str:
    """Return the name of an action, or of a roll, in UCI."""
    return move_name(position, move) if is_chance(position) else position.uci_move(move)


# --- text ---

NEW: Final = "new"
GO: Final = "go"
"""Lines that are sent besides moves: a new game begins; print your move."""


class Text(Protocol):
    """Lines of text: `new`, then every move that the program has not made itself, and `go` when it must move.

    A name of a move stands alone on its line. What a program prints in lines of several words is ignored.
    """

    def begin(self) -> None:
        """Nothing is agreed on: the program plays one game."""

    def new_game(self) -> None:
        self.program.send(NEW)
        self._tell_start()

    def tell(self, position: Game, move: int) -> None:
        self.program.send(move_name(position, move))

    def ask(self, position: Game, limits: Limits) -> None:
        self.program.forget_output()
        self.program.send(GO)

    def answer(self, position: Game, limits: Limits) -> int | Resigned:
        words: list[str] = []
        while len(words) != 1:
            words = self.program.read(limits.seconds, "move").split()
        return Resigned() if words[0].lower() == "resign" else parse_answer(position, words[0])
