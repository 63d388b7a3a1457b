"""Start a game of one's own: `plyzero new` copies template/ and puts the name in."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path

from plyzero.errors import UserError
from plyzero.files import write_file

TEMPLATE = Path(__file__).parent / "template"
FILES = {"tic_tac_toe.py": "{module}.py", "test_game.py.txt": "test_{module}.py", "README.md": "README.md"}
"""Of the template, and what each is called in the project. Words in them are replaced by the project's own:"""


def make_project(parent: Path, name: str) -> Path:
    """Make a folder for the game `name` in `parent` and return it; raises UserError where there is one already."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise UserError(f"expected a name such as my-game, of letters, digits and hyphens, got {name!r}")
    module = re.sub(r"\W", "_", name).lower()
    if keyword.iskeyword(module) or importlib.util.find_spec(module):
        raise UserError(f"{name!r} would be the module {module}, which Python finds already; choose another name")
    root = parent / name
    words = {"TicTacToe": _class_name(module), "my_module": module, "game_name": name}
    try:
        root.mkdir()
    except FileExistsError as error:
        raise UserError(f"{root} is there already and stays as it is; choose another name") from error
    for source, target in FILES.items():
        text = (TEMPLATE / source).read_text()
        for word, own in words.items():
            text = text.replace(word, own)
        write_file(root / target.format(module=module), text.encode())
    return root


def _class_name(module: str) -> str:
    return "".join(part.capitalize() for part in module.split("_"))
