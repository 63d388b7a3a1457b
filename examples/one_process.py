"""Self-play and training in one process, without a run directory: python one_process.py"""

from itertools import count

import numpy as np
import torch

from plyzero import Bot, Games, RandomPlayer, Settings, load_game, play_match
from plyzero.network.onnx_network import Network
from plyzero.search.evaluators import Uniform
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.trainer.export import export
from plyzero.trainer.loss import loss
from plyzero.trainer.network import ResidualNetwork
from plyzero.trainer.targets import make_samples
from plyzero.trainer.window import Window, to_device

game = load_game("tic-tac-toe")
settings = Settings.model_validate({"selfplay": {"simulations": 32}})
rng, window = np.random.default_rng(0), Window(game.start)
torch.manual_seed(0)
torch.set_num_threads(1)  # the fastest for a small network
network = ResidualNetwork(game.start.observation_shape, game.start.num_actions, blocks=1, channels=32)
optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
games_in_play = GamesInPlay(game.start, settings, seeds=count())
evaluate = Uniform(game.start.num_actions)  # self-play begins without a network
for iteration in range(1, 4):
    played: list[Games] = []
    while sum(games.num_full for games in played) < 500:
        played += games_in_play.run(evaluate, fence=int(iteration > 1))
    samples = make_samples(Games.concatenate(played), search=settings.search, trainer=settings.trainer)
    window.add(f"iteration {iteration}", samples, size=2000)
    network.train()
    for _ in range(60):
        batch = to_device(window.sample(128, rng), torch.device("cpu"))
        losses = loss(*network(batch.observations), legal=batch.legal, policy=batch.policy, wdl=batch.wdl)
        optimiser.zero_grad()
        losses.total.backward()
        optimiser.step()
    onnx = export(network, game, window.sample(64, rng).observations, metadata={})
    evaluate = Network(onnx, game, label=f"iteration {iteration}")
    print(f"{iteration}: policy loss {losses.policy:.3f}, value loss {losses.value:.3f}")
bot = Bot("raw network", game, evaluate, simulations=0)
print(play_match(bot, RandomPlayer(rng), game.start, games=100, rng=rng).report())
