"""Games written for alpha-zero-general, unchanged, such as `azg:othello.OthelloGame:OthelloGame(n=6)`.

Their class says nothing of planes, symmetries or the longest game: a trial of random games finds these. Of the forks
that number players 0 and 1, give results per player and pass more arguments, the games for two players without chance
work as well.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import inspect
import io
import logging
import random
import re
import sys
import threading
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar, Final, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.rules.board import Board, grid, square_names
from plyzero.rules.game import Game, Outcome
from plyzero.rules.symmetry import Symmetry
from plyzero.rules.trial import Trial, play_trial

log = logging.getLogger(__name__)

METHODS: Final = (
    *("getInitBoard", "getActionSize", "getNextState", "getValidMoves", "getGameEnded", "getCanonicalForm"),
    "getSymmetries",
)
"""The methods that a game of alpha-zero-general must define."""

TRIAL_GAMES: Final = 8
MAX_BEGINNINGS: Final = 4  # different initial boards, such as one for each player who may begin; more are shuffled
TRIAL_PLIES: Final = 300  # of random games together, at least
LONGEST_TRIAL: Final = 2000  # plies after which a game is cut off
"""The trial of a game when it is loaded. Its version depends on these."""

PIECES: Final = {0: "", 1: "0", -1: "1"}
"""The pieces of a drawn board by the numbers of most games; any other number is shown as it is."""


class _Channel(NamedTuple):
    """The planes of a part of the board: one for each of `values`, or, without any, its numbers over `scale`."""

    values: tuple[int, ...]
    scale: float

    @property
    def planes(self) -> int:
        return len(self.values) or 1


class _Rules:
    """A game of alpha-zero-general with players 0 and 1, boards that no call changes, and results as outcomes.

    sides:        their numbers of the two players.
    as_in_search: whether moves are played on the canonical board, as their search does, and not as in their Arena.
    shows_mover:  whether the canonical board leaves open who is to move.
    shows_ply:    whether a plane shows the number of plies, which boards with a class of their own may count.
    """

    def __init__(self, game: Any) -> None:
        self.game = game
        self.lock = threading.RLock()  # some games keep their board in the object
        players = int(game.getNumberOfPlayers()) if hasattr(game, "getNumberOfPlayers") else 2
        if players != 2:
            raise ValueError(f"it is for {players} players, not for two")
        self.sides = (0, 1) if hasattr(game, "getNumberOfPlayers") else (1, -1)
        self.as_in_search = self.shows_mover = False
        self.start = self.initial_board()
        self.shows_ply = not isinstance(self.start, np.ndarray | list | tuple)
        self.display = getattr(game, "display", None) or getattr(sys.modules[type(game).__module__], "display", None)

    def text(self, board: Any) -> str:
        """Return what their `display` prints, without colours; without such a function, the text of the board."""
        printed = io.StringIO()
        if self.display:
            with self.lock, contextlib.redirect_stdout(printed), contextlib.suppress(Exception):
                self.display(_copied(board))
        return re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue()).strip("\n") or str(board)

    def initial_board(self, seed: int = 0) -> Any:
        """Return their initial board, as it is where their random numbers begin with `seed`."""
        with self.lock:
            before = random.getstate(), np.random.get_state()
            random.seed(seed)
            np.random.seed(seed)
            try:
                return _copied(self.game.getInitBoard())
            finally:
                random.setstate(before[0])
                np.random.set_state(before[1])

    def canonical(self, board: Any, player: int) -> Any:
        with self.lock:
            return _copied(self.game.getCanonicalForm(_copied(board), self.sides[player]))

    def legal(self, canonical: Any) -> list[int]:
        with self.lock:
            valid = self.game.getValidMoves(_copied(canonical), self.sides[0])
        legal: list[int] = np.flatnonzero(valid).tolist()
        return legal

    def play(self, board: Any, player: int, action: int) -> tuple[Any, int]:
        with self.lock:
            after, side = self.game.getNextState(_copied(board), self.sides[player], action)
            return _copied(after), self.sides.index(int(side))

    def outcome(self, board: Any, player: int) -> Outcome | None:
        """Return the outcome, asked for `player`."""
        with self.lock:
            found = np.asarray(self.game.getGameEnded(_copied(board), self.sides[player]), float)
        if not found.any():
            return None
        lead = found[player] - found[1 - player] if found.ndim else float(found)
        return Outcome(None if abs(lead) < 0.5 else player if lead > 0 else 1 - player)


class AzgGame(Game):
    """A position of a game of alpha-zero-general. Each game is a subclass, and so is each with its parameters.

    _board:  theirs; the canonical board where moves are played on it.
    """

    azg_name: ClassVar[str]
    _game: ClassVar[Any]
    _rules: ClassVar[_Rules]
    _channels: ClassVar[tuple[_Channel, ...]]
    _shape: ClassVar[tuple[int, ...]]
    _symmetries: ClassVar[tuple[Symmetry, ...]] = ()
    _board: Any
    _ply: int
    to_play: int

    def __new__(cls, **parameters: Any) -> Self:
        return cast(Self, _initial_position(cls, repr(dict(sorted(parameters.items())))))

    @classmethod
    def _at(cls, board: Any, player: int, ply: int) -> Self:
        position = object.__new__(cls)
        position._board, position.to_play, position._ply = board, player, ply
        return position

    @functools.cached_property
    def _canonical(self) -> Any:
        return self._board if self._rules.as_in_search else self._rules.canonical(self._board, self.to_play)

    @functools.cached_property
    def _outcome(self) -> Outcome | None:
        if not self._rules.as_in_search:
            return self._rules.outcome(self._board, self.to_play)
        return _turned(self._rules.outcome(self._board, 0), self.to_play)

    @functools.cached_property
    def _legal(self) -> list[int]:
        return [] if self._outcome else self._rules.legal(self._canonical)

    def legal_actions(self) -> list[int]:
        return self._legal

    def play(self, action: int) -> Self:
        if not self._rules.as_in_search:
            return self._at(*self._rules.play(self._board, self.to_play, action), self._ply + 1)
        board, mover = self._rules.play(self._board, 0, action)
        return self._at(self._rules.canonical(board, mover), mover ^ self.to_play, self._ply + 1)

    def outcome(self) -> Outcome | None:
        return self._outcome

    def observe(self) -> NDArray[Any]:
        parts = [
            part == np.array(channel.values)[:, None, None] if channel.values else part[None] / channel.scale
            for part, channel in zip(_parts(self._canonical), self._channels, strict=True)
        ]
        if self._rules.shows_mover:
            parts.append(np.full((1, *self.observation_shape[1:]), self.to_play))
        if self._rules.shows_ply:
            parts.append(np.full((1, *self.observation_shape[1:]), self._ply / self.max_plies))
        return np.concatenate(parts).astype(self.observation_dtype)

    def key(self) -> Hashable:
        if self._rules.shows_ply:
            return self._ply, self.to_play, self._rules.game.stringRepresentation(self._board)
        return self.to_play, _array(self._board).tobytes()

    def symmetries(self) -> tuple[Symmetry, ...]:
        return self._symmetries

    def action_name(self, action: int) -> str:
        """Return the square or the column, where there are as many of them as actions; then "pass" may be one more."""
        shape = self._shape
        squares = shape[0] * shape[1] if len(shape) == 2 and shape[1] <= 26 else 0
        if squares and self.num_actions == shape[1]:
            return square_names(1, shape[1])[action][0]
        if squares and self.num_actions in (squares, squares + 1):
            return [*square_names(*shape), "pass"][action]
        return str(action)

    def render(self) -> Board | None:
        shape = self._shape
        if len(shape) != 2 or shape[1] > 26:
            return None
        side = -1 if self._rules.as_in_search and self.to_play else 1
        pieces, numbers = np.unique(_array(self._board), return_inverse=True)
        names = [PIECES.get(side * int(piece), f"{piece:g}") for piece in pieces]
        if any(len(name) > 1 for name in names):
            return None
        return grid(numbers.reshape(shape), pieces=names, by_column=self.num_actions == shape[1])

    def __str__(self) -> str:
        board = self.render()
        return self._rules.text(self._board) if board is None else str(board)


def game_class(name: str, game: Any) -> type[AzgGame]:
    """Return the class of plyzero for `game`, a class of alpha-zero-general that is called `name`.

    Raises UserError if it lacks a method.
    """
    for kind in (int, float, bool, object):  # which NumPy also had when many of these games were written
        if kind.__name__ not in vars(np):
            setattr(np, kind.__name__, kind)
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
        attributes["__signature__"] = inspect.signature(game)
    return type(game.__name__, (AzgGame,), attributes)


@functools.lru_cache(maxsize=64)
def _initial_position(cls: type[AzgGame], parameters: str) -> AzgGame:
    """Return the initial position, with what random games show of the game. It is the same in every process.

    parameters: as a literal, which a cache can have as its key.
    Raises ValueError if plyzero cannot play the game.
    """
    rules = _Rules(cls._game(**ast.literal_eval(parameters)))
    others = [rules.initial_board(seed) for seed in range(1, 2 * MAX_BEGINNINGS)]
    if (beginnings := len({_array(board).tobytes() for board in (rules.start, *others)})) > MAX_BEGINNINGS:
        raise ValueError("getInitBoard shuffles the board; a game begins with one position, and can roll dice there")
    if beginnings > 1:
        log.warning("%s: getInitBoard returns different boards; every game begins with the same one", cls.azg_name)
    made: type[AzgGame] = type(cls.__name__, (cls,), {"_rules": rules, "num_actions": int(rules.game.getActionSize())})
    games = list(_random_games(rules))
    if warning := _compare(rules, games):
        log.warning("%s: %s", cls.azg_name, warning)
    boards = [_parts(rules.canonical(board, player)) for game in games for board, player, _ in game]
    made._shape = np.shape(_array(rules.start))
    made._channels = tuple(_channel(np.array(channel)) for channel in zip(*boards, strict=True))
    rows, columns = boards[0].shape[1:]
    planes = sum(each.planes for each in made._channels) + rules.shows_mover + rules.shows_ply
    made.observation_shape = (planes, rows, columns)
    is_binary = all(each.values for each in made._channels) and not rules.shows_ply
    made.observation_dtype = bool if is_binary else np.float32
    made.max_plies = 2 * max(map(len, games))
    if made.num_actions in (rows * columns, rows * columns + 1) and rows > 1 < columns:
        made.policy_planes = 1
    start = made._at(rules.canonical(rules.start, 0) if rules.as_in_search else rules.start, 0, 0)
    trial = play_trial(start, plies=TRIAL_PLIES)
    made._symmetries = _proven_symmetries(made, start, trial)
    made.version = trial.checksum()
    return start


def _random_games(rules: _Rules) -> Iterator[list[tuple[Any, int, int]]]:
    """Yield random games, always the same, as their Arena plays them: board, player and action of each move.

    Raises ValueError if a move is random, a position has no legal move, or a game does not end.
    """
    rng = np.random.default_rng(0)
    for _ in range(TRIAL_GAMES):
        board, player = rules.start, 0
        moves: list[tuple[Any, int, int]] = []
        while rules.outcome(board, player) is None:
            legal = rules.legal(rules.canonical(board, player))
            after = f"after the moves {_shown([move for *_, move in moves])}"
            if not legal:
                raise ValueError(f"getValidMoves allows no move {after}, and getGameEnded is 0 there")
            if len(moves) == LONGEST_TRIAL:
                raise ValueError(f"a random game has not ended after {LONGEST_TRIAL} moves")
            action = int(rng.choice(legal))
            moves.append((board, player, action))
            reached, again = (rules.play(board, player, action) for _ in range(2))
            if reached[1] != again[1] or not _is_same(reached[0], again[0]):
                raise ValueError(
                    f"getNextState returns different boards for move {action} {after}; dice need chances()"
                )
            board, player = reached
        yield moves


def _compare(rules: _Rules, games: list[list[tuple[Any, int, int]]]) -> str:
    """Find out whether moves are played as in their Arena, and whether the canonical board shows who is to move.

    Their Arena plays moves on the real board, their search on the canonical one. Where the results differ, the one is
    right whose results are those of two opponents. Return a sentence that names the first such moves, "" if none.
    """
    ends = [rules.play(*game[-1]) for game in games]
    differs = [
        [move for *_, move in game[:ply]]
        for game, end in zip(games, ends, strict=True)
        for ply, (board, player) in enumerate([*(move[:2] for move in game), end])
        if rules.outcome(board, player) != _turned(rules.outcome(rules.canonical(board, player), 0), player)
    ]
    rules.as_in_search = bool(differs) and any(rules.outcome(board, 0) != rules.outcome(board, 1) for board, _ in ends)
    is_unchanged = all(
        _is_same(*(rules.canonical(board, side) for side in (0, 1))) for game in games for board, *_ in game
    )
    rules.shows_mover = is_unchanged or (bool(differs) and not rules.as_in_search)
    if not differs:
        return ""
    played = "canonical board, as their search does" if rules.as_in_search else "board itself, as their Arena does"
    return (
        f"after the moves {_shown(min(differs, key=len))} getGameEnded gives another result for the canonical board "
        f"than for the board; moves are played on the {played}"
    )


def _shown(moves: list[int]) -> str:
    return " ".join(map(str, moves[:20])) + " ..." * (len(moves) > 20)


def _turned(outcome: Outcome | None, player: int) -> Outcome | None:
    """Return an `outcome` in which 0 is `player`, with the players as they are."""
    return outcome if outcome is None or outcome.winner is None else Outcome(outcome.winner ^ player)


def _array(board: Any) -> NDArray[Any]:
    """Return a board as an array; a class for boards offers `astype`, as their networks need it."""
    return np.asarray(board if isinstance(board, np.ndarray | list | tuple) else board.astype(np.float32))


def _parts(board: Any) -> NDArray[Any]:
    """Return a board as `[channels, rows, columns]`; of three dimensions the channels are the one that differs."""
    array = _array(board)
    if array.ndim == 3:
        return np.moveaxis(array, -1, 0) if array.shape[0] == array.shape[1] != array.shape[2] else array
    return array[None] if array.ndim == 2 else array.reshape(1, -1, 1)


def _channel(seen: NDArray[Any]) -> _Channel:
    """Return how to show a part of the board of which `seen`, `[boards, rows, columns]`, is known."""
    most, least = float(seen.max()), float(seen.min())
    bound = max(most, -least)
    values = [*range(1, int(bound) + 1), *range(-1, -int(bound) - 1 if least < 0 else 0, -1)]
    if np.array_equal(seen, np.rint(seen)) and len(values) <= 16:
        return _Channel(tuple(values), 1.0)
    return _Channel((), max(bound, 1.0))  # a plane of the numbers themselves


def _proven_symmetries(made: type[AzgGame], start: AzgGame, trial: Trial) -> tuple[Symmetry, ...]:
    """Return the symmetries of getSymmetries that `trial` proves; warn of moves that do not belong to their board."""
    proposed = list(_proposed_symmetries(made))
    proven = trial.proven(proposed)
    kept = {each.actions.tobytes() for each in proven}
    seen = start.observe().ravel()
    if any(
        each.actions.tobytes() not in kept
        and (each.actions != np.arange(made.num_actions)).any()
        and np.array_equal(seen[each.planes], seen)
        for each in proposed
    ):
        log.warning(
            "%s: getSymmetries returns a board and moves that do not belong together; it is not used", made.azg_name
        )
    return proven


def _proposed_symmetries(made: type[AzgGame]) -> Iterator[Symmetry]:
    """Yield the symmetries that getSymmetries shows when it is given a numbered board and a numbered policy."""
    start = _array(made._rules.start)
    numbers = np.arange(start.size).reshape(start.shape)
    board = numbers.astype(start.dtype if start.size <= 127 else np.int64)
    policy = np.arange(made.num_actions, dtype=np.float64)
    extra = (
        (np.ones(made.num_actions, bool),) if len(inspect.signature(made._game.getSymmetries).parameters) > 3 else ()
    )
    try:
        images = [
            (np.asarray(each[0]), np.asarray(each[1])) for each in made._rules.game.getSymmetries(board, policy, *extra)
        ]
    except Exception:  # it is written for boards, and may not like this one; the search does not need it
        return
    cells = _parts(numbers)
    size = cells[0].size
    for image, moved in images:
        if image.shape != start.shape or sorted(moved.ravel()) != list(range(made.num_actions)):
            continue
        sources = np.argsort(cells.ravel())[_parts(image).astype(int).ravel() % start.size].reshape(len(cells), size)
        planes, first = [], 0
        for channel, (source, spec) in enumerate(zip(sources, made._channels, strict=True)):
            if not np.array_equal(np.sort(source), np.arange(channel * size, (channel + 1) * size)):
                break
            planes += [source - channel * size + (first + k) * size for k in range(spec.planes)]
            first += spec.planes
        else:
            for plane in range(first, made.observation_shape[0]):  # of the mover and of the ply, which stay
                planes.append(np.arange(size) + plane * size)
            yield Symmetry(np.concatenate(planes).astype(np.intp), np.argsort(moved.ravel().astype(int)))


def _copied(board: Any) -> Any:
    """Return a copy: some games change the board they are given, and some return the board they keep."""
    return board.copy() if isinstance(board, np.ndarray) else copy.deepcopy(board)


def _is_same(one: Any, other: Any) -> bool:
    return np.array_equal(_array(one), _array(other))
