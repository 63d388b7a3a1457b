"""The Universal Chess Interface for every game: `plyzero uci`. Player 0 is white, and player 1 black.

```
uci, isready, ucinewgame, setoption name X value V
position startpos | fen F [moves ...]
go [nodes N | movetime MS | wtime MS btime MS [winc MS binc MS] [movestogo N] | infinite]
stop, quit
```

Moves are named by `Game.uci_move`, and rolls by their names. What is not understood is answered by `info string`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Final

import numpy as np

from plyzero.errors import UserError, plain, shown
from plyzero.kits.engines.programs.protocols import parse_uci, uci_name
from plyzero.lines import ArrivingLines
from plyzero.play.clock import NO_LIMIT, Clock
from plyzero.play.player import Forfeit, Player
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance
from plyzero.rules.game import Game
from plyzero.rules.user_errors import with_location
from plyzero.search.slots import SearchResult, SearchSlots, at_intervals
from plyzero.setting_types import MAX_SIMULATIONS

INFO_SECONDS: Final = 1.0
"""Time between two lines of a search that goes on, in seconds."""

INFINITE: Final = 10_000
"""Simulations of a search without a limit, or the bot's number for a move if that is larger."""

NO_MOVE: Final = "0000"
"""The answer where no move can be made."""

TIMES: Final = (("wtime", "winc"), ("btime", "binc"))
"""The names of the time that players 0 and 1 have left, and of what each move adds."""


class Engine:
    """A game that a controller plays by commands, and the player that chooses moves for it."""

    def __init__(
        self,
        game: GameSpec,
        player: Player,
        lines: ArrivingLines[str],
        write: Callable[[str], None],
        *,
        most: int | None = None,
    ) -> None:
        """Begin a game.

        lines: the commands; those that arrive during a search are read then.
        write: is called with each line of an answer.
        most:  largest number of simulations of a bot when the controller limits the time; None = no limit.
        """
        self.game, self.player = game, player
        self._lines, self._write = lines, write
        self._most = NO_LIMIT if most is None else most
        self._waiting: list[str] = []  # commands that have arrived during a search
        self._timed: Bot | None = None
        self._moves: list[int] = []
        self._position: Game | None = game.start

    def run(self) -> None:
        """Answer commands to the end of the input, or to `quit`."""
        while True:
            line = self._waiting.pop(0) if self._waiting else next(self._lines, "quit")
            words = line.split()
            if words[:1] == ["quit"]:
                return
            try:
                self._answer(words)
            except (Exception, SystemExit) as error:  # of the rules, too
                sentence = str(error) if isinstance(error, UserError | ValueError) else with_location(error)
                self._write(f"info string {plain(sentence)}")

    def _answer(self, words: Sequence[str]) -> None:
        match words:
            case ["uci"]:
                self._introduce()
            case ["isready"]:
                self._prepare()
                self._write("readyok")
            case ["ucinewgame"]:
                self.player.begin_game()
            case ["setoption", "name", *rest]:
                self._set_option(" ".join(rest))
            case ["position", *rest]:
                self._set_position(rest)
            case ["go", *rest]:
                self._write(f"bestmove {self._go(rest)}")
            case [] | ["stop" | "ponderhit" | "debug" | "register", *_]:
                pass
            case _:
                raise UserError(f"unknown command {shown(' '.join(words))}")

    def _introduce(self) -> None:
        self._write(f"id name plyzero {version('plyzero')}, {self.game.identity}, {self.player.name}")
        self._write("id author plyzero")
        if isinstance(self.player, Bot):
            number = self.player.simulations
            self._write(f"option name Simulations type spin default {number} min 0 max {MAX_SIMULATIONS}")
        variant = self.game.start.uci_variant
        if variant == "chess960":  # it has an option of its own
            self._write("option name UCI_Chess960 type check default true")
        elif variant:
            self._write(f"option name UCI_Variant type combo default {variant} var {variant}")
        self._write("uciok")

    def _prepare(self) -> None:
        """Load or compile the search, and measure how fast it is, before the time of a move counts."""
        if isinstance(self.player, Bot) and self._timed is None:
            self._timed = self.player.with_clock(Clock(per_move=1.0))

    def _set_option(self, text: str) -> None:
        name, _, value = text.partition(" value ")
        variant = self.game.start.uci_variant
        variants = {"uci_variant": variant, "uci_chess960": str(variant == "chess960").lower()}
        if name.lower() == "simulations" and isinstance(self.player, Bot) and value.isdecimal() and len(value) < 9:
            self.player = self.player.with_simulations(int(value))
        elif value == variants.get(name.lower()):
            pass
        elif name.lower() in ("simulations", *variants):
            raise UserError(f"{name} cannot be {shown(value)}")
        else:
            raise UserError(f"there is no option {shown(name)}")

    def _set_position(self, words: Sequence[str]) -> None:
        self._position = None  # until it is known
        at = words.index("moves") if "moves" in words else len(words)
        kind, text = "".join(words[:1]), " ".join(words[1:at])
        if kind not in ("startpos", "fen"):
            raise UserError(f"expected position startpos or position fen, got {shown(' '.join(words))}")
        position = self.game.start
        if kind == "fen" and (position.awaits_setup or text != position.fen()):
            position = self.game.starting_at(text).start
        moves: list[int] = []
        for word in words[at + 1 :]:
            moves.append(parse_uci(position, word))
            position = position.play_unchecked(moves[-1])
        self._position, self._moves = position, moves

    def _go(self, words: Sequence[str]) -> str:
        """Return the move that the player makes."""
        position = self._position
        if position is None or position.outcome() is not None or is_chance(position):
            why = "a roll is due" if position and position.outcome() is None else "there is no position to play"
            self._write(f"info string {why}")
            return NO_MOVE
        if not isinstance(self.player, Bot):
            (choice,) = self.player.choices([position], [self._moves])
            if isinstance(choice, Forfeit):
                self._write(f"info string {choice.reason}")
                return NO_MOVE
            return position.uci_move(choice)
        limits = _numbers_after(words)
        result, is_stopped = self._search(self._limited(self.player, limits, position), position)
        while "infinite" in words and not is_stopped:
            is_stopped = self._is_stopped(seconds=0.1)
        return position.uci_move(self.player.select_action(result))

    def _limited(self, bot: Bot, limits: Mapping[str, int], position: Game) -> Bot:
        """Return the bot with the limits of `go`."""
        left, more = (limits.get(name) for name in TIMES[position.to_play])
        if "nodes" in limits:
            return bot.with_clock(None, simulations=min(max(1, limits["nodes"]), MAX_SIMULATIONS))
        if "movetime" in limits:
            clock = Clock(per_move=limits["movetime"] / 1000)
        elif left is not None and "movestogo" in limits:
            clock = Clock(per_move=left / 1000 / max(2, limits["movestogo"]))
        elif left is not None:
            clock = Clock(main=left / 1000, increment=(more or 0) / 1000)
        elif "infinite" in limits:
            return bot.with_clock(None, simulations=max(INFINITE, bot.simulations))
        else:
            return bot
        self._prepare()
        assert self._timed
        assert self._timed.clock
        clock.rate = self._timed.clock.rate
        return bot.with_clock(clock, simulations=self._most)

    def _search(self, bot: Bot, position: Game) -> tuple[SearchResult, bool]:
        """Return the result of a search, which reports itself, and whether it was stopped."""
        began = time.monotonic()
        found: list[SearchResult] = []

        def report(slots: SearchSlots) -> None:
            self._write(info_line(position, slots.result_with_lines(0), time.monotonic() - began))

        report_now_and_then = at_intervals(INFO_SECONDS, report)

        def on_batch(slots: SearchSlots) -> None:
            report_now_and_then(slots)
            if slots.simulations() and self._is_stopped():
                found.append(slots.result_with_lines(0))
                raise _StoppedError

        is_stopped = False
        try:
            found.append(bot.search([position], on_batch=on_batch)[0])
        except _StoppedError:
            is_stopped = True
        self._write(info_line(position, found[0], time.monotonic() - began))
        return found[0], is_stopped

    def _is_stopped(self, seconds: float = 0.0) -> bool:
        """Return whether a search is to end, and answer what needs no end; the other commands wait."""
        while self._lines.wait(seconds):
            line = next(self._lines, None)
            if line is None:
                return seconds > 0  # the input has ended: a search with a limit goes on
            words = line.split()
            if words == ["isready"]:
                self._write("readyok")
            elif words == ["stop"]:
                return True
            else:
                self._waiting.append(line)
                if words == ["quit"]:
                    return True
        return False


