"""What a worker's memory goes to: its resident memory after each step of its start, and while it plays.

python -m benchmarks.memory "go(size=19)" --seconds 60

A network with random weights evaluates two batches with one position of each game. In between the games go on with the
uniform evaluator, which takes no time, so that they soon are in all phases.
"""

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import numpy as np

from plyzero.commands.bench import random_weights
from plyzero.commands.common import find_game
from plyzero.run.directory import create_run
from plyzero.search.evaluators import EvaluationBatch, Uniform
from plyzero.search.onnx_network import Network
from selfplay.games_in_play import GamesInPlay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--seconds", type=float, default=60, help="time with the uniform evaluator")
    parser.add_argument("--net", type=Path, help="an ONNX model; by default one with random weights, 4 x 64")
    parser.add_argument("-o", "--option", action="append", default=[], help="a setting, such as selfplay.cache_mb=0")
    given = parser.parse_args()
    options = ["selfplay.parallel_games=64", "network.blocks=4", "network.channels=64", *given.option]
    print_memory("imports")
    game = find_game(given.game)
    print_memory("the game")
    with tempfile.TemporaryDirectory() as directory:
        run = create_run(Path(directory) / "run", game, options=options)
        content = given.net.read_bytes() if given.net else random_weights(run.root)
    network = Network(content, game, label="random weights")
    del content  # a worker does not keep it
    print_memory("the network, loaded and tried")
    games = GamesInPlay(game.start, run.settings, seeds=itertools.count())
    trees = games.search.trees
    print_memory("the games begun")
    batch = EvaluationBatch(np.zeros((len(trees.slots), *game.start.observation_shape), np.float32), list)
    network(batch)
    print_memory("a batch evaluated")
    plies = finished = 0
    evaluate, deadline = Uniform(game.start.num_actions), time.monotonic() + given.seconds
    while time.monotonic() < deadline:
        for each in games.run(evaluate):
            plies, finished = plies + len(each.positions), finished + 1
    network(batch)
    print_memory(f"{finished} games of {plies / max(1, finished):.0f} plies finished, {games.moves} moves searched")
    trees = games.search.trees
    for name in ("states", "nodes", "edges"):
        print(f"{getattr(trees, name).nbytes / 1e6:8.1f} MB trees.{name}")
    print(f"{sum(array.nbytes for array in trees.cache) / 1e6:8.1f} MB trees.cache")


def print_memory(step: str) -> None:
    """Print the resident memory of this process, now and at most, after `step`."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, most = (int(status[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
    print(f"{now:8.1f} MB, at most {most:.1f} MB: {step}", flush=True)


if __name__ == "__main__":
    main()
