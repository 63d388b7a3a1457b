"""Positions, searches, the network's view and files of games, for the page on which a game is played.

The state of a game is its list of moves, which comes with every request.
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from plyzero.check.ends import MAX_KINDS, End, ends_of, first_moves, random_games
from plyzero.errors import UserError
from plyzero.kits.engines.game_export import write_pgn, write_sgf
from plyzero.kits.engines.game_files import find_games
from plyzero.kits.engines.game_record import GameRecord, from_moves
from plyzero.kits.engines.sgf_games import sgf_names
from plyzero.kits.web.searches import Event, Report
from plyzero.lines import bounded_lines, parse_object
from plyzero.play.found_moves import is_hopeless, move_infos, root_info
from plyzero.play.player import Player
from plyzero.play.players import Bot
from plyzero.play.session import SIDES, Session
from plyzero.play.spots import (
    MAX_LINE,
    final_board_of,
    line_of,
    owned_cells,
    places_of,
    spot_of,
    spots_of,
    values_of,
    written_name,
    written_names,
)
from plyzero.rules.board import FILLS, Board, Cell
from plyzero.rules.board_svg import render_svg
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import expected_rolls, is_chance, move_name, setup_name
from plyzero.rules.game import Game, board_of, rendered
from plyzero.rules.user_errors import with_location
from plyzero.search.slots import SearchResult, SearchSlots, at_intervals

ANALYSIS: Final = "analysis"
"""The id of the judge among the players, whose searches are hints, analyses and reviews."""

MAX_TEXT: Final = 100_000
"""Longest list of moves, in characters."""

EVENT_SECONDS: Final = 0.1
"""Time between two events of a search."""

ENDS_POSITIONS: Final = 1000
"""Number of positions in random games whose ends are shown: whole games, until they have so many."""

MAX_GAMES: Final = 1000
"""Number of games of a file that a visitor can choose from."""

MAX_VARIATIONS: Final = 100
"""Number of variations that a game may have which is written as PGN or SGF."""

Cells = Sequence[Sequence[Cell]]
"""The cells of the board under a plane, `[rows][columns]`."""


def describe_sgf(game: GameSpec) -> dict[str, object] | None:
    """Return the names of the game and its moves in SGF files; None without `sgf_game` or a board, and with set-ups.

    GM, SZ, KM: properties of the first node; KM only for games with a komi.
    names:      name in SGF files -> name of the move, where it differs; one move may have several.
    """
    names = sgf_names(game)
    if names is None:
        return None
    properties: dict[str, object] = {"GM": str(names.number), "SZ": names.size}
    if names.komi is not None:
        properties["KM"] = f"{names.komi:g}"
    return {**properties, "names": names.read}


def describe_file(game: GameSpec, content: bytes, number: int) -> dict[str, object]:
    """Return a game of a file that `find_games` reads, and which games there are.

    titles: of the games, such as "Ann – Bo, 1-0, 1858", or "Game 3" if the file does not say; at most MAX_GAMES.
    game:   the fields of the game with this number, 0 for the first; docs/formats.md lists them.

    Raises UserError with the line if it is no game of `game`.
    """
    found = list(islice(find_games(bounded_lines(io.BytesIO(content)), game), MAX_GAMES))
    if number >= len(found):
        raise UserError(f"expected a file with at least {number + 1} games, got one with {len(found)}")
    try:
        fields = found[number].fields()
    except ValueError as error:
        raise UserError(f"the game in line {found[number].line}: {error}") from error
    return {"titles": [each.title or f"Game {i}" for i, each in enumerate(found, 1)], "game": fields}


def exported(game: GameSpec, content: bytes, kind: str) -> str:
    """Return a game as a file of the `kind` pgn or sgf. `content` is a saved game, as docs/formats.md describes it.

    Raises UserError if it is none of `game`.
    """
    try:
        saved: dict[str, Any] = parse_object(content)
        session = Session.from_record(game, saved)
        variations, comments = saved.get("variations", []), saved.get("comments", {})
        if not isinstance(variations, list) or len(variations) > MAX_VARIATIONS:
            raise ValueError(f"expected at most {MAX_VARIATIONS} variations")
        if not all(_are_texts(line) for line in variations):
            raise ValueError("expected variations as lists of names")
        if not isinstance(comments, dict) or not _are_texts(list(comments.values())):
            raise ValueError("expected comments as texts by the moves before them")
        record = GameRecord(session.positions, session.moves, resigned=session.resigned)
        if kind == "pgn":
            return write_pgn(record, game, _tags_of(saved), variations=variations, comments=comments)
        by_time = bool(saved.get("timeOver"))
        return write_sgf(record, game, variations=variations, comments=comments, by_time=by_time)
    except ValueError as error:
        raise UserError(f"the game cannot be written as {kind.upper()}: {error}") from error


def _are_texts(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def _tags_of(saved: dict[str, Any]) -> dict[str, str]:
    """Return the tags of PGN with what a saved game says of its players and its end; a person has no name."""
    bot = saved.get("bot", "you")
    names = {side: "?" if bot == "you" or side == saved["person"] else str(bot) for side in SIDES}
    tags = {tag: str(saved.get(side, names[side])) for tag, side in zip(("White", "Black"), SIDES, strict=True)}
    if saved.get("timeOver"):
        tags["Termination"] = "time forfeit"
    return tags


def parse_moves(game: GameSpec, text: str) -> tuple[list[Game], list[int]]:
    """Return the positions and the moves of a list of names separated by blanks.

    Raises UserError for a move that is not legal.
    """
    if len(text) > MAX_TEXT:
        raise UserError(f"expected at most {MAX_TEXT} characters of moves, got {len(text)}")
    record = from_moves(game, text)
    return list(record.positions), list(record.moves)


CellsOf = Callable[[Game], Cells | None]
"""Returns the cells under the planes of a position, as `PlaneCells.cells` does."""


def describe_position(
    game: GameSpec, text: str, rng: Generator, *, at: int | None = None, cells_of: CellsOf = lambda position: None
) -> dict[str, object]:
    """Return a position of the game with the moves `text`. Rolls that follow these moves are made with `rng`.

    The position is the one after `at` moves and rolls, and after the rolls that were made there; None = the last one.

    moves:   the names of all moves and rolls of the game, with the new rolls.
    written: the same as people write them.
    movers:  the player who made each, null for a roll.
    setup:   the set-up of the game, its first roll, in words; "" if it has none.
    rollers: the player to move where each roll was made, null for a move and for a set-up.
    at:      number of moves and rolls before the position: a player moves there, or the game ends with it.
    svg:     the board as an SVG element whose cells carry their names, with the last turn of a player marked: all its
             moves, and the rolls between them; null if the game has no board.
    turn:    the `spots` of each move of that turn, as in `legal`.
    faults:  why the board or the scoreboard cannot be shown, as sentences.
    turns:   whether player 1 sits at the other side of the board.
    colours: the colours of the pieces of players 0 and 1, in words; null without a board.
    fills:   the same colours as CSS names them.
    scoreboard: what players 0 and 1 have so far, in words.
    text:    the position as text.
    toPlay:  0 or 1.
    legal:   for each legal action its `name`, the same as people write it, `written`, the `path` of cells to click on,
             and the `spots` of its cells, in units of the picture. An action without cells has an empty path.
    territory: at the end of a game with a final board, [x, y, value] of each empty cell that is a player's, where 1 =
             player 0's and -1 = player 1's; otherwise empty.
    outcome: null while the game goes on, otherwise `winner`, 0, 1, or null for a draw, and with points `score`.
    """
    session = Session(game, 0, *parse_moves(game, text), rng=rng)
    positions = session.positions
    movers = _movers(positions)
    here = len(movers) if at is None else min(at, len(movers))
    while here < len(movers) and movers[here] is None:
        here += 1
    position, board = positions[here], board_of(positions[here])
    turn = _last_turn(movers[:here])
    outcome = position.outcome()
    made = [*zip(positions, session.moves, strict=False)]
    scoreboard, fault = _scoreboard_of(position)
    faults = [fault] if fault else []
    if board is None and (fault := rendered(position)[1]):
        faults.append(f"The board cannot be drawn: {fault}.")
    score = {} if outcome is None or outcome.score is None else {"score": float(outcome.score)}
    return {
        "moves": [move_name(each, move) for each, move in made],
        "written": [written_name(each, move) for each, move in made],
        "movers": movers,
        "setup": setup_name(positions, session.moves),
        "rollers": [_roller(each) for each in positions[:-1]],
        "at": here,
        "svg": None if board is None else _render(board, positions, turn),
        "turn": [_action(positions[ply], board_of(positions[ply]), session.moves[ply])["spots"] for ply in turn],
        "faults": faults,
        "turns": board is not None and board.turns,
        "colours": None if board is None else board.player_colours,
        "fills": None if board is None else [FILLS[name] for name in board.player_colours],
        "scoreboard": scoreboard,
        "text": str(position),
        "toPlay": int(position.to_play),
        "legal": [_action(position, board, action) for action in map(int, position.legal_actions())],
        "territory": [] if board is None or outcome is None else _territory(position, board, cells_of),
        "outcome": None if outcome is None else {"winner": outcome.winner, **score},
    }


def _territory(position: Game, board: Board, cells_of: CellsOf) -> list[tuple[float, float, float]]:
    """Return the empty cells that belong to a player in a finished game."""
    cells = cells_of(position) if position.final_planes else None
    if cells is None:
        return []
    planes = np.asarray(position.final_board(), np.float32)
    empty = {spot_of(cell) for cell in board.cells if not cell.piece}
    owned = owned_cells(values_of(planes, position.to_play), cells)
    return [(x, y, value) for x, y, value in owned if value and (x, y) in empty]


def _scoreboard_of(position: Game) -> tuple[tuple[str, str], str]:
    """Return what players 0 and 1 have so far, and why it cannot be shown, as a sentence."""
    try:
        first, second = position.scoreboard()
    except Exception as error:
        return ("", ""), f"The scoreboard cannot be shown: scoreboard() raises {with_location(error)}."
    return (str(first), str(second)), ""


def describe_ends(game: GameSpec) -> dict[str, object]:
    """Return what shows whether the rules are those of the game that is meant: its beginning, and how it ends.

    firstMoves: the first rolls and the first moves, as sentences.
    ends:       the kinds of ends of random games: of the shortest example its `svg`, as in `describe_position`, its
                `text`, and its `caption`, a list of lines.
    Raises UserError if the rules raise an error.
    """
    ends = ends_of(random_games(game, ENDS_POSITIONS))[:MAX_KINDS]
    return {"firstMoves": list(first_moves(game.start)), "ends": [_describe_end(end) for end in ends]}


def _describe_end(end: End) -> dict[str, object]:
    positions = end.example.positions
    board, turn = board_of(positions[-1]), _last_turn(_movers(positions))
    svg = None if board is None else _render(board, positions, turn)
    return {"svg": svg, "text": str(positions[-1]), "caption": end.caption}


def _movers(positions: Sequence[Game]) -> list[int | None]:
    """Return the player who moved at each position but the last; None for a roll."""
    return [None if is_chance(each) else int(each.to_play) for each in positions[:-1]]


def _roller(position: Game) -> int | None:
    """Return the player to move where dice are rolled; None elsewhere."""
    return int(position.to_play) if is_chance(position) and not position.awaits_setup else None


def _last_turn(movers: Sequence[int | None]) -> list[int]:
    """Return the plies of the last turn of a player: its moves, with nothing but rolls between them."""
    turn: list[int] = []
    for ply in reversed(range(len(movers))):
        if movers[ply] is not None:
            if turn and movers[ply] != movers[turn[0]]:
                break
            turn.insert(0, ply)
    return turn


def _render(board: Board, positions: Sequence[Game], turn: Sequence[int]) -> str:
    """Return the picture of `board`. The cells that have changed since the beginning of a turn are marked."""
    before = board_of(positions[turn[0]]) if turn else None
    return render_svg(board, last=board.changed(before) if before else (), style=False)


def _action(position: Game, board: Board | None, action: int) -> dict[str, object]:
    name = position.action_name(action)
    path = board.path(name) if board else ()
    return {"name": name, "written": position.san(action), "path": path, "spots": spots_of(board, name)}


def why_illegal(game: GameSpec, text: str, cells: Sequence[str]) -> str:
    """Return why no legal move begins with clicks on `cells` after the moves `text`, as a sentence."""
    position = unfinished_position(game, text)
    board, path = board_of(position), tuple(cells)
    meant = [action for action in range(position.num_actions) if _path(position, board, action)[: len(path)] == path]
    for action in meant:
        with suppress(Exception):  # rules need not know actions that are illegal
            if sentence := position.why_illegal(action):
                return sentence
    if board and len(path) == 1 and not meant and path[0] in board.names:
        return f"No move begins at {path[0]}."
    if board and len(path) == 1 and board.landing(path[0]).piece and not _lifts_pieces(position, board):
        return f"{path[0]} is taken."
    return f"{' to '.join(path)} is not a legal move here."


def pieces_added(game: GameSpec, text: str, name: str) -> list[dict[str, object]]:
    """Return the `spot` and the player `by` of each piece that a move adds to the board after the moves `text`."""
    position = unfinished_position(game, text)
    try:
        after = position.play(position.parse_action(name))
    except ValueError as error:
        raise UserError(str(error)) from error
    before, board = board_of(position), board_of(after)
    if before is None or board is None:
        return []
    added: list[dict[str, object]] = []
    for cell in board.changed(before):
        if cell.piece:
            owner = cell.owned()[0]
            by = int(position.to_play) if owner is None else owner
            added.append({"spot": spot_of(cell), "by": by})
    return added


def unwrapped(text: str) -> str:
    """Return a text whose paragraphs are one line each; lines that are indented or begin a list stay."""
    return re.sub(r"(?<=\S)\n(?=[^\s*-])", " ", inspect.cleandoc(text))


def _path(position: Game, board: Board | None, action: int) -> tuple[str, ...]:
    """Return the cells that are clicked to play an action, legal or not."""
    with suppress(Exception):  # rules need not name actions that are illegal
        return board.path(position.action_name(action)) if board else ()
    return ()


def _lifts_pieces(position: Game, board: Board) -> bool:
    """Return whether a legal move goes from cell to cell."""
    return any(len(board.path(position.action_name(action))) > 1 for action in position.legal_actions())


def unfinished_position(game: GameSpec, text: str) -> Game:
    """Return the position after the moves `text`. Raises UserError if no player is to move there."""
    position = parse_moves(game, text)[0][-1]
    if position.outcome() is not None:
        raise UserError("the game is over after these moves; there is nothing to search")
    if is_chance(position):
        raise UserError(f"chance moves after these moves, so no player is to move; add {expected_rolls(position)}")
    return position


def search_position(
    player: Player, position: Game, judge: str = "", cells: CellsOf | None = None, moves: Sequence[int] = ()
) -> Callable[[Report], Event]:
    """Return the search of `player` in `position`, which reports its results while it runs.

    cells: returns the cells under the planes of a position, as `PlaneCells.cells` does.
    moves: those that have led there, for players that need them.

    moveInfos, rootInfo: as in plyzero.play.found_moves; each of moveInfos also has the improved `policy`, and the first
                         moves of `pv` as people write them, `written`.
    finalBoard:          as `final_board_of` returns it, before the search; null without a network that expects one,
                         or without `cells`.
    simulations, of:     number of simulations made so far, and in all.

    Only in the last event:

    line:     in the best three of moveInfos, the principal variation with `by`, `name` and `spots`.
    choice:   the name of the move that the player chooses.
    judge:    the sentence about the judge that was given.
    hopeless: whether it would resign.
    """

    def run(report: Report) -> Event:
        if not isinstance(player, Bot):
            player.on_wait = lambda: report({})  # an empty event: it ends the search when the visitor has left
            return {"choice": position.action_name(player.choose_in_game(position, moves))}
        planes, final_board = player.final_board(position), None
        if cells and planes is not None:
            final_board = final_board_of(planes, cells(position), position.to_play)

        def show(slots: SearchSlots) -> None:
            report(describe(slots.result_with_lines(0), of=slots.budget()))

        def describe(result: SearchResult, *, of: int, lines: int = 0) -> Event:
            names = map(position.action_name, map(int, result.actions))
            policy = dict(zip(names, result.policy.tolist(), strict=True))
            infos: list[dict[str, object]] = []
            for info in move_infos(position, result):
                written = written_names(position, info["pv"][:MAX_LINE])
                infos.append({**info, "written": written, "policy": round(policy[info["move"]], 4)})
                if info["order"] < lines:
                    infos[-1]["line"] = line_of(position, info["pv"])
            return {
                "simulations": result.simulations,
                "of": of,
                "moveInfos": infos,
                "rootInfo": root_info(position, result),
                "finalBoard": final_board,
            }

        result = player.search([position], on_batch=at_intervals(EVENT_SECONDS, show))[0]
        choice = position.action_name(player.select_action(result))
        of = result.simulations if player.clock else player.simulations
        hopeless = is_hopeless(result)
        return {**describe(result, of=of, lines=3), "choice": choice, "judge": judge, "hopeless": hopeless}

    return run


def network_view(bot: Bot, position: Game, cells: Cells | None = None) -> dict[str, object]:
    """Return the network's input in `position`, and its output without a search.

    cells: the cells under its planes, if they are known.

    planes:  the observation, `[planes][rows][columns]` numbers, from the point of view of the player to move.
    places:  the places of `cells`, `[rows][columns]` of (x, y) in units of the picture, or null.
    policy:  [name as people write it, probability] of each legal action, the likeliest first.
    wdl:     win, draw and loss of the player to move.
    lead:    expected points by which the player to move wins; null if the network does not estimate them.
    board:   the expected final board, `[planes][rows][columns]` from -1 to 1 for the player to move, or null.
    toPlay:  the player to move, 0 or 1.
    """
    result = bot.with_simulations(0).search([position])[0]
    board = bot.final_board(position)
    value, draw = result.network_value, result.network_draw
    win, loss = (1 - draw + value) / 2, (1 - draw - value) / 2
    likeliest_first = np.argsort(-result.prior, kind="stable")
    names = [position.san(int(action)) for action in result.actions]
    return {
        "planes": np.asarray(position.observe(), np.float32).round(4).tolist(),
        "places": places_of(cells),
        "policy": [[names[i], round(float(result.prior[i]), 4)] for i in likeliest_first],
        "wdl": [round(each, 4) for each in (win, draw, loss)],
        "lead": None if result.score is None else round(result.score, 2),
        "board": None if board is None else board.round(3).tolist(),
        "toPlay": int(position.to_play),
    }
