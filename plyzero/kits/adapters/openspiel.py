"""Games of OpenSpiel by name, such as `openspiel:hex(board_size=7)`. Importing this module imports OpenSpiel."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
import pyspiel
from numpy.typing import NDArray
from open_spiel.python.observation import make_observation

from plyzero.errors import UserError, plain, shown
from plyzero.kits.adapters import openspiel_views as views
from plyzero.rules.chance import MAX_ROLLS, awaiting_setup
from plyzero.rules.game import Game, Outcome
from plyzero.rules.symmetry import Symmetry
from plyzero.rules.trial import play_trial

MAX_CHANCES: Final = 1 << 13
"""Largest number of different rolls of a game."""

MAX_INTEGER: Final = 10_000
"""Largest integer parameter of a game: with larger or negative ones OpenSpiel may crash or never return."""

CLUTTER: Final = re.compile(r"^chance outcome \d+ |^\d+ - |\(roll: (\d+)\)")
"""Parts of names that are removed, except for the digits of a roll: numbers of rolls and actions."""

GameType: Final = pyspiel.GameType
TERMINAL: Final = int(pyspiel.PlayerId.TERMINAL)

T = TypeVar("T")


class Observer(Protocol):
    """OpenSpiel's observer, which writes a position from the point of view of a player into its tensor."""

    tensor: NDArray[np.float32]

    def set_from(self, state: pyspiel.State, player: int) -> None: ...


class _View(NamedTuple):
    """The view of the positions of a game.

    parameters:  the parameters of the game, for copies of a position.
    lock:        held while the tensor of the observer is used.
    first:       OpenSpiel's number of player 0, who moves first unless a roll decides that.
    numbers:     for the second player, the source in the tensor of each number; None if the tensor is not turned.
    actions:     for the second player, OpenSpiel's action of each action; None if they are the same.
    added:       the planes after the tensor, which show the course of the game.
    shows_mover: whether the last plane shows the player to move.
    """

    parameters: dict[str, object]
    observer: Observer
    lock: threading.Lock
    first: int
    numbers: NDArray[np.intp] | None
    actions: list[int] | None
    added: views.Added
    shows_mover: bool


