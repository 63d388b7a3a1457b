"""Calls of a game of alpha-zero-general: each answer is checked, and a call that never ends is ended."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import math
import os
import random
import re
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from types import FrameType
from typing import Any, Final

import numpy as np

from plyzero.errors import shown
from plyzero.kits.adapters.azg_boards import BadAnswerError, Part, View, copied, has_text
from plyzero.rules.game import Outcome
from plyzero.rules.user_errors import with_location

CALL_SECONDS = 15.0
"""Longest processor time of a call in a trial, in seconds; it does not depend on the load of the machine."""

NUMBA: Final = os.sep + os.path.join("numba", "core", "")
"""A part of the paths of Numba's compiler."""

OLD_NAMES: Final = {
    "int": int,
    "float": float,
    "bool": bool,
    "object": object,
    "float_": np.float64,
    "bool8": np.bool_,
    "Inf": np.inf,
    "NaN": np.nan,
    "product": np.prod,
    "alltrue": np.all,
    "sometrue": np.any,
    "row_stack": np.vstack,
}
"""Removed names of NumPy that many of these games use."""


def restore_old_numpy() -> None:
    """Define the removed names of NumPy that many of these games use, such as `np.int`."""
    for name, meaning in OLD_NAMES.items():
        if name not in vars(np):
            setattr(np, name, meaning)
    if not hasattr(np.ndarray, "tostring"):
        attributes = gc.get_referents(np.ndarray.__dict__)[0]  # a class of C refuses setattr
        attributes["tostring"] = np.ndarray.tobytes
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))


class NeverEndsError(BaseException):
    """A call of a game has not returned in CALL_SECONDS. No `except Exception` of the game catches it."""


class Calls:
    """A game of alpha-zero-general with players 0 and 1, boards that no call changes, and results as outcomes.

    A method that fails raises its own error; a wrong answer raises BadAnswerError.

    sides:        the numbers of the two players in the game.
    num_actions:  the number of actions.
    as_in_search: whether moves are played on the canonical board, as in their search, not as in their Arena.
    shows_mover:  whether a plane shows the player to move, because the canonical board does not.
    shows_ply:    whether a plane shows the number of plies, because boards with a class of their own may count them.
    """

    def __init__(self, game: Any, planes: Callable[[Any], Any] | None) -> None:
        """Ask the game for the facts that are equal in all positions. Raises ValueError if plyzero cannot play it."""
        self.game = game
        self.lock = threading.RLock()  # some games keep their board in the object
        self.called = ""  # the method that was called last
        self.has_limit = False
        self.as_in_search = False
        self.shows_mover = False
        self.sides = (0, 1) if hasattr(game, "getNumberOfPlayers") else (1, -1)
        self.display = getattr(game, "display", None) or getattr(sys.modules[type(game).__module__], "display", None)
        with self.tried():
            if self.sides == (0, 1):
                players = int(self.call("getNumberOfPlayers"))
                if players != 2:
                    raise BadAnswerError(f"it is for {players} players, not for two")
            size = self.call("getBoardSize") if hasattr(game, "getBoardSize") else ()
            self.view = View(game, planes, tuple(map(int, size)) if np.shape(size) == (2,) else ())
            self.num_actions = _integer(self.call("getActionSize"), "getActionSize", "the number of actions")
            self.start = self.initial_board()
            self.shows_ply = self.view.is_object(self.start)
            self.content(self.start, "getInitBoard")
            self.shapes = [part.shape for part in self.view.channels(self.canonical(self.start, 0), "getCanonicalForm")]

    def call(self, method: str, *arguments: Any) -> Any:
        """Return the answer of a method of the game."""
        with self.lock:
            self.called = method
            if not self.has_limit:
                return getattr(self.game, method)(*arguments)
            _begin_limit()
            try:
                return getattr(self.game, method)(*arguments)
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def text(self, board: Any) -> str:
        """Return the output of their `display`, without colours; without such a function, the text of the board."""
        printed = io.StringIO()
        if self.display:
            with self.lock, contextlib.redirect_stdout(printed), contextlib.suppress(Exception):
                self.display(copied(board))
        text = re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue()).strip("\n")
        if text:
            return text
        return str(board if has_text(board) else self.content(board))

    def initial_board(self, seed: int = 0) -> Any:
        """Return their initial board, with random numbers from `seed`."""
        with self.lock, _seeded(seed):
            return copied(self.call("getInitBoard"))

    def canonical(self, board: Any, player: int) -> Any:
        with self.lock:
            return copied(self.call("getCanonicalForm", copied(board), self.sides[player]))

    def channels(self, canonical: Any) -> list[Part]:
        """Return the channels of a canonical board, `[rows, columns]` each, of the same shape in every position."""
        found = self.view.channels(canonical, "getCanonicalForm")
        shapes = [part.shape for part in found]
        if shapes != self.shapes:
            raise BadAnswerError(
                f"getCanonicalForm returns a board whose parts have the shapes {shown(shapes)}, and at the start "
                f"{shown(self.shapes)}: expected the same in every position, as a network needs it"
            )
        return found

    def content(self, board: Any, method: str = "getNextState") -> Hashable:
        """Return a key of the content of a board, the answer of `method`; for an object, stringRepresentation."""
        if isinstance(board, np.ndarray) and board.dtype.kind != "O":
            return board.tobytes()
        if not self.view.is_object(board):
            parts = self.view.parts(board, method)
            return parts[0].tobytes() if len(parts) == 1 else tuple(part.tobytes() for part in parts)
        if not hasattr(self.game, "stringRepresentation"):
            return tuple(part.tobytes() for part in self.view.channels(board, method))
        found = self.call("stringRepresentation", copied(board))
        return found if isinstance(found, str | bytes | int) else repr(found)

    def legal(self, canonical: Any) -> list[int]:
        valid = np.asarray(self.call("getValidMoves", copied(canonical), self.sides[0]))
        if valid.shape != (self.num_actions,):
            raise BadAnswerError(
                f"getValidMoves returns an array of shape {valid.shape}, expected a number, 0 or 1, for each of the "
                f"{self.num_actions} actions of getActionSize"
            )
        legal: list[int] = np.flatnonzero(valid).tolist()
        return legal

    def play(self, board: Any, player: int, action: int) -> tuple[Any, int]:
        with self.lock:
            answer = self.call("getNextState", copied(board), self.sides[player], action)
            if not isinstance(answer, tuple | list) or len(answer) < 2:
                raise BadAnswerError(f"getNextState returns {shown(answer)}, expected (board, next player)")
            after, side = answer[:2]  # some forks also return the move
            try:
                return copied(after), self.sides.index(int(side))
            except (TypeError, ValueError):
                expected = f"expected {self.sides[0]} or {self.sides[1]}"
                raise BadAnswerError(f"getNextState returns the next player {shown(side)}, {expected}") from None

    def outcome(self, board: Any, player: int) -> Outcome | None:
        """Return the outcome, by the answer of getGameEnded for `player`."""
        answer = self.call("getGameEnded", copied(board), self.sides[player])
        try:
            lead = float(answer) if np.ndim(answer) == 0 else _lead(np.asarray(answer, float), player)
        except (TypeError, ValueError):
            lead = math.nan
        if not math.isfinite(lead):
            raise BadAnswerError(
                f"getGameEnded returns {shown(answer)}, expected 0 while the game goes on, 1 if the player has won, -1 "
                "if the other one has, and a small number such as 0.0001 for a draw"
            )
        if not np.any(answer):
            return None
        if abs(lead) < 0.5:
            return Outcome(None)
        return Outcome(player if lead > 0 else 1 - player)

    @contextlib.contextmanager
    def tried(self, moves: list[int] | None = None) -> Iterator[None]:
        """Turn an error of the game into a ValueError with the method, and the moves before it unless they are None.

        A call that does not return within CALL_SECONDS is such an error.
        """
        before = self.has_limit
        try:
            with _limited() as self.has_limit:
                yield
        except NeverEndsError:
            raise ValueError(
                f"{self.called} has not returned after {CALL_SECONDS:g} seconds{_after(moves)}: does it loop for ever?"
            ) from None
        except BadAnswerError as error:
            where = f" ({_after(moves).strip()})" if moves else ""
            raise ValueError(f"{error}{where}") from error
        except Exception as error:
            raise ValueError(f"{self.called} raises {with_location(error)}{_after(moves)}") from error
        finally:
            self.has_limit = before


