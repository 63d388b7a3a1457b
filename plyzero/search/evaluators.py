"""The interface of evaluators, such as networks, and two without a network: uniform and random playouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.chance import MAX_ROLLS, roll_at, rolled
from plyzero.rules.compiled_game import CompiledGame, Rules
from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.search import rule_calls
from plyzero.search.numba_kernel import cached_njit
from plyzero.search.rule_calls import addresses

MAX_LOGIT: Final = 1e4
"""Largest absolute value of a logit that is accepted."""

MAX_OBSERVATION: Final = 65504.0
"""Largest absolute value of a number in an observation: the largest of half precision, in which a GPU computes."""

MAX_DEVIATION: Final = 0.01
"""Largest deviation of win, draw and loss from a distribution; half precision needs some of it."""


class EvaluationBatch:
    """A batch of n unfinished positions to evaluate.

    observations: `[n, C, H, W]` float32, seen by the player to move.
    """

    def __init__(self, observations: NDArray[np.float32], positions: Callable[[], Sequence[Game]]) -> None:
        self.observations = observations
        self._positions = positions

    def positions(self) -> Sequence[Game]:
        """Return the positions themselves. They are made on demand: a network never needs them."""
        return self._positions()


class Evaluation(NamedTuple):
    """The evaluation of n positions, each for its player to move.

    logits: `[n, A]` float32, policy before the softmax; illegal actions may hold anything finite.
    wdl:    `[n, 3]` float32, probabilities of win, draw and loss; the value is win minus loss. In a game with points it
            may be `[n, 4]`, with the expected score as a share of max_score.
    """

    logits: NDArray[np.float32]
    wdl: NDArray[np.float32]


def find_fault(evaluation: Evaluation, n: int, num_actions: int, *, has_score: bool = True) -> str | None:
    """Return a sentence about an impossible evaluation of `n` positions; None if it is possible.

    has_score: whether the game has points, so that there may be an expected score.
    """
    logits, wdl = evaluation
    is_formed = logits.shape == (n, num_actions) and wdl.shape in ((n, 3), (n, 4 if has_score else 3))
    if not is_formed or logits.dtype != wdl.dtype or wdl.dtype != np.float32:
        return f"its outputs have the shapes {logits.shape} and {wdl.shape}, expected {(n, num_actions)} and {(n, 3)}"
    if is_possible(np.ascontiguousarray(logits), np.ascontiguousarray(wdl)):
        return None
    for name, numbers in (("scores", wdl[:, 3:]), ("logits", logits)):
        if not (np.abs(numbers) <= MAX_LOGIT).all():
            return f"its {name} are not finite numbers between -{MAX_LOGIT:g} and {MAX_LOGIT:g} for every position"
    return "its wdl are not finite numbers that are probabilities for every position"


def is_evaluable(observations: NDArray[np.generic]) -> bool:
    """Return whether all numbers of some observations are finite and at most MAX_OBSERVATION, so that no network has a
    reason to fail at them."""
    if not observations.size or observations.dtype.kind == "b":
        return True
    return bool(observations.max() <= MAX_OBSERVATION and observations.min() >= -MAX_OBSERVATION)  # NaN is neither


@cached_njit
def is_possible(logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> bool:
    """Return whether logits, `[n, A]`, and probabilities, `[n, 3]` or with scores `[n, 4]`, are within their limits.

    Every batch is checked, so this is one pass without arrays in between. A comparison with NaN is false.
    """
    possible = True
    for i in range(len(wdl)):
        for action in range(logits.shape[1]):
            possible &= abs(logits[i, action]) <= MAX_LOGIT
        possible &= abs(wdl[i, 0] + wdl[i, 1] + wdl[i, 2] - 1) <= MAX_DEVIATION
        possible &= min(wdl[i, 0], wdl[i, 1], wdl[i, 2]) >= -MAX_DEVIATION
        if wdl.shape[1] == 4:
            possible &= abs(wdl[i, 3]) <= MAX_LOGIT
    return possible


class Evaluate(Protocol):
    """An evaluator: any callable with this signature can take the network's place."""

    def __call__(self, batch: EvaluationBatch, /) -> Evaluation:
        """Return the evaluation of `batch`; row i belongs to position i and depends on nothing else."""
        ...


