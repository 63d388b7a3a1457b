"""What is kept of a finished game: enough to make any target from, whatever the search or the encoding becomes.

Values are for the player to move at the position, +1 = wins. One `Games` holds G games with N positions in all, M
legal actions in all; a game's positions lie one after another, and so do a position's legal actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import DRAW, ONGOING

GAME: Final[np.dtype[Any]] = np.dtype(
    [
        ("id", "u8"),  # unique in the run
        ("positions", "u4"),  # one per ply
        ("winner", "i1"),  # 0 or 1, DRAWN, or UNKNOWN for a game that was given up
        ("end", "u1"),  # BY_RULE or TRUNCATED
        ("seed", "u8"),  # of all randomness in the game
        ("opening_plies", "u2"),  # moves at the start that were random
    ]
)
BY_RULE: Final = 0
TRUNCATED: Final = 1

POSITION: Final[np.dtype[Any]] = np.dtype(
    [
        ("action", "u4"),  # played
        ("to_play", "u1"),
        ("num_legal", "u4"),
        (
            "search",
            "u1",
        ),  # PUCT or GUMBEL of plyzero.search.tree; 0 = a random opening move, and then no field below counts
        ("full", "u1"),  # 1 = a full search, 0 = a fast one
        ("simulations", "u4"),
        ("proven", "i1"),  # LOSS, DRAW, WIN or UNPROVEN of plyzero.search.tree
        ("root_value", "f4"),
        ("root_draw", "f4"),  # probability
        ("network_value", "f4"),
        ("network_draw", "f4"),
        ("model_fence", "u4"),  # the model that was asked last; 0, 0 = none yet
        ("model_step", "u4"),
    ]
)

MOVE: Final[np.dtype[Any]] = np.dtype(
    [
        ("action", "u4"),  # all legal ones, ascending
        ("visits", "u4"),
        ("prior", "f4"),  # the network's probability, without noise
        ("q", "f4"),  # exact where proven, NaN where never visited
    ]
)


@dataclass(frozen=True)
class Games:
    """Finished games.

    games:        `[G]` GAME.
    positions:    `[N]` POSITION.
    moves:        `[M]` MOVE.
    observations: `[N, C, H, W]` in the game's observation_dtype, seen by the player to move.
    """

    games: NDArray[np.void]
    positions: NDArray[np.void]
    moves: NDArray[np.void]
    observations: NDArray[Any]

    @property
    def num_full(self) -> int:
        """Positions with a full search: what the replay ratio counts."""
        return int(self.positions["full"].sum())

    @property
    def nbytes(self) -> int:
        """Memory that they take."""
        return self.games.nbytes + self.positions.nbytes + self.moves.nbytes + self.observations.nbytes

    def where(self, chosen: NDArray[np.bool_]) -> Games:
        """Return the games that `chosen`, `[G]`, says, in order."""
        positions = np.repeat(chosen, self.games["positions"])
        moves = np.repeat(positions, self.positions["num_legal"])
        return Games(self.games[chosen], self.positions[positions], self.moves[moves], self.observations[positions])

    @staticmethod
    def concatenate(parts: Sequence[Games]) -> Games:
        """Return all games of `parts`, at least one, in order."""
        return Games(
            _joined([part.games for part in parts]),
            _joined([part.positions for part in parts]),
            _joined([part.moves for part in parts]),
            np.concatenate([part.observations for part in parts]),
        )


def check_games(games: Games, num_actions: int) -> None:
    """Raise ValueError, with what and where, for records that no worker makes; those who learn rely on all of it."""
    game, position, move = games.games, games.positions, games.moves
    counts = (int(game["positions"].sum()), int(position["num_legal"].sum()), len(games.observations))
    if counts != (len(position), len(move), len(position)):
        raise ValueError(
            f"games count {counts[0]} positions and {counts[1]} moves; there are {len(position)}, {len(move)}, and "
            f"{counts[2]} observations"
        )
    legal = position["num_legal"].astype(np.int64)
    if not (legal > 0).all():
        raise ValueError(f"position/num_legal cannot be what it is at {int(np.argmin(legal))}")
    first_move = np.cumsum(legal) - legal
    of_position = np.repeat(np.arange(len(position)), legal)
    actions = move["action"].astype(np.int64)
    ascending = np.diff(actions, prepend=-1) > 0
    ascending[first_move] = True
    played = actions == position["action"][of_position]
    rules = {
        "game/positions": game["positions"] > 0,
        "game/winner": np.isin(game["winner"], (ONGOING, DRAW, 0, 1)),
        "game/end": game["end"] <= TRUNCATED,
        "game/opening_plies": game["opening_plies"] <= game["positions"],
        "position/to_play": position["to_play"] <= 1,
        "position/search": position["search"] <= 2,
        "position/full": position["full"] <= (position["search"] > 0),
        "position/proven": np.isin(position["proven"], (-1, 0, 1, 2)),
        "position/root_value": _within(position["root_value"], -1),
        "position/root_draw": _within(position["root_draw"], 0),
        "position/network_value": _within(position["network_value"], -1),
        "position/network_draw": _within(position["network_draw"], 0),
        "move/action": (actions < num_actions) & ascending,
        "move/prior": _within(move["prior"], 0),
        "move/q": np.isnan(move["q"]) | _within(move["q"], -1),
    }
    for field, holds in rules.items():
        if not holds.all():
            raise ValueError(f"{field} cannot be what it is at {int(np.argmin(holds))}")
    if not np.add.reduceat(played, first_move).all():
        raise ValueError("a move was played that is not among the legal ones")
    reached = np.add.reduceat(move["q"] == position["proven"][of_position], first_move)
    if not (reached | (position["proven"] == 2)).all():
        raise ValueError("a value is proven that no move reaches")
    if games.observations.dtype.kind == "f" and not np.isfinite(games.observations).all():
        raise ValueError("an observation is not finite")


def _within(values: NDArray[Any], low: float) -> NDArray[np.bool_]:
    """Tell which of `values` are from `low` to 1, but for what rounding adds."""
    return np.asarray((values >= low - 1e-4) & (values <= 1 + 1e-4))


def _joined(records: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Concatenate, several times as fast as NumPy, which goes through records field by field."""
    return np.frombuffer(b"".join(part.tobytes() for part in records), records[0].dtype)
