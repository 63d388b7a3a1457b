"""The Go Text Protocol, version 2, for every game: a command in, a response out (`plyzero gtp`).

Player 0 is black and player 1 is white. Messages begin with the words of the protocol, where it prescribes some.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Final

import numpy as np

from plyzero.errors import UserError, plain, shown
from plyzero.kits.engines.analysis import COLOURS as PLAYERS
from plyzero.kits.engines.graphics import (
    COLOURS,
    info_line,
    parse_request,
    policy_graphics,
    value_graphics,
    watch_search,
)
from plyzero.kits.engines.points import LETTERS, Points, Words
from plyzero.kits.engines.spelled_game import PASS, SpelledGame
from plyzero.play.clock import NO_LIMIT, Clock
from plyzero.play.found_moves import is_hopeless
from plyzero.play.player import Forfeit, Player
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game, board_of
from plyzero.rules.user_errors import with_location
from plyzero.search.slots import SearchResult


class Engine:
    """A game that a controller plays by commands, and the player that chooses moves for it."""

    def __init__(
        self,
        game: GameSpec,
        player: Player,
        *,
        points: bool = False,
        most: int | None = None,
        resign_below: float = 0.0,
        rng: np.random.Generator | None = None,
        write: Callable[[str], None] = lambda text: None,
        has_input: Callable[[float], bool] = lambda seconds: True,
    ) -> None:
        """Begin a game.

        points:       name moves by the points of the board (plyzero.kits.engines.points), not by the names of the game.
        most:         largest number of simulations of a bot when the controller limits the time; None = no limit.
        resign_below: `genmove` answers `resign` when a bot expects to score less than this, from 0 to 1.
        rng:          rolls the dice.
        write:        is called with each line of an analysis.
        has_input:    waits up to a number of seconds for further input and returns whether there is some; it ends an
                      analysis.

        Raises UserError if the game has no points.
        """
        self.game, self.player = game, player
        board = board_of(game.start)
        self._points = Points(board) if board and board.cells else None
        self._spelling = self._need_points() if points else None
        self._rng = rng or np.random.default_rng()
        self._clock = player.clock if isinstance(player, Bot) else None
        self._most = NO_LIMIT if most is None else most
        self._resign_below = resign_below
        self._write = write
        self._has_input = has_input
        self._clear_board()

    def answer(self, line: str) -> str:
        """Return the response to a line; "" if the line has no command.

        It is `=ID text` or `?ID sentence`, with the id of the command if it has one, and ends with an empty line. A
        command that fails changes nothing.
        """
        words = words_of(line)
        if not words:
            return ""
        number = words.pop(0) if words[0].isdecimal() else ""
        name = words.pop(0) if words else ""
        try:
            if name in ANALYSES:
                self._analyze(number, words, in_10000ths=name == "lz-analyze")
                return "\n"  # the end of the response; the rest has been written
            text = self._run(name, words)
        except (Exception, SystemExit) as error:
            sentence = str(error) if isinstance(error, UserError) else with_location(error)
            return f"?{number} {plain(sentence)}\n\n"
        text = re.sub(r"\n(?=\n)", "\n ", text.rstrip("\n"))  # an empty line would end the response
        return f"={number}{' ' if text else ''}{text}\n\n"

    def _run(self, name: str, words: list[str]) -> str:
        """Return the text of a response. Raises UserError, or an error of the game, if the command fails."""
        command = COMMANDS.get(name)
        if command is None:
            raise UserError(f"unknown command {shown(name)}; list_commands lists the known ones")
        parameters = list(inspect.signature(command).parameters)
        expected = parameters[1:]  # the first is the engine
        if len(words) != len(expected):
            usage = " ".join([name, *map(str.upper, expected)])
            raise UserError(f"syntax error: expected {usage}, got {shown(' '.join([name, *words]))}")
        return command(self, *words) or ""

    @property
    def _position(self) -> Game:
        return self._moves.position

    def _clear_board(self) -> None:
        self._moves = SpelledGame(self.game, self._spelling, self._rng)
        self._movers = [self._mover(), self._mover()]

    def _mover(self) -> Player:
        """Return the player; with a clock, one that has its own clock for a new game."""
        if self._clock is None or not isinstance(self.player, Bot):
            return self.player
        return self.player.with_clock(replace(self._clock), simulations=self._most)

    def _time_settings(self, main_time: str, byo_yomi_time: str, byo_yomi_stones: str) -> None:
        main = _seconds(main_time)
        period = _seconds(byo_yomi_time)
        stones = _seconds(byo_yomi_stones)
        self._clock = None
        if stones and period:
            self._clock = Clock(main, per_move=period / stones)
        elif main and not stones and not period:
            self._clock = Clock(main, per_move=0.0)
        self._movers = [self._mover(), self._mover()]

    def _time_left(self, colour: str, time: str, stones: str) -> None:
        seconds = _seconds(time)
        number = _seconds(stones)
        player = PLAYERS.get(colour.lower())
        if player is None:
            raise UserError(f"syntax error: expected black or white, got {shown(colour)}")
        mover = self._movers[player]
        if isinstance(mover, Bot) and mover.clock:
            mover.clock.left = 0.0 if number else seconds
            mover.clock.per_move = seconds / number if number else 0.0

    def _check_size(self, columns: str, rows: str) -> None:
        if not (columns.isdecimal() and rows.isdecimal()):
            raise UserError(f"syntax error: expected a number, got {shown(f'{columns} {rows}')}")
        board = self._points
        if board and (int(columns), int(rows)) not in ((board.columns, board.rows), (board.size, board.size)):
            raise UserError(
                f"unacceptable size: {self.game.name} has {board.columns} columns and {board.rows} rows; "
                "another size is another game, for which the engine is started again"
            )
        self._clear_board()

    def _komi(self, komi: str) -> None:
        try:
            number = float(komi)
        except ValueError as error:
            raise UserError(f"syntax error: expected a number, got {shown(komi)}") from error
        own = self.game.parameter("komi")
        if own is not None and number != own:
            raise UserError(
                f"the komi is {own:g}; another komi is another game, for which the engine is started again, such as "
                f'plyzero gtp "go(komi=6.5)"'
            )

    def _play(self, colour: str, move: str) -> None:
        if colour.lower() == "roll":  # a controller enters a roll with this word instead of a colour
            self._moves.enter_roll(move)
        else:
            self._check_turn(colour)
            self._moves.enter(move)

    def _genmove(self, colour: str) -> str:
        words = self._choose(colour, resign_below=self._resign_below)
        if not words:
            return "resign"
        word = words[len(self._moves.state.begun)]
        self._moves.enter(word, planned=words)
        return word

    def _choose(self, colour: str, *, resign_below: float = 0.0) -> Words:
        """Return all words of the move that the player makes, also those entered before; () if it resigns."""
        self._check_turn(colour)
        state, position = self._moves.state, self._position
        if position.outcome() is not None:
            return (PASS,)
        if state.planned:
            return state.planned
        if state.begun:
            begun = " ".join(state.begun)
            raise UserError(f"a move has been begun with {begun}: go on with play, or take it back with undo")
        mover = self._movers[position.to_play]
        if resign_below and isinstance(mover, Bot):
            with mover.clock.running() if mover.clock else nullcontext():
                result = mover.search([position])[0]
            if is_hopeless(result, resign_below):
                return ()
            action = mover.select_action(result)
        else:
            (choice,) = mover.choices([position], [state.session.moves])
            if isinstance(choice, Forfeit):
                if choice.resigned:
                    return ()
                raise UserError(choice.reason)
            action = choice
        position.play(action)  # raises an error if it is not legal
        return self._moves.spelled(action)

    def _check_turn(self, colour: str) -> None:
        """Raise UserError unless it is the turn of that colour. After the end of a game it may be either's."""
        player = PLAYERS.get(colour.lower())
        if player is None:
            raise UserError(f"syntax error: expected black or white, got {shown(colour)}")
        if self._position.outcome() is None and player != self._position.to_play:
            raise UserError(f"illegal move: it is the turn of {COLOURS[self._position.to_play]}")

    def _showboard(self) -> str:
        state, position = self._moves.state, self._position
        lines = ["", str(position).rstrip("\n"), self._final_result() or f"{COLOURS[position.to_play]} to move"]
        setup, rolls = state.session.setup_and_rolls
        if setup:
            lines.append(setup)
        if rolls:
            lines.append(f"rolled {' '.join(rolls)}")
        if state.begun:
            lines.append(f"begun with {' '.join(state.begun)}")
        return "\n".join(lines)

    def _rolls(self) -> str:
        return " ".join(self._moves.state.session.last_rolls)

    def _final_score(self) -> str:
        outcome = self._position.outcome()
        if outcome is None:
            raise UserError("cannot score: the game is not over")
        if outcome.winner is None:
            return "0"
        letter = "B" if outcome.winner == 0 else "W"
        points = f"{outcome.score:g}" if outcome.score else ""
        return f"{letter}+{points}"

    def _final_result(self) -> str:
        outcome = self._position.outcome()
        if outcome is None:
            return ""
        return "draw" if outcome.winner is None else f"{COLOURS[outcome.winner]} wins"

    def _game_id(self) -> str:
        name = self.game.name.partition("(")[0].rpartition(":")[2]
        return re.sub(r"[^a-z]", "", name.lower()).capitalize() or "Game"

    def _board(self) -> str:
        """Return the pieces, one row per line, the highest first. A board that is not square is padded to a square."""
        points, board = self._need_points(), board_of(self._position)
        rows = [["."] * points.size for _ in range(points.size)]
        for cell in board.cells if board else ():
            column, row = points.place(cell)
            owner = cell.piece.partition(":")[0]
            rows[row][column] = {"0": "X", "1": "O"}.get(owner, ".")
        return "\n".join(" ".join(row) for row in reversed(rows))

    def _policy(self) -> str:
        bot = self._searcher().with_simulations(0)
        return policy_graphics(self._position, bot.search([self._position])[0], self._need_points())

    def _values(self) -> str:
        return value_graphics(self._position, self._searcher().search([self._position])[0], self._need_points())

    def _analyze(self, number: str, words: list[str], *, in_10000ths: bool) -> None:
        request = parse_request(words)
        bot = self._searcher()
        position = self._position
        if request.colour:
            self._check_turn(request.colour)

        def show(result: SearchResult) -> None:
            line = info_line(position, result, self._spelling, moves=request.moves, in_10000ths=in_10000ths)
            self._write(f"{line}\n")

        self._write(f"={number}\n")
        watch_search(bot, position, show, self._has_input, request.interval)

    def _searcher(self) -> Bot:
        """Return the player if it can search the position. Raises UserError if it cannot."""
        if self._position.outcome() is not None:
            raise UserError("the game is over; there is nothing to search")
        if not isinstance(self.player, Bot):
            raise UserError(f"{self.player.name} does not search; start plyzero gtp with a bot to analyze")
        return self.player

    def _need_points(self) -> Points:
        if self._points is None or self._points.size > len(LETTERS):
            has = "no board" if self._points is None else f"a board of size {self._points.size}"
            raise UserError(
                f"{self.game.name} has {has}, and there are points on boards up to size {len(LETTERS)} only"
            )
        return self._points


