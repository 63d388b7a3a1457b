"""A recorded game: read from a file, replayed, and shown move by move."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

from plyzero.errors import UserError, plain, shown
from plyzero.kits.engines.game_files import find_games
from plyzero.play.session import SIDES, STARTED, VERSION, Session
from plyzero.rules.board import Board, Cell
from plyzero.rules.board_svg import render_svg, text_svg
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, move_name, setup_name
from plyzero.rules.game import Game, board_of, outcome_code
from plyzero.rules.notation import play_named
from plyzero.run.json_games import WINNERS

ID_DIGITS: Final = 16
"""Number of hexadecimal digits of the id of a game; a text with fewer characters is its number in the file."""


@dataclass(frozen=True)
class GameRecord:
    """A game that was replayed.

    positions:   all positions, also those in which chance moves; one more than `moves`.
    moves:       the actions and rolls between them.
    values:      for each move of a player, the recorded value of the position before it for that player, in [-1, 1], or
                 None; () if the file has no values.
    resigned:    the player who has resigned, if one has.
    opening:     number of moves and rolls up to the last random opening move, which no player has chosen.
    adjudicated: the result of a game that was adjudicated, whatever the rules say: `first`, `second` or `draw`.
    players:     the names of both, () if the file does not have them.
    """

    positions: Sequence[Game]
    moves: Sequence[int]
    values: Sequence[float | None] = field(default=())
    resigned: int | None = None
    opening: int = 0
    adjudicated: str | None = None
    players: tuple[str, str] | tuple[()] = ()

    @property
    def winner(self) -> str | None:
        """`first`, `second` or `draw`; None if the game is not over."""
        if self.adjudicated is not None:
            return self.adjudicated
        if self.resigned is not None:
            return SIDES[1 - self.resigned]
        return WINNERS[outcome_code(self.positions[-1].outcome())]


class Frame(NamedTuple):
    """A position as people see it: after a move and after the rolls that followed.

    position: a position in which a player moves, or the last one.
    board:    its board; None if it has none, so only its text can be shown.
    last:     the cells that the move has changed.
    move:     the name of the move that led here, "" at the beginning.
    by:       the player who made it, 0 or 1; None at the beginning.
    setup:    at the beginning, the set-up of the game in words; otherwise "".
    rolls:    the names of the rolls after the move; at the beginning, of those before the first move.
    score:    the recorded value as expected score of player 0, in [0, 1]; at the end the result; None if not known.
    """

    position: Game
    board: Board | None
    last: tuple[Cell, ...]
    move: str
    by: int | None
    setup: str
    rolls: tuple[str, ...]
    score: float | None


def frames_of(game: GameRecord) -> list[Frame]:
    """Return the frames of a game: the beginning, and one for each move of a player."""
    movers = [None if is_chance(each) else int(each.to_play) for each in game.positions[:-1]]
    names = [move_name(each, move) for each, move in zip(game.positions, game.moves, strict=False)]
    decisions = [ply for ply, mover in enumerate(movers) if mover is not None]
    values = dict(zip(decisions, game.values, strict=False))
    frames: list[Frame] = []
    for ply, until in pairwise([None, *decisions, len(movers)]):
        assert until is not None
        position = game.positions[until]
        board = board_of(position)
        before = frames[-1].board if frames else None
        setup = setup_name(game.positions, game.moves) if ply is None else ""
        rolls_from = 0 if ply is None else ply + 1
        if setup:
            rolls_from = 1
        frames.append(
            Frame(
                position,
                board,
                last=board.changed(before) if board and before else (),
                move="" if ply is None else names[ply],
                by=None if ply is None else movers[ply],
                setup=setup,
                rolls=tuple(names[rolls_from:until]),
                score=_score(values.get(until), int(position.to_play)),
            )
        )
    result = {"first": 1.0, "draw": 0.5, "second": 0.0}.get(game.winner or "")
    frames[-1] = frames[-1]._replace(score=result)
    return frames


def frame_svg(frame: Frame) -> str:
    """Return a frame as an SVG element: the board with the last move marked, or the text of the position."""
    return render_svg(frame.board, last=frame.last) if frame.board else text_svg(str(frame.position))


PLAYERS: Final = tuple(f"the {side} player" for side in SIDES)
"""The names of the players in texts."""


def result_of(game: GameRecord, players: Sequence[str] = PLAYERS) -> str:
    """Return the result of a game as a clause, with these names of the players."""
    if game.resigned is not None:
        return f"{players[game.resigned]} resigned"
    if game.winner is None:
        return "the game is not over"
    result = "draw" if game.winner == "draw" else f"{players[SIDES.index(game.winner)]} won"
    return result if game.adjudicated is None else f"{result} by adjudication"


def colours_of(game: GameRecord) -> Sequence[str]:
    """Return the names of the players beside a picture of the board: their colours."""
    board = board_of(game.positions[0])
    return [colour.capitalize() for colour in board.player_colours] if board else PLAYERS


def from_moves(game: GameSpec, text: str) -> GameRecord:
    """Return the game with the moves `text`, names separated by blanks. Raises UserError if one is not legal."""
    try:
        return GameRecord(*play_named(game.start, text.split()))
    except ValueError as error:
        raise UserError(str(error)) from error


def read_game(lines: Iterable[str | bytes], game: GameSpec, chosen: str, name: str) -> GameRecord:
    """Return a game from a file that `find_games` reads: JSON lines as `replay export` writes them, SGF, PGN.

    chosen: the number of the game, 1 for the first, or its id.
    name:   the name of the file, for messages.

    Raises UserError with the line if there is no such game, or if it is not a game of `game`.
    """
    by_id = len(chosen) == ID_DIGITS
    if not by_id and not (chosen.isdecimal() and len(chosen) < ID_DIGITS and int(chosen) > 0):
        raise UserError(f"expected --game with a number from 1 on, or an id of {ID_DIGITS} digits, got {shown(chosen)}")
    count = 0
    for count, each in enumerate(find_games(lines, game), 1):
        if chosen.encode() in each.text if by_id else count == int(chosen):
            try:
                fields = each.fields()
                if not by_id or fields.get("id") == chosen:
                    return _replay(fields, game)
            except ValueError as error:
                raise UserError(f"{name}, line {each.line}: {error}") from error
    if not count:
        raise UserError(f"{name} contains no game; expected JSON lines of plyzero replay export, SGF or PGN")
    if by_id:
        raise UserError(f"none of the {count} games in {name} has the id {chosen}")
    raise UserError(f"expected --game from 1 to {count}, the number of games in {name}, got {chosen}")


class ReadGame(NamedTuple):
    """A game of a file, or why it cannot be used, as a sentence.

    number:  1 for the first game of the file.
    players: the names of the players of both sides; () if the file does not have them.
    """

    number: int
    players: tuple[str, str] | tuple[()]
    record: GameRecord | str


def read_games(lines: Iterable[str | bytes], game: GameSpec) -> Iterator[ReadGame]:
    """Yield every game of a file as `read_game` reads them. One that cannot be used is a sentence with its line."""
    for count, each in enumerate(find_games(lines, game), 1):
        players: tuple[str, str] | tuple[()] = ()
        try:
            fields = each.fields()
            players = _players(fields)
            yield ReadGame(count, players, _replay(fields, game))
        except ValueError as error:
            yield ReadGame(count, players, f"line {each.line}: {plain(str(error), 300)}")


def _players(fields: dict[str, object]) -> tuple[str, str] | tuple[()]:
    """Return the names of the players of both sides; () if they are not known."""
    first, second = fields.get("first"), fields.get("second")
    return (plain(first, 80), plain(second, 80)) if isinstance(first, str) and isinstance(second, str) else ()


def _replay(fields: dict[str, object], game: GameSpec) -> GameRecord:
    """Return the game in an object. Raises ValueError if it is not a game of `game`."""
    if "person" in fields:
        session = Session.from_record(game, fields)
        return GameRecord(session.positions, session.moves, resigned=session.resigned)
    if fields.get("game", game.identity) != game.identity:
        raise ValueError(f"it is a game of {shown(fields['game'])}, not of {game.identity}")
    names = fields.get("moves")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("expected moves as a list of names of actions")
    if fields.get("version", VERSION) not in (VERSION, STARTED):
        raise ValueError(f"expected a game of version {VERSION}, got {shown(fields['version'])}")
    game = game.starting_at(fields.get("start", ""))
    positions, moves = play_named(game.start, names)
    record = GameRecord(
        positions,
        moves,
        _values(fields, positions[:-1]),
        opening=_opening(fields.get("opening_plies", 0), positions),
        players=_players(fields),
    )
    if fields.get("end") == "resign" and record.winner is None and fields.get("winner") in SIDES:
        return replace(record, resigned=1 - SIDES.index(fields["winner"]))
    if fields.get("end") == "adjudicated" and fields.get("winner") in (*SIDES, "draw"):
        return replace(record, adjudicated=str(fields["winner"]))
    is_by_rule = fields.get("end") not in ("truncated", "forfeit", "adjudicated")
    if "winner" in fields and is_by_rule and fields["winner"] != record.winner:
        stated = shown(fields["winner"])
        result = result_of(record)
        raise ValueError(f"winner is {stated}, but by the rules of {game.identity} {result} after these moves")
    return record


def _opening(plies: object, positions: Sequence[Game]) -> int:
    """Return the number of moves and rolls up to the last of so many opening moves."""
    decisions = [at for at, each in enumerate(positions[:-1]) if not is_chance(each)]
    if not isinstance(plies, int) or not 0 <= plies <= len(decisions):
        raise ValueError(f"expected opening_plies from 0 to {len(decisions)}, got {shown(plies)}")
    return decisions[plies - 1] + 1 if plies else 0


def _values(fields: dict[str, object], positions: Sequence[Game]) -> list[float | None]:
    """Return the values of a game; None for random opening moves, which no search has chosen."""
    values = fields.get("values")
    if values is None:
        return []
    decisions = sum(not is_chance(each) for each in positions)
    opening = fields.get("opening_plies", 0)
    if (
        not isinstance(values, list)
        or not all(isinstance(each, int | float) for each in values)
        or not isinstance(opening, int)
        or len(values) != decisions
    ):
        raise ValueError(f"expected values as a list of {decisions} numbers, one for each move of a player")
    if not all(math.isfinite(value) and abs(value) <= 1 for value in values):
        raise ValueError("expected values from -1 to 1")
    return [None if ply < opening else float(value) for ply, value in enumerate(values)]


def _score(value: float | None, player: int) -> float | None:
    """Return a value for `player` as the expected score of player 0."""
    if value is None:
        return None
    value_of_first = value if player == 0 else -value
    return (1 + value_of_first) / 2
