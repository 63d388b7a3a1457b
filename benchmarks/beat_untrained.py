"""Measure a run's newest model: against the same search with an untrained network, and against pure MCTS.

python benchmarks/beat_untrained.py --run runs/c4 --games 100 --simulations 64 --rollouts 1000
"""

import argparse
from pathlib import Path

import numpy as np

from plyzero.match import play_match
from plyzero.models import load_newest
from plyzero.network import Network
from plyzero.players import Bot
from plyzero.run import open_run
from trainer.export import untrained


def main() -> None:
    """Play and print the scores of the trained network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--rollouts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    run = open_run(given.run)
    start, rng = run.game.start, np.random.default_rng(given.seed)
    trained = load_newest(run.models, run.game)
    if trained is None:
        raise SystemExit(f"{given.run} has no model yet")
    players = [
        Bot.of(network, simulations=given.simulations)
        for network in (trained, Network(untrained(run), run.game, label="untrained"))
    ]
    for opponent in (players[1], Bot.pure_mcts(run.game, rng, simulations=given.rollouts)):
        result = play_match(players[0], opponent, start, games=given.games, rng=rng)
        print(
            f"{run.game.name}, {trained.label} with {given.simulations} simulations against {opponent.name}: "
            f"{result.wins} won, {result.draws} drawn, {result.losses} lost, {result.distinct} distinct games, "
            f"score {result}",
            flush=True,
        )


if __name__ == "__main__":
    main()
