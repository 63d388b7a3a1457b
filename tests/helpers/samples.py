"""Samples: of recorded games by the default settings, and such as no game has made."""

from typing import Any

import numpy as np

from plyzero.rules.game import Game
from plyzero.run.records import Games
from plyzero.settings import SearchSettings, TrainerSettings
from plyzero.trainer.targets import Samples, make_samples


def samples_of(games: Games, start: Game | None = None) -> Samples:
    """The samples that training makes from games; with `start`, they include points and final boards."""
    return make_samples(games, search=SearchSettings(), trainer=TrainerSettings(), start=start)


def made_up(observations: np.ndarray, wdl: Any, policy: Any, **more: np.ndarray) -> Samples:
    """Samples with observations of bool and as many legal actions, from 0 on, as the policy has columns."""
    probabilities = np.array(policy, np.float32)
    positions, legal = probabilities.shape
    return Samples(
        observations=np.packbits(observations.reshape(positions, -1), axis=1),
        wdl=np.array(wdl, np.float32),
        num_legal=np.full(positions, legal),
        actions=np.tile(np.arange(legal), positions),
        probabilities=probabilities.ravel(),
        **more,
    )
