"""Players found by their names, and bots: players that search with a network, rollouts or an evaluator of their own.

random, greedy, alphabeta:DEPTH, mcts:N, bot:LEVEL    built in
DIRECTORY, DIRECTORY@MODEL, FILE                      a bot with the network of a run or of an ONNX file
PREFIX:ARGUMENT                                       players of other packages, by an entry point
MODULE:CLASS, MODULE:FUNCTION                         an agent or an evaluator of your own
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, shown
from plyzero.extensions import find_extensions, load_extension
from plyzero.network.model_loader import load_network, named_model
from plyzero.network.onnx_network import Network
from plyzero.play.agents import Agent, AgentPlayer
from plyzero.play.bundled_bots import find_card
from plyzero.play.clock import DEFAULT_SIMULATIONS, UNCHANGED, describe_limits
from plyzero.play.match import play_match
from plyzero.play.player import Player, RandomPlayer, Strength, as_player
from plyzero.play.rule_based import AlphaBeta, Greedy
from plyzero.play.scores import MatchResult
from plyzero.play.search_player import Origin, SearchPlayer
from plyzero.play.strength import of_level, strength_of
from plyzero.rules.catalog import GameSpec, load_game, parse_parameters
from plyzero.rules.game import Game
from plyzero.rules.user_errors import with_location
from plyzero.rules.user_modules import create, load_object
from plyzero.run.configuration import change_search
from plyzero.run.events import read_history
from plyzero.run.models import digest_of, read_model_file
from plyzero.search.evaluators import Rollouts
from plyzero.setting_types import OBJECT_NAME, parse_rollouts
from plyzero.settings import SearchSettings
from plyzero.volumes import to_path

BUILT_IN: Final = ("random", "greedy", "alphabeta", "mcts", "bot")
"""Prefixes that no other package can take."""

GROUP: Final = "plyzero.players"
"""The entry-point group of players: prefix -> a function (argument, game, rng, **limits) that returns a Player."""


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
    PREFIX:ARGUMENT a player of an installed package, by its entry point of this name in `plyzero.players`
    MODULE:CLASS    an agent of your own, MODULE:CLASS(parameter=value) with parameters
    MODULE:FUNCTION a bot with your own evaluator

    search: of a run, a file, an evaluator or another package: changes of the search settings.
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
    others = {prefix: entry for prefix, entry in find_extensions(GROUP).items() if prefix not in BUILT_IN}
    if kind in others:
        make = load_extension(others[kind], f"player {kind}")
        return _checked_player(make, name, number, game, rng, search=search, **limits)
    if re.fullmatch(OBJECT_NAME, name.partition("(")[0]):
        return _own_player(name, game, rng, search=search, **limits)
    packages = "".join(f", {prefix}:..." for prefix in others)
    raise UserError(
        f"{shown(re.sub('@[^/]*$', '', name))} does not exist; expected a player: random, greedy, alphabeta:4, "
        f"mcts:1000, bot{packages}, a run directory, an ONNX file, your own agent as MODULE:CLASS, or your own "
        "evaluator as MODULE:FUNCTION"
    )


def _checked_player(
    make: Callable[..., object], name: str, argument: str, game: GameSpec, rng: np.random.Generator, **limits: Any
) -> Player:
    """Return the player that the function of a package makes. Raises UserError if it fails or makes something else."""
    try:
        return as_player(make(argument, game, rng, **limits))
    except UserError as error:
        raise UserError(f"cannot use {name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot use {name}: {with_location(error)}") from error


def _own_player(
    name: str, game: GameSpec, rng: np.random.Generator, *, search: Mapping[str, object], **limits: Any
) -> Player:
    """Return the player by the agent or the evaluator MODULE:NAME, whose identity is that of its module's code."""
    target, bracket, _ = name.partition("(")
    found = load_object(target)
    if isinstance(found, type) and issubclass(found, Agent):
        return _agent_player(name, found, rng, parse_parameters(name), identify=_with_code)
    if bracket:
        raise UserError(f"{target} is not a subclass of plyzero.Agent, so it has no parameters")
    bot = Bot(name, game, found, settings=change_search(SearchSettings(), search), **limits)
    bot.takes_limits = True
    bot._origin = Origin(identify=lambda: _with_code(name))
    return bot


