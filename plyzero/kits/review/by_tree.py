"""Judging turns of a game without dice by the tree of each position, from the end of the game backwards.

The value of a move is known better after it than before it. So the value of a position is the value of the position
after the move played, or of the best other move if that is larger: nobody gains by a move, and where the value falls,
the move played there has lost it. A search thinks too well of moves that it has not played out, so where a loss
matters, the position after the better move is searched as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plyzero.kits.review.turns import Turn
from plyzero.kits.review.verdicts import Verdict, seen_by
from plyzero.rules.game import Game
from plyzero.search.tree import PROVEN_WIN, UNPROVEN

if TYPE_CHECKING:
    from plyzero.kits.review.values import Valuer
    from plyzero.search.slots import SearchResult


class Known(NamedTuple):
    """The value of a position for player 0, and whether it is exact."""

    value: float
    is_exact: bool


class Confirmed(NamedTuple):
    """The value for player 0 after a move that was not played, by so many simulations of the position after it."""

    value: float
    simulations: int


class TreeJudging:
    """The judgement of a game whose positions are searched."""

    def __init__(self, valuer: Valuer, positions: Sequence[Game], moves: Sequence[int], turns: Sequence[Turn]) -> None:
        self._valuer = valuer
        self._positions, self._moves, self._turns = positions, moves, turns
        self._results: dict[int, SearchResult] = {}
        self._confirmed: dict[int, dict[int, Confirmed]] = {}  # ply -> a move that was not played -> the value after it

    def cost(self, number: int, simulations: int) -> int:
        """Return the number of simulations that a search of the turn with this number takes."""
        return len(self._turns[number].moves) * simulations

    def search(self, numbers: Iterable[int], simulations: int) -> None:
        """Search all positions of the turns with these numbers, and at first the last position of the game."""
        plies = [ply for number in numbers for ply in range(self._turns[number].ply, self._turns[number].end)]
        last = len(self._positions) - 1
        if last not in self._results and self._positions[last].outcome() is None:
            plies.append(last)
        results = self._valuer.search([self._positions[ply] for ply in plies], simulations)
        self._results |= dict(zip(plies, results, strict=True))

    def searches_of(self, number: int) -> set[int]:
        """Return the turns whose searches give the loss of a turn: the value after it is that before the next one."""
        return {number, min(number + 1, len(self._turns) - 1)}

    def unconfirmed(self, number: int, simulations: int) -> list[tuple[int, int]]:
        """Return (ply, move) for the best other moves of a turn not yet confirmed with so many simulations."""
        turn = self._turns[number]
        found: list[tuple[int, int]] = []
        for ply in range(turn.ply, turn.end):
            best = self._best_other(ply)
            known = self._confirmed.get(ply, {}).get(best) if best is not None else None
            if best is not None and (known is None or known.simulations < simulations):
                found.append((ply, best))
        return found

    def confirm(self, numbers: Iterable[int], simulations: int) -> None:
        """Search the positions after the best other moves of the turns with these numbers."""
        asked = [each for number in numbers for each in self.unconfirmed(number, simulations)]
        values = self._valuer.of_positions(
            [self._positions[ply].play_unchecked(move) for ply, move in asked], simulations
        )
        for (ply, move), value in zip(asked, values, strict=True):
            self._confirmed.setdefault(ply, {})[move] = Confirmed(value, simulations)

    def verdicts(self, margins: Sequence[float]) -> list[Verdict]:
        """Return the verdict on each turn. `margins`, one for each turn: what is smaller is noise."""
        exact = self._exact_values()
        last = len(self._positions) - 1
        after = Known(exact[last], True) if last in exact else Known(self._value_of_last(), False)
        verdicts: list[Verdict] = []
        for turn, margin in zip(self._turns[::-1], margins[::-1], strict=True):
            before, best = after, turn.moves
            for ply in range(turn.end - 1, turn.ply - 1, -1):
                before, better = self._before(ply, before, exact.get(ply), margin)
                if better is not None:
                    best = turn.moves[: ply - turn.ply] + self._line(ply, better)
            is_exact = before.is_exact and after.is_exact
            verdicts.insert(0, Verdict(before.value, after.value, best, is_exact))
            after = before
        return verdicts

    def values(self, verdicts: Sequence[Verdict]) -> list[float]:
        """Return the value of every position of the game; that before a set-up has the value after it."""
        last = verdicts[-1].after if verdicts else self._value_of_last()
        values: list[float] = []
        if self._positions[0].awaits_setup:
            values.append(verdicts[0].before if verdicts else last)
        for turn, verdict in zip(self._turns, verdicts, strict=True):
            values += [verdict.before] * len(turn.moves)
        return [*values, last]

    def winrates(self, verdicts: Sequence[Verdict]) -> Sequence[float | None]:
        """Return the expected score of player 0 in every position: here the values."""
        return self.values(verdicts)

    def leads(self) -> list[float | None]:
        """Return the points by which player 0 is expected to lead in every position; None where they are not known."""
        return [self._lead(ply) for ply in range(len(self._positions))]

    def draws(self) -> list[float | None]:
        """Return the probability of a draw in every position; None at the end of a game."""
        return [self._results[ply].draw if ply in self._results else None for ply in range(len(self._positions))]

    def line(self, ply: int, moves: Sequence[int]) -> tuple[int, ...]:
        """Return the principal variation from the position at `ply` on that begins with the first of `moves`, or the
        best one without any."""
        result = self._results.get(ply)
        if result is None:
            return ()
        first = moves[0] if moves else result.best_action()
        return self._line(ply, int(first))

    def _before(self, ply: int, after: Known, exact: float | None, margin: float) -> tuple[Known, int | None]:
        """Return the value of the position at `ply`, and the move that is better than the one played, if any.

        after: the value after the move played.
        exact: the value of the position if it is certain.
        """
        position, result, move = self._positions[ply], self._results[ply], self._moves[ply]
        best = self._best_other(ply)
        if best is None:
            return Known(after.value if exact is None else exact, after.is_exact or exact is not None), None
        confirmed = self._confirmed.get(ply, {})
        if exact is not None:
            other = exact
        elif best in confirmed:
            order = max if position.to_play == 0 else min
            best = order(confirmed, key=lambda each: confirmed[each].value)
            other = confirmed[best].value
        else:
            value = float(result.q[result.actions == best][0])
            if np.isnan(value):
                return after, None
            other = seen_by(position.to_play, (1 + value) / 2, "score")
        gain = other - after.value if position.to_play == 0 else after.value - other
        is_choice = move == result.best_action()  # the search itself would have played it, so a small loss is noise
        if exact is not None:
            return Known(exact, True), best if gain > 0 else None
        if gain <= (margin if is_choice else 0.0):
            return after, None
        return Known(other, False), best

    def _best_other(self, ply: int) -> int | None:
        """Return the best move but for the one played, by the search of the position at `ply`; None without another."""
        result = self._results[ply]
        others = result.actions != self._moves[ply]
        if not others.any():
            return None
        visits = np.where(others & (result.policy > 0), result.visits, -1)
        if visits.max() <= 0:
            visits = np.where(others, result.visits, -1)
        return int(result.actions[np.lexsort((np.nan_to_num(result.q, nan=-1), visits))[-1]])

    def _line(self, ply: int, move: int) -> tuple[int, ...]:
        """Return the principal variation that begins with `move`."""
        result = self._results[ply]
        return result.principal_variations[int(np.flatnonzero(result.actions == move)[0])]

    def _exact_values(self) -> dict[int, float]:
        """Return ply -> value where it is certain: at the end, where a search has proven it, and after that.

        All positions after a proven loss are lost too. After a proven winning move they are lost for the opponent.
        """
        values: dict[int, float] = {}
        for ply, position in enumerate(self._positions):
            outcome = position.outcome()
            result, before = self._results.get(ply), self._results.get(ply - 1)
            if outcome is not None:
                values[ply] = self._valuer.of_outcome(outcome)
            elif result and result.proven != UNPROVEN:
                values[ply] = seen_by(position.to_play, (1 + result.value) / 2, "score")
            elif before and ply - 1 in values:
                mover = self._positions[ply - 1].to_play
                is_lost = seen_by(mover, values[ply - 1], "score") == 0
                if is_lost or (before.proven == PROVEN_WIN and self._moves[ply - 1] == before.best_action()):
                    values[ply] = values[ply - 1]
        return values

    def _lead(self, ply: int) -> float | None:
        position = self._positions[ply]
        outcome = position.outcome()
        if outcome is not None:
            return None if outcome.score is None else outcome.lead(0)
        result = self._results.get(ply)
        if result is None or result.score is None:
            return None
        return seen_by(position.to_play, result.score, "points")

    def _value_of_last(self) -> float:
        return self._valuer.of_result(self._positions[-1], self._results[len(self._positions) - 1])
