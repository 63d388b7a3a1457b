"""Games of random content, and segments made of them."""

import zipfile
from pathlib import Path

import numpy as np

from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import Run, RunId
from plyzero.run.records import GAME, MOVE, POSITION, Games, JournalName
from plyzero.run.segments import write_segment
from tests.helpers.toys import Relay

CONNECT_FOUR = load_game("connect-four")
OWNER = "w0.0123abcd"
RELAY = GameSpec("tests.helpers.toys:Relay", Relay(4))  # its observations are not bits


def some_games(game: GameSpec, seed: int = 0, lengths: tuple[int, ...] = (3, 5)) -> Games:
    rng = np.random.default_rng(seed)
    num_actions, size = game.start.num_actions, sum(lengths)
    games, positions = np.zeros(len(lengths), GAME), np.zeros(size, POSITION)
    games["id"], games["seed"] = rng.integers(0, 2**63, (2, len(lengths)))
    games["positions"], games["opening_plies"] = lengths, rng.integers(0, 2, len(lengths))
    games["winner"], games["end"] = rng.integers(-2, 2, len(lengths)), rng.integers(0, 2, len(lengths))
    legal = [np.sort(rng.permutation(num_actions)[: rng.integers(1, num_actions + 1)]) for _ in range(size)]
    positions["num_legal"] = [len(actions) for actions in legal]
    positions["action"] = [rng.choice(actions) for actions in legal]
    positions["search"], positions["proven"] = rng.integers(1, 3, size), rng.integers(-1, 3, size)
    positions["to_play"], positions["full"] = rng.integers(0, 2, (2, size))
    positions["simulations"] = rng.integers(1, 1000, size)
    positions["model_fence"] = positions["model_step"] = rng.integers(1, 1000, size)
    for field in ("root_value", "network_value"):
        positions[field] = rng.uniform(-1, 1, size)
    for field in ("root_draw", "network_draw"):
        positions[field] = rng.random(size)
    moves = np.zeros(sum(map(len, legal)), MOVE)
    moves["action"], moves["visits"] = np.concatenate(legal), rng.integers(0, 1000, len(moves))
    moves["prior"], moves["q"] = rng.random(len(moves)), rng.uniform(-1, 1, len(moves))
    moves["q"][::3] = np.nan
    proven = np.repeat(positions["proven"], positions["num_legal"])
    moves["q"][proven != 2] = proven[proven != 2]
    shape = (size, *game.start.observation_shape)
    bits = np.dtype(game.start.observation_dtype).kind == "b"
    observations = rng.random(shape) < 0.5 if bits else rng.random(shape).astype(np.float32)
    return Games(games, positions, moves, observations)


def write(
    directory: Path, games: Games, game: GameSpec, sequence: int = 0, run_id: RunId | None = None, owner: str = OWNER
) -> Path:
    worker, incarnation = owner.split(".")
    return write_segment(directory, games, game, JournalName(worker, incarnation, sequence), run_id=run_id)


def seal(run: Run, games: Games, sequence: int = 0, owner: str = OWNER) -> Path:
    """Write a segment into a run; return its path."""
    return write(run.segments, games, run.game, sequence, run.id, owner)


def same(one: Games, other: Games) -> bool:
    moves = [np.array_equal(one.moves[field], other.moves[field], equal_nan=field == "q") for field in MOVE.names or ()]
    return (
        np.array_equal(one.games, other.games)
        and np.array_equal(one.positions, other.positions)
        and all(moves)
        and np.array_equal(one.observations, other.observations)
        and one.observations.dtype == other.observations.dtype
        and (one.luck is None) == (other.luck is None)
        and (one.luck is None or np.array_equal(one.luck, other.luck))
    )


def rewritten(path: Path, change) -> None:
    """Write a segment anew, every member's name and content passed through `change`; None drops it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            changed = change(name, content)
            if changed is not None:
                archive.writestr(name, changed)
