"""The interface of a game: two players, zero-sum, perfect information, with or without dice."""

from __future__ import annotations

import functools
import math
import operator
import string
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from plyzero.rules.board import Board, find_board_fault, read_text
from plyzero.rules.board_svg import render_svg
from plyzero.rules.chance import possible_rolls, without_setup
from plyzero.rules.notation import moves_to
from plyzero.rules.symmetry import Symmetry
from plyzero.rules.user_errors import with_location

ONGOING: Final = -2
"""Outcome code of a game that is not over."""

DRAW: Final = -1
"""Outcome code of a drawn game. The other codes are 0 and 1, the winner."""

MAX_NAMES: Final = 20
"""Largest number of legal actions that an error message lists, and of columns and planes that a text shows."""


@dataclass(frozen=True)
class Outcome:
    """The result of a finished game.

    winner: 0 = the player who moves first in the initial position, or player 0 of dice that decide who begins,
            1 = the other player, None = a draw.
    score:  the points by which the winner leads, 0 in a draw; None in a game without points (`Game.max_score`).
    """

    winner: int | None
    score: float | None = None

    def __repr__(self) -> str:
        return f"Outcome(winner={self.winner}{'' if self.score is None else f', score={self.score}'})"

    def value(self, player: int) -> int:
        """Return the result for `player`: +1 for a win, 0 for a draw, -1 for a loss."""
        if self.winner is None:
            return 0
        return 1 if self.winner == player else -1

    def lead(self, player: int) -> float:
        """Return the points by which `player` leads, negative if the other player does; 0 in a game without points."""
        return self.value(player) * float(self.score or 0)


def find_score_fault(outcome: Outcome, max_score: float) -> str:
    """Return what is wrong with the score of a finished game that declares `max_score`, "" if nothing is."""
    score = outcome.score
    if not max_score:
        return "" if score is None else f"the score is {score!r}, but the game declares no max_score"
    if score is None:
        return f"the outcome has no score, but max_score is {max_score:g}: give a score at every end, or at none"
    if not isinstance(score, int | float | np.integer | np.floating) or not math.isfinite(score):
        return f"the score is {score!r}, expected a finite number"
    if score < 0 or (outcome.winner is None and score != 0):
        return f"the score is {score:g}, expected the points by which the winner leads, at least 0, and 0 in a draw"
    return f"the score is {score:g}, larger than max_score = {max_score:g}" if score > max_score else ""


def outcome_code(outcome: Outcome | None) -> int:
    """Return the code under which an outcome is stored: ONGOING for None, DRAW, or the winner, 0 or 1."""
    if outcome is None:
        return ONGOING
    return DRAW if outcome.winner is None else outcome.winner


class IllegalActionError(ValueError):
    """An action is illegal in a position; the message has the action, the position and the legal actions."""


