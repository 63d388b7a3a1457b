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
import re
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any, ClassVar, Final, NamedTuple, Self

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.rules.game import DRAW, ONGOING, Game, Outcome

Record = Any
"""A state inside a rule: fields by name, `s["board"][row, column]`."""

kernel: Any = numba.njit
"""Marks a helper function that compiled rules call."""

STATE: Final = types.uint8[::1]
MASK: Final = types.boolean[::1]
PLANES: Final = types.float32[:, :, ::1]
PLAY: Final = types.void(STATE, types.int64)
OUTCOME: Final = types.int64(STATE)
LEGAL: Final = types.void(STATE, MASK)
OBSERVE: Final = types.void(STATE, PLANES)
"""Signatures of the rules as the search calls them: fixed, so that its kernel is compiled once for every game."""


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

_SECOND: Final = {"play": ("action",), "legal": ("mask",), "observe": ("planes",)}
_OUTSIDE: Final = re.compile("Untyped global name|reflected list")

Written = dict[str, Callable[..., Any]]
"""Rules as their author wrote them: plain functions, by name."""


class CompiledGame(Game):
    """A game whose rules are compiled; see the module for the form. `to_play` must be a field of `State`."""

    State: np.dtype[Any]
    action_names: str | tuple[str, ...] = ()
    """A name per action; empty = the number."""

    written: ClassVar[Written] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        found = {name: vars(cls)[name] for name in RULES if name in vars(cls)}
        for name, rule in found.items():
            expected = ("s", *_SECOND.get(name, ()))
            if rule.__code__.co_argcount != len(expected):
                raise TypeError(f"{cls.__name__}.{name}: a rule takes {', '.join(expected)}, and no self")
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
        for name, (field, *_) in (self.State.fields or {}).items():
            if field.shape and field.base == np.bool_:
                raise TypeError(
                    f"{type(self).__name__}.State: Numba knows no array of bool in a record; make {name} i1"
                )
        self.state = np.zeros(self.State.itemsize, np.uint8)
        if "start" in self.written:
            self.written["start"](self.record)

    @functools.cached_property
    def rules(self) -> Rules:
        """The rules, compiled when they are first needed."""
        return compile_rules(type(self).__name__, self.written, self.State)

    def with_bounds_checked(self) -> Self:
        """Return the same position; rules compiled so that an index outside of its array raises IndexError."""
        position = copy.copy(self)
        position.rules = compile_rules(type(self).__name__, self.written, self.State, boundscheck=True)
        return position

    def as_plain_python(self) -> Self:
        """Return the same position under the same rules, interpreted: slow, and an error names its line."""
        position = copy.copy(self)
        position.rules = interpret_rules(self.written, self.State)
        return position

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


def compile_rules(name: str, written: Written, state: np.dtype[Any], *, boundscheck: bool = False) -> Rules:
    """Return the `written` rules over the bytes of a state of dtype `state`, compiled.

    With `boundscheck` an index outside of its array raises IndexError; without, as in self-play, nothing looks.
    Raises UserError, with Numba's own words, for a rule that Numba cannot compile.
    """
    key = (repr(state.descr), boundscheck, *(written[rule] for rule in RULES[1:]))
    if key not in _compiled:
        jit = functools.partial(kernel, boundscheck=True) if boundscheck else kernel
        made: dict[Any, Any] = {}
        lifted = []
        for rule, signature in zip(RULES[1:], (PLAY, OUTCOME, LEGAL, OBSERVE), strict=True):
            function = rebuilt(written[rule], jit, made) if boundscheck else jit(written[rule])
            try:
                lifted.append(jit(signature)(_over_bytes(function, state)))
            except numba.core.errors.NumbaError as error:
                hint = (
                    "; a helper needs @kernel, a table must be an array or a tuple"
                    if _OUTSIDE.search(str(error))
                    else ""
                )
                raise UserError(
                    f"{name}.{rule} is outside the Python that Numba compiles{hint}. To debug it as plain Python set "
                    f"NUMBA_DISABLE_JIT=1, or subclass Game instead of CompiledGame. Numba says:\n{error}"
                ) from error
        _compiled[key] = Rules(*lifted)
    return _compiled[key]


_compiled: dict[tuple[Any, ...], Rules] = {}


def interpret_rules(written: Written, state: np.dtype[Any]) -> Rules:
    """Return the `written` rules over the bytes of a state, as plain Python; so are the kernels that they call."""
    made: dict[Any, Any] = {}
    return Rules(*(_over_bytes(rebuilt(written[rule], lambda function: function, made), state) for rule in RULES[1:]))


def rebuilt(function: Any, decorate: Callable[[Any], Any], made: dict[Any, Any]) -> Any:
    """Return `function`, and every kernel that it reaches by name, decorated anew; `made` holds those that are."""
    plain = getattr(function, "py_func", function)
    if plain not in made:
        names = dict(plain.__globals__)
        closure = tuple(CellType(cell.cell_contents) for cell in plain.__closure__ or ()) or None
        copied = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, closure)
        made[plain] = decorate(copied)  # before the kernels it calls: they may call it
        for name, value in names.items():
            if isinstance(value, numba.core.dispatcher.Dispatcher):
                names[name] = rebuilt(value, decorate, made)
        for cell in closure or ():
            if isinstance(cell.cell_contents, numba.core.dispatcher.Dispatcher):
                cell.cell_contents = rebuilt(cell.cell_contents, decorate, made)
    return made[plain]


def _over_bytes(rule: Callable[..., Any], state: np.dtype[Any]) -> Callable[..., Any]:
    if getattr(rule, "py_func", rule).__code__.co_argcount == 1:

        def over_bytes(bytes_: NDArray[np.uint8]) -> Any:
            return rule(bytes_.view(state)[0])

    else:

        def over_bytes(bytes_: NDArray[np.uint8], argument: Any) -> Any:  # type: ignore[misc]
            return rule(bytes_.view(state)[0], argument)

    return over_bytes
