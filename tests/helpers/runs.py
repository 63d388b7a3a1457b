"""Small runs for tests: settings under which a worker and a trainer do their whole work within seconds."""

from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np

from plyzero.play.model_loader import load_newest
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.run.directory import Run, create_run
from plyzero.run.models import list_models
from plyzero.run.records import Games
from plyzero.search.evaluators import Uniform
from plyzero.search.onnx_network import Network
from selfplay.games_in_play import GamesInPlay
from selfplay.replay_writer import ReplayWriter
from trainer.loop import Trainer

SMALL = (
    "selfplay.parallel_games=8",
    "selfplay.simulations=16",
    "selfplay.fast_simulations=4",
    "selfplay.bootstrap_positions=200",
    "selfplay.seal_positions=100",
    "selfplay.poll_seconds=0.05",
    "network.blocks=1",
    "network.channels=8",
    "trainer.batch_size=32",
    "trainer.publish_seconds=0.2",
    "trainer.window_positions=2000",
)


def small_run(root: Path, game: str = "tic-tac-toe", *options: str) -> Run:
    return create_run(root, load_game(game), options=[*SMALL, *options])


def learn(run: Run, *, models: int, full: int) -> Network:
    """Let a worker and a trainer take turns in this thread, so many positions with a full search at a time.

    Return the last of `models`. The same on every machine, but for what floating point does.
    """
    games = GamesInPlay(run.game.start, run.settings, seeds=count())
    network: Network | None = None
    with closing(Trainer(run, device="cpu")) as trainer:
        while len(list_models(run.models)) < models:
            fence, step = (network.fence, network.step) if network else (0, 0)
            with ReplayWriter(run, worker="w0", incarnation=f"{trainer.games:08x}") as store:
                while store.totals()["full_positions"] < full:
                    for finished in games.run(network or Uniform(run.game.start.num_actions), fence=fence, step=step):
                        store.add(finished)
            trainer.ingest()
            while not trainer.missing_positions():
                trainer.train_step()
            if trainer.step:
                trainer.publish()
                network = load_newest(run.models, run.game)
    assert network is not None
    return network


def replay(start: Game, games: Games) -> list[list[Game]]:
    """The positions of every recorded game, the final one included, as the rules make them from its actions."""
    lines, at = [], 0
    for game in games.games:
        line = [start]
        for record in games.positions[at : at + game["positions"]]:
            line.append(line[-1].play(int(record["action"])))
        lines.append(line)
        at += int(game["positions"])
    return lines


def moves_of(games: Games, position: int) -> np.ndarray:
    """The `[n]` MOVE records of one position."""
    first = int(games.positions["num_legal"][:position].sum())
    return games.moves[first : first + int(games.positions["num_legal"][position])]
