"""The trial of a game of alpha-zero-general: random games show its planes and its length, which its class lacks."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.kits.adapters.azg_boards import BadAnswerError, Channel, as_texts, channel_of
from plyzero.kits.adapters.azg_calls import Calls, shown_moves
from plyzero.rules.game import Outcome

# The version of a game depends on these numbers.

TRIAL_GAMES: Final = 8
"""Number of random games."""

MAX_BEGINNINGS: Final = 4
"""A game with more different initial boards shuffles them; with fewer, each may be for a player who begins."""

SETUPS: Final = 1 << 31
"""Number of set-ups of a game that shuffles its initial board: the seeds of random numbers."""

LONGEST_TRIAL: Final = 2000
"""Number of plies after which a random game is cut off."""

LEAST_BOUND: Final = 512
"""Smallest max_plies of a game whose length has no known bound."""


class Move(NamedTuple):
    """A move of a random game."""

    board: Any
    player: int
    action: int


class Setups(NamedTuple):
    """The initial boards of a game.

    boards:  the boards with which random games begin; a single one if every game begins with it.
    number:  the number of set-ups, which are made by seeds; 0 if every game begins with the same board.
    warning: a sentence about the difference to their game; "" without a difference.
    """

    boards: list[Any]
    number: int = 0
    warning: str = ""


def setups_of(calls: Calls) -> Setups:
    """Return the initial boards. Raises ValueError if getInitBoard is random in a way that a seed does not fix."""
    with calls.tried():
        boards = [calls.initial_board(seed) for seed in range(2 * MAX_BEGINNINGS)]
        different = len({calls.content(board) for board in boards})
        if different == 1:
            return Setups(boards[:1])
        if any(calls.content(calls.initial_board(seed)) != calls.content(boards[seed]) for seed in (1, 0, 2)):
            raise BadAnswerError(
                "getInitBoard returns different boards where random.seed and np.random.seed were called with the same "
                "number: draw with random or np.random there, so that every process can draw the same boards"
            )
        if different <= MAX_BEGINNINGS:
            warning = "getInitBoard returns different boards; every game begins with the same one"
            return Setups(boards[:1], warning=warning)
        return Setups(boards, SETUPS)


def random_games(calls: Calls, setups: list[Any], limit: int) -> list[list[Move]]:
    """Return random games, always the same, played as in their Arena.

    limit: number of plies after which a game is cut off; 0 = an error after LONGEST_TRIAL plies.

    Raises ValueError if a move is random, a position has no legal move, or a game does not end.
    """
    rng = np.random.default_rng(0)
    return [_random_game(calls, setups[number % len(setups)], limit, rng) for number in range(TRIAL_GAMES)]


def _random_game(calls: Calls, board: Any, limit: int, rng: np.random.Generator) -> list[Move]:
    player = 0
    moves: list[Move] = []
    actions: list[int] = []
    with calls.tried(actions):
        while calls.outcome(board, player) is None and not 0 < limit <= len(moves):
            legal = calls.legal(calls.canonical(board, player))
            if not legal:
                raise BadAnswerError("getValidMoves allows no move, and getGameEnded is 0 there")
            if len(moves) == LONGEST_TRIAL:
                raise BadAnswerError(
                    f"a random game has not ended after {LONGEST_TRIAL} moves; (max_plies=...) after the class cuts "
                    "games off"
                )
            actions.append(int(rng.choice(legal)))
            move = Move(board, player, actions[-1])
            moves.append(move)
            reached = calls.play(*move)
            again = calls.play(*move)
            if reached[1] != again[1] or calls.content(reached[0]) != calls.content(again[0]):
                raise BadAnswerError(
                    "getNextState returns different boards for the same move, as with dice: write such a game as a "
                    "class of plyzero, with chances()"
                )
            board, player = reached
        if not moves:
            raise BadAnswerError(
                "getGameEnded is not 0 for the board of getInitBoard: the game is over before the first move"
            )
    return moves


def compare(calls: Calls, games: list[list[Move]]) -> str:
    """Set `as_in_search` and `shows_mover` of `calls`: on which board moves are played, and whether it shows the mover.

    Their Arena plays moves on the board, their search on the canonical board. If the results differ, the one is right
    whose results are those of two opponents. Return a sentence with the first moves after which they differ, "" if
    they never do.
    """
    ends = [calls.play(*game[-1]) for game in games]
    differs: list[list[int]] = []
    for game, end in zip(games, ends, strict=True):
        boards = [(move.board, move.player) for move in game]
        for ply, (board, player) in enumerate([*boards, end]):
            on_board = calls.outcome(board, player)
            on_canonical_board = turned(calls.outcome(calls.canonical(board, player), 0), player)
            if on_board != on_canonical_board:
                differs.append([move.action for move in game[:ply]])
    results_differ = any(calls.outcome(board, 0) != calls.outcome(board, 1) for board, _ in ends) if differs else False
    calls.as_in_search = results_differ
    calls.shows_mover = _is_unturned(calls, games) or (bool(differs) and not calls.as_in_search)
    if not differs:
        return ""
    played = "canonical board, as their search does" if calls.as_in_search else "board itself, as their Arena does"
    return (
        f"after the moves {shown_moves(min(differs, key=len))} getGameEnded gives another result for the canonical "
        f"board than for the board; moves are played on the {played}"
    )


def _is_unturned(calls: Calls, games: list[list[Move]]) -> bool:
    """Return whether the canonical board is the same for both players; False if the game refuses one of them."""
    try:
        for move in itertools.chain.from_iterable(games):
            first, second = (calls.content(calls.canonical(move.board, player)) for player in (0, 1))
            if first != second:
                return False
    except Exception:
        return False
    return True


def turned(outcome: Outcome | None, player: int) -> Outcome | None:
    """Return an `outcome` in which 0 means `player` with the usual numbers of the players."""
    if outcome is None or outcome.winner is None:
        return outcome
    return Outcome(outcome.winner ^ player)


def channels_of(calls: Calls, games: list[list[Move]]) -> tuple[Channel, ...]:
    """Return the planes of each channel of the canonical board."""
    boards = [[calls.channels(calls.canonical(move.board, move.player)) for move in game] for game in games]
    movers = [[move.player for move in game] for game in games]
    channels = []
    for number in range(len(calls.shapes)):
        boards_of_channel = [[board[number] for board in game] for game in boards]
        channels.append(channel_of(boards_of_channel, movers))
    return tuple(channels)


def longest_game(calls: Calls, games: list[list[Move]]) -> tuple[int, bool]:
    """Return a bound on the plies of a game, and whether it follows from the board.

    It does if two moves always leave fewer free squares. Otherwise good games may be far longer than random ones.
    """
    filled = [[_filled(calls, move) for move in game] for game in games]
    grows: list[bool] = []
    for numbers in filled:
        grows += [later > earlier for earlier, later in zip(numbers, numbers[2:], strict=False)]
    if all(grows) and len(grows) >= TRIAL_GAMES:
        squares = sum(math.prod(shape) for shape in calls.shapes)
        return 2 * (squares - filled[0][0]), True
    return max(LEAST_BOUND, 2 * max(map(len, games))), False


def _filled(calls: Calls, move: Move) -> int:
    """Return the number of filled squares before a move. Empty: 0, or the most frequent text of the initial board."""
    board = calls.channels(calls.canonical(move.board, move.player))
    start = calls.channels(calls.canonical(calls.start, 0))
    count = 0
    for part, initial in zip(board, start, strict=True):
        empty: object = 0
        if part.dtype.kind == "U":
            empty = Counter(as_texts(initial).ravel().tolist()).most_common(1)[0][0]
        count += int(np.count_nonzero(part != empty))
    return count
