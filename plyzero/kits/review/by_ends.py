"""Judging turns of a game with dice by their ends: the value of a turn is the expectation over the rolls after it.

The turn that was played is compared with those that searches of its positions suggest. The values of all of them are
found in the same way: by a search after each possible roll.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from plyzero.kits.review.turns import Rolls, Turn
from plyzero.kits.review.verdicts import Verdict, seen_by
from plyzero.rules.chance import is_chance
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

if TYPE_CHECKING:
    from plyzero.kits.review.values import Valuer
    from plyzero.search.slots import SearchResult

SUGGESTED: Final = 3
"""Number of turns that the search of a position suggests, besides the one played."""

COMPLETING: Final = 16
"""Number of simulations for a move of a suggested turn that the search has not reached."""


class EndsJudging:
    """The judgement of a game by the values of the ends of turns.

    `ends` has for each turn the moves of the turns that are compared and their values, the one played first.
    """

    def __init__(
        self,
        valuer: Valuer,
        positions: Sequence[Game],
        turns: Sequence[Turn],
        rolls: Sequence[Rolls],
    ) -> None:
        self._valuer = valuer
        self._positions, self._turns, self._rolls = positions, turns, rolls
        self._first = 1 if positions[0].awaits_setup else 0  # a set-up is no luck
        self._ends: list[dict[tuple[int, ...], float]] = [{} for _ in turns]
        self._lone: dict[int, float] = {}  # ply -> value of a position at the border of the game
        self._found: dict[int, SearchResult] = {}

    def cost(self, number: int, simulations: int) -> int:
        """Return about the number of simulations that a search of the turn with this number takes."""
        turn = self._turns[number]
        if not turn.has_choice:
            return self._valuer.cost(turn.after, simulations)
        return (1 + len(turn.moves) + SUGGESTED) * simulations

    def search(self, numbers: Iterable[int], simulations: int) -> None:
        """Compare the turns with these numbers with others; at first also evaluate the borders of the game."""
        chosen = [*numbers]
        choices = [
            (number, i)
            for number in chosen
            for i, position in enumerate(self._turns[number].positions)
            if len(position.legal_actions()) > 1
        ]
        asked = [self._turns[number].positions[i] for number, i in choices]
        results = self._valuer.search(asked, simulations)
        compared = {number: [self._turns[number].moves] for number in chosen}
        for (number, i), result in zip(choices, results, strict=True):
            turn = self._turns[number]
            self._found[turn.ply + i] = result
            compared[number] += self._suggested(turn, i, result)
        distinct = {number: _with_distinct_ends(self._turns[number], compared[number]) for number in chosen}
        ends = [(number, moves, end) for number in chosen for moves, end in distinct[number]]
        values = self._valuer.of_ends([end for _, _, end in ends], simulations)
        for number in chosen:
            self._ends[number] = {}
        for (number, moves, _), value in zip(ends, values, strict=True):
            self._ends[number][moves] = value
        if not self._lone:
            plies = [self._first, len(self._positions) - 1]
            borders = self._valuer.of_ends([self._positions[ply] for ply in plies], simulations)
            self._lone = dict(zip(plies, borders, strict=True))

    def searches_of(self, number: int) -> set[int]:
        """Return the turns whose searches give the loss of a turn: itself."""
        return {number}

    def unconfirmed(self, number: int, simulations: int) -> Sequence[tuple[int, int]]:
        """Return (): all turns that are compared are searched in the same way."""
        return ()

    def confirm(self, numbers: Iterable[int], simulations: int) -> None:
        """Do nothing."""

    def verdicts(self, margins: Sequence[float]) -> list[Verdict]:
        """Return the verdict on each turn. `margins` is not needed here: both sides are found in the same way."""
        verdicts: list[Verdict] = []
        later: float | None = None  # the value before the turn that follows
        for turn, ends in zip(self._turns[::-1], self._ends[::-1], strict=True):
            after = ends[turn.moves]
            if later is not None and not is_chance(turn.after):
                after = later  # the opponent moves at once, so the position is judged already
            values = {**ends, turn.moves: after}
            best = max(values, key=lambda moves: turn.sign() * values[moves] + (moves == turn.moves) * 1e-9)
            later = values[best]
            verdicts.insert(0, Verdict(later, after, best, is_exact=False))
        return verdicts

    def values(self, verdicts: Sequence[Verdict]) -> list[float]:
        """Return the value of every position of the game; that before a set-up has the value after it."""
        values = [self._lone[self._first]] * len(self._positions)
        values[-1] = self._lone[len(self._positions) - 1]
        for turn, verdict in zip(self._turns, verdicts, strict=True):
            values[turn.ply : turn.end] = [verdict.before] * len(turn.moves)
            values[turn.end] = verdict.after if turn.end < len(self._positions) - 1 else values[-1]
        for rolls in self._rolls:
            values[rolls.ply + 1 : rolls.end] = [values[rolls.ply]] * (len(rolls.names) - 1)
        return values

    def winrates(self, verdicts: Sequence[Verdict]) -> list[float | None]:
        """Return the expected score of player 0 in every position; None where no player chooses, but the end."""
        if self._valuer.unit == "score":
            return [*self.values(verdicts)]
        winrates: list[float | None] = [None] * len(self._positions)
        for ply, result in self._found.items():
            winrates[ply] = seen_by(self._positions[ply].to_play, (1 + result.value) / 2, "score")
        outcome = self._positions[-1].outcome()
        if outcome is not None:
            winrates[-1] = (1 + outcome.value(0)) / 2
        return winrates

    def leads(self) -> list[float | None]:
        """Return the points by which player 0 is expected to lead in every position; None where they are not known."""
        leads: list[float | None] = [None] * len(self._positions)
        for ply, result in self._found.items():
            if result.score is not None:
                leads[ply] = seen_by(self._positions[ply].to_play, result.score, "points")
        return leads

    def draws(self) -> list[float | None]:
        """Return the probability of a draw in every position; None where no player chooses."""
        return [self._found[ply].draw if ply in self._found else None for ply in range(len(self._positions))]

    def line(self, ply: int, moves: Sequence[int]) -> tuple[int, ...]:
        """Return `moves`: the rolls after a turn are not known, so nothing is expected to follow."""
        return tuple(moves)

    def _suggested(self, turn: Turn, i: int, result: SearchResult) -> list[tuple[int, ...]]:
        """Return the turns that begin as the one played, up to its move `i`, and go on as a search suggests."""
        order = np.argsort(-result.visits, kind="stable")[: SUGGESTED + 1].tolist()
        lines = [result.principal_variations[j] for j in order if result.visits[j]]
        return [self._whole_turn(turn, turn.moves[:i] + line) for line in lines]

    def _whole_turn(self, turn: Turn, moves: Sequence[int]) -> tuple[int, ...]:
        """Return those of `moves` that belong to the turn, and what a short search adds until it is over."""
        position, played = turn.positions[0], list[int]()
        rest = [*moves]
        while position.outcome() is None and not is_chance(position) and position.to_play == turn.by:
            if not rest:
                (result,) = self._valuer.search([position], COMPLETING)
                rest.append(result.best_action())
            played.append(rest.pop(0))
            position = position.play_unchecked(played[-1])
        return tuple(played)


def _with_distinct_ends(turn: Turn, compared: Iterable[tuple[int, ...]]) -> list[tuple[tuple[int, ...], Game]]:
    """Return the turns that end in different positions, with these; the first of equal ones."""
    found: dict[Hashable, tuple[tuple[int, ...], Game]] = {}
    for moves in compared:
        end = turn.positions[0]
        for move in moves:
            end = end.play_unchecked(move)
        key: Hashable = end.state.tobytes() if isinstance(end, CompiledGame) else tuple(moves)
        found.setdefault(key, (tuple(moves), end))
    return [*found.values()]
