"""Players of a game: bots that search, random players, and how to find one by name."""

from __future__ import annotations

import copy
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, shown
from plyzero.network.model_loader import load_network
from plyzero.network.onnx_network import Network
from plyzero.play.agents import Agent, AgentPlayer, Forfeit
from plyzero.play.bundled_bots import find_card
from plyzero.play.clock import (
    DEFAULT_SIMULATIONS,
    END_SHARE,
    NO_LIMIT,
    UNCHANGED,
    UNKNOWN_RATE,
    Clock,
    TimeLimit,
    describe_limits,
)
from plyzero.play.rule_based import AlphaBeta, Greedy
from plyzero.play.scores import MatchResult
from plyzero.play.strength import UNKNOWN, Strength, of_level, strength_of
from plyzero.rules.catalog import GameSpec, load_game, parse_parameters
from plyzero.rules.chance import first_decision
from plyzero.rules.game import Game
from plyzero.rules.user_modules import create, load_object
from plyzero.run.configuration import change_search
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch, Rollouts, find_fault
from plyzero.search.slots import SearchResult, SearchSlots, search
from plyzero.search.solver import with_exact_end
from plyzero.setting_types import MAX_SIMULATIONS, OBJECT_NAME, parse_rollouts
from plyzero.settings import SearchSettings
from plyzero.volumes import to_path

if TYPE_CHECKING:
    from plyzero.play.found_moves import FoundMoves

MAX_NODES: Final = 1_000_000
"""Number of nodes, in all trees together, above which positions are searched one group after another."""

MAX_LEAVES: Final = 16
"""Largest number of leaves of one search in a batch; it is also at most one in MAX_LEAVES of its simulations."""


def find_player(
    name: str, game: GameSpec, rng: np.random.Generator, *, search: Mapping[str, object] = UNCHANGED, **limits: Any
) -> Player:
    """Return the player that `name` describes.

    random          plays uniformly random moves
    greedy          wins or prevents a win if it can with one move, otherwise plays at random
    alphabeta:DEPTH alpha-beta search to a depth of plies
    mcts:N          pure MCTS with N rollouts per move
    bot, bot:LEVEL  the bundled bot
    DIRECTORY       the newest model of a run; with @best or @STEP another one
    FILE            the network in an ONNX file
    MODULE:CLASS    an agent of your own, MODULE:CLASS(parameter=value) with parameters
    MODULE:FUNCTION a bot with your own evaluator

    search: of a run, a file or an evaluator: changes of the search settings.
    limits: simulations, clock and threads of these; see `Bot`.

    Raises UserError for any other name.
    """
    kind, _, number = name.partition(":")
    if name == "random":
        return RandomPlayer(rng)
    if name == "greedy":
        return _agent_player(name, Greedy, rng, {})
    if kind == "alphabeta":
        if not (number.isdecimal() and len(number) < 9):
            raise UserError(f"expected alphabeta:DEPTH, such as alphabeta:4, got {shown(name)}")
        return _agent_player(name, AlphaBeta, rng, {"depth": int(number)})
    if kind == "mcts":
        try:
            return Bot.pure_mcts(game, rng, simulations=parse_rollouts(name))
        except ValueError as error:
            raise UserError(f"{error}, got {shown(name)}") from error
    if kind == "bot":
        if name != "bot" and not (number.isdecimal() and len(number) < 9):
            raise UserError(f"expected bot or bot:LEVEL, such as bot:3, got {shown(name)}")
        return Bot.at_level(game, int(number) if number else None).with_rng(rng.spawn(1)[0])
    if named := named_model(name):
        return Bot.of_model(named[0], game, model=named[1], search=search, **limits)
    target, bracket, _ = name.partition("(")
    if re.fullmatch(OBJECT_NAME, target):
        found = load_object(target)
        if isinstance(found, type) and issubclass(found, Agent):
            return _agent_player(name, found, rng, parse_parameters(name))
        if not bracket:
            settings = change_search(SearchSettings(), search)
            return Bot(name, game, found, settings=settings, **limits)
        raise UserError(f"{target} is not a subclass of plyzero.Agent, so it has no parameters")
    raise UserError(
        f"{shown(re.sub('@[^/]*$', '', name))} does not exist; expected a player: random, greedy, alphabeta:4, "
        "mcts:1000, bot, a run directory, an ONNX file, your own agent as MODULE:CLASS, or your own evaluator as "
        "MODULE:FUNCTION"
    )


