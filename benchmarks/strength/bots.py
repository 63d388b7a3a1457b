"""Make a trained network the bot that comes along with plyzero: measure its levels, and write its card beside it.

python -m benchmarks.strength.learn connect-four --minutes 60 --exam FILE --models build/bots --write build/bots/results
python -m benchmarks.strength.bots build/bots/connect-four-seed1-60min.onnx --results build/bots/results
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from benchmarks.strength.ladder import measure
from plyzero.bundled import DIRECTORY
from plyzero.catalog import GameSpec
from plyzero.match import play_match
from plyzero.network import Network
from plyzero.players import Bot, Player, find_player, load_network

LEVELS = (0, 3.0), (0, 1.5), (0, 1.0), (0, 0.5), (0, 0.0), (16, 0.0), (64, 0.0), (256, 0.0), (1024, 0.0)
"""Simulations, and the temperature at which moves are drawn."""

SECOND = 0.5
"""The default level answers in so many seconds, on a slower machine than this in one."""

REFERENCE = "mcts:1000"


def main() -> None:
    """Measure, and write the network and its card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--results", type=Path, required=True, metavar="FILE", help="what learn.py wrote")
    parser.add_argument("--games", type=int, default=100, help="of each pair")
    parser.add_argument("--command", required=True, help="what reproduces it, for the card")
    given = parser.parse_args()

    network = load_network(given.model)
    game, rng = network.game, np.random.default_rng(0)
    bots = {f"level {level}": level_of(network, *level) for level in LEVELS}
    ratings = measure(game, bots, games=given.games, rng=rng)
    order = sorted(zip(LEVELS, bots.items(), strict=True), key=lambda each: ratings[each[1][0]].elo)
    levels = [
        {
            "simulations": simulations,
            "temperature": temperature,
            "elo": round(ratings[name].elo),
            "interval": [round(ratings[name].low), round(ratings[name].high)],
        }
        for (simulations, temperature), (name, _) in order
    ]
    quick = [number for number, (_, (_, bot)) in enumerate(order, start=1) if seconds_of(bot, game) < SECOND]
    name = re.sub(r"[^a-z0-9]+", "-", game.name).strip("-")
    card = {
        "game": game.identity,
        "default_level": max(quick),
        "training": training(given.model, given.results, given.command) | against_reference(network, given.games),
        "levels": levels,
    }
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / f"{name}.onnx").write_bytes(given.model.read_bytes())
    (DIRECTORY / f"{name}.toml").write_text(tomli_w.dumps(card), encoding="utf-8")
    print(tomli_w.dumps(card))


def level_of(network: Network, simulations: int, temperature: float) -> Bot:
    """Return the bot at that level."""
    settings = network.search_settings
    return Bot("", network.game, network, simulations=simulations, settings=settings, temperature=temperature)


def seconds_of(bot: Bot, game: GameSpec) -> float:
    """Return how long the bot's first move takes, all compiled."""
    bot.choose(game.start)
    began = time.perf_counter()
    bot.choose(game.start)
    return time.perf_counter() - began


def training(model: Path, results: Path, command: str) -> dict[str, Any]:
    """Return what the card says of how the network was made, and of its exams."""
    lines = (json.loads(line) for line in results.read_text(encoding="utf-8").splitlines())
    made = [line for line in lines if line["model"] == model.name][-1]
    exams = {
        f"{exam}, {report['simulations']} simulations": [report["optimal"][key] for key in ("share", "low", "high")]
        for exam, reports in made["scores"].items()
        for report in reports
    }
    return {
        "command": command,
        "date": datetime.date.today().isoformat(),
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}",
        "minutes": made["minutes"],
        "seed": made["seed"],
        "options": made["options"],
        "games": made["games"],
        "positions": made["positions"],
        "exams": exams,
    }


def against_reference(network: Network, games: int) -> dict[str, Any]:
    """Return the score with 64 simulations against pure MCTS, with its interval."""
    rng = np.random.default_rng(1)
    other: Player = find_player(REFERENCE, network.game, rng)
    result = play_match(level_of(network, 64, 0.0), other, network.game.start, games=games, rng=rng)
    score = {"won": result.wins, "drawn": result.draws, "lost": result.losses}
    return {f"against {REFERENCE}, 64 simulations": score | {"interval": [round(end, 3) for end in result.interval()]}}


if __name__ == "__main__":
    main()