def _lead(results: Part, player: int) -> float:
    """Return the lead of `player` in results for one or for both players; NaN for more of them."""
    if results.shape == (2,):
        return float(results[player] - results[1 - player])
    if results.shape == (1,):
        return float(results[0])
    return math.nan


def _after(moves: list[int] | None) -> str:
    if moves is None:
        return ""
    return f" after the moves {shown_moves(moves)}" if moves else " in the initial position"


def shown_moves(moves: list[int]) -> str:
    """Return the first 20 moves, and dots if there are more."""
    names = [str(move) for move in moves[:20]]
    if len(moves) > 20:
        names.append("...")
    return " ".join(names)


def _integer(answer: Any, method: str, what: str) -> int:
    try:
        number = int(answer)
    except (TypeError, ValueError):
        number = 0
    if number < 1 or number != answer:
        raise BadAnswerError(f"{method} returns {shown(answer)}, expected {what}, a positive integer")
    return number


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the random generators of Python, NumPy and Numba in this block; restore their states afterwards."""
    numba: Any = sys.modules.get("numba._helperlib")
    pointers = [numba.rnd_get_np_state_ptr(), numba.rnd_get_py_state_ptr()] if numba else []
    state_of_python = random.getstate()
    state_of_numpy = np.random.get_state()
    states_of_numba = [numba.rnd_get_state(each) for each in pointers]
    random.seed(seed)
    np.random.seed(seed)
    for pointer in pointers:
        numba.rnd_seed(pointer, seed)
    try:
        yield
    finally:
        random.setstate(state_of_python)
        np.random.set_state(state_of_numpy)
        for pointer, state in zip(pointers, states_of_numba, strict=True):
            numba.rnd_set_state(pointer, state)


def _begin_limit() -> None:
    """End a call after CALL_SECONDS, and again after each further second, in case the game catches the error."""
    signal.setitimer(signal.ITIMER_VIRTUAL, CALL_SECONDS, 1)


def _end_call(number: int, frame: FrameType | None) -> None:
    """End the call, unless Numba is compiling the game's code: that may take long, but it ends."""
    inner = frame
    while inner is not None:
        if NUMBA in inner.f_code.co_filename:
            _begin_limit()
            return
        inner = inner.f_back
    raise NeverEndsError


@contextlib.contextmanager
def _limited() -> Iterator[bool]:
    """End a call in this block by NeverEndsError when a timer expires; yield True if it can: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield False
        return
    before = signal.signal(signal.SIGVTALRM, _end_call)
    try:
        yield True
    finally:
        signal.signal(signal.SIGVTALRM, before)
