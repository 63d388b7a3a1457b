"""The players of the tasks: the bot of a run, and opponents whose random numbers are repeatable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.tasks.results import AGENT, need
from plyzero.play.players import Bot, Player, find_player
from plyzero.rules.catalog import GameSpec


def find_agent(run: Path, game: GameSpec, *, simulations: int) -> Player:
    """Return the trained bot of a run, which plays without randomness. Raises UserError if it is missing."""
    path = need(run / AGENT, "train")
    return find_player(str(path), game, np.random.default_rng(), simulations=simulations)


def find_opponent(name: str, game: GameSpec, rng: np.random.Generator, *, simulations: int) -> Player:
    """Return the player `name` of `plyzero match`, all whose random numbers are from `rng`.

    Raises UserError if there is no such player.
    """
    player = find_player(name, game, rng, simulations=simulations)
    return player.with_rng(rng.spawn(1)[0]) if isinstance(player, Bot) else player


def check_opponents(names: Sequence[str], game: GameSpec, *, simulations: int) -> None:
    """Raise UserError if there is no such player. A path is not looked for: it may be made before it is needed."""
    for name in names:
        if "/" not in name:
            find_opponent(name, game, np.random.default_rng(), simulations=simulations)
