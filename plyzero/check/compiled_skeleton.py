"""Compiled form of a plain game, begun: State, start and what people see are complete, and each rule is a stub.

The methods that people see, such as action_name and render, are copied with what they use. They find the attributes of
the plain game as properties, which read the state.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from plyzero.check.ends import random_games
from plyzero.check.plain_source import PlainSource, literal, own_classes, unfit_for_rules
from plyzero.check.sampling import POSITIONS
from plyzero.check.state_fields import Field, assigned_to_copies, attributes_of, encoded, form_of
from plyzero.errors import UserError
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import without_setup
from plyzero.rules.compiled_game import RULE_NAMES, CompiledGame
from plyzero.rules.game import Game

METHODS: Final = {
    "set_up": "set_up",
    "play": "play",
    "outcome": "outcome",
    "legal": "legal_actions",
    "observe": "observe",
    "chances": "chances",
    "score": "outcome",
}
"""Rule -> the method of a plain game that has it, in the order in which the rules are written."""

STUBS: Final = {
    "set_up": ("s, number", "change s, which is as start has left it, into set-up number; plain Python, not compiled"),
    "play": ("s, action", "change s, which is a copy already"),
    "outcome": ("s", "return ONGOING, DRAW, or the winner, 0 or 1"),
    "legal": ("s, mask", "mask[action] = True for each legal action; not called when the game is over"),
    "observe": ("s, planes", "write into planes, which are all 0"),
    "chances": ("s, weights", "where chance moves, weights[roll] = its probability"),
    "score": ("s", "return the points by which the winner leads; called for finished games only"),
}
"""Rule -> its arguments and what it does."""

ORDINARY: Final = (
    "action_name",
    "uci_move",
    "san",
    "fen",
    "roll_name",
    "parse_action",
    "symmetries",
    "final_board",
    "render",
    "__str__",
)
"""Methods of a plain game that are no rules and stay as they are."""

FACTS: Final = (
    "num_actions",
    "observation_shape",
    "observation_dtype",
    "policy_planes",
    "max_plies",
    "num_chances",
    "setups",
    "max_score",
    "final_planes",
    "sgf_game",
    "uci_variant",
    "rules_text",
    "waived_laws",
)
"""The declarations of a class."""

RESERVED: Final = {"state", "record", "rules", "State", *RULE_NAMES} - {
    "set_up",
    "play",
    "outcome",
    "observe",
    "chances",
}
"""Names that a compiled game uses itself."""


class Skeleton:
    """The parts of the source of a compiled game that follow from a plain one.

    class_name: the name of the new class.
    rules:      the rules to write, in their order.
    texts:      the texts for the placeholders of the template of the rules.
    notes:      sentences about what the author has to decide.
    Raises UserError with what to decide first, if a compiled form of the game cannot be begun.
    """

    def __init__(self, original: GameSpec, class_name: str) -> None:
        refuse_other_games(original)
        self.original, self.start, self.class_name = original, original.start, class_name
        self.cls = type(original.start)
        self.source = PlainSource(self.cls, sys.modules[self.cls.__module__])
        changing, self.constants = attributes_of(_positions(original), self.source.text)
        self.fields = [
            Field(name, form_of(values, f"{original.name}.{name}"), values[0]) for name, values in changing.items()
        ]
        self.constants |= self._class_constants(changing)
        for name in (*changing, *self.constants):
            if name in RESERVED:
                raise UserError(
                    f"{original.name}.{name}: a compiled game uses this name itself; rename it in the plain game"
                )
        self.rules = [rule for rule in METHODS if self._needs(rule)]
        self.notes: list[str] = []
        self.ordinary = [name for name in ORDINARY if name in self.source.methods and not self._obstacle(name)]
        if "from_text" in self.source.methods:
            self.notes.append("from_text() is not copied: it makes positions, and needs with_state() instead")
        self.tables: dict[str, str] = {}  # attribute that rules read -> its name in the new module
        self.texts = self._texts()

    @property
    def state_bytes(self) -> int:
        """The size of a state."""
        return sum(field.dtype.itemsize for field in self.fields)

    def _texts(self) -> dict[str, str]:
        in_rules, in_ordinary = self._in_rules(), self._in_ordinary()
        copied, imports = self._copied(in_rules, in_ordinary)
        return {
            "RULES": ", ".join(self.rules),
            "IMPORTS": imports,
            "COPIED": copied + self._tables(in_rules),
            "DOCSTRING": inspect.cleandoc(self.cls.__doc__ or "").replace("\n", "\n    "),
            "FIELDS": "\n".join(_field_line(field) for field in self.fields),
            "NUMBERS": "".join(f"\n    {line}" for line in self._facts()),
            "START": "\n".join(_start_lines(self.fields)) or "        pass",
            "STUBS": "\n".join(self._stub(rule) for rule in self.rules),
            "ORDINARY": self._ordinary_source(in_ordinary),
            "HELPERS": self._helpers(in_rules),
        }

    def _needs(self, rule: str) -> bool:
        optional = {"set_up": self.start.setups, "chances": self.start.num_chances, "score": self.start.max_score}
        return optional.get(rule, 1) > 0

    def _class_constants(self, changing: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for owner in reversed(own_classes(self.cls)):
            found |= {
                name: value
                for name, value in vars(owner).items()
                if not name.startswith("__") and name not in changing and name not in self.source.methods
            }
        return {name: value for name, value in found.items() if name not in ("version", "play_unchecked", "_abc_impl")}

    def _obstacle(self, name: str) -> str:
        """Return why a method is not copied, and note it; "" if it can be."""
        methods = self.source.reached([name], without=set(METHODS.values()) | {"play_unchecked"})
        texts = {each: self.source.methods[each] for each in methods}
        found = ""
        for each, text in texts.items():
            if "super()" in text:
                found = f"{each}() calls super()"
            elif list(assigned_to_copies(text)):
                found = f"{each}() changes a copy of the position"
            elif each in RESERVED:
                found = f"a compiled game uses the name {each} itself"
            elif unknown := self._without_source(texts):
                found = f"self.{unknown} is no number, text or table of these"
        if found:
            self.notes.append(f"{name}() is not copied, since {found}: write it with self.record, the state")
        return found

    def _without_source(self, texts: dict[str, str]) -> str:
        used = self.source.attributes(texts)
        return next((name for name in used if name in self.constants and literal(self.constants[name]) is None), "")

    def _in_rules(self) -> list[str]:
        return self.source.reached([METHODS[rule] for rule in self.rules], without=ORDINARY)

    def _in_ordinary(self) -> list[str]:
        rules = {*METHODS.values(), "play_unchecked", "key", "from_text", "to_play"}
        return self.source.reached(self.ordinary, without=rules)

    def _copied(self, in_rules: Sequence[str], in_ordinary: Sequence[str]) -> tuple[str, str]:
        """Return the statements of the plain module that the new one needs, and its imports."""
        for_rules = self.source.names(in_rules)
        _, needed = self.source.statements_of(self.source.names(in_ordinary))
        for_rules = {name for name in for_rules if not _is_imported(vars(self.source.module)[name])}
        chosen, needed = self.source.statements_of(needed | for_rules)
        imports = {"plyzero": {"DRAW", "ONGOING", "CompiledGame", "kernel"}}
        lines, parts = ["import numpy as np"], []
        for each in chosen:
            if isinstance(each, ast.Import):
                lines += [f"import {ast.unparse(alias)}" for alias in each.names if _bound(alias) in needed]
            elif isinstance(each, ast.ImportFrom):
                names = {ast.unparse(alias) for alias in each.names if _bound(alias) in needed}
                imports.setdefault("." * each.level + (each.module or ""), set()).update(names)
            else:
                parts.append(self._with_advice(each, for_rules))
        imports.pop("__future__", None)
        lines = ["from __future__ import annotations", "", *dict.fromkeys(lines)]
        own = imports.pop("plyzero")
        lines += [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(imports.items())]
        lines.append(f"from plyzero import {', '.join(sorted(own, key=lambda name: (not name.isupper(), name)))}")
        heading = f"\n# From {self.source.module.__name__}, as it is there:\n\n"
        copied = "\n".join([heading + parts[0], *parts[1:], ""]) if parts else ""
        return copied, "\n".join(lines)

    def _with_advice(self, statement: ast.stmt, for_rules: set[str]) -> str:
        values = vars(self.source.module)
        lines = self.source.lines_of(statement)
        is_block = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        names = [statement.name] if is_block else _assigned(statement)  # type: ignore[attr-defined]
        advice = [(name, unfit_for_rules(values[name])) for name in names if name in for_rules]
        above = "".join(f"# Decide: {name}: {text}.\n" for name, text in advice if text)
        self.notes += [f"{name}: {text}" for name, text in advice if text]
        return f"\n\n{above}{lines}\n" if is_block else f"{above}{lines}"

    def _tables(self, in_rules: Sequence[str]) -> str:
        """Return the constants of the plain game that rules read, which have no self, as names of the module."""
        lines = []
        for name in self.source.attributes(in_rules):
            value = self.constants.get(name)
            if name in self.constants and name != "observation_shape":
                text = literal(value)
                advice = unfit_for_rules(_read(value))
                if text is None or advice:
                    self.notes.append(f"self.{name}: {advice or 'it has no numbers only'}")
                    lines.append(f"# Decide: self.{name}: {advice}.")
                if text is not None:
                    self.tables[name] = self._table_name(name)
                    lines.append(f"{self.tables[name]} = {text}")
        return (
            "\n# What the plain rules read from self and no move changes:\n\n" + "\n".join(lines) + "\n"
            if lines
            else ""
        )

    def _table_name(self, name: str) -> str:
        upper = name.upper().strip("_")
        return upper if upper not in vars(self.source.module) or upper == name else f"{upper}_OF_GAME"

    def _facts(self) -> Iterator[str]:
        for name in FACTS:
            value = getattr(self.start, name)
            if name == "observation_dtype":
                value_text = np.dtype(value).name
                if value_text not in ("float32",):
                    yield f"observation_dtype = {'bool' if value_text == 'bool' else repr(value_text)}"
            elif value != getattr(Game, name, None):
                yield f"{name} = {literal(dict(value) if name == 'waived_laws' else value)}"

    def _stub(self, rule: str) -> str:
        arguments, task = STUBS[rule]
        method = METHODS[rule]
        beside = self.source.methods.get(method, "") if rule != "score" else "The score in the outcome() above."
        if rule == "play" and "to_play" in self.source.methods:
            beside += f"\n\n{self.source.methods['to_play']}"
        return f'    def {rule}({arguments}):\n{_commented(beside, 8)}\n        raise NotImplementedError("{task}")\n'

    def _ordinary_source(self, in_ordinary: Sequence[str]) -> str:
        used = self.source.attributes(in_ordinary)
        parts = []
        given_back = [field for field in self.fields if field.name in used and field.name != "to_play"]
        for field in given_back:
            value = field.form.given_back(f'self.record["{field.name}"]')
            parts.append(f"@property\ndef {field.name}(self):\n    return {value}\n")
        known = {name for name in used if name in self.constants and name not in FACTS}
        values = {name: self.tables.get(name) or literal(self.constants[name]) for name in used if name in known}
        constants = "".join(f"{name} = {value}\n" for name, value in values.items())
        if constants:
            parts.append(constants)
        parts += [f"{self.source.methods[name]}\n" for name in in_ordinary]
        heading = "# Ordinary methods, and the attributes that they read. Compiled code never calls these.\n"
        text = textwrap.indent("\n".join([heading, *parts]), "    ") if parts else ""
        return re.sub(rf"\b{self.cls.__name__}\.", f"{self.class_name}.", text)

    def _helpers(self, in_rules: Sequence[str]) -> str:
        helpers = [name for name in in_rules if name not in METHODS.values() and name != "to_play"]
        if not helpers:
            return ""
        heading = (
            "\n\n# The methods that the plain rules call. Write those that you need as functions, with @kernel above\n"
            '# and s in place of self: `self.pawns` becomes `s["pawns"]`, `self.find(row)` becomes `find(s, row)`.\n'
        )
        return heading + "\n".join(f"#\n{_commented(self.source.methods[name], 0)}" for name in helpers) + "\n"


def refuse_other_games(original: GameSpec) -> None:
    """Raise UserError if a game is compiled already, or is one of another toolkit."""
    if isinstance(original.start, CompiledGame):
        raise UserError(f"{original.name} is compiled already; --compiled begins the compiled form of a plain game")
    if original.start.is_adapted:
        raise UserError(
            f"{original.name} is a game of another toolkit, whose rules are not methods of a Game: write it in plain "
            "Python first, which plyzero new NAME --from GAME begins without --compiled"
        )


def _positions(original: GameSpec) -> list[Game]:
    """Return the positions of random games."""
    return [without_setup(each) for game in random_games(original, POSITIONS) for each in game.positions]


def _field_line(field: Field) -> str:
    shape = f", {field.form.shape}" if field.form.shape else ""
    return f'            ("{field.name}", "{field.form.type}"{shape}),  # {field.form}'


def _start_lines(fields: Sequence[Field]) -> Iterator[str]:
    for field in fields:
        numbers = encoded(field.start, field.dtype)
        if numbers.any():
            text = literal(numbers.tolist()) or ""
            yield textwrap.indent(f's["{field.name}"] = {text}', "        ").replace("\n        ", "\n            ")


def _commented(source: str, columns: int) -> str:
    return "\n".join(f"{' ' * columns}# {line}".rstrip() for line in source.splitlines())


def _read(value: Any) -> Any:
    """Return a constant as it is written into the new module: lists as tuples."""
    return tuple(map(_read, value)) if isinstance(value, list | tuple) else value


def _bound(alias: ast.alias) -> str:
    return (alias.asname or alias.name).partition(".")[0]


def _assigned(statement: ast.stmt) -> list[str]:
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _is_imported(value: object) -> bool:
    """Return whether a name of a module is another module, or something of plyzero, which rules do not use."""
    return inspect.ismodule(value) or getattr(value, "__module__", "").startswith("plyzero.")