class _StoppedError(Exception):
    """Raised during a search that is to end."""


def info_line(position: Game, result: SearchResult, seconds: float) -> str:
    """Return a result of a search as a line of UCI, from the point of view of the player to move.

    The centipawns of an expected score q, from -1 to 1, are 90 tan(1.5638 q), as of Leela Chess Zero.
    """
    best = int(np.flatnonzero(result.actions == result.best_action())[0])
    names: list[str] = []
    for move in result.principal_variations[best]:
        names.append(uci_name(position, move))
        position = position.play_unchecked(move)
    value = result.value if np.isnan(result.q[best]) else float(result.q[best])
    value = min(1.0, max(-1.0, value))
    if result.plies_to_end:
        score = f"mate {math.copysign(math.ceil(result.plies_to_end / 2), value):.0f}"
    else:
        score = f"cp {90 * math.tan(1.5637541897 * value):.0f}"
    draw = min(1 - abs(value), max(0.0, result.draw))
    win = round(1000 * (1 - draw + value) / 2)
    drawn = round(1000 * draw)
    rate = result.simulations / max(1e-3, seconds)
    return (
        f"info depth {len(names)} nodes {result.simulations} nps {rate:.0f} time {1000 * seconds:.0f} score {score} "
        f"wdl {win} {drawn} {1000 - win - drawn} pv {' '.join(names)}"
    )


def _numbers_after(words: Sequence[str]) -> dict[str, int]:
    """Return the number after each word of `go`, 0 for a word without one. Raises UserError for a wrong number."""
    found: dict[str, int] = {}
    for at, word in enumerate(words):
        if word.lstrip("-").isdecimal():
            continue
        after = words[at + 1] if at + 1 < len(words) else ""
        found[word] = max(0, int(after)) if after.lstrip("-").isdecimal() and len(after) < 13 else 0
    return found