class Uniform:
    """All actions are equally probable and every position is a draw. Self-play starts with it."""

    def __init__(self, num_actions: int) -> None:
        self.num_actions = num_actions

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        n = len(batch.observations)
        logits = np.zeros((n, self.num_actions), np.float32)
        wdl = np.tile(np.array([0, 1, 0], np.float32), (n, 1))
        return Evaluation(logits, wdl)


class Rollouts:
    """All actions are equally probable; the value is the outcome of one random playout. With PUCT this is pure MCTS."""

    def __init__(self, num_actions: int, rng: np.random.Generator) -> None:
        self.num_actions = num_actions
        self.rng = rng

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        positions = batch.positions()
        wdl = np.zeros((len(positions), 3), np.float32)
        for i, position in enumerate(positions):
            wdl[i, 1 - self._playout(position)] = 1
        return Evaluation(np.zeros((len(positions), self.num_actions), np.float32), wdl)

    def _playout(self, position: Game) -> int:
        mover = position.to_play
        if isinstance(position, CompiledGame):
            rules, seed = position.rules, int(self.rng.integers(1 << 32))
            state, mask = position.state.copy(), np.zeros(self.num_actions, np.bool_)
            chances = np.zeros(position.num_chances, np.float32)
            code = random_playout(state, mask, chances, position.max_plies, seed, addresses(rules))
            if code == DRAW:
                return 0
            return 1 if code == mover else -1
        for _ in range(position.max_plies):
            outcome = position.outcome()
            if outcome is not None:
                return outcome.value(mover)
            legal = position.legal_actions()
            position = rolled(position.play_unchecked(legal[int(self.rng.integers(len(legal)))]), self.rng)
        return 0


@cached_njit
def random_playout(
    state: NDArray[np.uint8],
    mask: NDArray[np.bool_],
    chances: NDArray[np.float32],
    max_plies: int,
    seed: int,
    rules: Rules,
) -> int:
    """Play random moves on `state`, in place, to the end; return the outcome code, DRAW after `max_plies`.

    mask, chances: `[A]` and `[K]`, room for the legal actions and for the probabilities of rolls.
    """
    np.random.seed(seed)
    for _ in range(max_plies):
        code = rule_calls.outcome(rules, state)
        if code != ONGOING:
            return code
        mask[:] = False
        rule_calls.legal(rules, state, mask)
        skip = np.random.randint(mask.sum())
        for action in range(len(mask)):
            if mask[action]:
                if skip == 0:
                    rule_calls.play(rules, state, action)
                    break
                skip -= 1
        for _ in range(MAX_ROLLS):
            if not rule_calls.is_chance(rules, state, chances):
                break
            rule_calls.play(rules, state, roll_at(chances, np.random.random()))
    code = rule_calls.outcome(rules, state)
    return code if code != ONGOING else DRAW


class Answer(NamedTuple):
    """The evaluation of the positions of one call, and the model that has evaluated all of them."""

    evaluation: Evaluation
    fence: int
    step: int
    label: str


class Call(Protocol):
    """A batch that is on its way to another process."""

    def answer(self) -> Answer | None:
        """Wait for the answer and return it; None if there will be none."""


class RemoteEvaluator(Protocol):
    """An evaluator of positions in another process.

    is_ready: whether the next batch should be sent.
    label:    the name of the model in the last answer; None before the first one.
    """

    is_ready: bool
    label: str | None

    def refresh(self) -> None:
        """Look from time to time whether a server that has failed answers again; never waits."""

    def send(self, batch: EvaluationBatch) -> Call:
        """Send a batch on its way, and return at once. The observations may change as soon as this has returned."""

    def close(self) -> None:
        """End the connection."""
