"""Project generator: `plyzero new` copies template/ and fills in the name of the game."""

from __future__ import annotations

import importlib.util
import json
import keyword
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from plyzero.check.compiled_skeleton import Skeleton
from plyzero.check.ends import ends_of, random_games
from plyzero.check.sampling import POSITIONS
from plyzero.errors import UserError
from plyzero.files import write_file
from plyzero.rules.catalog import GameSpec
from plyzero.rules.notation import action_names

TEMPLATE = Path(__file__).parent / "template"
"""The directory of the template."""

FILES = {"tic_tac_toe.py": "{module}.py", "test_game.py.txt": "test_{module}.py", "README.md": "README.md"}
"""The files of the template, with their names in the new project."""

REWRITTEN = {"rewritten.py.txt": "{module}.py", "test_rewritten.py.txt": "test_{module}.py"}
"""The files for a game that is to be rewritten, such as one of alpha-zero-general."""

COMPILED = {"compiled.py.txt": "{module}.py", "test_compiled.py.txt": "test_{module}.py"}
"""The files for the compiled form of a plain game."""

MAX_KNOWN_MOVES: Final = 200  # moves and rolls of a game that becomes a test
MAX_WIDTH: Final = 100  # characters of their names in a line


def make_project(parent: Path, name: str, original: GameSpec | None = None) -> Path:
    """Create the directory `name` in `parent` with the rules, tests and README of a new game, and return it.

    original: a game to rewrite. The rules are then its numbers and empty methods, and the tests compare the two games.

    Raises UserError if the name is unusable as a Python module or the directory exists already.
    """
    if original is None:
        return _write(parent, name, FILES, {})
    start = original.start
    numbers = {"num_actions": start.num_actions, "observation_shape": start.observation_shape}
    numbers |= {"max_plies": start.max_plies, "policy_planes": start.policy_planes}
    numbers |= {name: number for name in ("num_chances", "setups") if (number := getattr(start, name))}
    lines = "\n    ".join(f"{key} = {value}" for key, value in numbers.items())
    texts = {"original_name": original.name, "NUMBERS": lines, "KNOWN_ENDS": known_ends(original)}
    return _write(parent, name, REWRITTEN, texts)


def make_compiled_project(parent: Path, name: str, original: GameSpec) -> tuple[Path, Skeleton]:
    """Create a directory with the compiled form of a plain game, begun, and return it with the parts of the rules.

    It is named as the module, so that commands find MODULE.MODULE:CLASS beside the original.

    Raises UserError as `make_project` does, and if the game has no compiled form.
    """
    module, class_name = names_of(name)
    skeleton = Skeleton(original, class_name)
    rules = ", ".join(f'"{rule}"' for rule in ("start", *skeleton.rules))
    texts = {"RULENAMES": rules, "module_path": f"{module}.{module}", "original_name": original.name}
    texts["KNOWN_ENDS"] = known_ends(original)
    return _write(parent, module, COMPILED, texts | skeleton.texts), skeleton


def known_ends(game: GameSpec) -> str:
    """Return the shortest random game of each kind of end as source for a test: the names of its moves, its outcome."""
    cases = []
    for end in ends_of(random_games(game, POSITIONS)):
        outcome, actions = end.example.positions[-1].outcome(), end.example.moves
        if outcome is None or len(actions) > MAX_KNOWN_MOVES:
            continue
        names = " ".join(action_names(game.start, tuple(actions)))
        lines = textwrap.wrap(names, MAX_WIDTH, drop_whitespace=False, break_on_hyphens=False) or [""]
        moves = "\n            ".join(json.dumps(line, ensure_ascii=False) for line in lines)
        cases.append(f"        (  # {', '.join(end.how)}\n            {moves},\n            {outcome},\n        ),")
    return "\n".join(cases)


def names_of(name: str) -> tuple[str, str]:
    """Return the names of the module and the class of a new game. Raises UserError if `name` is unusable."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise UserError(
            "expected a name such as my-game that begins with a letter and has only letters, digits and hyphens, "
            f"got {name!r}"
        )
    module = re.sub(r"\W", "_", name).lower()
    found = None if keyword.iskeyword(module) else importlib.util.find_spec(module)
    if keyword.iskeyword(module) or (found and found.origin):  # a directory alone has none
        raise UserError(f"{name!r} would be the module {module}, which exists in Python already; choose another name")
    return module, "".join(part.capitalize() for part in module.split("_"))


def _write(parent: Path, name: str, files: Mapping[str, str], texts: Mapping[str, str]) -> Path:
    """Create the directory of a project from `files`, with `texts` in place of the placeholders that are its keys."""
    module, class_name = names_of(name)
    root = parent / name
    try:
        root.mkdir()
    except FileExistsError as error:
        raise UserError(f"{root} exists already and was not changed; choose another name") from error
    replacements = {"TicTacToe": class_name, "my_module": module, "game_name": name, **texts}
    placeholder = re.compile("|".join(sorted(map(re.escape, replacements), key=len, reverse=True)))
    for source, target in files.items():
        text = placeholder.sub(lambda match: replacements[match[0]], (TEMPLATE / source).read_text())
        write_file(root / target.format(module=module), text.encode())
    return root
