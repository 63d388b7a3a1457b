"""The trial of a game of alpha-zero-general by random games: what its class does not say of planes and lengths."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.kits.adapters.azg_boards import BadAnswerError, Channel, as_texts, channel_of
from plyzero.kits.adapters.azg_calls import Calls, shown_moves
from plyzero.rules.game import Outcome

TRIAL_GAMES: Final = 8
MAX_BEGINNINGS: Final = 4  # different initial boards, such as one for each player who may begin; more are shuffled
SETUPS: Final = 64  # initial boards of a game that shuffles, of which a roll draws one
LONGEST_TRIAL: Final = 2000  # plies after which a game is cut off
LEAST_BOUND: Final = 512  # plies, where nothing bounds the length of a game
"""The trial of a game when it is loaded. Its version depends on these."""


class Move(NamedTuple):
    """A move of a random game."""

    board: Any
    player: int
    action: int


class Setups(NamedTuple):
    """The initial boards of a game.

    boards:  those of which a roll draws one; only one if nothing is drawn.
    chances: their probabilities.
    warning: a sentence about what is not as in their game; "" if nothing is.
    """

    boards: list[Any]
    chances: list[float]
    warning: str = ""


def setups_of(calls: Calls) -> Setups:
    """Return the initial boards. Raises ValueError if getInitBoard draws what no other process can draw again."""
    with calls.tried():
        boards = [calls.initial_board(seed) for seed in range(2 * MAX_BEGINNINGS)]
        different = len({calls.content(board) for board in boards})
        if different == 1:
            return Setups(boards[:1], [1.0])
        if any(calls.content(calls.initial_board(seed)) != calls.content(boards[seed]) for seed in (1, 0, 2)):
            raise BadAnswerError(
                "getInitBoard returns different boards where random.seed and np.random.seed were called with the same "
                "number: draw with random or np.random there, so that every process can draw the same boards"
            )
        if different <= MAX_BEGINNINGS:
            warning = "getInitBoard returns different boards; every game begins with the same one"
            return Setups(boards[:1], [1.0], warning)
        boards += [calls.initial_board(seed) for seed in range(len(boards), SETUPS)]
        counts = Counter(map(calls.content, boards))
        drawn = {calls.content(board): board for board in boards}
        warning = f"getInitBoard shuffles the board; every game begins with a roll of one of {len(drawn)} boards"
        return Setups([*drawn.values()], [counts[content] / len(boards) for content in drawn], warning)


def random_games(calls: Calls, setups: list[Any], limit: int) -> list[list[Move]]:
    """Return random games, always the same, as their Arena plays them.

    limit: plies after which a game is cut off; 0 = such a game is an error.
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
            moves.append(Move(board, player, actions[-1]))
            reached, again = (calls.play(*moves[-1]) for _ in range(2))
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
    """Find out whether moves are played as in their Arena, and whether the canonical board shows who is to move.

    Their Arena plays moves on the real board, their search on the canonical one. Where the results differ, the one is
    right whose results are those of two opponents. Return a sentence that names the first such moves, "" if none.
    """
    ends = [calls.play(*game[-1]) for game in games]
    differs = [
        [move.action for move in game[:ply]]
        for game, end in zip(games, ends, strict=True)
        for ply, (board, player) in enumerate([*(move[:2] for move in game), end])
        if calls.outcome(board, player) != turned(calls.outcome(calls.canonical(board, player), 0), player)
    ]
    calls.as_in_search = bool(differs) and any(calls.outcome(board, 0) != calls.outcome(board, 1) for board, _ in ends)
    calls.shows_mover = _is_unturned(calls, games) or (bool(differs) and not calls.as_in_search)
    if not differs:
        return ""
    played = "canonical board, as their search does" if calls.as_in_search else "board itself, as their Arena does"
    return (
        f"after the moves {shown_moves(min(differs, key=len))} getGameEnded gives another result for the canonical "
        f"board than for the board; moves are played on the {played}"
    )


def _is_unturned(calls: Calls, games: list[list[Move]]) -> bool:
    """Return whether the canonical board is the same for both players; some games refuse whoever is not to move."""
    try:
        return all(
            calls.content(calls.canonical(move.board, 0)) == calls.content(calls.canonical(move.board, 1))
            for game in games
            for move in game
        )
    except Exception:
        return False


def turned(outcome: Outcome | None, player: int) -> Outcome | None:
    """Return an `outcome` in which 0 is `player`, with the players as they are."""
    return outcome if outcome is None or outcome.winner is None else Outcome(outcome.winner ^ player)


def channels_of(calls: Calls, games: list[list[Move]]) -> tuple[Channel, ...]:
    """Return how to show each channel of the canonical board."""
    boards = [[calls.channels(calls.canonical(move.board, move.player)) for move in game] for game in games]
    movers = [[move.player for move in game] for game in games]
    return tuple(
        channel_of([[board[number] for board in game] for game in boards], movers)
        for number in range(len(calls.shapes))
    )


def longest_game(calls: Calls, games: list[list[Move]]) -> tuple[int, bool]:
    """Return a bound on the plies of a game, and whether it follows from the board.

    It does where two moves always leave fewer free squares. Otherwise good games may be far longer than random ones.
    """
    filled = [[_filled(calls, move) for move in game] for game in games]
    grows = [later > earlier for game in filled for earlier, later in zip(game, game[2:], strict=False)]
    if all(grows) and len(grows) >= TRIAL_GAMES:
        squares = sum(math.prod(shape) for shape in calls.shapes)
        return 2 * (squares - filled[0][0]), True
    return max(LEAST_BOUND, 2 * max(map(len, games))), False


def _filled(calls: Calls, move: Move) -> int:
    """Return how many squares are not empty before a move: not 0 or, of texts, not the commonest at the start."""
    board, start = (calls.channels(calls.canonical(*each)) for each in (move[:2], (calls.start, 0)))
    count = 0
    for part, initial in zip(board, start, strict=True):
        empty = Counter(as_texts(initial).ravel().tolist()).most_common(1)[0][0] if part.dtype.kind == "U" else 0
        count += int(np.count_nonzero(part != empty))
    return count
