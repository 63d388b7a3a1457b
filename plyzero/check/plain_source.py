"""Source of a game in plain Python: its methods, what they use, and the parts of its module that they need."""

from __future__ import annotations

import ast
import inspect
import math
import pprint
import textwrap
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Final

import numpy as np

from plyzero.errors import UserError
from plyzero.rules.game import Game

WIDTH: Final = 100
"""Columns of a literal."""


class PlainSource:
    """The source of the class of a plain game.

    methods: the source of each method and property, without indentation, by name; those of base classes too.
    text:    all of it.
    """

    def __init__(self, cls: type[Game], module: ModuleType) -> None:
        self.cls, self.module = cls, module
        self.methods: dict[str, str] = {}
        for owner in reversed(own_classes(cls)):
            for name, member in vars(owner).items():
                function = _function_of(member)
                if function is not None and name != "play_unchecked":
                    self.methods[name] = textwrap.dedent(source_of(function, f"{cls.__name__}.{name}")).rstrip()
        self.text = "\n\n".join(self.methods[name] for name in self.methods if name != "__init__")
        whole = source_of(module, module.__name__)
        self.statements = ast.parse(whole).body
        self.lines = whole.splitlines()

    def reached(self, first: Iterable[str], without: Iterable[str] = ()) -> list[str]:
        """Return the methods `first`, and those that they use, directly or not, in the order in which they are met."""
        found = dict.fromkeys(name for name in first if name in self.methods)
        waiting, left_out = list(found), set(without)
        for name in waiting:
            for used in attributes_in(self.methods[name]):
                if used in self.methods and used not in found and used not in left_out:
                    found[used] = None
                    waiting.append(used)
        return list(found)

    def attributes(self, methods: Iterable[str]) -> list[str]:
        """Return the names of the attributes, of any object, that `methods` use."""
        return list(dict.fromkeys(name for method in methods for name in attributes_in(self.methods[method])))

    def names(self, methods: Iterable[str]) -> set[str]:
        """Return the names in the module that `methods` use."""
        return {name for method in methods for name in _names_in(ast.parse(self.methods[method]))} & vars(
            self.module
        ).keys() - {self.cls.__name__}

    def statements_of(self, names: Iterable[str]) -> tuple[list[ast.stmt], set[str]]:
        """Return the statements of the module that make `names`, in its order, and all names that these need."""
        known = vars(self.module).keys() - {self.cls.__name__}
        needed, size = set(names) & known, -1
        chosen: list[ast.stmt] = []
        while size != len(needed):
            size = len(needed)
            chosen = [each for each in self.statements if needed & _made_by(each)]
            for each in chosen:
                if not isinstance(each, ast.Import | ast.ImportFrom):
                    needed |= set(_names_in(each)) & known
        return chosen, needed

    def lines_of(self, statement: ast.stmt) -> str:
        """Return the lines of a statement of the module, with their comments."""
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(each.lineno for each in decorators)])
        return "\n".join(self.lines[first - 1 : statement.end_lineno])


def own_classes(cls: type[Game]) -> list[type]:
    """Return the class and its bases that are not plyzero's, in the order in which Python looks for a name."""
    return [each for each in cls.__mro__ if each not in Game.__mro__]


def source_of(thing: Any, name: str) -> str:
    """Return the source of a function or module. Raises UserError if there is none, as in a library in C."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError) as error:
        raise UserError(
            f"the source of {name} cannot be read, and its compiled form begins with it: {error}"
        ) from error


def _function_of(member: Any) -> Any:
    """Return the function of a member of a class that is a method or a property; None for another member."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    found = getattr(member, "func", member)  # of a cached_property
    return found if inspect.isfunction(inspect.unwrap(found)) else None


def attributes_in(source: str) -> Iterator[str]:
    """Yield the attributes that a method reads or calls, of any object."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            yield node.attr


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id


def _made_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module makes or changes."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(each.asname or each.name).partition(".")[0] for each in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Expr):  # MOVES.append(...)
        call = statement.value
        is_method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        return set(_names_in(call.func)) if is_method else set()  # type: ignore[attr-defined]
    stored = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if isinstance(statement, ast.If):
        return stored - {"__name__"} if "__name__" not in _names_in(statement.test) else set()
    if isinstance(statement, ast.For | ast.While):
        return set(_names_in(statement))
    changed = (node.value for node in ast.walk(statement) if isinstance(node, ast.Subscript | ast.Attribute))
    return stored | {node.id for node in changed if isinstance(node, ast.Name) and not stored}


def literal(value: object) -> str | None:
    """Return the source of a constant, of numbers, texts and what holds them; None for another object."""
    if not _is_literal(value):
        return None
    if isinstance(value, np.ndarray):
        dtype = "" if value.dtype.kind == "U" else f', "{value.dtype}"'
        return f"np.array({_formatted(value.tolist())}{dtype})"
    return _formatted(_plain(value))


def _formatted(value: object) -> str:
    """Return the source of a constant, in several lines if it is long."""
    text = pprint.pformat(value, width=WIDTH, compact=True, sort_dicts=False)
    if "\n" not in text or isinstance(value, str | bytes | frozenset):
        return text
    inner = textwrap.indent(textwrap.dedent(f" {text[1:-1]}"), "    ")
    return f"{text[0]}\n{inner},\n{text[-1]}"


def _is_literal(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufU"
    if isinstance(value, dict):
        return all(_is_literal(each) for pair in value.items() for each in pair)
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_literal, value))
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str | bytes | np.integer | np.bool_)


def _plain(value: Any) -> Any:
    """Return a constant with lists as tuples, which rules can read, and numbers of NumPy as Python's."""
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def unfit_for_rules(value: object) -> str:
    """Return what a rule can read in place of a constant or function of a module; "" if it can read `value`."""
    if isinstance(value, bool | int | np.integer) and -(1 << 63) <= value < 1 << 64:
        return ""
    if isinstance(value, int):
        return "it has more than 64 bits: split it, or use an array"
    if isinstance(value, float | np.floating | np.bool_) or (
        isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    ):
        return ""
    if inspect.isfunction(value):
        return "a rule can call it once it has @kernel above it and only numbers, arrays and tuples in it"
    if isinstance(value, tuple | list) and value:
        try:
            numbers = np.array(value)
        except ValueError:
            return "its rows differ in length: make it an array with -1 in the places that are not used"
        if numbers.dtype.kind in "biuf":
            return "" if isinstance(value, tuple) else "a rule reads arrays and tuples, not lists: np.array(...)"
        return "its elements are no numbers, and a rule reads tables of numbers only"
    if isinstance(value, bytes):
        return ""
    if isinstance(value, dict | set | frozenset):
        return f"a rule has no {type(value).__name__}: make it an array with a place for each number"
    return f"a rule has numbers only, and this is a {type(value).__name__}: decide which numbers it needs"
