"""PGN files, the games of chess programs: the moves and the result of each game as fields of recorded games.

Portable Game Notation, 1994. Moves are the names that UCI programs use, such as e2e4, or those of the game.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from plyzero.errors import UserError, plain, shown
from plyzero.lines import MAX_LINE
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, move_name, parse_move
from plyzero.rules.game import Game, outcome_code
from plyzero.run.json_games import WINNERS, FoundGame, named_players

RESULTS: Final = {"1-0": "first", "0-1": "second", "1/2-1/2": "draw", "1/2": "draw", "*": None}
"""Result in PGN -> the field `winner`. White is player 0."""

TAG: Final = re.compile(r'\[\s*([A-Za-z]\w*)\s*"((?:\\.|[^"\\])*)"\s*\]|\[\s*([A-Za-z]\w*)\s*"(.*)"\s*\](?=\s*$)')
"""Pattern of a tag. Some programs do not escape the quotation marks in its value."""

TAG_LINE: Final = re.compile(r'\s*\[\s*([A-Za-z]\w*)\s*"')
"""Pattern of the beginning of a line with a tag."""

TOKEN: Final = re.compile(
    r"(?P<result>(?:1-0|0-1|1/2-1/2|1/2|\*)(?![^\s(){};]))"
    r"|(?P<skipped>\s+|\$\d*|\d+\s*\.+|\.+|[!?]+(?=[\s(){};]|$))"
    r"|(?P<move>[^\s(){};\[\]$]+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
"""Pattern of what stands between moves and comments."""

BETWEEN_SQUARES: Final = re.compile(r"(?<=\d)[-x:](?=[a-z])")
"""Pattern of a sign between two squares, such as the hyphen of a2-a3."""

MAX_TITLE: Final = 80
"""Longest title of a game, in characters."""

RESIGNED: Final = re.compile(r"(?i)normal|.*\bresign.*|\?|")
"""Pattern of the tag Termination of a game that a player has resigned, if it is not over by the rules."""


def pgn_games(lines: Iterable[bytes], first: int = 1, *, game: GameSpec) -> Iterator[FoundGame]:
    """Yield the games of a PGN file, whose first line has the number `first`."""
    for each in _Reader().read(lines, first):
        yield FoundGame(each.line, partial(_fields, each, game), title=_title(each.tags))


def _title(tags: Mapping[str, str]) -> str:
    """Return the players, the result and the year in the tags of a game, as far as they are known."""
    white, black, result, date = (tags.get(name, "").strip("?.") for name in ("White", "Black", "Result", "Date"))
    players = f"{white or '?'} – {black or '?'}" if white or black else ""
    parts = [players, result.replace("*", ""), date[:4].strip("?.")]
    return plain(", ".join(filter(None, parts)), MAX_TITLE)


def parse_spelling(position: Game, text: str) -> int:
    """Return the legal action that a PGN file calls `text`, by its name, its name in UCI, or as the game parses it.

    Case and a sign between two squares do not matter where only one action is meant. Raises ValueError if none is.
    """
    undecorated = text.rstrip("+#!?")
    actions = [int(action) for action in position.legal_actions()]
    namings = (position.action_name, position.uci_move)
    for wanted in dict.fromkeys((text, undecorated)):
        for name_of in namings:
            for action in actions:
                if name_of(action) == wanted:
                    return action
    folded = _folded(undecorated)
    meant = {action for name_of in namings for action in actions if _folded(name_of(action)) == folded}
    return meant.pop() if len(meant) == 1 else position.parse_action(undecorated)


def _folded(name: str) -> str:
    return BETWEEN_SQUARES.sub("", name.lower())


@dataclass
class _PgnGame:
    """A game as it is read.

    line:     the number of its first line.
    is_begun: whether the moves have begun, so that a tag belongs to the next game.
    moves:    the number of the line and the text of each move, without variations.
    result:   which ends the moves; "" if it is missing.
    fault:    why it cannot be used, as a clause.
    size:     its characters so far.
    """

    line: int
    tags: dict[str, str] = field(default_factory=dict)
    is_begun: bool = False
    moves: list[tuple[int, str]] = field(default_factory=list)
    result: str = ""
    fault: str = ""
    size: int = 0

    def fail(self, fault: str) -> None:
        """Note the first fault, and forget the moves."""
        self.fault = self.fault or fault
        self.moves.clear()


class _Reader:
    """A reader of a PGN file. It keeps one game at a time, and counts the parentheses of variations."""

    def __init__(self) -> None:
        self._game: _PgnGame | None = None
        self._comment_line = 0  # where the comment begins that is open; 0 = none is
        self._depth = 0  # the number of parentheses of variations that are open
        self._variation_line = 0  # where the outermost of them is

    def read(self, lines: Iterable[bytes], first: int) -> Iterator[_PgnGame]:
        """Yield each game as soon as its result or the next game comes."""
        for number, line in enumerate(lines, first):
            text = _decoded(line)
            if self._is_of_next(text):
                yield from self._finish(f"before line {number}")
            yield from self._read_line(text, number)
            if len(line) > MAX_LINE:  # and the rest of it is missing
                self._current(number).fault = f"line {number} is longer than {MAX_LINE} bytes"
                yield from self._finish("")
        yield from self._finish("at the end of the file")

    def _is_of_next(self, text: str) -> bool:
        """Return whether a line is the first of the next game: a tag after moves, or the tag Event once more."""
        tag = TAG_LINE.match(text)
        if tag is None:
            return False
        if self._comment_line:
            return tag[1] == "Event"
        game = self._game
        return game is not None and (game.is_begun or (tag[1] == "Event" and "Event" in game.tags))

    def _finish(self, where: str) -> Iterator[_PgnGame]:
        if self._comment_line:
            fault = f"the comment that begins with {{ in line {self._comment_line} is not closed {where}"
            self._current(self._comment_line).fail(fault)
        elif self._depth and self._game is not None:
            self._game.fail(f"the variation that begins with ( in line {self._variation_line} is not closed {where}")
        if self._game is not None:
            yield self._game
        self._game = None
        self._comment_line = 0
        self._depth = 0

    def _read_line(self, text: str, number: int) -> Iterator[_PgnGame]:
        if text.startswith("%") and not self._comment_line:
            return
        at = 0
        while at < len(text):
            begin = at
            if self._comment_line:
                at = text.find("}", begin) + 1 or len(text)
                self._comment_line = 0 if text[at - 1] == "}" else self._comment_line
            elif text[begin] == ";":
                return
            elif text[begin] == "{":
                self._comment_line = number
                at += 1
            elif text[begin] == "[":
                at = self._read_tag(text, begin, number)
            else:
                at = self._read_token(text, begin, number)
            game = self._game
            if game is not None:
                game.size += at - begin
                if game.size > MAX_LINE:
                    game.fail(f"longer than {MAX_LINE} bytes")
                if game.result:
                    yield from self._finish("")

    def _current(self, number: int) -> _PgnGame:
        """Return the game that is being read; a new one if there is none."""
        if self._game is None:
            self._game = _PgnGame(number)
        return self._game

    def _read_tag(self, text: str, at: int, number: int) -> int:
        """Read a tag, and return where it ends."""
        game = self._current(number)
        found = TAG.match(text, at)
        if found is None:
            game.fail(f'expected a tag such as [White "Ann"] in line {number}, got {shown(text[at : at + 40].strip())}')
            return len(text)
        name, value = found[1] or found[3], found[2] if found[1] else found[4]
        game.tags.setdefault(name, re.sub(r"\\(.)", r"\1", value))
        return found.end()

    def _read_token(self, text: str, at: int, number: int) -> int:
        """Read a move, a result, or what stands between them, and return where it ends."""
        found = TOKEN.match(text, at)
        assert found is not None
        token = found[0]
        if found["skipped"]:
            return found.end()
        if found["result"]:
            if self._game is not None and not self._depth:
                self._game.result = token
            return found.end()
        game = self._current(number)
        game.is_begun = True
        if token == "(":
            self._variation_line = self._variation_line if self._depth else number
            self._depth += 1
        elif token == ")" and self._depth:
            self._depth -= 1
        elif found["sign"]:
            game.fail(f"expected a move in line {number}, got {shown(token)}")
        elif not self._depth and not game.fault:
            game.moves.append((number, token))
        return found.end()


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _fields(found: _PgnGame, game: GameSpec) -> dict[str, object]:
    """Return the fields of a game. Raises ValueError with the reason if it is not one of `game`."""
    if found.fault:
        raise ValueError(found.fault)
    _check_variant(found.tags.get("Variant", ""), game)
    begun = _begun(found.tags.get("FEN", ""), game)
    position = begun.start
    moves: list[str] = []
    for number, (line, text) in enumerate(found.moves, 1):
        where = f"move {number} in line {line}, {shown(text)}"
        if position.outcome() is not None:
            raise ValueError(f"{where}: the game is already over")
        try:
            action = parse_move(position, text) if is_chance(position) else parse_spelling(position, text)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        moves.append(move_name(position, action))
        position = position.play_unchecked(action)
    return {
        **({"start": begun.text} if begun.text else {}),
        **named_players(found.tags.get("White", ""), found.tags.get("Black", "")),
        "moves": moves,
        **_result(found, position),
    }


def _check_variant(variant: str, game: GameSpec) -> None:
    """Raise ValueError if the tag Variant names another game."""
    expected = game.start.uci_variant
    usual = ("", "standard", "normal", "fromposition")
    found, known = (re.sub(r"[\W_]", "", each.lower()) for each in (variant, expected or ""))
    if known and found not in (known, *usual):
        got = f'got one with the tag Variant "{plain(variant, 40)}"'
        raise ValueError(f"expected a game of {game.name}, {got}; choose a file of this game, or the game of the file")


def _begun(fen: str, game: GameSpec) -> GameSpec:
    """Return the game that begins at the position of the tag FEN. Raises ValueError if it cannot begin there."""
    is_initial = not game.start.awaits_setup and fen.split()[:4] == game.start.fen().split()[:4]
    if not fen or is_initial:
        return game
    try:
        return game.set_up(fen, "its tag FEN")
    except UserError as error:
        raise ValueError(str(error)) from error


def _result(found: _PgnGame, last: Game) -> dict[str, object]:
    """Return the winner and the end of a game with this last position.

    A result that the rules do not give was resigned, unless it is a draw or Termination names another reason.
    """
    tag = found.tags.get("Result", "")
    text = found.result or tag
    if found.result and RESULTS.get(tag) not in (None, RESULTS[found.result]):
        raise ValueError(f"its tag Result is {tag}, but its moves end with {found.result}")
    by_rules = WINNERS[outcome_code(last.outcome())]
    winner = RESULTS.get(text)
    if winner is None:
        return {"winner": by_rules, "end": "rule"}
    if by_rules is not None:
        return {"winner": winner, "end": "rule"}
    is_resigned = winner != "draw" and RESIGNED.fullmatch(found.tags.get("Termination", ""))
    return {"winner": winner, "end": "resign" if is_resigned else "adjudicated"}
