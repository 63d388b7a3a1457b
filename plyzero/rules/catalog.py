"""The catalog of games: finds a game by name, be it installed, a class of your own, or a game of OpenSpiel."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import math
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import numpy as np

from plyzero.errors import UserError, install_command, plain, shown
from plyzero.rules.chance import first_decision
from plyzero.rules.game import Game
from plyzero.rules.symmetry import Symmetry

ENTRY_POINT_GROUP = "plyzero.games"
"""The entry-point group under which packages, plyzero's own included, install games."""

MAIN: Final = "__main__"
"""The module of classes that were made in a notebook, or in the script that runs."""

NOTEBOOK: Final = "NOTEBOOK_OF_PLYZERO"
"""The environment variable by which a notebook gives its processes the classes that were made in it, in a file."""

OPENSPIEL: Final = "openspiel:"
"""Prefix of the names of OpenSpiel's games."""

ALPHA_ZERO_GENERAL: Final = "azg:"
"""Prefix of the names of games that were written for alpha-zero-general."""

PACKAGE: Final = Path(__file__).parents[1]
TEMPLATE: Final = str(PACKAGE / "check" / "template")
"""The template of a user's own game, whose files count as the user's."""

TOOLKIT: Final = os.path.join(PACKAGE, "")
GAMES: Final = os.path.join(PACKAGE, "games", "")
LIBRARIES: Final = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen",
)
"""Prefixes of the paths of the toolkit's files, of the rules among them, and of those of Python and of packages."""

UNQUOTED: Final = re.compile(r"(?<==)(?!(?:[-+.\d]+(?:e[-+]?\d+)?|True|False|None) *[,)])[^\s,()'\"=\[{][^\s,()'\"=]*")
"""Pattern of a value of a parameter, as OpenSpiel writes it, or `module:function`, that Python does not read."""

T = TypeVar("T")


@dataclass(frozen=True)
class GameSpec:
    """A game that was found by name.

    name:  the canonical name, with the parameters that differ from their defaults: `othello(size=6)`.
    start: the initial position, or another one to begin with.
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
        start = self.start.from_text(text)
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


@contextmanager
def _returning() -> Iterator[None]:
    """Return to the current directory, which a user's code may leave, so that names of files mean what they meant."""
    before = os.getcwd()
    try:
        yield
    finally:
        os.chdir(before)


@_returning()
def load_game(game: str | type[Game]) -> GameSpec:
    """Return a game by its class, or by its name: `othello(size=6)`, `my_module:MyGame`, `openspiel:hex(board_size=7)`.

    Raises UserError with the closest names if there is no such game, and with the reason if its class is unusable.
    """
    text = game if isinstance(game, str) else _name_of(game)
    match = re.fullmatch(r"\s*([\w-]+|(?:azg:)?[\w.]*\w:\w+)\s*(?:\(.*\))?\s*", text)
    if not match:
        expected = "expected a game such as connect-four, othello(size=6) or my_module:MyGame"
        raise UserError(f"{expected}, got {shown(text)}{_offer(text)}")
    target = match[1]
    cls = _import_class(target) if isinstance(game, str) else _usable(target, game)
    parameters = parse_parameters(text, unquoted=target.startswith((OPENSPIEL, ALPHA_ZERO_GENERAL)))
    known = inspect.signature(cls).parameters
    for key in parameters:
        if key not in known:
            raise UserError(f"{target} has no parameter {key!r}; it has: {', '.join(known) or 'none'}")
    start = create(text, cls, parameters)
    try:
        _check_declarations(target, start)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot create {text}: {with_location(error)}") from error
    changed = {key: value for key, value in parameters.items() if value != known[key].default}
    suffix = f"({', '.join(f'{key}={value!r}' for key, value in sorted(changed.items()))})" if changed else ""
    return GameSpec(target + suffix, start)


@_returning()
def create(text: str, cls: Callable[..., T], parameters: Mapping[str, object]) -> T:
    """Return an object of a user's class, which `text` names. Raises UserError with the error of its constructor."""
    try:
        return cls(**parameters)
    except (UserError, ValueError) as error:  # its own message, about a parameter or a file
        raise UserError(f"cannot create {text}: {error}") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot create {text}: {with_location(error)}") from error


def installed_games() -> dict[str, str]:
    """Return a one-line description of every installed game, by name and in the order of the names."""
    entries = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name)
    return {entry.name: (inspect.getdoc(entry.load()) or "").partition("\n")[0] for entry in entries}


