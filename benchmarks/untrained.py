"""What a run has learned: its newest model against its network before the first step, with the same search.

python -m benchmarks.untrained RUN ... --games 100 --simulations 0 64

Four random moves begin each game, and each opening is played with both sides.
"""

import argparse
from pathlib import Path

import numpy as np

from plyzero import Bot
from plyzero.play.match import play_match
from plyzero.play.players import find_player
from plyzero.run.directory import open_run
from plyzero.run.models import list_models
from plyzero.search.onnx_network import Network
from trainer.export import untrained


def main() -> None:
    """Print a row for each run and number of simulations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+")
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, nargs="+", default=[64], help="0 = raw")
    given = parser.parse_args()
    print("| game | model of step | simulations | won, drawn, lost | score, 95 % interval |\n|---|---|---|---|---|")
    for root in given.runs:
        run = open_run(root)
        network = Network(untrained(run), run.game, label="untrained")
        for simulations in given.simulations:
            rng = np.random.default_rng(0)
            result = play_match(
                find_player(str(root), run.game, rng, simulations=simulations),
                Bot.from_network(network, simulations=simulations),
                run.game.start,
                games=given.games,
                rng=rng,
            )
            score = f"{result.score:.1%}, {' to '.join(f'{bound:.1%}' for bound in result.interval())}"
            points = f"{result.wins}, {result.draws}, {result.losses}"
            step = list_models(run.models)[0].step
            print(f"| `{run.game.name}` | {step} | {simulations} | {points} | {score} |", flush=True)


if __name__ == "__main__":
    main()
