"""Players of your own: a class with `choose`, and what happens when it fails.

```python
class Cautious(Agent):
    def choose(self, position):
        return min(position.legal_actions(), key=lambda action: len(position.play(action).legal_actions()))
```
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Final

import numpy as np

from plyzero.errors import plain, shown
from plyzero.play.player import Forfeit, ForfeitError, Player
from plyzero.rules.game import Game
from plyzero.rules.user_errors import with_location
from plyzero.threads import Thread

LOOK_SECONDS: Final = 0.1
"""Time between two calls of `Player.on_wait`, in seconds."""


class Agent(ABC):
    """A player of your own. Subclass it and name it as `module:Class(parameter=value)` wherever a player is named."""

    max_seconds: float = 60.0
    """Seconds for a move. A player that exceeds this time loses the game."""

    rng: np.random.Generator = np.random.default_rng()
    """Random numbers. A match sets them from its seed, so use no others if the match should be repeatable."""

    @abstractmethod
    def choose(self, position: Game) -> int:
        """Return a legal action of `position`, in which a player is to move: `position.to_play`."""


class AgentPlayer(Player):
    """An agent as a player: its moves are checked, their time is limited, and what it prints goes to standard error."""

    def __init__(self, name: str, agent: Agent, *, identify: Callable[[str], str] = str) -> None:
        """Make a player of an agent; `identify` returns the identity for the name, by default the name itself."""
        self.name, self.agent = name, agent
        self._identify = identify
        self._last_thread: threading.Thread | None = None

    @property
    def identity(self) -> str:
        return self._identify(self.name)

    def choices(self, positions: Sequence[Game], moves: Sequence[Sequence[int]]) -> list[int | Forfeit]:
        return [self.choose_or_forfeit(position) for position in positions]

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return the agent's action in each of `positions`. Raises ForfeitError if it fails to move."""
        actions: list[int] = []
        for position in positions:
            choice = self.choose_or_forfeit(position)
            if isinstance(choice, Forfeit):
                raise ForfeitError(choice.reason)
            actions.append(choice)
        return actions

    def choose_or_forfeit(self, position: Game) -> int | Forfeit:
        """Return the agent's action, or the reason why there is none: an error, an illegal action, or the time."""
        if self._last_thread and self._last_thread.is_alive():
            return self._forfeit("it is still busy with an earlier move, which could not be interrupted")
        answers: list[object] = []
        errors: list[BaseException] = []

        def choose() -> None:
            try:
                answers.append(self.agent.choose(position))
            except BaseException as error:  # SystemExit too: it must not end the match
                errors.append(error)

        thread = self._last_thread = Thread(choose, name=self.name)
        with redirect_stdout(sys.stderr):
            deadline = time.monotonic() + self.agent.max_seconds
            thread.start()
            try:
                while thread.is_alive() and (left := deadline - time.monotonic()) > 0:
                    self.on_wait()
                    thread.join(min(left, LOOK_SECONDS))
            except BaseException:
                _interrupt(thread)
                raise
            if thread.is_alive():
                _interrupt(thread)
                return self._forfeit(f"no move after {self.agent.max_seconds:g} s")
        if errors:
            return self._forfeit(with_location(errors[0]))
        return self._checked(answers[0], position)

    def _checked(self, answer: object, position: Game) -> int | Forfeit:
        legal = [int(action) for action in position.legal_actions()]
        if isinstance(answer, int | np.integer) and not isinstance(answer, bool) and int(answer) in legal:
            return int(answer)
        return self._forfeit(f"expected one of the legal actions {shown(legal)}, got {shown(answer)}")

    def _forfeit(self, reason: str) -> Forfeit:
        return Forfeit(plain(f"{self.name} forfeits: {reason}", 400))


class _TimeIsUpError(BaseException):
    """Raised in the thread of an agent that takes too long."""


def _interrupt(thread: threading.Thread) -> None:
    """Raise an error in `thread`, which ends Python code; what a library computes in C goes on."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_TimeIsUpError))
    thread.join(1.0)
