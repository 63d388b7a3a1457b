"""Players: anything that chooses moves, and how to find one by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, Self

import numpy as np

from plyzero.errors import UserError
from plyzero.play.bundled_bots import find_card
from plyzero.play.model_loader import load_network
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import Game
from plyzero.search.evaluators import Evaluate, Rollouts
from plyzero.search.onnx_network import Network
from plyzero.search.slots import SearchResult, SearchSlots, search
from plyzero.settings import SearchSettings

PURE_MCTS = SearchSettings(algorithm="puct", c_puct=1.25, fpu_reduction=0.0)
"""Of the opponent `mcts:N`: uniform priors, one random playout per leaf, proven values backed up."""

SIMULATIONS: Final = 64
"""Of a bot, where nobody says how many."""


class Player(Protocol):
    """Chooses moves."""

    @property
    def name(self) -> str:
        """What to call it in a table."""
        ...

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return a legal action for each of `positions`, at least one, none finished."""
        ...


class RandomPlayer:
    """Any legal action, all alike probable."""

    name = "random"

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        return [int(self._rng.choice(np.asarray(position.legal_actions()))) for position in positions]


class Bot:
    """Searches without noise and plays the best; with 0 simulations it plays what its network likes most.

    game: what it plays. simulations: a move, unless the caller says otherwise.
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
        """Make a bot out of its parts. temperature: moves are drawn from policy^(1/temperature); 0 = the best one."""
        self.name, self.game, self.simulations = name, game, simulations
        self._evaluate, self._settings, self._temperature = evaluate, settings, temperature
        self._rng = np.random.default_rng()

    @classmethod
    def load(
        cls, path: Path | str, *, game: str | None = None, model: str = "newest", simulations: int = SIMULATIONS
    ) -> Self:
        """Return the bot of a run directory or of an ONNX file.

        game:  what it must play, such as "connect-four"; by default the one it was trained for.
        model: of a run: "newest", "best" (by the scores that `train` measured) or the step in its name.
        Raises UserError where there is no such model or it does not fit.
        """
        network = load_network(Path(path), (game and load_game(game)) or None, model=model)
        return cls.of(network, simulations=simulations)

    @classmethod
    def of(
        cls, network: Network, *, simulations: int = SIMULATIONS, temperature: float = 0.0, name: str | None = None
    ) -> Self:
        """Return the bot of a network, which searches as it was trained to."""
        return cls(
            *(name or f"{network.label} with {simulations} simulations", network.game, network),
            simulations=simulations,
            settings=network.search_settings,
            temperature=temperature,
        )

    @classmethod
    def at_level(cls, game: GameSpec, number: int | None = None) -> Self:
        """Return the bot that comes along for `game`, at that level or at its default. UserError if there is none."""
        card = find_card(game)
        if card is None:
            raise UserError(f"no bot comes along for {game.identity}; train one, or meet pure MCTS, which needs none")
        level, network = card.level(number), load_network(card.network, game)
        name = f"plyzero's own, {level}"
        return cls.of(network, simulations=level.simulations, temperature=level.temperature, name=name)

    @classmethod
    def pure_mcts(cls, game: GameSpec, rng: np.random.Generator, *, simulations: int) -> Self:
        """Return the opponent that needs no network: each simulation ends with one game of random moves."""
        rollouts = Rollouts(game.start.num_actions, rng)
        return cls(f"mcts:{simulations}", game, rollouts, simulations=simulations, settings=PURE_MCTS)

    def choose(self, position: Game) -> int:
        """Return the action to play in `position`, which is not finished."""
        return self.pick(self.think([position])[0])

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        return [self.pick(root) for root in self.think(positions)]

    def pick(self, root: SearchResult) -> int:
        """Return the action to play after a search that found `root`."""
        if not self._temperature:
            return root.best_action()
        weights = root.policy ** (1 / self._temperature)
        return int(self._rng.choice(root.actions, p=weights / weights.sum()))

    def think(
        self, positions: Sequence[Game], *, watch: Callable[[SearchSlots], None] | None = None
    ) -> list[SearchResult]:
        """Return what a search finds in each of `positions`, none of them finished; see plyzero.search.slots."""
        return search(positions, self._evaluate, simulations=self.simulations, settings=self._settings, watch=watch)


def find_player(name: str, game: GameSpec, rng: np.random.Generator, *, simulations: int = SIMULATIONS) -> Player:
    """Return the player that `name` describes.

    `random`; `mcts:N`, pure MCTS with N rollouts a move; `bot` or `bot:LEVEL`, the one that comes along; a run
    directory, for its newest model, with `@best` or `@STEP` for another one; an ONNX file. UserError for anything else.
    """
    kind, _, number = name.partition(":")
    if name == "random":
        return RandomPlayer(rng)
    if kind == "mcts":
        if not number.isdecimal() or int(number) == 0:
            raise UserError(f"expected mcts:N with N rollouts a move, such as mcts:1000, got {name!r}")
        return Bot.pure_mcts(game, rng, simulations=int(number))
    if kind == "bot":
        if number and not number.isdecimal():
            raise UserError(f"expected bot or bot:LEVEL, such as bot:3, got {name!r}")
        return Bot.at_level(game, int(number) if number else None)
    path, _, model = name.partition("@")
    if not Path(path).exists():
        raise UserError(f"{path!r} is not there; a player is random, mcts:1000, bot, a run directory or an ONNX file")
    return Bot.of(load_network(Path(path), game, model=model or "newest"), simulations=simulations)
