"""The catalog of games: finds a game by its name, or names one that is given by its class.

```
connect-four                  an installed game: entry-point group plyzero.games
my_module:MyGame              a class of your own, found from the current directory
openspiel:hex                 a game of another toolkit: entry-point group plyzero.game_sources
openspiel:hex(board_size=7)   any of these with parameters of its class
```
"""

from __future__ import annotations

import ast
import difflib
import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Final

from plyzero.errors import UserError, plain, shown
from plyzero.extensions import find_extensions, load_extension
from plyzero.rules.chance import awaiting_setup, without_setup
from plyzero.rules.declarations import check_declarations
from plyzero.rules.game import Game
from plyzero.rules.user_errors import with_location
from plyzero.rules.user_modules import (
    MAIN,
    NOTEBOOK,
    create,
    import_module,
    module_of_class,
    module_of_notebook,
    returning,
)

ENTRY_POINT_GROUP: Final = "plyzero.games"
"""The entry-point group under which packages, plyzero's own included, install games: name -> class."""

SOURCES: Final = "plyzero.game_sources"
"""The entry-point group of games of other toolkits: the prefix of their names -> a GameSource."""

NAME: Final = re.compile(r"\s*([\w-]+|(?:\w+:)?[\w.]*\w:\w+)\s*(?:\(.*\))?\s*")
"""Pattern of the name of a game: NAME, MODULE:CLASS or PREFIX:MODULE:CLASS, with or without parameters."""

UNQUOTED: Final = re.compile(r"(?<==)(?!(?:[-+.\d]+(?:e[-+]?\d+)?|True|False|None) *[,)])[^\s,()'\"=\[{][^\s,()'\"=]*")
"""Pattern of a value of a parameter, as OpenSpiel writes it, or `module:function`, that Python does not read."""


@dataclass(frozen=True)
class GameSource:
    """Games of another toolkit.

    toolkit:        its name for people, such as `OpenSpiel`.
    example:        a game of it with parameters, without the prefix: `hex(board_size=7)`.
    game_class:     returns the class of a game by its name, without the prefix and the parameters. Raises UserError if
                    there is no such game, if plyzero cannot play it, or if the toolkit is not installed.
    playable_games: returns the parameters, with their defaults, of every game that plyzero can play, by its name as
                    above; nothing if the toolkit has no list of games. Raises UserError if it is not installed.
    """

    toolkit: str
    example: str
    game_class: Callable[[str], type[Game]]
    playable_games: Callable[[], Mapping[str, Mapping[str, object]]]


@dataclass(frozen=True)
class GameSpec:
    """A game that was found by name.

    name:  the canonical name, with the parameters that differ from their defaults: `othello(size=6)`.
    start: the initial position, which awaits a set-up in a game with set-ups, or another one to begin with.
    text:  of that other one; "" if it is the initial position.
    """

    name: str
    start: Game
    text: str = ""

    @property
    def identity(self) -> str:
        """Name and version of the rules, such as `othello(size=6) v1`. Recorded games and models carry it."""
        return f"{self.name} v{self.start.version}"

    @property
    def is_included(self) -> bool:
        """Whether the rules are plyzero's own, and not a person's or those of another toolkit."""
        return ":" not in self.name

    def is_size_of(self, identity: str) -> bool:
        """Whether the game with that identity is this one but for its parameters."""
        (name, _, version), (own, _, own_version) = (each.rpartition(" ") for each in (identity, self.identity))
        return (name.partition("(")[0], version) == (own.partition("(")[0], own_version)

    def starting_at(self, text: object) -> GameSpec:
        """Return this game with the position of `text` to begin with; "" is the initial one. Raises ValueError."""
        if text == self.text:
            return self
        if self.text or not isinstance(text, str):
            raise ValueError(f"the game begins at another position, {shown(text)}")
        start = without_setup(self.start).from_text(text)
        if start.outcome() is not None:
            raise ValueError("the game is over in this position, so no move is possible")
        return replace(self, start=start, text=text)

    def set_up(self, text: str, where: str) -> GameSpec:
        """Return `starting_at(text)`. Raises UserError, with `where` the text is from, if there is no such position."""
        try:
            return self.starting_at(text)
        except (Exception, SystemExit) as error:
            why = str(error) if isinstance(error, ValueError) else with_location(error)  # from_text() fails
            raise UserError(f"cannot begin at the position in {where}: {plain(why, 300)}") from error

    def named_as(self, name: str) -> GameSpec:
        """Return this game under another `name` if only the module differs, and this class is one of a notebook."""
        module, _, rest = self.name.partition(":")
        return replace(self, name=name) if module == MAIN and name.partition(":")[2] == rest else self

    def parameter(self, name: str) -> object:
        """Return the value of a parameter of the game, None if it has none of this name."""
        known = inspect.signature(type(self.start)).parameters.get(name)
        return parse_parameters(self.name).get(name, known.default) if known else None


