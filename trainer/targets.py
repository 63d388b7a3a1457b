"""What the network is asked to learn of a recorded position, made from the record when it is read."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import DRAW, ONGOING
from plyzero.run.records import Games
from plyzero.search.policy import policy_target
from plyzero.search.tree import UNPROVEN
from plyzero.settings import SearchSettings, TrainerSettings


class Samples(NamedTuple):
    """n positions to learn from; L legal actions in all.

    observations:  `[n, K]`, bits of uint8 where the game's observations are bool, else the numbers themselves.
    wdl:           `[n, 3]` float32, target probabilities of win, draw and loss for the player to move.
    num_legal:     `[n]` int64.
    actions:       `[L]` int64, the legal actions, position after position.
    probabilities: `[L]` float32, the target policy, 1 in sum per position.
    """

    observations: NDArray[np.generic]
    wdl: NDArray[np.float32]
    num_legal: NDArray[np.int64]
    actions: NDArray[np.int64]
    probabilities: NDArray[np.float32]

    @staticmethod
    def concatenate(parts: list[Samples]) -> Samples:
        """Return all samples of `parts`, at least one, in order."""
        return Samples(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def make_samples(games: Games, *, search: SearchSettings, trainer: TrainerSettings) -> Samples:
    """Return what `games` teach: positions with a full search, and of the others those whose value is proven.

    What is proven is exact, however short the search was.
    """
    positions, moves = games.positions, games.moves
    wdl = value_targets(games.games, positions, trainer.search_value_weight, trainer.td_lambda)
    probabilities = policy_targets(positions, moves, search.c_visit, search.c_scale)
    teaches = (positions["full"] == 1) | ((positions["search"] > 0) & (positions["proven"] != UNPROVEN))
    legal = np.repeat(teaches, positions["num_legal"])
    flat = games.observations[teaches].reshape(int(teaches.sum()), int(np.prod(games.observations.shape[1:])))
    return Samples(
        observations=np.packbits(flat, axis=1) if flat.dtype.kind == "b" else flat,
        wdl=wdl[teaches],
        num_legal=positions["num_legal"][teaches].astype(np.int64),
        actions=moves["action"][legal].astype(np.int64),
        probabilities=probabilities[legal],
    )


@numba.njit(cache=True)
def value_targets(
    games: NDArray[np.void], positions: NDArray[np.void], search_share: float, td_lambda: float
) -> NDArray[np.float32]:
    """Return `[N, 3]` win, draw, loss: the outcome, mixed with the search's values ahead, exact where proven.

    The searches' part is G_t = (1 - λ) v_t + λ G_{t+1} (Sutton and Barto, equation 12.2, over root values), turned
    where the player to move turns, and cut where a value is proven. A search that had no model knows only what it has
    proven, so G passes it by. A game given up has no outcome: G alone counts.
    """
    wdl = np.zeros((len(positions), 3), np.float32)
    end = 0
    for g in range(len(games)):
        start, end = end, end + games[g]["positions"]
        ahead_value, ahead_draw, ahead_mover = 0.0, 0.0, -1
        for t in range(end - 1, start - 1, -1):
            position = positions[t]
            mover = position["to_play"]
            value, draw = position["root_value"], position["root_draw"]
            if position["search"] == 0:
                continue
            drawn = games[g]["winner"] == DRAW
            result = 0.0 if drawn else (1.0 if games[g]["winner"] == mover else -1.0)
            if position["proven"] == UNPROVEN:
                blind = position["model_fence"] == 0
                kept = 0.0 if blind else 1 - td_lambda
                if ahead_mover >= 0:
                    turned = ahead_value if mover == ahead_mover else -ahead_value
                    value = kept * value + (1 - kept) * turned
                    draw = kept * draw + (1 - kept) * ahead_draw
                elif blind and games[g]["winner"] != ONGOING:
                    value, draw = result, 1.0 if drawn else 0.0
            ahead_value, ahead_draw, ahead_mover = value, draw, mover
            share = search_share
            if position["proven"] != UNPROVEN or games[g]["winner"] == ONGOING:
                share = 1.0
            wdl[t, 0] = share * max(0.0, (1 - draw + value) / 2)
            wdl[t, 1] = share * draw
            wdl[t, 2] = share * max(0.0, (1 - draw - value) / 2)
            wdl[t, 1 if drawn else (0 if result > 0 else 2)] += 1 - share
    return wdl


@numba.njit(cache=True)
def policy_targets(
    positions: NDArray[np.void], moves: NDArray[np.void], c_visit: float, c_scale: float
) -> NDArray[np.float32]:
    """Return `[M]`, the policy target of every position over its legal actions; zeros where there was no search."""
    probabilities = np.zeros(len(moves), np.float32)
    high = 0
    for t in range(len(positions)):
        position = positions[t]
        low, high = high, high + position["num_legal"]
        if position["search"] == 0:
            continue
        row = moves[low:high]
        probabilities[low:high] = policy_target(
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