def _seconds(text: str) -> float:
    """Return a time or a number of stones. Raises UserError if it is none."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        raise UserError(f"syntax error: expected a number, got {shown(text)}")
    return float(text)


def words_of(line: str) -> list[str]:
    """Return the words of a line of GTP, without comments and control characters; a tab separates words."""
    text = "".join(char for char in line.replace("\t", " ") if char.isprintable())
    return text.partition("#")[0].split()


def is_quit(line: str) -> bool:
    """Return whether a line is the command `quit`."""
    words = words_of(line)
    return words[:1] == ["quit"] or (words[1:2] == ["quit"] and words[0].isdecimal())


ANALYSES: Final = ("lz-analyze", "kata-analyze")
"""The commands with a response that continues until further input arrives."""

COMMANDS: Final[dict[str, Callable[..., str | None]]] = {
    "protocol_version": lambda engine: "2",
    "name": lambda engine: "plyzero",
    "version": lambda engine: f"{version('plyzero')}, {engine.game.identity}, {engine.player.name}",
    "known_command": lambda engine, command: str(command in COMMANDS or command in ANALYSES).lower(),
    "list_commands": lambda engine: "\n".join(sorted([*COMMANDS, *ANALYSES])),
    "quit": lambda engine: None,
    "boardsize": lambda engine, size: engine._check_size(size, size),
    "rectangular_boardsize": lambda engine, columns, rows: engine._check_size(columns, rows),
    "clear_board": Engine._clear_board,
    "komi": Engine._komi,
    "play": Engine._play,
    "genmove": Engine._genmove,
    "reg_genmove": lambda engine, colour: engine._choose(colour)[len(engine._moves.state.begun)],
    "undo": lambda engine: engine._moves.undo(),
    "showboard": Engine._showboard,
    "final_score": Engine._final_score,
    "time_settings": Engine._time_settings,
    "time_left": Engine._time_left,
    "plyzero-rolls": Engine._rolls,
    "plyzero-policy": Engine._policy,
    "plyzero-values": Engine._values,
    "gogui-analyze_commands": lambda engine: (
        "gfx/Network policy/plyzero-policy\ngfx/Values after a search/plyzero-values\nstring/Rolls/plyzero-rolls"
    ),
    "gogui-rules_game_id": Engine._game_id,
    "gogui-rules_board": Engine._board,
    "gogui-rules_board_size": lambda engine: str(engine._need_points().size),
    "gogui-rules_legal_moves": lambda engine: " ".join(engine._moves.next_words()),
    "gogui-rules_side_to_move": lambda engine: COLOURS[engine._position.to_play],
    "gogui-rules_final_result": Engine._final_result,
}
"""The other commands: functions of the engine and the arguments of the command that return the response or None."""
