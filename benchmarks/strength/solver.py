"""Values of every move under perfect play, in compiled games small enough to be searched to the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import DRAW, ONGOING

KEY = types.UniTuple(types.uint64, 2)


class Solver:
    """Exact values, by exhaustive search that stops at a win; remembers every position that it has met.

    Positions are told apart by 128 bits of a hash over all bytes of their states.
    """

    def __init__(self, game: CompiledGame) -> None:
        self._values = numba.typed.Dict.empty(KEY, types.int8)
        self._solve = _solver_of(game)

    def value(self, position: CompiledGame) -> int:
        """Return 1, 0 or -1: what the player to move gets under perfect play."""
        return int(self._solve(position.state, self._values))

    def move_values(self, position: CompiledGame) -> dict[int, int]:
        """Return action -> what the player to move gets with it, for every legal one."""
        following = {action: position.play(action) for action in position.legal_actions()}
        return {
            action: self.value(each) * (1 if each.to_play == position.to_play else -1)
            for action, each in following.items()
        }


def _rules_of(game: CompiledGame) -> tuple[Any, Any, Any, int]:
    """Return the rules play, outcome and legal, and the byte of a state that holds the player to move."""
    assert game.State.fields is not None
    return game.rules.play, game.rules.outcome, game.rules.legal, int(game.State.fields["to_play"][1])


def _solver_of(game: CompiledGame) -> Callable[[NDArray[np.uint8], Any], int]:
    play, outcome, legal, to_play = _rules_of(game)
    num_actions = game.num_actions

    @numba.njit(types.int8(types.uint8[::1], types.DictType(KEY, types.int8)))
    def solve(state: Any, values: Any) -> Any:
        code = outcome(state)
        if code == DRAW:
            return np.int8(0)
        if code != ONGOING:
            return np.int8(1 if code == state[to_play] else -1)
        key = hashed(state)
        if key in values:
            return values[key]
        mask = np.zeros(num_actions, np.bool_)
        legal(state, mask)
        best = -1
        for action in range(num_actions):
            if mask[action] and best < 1:
                after = state.copy()
                play(after, action)
                value = solve(after, values)
                best = max(best, value if after[to_play] == state[to_play] else -value)
        values[key] = np.int8(best)
        return np.int8(best)

    return solve


@numba.njit
def hashed(state: NDArray[np.uint8]) -> tuple[np.uint64, np.uint64]:
    """Return two FNV-1a hashes of `state`, from different bases and with different primes."""
    first, second = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)
    for byte in state:
        first = (first ^ np.uint64(byte)) * np.uint64(0x100000001B3)
        second = (second ^ np.uint64(byte)) * np.uint64(0x9E3779B97F4A7C55)
        second ^= second >> np.uint64(29)
    return first, second


class Distances:
    """Plies to the end under the fastest win and the longest resistance, by exhaustive search to a depth."""

    def __init__(self, game: CompiledGame) -> None:
        self._wins = _wins_within(game)

    def distance(self, position: CompiledGame, plies: int) -> int:
        """Return n if the player to move of a position that is not over wins in n plies, -n if it loses in n, else 0.

        It is 0 if it does neither within `plies`.
        """
        known = numba.typed.Dict.empty(KEY, types.boolean)
        for depth in range(1, plies + 1):
            for winner, sign in ((position.to_play, 1), (1 - position.to_play, -1)):
                if self._wins(position.state, winner, depth, known):
                    return sign * depth
        return 0

    def moves(self, position: CompiledGame, plies: int) -> dict[int, int]:
        """Return action -> `distance` of the position with this move, itself counted, for every legal one."""
        found = {}
        for action in position.legal_actions():
            after = position.play(action)
            outcome = after.outcome()
            if outcome is not None:
                found[action] = int(outcome.value(position.to_play))
            else:
                distance = self.distance(after, plies - 1) * (1 if after.to_play == position.to_play else -1)
                found[action] = distance + int(np.sign(distance))
        return found


def _wins_within(game: CompiledGame) -> Callable[[NDArray[np.uint8], int, int, Any], bool]:
    play, outcome, legal, to_play = _rules_of(game)
    num_actions = game.num_actions

    @numba.njit(types.boolean(types.uint8[::1], types.int64, types.int64, types.DictType(KEY, types.boolean)))
    def wins(state: Any, winner: Any, plies: Any, known: Any) -> Any:
        code = outcome(state)
        if code != ONGOING or plies == 0:
            return code == winner
        first, second = hashed(state)
        key = (first, second + np.uint64(2 * plies + winner))
        if key in known:
            return known[key]
        mask = np.zeros(num_actions, np.bool_)
        legal(state, mask)
        chooses = state[to_play] == winner
        found = not chooses
        for action in range(num_actions):
            if mask[action] and found != chooses:
                after = state.copy()
                play(after, action)
                found = wins(after, winner, plies - 1, known)
        known[key] = found
        return found

    return wins
