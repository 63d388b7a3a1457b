"""Tests of an evaluator: its numbers are possible, rows are independent, and it keeps no batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch, find_fault
from plyzero.testing.decisions import decisions_of


class EvaluatorContract:
    """The tests of an evaluator, at positions of random games.

    ```python
    class TestMaterial(EvaluatorContract):
        game = "breakthrough"

        def evaluator(self):
            return evaluate
    ```

    game:      the name or the class of the game that it evaluates.
    count:     number of positions, and size of the largest batch.
    tolerance: largest difference between the numbers of one position in different batches.
    """

    game: str | type[Game]
    count: int = 9
    tolerance: float = 1e-5

    def evaluator(self) -> Evaluate:
        """Return the evaluator."""
        raise NotImplementedError

    def positions(self) -> list[Game]:
        """Return the positions that it evaluates."""
        return decisions_of(load_game(self.game).start, self.count)

    def test_every_size_of_batch_has_a_row_of_possible_numbers_for_each_position(self) -> None:
        """Logits and probabilities are float32 and finite, and win, draw and loss add up to 1."""
        evaluate, positions = self.evaluator(), self.positions()
        num_actions = positions[0].num_actions
        for size in range(1, len(positions) + 1):
            assert find_fault(evaluate(batch_of(positions[:size])), size, num_actions) is None

    def test_a_row_depends_on_its_position_alone(self) -> None:
        """Neither the other positions of a batch nor their order change it."""
        evaluate, positions = self.evaluator(), self.positions()
        together = evaluate(batch_of(positions))
        reversed_ = evaluate(batch_of(positions[::-1]))
        self._assert_close(Evaluation(reversed_.logits[::-1], reversed_.wdl[::-1]), together)
        for row, position in enumerate(positions):
            expected = Evaluation(together.logits[row : row + 1], together.wdl[row : row + 1])
            self._assert_close(evaluate(batch_of([position])), expected)

    def test_a_batch_is_neither_changed_nor_kept(self) -> None:
        """The search writes the next positions into the same array, and still has the answer."""
        evaluate, positions = self.evaluator(), self.positions()
        batch = batch_of(positions)
        before = batch.observations.copy()
        found = evaluate(batch)
        assert np.array_equal(batch.observations, before)
        answer = Evaluation(found.logits.copy(), found.wdl.copy())
        batch.observations[:] = batch.observations[::-1].copy()
        evaluate(EvaluationBatch(batch.observations, lambda: positions[::-1]))
        assert np.array_equal(found.logits, answer.logits)
        assert np.array_equal(found.wdl, answer.wdl)
        self._assert_close(evaluate(batch_of(positions)), answer)

    def _assert_close(self, found: Evaluation, expected: Evaluation) -> None:
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=self.tolerance)


def batch_of(positions: Sequence[Game]) -> EvaluationBatch:
    """Return the batch of these positions."""
    observations = np.stack([np.asarray(position.observe(), np.float32) for position in positions])
    return EvaluationBatch(observations, lambda: positions)
