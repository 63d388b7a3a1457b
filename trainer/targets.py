"""Training targets: the policy, and the win, draw and loss probabilities, computed from the recorded positions."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.rules.chance import replay_game
from plyzero.rules.game import DRAW, ONGOING, Game, outcome_code
from plyzero.run.records import BY_RULE, UNKNOWN_SCORE, Games
from plyzero.search.numba_kernel import cached_njit
from plyzero.search.policy import policy_target
from plyzero.search.tree import UNPROVEN
from plyzero.settings import SearchSettings, TrainerSettings


class Samples(NamedTuple):
    """Training samples: n positions with L legal actions in all.

    observations:  `[n, K]`, packed bits in uint8 if the game's observations are bool, otherwise the values themselves.
    wdl:           `[n, 3]` float32, target probabilities of win, draw and loss for the player to move.
    num_legal:     `[n]` int64, number of legal actions of each position.
    actions:       `[L]` int64, the legal actions of all positions, in order.
    probabilities: `[L]` float32, the target policy; its sum per position is 1.
    score:         `[n]` float32, as `score_targets` returns it; None = unknown.
    board:         `[n, P, H, W]` float16, as `board_targets` returns it; None = unknown.
    """

    observations: NDArray[np.generic]
    wdl: NDArray[np.float32]
    num_legal: NDArray[np.int64]
    actions: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    score: NDArray[np.float32] | None = None
    board: NDArray[np.float16] | None = None


class Targets(NamedTuple):
    """Training targets of recorded games: N positions with M legal actions in all, in the order of the records.

    is_sample: `[N]` bool, the positions that are trained on; the targets of the others are not used.
    wdl:       `[N, 3]` float32, probabilities of win, draw and loss for the player to move.
    policy:    `[M]` float32, probabilities of the legal actions; their sum per position is 1.
    """

    is_sample: NDArray[np.bool_]
    wdl: NDArray[np.float32]
    policy: NDArray[np.float32]


class MakeTargets(Protocol):
    """The setting `trainer.targets`: any function with this signature can take the place of `mixed_targets`."""

    def __call__(self, games: Games, *, search: SearchSettings, trainer: TrainerSettings) -> Targets:
        """Return the targets of `games`; nothing may depend on more than one game."""
        ...


def mixed_targets(games: Games, *, search: SearchSettings, trainer: TrainerSettings) -> Targets:
    """Return the policy of each search, and values that mix the outcome with the search's values (`value_targets`).

    Samples are the positions with a full search, and those with a proven value: it is exact, no matter how few
    simulations the search had.
    """
    positions = games.positions
    luck = games.luck if trainer.luck_adjustment else None
    return Targets(
        is_sample=(positions["full"] == 1) | ((positions["search"] > 0) & (positions["proven"] != UNPROVEN)),
        wdl=value_targets(games.games, positions, trainer.search_value_weight, trainer.td_lambda, luck),
        policy=policy_targets(positions, games.moves, search.c_visit, search.c_scale),
    )


def played_moves(games: Games, *, search: SearchSettings, trainer: TrainerSettings) -> Targets:
    """Return the moves that were played as the policy, and the results as the values: what imitation learns.

    Samples are all positions but those of random opening moves and those of truncated games, which have no result.
    """
    positions = games.positions
    has_result = np.repeat(games.games["winner"] != ONGOING, games.games["positions"])
    is_played = games.moves["action"] == np.repeat(positions["action"], positions["num_legal"])
    return Targets(
        is_sample=(positions["search"] > 0) & has_result,
        wdl=value_targets(games.games, positions, 0.0, trainer.td_lambda),
        policy=is_played.astype(np.float32),
    )


def make_samples(
    games: Games,
    *,
    search: SearchSettings,
    trainer: TrainerSettings,
    make_targets: MakeTargets = mixed_targets,
    start: Game | None = None,
) -> Samples:
    """Return the samples of `games` with the targets of `make_targets`. Raises UserError if these do not fit.

    start: the initial position, for the score and the final board; without it both are unknown.
    """
    found = make_targets(games, search=search, trainer=trainer)
    is_sample, wdl, policy = _check_targets(found, games, name=trainer.targets)
    positions = games.positions
    legal = np.repeat(is_sample, positions["num_legal"])
    flat = games.observations[is_sample].reshape(int(is_sample.sum()), int(np.prod(games.observations.shape[1:])))
    return Samples(
        observations=np.packbits(flat, axis=1) if flat.dtype.kind == "b" else flat,
        wdl=wdl[is_sample],
        num_legal=positions["num_legal"][is_sample].astype(np.int64),
        actions=games.moves["action"][legal].astype(np.int64),
        probabilities=policy[legal],
        score=score_targets(games, start)[is_sample] if start and start.max_score else None,
        board=board_targets(games, start)[is_sample] if start and start.final_planes else None,
    )


def score_targets(games: Games, start: Game) -> NDArray[np.float32]:
    """Return `[N]`, by what share of max_score the player to move at each position won; NaN where that is unknown."""
    winner, score = (np.repeat(games.games[field], games.games["positions"]) for field in ("winner", "score"))
    is_known = (winner != ONGOING) & (score != UNKNOWN_SCORE)
    share = np.where(winner == games.positions["to_play"], 1, -1) * np.minimum(score / start.max_score, 1)
    return np.where(is_known, share, np.nan).astype(np.float32)


def board_targets(games: Games, start: Game) -> NDArray[np.float16]:
    """Return `[N, P, H, W]`, the final board as the player to move at each position sees it; NaN where unknown."""
    shape = (start.final_planes, *start.observation_shape[1:])
    boards = np.full((len(games.positions), *shape), np.nan, np.float16)
    end = 0
    for one in games:
        first, end = end, end + len(one.positions)
        with suppress(Exception):  # the rolls of an imported game do not follow from its seed
            *_, (final, _) = replay_game(start, one.games[0], one.positions["action"].tolist())
            is_by_rule = one.games["end"][0] == BY_RULE  # stones of an adjudicated game may be dead
            if is_by_rule and outcome_code(final.outcome()) == one.games["winner"][0]:
                side = np.where(one.positions["to_play"] == final.to_play, 1, -1)
                boards[first:end] = side[:, None, None, None] * np.asarray(final.final_board(), np.float16)
    return boards


def _check_targets(targets: Targets, games: Games, *, name: str) -> Targets:
    """Return `targets` in the types of Targets. Raises UserError if the function `name` has not returned Targets."""
    if not isinstance(targets, Targets):
        raise UserError(f"trainer.targets: {name} returned {type(targets).__name__}, expected trainer.targets.Targets")
    n = len(games.positions)
    expected = {"is_sample": (n,), "wdl": (n, 3), "policy": (len(games.moves),)}
    for field, shape in expected.items():
        if np.shape(getattr(targets, field)) != shape:
            raise UserError(
                f"trainer.targets: {name} returned {field} of shape {np.shape(getattr(targets, field))}, expected "
                f"{shape}, for {n} positions with {len(games.moves)} legal actions"
            )
    if np.asarray(targets.is_sample).dtype != np.bool_:
        raise UserError(f"trainer.targets: {name} returned is_sample of another type than bool")
    wdl = np.asarray(targets.wdl, np.float32)
    policy = np.asarray(targets.policy, np.float32)
    if not (wdl > -1e-3).all() or not (policy > -1e-3).all() or not np.isfinite([wdl.sum(), policy.sum()]).all():
        raise UserError(f"trainer.targets: {name} returned a probability that is negative or not finite")
    return Targets(is_sample=np.asarray(targets.is_sample), wdl=wdl, policy=policy)


@cached_njit
def value_targets(
    games: NDArray[np.void],
    positions: NDArray[np.void],
    search_weight: float,
    td_lambda: float,
    luck: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Return `[N, 3]`, target probabilities of win, draw and loss for the player to move at each position.

    The target is (1 - w) · outcome + w · G_t, where w = `search_weight` and G_t is the λ-return over the root values of
    the position and of those after it, G_t = (1 - λ) v_t + λ G_{t+1} (Sutton and Barto, equation 12.2), with the sign
    changed where the player to move changes. At a proven position G_t is the proven value, and w = 1. Where
    there was no model (fence 0) and the value is not proven, the root value is meaningless, so λ = 1. A truncated game
    has no outcome, so w = 1.

    luck: `[N]`, of the rolls after each move, for player 0: outcome - Σ_{k >= t} luck_k takes the place of the outcome,
          and G_{t+1} - luck_t that of G_{t+1}. The mixed value is cut to [-1, 1], which the two alone may leave.
    """
    wdl = np.zeros((len(positions), 3), np.float32)
    end = 0
    for g in range(len(games)):
        start, end = end, end + games[g]["positions"]
        winner = games[g]["winner"]
        next_value, next_draw, next_mover = 0.0, 0.0, -1  # G_{t+1}: the next position that was searched
        luck_ahead = 0.0  # luck of the rolls from t on
        for t in range(end - 1, start - 1, -1):
            position = positions[t]
            rolled = 0.0  # luck of the rolls after t, for player 0
            if luck is not None:
                rolled = luck[t]
            luck_ahead += rolled
            if position["search"] == 0:
                continue
            mover = position["to_play"]
            sign = 1 if mover == 0 else -1
            value, draw = position["root_value"], position["root_draw"]
            drawn = winner == DRAW
            outcome = 0.0 if drawn else (1.0 if winner == mover else -1.0)  # not used if truncated: w = 1
            outcome -= sign * luck_ahead
            if position["proven"] == UNPROVEN:
                without_model = position["model_fence"] == 0
                own_weight = 0.0 if without_model else 1 - td_lambda
                if next_mover >= 0:
                    value_ahead = (next_value if mover == next_mover else -next_value) - sign * rolled
                    value = own_weight * value + (1 - own_weight) * value_ahead
                    draw = own_weight * draw + (1 - own_weight) * next_draw
                elif without_model and winner != ONGOING:
                    value, draw = outcome, 1.0 if drawn else 0.0
            next_value, next_draw, next_mover = value, draw, mover
            weight = search_weight
            if position["proven"] != UNPROVEN or winner == ONGOING:
                weight = 1.0
            if luck is not None:
                value = min(max(weight * value + (1 - weight) * outcome, -1.0), 1.0)
                draw = min(weight * draw + (1 - weight) * (1.0 if drawn else 0.0), 1 - abs(value))
                weight = 1.0  # the outcome is in them
            wdl[t, 0] = weight * max(0.0, (1 - draw + value) / 2)
            wdl[t, 1] = weight * draw
            wdl[t, 2] = weight * max(0.0, (1 - draw - value) / 2)
            wdl[t, 1 if drawn else (0 if outcome > 0 else 2)] += 1 - weight
    return wdl


@cached_njit
def policy_targets(
    positions: NDArray[np.void], moves: NDArray[np.void], c_visit: float, c_scale: float
) -> NDArray[np.float32]:
    """Return `[M]`, the target policy of every position over its legal actions; zeros where there was no search."""
    probabilities = np.zeros(len(moves), np.float32)
    end = 0
    for t in range(len(positions)):
        position = positions[t]
        start, end = end, end + position["num_legal"]
        if position["search"] == 0:
            continue
        row = moves[start:end]
        probabilities[start:end] = policy_target(
            position["search"],
            row["visits"],
            row["prior"],
            row["q"],
            position["network_value"],
            position["proven"],
            c_visit,
            c_scale,
        )
    return probabilities
