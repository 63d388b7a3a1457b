"""The records of finished games: enough to compute any training target, however search and encoding change.

Values are from the point of view of the player to move at the position, +1 = wins. One `Games` holds G games with N
positions and M legal actions in all; the positions of a game are consecutive, and so are the legal actions of a
position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import MAX_ROLLS
from plyzero.rules.game import DRAW, ONGOING, Game, Outcome

BY_RULE: Final = 0
"""The `end` of a game that ended by its rules."""

TRUNCATED: Final = 1
"""The `end` of a game that was truncated at max_plies and has no winner."""

RESIGNED: Final = 2
"""The `end` of a game whose winner the final position does not show: a player has resigned, or it was adjudicated."""

FOREIGN_FENCE: Final = 2**32 - 1
"""The `model_fence` of moves that a model of another run has evaluated; its `model_step` is then 1."""

JOURNAL_NAME: Final = re.compile(
    r"(?P<worker>[a-z0-9_]{1,32})\.(?P<incarnation>[0-9a-f]{8})-(?P<sequence>\d{8})\.(?P<kind>wal|taken)"
)
"""Pattern of the file name of a journal. It ends in `taken` once a process has taken the journal from its owner."""

GAME: Final = np.dtype(
    [
        ("id", "u8"),  # unique in the run
        ("positions", "u4"),  # one per ply
        ("winner", "i1"),  # 0 or 1, DRAW, or ONGOING if it was truncated
        ("end", "u1"),  # BY_RULE, TRUNCATED or RESIGNED
        ("seed", "u8"),  # seed of self-play's random numbers; the actions and the rolls from it replay the game
        ("opening_plies", "u2"),  # moves at the start, random or given
        ("score", "f4"),  # points by which the winner leads; UNKNOWN_SCORE; 0 in a game without points
    ]
)
"""The record of a game."""

UNKNOWN_SCORE: Final = -1.0
"""The `score` of a game with points that was truncated, resigned or recorded before the game had points."""

FORMAT_1: Final = np.dtype(GAME.descr[:-1])
"""GAME without `score`, as segments and journals of games without points have it, and those of earlier versions."""

# `search` is PUCT or GUMBEL of plyzero.search.tree, or 0 for an opening move: the fields below are then meaningless.
POSITION: Final = np.dtype(
    [
        ("action", "u4"),  # the action that was played
        ("to_play", "u1"),  # 0 or 1
        ("num_legal", "u4"),
        ("search", "u1"),
        ("full", "u1"),  # 1 = a full search, 0 = a fast one
        ("simulations", "u4"),
        ("proven", "i1"),  # PROVEN_LOSS, PROVEN_DRAW, PROVEN_WIN or UNPROVEN of plyzero.search.tree
        ("root_value", "f4"),
        ("root_draw", "f4"),  # probability of a draw
        ("network_value", "f4"),
        ("network_draw", "f4"),  # probability of a draw
        ("model_fence", "u4"),  # fence and step of the model that evaluated last; 0, 0 = none
        ("model_step", "u4"),
    ]
)
"""The record of a position and of the search from it."""

MOVE: Final = np.dtype(
    [
        ("action", "u4"),  # every legal one, ascending
        ("visits", "u4"),
        ("prior", "f4"),  # the network's probability, without noise
        ("q", "f4"),  # exact where proven, NaN where never visited
    ]
)
"""The record of a legal action and of the search's statistics for it."""


class JournalName(NamedTuple):
    """The fields of a journal's file name; its games become the segment of the same first three.

    worker:      name of the worker.
    incarnation: 8 hex digits, new with every start of a worker's process.
    sequence:    0, 1, 2, ... per incarnation.
    taken:       whether a process has taken it from its owner, to seal it.
    """

    worker: str
    incarnation: str
    sequence: int
    taken: bool = False

    def __str__(self) -> str:
        kind = "taken" if self.taken else "wal"
        return f"{self.worker}.{self.incarnation}-{self.sequence:08d}.{kind}"

    @property
    def owner(self) -> str:
        """The name of the process that wrote it, which is also that of its heartbeat."""
        return f"{self.worker}.{self.incarnation}"

    @property
    def writer(self) -> dict[str, object]:
        """The writer of the games, as journals and segments name it."""
        return {"worker": self.worker, "incarnation": self.incarnation, "sequence": self.sequence}

    @staticmethod
    def parse(name: str) -> JournalName | None:
        """Return the fields of the file name `name`, None if it is not the name of a journal."""
        match = JOURNAL_NAME.fullmatch(name)
        if not match:
            return None
        return JournalName(match["worker"], match["incarnation"], int(match["sequence"]), match["kind"] == "taken")


