"""Project generator: `plyzero new` copies template/ and fills in the name of the game."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path

from plyzero.errors import UserError
from plyzero.files import write_file
from plyzero.rules.catalog import GameSpec

TEMPLATE = Path(__file__).parent / "template"
"""The directory of the template."""

FILES = {"tic_tac_toe.py": "{module}.py", "test_game.py.txt": "test_{module}.py", "README.md": "README.md"}
"""The files of the template, with their names in the new project."""

REWRITTEN = {"rewritten.py.txt": "{module}.py", "test_rewritten.py.txt": "test_{module}.py"}
"""The files for a game that is to be rewritten, such as one of alpha-zero-general."""


def make_project(parent: Path, name: str, original: GameSpec | None = None) -> Path:
    """Create the directory `name` in `parent` with the rules, tests and README of a new game, and return it.

    original: a game to rewrite. The rules are then its numbers and empty methods, and the tests compare the two games.

    Raises UserError if the name is unusable as a Python module or the directory exists already.
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise UserError(
            "expected a name such as my-game that begins with a letter and has only letters, digits and hyphens, "
            f"got {name!r}"
        )
    module = re.sub(r"\W", "_", name).lower()
    if keyword.iskeyword(module) or importlib.util.find_spec(module):
        raise UserError(f"{name!r} would be the module {module}, which exists in Python already; choose another name")
    root = parent / name
    class_name = "".join(part.capitalize() for part in module.split("_"))
    replacements = {"TicTacToe": class_name, "my_module": module, "game_name": name}
    try:
        root.mkdir()
    except FileExistsError as error:
        raise UserError(f"{root} exists already and was not changed; choose another name") from error
    if original:
        start = original.start
        numbers = {"num_actions": start.num_actions, "observation_shape": start.observation_shape}
        numbers |= {"max_plies": start.max_plies, "policy_planes": start.policy_planes}
        lines = "\n    ".join(f"{key} = {value}" for key, value in numbers.items())
        replacements |= {"original_name": original.name, "NUMBERS": lines}
    for source, target in (REWRITTEN if original else FILES).items():
        text = (TEMPLATE / source).read_text()
        for placeholder, replacement in replacements.items():
            text = text.replace(placeholder, replacement)
        write_file(root / target.format(module=module), text.encode())
    return root
