"""Games of SGF files, as programs for go, othello, gomoku and hex write them, as fields of recorded games."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from string import ascii_letters
from typing import Final, NamedTuple

from plyzero.errors import UserError, shown
from plyzero.kits.engines.points import Points
from plyzero.kits.engines.sgf_collection import Node, SgfGame, read_collection
from plyzero.rules.catalog import GameSpec, load_game, parse_parameters
from plyzero.rules.game import DRAW, Game, board_of, outcome_code
from plyzero.run.json_games import WINNERS, FoundGame, named_players

GO: Final = 1
HEX: Final = 11
"""`Game.sgf_game` of go and hex. Players of go agree which stones are dead, so the rules may give another result."""

LETTER_PAIRS: Final = (GO, 4)
"""`Game.sgf_game` of go and gomoku. Their SGF files name a point by two letters, from the upper left corner on."""

COLOURS: Final = "BW"
"""The players in SGF: B is player 0."""

RESULT: Final = re.compile(
    r"(?i)(?P<side>[BW])(?:lack|hite)?\s*(?:\+\s*(?P<how>.*))?|(?P<void>void)|(?P<unknown>\??)|0|draw|jigo"
)
"""Pattern of the property RE."""

MIN_HUNDREDTHS: Final = 100
"""Fox, a server for go, writes a komi from here on in hundredths of a point, or of a stone, which is two points."""

GIVEN_UP: Final = {"resign": "resign", "forfeit": "adjudicated"}
"""A last move by which a player of hex gives up -> the end of the game."""


@dataclass(frozen=True)
class SgfNames:
    """The names of a game and of its moves in SGF files.

    number:        of the game, the property GM.
    columns, rows: of the board, the property SZ.
    komi:          the property KM; None for a game without a komi.
    written:       name of a move -> its name in SGF files, where it differs.
    read:          name in SGF files -> name of the move, where it differs. Other names are read ignoring case.
    """

    number: int
    columns: int
    rows: int
    komi: float | None
    written: dict[str, str]
    read: dict[str, str]

    @property
    def size(self) -> str:
        """The property SZ."""
        return str(self.rows) if self.rows == self.columns else f"{self.columns}:{self.rows}"


def sgf_names(game: GameSpec) -> SgfNames | None:
    """Return the names of a game in SGF files; None if it has no `sgf_game`, no board, or set-ups."""
    number = game.start.sgf_game
    board = board_of(game.start)
    if number is None or board is None or game.start.awaits_setup:
        return None
    grid = Points(board)
    pairs: dict[str, str] = {}
    for cell in board.cells if grid.size <= len(ascii_letters) else ():
        column, row = grid.place(cell)
        pairs[ascii_letters[column] + ascii_letters[grid.rows - 1 - row]] = cell.name
    written = {"pass": "", "swap": "swap-pieces"}
    if number in LETTER_PAIRS:
        written |= {name: pair for pair, name in pairs.items()}
    is_ambiguous = not pairs.keys().isdisjoint(pairs.values())
    read = {} if is_ambiguous and number not in LETTER_PAIRS else dict(pairs)
    read |= {text: name for name, text in written.items()}
    if number == GO:
        read["tt"] = "pass"
    komi = game.parameter("komi")
    known_komi = float(komi) if isinstance(komi, int | float) else None
    return SgfNames(number, grid.columns, grid.rows, known_komi, written, read)


def sgf_games(lines: Iterable[bytes], first: int = 1, *, game: GameSpec) -> Iterator[FoundGame]:
    """Yield the games of an SGF collection, whose first line has the number `first`."""
    names = sgf_names(game)
    for each in read_collection(lines, first):
        yield FoundGame(each.line, partial(_fields, each, game, names))


def _fields(found: SgfGame, game: GameSpec, names: SgfNames | None) -> dict[str, object]:
    """Return the fields of a game. Raises ValueError with the reason if it is not one of `game`."""
    if names is None:
        raise ValueError(f"this is an SGF file, which has no names for the moves of {game.name}: it has no sgf_game")
    if found.fault:
        raise ValueError(found.fault)
    properties: dict[str, str] = {}
    for node in found.nodes:
        for key, values in node.properties.items():
            properties.setdefault(key, " ".join(values) if key == "AP" else values[0])
    _check_game(properties, game, names)
    played = [
        _Stone(node.line, side, value)
        for node in found.nodes
        for side, key in enumerate(COLOURS)
        for value in node.properties.get(key, [])
    ]
    if names.number == HEX and "littlegolem" in properties.get("SO", ""):
        played = [each._replace(side=1 - each.side) for each in played]  # Little Golem calls PB, who begins, W
    given_up = played.pop() if played and played[-1].text.lower() in GIVEN_UP else None
    stones = _placed(found.nodes, names)
    if not stones and _number(properties.get("HA", "0")) >= 2:
        raise ValueError(f"HA[{properties['HA']}] is given, but AB places no stones of the handicap")
    begun = _set_up(game, stones, played[0].side if played else _side(properties.get("PL", ""))) if stones else game
    moves, last = _played(begun.start, played, names)
    return {
        **({"start": begun.text} if begun.text else {}),
        **named_players(properties.get("PB", ""), properties.get("PW", "")),
        "moves": moves,
        **_result(properties.get("RE", ""), last, names, given_up),
    }


def _check_game(properties: dict[str, str], game: GameSpec, names: SgfNames) -> None:
    """Raise ValueError if the properties are those of another game, or of another size or komi."""
    number = properties.get("GM", str(names.number))
    if number != str(names.number):
        raise ValueError(f"expected GM[{names.number}], the number of {game.name}, got GM[{number[:20]}], another game")
    given: list[str] = []
    changed: dict[str, object] = {}
    columns, _, rows = properties.get("SZ", names.size).partition(":")
    if (_number(columns), _number(rows or columns)) != (names.columns, names.rows):
        given.append(f"SZ[{properties['SZ'][:20]}]")
        changed["size"] = int(columns) if columns.isdecimal() and columns == (rows or columns) else None
    komi = _komi(properties)
    if names.komi is not None and komi not in (None, names.komi):
        given.append(f"KM[{properties['KM'][:20]}]")
        changed["komi"] = int(komi) if komi.is_integer() else komi
    if given:
        other = _named(game.name, tuple(changed.items()))
        advice = f"name the game {other}" if other else "there is no such game"
        raise ValueError(f"expected a game of {game.name}, got one with {' and '.join(given)}; {advice}")


def _komi(properties: dict[str, str]) -> float | None:
    """Return the komi; None if it is not known."""
    komi = _number(properties.get("KM", ""))
    if math.isnan(komi):
        return None
    if "foxwq" not in properties.get("AP", "") or komi < MIN_HUNDREDTHS:
        return komi
    return komi / 50 if komi % 50 else komi / 100


def _number(text: str) -> float:
    """Return a number in a property, NaN if it is none."""
    return float(text) if re.fullmatch(r"[-+]?\d{1,9}(?:\.\d{0,9})?", text) else math.nan


def _side(colour: str) -> int | None:
    """Return the player of a property such as PL; None if it names nobody."""
    return {"b": 0, "w": 1}.get(colour[:1].lower())


@cache
def _named(name: str, changed: tuple[tuple[str, object], ...]) -> str:
    """Return the name of a game with other parameters; "" if there is no such game."""
    parameters = {**parse_parameters(name), **dict(changed)}
    arguments = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    try:
        return load_game(f"{name.partition('(')[0]}({arguments})").name
    except UserError:
        return ""


class _Stone(NamedTuple):
    """A move: the number of its line, the player, and its name in the file."""

    line: int
    side: int
    text: str

    def __str__(self) -> str:
        return f"{COLOURS[self.side]}[{self.text[:40]}] in line {self.line}"


def _placed(nodes: Iterable[Node], names: SgfNames) -> dict[str, int]:
    """Return the stones that are placed before the first move: name of the cell -> player."""
    stones: dict[str, int] = {}
    is_begun = False
    for node in nodes:
        for key in ("AB", "AW", "AE"):
            if key in node.properties and (is_begun or key == "AE"):
                raise ValueError(
                    f"expected stones to be placed before the first move only, got {key} in line {node.line}"
                )
        for side, key in enumerate(("AB", "AW")):
            for value in node.properties.get(key, []):
                stones |= dict.fromkeys(_cells(value, names), side)
        is_begun |= not node.properties.keys().isdisjoint(COLOURS)
    return stones


def _cells(value: str, names: SgfNames) -> list[str]:
    """Return the names of the cells of a point, or of a rectangle such as aa:cc."""
    first, colon, last = value.partition(":")
    if not colon:
        return [_name(value, names)]
    corners = [(ascii_letters.find(each[:1]), ascii_letters.find(each[1:])) for each in (first, last)]
    columns, rows = ([min(ends), max(ends)] for ends in zip(*corners, strict=True))
    if len(first) != 2 or len(last) != 2 or min(columns + rows) < 0:
        raise ValueError(f"expected a rectangle of points such as aa:cc, got {shown(value)}")
    across, down = (ascii_letters[low : high + 1] for low, high in (columns, rows))
    return [_name(column + row, names) for column in across for row in down]


def _name(text: str, names: SgfNames) -> str:
    """Return the name of a move that an SGF file calls `text`."""
    lower = text.lower()
    return names.read.get(text) or names.read.get(lower, lower)


def _set_up(game: GameSpec, stones: dict[str, int], to_move: int | None) -> GameSpec:
    """Return the game that begins with these stones, placed by moves, with passes where only the other one places.

    to_move: the player to move then; None = it is not known.

    Raises ValueError if there is no such position.
    """
    if stones == _pieces(game.start) and to_move in (None, int(game.start.to_play)):
        return game
    left = [sorted(name for name, side in stones.items() if side == player) for player in (0, 1)]
    position = game.start
    moves: list[str] = []
    try:
        while any(left) or (to_move is not None and position.to_play != to_move):
            player = int(position.to_play)
            is_last = len(left[player]) == 1 and to_move == 1 - player
            waits = is_last and len(left[1 - player]) > 0
            name = "pass" if waits or not left[player] else left[player].pop()
            if name == "pass" and name not in position.legal_names().split():
                raise ValueError("its players place stones in turn")
            position = position.play(position.parse_action(name))
            moves.append(name)
        if _pieces(position) != stones:
            raise ValueError("no moves lead to this board")
        return game.starting_at(" ".join(moves))
    except ValueError as error:
        raise ValueError(f"{game.name} cannot begin with the stones of AB and AW: {error}") from error


def _pieces(position: Game) -> dict[str, int]:
    """Return the stones on the board: name of the cell -> player."""
    board = board_of(position)
    return {cell.name: int(cell.piece) for cell in board.cells if cell.piece in ("0", "1")} if board else {}


def _played(start: Game, played: Iterable[_Stone], names: SgfNames) -> tuple[list[str], Game]:
    """Return the names of the moves and the last position. Raises ValueError at the first that is not legal.

    Passes are added where nothing else is legal, since files of othello often omit them; those after the end are left
    out.
    """
    position = start
    moves: list[str] = []
    for number, stone in enumerate(played, 1):
        name = _name(stone.text, names)
        if position.outcome() is not None and name == "pass":
            continue
        if position.outcome() is not None:
            raise ValueError(f"move {number}, {stone}: the game is already over")
        if position.to_play != stone.side and _must_pass(position):
            position = position.play(position.parse_action("pass"))
            moves.append("pass")
        if position.outcome() is None and position.to_play != stone.side:
            raise ValueError(f"move {number}: expected {COLOURS[position.to_play]}, whose turn it is, got {stone}")
        try:
            action = position.parse_action(name)
        except ValueError as error:
            raise ValueError(f"move {number}, {stone}: {error}") from error
        moves.append(position.action_name(action))
        position = position.play_unchecked(action)
    passes: list[str] = []
    end = position
    while end.outcome() is None and _must_pass(end):
        end = end.play(end.parse_action("pass"))
        passes.append("pass")
    return (moves, position) if end.outcome() is None else (moves + passes, end)


def _must_pass(position: Game) -> bool:
    """Return whether a pass is the only legal move."""
    return position.legal_names() == "pass"


def _result(text: str, last: Game, names: SgfNames, given_up: _Stone | None) -> dict[str, object]:
    """Return the winner and the end of a game with the property RE and this last position.

    given_up: the last move if it is one of GIVEN_UP.

    A result that the rules do not give was resigned or adjudicated. In go that is also one with another score than the
    rules give, since the players may have agreed which stones are dead.
    """
    outcome = last.outcome()
    by_rules = WINNERS[outcome_code(outcome)]
    found = RESULT.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a result such as B+R, W+3.5, 0 or ?, got RE[{text[:40]}]")
    if found["unknown"] is not None and given_up is None:
        return {"winner": by_rules, "end": "rule"}
    if found["void"]:
        return {"winner": None, "end": "adjudicated"}
    how = (found["how"] or "").lower()
    winner = WINNERS[DRAW]
    if found["side"]:
        winner = WINNERS[COLOURS.index(found["side"].upper())]
    if outcome is None and given_up is not None and (found["unknown"] is not None or winner == _opponent(given_up)):
        return {"winner": _opponent(given_up), "end": GIVEN_UP[given_up.text.lower()]}
    if outcome is None:
        is_resigned = how.startswith("r") and winner != "draw"
        return {"winner": winner, "end": "resign" if is_resigned else "adjudicated"}
    is_score_of_rules = winner == by_rules and (winner == "draw" or _number(how) == outcome.score)
    is_agreed = names.number == GO and not is_score_of_rules
    return {"winner": winner, "end": "adjudicated" if is_agreed else "rule"}


def _opponent(stone: _Stone) -> str | None:
    return WINNERS[1 - stone.side]