class OpenSpielGame(Game):
    """A position of a game of OpenSpiel.

    Each game has a subclass, made by `game_class`, and in this one for its parameters. All facts about the game are
    attributes of the class: a position has only its state, since one is made at every simulation.
    """

    is_adapted = True
    spiel_name: ClassVar[str]
    _view: ClassVar[_View]
    _symmetries: ClassVar[tuple[Symmetry, ...]]
    _setups: ClassVar[tuple[pyspiel.State, ...]] = ()
    _state: pyspiel.State
    _past: views.Past = views.Past()
    _is_over: bool
    to_play: int

    def __new__(cls, **parameters: object) -> Self:
        known = inspect.signature(cls).parameters
        types = {bool: "True or False", int: "an integer", float: "a float", str: "a string"}
        for key, value in parameters.items():
            default = known[key].default
            if type(value) is not type(default):
                raise ValueError(f"expected for {key} {types[type(default)]} such as {default!r}, got {shown(value)}")
            if type(value) is int and not 0 <= value <= MAX_INTEGER:
                raise ValueError(f"expected for {key} an integer from 0 to {MAX_INTEGER}, got {shown(value)}")
        return cast(Self, _initial_position(cls, tuple(sorted(parameters.items()))))

    @classmethod
    def _at(cls, state: pyspiel.State) -> Self:
        """Return the position of this game whose state in OpenSpiel is `state`."""
        position = object.__new__(cls)
        player = state.current_player()
        position._state = state
        position._is_over = player == TERMINAL
        position.to_play = player ^ cls._view.first if player >= 0 else 0  # 0 if chance moves: rolls are not turned
        return position

    def legal_actions(self) -> list[int]:
        if self._is_over:
            return []
        legal: list[int] = self._state.legal_actions()
        if self.to_play and self._view.actions:
            return sorted(self._view.actions[action] for action in legal)
        return legal

    def chances(self) -> Sequence[float]:
        if not self._state.is_chance_node():
            return ()
        weights = [0.0] * self.num_chances
        for roll, chance in self._state.chance_outcomes():
            weights[roll] = chance
        return weights

    def play(self, action: int) -> Self:
        after = self._at(self._state.child(self._in_openspiel(action)))
        past = self._past
        added = self._view.added
        if self._state.is_chance_node():
            after._past = past._replace(roll=action)
        elif any(added):
            numbers = added.captures * self.observation_shape[1] * self.observation_shape[2]
            material = float(after._tensor()[-numbers:].sum()) if numbers else None
            captured = past.captured if past.material in (None, material) else past.plies + 1
            after._past = views.Past(past.plies + 1, self.to_play, action, captured, material, past.roll)
        return after

    def _in_openspiel(self, action: int) -> int:
        return self._view.actions[action] if self.to_play and self._view.actions else action

    def outcome(self) -> Outcome | None:
        if not self._is_over:
            return None
        returns = self._state.returns()
        first, second = returns[self._view.first], returns[1 - self._view.first]
        if first == second:
            return Outcome(None)
        return Outcome(0 if first > second else 1)

    def observe(self) -> NDArray[np.float32]:
        view = self._view
        tensor = self._tensor()
        size = tensor.size
        squares = self.observation_shape[1] * self.observation_shape[2]
        if self.to_play and view.numbers is not None:
            tensor = tensor[view.numbers]
        added = view.added.numbers(self._past, self.to_play, self.max_plies)
        if view.shows_mover:
            added.append(float(self.to_play))
        if added:
            tensor = np.append(tensor, np.repeat(np.array(added, np.float32), squares))
        if view.added.square and added[0]:
            tensor[size : size + squares] = np.arange(squares) == self._past.action
        return tensor.reshape(self.observation_shape)

    def _tensor(self) -> NDArray[np.float32]:
        """Return a copy of OpenSpiel's tensor, flat, from the point of view of the player to move."""
        with self._view.lock:
            self._view.observer.set_from(self._state, self.to_play ^ self._view.first)
            return self._view.observer.tensor.copy()

    def symmetries(self) -> tuple[Symmetry, ...]:
        return self._symmetries

    @functools.cached_property
    def _names(self) -> dict[int, str]:
        """The name of each legal action, or roll, without a first word that all have in common: in go, the colour.

        Names that differ only in case, as in chess, end with the action's number.
        """
        player = self._state.current_player()
        words: dict[int, list[str]] = {}
        for action in self.legal_actions():
            text = self._state.action_to_string(player, self._in_openspiel(action))
            words[action] = CLUTTER.sub(r"\1", text).split()
        has_shared_word = (
            all(len(each) > 1 for each in words.values()) and len({each[0] for each in words.values()}) == 1
        )
        if has_shared_word:
            words = {action: each[1:] for action, each in words.items()}
        names = {action: "_".join(each) or str(action) for action, each in words.items()}
        count = Counter(name.lower() for name in names.values())
        return {action: name if count[name.lower()] == 1 else f"{name}/{action}" for action, name in names.items()}

    def action_name(self, action: int) -> str:
        return self._names[action]

    def roll_name(self, roll: int) -> str:
        return self._names[roll]

    def key(self) -> Hashable:
        return tuple(self._state.history())

    def __str__(self) -> str:
        text = str(self._state)
        if "\n" not in text and hasattr(self._state, "debug_string"):  # in chess, str() is a line without the board
            text = self._state.debug_string()
        return re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip()  # some games have colours

    __copy__ = Game.__copy__  # states never change

    def __reduce__(self) -> tuple[object, ...]:
        return _replay, (self.spiel_name, self._view.parameters, self._state.history(), self.awaits_setup)


def _set_up(start: OpenSpielGame, number: int) -> OpenSpielGame:
    """Return what Game.set_up returns, for a game of OpenSpiel whose only roll is the first one."""
    return start._at(start._setups[number])


def _replay(name: str, parameters: dict[str, object], history: Sequence[int], awaits_setup: bool) -> OpenSpielGame:
    """Return the position after the actions `history`, in OpenSpiel's numbers; copies are made by it."""
    position = game_class(name)(**parameters)
    if awaits_setup:
        return awaiting_setup(position)
    if position.setups:
        number = next(i for i, each in enumerate(position._setups) if each.history()[0] == history[0])
        position, history = position.set_up(number), history[1:]
    for action in history:
        position = position.play_unchecked(position._in_openspiel(action))  # `_in_openspiel` is its own inverse
    return position


