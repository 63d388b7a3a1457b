"""Score networks and players on positions whose best moves are known.

python -m benchmarks.strength.score connect-four --exam benchmarks/strength/connect-four-dev.txt MODEL.onnx mcts:1000
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.strength.exams import STRATA, Question, find_exam
from plyzero.catalog import GameSpec, load_game
from plyzero.evaluate import Leaves
from plyzero.match import wilson_interval
from plyzero.network import Network
from plyzero.players import find_player, load_network

AT_ONCE = 256
"""Positions searched side by side."""


def main() -> None:
    """Score each player, and print a line for each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="an ONNX file, a run, random or mcts:N")
    parser.add_argument("--exam", required=True, metavar="FILE", help='or "all": every position of a small game')
    parser.add_argument("--simulations", type=int, nargs="*", default=[0, 16, 64, 256], help="of networks; 0 = raw")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    game = load_game(given.game)
    exam = find_exam(given.exam, game)
    for name in given.players:
        is_network = name != "random" and not name.startswith("mcts:")
        for simulations in given.simulations if is_network else [None]:
            report = scores(name, game, exam, simulations)
            print(json.dumps(report) if given.json else as_text(report), flush=True)


def scores(name: str, game: GameSpec, exam: Sequence[Question], simulations: int | None) -> dict[str, Any]:
    """Return the player's shares of best moves, in all and per stratum; of a raw network also how good its values are.

    simulations: of a network, 0 = raw; None for a player which is no network.
    """
    player = find_player(name, game, np.random.default_rng(0), simulations=simulations or 0)
    right = np.array([chosen in each.best for chosen, each in zip(choices(player, exam), exam, strict=True)])
    report = {"player": name, "simulations": simulations, **share_per_stratum(game, exam, right)}
    return report | (value_scores(exam, load_network(Path(name))) if simulations == 0 else {})


def choices(player: Any, exam: Sequence[Question]) -> list[int]:
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
    parts = [report["player"], "" if report["simulations"] is None else f"{report['simulations']} simulations"]
    for name, value in report.items():
        if isinstance(value, dict):
            parts.append(f"{name} {value['share']:.3f} ({value['low']:.3f} to {value['high']:.3f})")
        elif name in ("value_accuracy", "brier"):
            parts.append(f"{name} {value:.3f}")
    return ", ".join(part for part in parts if part)


if __name__ == "__main__":
    main()
