"""Players of a game: bots that search, random players, and how to find one by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, Self

import numpy as np

from plyzero.errors import UserError, shown
from plyzero.play.bundled_bots import find_card
from plyzero.play.model_loader import load_network
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import Game
from plyzero.search.evaluators import Evaluate, Rollouts
from plyzero.search.onnx_network import Network
from plyzero.search.slots import SearchResult, SearchSlots, search
from plyzero.settings import MAX_SIMULATIONS, SearchSettings, parse_rollouts

PURE_MCTS: Final = SearchSettings(algorithm="puct", c_puct=1.25, fpu_reduction=0.0)
"""Search settings of pure MCTS, the player `mcts:N`: uniform priors and one random rollout per leaf."""

DEFAULT_SIMULATIONS: Final = 64
"""Simulations per move of a bot with a network, unless another number is given."""

MAX_NODES: Final = 1_000_000
"""Number of nodes, in all trees together, above which positions are searched one group after another."""


def find_player(
    name: str, game: GameSpec, rng: np.random.Generator, *, simulations: int = DEFAULT_SIMULATIONS
) -> Player:
    """Return the player that `name` describes.

    random         plays uniformly random moves
    mcts:N         pure MCTS with N rollouts per move
    bot, bot:LEVEL the bundled bot
    DIRECTORY      the newest model of a run; with @best or @STEP another one
    FILE           the network in an ONNX file

    simulations: number per move of a run or a file. Raises UserError for any other name.
    """
    kind, _, number = name.partition(":")
    if name == "random":
        return RandomPlayer(rng)
    if kind == "mcts":
        try:
            return Bot.pure_mcts(game, rng, simulations=parse_rollouts(name))
        except ValueError as error:
            raise UserError(f"{error}, got {shown(name)}") from error
    if kind == "bot":
        if name != "bot" and not (number.isdecimal() and len(number) < 9):
            raise UserError(f"expected bot or bot:LEVEL, such as bot:3, got {shown(name)}")
        return Bot.at_level(game, int(number) if number else None)
    path, at, model = name.partition("@")
    if not path or not os.path.exists(path):  # Path.exists raises an error for a name that is too long
        raise UserError(
            f"{shown(path)} does not exist; expected a player: random, mcts:1000, bot, a run directory or an ONNX file"
        )
    if at and not os.path.isdir(path):
        raise UserError(f"{shown(name)}: {shown(path)} is one model; @ chooses among the models of a run directory")
    network = load_network(Path(path), game, model=model if at else "newest")
    return Bot.from_network(network, simulations=simulations)


class Player(Protocol):
    """Anything that chooses moves."""

    @property
    def name(self) -> str:
        """The name to show in results."""
        ...

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return a legal action for each of `positions`; there is at least one position, and none is finished."""
        ...


class RandomPlayer:
    """A player that chooses uniformly among the legal actions."""

    name = "random"

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        return [int(self._rng.choice(np.asarray(position.legal_actions()))) for position in positions]


class Bot:
    """A player that searches without noise and plays the best move; with 0 simulations, the raw network.

    game:        the game it plays.
    simulations: number per move.
    """

    def __init__(
        self,
        name: str,
        game: GameSpec,
        evaluate: Evaluate,
        *,
        simulations: int,
        settings: SearchSettings,
        temperature: float = 0.0,
    ) -> None:
        """Make a bot that evaluates leaves with `evaluate`.

        temperature: moves are sampled from policy^(1/temperature); 0 = the best move.
        Raises UserError for a number of simulations that is negative or above MAX_SIMULATIONS.
        """
        if not 0 <= simulations <= MAX_SIMULATIONS:
            raise UserError(f"expected simulations from 0 to {MAX_SIMULATIONS}, got {shown(simulations)}")
        self.name, self.game, self.simulations = name, game, simulations
        self._evaluate, self._settings, self._temperature = evaluate, settings, temperature
        self._rng = np.random.default_rng()

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        game: str | None = None,
        model: str = "newest",
        simulations: int = DEFAULT_SIMULATIONS,
    ) -> Self:
        """Return the bot of a run directory or of an ONNX file.

        game:  the game it must play, such as "connect-four"; by default the game it was trained for.
        model: of a run: "newest", "best" by the scores that `train` measured, or a training step as text.
        Raises UserError if there is no such model or it cannot be used.
        """
        network = load_network(Path(path), load_game(game) if game else None, model=model)
        return cls.from_network(network, simulations=simulations)

    @classmethod
    def from_network(
        cls,
        network: Network,
        *,
        simulations: int = DEFAULT_SIMULATIONS,
        temperature: float = 0.0,
        name: str | None = None,
    ) -> Self:
        """Return a bot that plays with `network` and with the search settings it was trained with."""
        return cls(
            name or f"{network.label} with {simulations} simulations",
            network.game,
            network,
            simulations=simulations,
            settings=network.search_settings,
            temperature=temperature,
        )

    @classmethod
    def at_level(cls, game: GameSpec, number: int | None = None) -> Self:
        """Return the bundled bot for `game` at a level, by default its default level.

        Raises UserError if there is no bundled bot for the game, or no such level.
        """
        card = find_card(game)
        if card is None:
            raise UserError(
                f"there is no bundled bot for {game.identity}; train one, or play against pure MCTS, which needs no "
                "model"
            )
        level = card.level(number)
        return cls.from_network(
            load_network(card.network, game),
            simulations=level.simulations,
            temperature=level.temperature,
            name=f"the bundled bot, {level}",
        )

    @classmethod
    def pure_mcts(cls, game: GameSpec, rng: np.random.Generator, *, simulations: int) -> Self:
        """Return a bot without a network: the value of a leaf is the result of one random rollout."""
        rollouts = Rollouts(game.start.num_actions, rng)
        return cls(f"mcts:{simulations}", game, rollouts, simulations=simulations, settings=PURE_MCTS)

    def choose(self, position: Game) -> int:
        """Return the action to play in `position`, which must not be finished."""
        return self.select_action(self.search([position])[0])

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return the action to play in each of `positions`, none of which may be finished."""
        return [self.select_action(result) for result in self.search(positions)]

    def select_action(self, result: SearchResult) -> int:
        """Return the action to play after a search: the best one, or sampled if the bot has a temperature."""
        if not self._temperature:
            return result.best_action()
        weights = result.policy ** (1 / self._temperature)
        return int(self._rng.choice(result.actions, p=weights / weights.sum()))

    def search(
        self, positions: Sequence[Game], *, on_batch: Callable[[SearchSlots], None] = lambda slots: None
    ) -> list[SearchResult]:
        """Return the search result for each of `positions`, none of which may be finished.

        As many are searched together as MAX_NODES allows.

        on_batch: called before every batch of evaluations, to show progress.
        Raises UserError for a position of another game.
        """
        start = self.game.start
        for position in positions:
            if type(position) is not type(start) or position.observation_shape != start.observation_shape:
                raise UserError(f"expected positions of {self.game.name}, got one of {type(position).__name__}")
        together = max(1, MAX_NODES // (self.simulations + 1))
        results: list[SearchResult] = []
        for first in range(0, len(positions), together):
            part = positions[first : first + together]
            results += search(
                part, self._evaluate, simulations=self.simulations, settings=self._settings, on_batch=on_batch
            )
        return results
