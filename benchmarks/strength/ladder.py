"""Rate networks on a ladder of pure MCTS: Elo with 95 % intervals, from balanced openings in both colours.

python -m benchmarks.strength.ladder connect-four MODEL.onnx --simulations 0 64 --exam FILE
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.strength.exams import find_exam
from plyzero.catalog import GameSpec, load_game
from plyzero.match import play_match
from plyzero.players import find_player

RUNGS = 50, 200, 800, 3200
"""Rollouts a move; the second is 0 Elo."""

ELO = 400 / math.log(10)
"""A rating of 1 in the logistic model is so many Elo."""


class Pairing(NamedTuple):
    """Points of the first player against the second; a draw is half a point."""

    first: int
    second: int
    points: float
    games: int


def main() -> None:
    """Play neighbouring rungs against each other and every player against every rung, and print the ratings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("players", nargs="*", metavar="PLAYER", help="an ONNX file or a run")
    parser.add_argument("--simulations", type=int, nargs="+", default=[64], help="of each player; 0 = raw")
    parser.add_argument("--games", type=int, default=100, help="of each pair")
    parser.add_argument(
        "--exam", metavar="FILE", help="its first drawn positions are the openings; default: random ones"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    game, rng = load_game(given.game), np.random.default_rng(given.seed)
    names = [f"mcts:{rollouts}" for rollouts in RUNGS]
    players = [find_player(name, game, rng) for name in names]
    pairs = list(pairwise(range(len(RUNGS))))
    for name in given.players:
        for simulations in given.simulations:
            pairs += [(len(players), rung) for rung in range(len(RUNGS))]
            players.append(find_player(name, game, rng, simulations=simulations))
            names.append(f"{Path(name).name}, {simulations} simulations")
    openings, pairings = drawn_openings(given.exam, game, (given.games + 1) // 2) if given.exam else None, []
    for first, second in pairs:
        result = play_match(players[first], players[second], game.start, games=given.games, rng=rng, openings=openings)
        pairings.append(Pairing(first, second, result.score * result.games, result.games))
        if not given.json:
            print(f"{names[first]} against {names[second]}: {result}", flush=True)
    ratings, errors = rate(pairings, players=len(players), anchor=1)
    for name, rating, error in zip(names, ratings.tolist(), errors.tolist(), strict=True):
        if given.json:
            print(
                json.dumps(
                    {
                        "player": name,
                        "elo": round(rating, 1),
                        "interval": [round(rating - error, 1), round(rating + error, 1)],
                    }
                )
            )
        else:
            print(f"{name}: {rating:+.0f} Elo, {rating - error:+.0f} to {rating + error:+.0f}")


def drawn_openings(exam: str, game: GameSpec, count: int) -> list[tuple[int, ...]]:
    """Return the moves to the `count` earliest positions of an exam that are drawn under perfect play."""
    drawn = sorted((question.moves for question in find_exam(exam, game) if question.value == 0), key=len)
    if len(drawn) < count:
        raise SystemExit(
            f"{exam} has {len(drawn)} drawn positions, too few for {count} openings; ask for fewer --games"
        )
    return drawn[:count]


def rate(pairings: Sequence[Pairing], *, players: int, anchor: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `[players]` ratings in Elo and half their 95 % intervals; the anchor's are 0.

    The likeliest ratings under P(first wins) = 1 / (1 + exp(second - first)) (Bradley and Terry, 1952), by Newton's
    method. One drawn game per pair is added, so that a player who has won every game has a rating too; the intervals
    are those of the normal distribution that the curvature there says.
    """
    first = np.array([pairing.first for pairing in pairings])
    second = np.array([pairing.second for pairing in pairings])
    points = np.array([pairing.points for pairing in pairings]) + 0.5
    games = np.array([pairing.games for pairing in pairings]) + 1.0
    design = np.zeros((len(pairings), players))
    design[np.arange(len(pairings)), first], design[np.arange(len(pairings)), second] = 1, -1
    design = np.delete(design, anchor, axis=1)
    ratings = np.zeros(players - 1)
    for _ in range(100):
        expected = 1 / (1 + np.exp(-design @ ratings))
        information = design.T @ (design * (games * expected * (1 - expected))[:, None])
        step = np.linalg.solve(information, design.T @ (points - games * expected))
        ratings += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    errors = 1.96 * np.sqrt(np.diag(np.linalg.inv(information)))
    return ELO * np.insert(ratings, anchor, 0.0), ELO * np.insert(errors, anchor, 0.0)


if __name__ == "__main__":
    main()
