"""Modules of a user: imported from the current directory, but never from a run directory, which others may write to.

An error in a user's code becomes one sentence with the user's file and line. Their code may also change the current
directory, which is restored afterwards.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from plyzero.errors import UserError, shown
from plyzero.rules.user_errors import with_location

MAIN: Final = "__main__"
"""The module of classes that were made in a notebook, or in the script that runs."""

NOTEBOOK: Final = "NOTEBOOK_OF_PLYZERO"
"""The environment variable with the path of a file in which a notebook gives its processes the classes made in it."""

MOVED: Final = ("games", "selfplay", "trainer")
"""Packages that were installed beside plyzero and are now in it. Runs have recorded names of their modules."""

T = TypeVar("T")


@contextmanager
def returning() -> Iterator[None]:
    """Return to the current directory, which a user's code may leave, so that names of files mean what they meant."""
    before = os.getcwd()
    try:
        yield
    finally:
        os.chdir(before)


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
    places = _places_of(name.partition(".")[0])
    if places is None and name.partition(".")[0] in MOVED:
        name = f"plyzero.{name}"
    for place in places or ():
        _refuse_run_directory(name, place)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]:
            raise UserError(f"there is no module {name!r} in this directory; the form is {form}") from error
        raise UserError(f"cannot import {name}: {with_location(error)}") from error


def _places_of(top: str) -> list[Path] | None:
    """Return the folders from which the module or package `top` would be imported; None if there is no such module."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # reported by the import
        return []
    if spec is None:
        return None
    files = list(spec.submodule_search_locations or ())
    if spec.has_location and spec.origin:
        files.append(spec.origin)
    return [Path(file).parent for file in files if file]


def _refuse_run_directory(name: str, directory: Path) -> None:
    """Raise UserError if `directory` is in a run directory, directly or through a link."""
    for path in {directory.absolute(), directory.resolve()}:
        for parent in (path, *path.parents):
            if os.path.exists(parent / "run.toml"):
                raise UserError(
                    f"the module {name!r} is not imported, because {path} is in the run directory {parent}, and "
                    "others may write to a run: keep the rules in a directory of their own, and start plyzero there"
                )


@returning()
def load_object(text: str) -> Any:
    """Return the class or function named by `text`, such as `my_net:MyNet`, of a module that is found as games are.

    Raises UserError if the module cannot be imported or has no such name.
    """
    module_name, _, name = text.partition(":")
    module = sys.modules.get(module_name) or import_module(module_name, "MODULE:CLASS or MODULE:FUNCTION")
    if not hasattr(module, name):
        raise UserError(f"module {module_name!r} has no class or function {name!r}")
    return getattr(module, name)


@returning()
def create(text: str, cls: Callable[..., T], parameters: Mapping[str, object]) -> T:
    """Return an object of a user's class, which `text` names. Raises UserError with the error of its constructor."""
    try:
        return cls(**parameters)
    except (UserError, ValueError) as error:  # its own message, about a parameter or a file
        raise UserError(f"cannot create {text}: {error}") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot create {text}: {with_location(error)}") from error


def module_of_class(cls: type) -> str:
    """Return the name by which other processes import the module of `cls`: MAIN if it was made in a notebook."""
    if cls.__module__ != MAIN:
        return cls.__module__
    script = sys.modules[MAIN]
    spec = getattr(script, "__spec__", None)
    if spec:  # python -m
        return str(spec.name)
    stem = Path(getattr(script, "__file__", None) or "").stem
    return stem if stem.isidentifier() else MAIN


def module_of_notebook() -> ModuleType:
    """Return a module of the classes that the notebook which has started this process was asked to give it."""
    import cloudpickle

    module = ModuleType(MAIN)
    vars(module).update(cloudpickle.loads(Path(os.environ[NOTEBOOK]).read_bytes()))
    return module
