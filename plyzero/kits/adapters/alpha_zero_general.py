"""An adapter for games of alpha-zero-general, unchanged, such as `azg:othello.OthelloGame:OthelloGame(n=6)`.

Their class does not declare planes, symmetries or the longest game: a trial of random games finds these. Forks that
number players 0 and 1, return results per player and pass more arguments work too, for two players without chance.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import logging
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, shown
from plyzero.kits.adapters.azg_boards import Channel, Part
from plyzero.kits.adapters.azg_calls import Calls, restore_old_numpy
from plyzero.kits.adapters.azg_symmetries import proposed_symmetries
from plyzero.kits.adapters.azg_trial import (
    Setups,
    channels_of,
    compare,
    longest_game,
    random_games,
    setups_of,
    turned,
)
from plyzero.rules.board import Board, grid, square_names
from plyzero.rules.chance import awaiting_setup
from plyzero.rules.game import Game, Outcome
from plyzero.rules.symmetry import Symmetry
from plyzero.rules.trial import Trial, play_trial
from plyzero.rules.user_modules import load_object

log = logging.getLogger(__name__)

METHODS: Final = (
    "getInitBoard",
    "getActionSize",
    "getNextState",
    "getValidMoves",
    "getGameEnded",
    "getCanonicalForm",
    "getSymmetries",
)
"""The methods that a game of alpha-zero-general must define."""

OPTIONS: Final[Mapping[str, tuple[type, Any, str]]] = {
    "planes": (str, "", "the function that makes planes of a board, planes=module:function"),
    "max_plies": (int, 0, "a number of plies, max_plies=400"),
}
"""Further parameters of every game -> type, default, and the value that is expected, in words."""

TRIAL_PLIES: Final = 300
"""Least number of plies of the random games that test symmetries and give the version."""

PIECES: Final = {0: "", 1: "0", -1: "1"}
"""Number on a board -> piece on the rendered board, as in most games; other numbers are shown unchanged."""


class AzgGame(Game):
    """A position of a game of alpha-zero-general. Each game has a subclass, and in this one for its parameters.

    _board: the board of their game, or its canonical form if moves are played on that.
    """

    is_adapted = True
    azg_name: ClassVar[str]
    _game: ClassVar[Any]
    _calls: ClassVar[Calls]
    _setups: ClassVar[Setups]
    _channels: ClassVar[tuple[Channel, ...]]
    _symmetries: ClassVar[tuple[Symmetry, ...]] = ()
    _has_warned: ClassVar[bool] = False
    _board: Any
    _ply: int
    to_play: int

    def __new__(cls, **parameters: Any) -> Self:
        return cast(Self, _initial_position(cls, repr(dict(sorted(parameters.items())))))

    @classmethod
    def _at(cls, board: Any, player: int, ply: int) -> Self:
        position = object.__new__(cls)
        position._board = board
        position.to_play = player
        position._ply = ply
        return position

    @functools.cached_property
    def _canonical(self) -> Any:
        return self._board if self._calls.as_in_search else self._calls.canonical(self._board, self.to_play)

    @functools.cached_property
    def _outcome(self) -> Outcome | None:
        if not self._calls.as_in_search:
            return self._calls.outcome(self._board, self.to_play)
        return turned(self._calls.outcome(self._board, 0), self.to_play)

    @functools.cached_property
    def _legal(self) -> list[int]:
        return [] if self._outcome else self._calls.legal(self._canonical)

    def legal_actions(self) -> list[int]:
        return self._legal

    def play(self, action: int) -> Self:
        if not self._calls.as_in_search:
            board, mover = self._calls.play(self._board, self.to_play, action)
            return self._at(board, mover, self._ply + 1)
        board, mover = self._calls.play(self._board, 0, action)
        return self._at(self._calls.canonical(board, mover), mover ^ self.to_play, self._ply + 1)

    @classmethod
    def _begun(cls, setup: Any) -> Self:
        board = cls._calls.canonical(setup, 0) if cls._calls.as_in_search else setup
        return cls._at(board, player=0, ply=0)

    def outcome(self) -> Outcome | None:
        return self._outcome

    def observe(self) -> NDArray[Any]:
        parts = []
        for part, channel in zip(self._calls.channels(self._canonical), self._channels, strict=True):
            planes, unseen = channel.show(part)
            parts.append(planes)
            if unseen is not None:
                self._warn(unseen)
        if self._calls.shows_mover:
            parts.append(np.full((1, *self.observation_shape[1:]), self.to_play))
        if self._calls.shows_ply:
            parts.append(np.full((1, *self.observation_shape[1:]), self._ply / self.max_plies))
        return np.concatenate(parts).astype(self.observation_dtype)

    def _warn(self, unseen: Part) -> None:
        """Warn, once per game, that a board has a number or text that the trial has not seen."""
        if not self._has_warned:
            type(self)._has_warned = True
            log.warning(
                "%s: %s stands on a board, which no random game had when the game was loaded; all that is unknown has "
                "one plane: planes of your own, (planes=module:function), show it better",
                self.azg_name,
                shown(unseen.ravel()[0].item()),
            )

    def key(self) -> Hashable:
        if self._calls.shows_ply:
            return self._ply, self.to_play, self._calls.content(self._board)
        return self.to_play, self._calls.content(self._board)

    def symmetries(self) -> tuple[Symmetry, ...]:
        return self._symmetries

    @functools.cached_property
    def _squares(self) -> Part | None:
        """The part of the board that is rendered: the only one with rows and columns, None if there are several."""
        if self._calls.shows_ply:
            return None
        parts = [part for part in self._calls.view.parts(self._board, "getNextState") if part.ndim == 2]
        return parts[0] if len(parts) == 1 and parts[0].shape[1] <= 26 else None

    @functools.cached_property
    def _shape(self) -> tuple[int, int]:
        """The rows and columns of the rendered part; (0, 0) without one."""
        squares = self._begun(self._setups.boards[0])._squares
        return (0, 0) if squares is None else cast(tuple[int, int], squares.shape)

    def action_name(self, action: int) -> str:
        """Return the square or the column, if there are as many of these as actions; one more action is "pass"."""
        rows, columns = self._shape
        squares = rows * columns
        if rows and self.num_actions == columns:
            return square_names(1, columns)[action][0]
        if rows and self.num_actions in (squares, squares + 1):
            return "pass" if action == squares else square_names(rows, columns)[action]
        return str(action)

    def render(self) -> Board | None:
        squares = self._squares
        if squares is None:
            return None
        side = -1 if self._calls.as_in_search and self.to_play else 1
        pieces, numbers = np.unique(squares, return_inverse=True)
        names = [_piece(piece, side) for piece in pieces.tolist()]
        return grid(numbers.reshape(squares.shape), pieces=names, by_column=self.num_actions == squares.shape[1])

    def __str__(self) -> str:
        board = self.render()
        if board is None:
            return self._calls.text(self._board)
        lines = [str(board)]
        for part in self._calls.view.parts(self._board, "getNextState"):
            if part.ndim != 2:
                lines.append(" ".join(map(str, part.ravel().tolist())))
        return "\n".join(lines)


def _set_up(start: AzgGame, number: int) -> AzgGame:
    """Return what Game.set_up returns: their initial board, with random numbers from the seed `number`."""
    return start._begun(start._calls.initial_board(number))


def _piece(piece: Any, side: int) -> str:
    """Return the rendered piece for a number or a text on a board; `side`: -1 if the board is turned."""
    if isinstance(piece, str):
        return "" if piece in (" ", ".", "-", "_") else piece
    return PIECES.get(side * piece, f"{piece:g}")


def game_class(name: str) -> type[AzgGame]:
    """Return the subclass of AzgGame for a class of alpha-zero-general; `name` is azg:MODULE:CLASS.

    Raises UserError if there is no such class, or if it lacks a method.
    """
    restore_old_numpy()  # the module of the game may need it while it is imported
    game = load_object(name.partition(":")[2])
    missing = [method for method in METHODS if not callable(getattr(game, method, None))]
    is_class = isinstance(game, type)
    if not is_class or missing:
        lacks = f"it has no {', '.join(missing)}" if is_class else "it is not a class"
        raise UserError(f"expected a class with the methods of alpha-zero-general's Game, got {name}: {lacks}")
    return _subclass(name, game)


@functools.cache
def _subclass(name: str, game: Any) -> type[AzgGame]:
    attributes: dict[str, Any] = {"__doc__": inspect.getdoc(game), "azg_name": name, "_game": game}
    with contextlib.suppress(TypeError, ValueError):
        own = inspect.signature(game).parameters
        parameters = [each for each in own.values() if each.kind != inspect.Parameter.VAR_KEYWORD]
        for option, (_, default, _) in OPTIONS.items():
            if option not in own:
                parameters.append(inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default))
        attributes["__signature__"] = inspect.Signature(parameters)
    return type(game.__name__, (AzgGame,), attributes)


@functools.lru_cache(maxsize=64)
def _initial_position(cls: type[AzgGame], parameters: str) -> AzgGame:
    """Return the initial position, after a trial of random games. It is the same in every process.

    parameters: a literal of the parameters, which can be the key of a cache.

    Raises ValueError if plyzero cannot play the game.
    """
    own, options = _split(cls, ast.literal_eval(parameters))
    calls = Calls(cls._game(**own), load_object(options["planes"]) if options["planes"] else None)
    setups = setups_of(calls)
    constants: dict[str, Any] = {"_calls": calls, "_setups": setups}
    if setups.number:
        constants |= {"setups": setups.number, "set_up": _set_up}
    made: type[AzgGame] = type(cls.__name__, (cls,), constants)
    games = random_games(calls, setups.boards, options["max_plies"])
    with calls.tried():
        for sentence in filter(None, (setups.warning, compare(calls, games))):
            log.warning("%s: %s", cls.azg_name, sentence)
        made._channels = channels_of(calls, games)
        bound, is_certain = longest_game(calls, games)
        _declare(made, calls, bound, is_certain, options["max_plies"])
    start = made._begun(setups.boards[0])
    with calls.tried():
        trial = play_trial(awaiting_setup(start), plies=TRIAL_PLIES)
        made.version = trial.checksum()
    if not made.setups:
        made._symmetries = _proven_symmetries(made, start, trial)
    return start


def _split(cls: type[AzgGame], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of their class, and the OPTIONS. Raises ValueError if one is missing or wrong."""
    known = inspect.signature(cls._game).parameters
    lacks = [name for name, each in known.items() if _is_required(each) and name not in parameters]
    if lacks:
        given = [f"{name}={value!r}" for name, value in parameters.items()]
        example = ", ".join([*given, *(f"{name}={_example(known[name])}" for name in lacks)])
        raise ValueError(f"expected a value for {' and for '.join(lacks)}, such as {cls.azg_name}({example})")
    options: dict[str, Any] = {}
    for name, (kind, default, expected) in OPTIONS.items():
        value = default if name in known else parameters.get(name, default)
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise ValueError(f"expected {expected}, got {shown(value)}")
        options[name] = value
    return {name: value for name, value in parameters.items() if name in known}, options