def import_module(name: str, form: str = "MODULE:CLASS, such as my_module:MyGame") -> ModuleType:
    """Return the module `name`, found from the current directory or installed; `form` is what a message expects.

    Raises UserError if there is none, if it raises an error, or if it lies in a run directory: the right to write to a
    volume must not include running code on the machines that use it.
    """
    if name.endswith(".py"):
        raise UserError(f"expected the name of a module, such as {name.removesuffix('.py')}, got {shown(name)}")
    _refuse_run_directory(name, Path())
    if "" not in sys.path:
        sys.path.insert(0, "")  # the current directory first, so that it wins over installed modules
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # reported by the import
        spec = None
    for place in (spec and spec.has_location and spec.origin, *((spec and spec.submodule_search_locations) or ())):
        if place:
            _refuse_run_directory(name, Path(place).parent)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == top:
            raise UserError(f"there is no module {name!r} in this directory; the form is {form}") from error
        raise UserError(f"cannot import {name}: {with_location(error)}") from error


@_returning()
def load_object(text: str) -> Any:
    """Return the class or function named by `text`, such as `my_net:MyNet`, of a module that is found as games are.

    Raises UserError if the module cannot be imported or has no such name.
    """
    module_name, _, name = text.partition(":")
    module = sys.modules.get(module_name) or import_module(module_name, "MODULE:CLASS or MODULE:FUNCTION")
    if not hasattr(module, name):
        raise UserError(f"module {module_name!r} has no class or function {name!r}")
    return getattr(module, name)


def _refuse_run_directory(name: str, directory: Path) -> None:
    """Raise UserError if `directory` is in a run directory, directly or through a link."""
    for path in {directory.absolute(), directory.resolve()}:
        for parent in (path, *path.parents):
            if os.path.exists(parent / "run.toml"):
                raise UserError(
                    f"the module {name!r} is not imported, because {path} is in the run directory {parent}, and "
                    "others may write to a run: keep the rules in a directory of their own, and start plyzero there"
                )


def openspiel() -> ModuleType:
    """Return the module of OpenSpiel's games, which imports OpenSpiel. Raises UserError if that is not installed."""
    try:
        from plyzero.kits.adapters import openspiel
    except ImportError as error:
        raise UserError(f"OpenSpiel is missing ({error}): {install_command('openspiel')}") from error
    return openspiel


def _import_class(target: str) -> type[Game]:
    if target.startswith(OPENSPIEL):
        found: type[Game] = openspiel().game_class(target.removeprefix(OPENSPIEL))
        return found
    if target.startswith(ALPHA_ZERO_GENERAL):
        from plyzero.kits.adapters import alpha_zero_general

        return alpha_zero_general.game_class(target)
    if ":" in target:
        module_name, _, class_name = target.partition(":")
        if module_name.endswith(".py"):
            raise UserError(f"expected MODULE:CLASS, without .py, got {shown(target)}{_offer(target)}")
        module = _notebook() if module_name == MAIN and NOTEBOOK in os.environ else import_module(module_name)
        if not hasattr(module, class_name):
            games = _games_in(module)
            hint = f"; its games: {', '.join(games)}" if games else ""
            raise UserError(f"module {module_name!r} has no class {class_name!r}{hint}")
        cls: object = getattr(module, class_name)
    else:
        entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
        if target not in entries:
            closest = difflib.get_close_matches(target, entries, n=3, cutoff=0.4) or sorted(entries)
            hint = f"; the closest names: {', '.join(closest)}. For your own game also name the class: my_module:MyGame"
            raise UserError(f"{target!r} is not an installed game{_offer(target) or hint}")
        try:
            cls = entries[target].load()
        except ImportError as error:
            raise UserError(f"cannot import {target}: {with_location(error)}") from error
    return _usable(target, cls)


def _notebook() -> ModuleType:
    """Return the classes of the notebook that has started this process."""
    import cloudpickle

    module = ModuleType(MAIN)
    vars(module).update(cloudpickle.loads(Path(os.environ[NOTEBOOK]).read_bytes()))
    return module


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
    module = cls.__module__
    if module == MAIN:
        script = sys.modules[MAIN]
        spec, file = getattr(script, "__spec__", None), getattr(script, "__file__", None)
        stem = Path(file or "").stem
        module = spec.name if spec else stem if stem.isidentifier() else MAIN
    name = f"{module}:{cls.__name__}"
    return next((entry.name for entry in entry_points(group=ENTRY_POINT_GROUP) if entry.value == name), name)


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
    offered = [f"{module}:{game}" for game in games if name in ("", game)] or [f"{module}:{game}" for game in games]
    return f"; did you mean {' or '.join(offered)}?" if offered else ""