@dataclass(frozen=True)
class Games:
    """Finished games.

    games:        `[G]` GAME.
    positions:    `[N]` POSITION.
    moves:        `[M]` MOVE.
    observations: `[N, C, H, W]` in the game's observation_dtype, from the point of view of the player to move.
    luck:         `[N]` float32, for player 0, the value after the rolls that followed the move minus what the search
                  expected before them; None where `trainer.luck_adjustment` was off.
    """

    games: NDArray[np.void]
    positions: NDArray[np.void]
    moves: NDArray[np.void]
    observations: NDArray[Any]
    luck: NDArray[np.float32] | None = None

    @property
    def num_full(self) -> int:
        """The number of positions with a full search, which the replay ratio counts."""
        return int(self.positions["full"].sum())

    @property
    def nbytes(self) -> int:
        """The memory of all arrays, in bytes."""
        luck = 0 if self.luck is None else self.luck.nbytes
        return self.games.nbytes + self.positions.nbytes + self.moves.nbytes + self.observations.nbytes + luck

    def select(self, mask: NDArray[np.bool_]) -> Games:
        """Return the games where `mask`, `[G]`, is True, in order."""
        positions = np.repeat(mask, self.games["positions"])
        moves = np.repeat(positions, self.positions["num_legal"])
        return Games(
            games=self.games[mask],
            positions=self.positions[positions],
            moves=self.moves[moves],
            observations=self.observations[positions],
            luck=None if self.luck is None else self.luck[positions],
        )

    def __iter__(self) -> Iterator[Games]:
        """Yield each game by itself, in order, as views of these arrays."""
        moves = np.concatenate(([0], np.cumsum(self.positions["num_legal"], dtype=np.int64)))
        first = 0
        for number, end in enumerate(np.cumsum(self.games["positions"], dtype=np.int64).tolist()):
            yield Games(
                games=self.games[number : number + 1],
                positions=self.positions[first:end],
                moves=self.moves[moves[first] : moves[end]],
                observations=self.observations[first:end],
                luck=None if self.luck is None else self.luck[first:end],
            )
            first = end

    @staticmethod
    def concatenate(parts: Sequence[Games]) -> Games:
        """Return all games of `parts`, in order; there must be at least one part. Luck that was not recorded is 0."""
        some_luck = any(part.luck is not None for part in parts)
        luck = [np.zeros(len(part.positions), np.float32) if part.luck is None else part.luck for part in parts]
        return Games(
            games=_concatenate_records([part.games for part in parts]),
            positions=_concatenate_records([part.positions for part in parts]),
            moves=_concatenate_records([part.moves for part in parts]),
            observations=np.concatenate([part.observations for part in parts]),
            luck=np.concatenate(luck) if some_luck else None,
        )


def format_of(game: GameSpec) -> int:
    """Return the format version of segments and journals of `game`: 2 for a game with points, or else 1."""
    return 2 if game.start.max_score else 1


def score_of(outcome: Outcome | None, start: Game) -> float:
    """Return the `score` that the record of a game with this outcome has."""
    if not start.max_score:
        return 0.0
    return UNKNOWN_SCORE if outcome is None or outcome.score is None else float(outcome.score)


def with_score(games: NDArray[np.void], game: GameSpec) -> NDArray[np.void]:
    """Return `[G]` GAME of `[G]` FORMAT_1 or GAME."""
    if games.dtype == GAME:
        return games
    found = np.zeros(len(games), GAME)
    found[[*(FORMAT_1.names or ())]] = games
    found["score"] = UNKNOWN_SCORE if format_of(game) == 2 else 0
    return found


def identify(game: GameSpec) -> dict[str, object]:
    """Return which game records are of, and its sizes, as journals and segments name them."""
    shape = list(game.start.observation_shape)
    return {"game": game.identity, "observation_shape": shape, "num_actions": game.start.num_actions}


def pack_bits(observations: NDArray[Any]) -> NDArray[np.uint8]:
    """Return observations of the type bool, `[N, C, H, W]`, as bits: `[N, K]` bytes, the highest bit first."""
    return np.packbits(observations.reshape(len(observations), -1), axis=1)


