"""Compiled games: rules as functions over a record, in the part of Python that Numba compiles.

```python
class Nim(CompiledGame, version=1):
    State = np.dtype([("stones", "i1"), ("to_play", "i1")])
    num_actions, observation_shape, max_plies = 3, (1, 1, 1), 21

    def start(s): s["stones"] = 21                    # optional; every field of a new state is zero
    def set_up(s, number): ...                        # only with set-ups: s is as `start` has left it
    def legal(s, mask): mask[: s["stones"]] = True    # mask is all False when the rule is called
    def play(s, action): ...                          # s is already a copy
    def outcome(s): ...                               # ONGOING, DRAW, or the winner: 0 or 1
    def observe(s, planes): ...                       # planes is float32 and all zeros when the rule is called
    def chances(s, weights): ...                      # only with dice: weights is all zeros when the rule is called
    def score(s): ...                                 # only with points (max_score): of a finished game, for its winner
```

The class is a `Game` like any other. With NUMBA_DISABLE_JIT=1 the same functions run as plain Python.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any, ClassVar, Final, NamedTuple, Self

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.rules.compile_errors import compile_error
from plyzero.rules.game import DRAW, ONGOING, Game, Outcome
from plyzero.rules.machine_code import Function, keep_rule

Record = Any
"""The type of a state inside a rule; its fields are read and written by name: `s["board"][row, column]`."""

kernel: Any = numba.njit
"""A decorator for helper functions that compiled rules call."""

# The search calls the rules of every game through these signatures, so its own code is compiled only once.
STATE: Final = types.uint8[::1]
PLAY: Final = types.void(STATE, types.int64)
OUTCOME: Final = types.int64(STATE)
LEGAL: Final = types.void(STATE, types.boolean[::1])
OBSERVE: Final = types.void(STATE, types.float32[:, :, ::1])
CHANCES: Final = types.void(STATE, types.float32[::1])
SCORE: Final = types.float64(STATE)
SIGNATURES: Final = (PLAY, OUTCOME, LEGAL, OBSERVE, CHANCES, SCORE)


class Rules(NamedTuple):
    """The rules of a game as functions over a state, `[S]` uint8.

    play:    (state, action) -> None; changes the state.
    outcome: (state) -> ONGOING, DRAW or the winner.
    legal:   (state, mask) -> None; sets the legal actions in `mask`, `[A]` bool, which must be all False.
    observe: (state, planes) -> None; writes into `planes`, `[C, H, W]` float32, which must be all zeros.
    chances: (state, weights) -> None; writes probabilities into `weights`, `[K]` float32, which must be all zeros.
    score:   (state) -> the points by which the winner of a finished game leads.
    """

    play: Callable[..., None]
    outcome: Callable[..., int]
    legal: Callable[..., None]
    observe: Callable[..., None]
    chances: Callable[..., None]
    score: Callable[..., float]


RuleFunctions = dict[str, Function]
"""The type of the rules as a class defines them: plain functions over a record, by name."""

COMPILED_RULES: Final = ("play", "outcome", "legal", "observe", "chances", "score")
"""The rules that are compiled, in the order of Rules; `chances` and `score` are optional."""

RULE_NAMES: Final = ("start", "set_up", *COMPILED_RULES)
"""The methods of a compiled game that are rules. `start` and `set_up` are optional, and called as plain Python."""


def no_chances(s: Record, weights: NDArray[np.float32]) -> None:
    """The rule `chances` of a game without dice."""


def no_score(s: Record) -> float:
    """The rule `score` of a game without points."""
    return 0.0


class CompiledGame(Game):
    """A game whose rules are compiled by Numba, in the form shown at the top of this module.

    `State` must have a field `to_play`.
    """

    State: np.dtype[np.void]
    action_names: str | tuple[str, ...] = ()
    """The name of each action; without names, an action is called by its number."""

    roll_names: str | tuple[str, ...] = ()
    """The name of each roll; without names, a roll is called by its number."""

    rule_functions: ClassVar[RuleFunctions] = {"chances": no_chances, "score": no_score}

    is_compiled = True

    is_foreign: ClassVar[bool] = False
    """Whether the rules are machine code of another compiler."""

    def __init_subclass__(cls, *, version: int | None = None, **kwargs: object) -> None:
        found = {name: vars(cls)[name] for name in RULE_NAMES if name in vars(cls)}
        arguments = {
            "set_up": ("number",),
            "play": ("action",),
            "legal": ("mask",),
            "observe": ("planes",),
            "chances": ("weights",),
        }
        for name, rule in found.items():
            expected = ("s", *arguments.get(name, ()))
            if rule.__code__.co_argcount != len(expected):
                raise TypeError(f"{cls.__name__}.{name}: a rule takes {', '.join(expected)}, and no self")
        for name in found:
            delattr(cls, name)  # the attribute is then the method of Game, implemented below
        if "set_up" in found or (cls.is_foreign and vars(cls).get("setups")):
            cls.set_up = _set_up_by_rule  # type: ignore[method-assign, assignment]
        cls.rule_functions = {**cls.rule_functions, **found}
        super().__init_subclass__(version=version, **kwargs)
        missing = [name for name in COMPILED_RULES if name not in cls.rule_functions]
        if missing:
            raise TypeError(f"{cls.__name__}: a compiled game needs the rules {', '.join(missing)}")

    def __init__(self) -> None:
        if "to_play" not in (self.State.names or ()):
            raise TypeError(f"{type(self).__name__}.State needs a field to_play, it has {self.State.names}")
        for name, (field, *_) in (self.State.fields or {}).items():
            if field.shape and field.base == np.bool_:
                raise TypeError(
                    f"{type(self).__name__}.State: Numba does not support arrays of bool in a record; give {name} "
                    "the type i1"
                )
        if self.rule_functions["chances"] is not no_chances and not self.num_chances:
            raise TypeError(f"{type(self).__name__} has a rule chances, but num_chances is 0: give the number of rolls")
        rule = self.rule_functions["score"]
        is_known = rule is not no_chances  # the rule of a ForeignGame is not known here
        if is_known and (rule is not no_score) != bool(self.max_score):
            raise TypeError(f"{type(self).__name__}: a compiled game with points has both a rule score and a max_score")
        self.state = np.zeros(self.State.itemsize, np.uint8)
        if "start" in self.rule_functions:
            self.rule_functions["start"](self.record)

    @functools.cached_property
    def rules(self) -> Rules:
        """The compiled rules. They are compiled at the first use."""
        return compile_rules(type(self).__name__, self.rule_functions, self.State)

    def with_bounds_checked(self) -> Self:
        """Return the same position with rules that raise IndexError for an index out of bounds."""
        position = copy.copy(self)
        position.rules = compile_rules(type(self).__name__, self.rule_functions, self.State, boundscheck=True)
        return position

    def as_plain_python(self) -> Self:
        """Return the same position with rules that run as plain Python: slow, but a traceback shows the user's line.

        Raises UserError if a rule is not written yet.
        """
        expect_written(type(self).__name__, self.rule_functions)
        position = copy.copy(self)
        position.rules = interpret_rules(self.rule_functions, self.State)
        return position

    def with_wide_fields(self) -> Self:
        """Return the same position as plain Python with integer fields of 8 bytes in place of 1, 2 or 4.

        Fields of type u4 stay as they are: sets of bits and hashes drop bits on purpose.
        """
        fields = {name: self.State[name] for name in self.State.names or ()}
        wide = {name: (np.dtype("i8"), t.shape) if t.base.char in "bhiBH" else t for name, t in fields.items()}
        position = copy.copy(self)
        position.State = np.dtype(list(wide.items()))
        position.rules = interpret_rules(self.rule_functions, position.State)
        position.state = np.zeros(position.State.itemsize, np.uint8)
        for name in fields:
            position.record[name] = self.record[name]
        return position

    @property
    def record(self) -> Record:
        """The state as a record, for methods such as `__str__`. Do not change it after `__init__`."""
        return self.state.view(self.State)[0]

    def with_state(self, state: NDArray[np.uint8]) -> Self:
        """Return the position with a copy of `state`, `[S]` uint8, as its state. It awaits no set-up."""
        position = object.__new__(type(self))  # the same as copy.copy in a quarter of the time
        position.__dict__.update(self.__dict__)
        position.__dict__.pop("awaits_setup", None)
        position.state = np.array(state)
        return position

    def write_setup(self, number: int) -> None:
        """Make the state, which is that of a new initial position, that of a set-up: by the rule `set_up`."""
        self.rule_functions["set_up"](self.record, number)

    @property
    def to_play(self) -> int:
        return int(self.record["to_play"])

    def legal_actions(self) -> tuple[int, ...]:
        if self.rules.outcome(self.state) != ONGOING or self.chances():
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
        if not isinstance(code, int | np.integer | np.bool_):  # only rules that run as plain Python return others
            raise TypeError(f"the rule outcome returns {code!r}, expected the integer ONGOING, DRAW, 0 or 1")
        if code == ONGOING:
            return None
        winner = None if code == DRAW else int(code)
        score = self.rules.score(self.state) if self.max_score else None
        return Outcome(winner, score)

    def observe(self) -> NDArray[np.float32]:
        planes = np.zeros(self.observation_shape, np.float32)
        self.rules.observe(self.state, planes)
        return planes

    def chances(self) -> tuple[float, ...]:
        if not self.num_chances or self.rules.outcome(self.state) != ONGOING:
            return ()
        weights = np.zeros(self.num_chances, np.float32)
        self.rules.chances(self.state, weights)
        return tuple(weights.tolist()) if weights.any() else ()

    def action_name(self, action: int) -> str:
        return self.action_names[action] if self.action_names else str(action)

    def roll_name(self, roll: int) -> str:
        return self.roll_names[roll] if self.roll_names else str(roll)

    def key(self) -> bytes:
        return self.state.tobytes()


def _set_up_by_rule(start: CompiledGame, number: int) -> CompiledGame:
    """Return what Game.set_up returns."""
    position = start.with_state(start.state)
    position.write_setup(number)
    return position


class ForeignGame(CompiledGame):
    """A compiled game whose rules are machine code of another compiler.

    Such rules may end the process, never return, or keep variables of their own, and they have no source in Python.
    """

    rule_functions = dict.fromkeys(COMPILED_RULES, no_chances)  # never called
    is_foreign = True

    def tried(self, is_clean: Callable[[Any], bool]) -> bool:
        """Return what `is_clean` returns for this position in a child process; False if it raises.

        Raises UserError with the rule that has ended that process, or has not returned, if one has.
        """
        raise NotImplementedError


def compile_rules(name: str, functions: RuleFunctions, state: np.dtype[np.void], *, boundscheck: bool = False) -> Rules:
    """Return the rules `functions` compiled for states of dtype `state`; the same rules are compiled only once.

    name:        the name of the class, for error messages.
    boundscheck: raise IndexError for an index out of bounds, which goes unnoticed otherwise.
    Raises UserError with a line for each rule that Numba cannot compile, or if a rule is not written yet.
    """
    expect_written(name, functions)
    key = (repr(state.descr), boundscheck, *(functions[rule] for rule in COMPILED_RULES))
    if key not in _compiled:
        done: dict[Function, Function] = {}
        compiled, mistakes = [], []
        for rule in COMPILED_RULES:
            try:
                compiled.append(compile_rule(name, rule, functions[rule], state, done, boundscheck=boundscheck))
            except UserError as error:
                mistakes.append(str(error))
        if mistakes:
            raise UserError("\n".join(mistakes))
        _compiled[key] = Rules(*compiled)
    return _compiled[key]


_compiled: dict[tuple[object, ...], Rules] = {}


def compile_rule(
    name: str,
    rule: str,
    function: Function,
    state: np.dtype[np.void],
    done: dict[Function, Function],
    *,
    boundscheck: bool = False,
) -> Function:
    """Return one rule compiled, as `compile_rules` does; `done`: the kernels compiled so far with bounds checking.

    Raises UserError with the line that Numba cannot compile.
    """
    jit = functools.partial(kernel, boundscheck=True) if boundscheck else kernel
    # Wrappers for callers that a function does not have would take more memory and time than the function itself.
    outer = functools.partial(jit, no_cfunc_wrapper=True)
    inner = functools.partial(outer, no_cpython_wrapper=True)
    inlined = redecorate(function, inner, done) if boundscheck else inner(function)
    try:
        dispatcher = outer(_on_bytes(inlined, state))
        if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            signature = SIGNATURES[COMPILED_RULES.index(rule)]
            keep_rule(dispatcher, function, state.descr, boundscheck).compile(signature)
            dispatcher.disable_compile()
    except Exception as error:  # Numba raises errors of many types, Python's own among them
        raise UserError(compile_error(f"{name}.{rule}", function, error)) from error
    return dispatcher


def unwritten_rules(functions: RuleFunctions) -> list[str]:
    """Return the names of the rules that raise NotImplementedError somewhere: they are not written yet."""
    codes = {name: getattr(rule, "py_func", rule).__code__ for name, rule in functions.items()}
    return [name for name in RULE_NAMES if name in codes and "NotImplementedError" in codes[name].co_names]


def expect_written(name: str, functions: RuleFunctions) -> None:
    """Raise UserError if a rule of the class `name` is not written yet."""
    if missing := unwritten_rules(functions):
        rules = "the rule" if len(missing) == 1 else "the rules"
        raise UserError(
            f"{name}: {rules} {', '.join(missing)} raise NotImplementedError: write them, and compare them with those "
            "of another game, rule by rule, with plyzero check GAME --against OTHER"
        )


def interpret_rules(functions: RuleFunctions, state: np.dtype[np.void]) -> Rules:
    """Return the rules `functions` for states of dtype `state` as plain Python, including the kernels they call."""
    key = (repr(state.descr), *(functions[rule] for rule in COMPILED_RULES))
    if key not in _interpreted:
        done: dict[Function, Function] = {}
        plain = [redecorate(functions[rule], lambda function: function, done) for rule in COMPILED_RULES]
        _interpreted[key] = Rules(*(_on_bytes(function, state) for function in plain))
    return _interpreted[key]


_interpreted: dict[tuple[object, ...], Rules] = {}


def redecorate(
    function: Function, decorate: Callable[[Function], Function], done: dict[Function, Function]
) -> Function:
    """Return a copy of `function`, and of every kernel that it calls, with `decorate` in place of its decorator.

    done: the copies made so far, by plain function. Each function is copied once, so recursion works.
    """
    plain = getattr(function, "py_func", function)
    if plain not in done:
        names = dict(plain.__globals__)
        closure = tuple(CellType(cell.cell_contents) for cell in plain.__closure__ or ()) or None
        copied = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, closure)
        done[plain] = decorate(copied)  # stored first, because a kernel that it calls may call it
        for name, value in names.items():
            if isinstance(value, numba.core.dispatcher.Dispatcher):
                names[name] = redecorate(value, decorate, done)
        for cell in closure or ():
            if isinstance(cell.cell_contents, numba.core.dispatcher.Dispatcher):
                cell.cell_contents = redecorate(cell.cell_contents, decorate, done)
    return done[plain]


def _on_bytes(rule: Function, state: np.dtype[np.void]) -> Function:
    """Return `rule`, a function over a record of dtype `state`, as a function over the bytes of the record."""
    if getattr(rule, "py_func", rule).__code__.co_argcount == 1:

        def on_bytes(bytes_: NDArray[np.uint8]) -> object:
            return rule(bytes_.view(state)[0])

    else:

        def on_bytes(bytes_: NDArray[np.uint8], argument: object) -> object:  # type: ignore[misc]
            return rule(bytes_.view(state)[0], argument)

    return on_bytes
