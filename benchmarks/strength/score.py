"""Score networks and players on positions whose best moves are known.

python -m benchmarks.strength.score connect-four --exam benchmarks/strength/connect-four-dev.txt MODEL.onnx mcts:1000
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.strength.exams import STRATA, Question, find_exam
from plyzero.network.model_loader import load_network
from plyzero.network.onnx_network import Network
from plyzero.play.player import Player
from plyzero.play.players import Bot, find_player
from plyzero.play.scores import wilson_interval
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.search.evaluators import EvaluationBatch

AT_ONCE = 256
"""Positions searched side by side."""

MEASURED = "best moves", "values", "Brier"
"""Measures of a player, and of the values of a raw network."""


def main() -> None:
    """Score each player, and print a line for each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="as of plyzero match")
    parser.add_argument("--exam", required=True, metavar="FILE", help='or "all": every position of a small game')
    parser.add_argument("--simulations", type=int, nargs="*", default=[0, 16, 64, 256], help="of networks; 0 = raw")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    game = load_game(given.game)
    exam = find_exam(given.exam, game)
    for name in given.players:
        for report in reports(name, game, exam, given.simulations):
            about = {"game": game.name, "exam": Path(given.exam).name}
            print(json.dumps(about | report) if given.json else as_text(report), flush=True)


def reports(
    name: str, game: GameSpec, exam: Sequence[Question], simulations: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield the scores of the player that `name` describes; of an ONNX file or a run for each number of simulations."""
    if not Path(name).exists():
        yield player_scores(find_player(name, game, np.random.default_rng(0)), game, exam)
        return
    network = load_network(Path(name), game)
    for number in simulations:
        yield network_scores(network, exam, number)


def player_scores(player: Player, game: GameSpec, exam: Sequence[Question]) -> dict[str, Any]:
    right = np.array([chosen in each.best for chosen, each in zip(choices(player, exam), exam, strict=True)])
    return {"player": player.name, "best moves": by_ply(game, exam, right)}


def network_scores(network: Network, exam: Sequence[Question], simulations: int) -> dict[str, Any]:
    """Return the shares of best moves of a network's bot; with 0 simulations also what its values are worth.

    The bot does not play ends exactly: of these positions, which were solved, that would measure the solver.
    """
    bot = Bot.from_network(network, simulations=simulations, search={"solver_nodes": 0})
    report = {"simulations": simulations, **player_scores(bot, network.game, exam)}
    return report | (value_scores(exam, network) if simulations == 0 else {})


def choices(player: Player, exam: Sequence[Question]) -> list[int]:
    """Return the player's move in each position, without noise."""
    chosen: list[int] = []
    for i in range(0, len(exam), AT_ONCE):
        chosen += player.choose_all([each.position for each in exam[i : i + AT_ONCE]])
    return chosen


def value_scores(exam: Sequence[Question], network: Network) -> dict[str, Any]:
    """Return the share of positions where the likeliest of win, draw and loss is true, and the Brier score, best 0."""
    observations = np.stack([each.position.observe() for each in exam]).astype(np.float32)
    wdl = network(EvaluationBatch(observations, list)).wdl[:, :3]
    truth = np.eye(3)[[1 - each.value for each in exam]]
    right = wdl.argmax(axis=1) == truth.argmax(axis=1)
    brier = ((wdl - truth) ** 2).sum(axis=1)
    return {"values": by_ply(network.game, exam, right), "Brier": by_ply(network.game, exam, brier)}


def by_ply(game: GameSpec, exam: Sequence[Question], scores: NDArray[np.generic]) -> dict[str, dict[str, float]]:
    """Return the mean of what each position of an exam scored, with its 95 % interval: of all, and of each stratum."""
    plies = np.array([each.plies for each in exam])
    strata = {"all": plies >= 0}
    strata |= {f"plies {low} to {high - 1}": (low <= plies) & (plies < high) for low, high in STRATA.get(game.name, ())}
    return {name: mean(scores[inside]) for name, inside in strata.items() if inside.any()}


def mean(scores: NDArray[np.generic]) -> dict[str, float]:
    """Return the mean with its 95 % interval: Wilson's of right and wrong, the normal distribution's of numbers."""
    n, found = len(scores), float(np.mean(scores))
    half = 1.96 * float(np.std(scores)) / math.sqrt(n)
    low, high = wilson_interval(found, n) if scores.dtype == bool else (found - half, found + half)
    return {"mean": round(found, 4), "low": round(low, 4), "high": round(high, 4), "positions": n}


def as_text(report: dict[str, Any]) -> str:
    lines = []
    for measured in (each for each in MEASURED if each in report):
        strata = (f"{name} {brief(found)}" for name, found in report[measured].items())
        lines.append(f"{report['player']}, {measured}: {', '.join(strata)}")
    return "\n".join(lines)


def brief(found: dict[str, float]) -> str:
    return "{mean:.3f} ({low:.3f} to {high:.3f})".format(**found)


if __name__ == "__main__":
    main()