def _agent_player(
    name: str,
    agent: type[Agent],
    rng: np.random.Generator,
    parameters: Mapping[str, object],
    *,
    identify: Callable[[str], str] = str,
) -> Player:
    """Return an agent as a player with random numbers of its own, sampled from `rng`."""
    made = create(name, agent, parameters)
    made.rng = rng.spawn(1)[0]
    return AgentPlayer(name, made, identify=identify)


def _with_code(name: str) -> str:
    """Return MODULE:NAME with the digest of the file of the module, which changes with the code."""
    module = sys.modules[name.partition(":")[0]]
    return f"{name} {digest_of(read_model_file(Path(module.__file__ or '')))}"


class Bot(SearchPlayer):
    """A player that searches without noise and plays the best move; with 0 simulations, the raw network.

    game:        the game it plays.
    simulations: number per move.
    settings:    those of the search.
    """

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

    @classmethod
    def of_model(cls, path: Path, game: GameSpec | None, *, model: str = "newest", **options: Any) -> Self:
        """Return the bot of a run directory or an ONNX file, whose strength is known if it has been measured.

        options: of `from_network`. Raises what `load_network` raises, whose other arguments these are.
        """
        network = load_network(path, game, model=model, threads=max(1, options.get("threads", 0)))
        file = path / "models" / network.label if path.is_dir() else path
        bot = cls.from_network(network, **options)
        bot.takes_limits = True
        bot._origin = Origin(
            identify=lambda: digest_of(read_model_file(file)),
            strength=lambda _: strength_of(path, network.game, network.step),
            file=file,
        )
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
        """Return the bundled bot for `game` at a level, by default its default level. The last one plays ends exactly.

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
        settings = describe_limits(level.simulations)
        if level.temperature:
            settings += f", temperature {level.temperature:g}"
        bot.takes_limits = False
        bot._origin = Origin(
            identify=lambda: f"{digest_of(read_model_file(card.network))} with {settings}",
            strength=lambda _: of_level(level),
            file=card.network,
        )
        return bot

    @classmethod
    def pure_mcts(cls, game: GameSpec, rng: np.random.Generator, *, simulations: int, solver_nodes: int = 0) -> Self:
        """Return a bot without a network: uniform priors, and one random rollout as the value of a leaf.

        solver_nodes: the setting of the search; 0 = ends of games are not solved exactly.
        """
        rollouts = Rollouts(game.start.num_actions, rng)
        settings = SearchSettings(algorithm="puct", c_puct=1.25, fpu_reduction=0.0, solver_nodes=solver_nodes)
        bot = cls(f"mcts:{simulations}", game, rollouts, simulations=simulations, settings=settings)
        bot._origin = Origin(strength=lambda now: Strength(f"pure MCTS with {now} rollouts", judges=True))
        return bot

    def evaluate(self, opponent: str | Player, *, games: int = 100, seed: int = 0) -> MatchResult:
        """Play a match against an opponent, such as "mcts:100", and return its result for this bot.

        Each opening is played twice, with sides swapped. Raises UserError if there is no such opponent.
        """
        rng = np.random.default_rng(seed)
        other = find_player(opponent, self.game, rng) if isinstance(opponent, str) else opponent
        return play_match(self, other, self.game.start, games=games, rng=rng)

    def history(self) -> dict[str, list[Any]]:
        """Return the training of the bot's run in columns of equal length, for `pandas.DataFrame`.

        A row is a published model: its step, the games and positions that were read, minutes, losses, and for each
        opponent the score from 0 to 1, None where it was not measured. Raises UserError without a run.
        """
        file = self.model_file
        if file is None or file.parent.name != "models" or not (file.parents[1] / "run.toml").exists():
            raise UserError(f"{self.name} is not of a run, so it has no history; expected Bot.load of a run directory")
        return read_history(file.parents[1] / "metrics")

    def final_board(self, position: Game) -> NDArray[np.float32] | None:
        """Return the final board that the network expects, `[P, H, W]` from -1 to 1 for the player to move, or None."""
        network = self._own_evaluate
        return network.final_board(position.observe()) if isinstance(network, Network) and network.has_board else None
