"""Entrants: the players of a ladder, with names that stay true when files and code change."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plyzero.errors import UserError
from plyzero.files import write_file
from plyzero.network.model_loader import load_network
from plyzero.play.bundled_bots import find_card
from plyzero.play.players import DEFAULT_SIMULATIONS, UNCHANGED, Bot, Player, find_player, named_model
from plyzero.rules.catalog import GameSpec
from plyzero.run.directory import open_run
from plyzero.run.models import digest_of, read_model_file


@dataclass(frozen=True)
class Entrant:
    """A player of a ladder.

    name:        as it was given, for people.
    identity:    what it is: if this is the same, so is the way it plays.
    network:     the content of its ONNX file; None if it has none or is a bundled bot.
    simulations: number per move, if it searches with a network or an evaluator of your own.
    search:      changes of its search settings.
    step:        the optimiser steps of its network, if it is a checkpoint of a run whose ladder this is.
    """

    name: str
    identity: str
    network: bytes | None = None
    simulations: int = DEFAULT_SIMULATIONS
    search: Mapping[str, object] | None = None
    step: int | None = None

    @staticmethod
    def of_network(
        name: str, content: bytes, simulations: int, search: Mapping[str, object], *, step: int | None = None
    ) -> Entrant:
        """Return the player that searches with the network in an ONNX file with this content."""
        identity = f"{digest_of(content)} with {_settings(simulations, search)}"
        return Entrant(name, identity, content, simulations, dict(search), step)

    def player(self, game: GameSpec, rng: np.random.Generator, *, models: Path) -> Player:
        """Return the player, whose random numbers are sampled from `rng`; its network is in the directory `models`."""
        name = str(models / model_file(self.identity)) if self.network is not None else self.name
        return find_player(name, game, rng, simulations=self.simulations, search=self.search or UNCHANGED)

    def write_network(self, models: Path) -> None:
        """Copy the network into the directory `models`, so that it stays when a run removes it."""
        path = models / model_file(self.identity)
        if self.network is not None and not path.exists():
            write_file(path, self.network)


def model_file(identity: str) -> str:
    """Return the name of the file in which a ladder keeps the network of an entrant."""
    return f"{identity[:8]}.onnx"


def find_entrants(
    names: Sequence[str], game: GameSpec, *, simulations: int, search: Mapping[str, object] = UNCHANGED
) -> list[Entrant]:
    """Return the players with these names.

    Raises UserError if one is not a player of `game`, or is there twice, or if there are fewer than two.
    """
    if not names:
        raise UserError("expected at least two players, such as --players random mcts:200, got none")
    entrants: dict[str, Entrant] = {}
    for name in names:
        entrant = _find_entrant(name, game, simulations, search)
        other = entrants.setdefault(entrant.identity, entrant)
        if other is not entrant:
            same = f"{name} is there twice" if name == other.name else f"{other.name} and {name} are the same player"
            raise UserError(f"{same}; give each player once")
    if len(entrants) < 2:
        raise UserError(f"expected at least two players, got only {names[0]}")
    return [*entrants.values()]


def _find_entrant(name: str, game: GameSpec, simulations: int, search: Mapping[str, object]) -> Entrant:
    player = find_player(name, game, np.random.default_rng(), simulations=simulations, search=search)
    settings = _settings(simulations, search)
    kind, _, level = name.partition(":")
    card = find_card(game)
    if kind == "bot" and card is not None:
        chosen = card.level(int(level) if level else None)
        sampling = f", temperature {chosen.temperature:g}" if chosen.temperature else ""
        digest = digest_of(read_model_file(card.network))
        return Entrant(name, f"{digest} with {_settings(chosen.simulations, UNCHANGED)}{sampling}")
    if isinstance(player, Bot) and kind != "mcts" and (named := named_model(name)):
        file, model = named
        if file.is_dir():
            run = open_run(file, game=game)
            file = run.models / load_network(file, game, model=model).label
        return Entrant.of_network(name, read_model_file(file), simulations, search)
    if match := re.fullmatch(r"(\w+(?:\.\w+)*):[A-Za-z_]\w*(?:\(.*\))?", name):  # an agent, or an evaluator
        source = importlib.import_module(match[1]).__file__
        identity = f"{name} {digest_of(read_model_file(Path(source or '')))}"
        searches = f" with {settings}" if isinstance(player, Bot) else ""
        return Entrant(name, identity + searches, None, simulations, dict(search))
    return Entrant(name, player.name)


def _settings(simulations: int, search: Mapping[str, object]) -> str:
    changes = "".join(f", {key}={json.dumps(value)}" for key, value in sorted(search.items()))
    return f"{simulations} simulations{changes}"