def unpack_bits(bits: NDArray[np.uint8], shape: Sequence[int]) -> NDArray[np.bool_]:
    """Return the observations, each of this shape, that `pack_bits` has packed into `bits`."""
    unpacked = np.unpackbits(bits, axis=1, count=int(np.prod(shape)))
    return unpacked.view(np.bool_).reshape(len(bits), *shape)


def find_valid(games: Games, num_actions: int) -> tuple[NDArray[np.bool_], str | None]:
    """Return which games, `[G]`, a worker could have written, and the field and index at fault in the others.

    Raises ValueError if the counts in the records do not match each other, so that no game can be told from the next.
    """
    game, position, move = games.games, games.positions, games.moves
    num_positions, num_moves = int(game["positions"].sum()), int(position["num_legal"].sum())
    if (num_positions, num_moves, len(games.observations)) != (len(position), len(move), len(position)):
        raise ValueError(
            f"the games have {num_positions} positions and {num_moves} moves by their own counts, but there are "
            f"{len(position)} positions, {len(move)} moves and {len(games.observations)} observations"
        )
    legal = position["num_legal"].astype(np.int64)
    of_game = np.repeat(np.arange(len(game)), game["positions"])
    of_position = np.repeat(np.arange(len(position)), legal)
    actions = move["action"].astype(np.int64)
    ascending = np.diff(actions, prepend=-1) > 0
    ascending[(np.cumsum(legal) - legal)[legal > 0]] = True
    played = actions == position["action"][of_position]
    attained = move["q"] == position["proven"][of_position]
    proven = position["proven"] != 2
    rules = {
        "game/positions": game["positions"] > 0,
        "game/winner": np.isin(game["winner"], (ONGOING, DRAW, 0, 1)),
        "game/end": (game["end"] <= RESIGNED) & ((game["end"] != RESIGNED) | (game["winner"] != ONGOING)),
        "game/opening_plies": game["opening_plies"] <= game["positions"],
        "game/score": (game["score"] == UNKNOWN_SCORE) | ((game["score"] >= 0) & np.isfinite(game["score"])),
        "position/num_legal": legal > 0,
        "position/to_play": position["to_play"] <= 1,
        "position/search": position["search"] <= 2,
        "position/full": position["full"] <= (position["search"] > 0),
        "position/proven": np.isin(position["proven"], (-1, 0, 1, 2)),
        "position/root_value": _in_range(position["root_value"], -1),
        "position/root_draw": _in_range(position["root_draw"], 0),
        "position/network_value": _in_range(position["network_value"], -1),
        "position/network_draw": _in_range(position["network_draw"], 0),
        "position/action, which is not one of the legal moves,": _any(played, of_position, len(position)),
        "position/proven, which none of the moves has,": ~proven | _any(attained, of_position, len(position)),
        "position/observation": _are_finite(games.observations),
        "move/action": (actions < num_actions) & ascending,
        "move/prior": _in_range(move["prior"], 0),
        "move/q": np.isnan(move["q"]) | _in_range(move["q"], -1),
    }
    if games.luck is not None:
        rules["position/luck"] = np.abs(games.luck) <= 2 * MAX_ROLLS
    valid = np.ones(len(game), np.bool_)
    fault = None
    for field, holds in rules.items():
        if not holds.all():
            fault = fault or f"{field} has an impossible value at index {int(np.argmin(holds))}"
            wrong = np.flatnonzero(~holds)
            if field.startswith("move/"):
                wrong = of_position[wrong]
            if not field.startswith("game/"):
                wrong = of_game[wrong]
            valid[wrong] = False
    return valid, fault


def _any(holds: NDArray[np.bool_], of_position: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Return whether any of its moves `holds`, for each of `size` positions."""
    return np.bincount(of_position[holds], minlength=size) > 0


def _are_finite(observations: NDArray[Any]) -> NDArray[np.bool_]:
    if observations.dtype.kind != "f":
        return np.ones(len(observations), np.bool_)
    return np.asarray(np.isfinite(observations).all(axis=tuple(range(1, observations.ndim))))


def _in_range(values: NDArray[np.floating], minimum: float) -> NDArray[np.bool_]:
    """Return which of `values` are in [minimum, 1], with a tolerance for rounding."""
    return np.asarray((values >= minimum - 1e-4) & (values <= 1 + 1e-4))


def _concatenate_records(records: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Concatenate arrays of records as bytes; np.concatenate copies field by field and is several times slower."""
    return np.frombuffer(b"".join(part.tobytes() for part in records), records[0].dtype)