@functools.cache
def game_class(name: str) -> type[OpenSpielGame]:
    """Return the class of OpenSpiel's game `name`. Its keyword arguments are OpenSpiel's parameters.

    Raises UserError with the closest names if there is no such game, and with the reason if plyzero cannot play it.
    """
    types = {each.short_name: each for each in pyspiel.registered_games()}
    if name not in types:
        closest = difflib.get_close_matches(name, types, n=3, cutoff=0.4) or ["hex", "go", "chess"]
        raise UserError(f"OpenSpiel has no game {shown(name)}; the closest names: {', '.join(closest)}")
    if reason := _obstacle(types[name]):
        raise UserError(f"openspiel:{name} cannot be played: {reason}")
    defaults = sorted(types[name].parameter_specification.items())
    keywords = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default) for key, default in defaults]
    attributes = {"__doc__": types[name].long_name, "__signature__": inspect.Signature(keywords), "spiel_name": name}
    return type(name, (OpenSpielGame,), attributes)


def playable_games() -> dict[str, dict[str, object]]:
    """Return name in OpenSpiel -> parameters with their defaults, for every game that plyzero can play."""
    return {
        each.short_name: dict(sorted(each.parameter_specification.items()))
        for each in pyspiel.registered_games()
        if not _obstacle(each)
    }


def _obstacle(found: pyspiel.GameType, players: int | None = None) -> str:
    """Return the reason why plyzero cannot play a game of the GameType `found`, "" if it can.

    players: number of players; None = two, if the game allows it.
    """
    if players is None:
        players = min(max(found.min_num_players, 2), found.max_num_players)
    holds = {
        "it needs a file or another game, which cannot be given here": found.default_loadable,
        f"it is for {'1 player' if players == 1 else f'{players} players'}, not for two": players == 2,
        "the players move at the same time": found.dynamics == GameType.Dynamics.SEQUENTIAL,
        "it has hidden information": found.information == GameType.Information.PERFECT_INFORMATION,
        "it does not give the probabilities of its rolls": found.chance_mode != GameType.ChanceMode.SAMPLED_STOCHASTIC,
        "one player may win what the other does not lose": found.utility
        in (GameType.Utility.ZERO_SUM, GameType.Utility.CONSTANT_SUM),
        "it has rewards before the end": found.reward_model == GameType.RewardModel.TERMINAL,
        "it has no observation tensor": found.provides_observation_tensor,
    }
    return next((reason for reason, is_met in holds.items() if not is_met), "")


@functools.lru_cache(maxsize=64)
def _initial_position(cls: type[OpenSpielGame], given: tuple[tuple[str, object], ...]) -> OpenSpielGame:
    """Return the initial position. Raises ValueError if the game cannot be played with the parameters `given`."""
    known = inspect.signature(cls).parameters
    parameters = {key: value for key, value in given if value != known[key].default}
    game = _ask(lambda: pyspiel.load_game(cls.spiel_name, parameters))
    if reason := _obstacle(game.get_type(), game.num_players()):
        raise ValueError(reason)
    for key, value in given:
        actual = game.get_parameters().get(key, value)
        if actual != value:  # a default that depends on other parameters
            raise ValueError(f"{key}={value!r} is taken for not given, and then {key} is {actual!r} here")
    shape = views.board_shape(cls.spiel_name, game.observation_tensor_shape())
    num_actions = game.num_distinct_actions()
    if not (min(shape) > 0 and math.prod(shape) <= 1 << 20 and 0 < num_actions <= 1 << 16):
        raise ValueError(f"an observation of shape {shape} with {num_actions} actions is too small or too large")
    state = _ask(game.new_initial_state)
    if state.is_terminal():
        raise ValueError("it is over before the first move")
    num_chances = game.max_chance_outcomes()  # 0 or less if OpenSpiel's count overflows
    least = 1 if state.is_chance_node() else 0
    if not _begins_with_setup(state) and not least <= num_chances <= MAX_CHANCES:
        raise ValueError(f"expected at most {MAX_CHANCES} different rolls, got {max(num_chances, 0) or 'far more'}")
    return _ask(lambda: _try_out(cls, parameters, state, shape))


def _begins_with_setup(state: pyspiel.State) -> bool:
    """Return whether the only roll of a game is the first one, and all its outcomes are equally likely."""
    if not state.is_chance_node() or state.get_game().max_chance_nodes_in_history() > 1:  # chess says 0
        return False
    outcomes = state.chance_outcomes()
    return len(outcomes) <= MAX_CHANCES and len({round(chance, 9) for _, chance in outcomes}) == 1