class Game(ABC):
    """A position of a game. Positions are immutable: `play` returns a new one. `YourGame()` is the initial position.

    Required: num_actions, observation_shape, max_plies, to_play, legal_actions, play, outcome, observe
    Optional: symmetries, action_name, parse_action, key, render, __str__, from_text, observation_dtype, policy_planes,
              max_score, points_count, final_board with final_planes, rules_text, sgf_game, uci_variant, uci_move, san,
              fen, waived_laws (all with defaults)
    With dice: num_chances, chances, roll_name
    With many random set-ups: setups, set_up

    The players are 0 and 1. The player to move is always read from `to_play` and need not alternate, so passes and
    double moves work. Keyword arguments of the class are the parameters of the game (`othello(size=6)`) and need
    defaults.
    """

    version: int = 1
    """The version of the rules and of the observation. Raise it (`class MyGame(Game, version=2)`) when either changes:
    recorded games and models of another version are refused."""

    num_actions: int
    """The number of different actions in the whole game; an action is an int in [0, num_actions)."""

    observation_shape: tuple[int, int, int]
    """The shape of what `observe` returns: (planes, rows, columns). A game without a board uses (n, 1, 1)."""

    observation_dtype: DTypeLike = np.float32
    """The type in which observations are stored. `bool` suits observations of 0 and 1 and needs 1/32 of the memory."""

    policy_planes: int = 0
    """The number of actions per square, 0 if actions do not belong to squares. Otherwise an action is
    plane * rows * columns + square, and the actions after these, such as a pass, belong to no square. The network's
    policy head is then convolutional: it learns a move for all squares at once, and is small for many actions."""

    num_chances: int = 0
    """The number of different rolls in the whole game, such as 6 of a die; 0 = no dice, coins or shuffled cards."""

    setups: int = 0
    """The number of different set-ups of a game that begins with a random one, all equally likely, at most 2**32;
    0 = the game always begins at `YourGame()`. Each game then begins with `set_up` of a random number, as its first
    roll. `YourGame()` is the usual position, which need not be one of them."""

    awaits_setup: bool = False
    """Whether a set-up is due at this position: only at the start of a game with set-ups. plyzero sets it."""

    max_score: float = 0
    """The largest number of points by which a player can win; 0 = the game has no points. With points, every `Outcome`
    has a `score`."""

    points_count: bool = False
    """Whether a win by more points is worth more, as a gammon is. A review then judges in points, not by who wins."""

    rules_text: str = ""
    """The rules for people, which the page shows; "" = the docstring of the class."""

    sgf_game: int | None = None
    """The number of the game in SGF files, such as 1 for go; None = they are neither read nor written."""

    uci_variant: str | None = None
    """The name of the game for UCI programs, as in their option UCI_Variant, such as "breakthrough"; None = none."""

    final_planes: int = 0
    """The number of planes of `final_board`; 0 = the game has none."""

    max_plies: int
    """Plies after which every game is over. Self-play stops a longer one, and does not train on its result."""

    waived_laws: ClassVar[Mapping[str, str]] = {}
    """Laws of `plyzero check` that the game breaks on purpose, by name, each with the reason as a sentence, which
    `check` prints instead of checking the law."""

    is_adapted: ClassVar[bool] = False
    """Whether the rules are those of another toolkit, which the user of the game cannot change."""

    is_compiled: ClassVar[bool] = False
    """Whether the game is a CompiledGame."""

    def __init_subclass__(cls, *, version: int | None = None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if version is not None:
            cls.version = version
        own = vars(cls).keys() & {"play", "set_up"}
        if "play" in own:
            cls.play_unchecked = vars(cls)["play"]  # type: ignore[method-assign]
            cls.play = _checked(cls.play_unchecked)  # type: ignore[method-assign, assignment]
        if "set_up" in own:
            cls.set_up = _in_range(vars(cls)["set_up"])  # type: ignore[method-assign, assignment]
        if own and cls.set_up is not Game.set_up:
            cls.play_unchecked = _after_setup(cls.play_unchecked)  # type: ignore[method-assign, assignment]
        copied_in_another_way = {"__slots__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__"}
        if vars(cls).keys() & copied_in_another_way and "__copy__" not in vars(cls):
            cls.__copy__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # abstract for type checkers only: an attribute, of the class or of the object, works as well

        @property
        @abstractmethod
        def to_play(self) -> int:
            """The player to move, 0 or 1. Either value is allowed when the game is over."""

    def __copy__(self) -> Self:
        """Return a copy with the same attributes: what `copy.copy` does anyway, in a quarter of the time."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    @abstractmethod
    def legal_actions(self) -> Sequence[int]:
        """Return the legal actions in ascending order; empty if and only if the game is over."""

    @abstractmethod
    def play(self, action: int) -> Self:
        """Return the position after `action`, without changing this one.

        A subclass may assume that `action` is legal: its `play` is wrapped in a check that raises IllegalActionError.
        The search, which plays legal actions only, skips the check and calls `play_unchecked`. Where a set-up is due,
        its number is played.
        """

    def set_up(self, number: int) -> Self:
        """Return the position of set-up `number`, from 0 to setups - 1. It is called on the initial position.

        The same number always gives the same position. A subclass may assume that the number is in this range: its
        `set_up` is wrapped in a check that raises IllegalActionError.
        """
        raise NotImplementedError

    def play_unchecked(self, action: int) -> Self:
        """Return the position after `action`, which must be legal. This is `play` as the subclass defines it."""
        raise NotImplementedError  # replaced by __init_subclass__

    def chances(self) -> Sequence[float]:
        """Return the probability of each roll, `[num_chances]`, where chance moves; nothing where a player does.

        There `play(roll)` returns the position after the roll. Nobody asks for legal actions or for the observation,
        and `to_play` may be either player. A roll is not a ply.
        """
        return ()

    @abstractmethod
    def outcome(self) -> Outcome | None:
        """Return the outcome of a finished game, None while the game goes on. A draw is `Outcome(None)`."""

    def final_board(self) -> NDArray[np.generic]:
        """Return what decides a finished game, `[final_planes, rows, columns]` from -1 to 1: such as whose squares are.

        +1 is for the player `to_play`, -1 for the other. The network learns to expect it, as a help and to show it.
        """
        raise NotImplementedError

    @abstractmethod
    def observe(self) -> NDArray[np.generic]:
        """Return the network's input from the point of view of the player to move: `observation_shape`, up to 65504."""

    def render(self) -> Board | None:
        """Return the board for people, as `grid` or `hexes` makes it; None if there is none. It is not a rule."""
        return None

    def scoreboard(self) -> tuple[str, str]:
        """Return what players 0 and 1 have so far, for people, such as ("31 points", "27 points"). It is not a rule."""
        return "", ""

    def why_illegal(self, action: int) -> str:
        """Return why an action is illegal here, as a sentence for the person who clicked it; "" if nothing says it."""
        return ""

    def __str__(self) -> str:
        """Return the position as text for people: by default what `render` shows, otherwise the observation."""
        board, _ = rendered(self)
        if board is not None:
            return str(board)
        if self.awaits_setup:
            return f"one of {self.setups} set-ups"
        if rolls := possible_rolls(self):
            return f"chance moves: {' '.join(map(self.roll_name, rolls))}"
        return observation_text(self)

    def from_text(self, text: str) -> Self:
        """Return the position of this game that `text` shows, as `__str__` prints it. Call it on the initial position.

        The default finds boards that moves reach by filling cells, and takes names of moves. Raises ValueError if there
        is no such position.
        """
        position = self
        for move in moves_to(self, text):
            position = position.play_unchecked(move)
        return position

    def __repr__(self) -> str:
        """Return the name of the class, who is to move, and the position as text."""
        turn: object = "a set-up is due"
        if not self.awaits_setup:
            turn = "a roll is due" if possible_rolls(self) else self.outcome() or f"player {self.to_play} to move"
        return f"{type(self).__name__}, {turn}:\n{self}"

    def _repr_svg_(self) -> str | None:
        """Return the board as an SVG picture, for notebooks; None if there is none."""
        board = board_of(self)
        return None if board is None else render_svg(board)

    def symmetries(self) -> Sequence[Symmetry]:
        """Return the symmetries of the rules without the identity. With the identity they must form a group."""
        return ()

    def action_name(self, action: int) -> str:
        """Return the name of a legal action, without spaces. Different legal actions must have different names."""
        return str(action)

    def uci_move(self, action: int) -> str:
        """Return the name of a legal action for UCI programs, such as e2e4: by default `action_name`."""
        return self.action_name(action)

    def san(self, action: int) -> str:
        """Return the name of a legal action as people write it, such as Nf3: by default `action_name`.

        The page and PGN files show it, and `parse_action` takes it.
        """
        return self.action_name(action)

    def fen(self) -> str:
        """Return the position as UCI programs and PGN describe it, in FEN; "" = there is no such text."""
        return ""

    def roll_name(self, roll: int) -> str:
        """Return the name of a roll, without spaces. Different rolls of a position must have different names."""
        return str(roll)

    def parse_action(self, text: str) -> int:
        """Return the legal action whose name is `text`, ignoring case. ValueError lists the legal names if none is."""
        wanted = text.strip().lower()
        for action in self.legal_actions():
            if self.action_name(action).lower() == wanted:
                return action
        names = self.legal_names().split()
        if not names:
            raise ValueError(f"the game is over, so no move is legal; got {text.strip()!r}")
        listed = " ".join(names[:MAX_NAMES]) + (f" ... ({len(names)} in all)" if len(names) > MAX_NAMES else "")
        raise ValueError(f"expected one of {listed}, got {text.strip()!r}")

    def legal_names(self) -> str:
        """Return the names of the legal actions, separated by spaces."""
        return " ".join(self.action_name(action) for action in self.legal_actions())

    def key(self) -> Hashable:
        """Return a key of the position: positions with equal keys have the same player to move and the same future.

        The default consists of `to_play` and the observation. Override it if the observation omits anything relevant.
        """
        return self.to_play, np.asarray(self.observe()).tobytes()


def board_of(position: Game) -> Board | None:
    """Return what `render` returns, otherwise the board that the text of `position` shows; None if it shows none.

    It is None with a warning if `render` raises an error, or returns what cannot be drawn.
    """
    board, fault = rendered(position)
    if fault:
        warnings.warn(f"no board is drawn: {fault}", stacklevel=2)
    if board or fault:
        return board
    names: list[str] = []
    if position.num_actions <= len(string.ascii_lowercase):  # actions may be columns
        with suppress(Exception):  # a game need not name actions that are illegal
            names = [position.action_name(action) for action in range(position.num_actions)]
    return read_text(str(position), names)


def rendered(position: Game) -> tuple[Board | None, str]:
    """Return what `render` returns, and why it cannot be drawn, as a clause; then the board is None."""
    try:
        board = position.render()
    except Exception as error:
        return None, f"render() raises {with_location(error)}"
    fault = "" if board is None else find_board_fault(board)
    return (None, fault) if fault else (board, "")


def observation_text(position: Game, other: Game | None = None) -> str:
    """Return the numbers of `observe` as text, planes side by side.

    Many planes of one number, and wide planes, are listed one after the other: only those that are not 0, or that
    differ from those of `other`.
    """
    planes = np.asarray(position.observe(), np.float32)
    mover = f"player {position.to_play} to move, observation"
    columns = planes.shape[2]
    if columns <= MAX_NAMES and (columns > 1 or len(planes) <= MAX_NAMES):
        rows = planes.transpose(1, 0, 2)
        board = ["   ".join(" ".join(f"{number:g}" for number in plane) for plane in row) for row in rows]
        return "\n".join([f"{mover}:", *board])
    listed = np.flatnonzero((planes != (0 if other is None else np.asarray(other.observe()))).any(axis=(1, 2)))
    counts = [f"{i}: {planes[i].item():g}" if planes[i].size == 1 else f"{i}: sum {planes[i].sum():g}" for i in listed]
    more = f", and {len(counts) - MAX_NAMES} more" if len(counts) > MAX_NAMES else ""
    which = "that are not 0" if other is None else "that differ"
    return f"{mover}, planes {which}: {', '.join(counts[:MAX_NAMES]) or 'none'}{more}"


G = TypeVar("G", bound=Game)


def _checked(play: Callable[[G, int], G]) -> Callable[[G, int], G]:
    @functools.wraps(play)
    def play_if_legal(self: G, action: int) -> G:
        if self.awaits_setup:
            return self.set_up(action)
        rolls = possible_rolls(self)
        if rolls and action not in rolls:
            raise IllegalActionError(f"impossible roll {action} in\n{self}\npossible: {rolls}")
        if not rolls and action not in (legal := self.legal_actions()):
            name = _name_if_any(self, action)
            allowed = self.legal_names() if len(legal) else "none, the game is over"
            raise IllegalActionError(f"illegal action {action} ({name}) in\n{self}\nlegal: {allowed}")
        return play(self, action)

    return play_if_legal


def _in_range(set_up: Callable[[G, int], G]) -> Callable[[G, int], G]:
    @functools.wraps(set_up)
    def set_up_if_there(self: G, number: int) -> G:
        number = operator.index(number)
        if not 0 <= number < self.setups:
            raise IllegalActionError(f"expected the number of a set-up, from 0 to {self.setups - 1}, got {number}")
        position = set_up(without_setup(self), number)
        if not isinstance(position, Game):
            raise TypeError(f"set_up({number}) returns {position!r}, expected a position; is a return missing?")
        return position

    return set_up_if_there


def _after_setup(play: Callable[[G, int], G]) -> Callable[[G, int], G]:
    @functools.wraps(play)
    def set_up_or_play(self: G, action: int) -> G:
        return self.set_up(action) if self.awaits_setup else play(self, action)

    return set_up_or_play


def _name_if_any(position: Game, action: int) -> str:
    with suppress(Exception):  # a game need not name actions that are illegal, such as a step off the board
        if 0 <= action < position.num_actions:
            return position.action_name(action)
    return "not an action of this game"
