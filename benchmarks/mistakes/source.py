"""Mistakes in the source of a game in plain Python, planted by changing its syntax tree."""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

from benchmarks.mistakes.planted import Make, Mistake, spread
from plyzero import Game

COPIES = ("list", "bytearray", "dict", "set", "deepcopy", "copy")  # calls that give a position a board of its own
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add}
PARTS = ("observe", "key", "from_text", "final_board", "symmetries", "chances")
"""Methods that tell about the rules: a mistake in one of them contradicts the rules, in another it is another game."""

NOT_RULES = ("render", "__str__", "action_name", "roll_name", "parse_action", "__init__")
"""Methods in which a mistake is another name, another picture or another size of the game, or stops it at once."""

SHARED = "a shared board"
FORGOTTEN = "a counter or the player is forgotten"
"""Mistakes in play() that contradict the other methods."""

Edit = Callable[[ast.AST], None]


def source_mistakes(make: Make, most: int) -> Iterator[Mistake]:
    """Yield the mistakes of all operators in the source of a game, `most` of each operator at most."""
    cls = type(make())
    counters = {name for name, value in vars(make()).items() if type(value) is int} | {"to_play"}
    tree = ast.parse(inspect.getsource(cast(types.ModuleType, inspect.getmodule(cls))))
    found: dict[tuple[str, bool], list[tuple[str, int, Edit]]] = {}
    for number, (method, node) in enumerate(nodes(tree, cls.__name__)):
        for operator, edit in edits(method, node, counters):
            contradicts = method in PARTS or operator in (SHARED, FORGOTTEN)
            where = f"{method}, line {getattr(node, 'lineno', 0)}: {ast.unparse(node)[:60]}"
            found.setdefault((operator, contradicts), []).append((where, number, edit))
    for (operator, contradicts), places in found.items():
        for where, number, edit in spread(places, most):
            changed = copy.deepcopy(tree)
            node = next(node for at, (_, node) in enumerate(nodes(changed, cls.__name__)) if at == number)
            edit(node)
            yield Mistake(operator, where, contradicts, made_from(changed, cls))


def nodes(tree: ast.Module, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes of the methods of a class and of the functions of its module, with the name of the method."""
    for top in tree.body:
        methods = top.body if isinstance(top, ast.ClassDef) and top.name == name else [top]
        for method in methods:
            if isinstance(method, ast.FunctionDef) and method.name not in NOT_RULES:
                yield from ((method.name, node) for node in ast.walk(method))


def edits(method: str, node: ast.AST, counters: Collection[str]) -> Iterator[tuple[str, Edit]]:
    """Yield the operators that apply to a node, and how each changes it in place.

    counters: the attributes that are the player to move or a number.
    """
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield "a test is off by one or turned", lambda each: _set_operator(each.ops, COMPARISONS)
    if isinstance(node, ast.BoolOp):
        yield "and for or", _swap_and_or
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        yield "a wrong direction", _swap_sign
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "a number is off by one", _one_more
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        yield "an edge is forgotten", _shorter_range
    if method == "play" and isinstance(node, ast.Call) and _copied(node) is not None:
        yield SHARED, _without_copy
    if method == "play" and isinstance(node, ast.Assign | ast.AugAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Attribute) and target.attr in counters:
            yield FORGOTTEN, _forget
        elif isinstance(target, ast.Attribute | ast.Subscript):
            yield "a change of the board is forgotten", _forget


def made_from(tree: ast.Module, cls: type[Game]) -> Make:
    """Return a function that makes the game of a changed module."""
    module = types.ModuleType(f"mutant_{cls.__name__}")
    vars(module)["_itself"] = lambda copied: copied
    code = compile(ast.fix_missing_locations(tree), inspect.getfile(cls), "exec")

    def make() -> Game:
        if cls.__name__ not in vars(module):
            exec(code, vars(module))
        return cast(Game, vars(module)[cls.__name__]())

    return make


def _set_operator(operators: list[Any], others: dict[Any, Any]) -> None:
    operators[0] = others[type(operators[0])]()


def _swap_and_or(node: Any) -> None:
    node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()


def _swap_sign(node: Any) -> None:
    node.op = SIGNS[type(node.op)]()


def _one_more(node: Any) -> None:
    node.value += 1


def _shorter_range(node: Any) -> None:
    last = min(1, len(node.args) - 1)
    node.args[last] = ast.BinOp(node.args[last], ast.Sub(), ast.Constant(1))


def _copied(node: ast.Call) -> ast.expr | None:
    """Return what a call copies; None if it does not copy."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
        return node.func.value
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return node.args[0] if name in COPIES and len(node.args) == 1 else None


def _without_copy(node: Any) -> None:
    copied = _copied(node)
    node.func, node.args, node.keywords = ast.Name("_itself", ast.Load()), [copied], []


def _forget(node: Any) -> None:
    value = node.value
    if isinstance(node, ast.AugAssign):
        node.op, node.value = ast.Add(), ast.BinOp(value, ast.Sub(), copy.deepcopy(value))
    else:
        node.targets = [ast.Name("_forgotten", ast.Store())]
