"""Search the newest 1000 samples of runs/c4 again, and make samples with the new policies: python relabel.py"""

import numpy as np

from plyzero import Bot, Settings, read_games
from plyzero.trainer.targets import make_samples, mixed_targets

bot = Bot.load("runs/c4", simulations=64)
games = read_games("runs/c4")
settings = Settings()
last = set(np.cumsum(games.games["positions"]) - 1)  # index of the last recorded position of each game
positions = [bot.game.start]
for index, action in enumerate(games.positions["action"][:-1].tolist()):
    positions.append(bot.game.start if index in last else positions[-1].play(action))

targets = mixed_targets(games, search=bot.settings, trainer=settings.trainer)
policy, differences = targets.policy.copy(), []
first_moves = np.cumsum(games.positions["num_legal"]) - games.positions["num_legal"]
searched = np.flatnonzero(targets.is_sample)[-1000:]
for index, result in zip(searched, bot.search([positions[i] for i in searched]), strict=True):
    rows = slice(first_moves[index], first_moves[index] + len(result.actions))
    differences.append(abs(policy[rows] - result.policy).sum() / 2)
    policy[rows] = result.policy
print(f"{len(searched)} positions: the policies differ by {np.mean(differences):.0%}")
relabelled = targets._replace(policy=policy)
samples = make_samples(
    games, search=bot.settings, trainer=settings.trainer, make_targets=lambda games, **settings: relabelled
)