def _ask(call: Callable[[], T]) -> T:
    """Return the result of `call`. Raises ValueError with OpenSpiel's reason, which OpenSpiel has also printed."""
    try:
        return call()
    except Exception as error:
        text = re.sub(r"\S*/(?=\w+\.\w+:)", "", " ".join(str(error).split()))  # without the directories of its sources
        raise ValueError(f"OpenSpiel refuses these parameters: {plain(text, 200)}") from error


def _try_out(
    cls: type[OpenSpielGame], parameters: dict[str, object], state: pyspiel.State, shape: tuple[int, int, int]
) -> OpenSpielGame:
    """Return the initial position, after a trial by random games. It is the same in every process."""
    game = state.get_game()
    name = cls.spiel_name
    observer = make_observation(game)
    num_actions = game.num_distinct_actions()
    is_alike = _is_alike_for_both(state, observer)
    numbers, actions = views.turned(name, shape, num_actions) if is_alike else (None, None)
    shows_mover = numbers is None and (is_alike or name not in views.MOVER_SEES)
    setups: tuple[pyspiel.State, ...] = ()
    if _begins_with_setup(state):
        setups = tuple(state.child(outcome) for outcome, _ in state.chance_outcomes())
    num_chances: int = 0 if setups else game.max_chance_outcomes()
    added = views.ADDED.get(name, views.Added())
    planes = shape[0] + len(added.numbers(views.Past(), 0, 1))
    if shows_mover:
        planes += 1
    observation_shape = (planes, *shape[1:])
    is_cut = game.max_game_length() > 1024
    first = _first_player(state)
    waived = {}
    if omitted := views.OMITTED.get(name):
        reason = f"OpenSpiel's tensor leaves out {omitted}: the network averages over it, the search does not"
        waived["equal_observations_equal_futures"] = reason
    if is_cut:
        reason = "games are cut after 512 plies, and self-play does not learn from those"
        waived["games_with_dice_end" if num_chances else "games_end"] = reason
    constants: dict[str, object] = {
        "_view": _View(parameters, observer, threading.Lock(), first, numbers, actions, added, shows_mover),
        "waived_laws": waived,
        "_symmetries": (),
        "num_actions": num_actions,
        "num_chances": num_chances,
        "observation_shape": observation_shape,
        "max_plies": min(game.max_game_length(), 1000),  # for the trial; the version of a game depends on it
    }
    if not num_chances:
        constants["chances"] = Game.chances
    if setups:
        constants |= {"setups": len(setups), "_setups": setups, "set_up": _set_up}
    made: type[OpenSpielGame] = type(name, (cls,), constants)
    start = made._at(setups[0] if setups else state)
    trial = play_trial(awaiting_setup(start), plies=200)
    found = {
        "_symmetries": trial.proven(views.proposed_symmetries(name, observation_shape, num_actions)),
        "observation_dtype": np.bool_ if trial.has_binary_observations() else np.float32,
        # Self-play reserves memory for max_plies. In chess the bound is 17,695 plies; real games are far shorter.
        "max_plies": 512 if is_cut else game.max_game_length(),
        "version": trial.checksum(),  # another release of OpenSpiel may number actions or show positions differently
    }
    for attribute, value in found.items():
        setattr(made, attribute, value)
    return start


def _first_player(state: pyspiel.State) -> int:
    """Return OpenSpiel's number of the player who moves first; if there are rolls before, after the first of each."""
    for _ in range(MAX_ROLLS):
        if state.is_chance_node():
            state = state.child(state.legal_actions()[0])
    return max(0, state.current_player())


def _is_alike_for_both(state: pyspiel.State, observer: Observer) -> bool:
    """Return whether both players see the same tensor, in the first 20 moves and rolls of a random game."""
    rng = np.random.default_rng(0)
    for _ in range(20):  # the version of a game depends on this number
        if state.is_terminal():
            break
        if not state.is_chance_node():
            observer.set_from(state, 0)
            tensor = observer.tensor.copy()
            observer.set_from(state, 1)
            if not np.array_equal(observer.tensor, tensor):
                return False
        legal = state.legal_actions()
        state = state.child(legal[int(rng.integers(len(legal)))])
    return True
