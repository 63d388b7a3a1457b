"""A game as JSON, for the page on which it is played: positions, searches, the network's view.

The state of a game is its list of moves, which every request brings; nothing is kept here but networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Final

import numpy as np
from numpy.random import Generator

from plyzero.errors import UserError
from plyzero.kits.engines.game_record import from_moves
from plyzero.kits.engines.points import Points
from plyzero.kits.web.searches import Event, Report
from plyzero.play.agents import AgentPlayer
from plyzero.play.analysis import is_hopeless, move_infos, root_info
from plyzero.play.players import Bot, Player
from plyzero.play.session import Session
from plyzero.play.strength import explained
from plyzero.rules.board import Board
from plyzero.rules.board_svg import UNIT, render_svg
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, move_name
from plyzero.rules.game import Game, board_of
from plyzero.search.slots import SearchResult, SearchSlots, at_intervals

MAX_TEXT: Final = 100_000
"""Length of a list of moves above which it is refused."""

EVENT_SECONDS: Final = 0.1
"""Time between two events of a search."""

LETTER_PAIRS: Final = (1, 4)
"""`Game.sgf_game` of go and gomoku, whose SGF files name a point by two letters, from the upper left corner on."""


def describe_sgf(game: GameSpec) -> dict[str, object] | None:
    """Return how SGF files name the game and its moves; None if the game has no `sgf_game`, or no board.

    GM, SZ, KM: properties of the first node; KM for games with a komi only.
    points:     of moves whose names are others there, name -> point.
    """
    number, board = game.start.sgf_game, board_of(game.start)
    if number is None or board is None:
        return None
    grid, points = Points(board), {"pass": "", "swap": "swap-pieces"}
    if number in LETTER_PAIRS:
        for cell in board.cells:
            column, row = grid.place(cell)
            points[cell.name] = ascii_letters[column] + ascii_letters[grid.rows - 1 - row]
    size = str(grid.rows) if grid.rows == grid.columns else f"{grid.columns}:{grid.rows}"
    komi = game.parameter("komi")
    return {"GM": str(number), "SZ": size, **({} if komi is None else {"KM": str(komi)}), "points": points}


def parse_moves(game: GameSpec, text: str) -> tuple[list[Game], list[int]]:
    """Return the positions and the moves of a list of names separated by blanks.

    Raises UserError for a move that is not legal.
    """
    if len(text) > MAX_TEXT:
        raise UserError(f"expected at most {MAX_TEXT} characters of moves, got {len(text)}")
    record = from_moves(game, text)
    return [*record.positions], [*record.moves]


def describe_position(game: GameSpec, text: str, rng: Generator, *, at: int | None = None) -> dict[str, object]:
    """Return a position of the game with the moves `text`, and with the rolls that follow them if chance moves then.

    The position is the one after `at` moves and rolls, and after the rolls that were made there; None = the last one.

    moves:   the names of all moves and rolls of the game, the new rolls among them.
    movers:  the player who made each, null for a roll.
    at:      number of moves and rolls before the position: a player moves there, or the game ends with it.
    svg:     the board as an SVG element whose cells carry their names, with the last turn of a player marked: all its
             moves, and the rolls between them; null if the game has no board.
    turn:    the `spots` of each move of that turn, as of `legal`.
    colours: of the pieces of players 0 and 1, in words; null without a board.
    text:    the position as text.
    toPlay:  0 or 1.
    legal:   of each legal action its `name`, the `path` of cells to click on, and the `spots` where it is drawn, in
             units of the picture. An action without cells has an empty path.
    outcome: null while the game goes on, otherwise `winner`, 0, 1, or null for a draw, and with points `score`.
    """
    session = Session(game, 0, *parse_moves(game, text), rng=rng)
    positions = session.positions
    movers = [None if is_chance(each) else int(each.to_play) for each in positions[:-1]]
    here = len(movers) if at is None else min(at, len(movers))
    while here < len(movers) and movers[here] is None:
        here += 1
    position, board = positions[here], board_of(positions[here])
    turn = _last_turn(movers[:here])
    outcome = position.outcome()
    score = {} if outcome is None or outcome.score is None else {"score": float(outcome.score)}
    return {
        "moves": [move_name(each, move) for each, move in zip(positions, session.moves, strict=False)],
        "movers": movers,
        "at": here,
        "svg": None if board is None else _draw(board, positions, turn),
        "turn": [_action(positions[ply], board_of(positions[ply]), session.moves[ply])["spots"] for ply in turn],
        "colours": None if board is None else board.colours,
        "text": str(position),
        "toPlay": int(position.to_play),
        "legal": [_action(position, board, action) for action in map(int, position.legal_actions())],
        "outcome": None if outcome is None else {"winner": outcome.winner, **score},
    }


def _last_turn(movers: Sequence[int | None]) -> list[int]:
    """Return the plies of the last moves of one player, between which only rolls may be."""
    turn: list[int] = []
    for ply in reversed(range(len(movers))):
        if movers[ply] is not None:
            if turn and movers[ply] != movers[turn[0]]:
                break
            turn.insert(0, ply)
    return turn


def _draw(board: Board, positions: Sequence[Game], turn: Sequence[int]) -> str:
    """Return the picture of `board`, with the cells marked that have changed since the beginning of a turn."""
    before = board_of(positions[turn[0]]) if turn else None
    return render_svg(board, last=board.changed(before) if before else (), style=False)


def _action(position: Game, board: Board | None, action: int) -> dict[str, object]:
    name = position.action_name(action)
    return {"name": name, "path": board.path(name) if board else (), "spots": _spots(board, name)}


def _spots(board: Board | None, name: str) -> list[tuple[float, float]]:
    """Return where the cells are that are clicked to play an action."""
    return [(UNIT * cell.x, UNIT * cell.y) for cell in board.clicked(name)] if board else []


def unfinished_position(game: GameSpec, text: str) -> Game:
    """Return the position after the moves `text`. Raises UserError if no player is to move there."""
    position = parse_moves(game, text)[0][-1]
    if position.outcome() is not None:
        raise UserError("the game is over after these moves; there is nothing to search")
    if is_chance(position):
        raise UserError("a roll follows these moves, so no player is to move; add the roll")
    return position


def search_position(player: Player, position: Game) -> Callable[[Report], Event]:
    """Return the search of `player` in `position`, which reports what it has found so far.

    moveInfos, rootInfo: as in plyzero.play.analysis; each of moveInfos also has the improved `policy` and, of the best
                         three in the last event, `line`: the principal variation with `by`, `name` and `spots`.
    simulations, of:     number of simulations made so far, and in all.
    choice:              the name of the move that the player chooses, in the last event.
    judge:               a sentence about the strength of a player that searches, in the last event.
    hopeless:            whether it would resign, in the last event.
    """

    def run(report: Report) -> Event:
        if isinstance(player, AgentPlayer):
            player.on_wait = lambda: report({})  # which ends the search when the visitor leaves
        if not isinstance(player, Bot):
            return {"choice": position.action_name(player.choose_all([position])[0])}

        def show(slots: SearchSlots) -> None:
            report(describe(slots.result_with_lines(0), of=slots.budget()))

        def describe(result: SearchResult, *, of: int, lines: int = 0) -> Event:
            names = map(position.action_name, map(int, result.actions))
            policy = dict(zip(names, result.policy.tolist(), strict=True))
            infos: list[dict[str, object]] = []
            for info in move_infos(position, result):
                infos.append({**info, "policy": round(policy[info["move"]], 4)})
                if info["order"] < lines:
                    infos[-1]["line"] = line_of(position, info["pv"])
            return {
                "simulations": result.simulations,
                "of": of,
                "moveInfos": infos,
                "rootInfo": root_info(position, result),
            }

        result = player.search([position], on_batch=at_intervals(EVENT_SECONDS, show))[0]
        choice = position.action_name(player.select_action(result))
        of = result.simulations if player.clock else player.simulations
        judge = explained(f"The judge: {player.strength().text}.")
        hopeless = is_hopeless(result)
        return {**describe(result, of=of, lines=3), "choice": choice, "judge": judge, "hopeless": hopeless}

    return run


def line_of(position: Game, names: Sequence[str]) -> list[dict[str, object]]:
    """Return up to six moves `names` from `position` on, up to the first roll, each with its places on the board."""
    line: list[dict[str, object]] = []
    for name in names[:6]:
        if is_chance(position):
            break
        line.append({"by": int(position.to_play), "name": name, "spots": _spots(board_of(position), name)})
        position = position.play_unchecked(position.parse_action(name))
    return line


def network_view(bot: Bot, position: Game) -> dict[str, object]:
    """Return the network's input in `position`, and its output without a search.

    planes:  the observation, `[planes][rows][columns]` numbers, from the point of view of the player to move.
    policy:  [name, probability] of each legal action, the likeliest first.
    wdl:     win, draw and loss of the player to move.
    lead:    expected points by which the player to move wins; null if the network does not estimate them.
    board:   the expected final board, `[planes][rows][columns]` from -1 to 1 for the player to move, or null.
    """
    result, board = bot.with_simulations(0).search([position])[0], bot.final_board(position)
    value, draw = result.network_value, result.network_draw
    order = np.argsort(-result.prior, kind="stable")
    return {
        "planes": np.asarray(position.observe(), np.float32).round(4).tolist(),
        "policy": [[position.action_name(int(result.actions[i])), round(float(result.prior[i]), 4)] for i in order],
        "wdl": [round(each, 4) for each in ((1 - draw + value) / 2, draw, (1 - draw - value) / 2)],
        "lead": None if result.score is None else round(result.score, 2),
        "board": None if board is None else board.round(3).tolist(),
    }
