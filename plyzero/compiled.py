"""Compiled games: rules as functions over a record, in the part of Python that Numba compiles.

```python
class Nim(CompiledGame, version=1):
    State = np.dtype([("stones", "i1"), ("to_play", "i1")])
    num_actions, observation_shape, max_plies = 3, (1, 1, 1), 21

    def start(s): s["stones"] = 21                    # optional; a state starts as zeros
    def legal(s, mask): mask[: s["stones"]] = True    # mask starts as all False
    def play(s, action): ...                          # s is already a copy
    def outcome(s): ...                               # ONGOING, DRAW, or the winner: 0 or 1
    def observe(s, planes): ...                       # planes starts as zeros, float32
```

The class is then a `Game` like any other. With NUMBA_DISABLE_JIT=1 the very same functions run as plain Python.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple, Self

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaExperimentalFeatureWarning
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.game import Game, Outcome

ONGOING: Final = -2
DRAW: Final = -1
"""What a compiled `outcome` returns; 0 and 1 name the winner. Kept apart from search values on purpose."""

Record = Any
"""A state inside a rule: fields by name, `s["board"][row, column]`."""

kernel: Any = numba.njit
"""Marks a helper function that compiled rules call."""

STATE: Final = types.Array(types.uint8, 1, "C")
MASK: Final = types.Array(types.boolean, 1, "C")
PLANES: Final = types.Array(types.float32, 3, "C")
PLAY: Final = types.void(STATE, types.int64)
OUTCOME: Final = types.int64(STATE)
LEGAL: Final = types.void(STATE, MASK)
OBSERVE: Final = types.void(STATE, PLANES)
"""Signatures of the rules as the search calls them: fixed, so that its kernel is compiled once for every game."""

RULE_TYPES: Final = tuple(types.FunctionType(each) for each in (PLAY, OUTCOME, LEGAL, OBSERVE))
"""What compiled code that takes the fields of Rules declares as its last parameters."""

warnings.filterwarnings("ignore", message="First-class function type", category=NumbaExperimentalFeatureWarning)


class Rules(NamedTuple):
    """A game's rules as functions over the bytes of a state.

    play:    (state `[S]` uint8, action) -> None, in place.
    outcome: (state) -> ONGOING, DRAW or the winner.
    legal:   (state, mask `[A]` bool) -> None, into a mask of False.
    observe: (state, planes `[C, H, W]` float32) -> None, into zeros.
    """

    play: Callable[..., None]
    outcome: Callable[..., int]
    legal: Callable[..., None]
    observe: Callable[..., None]


RULES: Final = ("start", "play", "outcome", "legal", "observe")


class CompiledGame(Game):
    """A game whose rules are compiled; see the module for the form. `to_play` must be a field of `State`."""

    State: np.dtype[Any]
    action_names: str | tuple[str, ...] = ()
    """A name per action; empty = the number."""

    written: ClassVar[dict[str, Callable[..., Any]]] = {}
    """The rules as their author wrote them: plain functions, by name."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        found = {name: vars(cls)[name] for name in RULES if name in vars(cls)}
        for name in found:
            delattr(cls, name)  # from here on the name means the Game's method, derived below
        cls.written = {**cls.written, **found}
        super().__init_subclass__(**kwargs)
        missing = [name for name in RULES if name not in cls.written and name != "start"]
        if missing:
            raise TypeError(f"{cls.__name__}: a compiled game needs the rules {', '.join(missing)}")

    def __init__(self) -> None:
        if "to_play" not in (self.State.names or ()):
            raise TypeError(f"{type(self).__name__}.State needs a field to_play, it has {self.State.names}")
        self.state = np.zeros(self.State.itemsize, np.uint8)
        if "start" in self.written:
            self.written["start"](self.record)

    @functools.cached_property
    def rules(self) -> Rules:
        """The rules, compiled when they are first needed."""
        return compile_rules(type(self).__name__, self.written, self.State)

    @property
    def record(self) -> Record:
        """The state as a record, for drawing a position; not to be changed."""
        return self.state.view(self.State)[0]

    def with_state(self, state: NDArray[np.uint8]) -> Self:
        """Return the position whose bytes are `state`, `[S]` uint8, which are copied."""
        position = copy.copy(self)
        position.state = np.array(state)
        return position

    @property
    def to_play(self) -> int:
        return int(self.record["to_play"])

    def legal_actions(self) -> tuple[int, ...]:
        if self.rules.outcome(self.state) != ONGOING:
            return ()
        mask = np.zeros(self.num_actions, np.bool_)
        self.rules.legal(self.state, mask)
        return tuple(np.flatnonzero(mask).tolist())

    def play(self, action: int) -> Self:
        position = self.with_state(self.state)
        self.rules.play(position.state, action)
        return position

    def outcome(self) -> Outcome | None:
        code = self.rules.outcome(self.state)
        if code == ONGOING:
            return None
        return Outcome(None if code == DRAW else int(code))

    def observe(self) -> NDArray[np.float32]:
        planes = np.zeros(self.observation_shape, np.float32)
        self.rules.observe(self.state, planes)
        return planes

    def action_name(self, action: int) -> str:
        return self.action_names[action] if self.action_names else str(action)

    def key(self) -> bytes:
        return self.state.tobytes()


def compile_rules(name: str, written: dict[str, Callable[..., Any]], state: np.dtype[Any]) -> Rules:
    """Return the `written` rules over the bytes of a state of dtype `state`, compiled.

    Raises UserError, with Numba's own words, for a rule that Numba cannot compile.
    """
    key = (state.descr.__repr__(), *(written[rule] for rule in RULES[1:]))
    if key not in _compiled:
        lifted = []
        for rule, signature in zip(RULES[1:], (PLAY, OUTCOME, LEGAL, OBSERVE), strict=True):
            try:
                lifted.append(_over_bytes(kernel(written[rule]), signature, state))
            except numba.core.errors.NumbaError as error:
                raise UserError(
                    f"{name}.{rule} is outside the Python that Numba compiles; to debug it as plain Python set "
                    f"NUMBA_DISABLE_JIT=1, or subclass Game instead of CompiledGame. Numba says:\n{error}"
                ) from error
        _compiled[key] = Rules(*lifted)
    return _compiled[key]


_compiled: dict[tuple[Any, ...], Rules] = {}


@functools.cache
def bind(function: Callable[..., Any], rules: Rules) -> Callable[..., Any]:
    """Return `function`, compiled code whose last parameters are the rules, without them.

    Handing four functions from Python to compiled code anew takes 90 µs a call, as much as the search of a batch.
    """
    play, outcome, legal, observe = rules

    @numba.njit
    def bound(*arguments: Any) -> Any:
        return function(*arguments, play, outcome, legal, observe)

    return bound


def _over_bytes(rule: Callable[..., Any], signature: Any, state: np.dtype[Any]) -> Callable[..., Any]:
    if len(signature.args) == 1:

        @numba.njit(signature)
        def over_bytes(bytes_: NDArray[np.uint8]) -> Any:
            return rule(bytes_.view(state)[0])

    else:

        @numba.njit(signature)
        def over_bytes(bytes_: NDArray[np.uint8], argument: Any) -> Any:
            return rule(bytes_.view(state)[0], argument)

    return over_bytes
