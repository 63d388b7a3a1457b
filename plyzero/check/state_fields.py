"""Fields of a State for the attributes of a plain game: their types and shapes follow from what random games hold.

A number is a number, and None is -1. A tuple, a list or bytes is an array, with -1 in the places that are not used. A
set of numbers is an array with 1 where a number is in the set, and a set of (row, column) one of two dimensions.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, shown
from plyzero.rules.game import Game

ABSENT: Final = -1
"""The number of a field for None, and for the places of an array that are not used."""

MAX_CELLS: Final = 4096
"""Largest number of cells of an array for a set."""

SEQUENCES: Final = (tuple, list, bytes, bytearray)
SETS: Final = (set, frozenset)


class UnfitError(ValueError):
    """A value has no place in a field; the message has the value and what would have."""


@dataclass(frozen=True)
class Form:
    """The form of the values that an attribute, or each element of one, has had.

    kind:      the type that gives a value back: bool, int, float, tuple, bytes, frozenset or np.ndarray.
    low, high: the smallest and the largest number in it.
    shape:     the shape of the array that holds a value; () for a number.
    optional:  whether a value may be None.
    padded:    whether the values, sequences, differ in length.
    element:   the form of the elements of a sequence.
    is_float:  whether its numbers are fractions.
    """

    kind: type
    low: float
    high: float
    shape: tuple[int, ...] = ()
    optional: bool = False
    padded: bool = False
    element: Form | None = None
    is_float: bool = False

    @property
    def type(self) -> str:
        """The type of the field: the smallest that holds twice the numbers that were seen, since games differ."""
        if self.is_float:
            return "f8"
        if self.high >= 1 << 31 and self.low >= 0:
            return "u8"  # a set of bits, or a hash
        types = ((name, np.iinfo(name).max) for name in ("i1", "i2", "i4"))
        return next((name for name, largest in types if 2 * max(-self.low, self.high) <= largest), "i8")

    def __str__(self) -> str:
        numbers = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        if self.kind is frozenset:
            return "a set: 1 where a number is in it"
        ends = "; -1 = None" if self.optional else "; -1 = an unused place" if self.padded else ""
        return f"{numbers} in random games{ends}"

    def given_back(self, field: str) -> str:
        """Return the expression that makes the value of the attribute from `field`, an expression for the field."""
        if self.optional:
            first = f"{field}.flat[0]" if self.shape else field
            return f"None if {first} == {ABSENT} else {self._value(field)}"
        return self._value(field)

    def _value(self, field: str) -> str:
        if self.kind is np.ndarray:
            return field
        if self.kind is bytes:
            return f"{field}.astype(np.uint8).tobytes()"
        if self.kind is frozenset and len(self.shape) == 1:
            return f"frozenset(np.flatnonzero({field}).tolist())"
        if self.kind is frozenset:
            return f"frozenset(map(tuple, np.argwhere({field}).tolist()))"
        if self.element is None:
            return f"{self.kind.__name__}({field})"
        if self.element.kind in (int, float) and not self.element.optional and not self.padded:
            return f"tuple({field}.tolist())"
        used = f" if np.any(each != {ABSENT})" if self.padded else ""
        return f"tuple({self.element.given_back('each')} for each in {field}{used})"


@dataclass(frozen=True)
class Field:
    """A field of State for an attribute: its name, the form of its values, and its value in the initial position."""

    name: str
    form: Form
    start: object

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type and shape of the field."""
        return np.dtype((self.form.type, self.form.shape))


def attributes_of(positions: Sequence[Game], source: str) -> tuple[dict[str, list[object]], dict[str, object]]:
    """Return the values, position by position, of the attributes that moves change, and the values of the others.

    source: the source of the class. An attribute that it assigns in a copy is taken as one that moves change.
    Raises UserError if an attribute does not exist in every position.
    """
    cls = type(positions[0])
    assigned = [name for name in assigned_to_copies(source) if hasattr(positions[0], name)]
    names = dict.fromkeys([*(name for position in positions for name in vars(position)), *assigned])
    changing: dict[str, list[object]] = {}
    constant: dict[str, object] = {}
    for name in names:
        if isinstance(inspect.getattr_static(cls, name, None), functools.cached_property):
            continue
        missing = next((each for each in positions if not hasattr(each, name)), None)
        if missing is not None:
            raise UserError(f"{cls.__name__}.{name} exists in some positions only: give it a value in __init__()")
        values = [getattr(position, name) for position in positions]
        if name in assigned or not all(_is_same(value, values[0]) for value in values):
            changing[name] = values
        else:
            constant[name] = values[0]
    changing["to_play"] = [position.to_play for position in positions]
    constant.pop("to_play", None)
    return changing, constant


def assigned_to_copies(source: str) -> Iterator[str]:
    """Yield the attributes that the source of a class assigns to objects that are not called self."""
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)):
            continue
        if isinstance(node.value, ast.Name) and node.value.id != "self":
            yield node.attr


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        equal = np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
        return type(one) is type(other) and bool(equal)
    except Exception:  # objects of a user may not be comparable
        return False


