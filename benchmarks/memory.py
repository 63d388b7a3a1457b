"""Measure the bytes of a tree, of a recorded position on disk, and of one in the trainer's window.

python -m benchmarks.memory connect-four "go(size=9)" chess

Games are played without a network. So priors are uniform and trees wide, and records compress as those of no model.
"""

import argparse
import itertools
import tempfile
from pathlib import Path

from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import without_setup
from plyzero.run.directory import create_run
from plyzero.run.records import Games
from plyzero.search.evaluators import Uniform
from plyzero.search.slots import SearchSlots
from plyzero.search.tree import EDGE, NODE
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.settings import SearchSettings
from plyzero.trainer.targets import make_samples
from plyzero.trainer.window import Window

FIXED = ("masks", "observations", "roots", "batch", "noise", "schedules", "scratch", "renumbered")
"""The arrays of a tree whose size does not depend on what it holds."""


def main() -> None:
    """Print a line for the tree and one for recorded positions of each game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="+", metavar="GAME", help="without dice")
    parser.add_argument("--simulations", type=int, default=800, help="of the tree")
    parser.add_argument("--positions", type=int, default=4000, help="to record")
    given = parser.parse_args()
    for name in given.games:
        game = load_game(name)
        print(f"{name}: {of_tree(game, given.simulations)}", flush=True)
        print(f"{name}: {of_positions(game, given.positions)}", flush=True)


def of_tree(game: GameSpec, simulations: int) -> str:
    """Return the bytes of a tree that has grown from the initial position, by its parts."""
    start = without_setup(game.start)
    slots = SearchSlots(start, SearchSettings(), slots=1, simulations=simulations)
    slots.begin(0, start, simulations=simulations)
    slots.run(Uniform(start.num_actions))
    slot, trees = slots.trees.slots[0], slots.trees
    parts = {
        "nodes": int(slot["nodes"]) * NODE.itemsize,
        "edges": int(slot["edges"]) * EDGE.itemsize,
        "positions": trees.states.nbytes,
        "room for a leaf": sum(getattr(trees, name).nbytes for name in FIXED),
    }
    shares = ", ".join(f"{size / 1000:.0f} for {name}" for name, size in parts.items())
    return f"{sum(parts.values()) / 1000:.0f} kB for a tree of {simulations} simulations: {shares}"


def of_positions(game: GameSpec, count: int) -> str:
    """Return the bytes of a recorded position on disk, and of a sample of it in the window, by fields."""
    with tempfile.TemporaryDirectory() as directory:
        run = create_run(Path(directory) / "run", game)
        in_play, played = GamesInPlay(game.start, run.settings, seeds=itertools.count()), list[Games]()
        while sum(len(each.positions) for each in played) < count:
            played += in_play.run(Uniform(game.start.num_actions))
        games = Games.concatenate(played)
        with ReplayWriter(run, worker="memory", incarnation="00000000") as writer:
            writer.add(games)
        disk = sum(path.stat().st_size for path in run.segments.iterdir())
    window = Window(game.start)
    settings = run.settings
    window.add("all", make_samples(games, search=settings.search, trainer=settings.trainer), size=count)
    [chunk] = window._chunks
    fields = {name: array.nbytes / len(window) for name, array in chunk._asdict().items()}
    shares = ", ".join(f"{size:.0f} for {name}" for name, size in fields.items() if size)
    legal, on_disk = len(games.moves) / len(games.positions), disk / len(games.positions)
    return f"{legal:.0f} legal actions, {on_disk:.0f} bytes on disk, {sum(fields.values()):.0f} in the window: {shares}"


if __name__ == "__main__":
    main()
