"""Results of a search in the forms that GTP controllers show: lines of `info`, and the graphics of GoGui."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from plyzero.errors import UserError, shown
from plyzero.kits.engines.points import Points, spell
from plyzero.play.found_moves import move_infos
from plyzero.play.players import Bot
from plyzero.rules.chance import is_chance
from plyzero.rules.game import Game, board_of
from plyzero.search.slots import SearchResult, SearchSlots

COLOURS: Final = ("black", "white")
"""The colours of players 0 and 1."""


class Request(NamedTuple):
    """The arguments of an analysis.

    colour:   the player to move, if the controller names it.
    interval: seconds between two lines.
    moves:    largest number of moves in a line.
    """

    colour: str | None = None
    interval: float = 1.0
    moves: int = 1_000_000


class _InterruptedError(Exception):
    """Further input has arrived."""


def parse_request(words: Sequence[str]) -> Request:
    """Return the request in `[COLOUR] [CENTISECONDS] [KEY VALUE]...`.

    The keys are `interval` and `maxmoves`; others, such as ownership, are ignored. Raises UserError for words that are
    not in this form, and for keys that leave out moves, which is not supported.
    """
    left = list(words)
    request = Request()
    if left and left[0].lower() in ("b", "w", *COLOURS):
        request = request._replace(colour=left.pop(0))
    if left and left[0].isdecimal():
        left.insert(0, "interval")
    if len(left) % 2:
        raise UserError(f"syntax error: expected [COLOUR] [CENTISECONDS] [KEY VALUE]..., got {shown(' '.join(words))}")
    for key, value in zip(left[::2], left[1::2], strict=True):
        if key in ("allow", "avoid"):
            raise UserError(f"{key} is not supported: an analysis is about all moves")
        if key not in ("interval", "maxmoves"):
            continue
        if not (value.isdecimal() and len(value) < 7 and int(value) > 0):
            raise UserError(f"syntax error: expected {key} and a number from 1 on, got {shown(value)}")
        if key == "interval":
            request = request._replace(interval=int(value) / 100)
        else:
            request = request._replace(moves=int(value))
    return request


def watch_search(
    bot: Bot, position: Game, show: Callable[[SearchResult], None], has_input: Callable[[float], bool], interval: float
) -> None:
    """Search `position` and show the result every `interval` seconds, also after the end of the search.

    It makes 10,000 simulations, or the bot's number for a move if that is larger.

    has_input: waits up to a number of seconds for input and returns whether there is some; it ends the search.
    """
    due = time.monotonic() + interval

    def on_batch(slots: SearchSlots) -> None:
        nonlocal due
        if has_input(0):
            raise _InterruptedError
        if slots.simulations() and time.monotonic() >= due:
            show(slots.result_with_lines(0))
            due = time.monotonic() + interval

    try:
        simulations = 10_000 if bot.clock else max(10_000, bot.simulations)
        result = bot.with_clock(None, simulations=simulations).search([position], on_batch=on_batch)[0]
    except _InterruptedError:
        return
    show(result)
    while not has_input(interval):
        show(result)


def info_line(position: Game, result: SearchResult, points: Points | None, *, moves: int, in_10000ths: bool) -> str:
    """Return the visited moves, the best first and at most `moves`, as `info move M visits V ... pv M ...`.

    in_10000ths: winrate and prior are from 0 to 10000, as in Leela Zero, instead of 0 to 1, as in KataGo.
    """

    def written(share: float) -> str:
        return f"{10_000 * share:.0f}" if in_10000ths else f"{share:.4f}"

    spelled = {position.action_name(action): words for action, words in spell(position, points).items()}
    found = []
    for info in move_infos(position, result)[:moves]:
        if not info["visits"] and info["order"]:
            continue
        winrate = (1 + result.value) / 2 if info["winrate"] is None else info["winrate"]
        move = spelled[info["move"]]
        line = " ".join([*move, *_continuation(position, info["pv"], points)])
        found.append(
            f"info move {move[0]} visits {info['visits']} winrate {written(winrate)} prior {written(info['prior'])} "
            f"order {info['order']} pv {line}"
        )
    return " ".join(found)


def _continuation(position: Game, names: Sequence[str], points: Points | None) -> list[str]:
    """Return the words of the moves that follow the first of `names`, up to a roll."""
    words: list[str] = []
    for name, after in pairwise(names):
        position = position.play_unchecked(position.parse_action(name))
        if is_chance(position):
            break
        board = board_of(position)
        path = points.path(board, after) if points and board else ()
        words += path or (after,)
    return words


def policy_graphics(position: Game, result: SearchResult, points: Points) -> str:
    """Return the network's policy in GoGui's graphics: as influence, and from 1 % on as labels in percent."""
    shares: dict[str, float] = {}
    for place, prior in zip(_landings(position, result, points), result.prior.tolist(), strict=True):
        shares[place] = shares.get(place, 0) + prior
    percents = {place: f"{100 * share:.0f}" for place, share in shares.items() if share >= 0.01}
    text = _chances(position, result.network_value, result.network_draw)
    return _graphics(position, shares, percents, f"without search, {text}")


def value_graphics(position: Game, result: SearchResult, points: Points) -> str:
    """Return the values of the moves after a search in GoGui's graphics.

    The influence of a point is its share of the simulations; its label is the expected score of the best move to it, in
    percent.
    """
    shares: dict[str, float] = {}
    scores: dict[str, float] = {}
    places = _landings(position, result, points)
    for place, visits, q in zip(places, result.visits.tolist(), result.q.tolist(), strict=True):
        if visits and not math.isnan(q):
            shares[place] = shares.get(place, 0) + visits / max(1, result.simulations)
            scores[place] = max(scores.get(place, 0), (1 + q) / 2)
    text = _chances(position, result.value, result.draw)
    labels = {place: f"{100 * score:.0f}" for place, score in scores.items()}
    return _graphics(position, shares, labels, f"after {result.simulations} simulations, {text}")


def _landings(position: Game, result: SearchResult, points: Points) -> list[str]:
    """Return the point on which each action of a search lands; "" if it has none."""
    board = board_of(position)
    names = [position.action_name(action) for action in result.actions.tolist()]
    paths = [points.path(board, name) if board else () for name in names]
    return [path[-1] if path else "" for path in paths]


def _graphics(position: Game, influence: dict[str, float], labels: dict[str, str], text: str) -> str:
    """Return GoGui's commands for squares, black ones for player 0 and white ones for player 1, labels and a text."""
    sign = 1 if position.to_play == 0 else -1
    squares = [f"{place} {sign * share:.3f}" for place, share in influence.items() if place]
    percents = [f"{place} {label}" for place, label in labels.items() if place]
    lines = []
    if squares:
        lines.append(f"INFLUENCE {' '.join(squares)}")
    if percents:
        lines.append(f"LABEL {' '.join(percents)}")
    lines.append(f"TEXT {text}")
    return "\n".join(lines)


def _chances(position: Game, value: float, draw: float) -> str:
    """Return a value of the player to move in words."""
    win = max(0.0, (1 - draw + value) / 2)
    return f"{COLOURS[position.to_play]} wins with {100 * win:.0f} % and draws with {100 * draw:.0f} %"