def form_of(values: Sequence[Any], name: str) -> Form:
    """Return the form of `values`, those of an attribute. Raises UserError, with `name`, if no field can hold them."""
    present = [value for value in values if value is not None]
    kinds = {_kind_of(value, name): value for value in present}
    if kinds.keys() == {bool, int}:
        kinds = {int: None}
    if len(kinds) > 1:
        raise UserError(
            f"{name} is {' or '.join(sorted(kind.__name__ for kind in kinds))}, and a field of a State has one form: "
            "use one of these in all positions"
        )
    kind = next(iter(kinds), int)
    optional = len(present) < len(values)
    makers: dict[type, Callable[[Sequence[Any], str], Form]] = {
        tuple: _sequence_form,
        bytes: _sequence_form,
        frozenset: _set_form,
        np.ndarray: _array_form,
    }
    if kind in makers:
        form = makers[kind](present, name)
    else:
        form = Form(kind, min(present, default=0), max(present, default=0), is_float=kind is float)
    if form.low < -(1 << 63) or form.high >= 1 << 64 or (form.low < 0 and form.high >= 1 << 63):
        raise UserError(
            f"{name} is a number from {form.low} to {form.high}, and a field has 64 bits: keep several numbers, or a "
            "tuple of the squares"
        )
    if (optional or form.padded) and form.low < 0:
        raise UserError(f"{name} holds {form.low:g}, and -1 stands for None and unused places: use numbers from 0 on")
    if optional and (form.kind is frozenset or form.padded):
        raise UserError(f"{name} is None or a {form.kind.__name__} of any size: use an empty one in place of None")
    return replace(form, low=ABSENT, optional=optional) if optional or form.padded else form


def _kind_of(value: object, name: str) -> type:
    """Return the kind of a value: a key of the table in `form_of`, or the type of a number."""
    for kind, types in (
        (bool, (bool, np.bool_)),
        (int, (int, np.integer)),
        (float, (float, np.floating)),
        (bytes, (bytes, bytearray)),
        (tuple, (tuple, list)),
        (frozenset, SETS),
        (np.ndarray, (np.ndarray,)),
    ):
        if isinstance(value, types):
            return kind
    advice: dict[type, str] = {
        str: "use a number for each text, or a tuple of numbers",
        dict: "use a tuple or an array with a place for each key",
    }
    instead = advice.get(type(value), "use numbers, tuples of numbers, sets of numbers, arrays")
    raise UserError(f"{name} holds {shown(value)}, a {type(value).__name__}, and a State holds numbers only: {instead}")


def _sequence_form(values: Sequence[Any], name: str) -> Form:
    kind = bytes if isinstance(values[0], bytes | bytearray) else tuple
    longest = max(map(len, values))
    if not longest:
        raise UserError(f"{name} is empty in all random games, so its size is unknown: begin it with a full length")
    element = form_of([each for value in values for each in value], f"an element of {name}")
    padded = min(map(len, values)) < longest
    if padded and element.kind is frozenset:
        raise UserError(f"{name} has sets in it and differs in length: give it the same length in all positions")
    shape = (longest, *element.shape)
    return Form(kind, element.low, element.high, shape, padded=padded, element=element, is_float=element.is_float)


def _set_form(values: Sequence[Any], name: str) -> Form:
    members = list({member for value in values for member in value})
    if not members:
        raise UserError(f"{name} is empty in all random games, so its size is unknown: use a tuple with 0 and 1")
    rows = [member if isinstance(member, tuple) else (member,) for member in members]
    numbers = [each for row in rows for each in row]
    is_place = all(isinstance(each, int | np.integer) and each >= 0 for each in numbers)
    shape = tuple(int(max(row)) + 1 for row in zip(*rows, strict=False)) if is_place else ()
    if not is_place or len({len(row) for row in rows}) > 1 or np.prod(shape) > MAX_CELLS:
        raise UserError(
            f"{name} is a set with {shown(members[0])} in it, and a State has a cell for each possible member, at most "
            f"{MAX_CELLS}: use a set of small numbers, or a tuple"
        )
    return Form(frozenset, 0, 1, shape)


def _array_form(values: Sequence[NDArray[Any]], name: str) -> Form:
    if len({value.shape for value in values}) > 1 or values[0].dtype.kind not in "biuf" or not values[0].size:
        raise UserError(
            f"{name} is an array of {values[0].dtype} whose shape is {values[0].shape} in the initial position, and a "
            "State has arrays of numbers of one shape: use numbers, and one shape in all positions"
        )
    low, high = min(value.min().item() for value in values), max(value.max().item() for value in values)
    return Form(np.ndarray, low, high, values[0].shape, is_float=values[0].dtype.kind == "f")


def encoded(value: object, field: np.dtype[Any]) -> NDArray[Any]:
    """Return the value of an attribute as a field of dtype `field` holds it. Raises UnfitError if it does not."""
    base = field.base
    wide = np.dtype("f8" if base.kind == "f" else "u8" if base == np.dtype("u8") else "i8")
    numbers = np.zeros(field.shape, wide)
    try:
        _put(numbers, value)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise UnfitError(f"{shown(value)} does not fit in a field of type {field}: {error}") from error
    if not np.array_equal(found := numbers.astype(base), numbers):
        raise UnfitError(f"{shown(value)} does not fit in a field of type {field}: give it a larger type")
    return found


def _put(numbers: NDArray[Any], value: Any) -> None:
    """Write a value into `numbers`, all zeros."""
    if value is None:
        numbers[...] = ABSENT
    elif isinstance(value, SETS) and not numbers.shape:
        numbers[...] = sum(1 << member for member in value)  # a set of bits
    elif isinstance(value, SETS):
        flat = numbers.reshape(-1)
        for member in value:
            if isinstance(member, tuple):
                numbers[member] = 1
            else:
                flat[member] = 1
    elif isinstance(value, SEQUENCES) and not (len(value) == numbers.size and _holds_numbers(value)):
        if len(value) > len(numbers):
            raise ValueError(f"it has {len(value)} elements")
        numbers[len(value) :] = ABSENT
        for place, each in enumerate(value):
            _put(numbers[place, ...], each)
    else:
        plain = list(value) if isinstance(value, bytes | bytearray) else value
        numbers[...] = np.reshape(plain, numbers.shape)


def _holds_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(each, int | float | np.number | np.bool_) for each in values)