def _is_required(parameter: inspect.Parameter) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return parameter.kind in kinds and parameter.default is parameter.empty


def _example(parameter: inspect.Parameter) -> str:
    return "'...'" if parameter.annotation in (str, "str") or "name" in parameter.name else "3"


def _declare(made: type[AzgGame], calls: Calls, bound: int, is_certain: bool, given: int) -> None:
    """Set the numbers that every game declares. `given`: max_plies if the person has set it, otherwise 0."""
    rows, columns = calls.shapes[0]
    planes = sum(each.planes for each in made._channels) + _added_planes(calls)
    is_binary = all(each.values and not each.scale for each in made._channels) and not calls.shows_ply
    made.num_actions = calls.num_actions
    made.observation_shape = (planes, rows, columns)
    made.observation_dtype = bool if is_binary else np.float32
    made.max_plies = given or bound
    if made.num_actions in (rows * columns, rows * columns + 1) and rows > 1 and columns > 1:
        made.policy_planes = 1
    if not (given or is_certain):
        reason = f"max_plies = {bound} is a guess, and games that are longer are cut off: (max_plies=...) sets another"
        made.waived_laws = {"games_end": reason}


def _proven_symmetries(made: type[AzgGame], start: AzgGame, trial: Trial) -> tuple[Symmetry, ...]:
    """Return the symmetries of getSymmetries that `trial` proves; warn if moves do not belong to their board."""
    calls = made._calls
    proposed = list(proposed_symmetries(made.azg_name, calls, made._channels, _added_planes(calls)))
    with calls.tried():
        proven = trial.proven(proposed)
    kept = {each.actions.tobytes() for each in proven}
    seen = start.observe().ravel()
    for each in proposed:
        is_refuted = each.actions.tobytes() not in kept
        moves_actions = (each.actions != np.arange(made.num_actions)).any()
        keeps_board = np.array_equal(seen[each.planes], seen)
        if is_refuted and moves_actions and keeps_board:
            log.warning(
                "%s: getSymmetries returns a board and moves that do not belong together; it is not used", made.azg_name
            )
            break
    return proven


def _added_planes(calls: Calls) -> int:
    """Return the number of planes for the player to move and for the number of plies."""
    return int(calls.shows_mover) + int(calls.shows_ply)