def named_model(name: str) -> tuple[Path, str] | None:
    """Return the file or run that `name` means, and which of its models; None if there is neither.

    A path may contain @ itself: a file or run of the whole name comes first. Raises UserError for @ after a file.
    """
    if path := existing_path(name):
        return path, "newest"
    text, _, model = name.rpartition("@")
    path = existing_path(text)
    if path and not path.is_dir():
        raise UserError(f"{shown(name)}: {shown(text)} is one model; @ chooses among the models of a run directory")
    return (path, model) if path else None


def existing_path(text: str) -> Path | None:
    """Return the file, the directory or the run in a bucket that `text` names, None if there is none."""
    if "://" in text:
        path = to_path(text)
        return path if path.exists() else None
    return Path(text) if text and os.path.exists(text) else None  # Path.exists raises for a name that is too long


def _agent_player(name: str, agent: type[Agent], rng: np.random.Generator, parameters: Mapping[str, object]) -> Player:
    """Return an agent as a player with random numbers of its own, sampled from `rng`."""
    made = create(name, agent, parameters)
    made.rng = rng.spawn(1)[0]
    return AgentPlayer(name, made)


def choices(player: Player, positions: Sequence[Game]) -> list[int | Forfeit]:
    """Return what `player` chooses in each of `positions`. Only an agent forfeits; other errors are raised."""
    if isinstance(player, AgentPlayer):
        return [player.choose_or_forfeit(position) for position in positions]
    return [*player.choose_all(positions)]


