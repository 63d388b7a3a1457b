"""Score networks and players on positions whose best moves are known.

python -m benchmarks.strength.score connect-four --exam benchmarks/strength/connect-four-dev.txt MODEL.onnx mcts:1000
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.strength.exams import STRATA, Question, find_exam
from plyzero.catalog import GameSpec, load_game
from plyzero.evaluate import Leaves
from plyzero.match import wilson_interval
from plyzero.network import Network
from plyzero.players import Bot, Player, find_player, load_network

AT_ONCE = 256
"""Positions searched side by side."""


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
    """Return the player's shares of best moves, in all and per stratum."""
    right = np.array([chosen in each.best for chosen, each in zip(choices(player, exam), exam, strict=True)])
    return {"player": player.name, **share_per_stratum(game, exam, right)}


def network_scores(network: Network, exam: Sequence[Question], simulations: int) -> dict[str, Any]:
    """Return the shares of best moves of a network's bot; with 0 simulations also how good the network's values are."""
    bot = Bot.of(network, simulations=simulations)
    report = {"simulations": simulations, **player_scores(bot, network.game, exam)}
    return report | (value_scores(exam, network) if simulations == 0 else {})


def choices(player: Player, exam: Sequence[Question]) -> list[int]:
    """Return what the player does in each position, without any noise."""
    chosen: list[int] = []
    for i in range(0, len(exam), AT_ONCE):
        chosen += player.choose_all([each.position for each in exam[i : i + AT_ONCE]])
    return chosen


def share_per_stratum(game: GameSpec, exam: Sequence[Question], right: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the share of best moves with its 95 % interval, of all and by ply."""
    plies = np.array([each.plies for each in exam])
    shares = {"optimal": share(right)}
    for low, high in STRATA.get(game.name, ()):
        inside = (low <= plies) & (plies < high)
        if inside.any():
            shares[f"plies {low} to {high - 1}"] = share(right[inside])
    return shares


def share(right: NDArray[np.bool_]) -> dict[str, float]:
    """Return a share with Wilson's 95 % interval."""
    n, p = len(right), float(right.mean())
    low, high = wilson_interval(p, n)
    return {"share": round(p, 4), "low": round(low, 4), "high": round(high, 4), "positions": n}


def value_scores(exam: Sequence[Question], network: Network) -> dict[str, float]:
    """Return how often the likeliest of win, draw and loss is true, and the Brier score of the three (0 is perfect)."""
    observations = np.stack([each.position.observe() for each in exam]).astype(np.float32)
    wdl = network(Leaves(observations, list)).wdl
    truth = np.eye(3)[[1 - each.value for each in exam]]
    return {
        "value_accuracy": round(float((wdl.argmax(axis=1) == truth.argmax(axis=1)).mean()), 4),
        "brier": round(float(((wdl - truth) ** 2).sum(axis=1).mean()), 4),
    }


def as_text(report: dict[str, Any]) -> str:
    """Return one line."""
    parts = [report["player"]]
    for name, value in report.items():
        if isinstance(value, dict):
            parts.append(f"{name} {value['share']:.3f} ({value['low']:.3f} to {value['high']:.3f})")
        elif name in ("value_accuracy", "brier"):
            parts.append(f"{name} {value:.3f}")
    return ", ".join(parts)


if __name__ == "__main__":
    main()
