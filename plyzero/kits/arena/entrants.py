"""Entrants: the players of a ladder, with names that stay true when files and code change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plyzero.errors import UserError
from plyzero.files import write_file
from plyzero.play.clock import describe_limits
from plyzero.play.player import Player
from plyzero.play.players import Bot, find_player
from plyzero.rules.catalog import GameSpec
from plyzero.run.models import digest_of, read_model_file


@dataclass(frozen=True)
class Entrant:
    """A player of a ladder.

    name:     as it was given, for people.
    identity: what it is: if this is the same, so is the way it plays.
    network:  the content of its ONNX file; None if it has none or is a bundled bot.
    limits:   simulations, search, clock and threads as of `find_player`, if it searches with a network or an evaluator
              of your own.
    step:     the optimiser steps of its network, if it is a checkpoint of a run whose ladder this is.
    """

    name: str
    identity: str
    network: bytes | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    step: int | None = None

    @staticmethod
    def of_network(name: str, content: bytes, limits: Mapping[str, Any], *, step: int | None = None) -> Entrant:
        """Return the player that searches with the network in an ONNX file with this content."""
        return Entrant(name, f"{digest_of(content)} with {describe_limits(**limits)}", content, limits, step)

    def player(self, game: GameSpec, rng: np.random.Generator, *, models: Path) -> Player:
        """Return the player, whose random numbers are sampled from `rng`; its network is in the directory `models`."""
        name = str(models / model_file(self.identity)) if self.network is not None else self.name
        return find_player(name, game, rng, **self.limits)

    def write_network(self, models: Path) -> None:
        """Copy the network into the directory `models`, so that it stays when a run removes it."""
        path = models / model_file(self.identity)
        if self.network is not None and not path.exists():
            write_file(path, self.network)


def model_file(identity: str) -> str:
    """Return the name of the file in which a ladder keeps the network of an entrant."""
    return f"{identity[:8]}.onnx"


def find_entrants(names: Sequence[str], game: GameSpec, **limits: Any) -> list[Entrant]:
    """Return the players with these names.

    limits: of `Entrant`.
    Raises UserError if one is not a player of `game`, or is there twice, or if there are fewer than two.
    """
    if not names:
        raise UserError("expected at least two players, such as --players random mcts:200, got none")
    entrants: dict[str, Entrant] = {}
    for name in names:
        entrant = _find_entrant(name, game, limits)
        other = entrants.setdefault(entrant.identity, entrant)
        if other is not entrant:
            same = f"{name} is there twice" if name == other.name else f"{other.name} and {name} are the same player"
            raise UserError(f"{same}; give each player once")
    if len(entrants) < 2:
        raise UserError(f"expected at least two players, got only {names[0]}")
    return [*entrants.values()]


def _find_entrant(name: str, game: GameSpec, limits: Mapping[str, Any]) -> Entrant:
    untimed = {**limits, "clock": None}  # a bot under a clock would first measure its rate
    player = find_player(name, game, np.random.default_rng(), **untimed)
    if not player.takes_limits:
        return Entrant(name, player.identity)
    if isinstance(player, Bot) and player.model_file:
        return Entrant.of_network(name, read_model_file(player.model_file), limits)
    return Entrant(name, f"{player.identity} with {describe_limits(**limits)}", limits=limits)