def _check_declarations(target: str, start: Game) -> None:
    """Raise UserError for mistakes in a class that would otherwise fail later, in a worker or in the trainer."""
    for name in ("num_actions", "observation_shape", "max_plies", "to_play"):
        if not hasattr(start, name):
            raise UserError(f"{target} does not define {name}")
    for name, least in (("num_actions", 1), ("max_plies", 1), ("num_chances", 0)):
        number = getattr(start, name)
        if not isinstance(number, int | np.integer) or not least <= number < 1 << 31:
            raise UserError(f"{target}.{name}: expected a number from {least} on, got {shown(number)}")
    declares_chances = hasattr(start, "State") or "num_chances" in vars(start)  # 0 if dice depend on a parameter
    if not start.num_chances and not declares_chances and type(start).chances is not Game.chances:
        raise UserError(f"{target} defines chances(), but num_chances is 0: give the number of different rolls")
    if start.to_play not in (0, 1):
        raise UserError(f"{target}.to_play: expected 0 or 1, got {shown(start.to_play)}")
    shape = start.observation_shape
    if (
        not isinstance(shape, Sequence)
        or len(shape) != 3
        or not all(isinstance(size, int) and size > 0 for size in shape)
    ):
        raise UserError(f"{target}.observation_shape: expected (planes, rows, columns), got {shown(shape)}")
    most = start.num_actions // (shape[1] * shape[2])
    if not isinstance(start.policy_planes, int) or not 0 <= start.policy_planes <= most:
        raise UserError(f"{target}.policy_planes: expected a number from 0 to {most}, got {shown(start.policy_planes)}")
    try:
        np.dtype(start.observation_dtype)
    except TypeError as error:
        raise UserError(
            f"{target}.observation_dtype is {start.observation_dtype!r}, which is not a NumPy type"
        ) from error
    if not hasattr(start, "State"):  # the planes of a compiled game always have the declared shape
        try:
            decision = first_decision(start)
        except (Exception, SystemExit) as error:
            raise UserError(
                f"cannot roll the dice at the start of {target}: {with_location(error)}; chances() has to return () "
                "where a player moves"
            ) from error
        observation = decision.observe()
        if observation is None:
            raise UserError(f"{target}.observe() returns None; is a return missing?")
        observed = np.shape(observation)
        if observed != tuple(shape):
            raise UserError(f"{target}.observe() returns shape {observed}, but observation_shape is {tuple(shape)}")
    symmetries = start.symmetries()
    if isinstance(symmetries, Symmetry):
        raise UserError(f"{target}.symmetries() returns one Symmetry, expected a list of them: put it in [ ]")
    for planes, actions in symmetries:
        found, expected = (np.size(planes), np.size(actions)), (math.prod(shape), start.num_actions)
        if found != expected:
            raise UserError(
                f"{target}.symmetries() permutes {found[0]} numbers of the observation and {found[1]} actions, but the "
                f"game has {expected[0]} and {expected[1]}: symmetries(), observation_shape or num_actions is wrong. "
                "symmetries() is optional"
            )


def failed_rules(position: Game, why: str) -> str:
    """Return the sentence that reports a failure of the rules of `position`, with the command that tests them."""
    name = f"{type(position).__module__}:{type(position).__qualname__}"
    return f"{name} cannot be played: {why}; plyzero check {name} tests the rules"


def check_not_over(position: Game) -> None:
    """Raise UserError if the game is over in `position`, where no player has moved, or if the rules fail there."""
    try:
        over = position.outcome() is not None
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(failed_rules(position, with_location(error))) from error
    if over:
        raise UserError(failed_rules(position, "the game is over before any player has moved"))


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the calls in an error's traceback that are in a user's code: not in the toolkit, Python or a library."""
    return [each for each in traceback.extract_tb(error.__traceback__) if is_own(each.filename)]


def is_own(file: str) -> bool:
    """Return whether a file of a traceback is a user's. Packages may be in another environment than this one."""
    is_installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    return file.startswith(TEMPLATE) or not (is_installed or is_toolkit(file) or file.startswith(LIBRARIES))


def is_toolkit(file: str) -> bool:
    """Return whether a file of a traceback is the toolkit's own, and not the rules of an included game."""
    return file.startswith(TOOLKIT) and not file.startswith(GAMES)


def with_location(error: BaseException) -> str:
    """Return the type and message of an error in a user's code as one line, with the file and line that raised it.

    A line of the toolkit is never named: it would tell a user nothing.
    """
    calls = traceback.extract_tb(error.__traceback__)[::-1]  # the innermost first
    inner = takewhile(lambda call: not is_toolkit(call.filename), calls)
    at = next(iter([*own_frames(error)[::-1], *inner]), None)
    where = f" ({Path(at.filename).name}, line {at.lineno})" if at and not isinstance(error, SyntaxError) else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


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
