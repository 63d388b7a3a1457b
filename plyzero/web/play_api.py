"""A game as JSON, for the page on which it is played: positions, searches, the network's view.

The state of a game is its list of moves, which every request brings; nothing is kept here but networks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from plyzero.errors import UserError
from plyzero.play.analysis import move_infos, root_info
from plyzero.play.players import Bot, Player
from plyzero.rules.board import Board, board_of
from plyzero.rules.board_svg import UNIT, render_svg
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, move_name, roll_dice
from plyzero.rules.game import Game, Outcome
from plyzero.rules.notation import play_named
from plyzero.search.evaluators import EvaluationBatch
from plyzero.search.slots import SearchResult, SearchSlots
from plyzero.web.searches import Event, Report

MAX_TEXT: Final = 100_000
"""Length of a list of moves above which it is refused."""

EVENT_SECONDS: Final = 0.1
"""Time between two events of a search."""

MAX_LINE: Final = 6
"""So many moves of a principal variation are drawn."""


def parse_moves(game: GameSpec, text: str) -> tuple[list[Game], list[int]]:
    """Return the positions and the moves of a list of names with blanks in between.

    Raises UserError for a move that is not legal.
    """
    if len(text) > MAX_TEXT:
        raise UserError(f"expected at most {MAX_TEXT} characters of moves, got {len(text)}")
    try:
        return play_named(game.start, text.split())
    except ValueError as error:
        raise UserError(str(error)) from error


def describe_position(game: GameSpec, text: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return the position after the moves `text`, and after the rolls that follow if chance moves.

    moves:   the names of all moves and rolls, the new rolls among them.
    movers:  the player who made each, null for a roll.
    svg:     the board as an SVG element whose cells carry their names; null if the game has no board.
    text:    the position as text.
    toPlay:  0 or 1.
    legal:   of each legal action its `name`, the `path` of cells to click on, and the `spots` where it is drawn, in
             units of the picture. An action without cells has an empty path.
    outcome: null while the game goes on, otherwise {"winner": 0, 1, or null for a draw}.
    """
    positions, moves = parse_moves(game, text)
    _, rolls = roll_dice(positions[-1], rng)
    for roll in rolls:
        positions.append(positions[-1].play_unchecked(roll))
    moves += rolls
    position, board = positions[-1], board_of(positions[-1])
    movers = [None if is_chance(each) else int(each.to_play) for each in positions[:-1]]
    return {
        "moves": [move_name(each, move) for each, move in zip(positions, moves, strict=False)],
        "movers": movers,
        "svg": None if board is None else _draw(board, positions, movers),
        "text": str(position),
        "toPlay": int(position.to_play),
        "legal": [_action(position, board, action) for action in map(int, position.legal_actions())],
        "outcome": _outcome(position.outcome()),
    }


def _draw(board: Board, positions: Sequence[Game], movers: Sequence[int | None]) -> str:
    """Return the picture of the last of `positions`, in which what the last move of a player changed is marked."""
    last = max((ply for ply, mover in enumerate(movers) if mover is not None), default=None)
    before = None if last is None else board_of(positions[last])
    return render_svg(board, last=board.changed(before) if before else (), style=False)


def _action(position: Game, board: Board | None, action: int) -> dict[str, Any]:
    name = position.action_name(action)
    path = board.path(name) if board else ()
    return {"name": name, "path": path, "spots": _spots(board, path)}


def _spots(board: Board | None, path: Sequence[str]) -> list[tuple[float, float]]:
    """Return where the cells of a path are: a move begins at the piece that it lifts."""
    if board is None or not path:
        return []
    first = [board.lifted(path[0])] if len(path) > 1 else []
    cells = [*first, *(board.landing(name) for name in path[len(first) :])]
    return [(UNIT * cell.x, UNIT * cell.y) for cell in cells]


def _outcome(outcome: Outcome | None) -> dict[str, Any] | None:
    return None if outcome is None else {"winner": outcome.winner}


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
    simulations, of:     how many are made, and how many there will be.
    choice:              the name of the move that the player chooses, in the last event.
    """

    def run(report: Report) -> Event:
        if not isinstance(player, Bot):
            return {"choice": position.action_name(player.choose_all([position])[0])}
        due = 0.0

        def on_batch(slots: SearchSlots) -> None:
            nonlocal due
            if slots.simulations() and time.monotonic() >= due:
                due = time.monotonic() + EVENT_SECONDS
                report(describe(slots.result_with_lines(0)))

        def describe(result: SearchResult) -> Event:
            policy = {int(action): float(share) for action, share in zip(result.actions, result.policy, strict=True)}
            infos = move_infos(position, result)
            for info in infos:
                info["policy"] = round(policy[position.parse_action(info["move"])], 4)
            return {
                "simulations": result.simulations,
                "of": player.simulations,
                "moveInfos": infos,
                "rootInfo": root_info(position, result),
            }

        result = player.search([position], on_batch=on_batch)[0]
        event = describe(result)
        for info in event["moveInfos"][:3]:
            info["line"] = _line(position, info["pv"])
        return {**event, "choice": position.action_name(player.select_action(result))}

    return run


def _line(position: Game, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the moves `names` from `position` on, up to the first roll, each with its places on the board then."""
    line: list[dict[str, Any]] = []
    for name in names[:MAX_LINE]:
        if is_chance(position):
            break
        board = board_of(position)
        spots = _spots(board, board.path(name)) if board else []
        line.append({"by": int(position.to_play), "name": name, "spots": spots})
        position = position.play_unchecked(position.parse_action(name))
    return line


def network_view(bot: Bot, position: Game) -> dict[str, Any]:
    """Return what the network sees in `position`, and what it answers without a search.

    planes:  the observation, `[planes][rows][columns]` numbers, from the point of view of the player to move.
    policy:  [name, probability] of each legal action, the likeliest first.
    wdl:     win, draw and loss of the player to move.
    """
    observation = np.asarray(position.observe(), np.float32)
    logits, wdl = bot.evaluate(EvaluationBatch(observation[np.newaxis], lambda: [position]))
    legal = np.asarray(position.legal_actions())
    weights = np.exp(logits[0, legal] - logits[0, legal].max())
    order = np.argsort(-weights, kind="stable")
    return {
        "planes": observation.round(4).tolist(),
        "policy": [[position.action_name(int(legal[i])), round(float(weights[i] / weights.sum()), 4)] for i in order],
        "wdl": [round(float(each), 4) for each in wdl[0]],
    }