class Player(Protocol):
    """Anything that chooses moves."""

    @property
    def name(self) -> str:
        """The name to show in results."""
        ...

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return a legal action for each of `positions`, none of which may be finished; [] for none."""
        ...


def begin_game(player: Player) -> None:
    """Give a bot under a clock the time of a new game."""
    if isinstance(player, Bot) and player.clock:
        player.clock.restart()


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
    settings:    of the search.
    """

    def __init__(
        self,
        name: str,
        game: GameSpec,
        evaluate: Evaluate,
        *,
        simulations: int = DEFAULT_SIMULATIONS,
        settings: SearchSettings | None = None,
        temperature: float = 0.0,
        clock: Clock | None = None,
        threads: int = 0,
    ) -> None:
        """Make a bot that evaluates leaves with `evaluate`, a network or any other evaluator.

        settings:    of the search; None = the defaults.
        temperature: moves are sampled from policy^(1/temperature); 0 = the best move.
        clock:       limits the time, and `simulations` is then the largest number.
        threads:     of a network that is loaded; from 1 on, leaves of one position are evaluated together, which finds
                     nearly the same. 0 = one leaf at a time, as in self-play.

        Raises UserError for a negative temperature, and for simulations that are negative or above MAX_SIMULATIONS.
        """
        if not 0 <= temperature < math.inf:
            raise UserError(f"expected a temperature of at least 0, got {shown(temperature)}")
        self.name, self.game, self.simulations = name, game, _checked(simulations, MAX_SIMULATIONS)
        self.settings = settings or SearchSettings()
        self._own_evaluate, self._temperature = evaluate, temperature
        self._rng = np.random.default_rng()
        self._strength: Callable[[Bot], Strength] = lambda bot: UNKNOWN
        self.clock = clock and replace(clock, rate=[UNKNOWN_RATE])
        self._leaves = MAX_LEAVES if threads else 1
        self._measure_rate()

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        game: str | type[Game] | None = None,
        model: str = "newest",
        simulations: int = DEFAULT_SIMULATIONS,
        search: Mapping[str, object] = UNCHANGED,
    ) -> Self:
        """Return the bot of a run directory or of an ONNX file.

        game:   the game it must play, such as "connect-four", or its class; by default the game it was trained for.
        model:  of a run: "newest", "best" by the scores that `train` measured, or a training step as text.
        search: changes of the search settings that it was trained with, such as {"c_puct": 2.0}.

        Raises UserError if there is no such model or it cannot be used, or for a wrong setting.
        """
        found = load_game(game) if game else None
        return cls.of_model(to_path(str(path)), found, model=model, simulations=simulations, search=search)

    def evaluate(self, opponent: str | Player, *, games: int = 100, seed: int = 0) -> MatchResult:
        """Play a match against an opponent, such as "mcts:100", and return its result for this bot.

        Each opening is played twice, with sides swapped. Raises UserError if there is no such opponent.
        """
        from plyzero.play.match import play_match

        rng = np.random.default_rng(seed)
        other = find_player(opponent, self.game, rng) if isinstance(opponent, str) else opponent
        return play_match(self, other, self.game.start, games=games, rng=rng)

    @classmethod
    def of_model(cls, path: Path, game: GameSpec | None, *, model: str = "newest", **options: Any) -> Self:
        """Return the bot of a run directory or an ONNX file, whose strength is known if it has been measured.

        options: of `from_network`. Raises what `load_network` raises, whose other arguments these are.
        """
        network = load_network(path, game, model=model, threads=max(1, options.get("threads", 0)))
        bot = cls.from_network(network, **options)
        bot._strength = lambda _: strength_of(path, network.game, network.step)
        return bot

    @classmethod
    def from_network(
        cls,
        network: Network,
        *,
        simulations: int = DEFAULT_SIMULATIONS,
        search: Mapping[str, object] = UNCHANGED,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Return a bot that plays with `network`, and with `search` the settings it was trained with are changed.

        options: temperature, clock and threads, as of `Bot`.
        """
        return cls(
            name or f"{network.label} with {describe_limits(simulations, clock=options.get('clock'))}",
            network.game,
            network,
            simulations=simulations,
            settings=change_search(network.search_settings, search),
            **options,
        )

    @classmethod
    def at_level(cls, game: GameSpec, number: int | None = None, *, threads: int = 0) -> Self:
        """Return the bundled bot for `game` at a level, by default its default level. The strongest plays ends exactly.

        Raises UserError if there is no bundled bot for the game, or no such level.
        """
        card = find_card(game)
        if card is None:
            raise UserError(
                f"there is no bundled bot for {game.identity}; train one, or play against pure MCTS, which needs no "
                "model"
            )
        level = card.level(number)
        bot = cls.of_model(
            card.network,
            game,
            simulations=level.simulations,
            temperature=level.temperature,
            threads=threads,
            search=UNCHANGED if level == card.levels[-1] else {"solver_nodes": 0},
            name=f"the bundled bot, {level}",
        )
        bot._strength = lambda _: of_level(level)
        return bot

    @classmethod
    def pure_mcts(cls, game: GameSpec, rng: np.random.Generator, *, simulations: int) -> Self:
        """Return a bot without a network: uniform priors, and one random rollout as the value of a leaf."""
        rollouts = Rollouts(game.start.num_actions, rng)
        settings = SearchSettings(algorithm="puct", c_puct=1.25, fpu_reduction=0.0, solver_nodes=0)
        bot = cls(f"mcts:{simulations}", game, rollouts, simulations=simulations, settings=settings)
        bot._strength = lambda now: Strength(f"pure MCTS with {now.simulations} rollouts", judges=True)
        return bot

    def __repr__(self) -> str:
        return f"<Bot: {self.name} at {self.game.name}>"

    def show(self, position: Game) -> FoundMoves:
        """Search `position` and return what is found: a table when it is printed, and in a notebook also the board."""
        from plyzero.play.found_moves import FoundMoves

        return FoundMoves(position, self.search([position])[0])

    def strength(self) -> Strength:
        """Return the bot's measured strength so far, and whether it is enough to judge moves."""
        return self._strength(self)

    def with_simulations(self, simulations: int, *, most: int = MAX_SIMULATIONS) -> Self:
        """Return the same bot with another number of simulations. Raises UserError if it is not from 0 to `most`."""
        other = copy.copy(self)
        other.simulations = _checked(simulations, most)
        return other

    def with_clock(self, clock: Clock | None, *, simulations: int = NO_LIMIT) -> Self:
        """Return the same bot with a clock or without one, and with at most so many simulations."""
        other = copy.copy(self)
        other.simulations, other.clock = simulations, clock
        other._measure_rate()
        return other

    def _measure_rate(self) -> None:
        """Measure how fast the bot searches if its clock does not know it, within a second once it is compiled."""
        if self.clock and self.simulations and self.clock.rate[0] == UNKNOWN_RATE:
            other, position = copy.copy(self), first_decision(self.game.start)
            other.simulations, other.clock = 1, None  # which loads or compiles the search
            other.search([position])
            other.simulations = min(self.simulations, MAX_LEAVES**2)
            other.clock = replace(self.clock, main=0.0, per_move=0.4)
            other.search([position])

    def with_rng(self, rng: np.random.Generator) -> Self:
        """Return the same bot that samples its moves with `rng`; without a temperature this changes nothing."""
        other = copy.copy(self)
        other._rng = rng
        return other

    def choose(self, position: Game) -> int:
        """Return the action to play in `position`, which must not be finished."""
        return self.choose_all([position])[0]

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return the action to play in each of `positions`, none of which may be finished."""
        with self.clock.running() if self.clock else nullcontext():
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

        Raises UserError for positions of another game, and for evaluations that do not fit.
        """
        for position in positions:
            _check_position(position, self.game)
        limit, seconds, simulations = TimeLimit(self.clock) if self.clock else None, math.inf, self.simulations
        if limit:
            simulations = min(simulations, limit.simulations // max(1, len(positions)))
        together = max(1, len(positions) if limit else MAX_NODES // (simulations + 1))
        leaves = max(1, min(self._leaves, simulations // MAX_LEAVES)) if len(positions) == 1 else 1
        results: list[SearchResult] = []
        for first in range(0, len(positions), together):
            part = positions[first : first + together]
            results += search(
                part,
                self._evaluate,
                simulations=simulations,
                settings=self.settings,
                leaves=leaves,
                on_batch=on_batch,
                is_over=limit.is_over if limit else lambda slots: False,
            )
        if limit and self.clock:
            limit.measure(sum(result.simulations for result in results))
            seconds = END_SHARE * self.clock.seconds() / max(1, len(positions))
        nodes = self.settings.solver_nodes
        return [
            with_exact_end(position, result, nodes=nodes, seconds=seconds)
            for position, result in zip(positions, results, strict=True)
        ]

    def final_board(self, position: Game) -> NDArray[np.float32] | None:
        """Return the final board that the network expects, `[P, H, W]` from -1 to 1 for the player to move, or None."""
        network = self._own_evaluate
        return network.final_board(position.observe()) if isinstance(network, Network) and network.has_board else None

    def _evaluate(self, batch: EvaluationBatch) -> Evaluation:
        """Return the evaluation of `batch`. Raises UserError if it has impossible values, such as NaN."""
        evaluation = Evaluation(*(np.asarray(each, np.float32) for each in self._own_evaluate(batch)))
        if fault := find_fault(evaluation, len(batch.observations), self.game.start.num_actions):
            raise UserError(f"{self.name}: {fault}")
        return evaluation


def _checked(simulations: int, most: int) -> int:
    """Return a number of simulations. Raises UserError if it is not from 0 to `most`."""
    if not 0 <= simulations <= most:
        raise UserError(f"expected simulations from 0 to {most}, got {shown(simulations)}")
    return simulations


def _check_position(position: Game, game: GameSpec) -> None:
    """Raise UserError if `position` is not one of `game`.

    Classes are compared by name: a script that is run as __main__ and imported by its name has each class twice.
    """
    found, expected = (
        (type(each).__name__, each.num_actions, tuple(each.observation_shape)) for each in (position, game.start)
    )
    if found != expected:
        form = "{} with {} actions and observations {}"
        raise UserError(
            f"expected a position of {game.name}, {form.format(*expected)}, got one of {form.format(*found)}"
        )
