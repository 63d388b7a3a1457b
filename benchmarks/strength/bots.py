"""Train a bot that comes along with plyzero: score it, rate its levels, and write network and card.

python -m benchmarks.strength.bots connect-four --minutes 60 --exam benchmarks/strength/connect-four-test.txt \\
    --openings benchmarks/strength/connect-four-dev.txt
python -m benchmarks.strength.bots hex --after "hex(size=7)" 8 --after "hex(size=9)" 12 --minutes 18 --workers 1
python -m benchmarks.strength.bots pig --minutes 5 --workers 1 --run runs/pig       # trained so by hand

Then `benchmarks.strength.levels` measures the levels against public programs.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from benchmarks.strength.ladder import RUNGS, add_openings, drawn_openings, measure
from benchmarks.strength.learn import add_arguments, learn
from benchmarks.strength.score import brief
from plyzero.network.model_loader import load_network
from plyzero.network.onnx_network import Network
from plyzero.play.bundled_bots import DIRECTORY
from plyzero.play.player import Player
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import first_decision
from plyzero.settings import parse_stored_settings

LEVELS = (0, 8.0), (0, 3.0), (0, 1.5), (0, 1.0), (0, 0.5), (0, 0.0), (16, 0.0), (64, 0.0), (256, 0.0), (1024, 0.0)
"""Simulations, and the temperature at which moves are drawn; what should be ever stronger, and at last ever slower."""

STEP = 30
"""Elo by which a level is weaker than the next one; others are left out, but never the strongest."""

ON_CARD = "date", "hardware", "minutes", "seed", "options", "games", "positions", "evaluations"
"""Fields of the result of learn.py on the card."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path, help="take its newest model, of a training as the other arguments describe")
    parser.add_argument(
        "--after",
        nargs=2,
        action="append",
        default=[],
        metavar=("GAME", "MINUTES"),
        help="train this smaller size before, and begin with its network; more than once",
    )
    parser.add_argument("--games", type=int, default=100, help="of each pair of players, for the levels")
    parser.add_argument("--most", type=int, default=1024, help="simulations of the strongest level")
    parser.add_argument("--rungs", nargs="+", default=RUNGS, metavar="PLAYER", help="pure MCTS, for the levels")
    add_openings(parser)
    add_arguments(parser)
    given = parser.parse_args()

    models = Path("build/bots")
    smaller = [(name, float(minutes)) for name, minutes in given.after]
    made = learn(given, given.seed, models, run=given.run, smaller=smaller)[-1]
    network = load_network(models / made["model"])
    openings = drawn_openings(given.openings, network.game, given.games)
    players = [(simulations, drawn) for simulations, drawn in LEVELS if simulations <= given.most]
    levels = measure_levels(network, players, given.games, openings, given.rungs)
    card: dict[str, Any] = {
        "game": network.game.identity,
        "default_level": max(number for number, level in enumerate(levels, start=1) if level["seconds"] < 0.5),
        "training": training(made, given.run),
        "levels": levels,
    }
    if parse_stored_settings(network.metadata["settings"]).network.value_head == "pooled":
        card["observation_shape"] = list(network.game.start.observation_shape)
    name = re.sub(r"[^a-z0-9]+", "-", network.game.name).strip("-")
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / f"{name}.onnx").write_bytes((models / made["model"]).read_bytes())
    text = tomli_w.dumps(card)
    (DIRECTORY / f"{name}.toml").write_text(text, encoding="utf-8")
    print(text)


def measure_levels(
    network: Network,
    candidates: Sequence[tuple[int, float]],
    games: int,
    openings: Sequence[Sequence[int]] | None,
    rungs: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the levels of a card: the candidates that are a STEP stronger than the one before, and the strongest."""
    bots: list[Player] = [Bot.from_network(network, simulations=n, temperature=drawn) for n, drawn in candidates]
    players = {f"level {level}": bot for level, bot in zip(candidates, bots, strict=True)}
    rng = np.random.default_rng(0)
    rated = measure(network.game, players, games=games, rng=rng, openings=openings, rungs=rungs, linked=True)
    ratings = [rated[name] for name in players]
    strongest = max(ratings, key=lambda rating: rating.elo)
    levels: list[dict[str, Any]] = []
    for (simulations, temperature), bot, rating in zip(candidates, bots, ratings, strict=True):
        elo, low, high = map(round, rating)
        while levels and rating is strongest and levels[-1]["elo"] > elo - STEP:
            levels.pop()
        if not levels or elo >= levels[-1]["elo"] + STEP:
            seconds = round(seconds_of(bot, network.game), 3)
            about = {"simulations": simulations, "temperature": temperature, "seconds": seconds}
            levels.append(about | {"elo": elo, "low": low, "high": high})
    return levels


def seconds_of(bot: Player, game: GameSpec) -> float:
    """Return the duration of the bot's first move when all is compiled: the shortest of three times, in seconds."""
    start = first_decision(game.start)
    bot.choose_all([start])
    times = []
    for _ in range(3):
        began = time.perf_counter()
        bot.choose_all([start])
        times.append(time.perf_counter() - began)
    return min(times)


def training(made: dict[str, Any], run: Path | None) -> dict[str, Any]:
    """Return the facts of a card about the training; its command also makes the run, if there was one."""
    exams = {
        f"{exam}, {report['simulations']} simulations": brief(report["best moves"]["all"])
        for exam, reports in made["scores"].items()
        for report in reports
    }
    given = sys.argv[1:]
    if run:
        at = given.index("--run")
        del given[at : at + 2]
    return {
        "command": shlex.join(["python", "-m", "benchmarks.strength.bots", *given]),
        **{key: made[key] for key in ON_CARD},
        "exams": exams,
    }


if __name__ == "__main__":
    main()