@returning()
def load_game(game: str | type[Game]) -> GameSpec:
    """Return a game by its class, or by its name: `othello(size=6)`, `my_module:MyGame`, `openspiel:hex(board_size=7)`.

    Raises UserError with the closest names if there is no such game, and with the reason if its class is unusable.
    """
    text = game if isinstance(game, str) else _name_of(game)
    match = NAME.fullmatch(text)
    target = match[1] if match else ""
    prefix, colon, _ = target.partition(":")
    source = find_source(prefix) if colon else None
    if not match or (target.count(":") > 1 and not source):
        expected = "expected a game such as connect-four, othello(size=6) or my_module:MyGame"
        raise UserError(f"{expected}, got {shown(text)}{_offer(text)}")
    cls = _find_class(target, source) if isinstance(game, str) else _usable(target, game)
    parameters = parse_parameters(text, unquoted=source is not None)
    known = inspect.signature(cls).parameters
    for key in parameters:
        if key not in known:
            raise UserError(f"{target} has no parameter {key!r}; it has: {', '.join(known) or 'none'}")
    start = awaiting_setup(create(text, cls, parameters))
    try:
        check_declarations(target, start)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot create {text}: {with_location(error)}") from error
    changed = {key: value for key, value in parameters.items() if value != known[key].default}
    suffix = f"({', '.join(f'{key}={value!r}' for key, value in sorted(changed.items()))})" if changed else ""
    return GameSpec(target + suffix, start)


def installed_games() -> dict[str, str]:
    """Return a one-line description of every installed game, by name and in the order of the names."""
    found = find_extensions(ENTRY_POINT_GROUP)
    return {name: (inspect.getdoc(entry.load()) or "").partition("\n")[0] for name, entry in found.items()}


def game_prefixes() -> list[str]:
    """Return the prefixes of all installed sources of games, such as `openspiel`."""
    return list(find_extensions(SOURCES))


def find_source(prefix: str) -> GameSource | None:
    """Return the source of the games with a prefix; None if none is installed.

    Raises UserError if it cannot be imported.
    """
    entry = find_extensions(SOURCES).get(prefix)
    if entry is None:
        return None
    source: GameSource = load_extension(entry, f"a game {prefix}:NAME")
    return source


def _find_class(target: str, source: GameSource | None) -> type[Game]:
    """Return the class of the game `target`, which is one of `source` if there is one."""
    module_name, colon, class_name = target.partition(":")
    if source:
        return source.game_class(class_name)
    if colon:
        return _usable(target, _class_in_module(target, module_name, class_name))
    return _usable(target, _installed_class(target))


def _class_in_module(target: str, module_name: str, class_name: str) -> object:
    if module_name.endswith(".py"):
        raise UserError(f"expected MODULE:CLASS, without .py, got {shown(target)}{_offer(target)}")
    is_of_notebook = module_name == MAIN and NOTEBOOK in os.environ
    module = module_of_notebook() if is_of_notebook else import_module(module_name)
    if not hasattr(module, class_name):
        games = _games_in(module)
        hint = f"; its games: {', '.join(games)}" if games else ""
        raise UserError(f"module {module_name!r} has no class {class_name!r}{hint}")
    found: object = getattr(module, class_name)
    return found


def _installed_class(name: str) -> object:
    entries = find_extensions(ENTRY_POINT_GROUP)
    if name not in entries:
        closest = difflib.get_close_matches(name, entries, n=3, cutoff=0.4) or sorted(entries)
        hint = f"; the closest names: {', '.join(closest)}. For your own game also name the class: my_module:MyGame"
        raise UserError(f"{name!r} is not an installed game{_offer(name) or hint}")
    try:
        return entries[name].load()
    except ImportError as error:
        raise UserError(f"cannot import {name}: {with_location(error)}") from error


def _usable(target: str, cls: object) -> type[Game]:
    """Return `cls`. Raises UserError if it is not the class of a game, or lacks something that every game has."""
    if not (inspect.isclass(cls) and issubclass(cls, Game)):
        raise UserError(f"{target} is not a subclass of plyzero.Game")
    if inspect.isabstract(cls):
        raise UserError(f"{target} does not define {', '.join(sorted(cls.__abstractmethods__))}")
    found: type[Game] = cls
    return found


def _name_of(cls: object) -> str:
    """Return the name of a game that is given by its class; its module is `__main__` if it was made in a notebook."""
    if not inspect.isclass(cls):
        raise UserError(f"expected a game by its name or its class, got {shown(cls)}")
    name = f"{module_of_class(cls)}:{cls.__name__}"
    installed = find_extensions(ENTRY_POINT_GROUP)
    return next((entry.name for entry in installed.values() if entry.value == name), name)


def _games_in(module: ModuleType) -> list[str]:
    classes = [each for each in vars(module).values() if inspect.isclass(each) and issubclass(each, Game)]
    return [each.__name__ for each in classes if each.__module__ == module.__name__]


def _offer(text: str) -> str:
    """Return, as the end of a sentence, the games in a file that `text` names in another form; "" if there are none."""
    file, _, name = text.partition("(")[0].strip().partition(":")
    module = file.removesuffix(".py").removeprefix("./").replace("/", ".")
    if not re.fullmatch(r"\w+(\.\w+)*", module) or not Path(f"{module.replace('.', '/')}.py").is_file():
        return ""
    games = _games_in(import_module(module))
    named = [game for game in games if game == name]
    offered = [f"{module}:{game}" for game in named or games]
    return f"; did you mean {' or '.join(offered)}?" if offered else ""


def parse_parameters(text: str, *, unquoted: bool = False) -> dict[str, object]:
    """Return the parameters in a name such as `othello(size=6)`. Raises UserError if they have another form.

    unquoted: strings need no quotation marks, as OpenSpiel writes them, and `true` and `false` are truth values.
    """
    _, bracket, arguments = text.strip().partition("(")
    if unquoted:
        truth = {"true": "True", "false": "False"}
        arguments = UNQUOTED.sub(lambda match: truth.get(match[0]) or repr(match[0]), arguments)
    try:
        call = ast.parse(f"f({arguments}" if bracket else "f()", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError
        parameters = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        if len(parameters) < len(call.keywords):
            raise ValueError
        return parameters
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"expected parameters as in othello(size=6), got {shown(text)}") from error
