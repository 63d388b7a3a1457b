"""Whole trees, written down: any change in what the search does shows as a difference a person can read.

`pytest --update-golden` rewrites tests/search/golden; look at the difference before you keep it.
"""

import json
import re
from pathlib import Path

import pytest

from plyzero.games.connect_four import ConnectFour
from plyzero.games.tic_tac_toe import TicTacToe
from tests.helpers import toys
from tests.helpers.searches import KINDS, rounded, searched, tree_of

GOLDEN = Path(__file__).parent / "golden"
SIMULATIONS = 48
POSITIONS = {
    "tic-tac-toe": (TicTacToe(), ["", "b2 a1 c3"]),
    "connect-four": (ConnectFour(), ["", "4 4 3 5 2"]),
}


def trees(start, moves):
    """Return, for both kinds of search, the tree that grows under an evaluator with arbitrary but fixed opinions."""
    position = toys.after(start, moves)
    found = {"position": str(position).splitlines(), "moves": moves, "simulations": SIMULATIONS}
    for kind in KINDS:
        slots = searched(position, toys.Hashed(start.num_actions), SIMULATIONS, kind)
        root = slots.result(0)
        names = [start.action_name(int(action)) for action in root.actions]
        found[f"{kind}: value"] = rounded(root.value)
        found[f"{kind}: best action"] = start.action_name(root.best_action())
        found[f"{kind}: policy"] = dict(zip(names, map(rounded, root.policy), strict=True))
        found[f"{kind}: visits and value after"] = dict(visits_and_values(tree_of(slots, start)))
    return found


def visits_and_values(tree, moves=""):
    """Yield, for each line of play that was visited, the visits and q of its last move, and what is proven of it."""
    for name, edge in tree["moves"].items():
        line = f"{moves} {name}".strip()
        yield line, [edge["visits"], edge["q"], *([edge["proven"]] if "proven" in edge else [])]
        if "then" in edge:
            yield from visits_and_values(edge["then"], line)


def as_text(found):
    """Return JSON with each line of play on one line."""
    indented = json.dumps(found, indent=1)
    return re.sub(r"\[\s+(\d[^]]*?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", indented) + "\n"


def flat(value, path=""):
    """Return what nested dicts and lists hold by its path, so that a failing comparison names the place."""
    if not isinstance(value, dict | list):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {place: each for key, below in items for place, each in flat(below, f"{path}/{key}").items()}


@pytest.mark.parametrize("file", [f"{name}-{i}" for name, (_, each) in POSITIONS.items() for i in range(len(each))])
def test_the_search_grows_the_trees_that_are_written_down(file, update_golden):
    name, _, number = file.rpartition("-")
    start, moves = POSITIONS[name]
    found = trees(start, moves[int(number)])
    golden = GOLDEN / f"{file}.json"
    if update_golden:
        golden.write_text(as_text(found), encoding="utf-8")
    written = json.loads(golden.read_text(encoding="utf-8"))
    found, written = flat(found), flat(written)
    assert found.keys() == written.keys()
    for place, value in written.items():
        # The last digit may differ from machine to machine: they do not all round exp and log alike.
        assert found[place] == (pytest.approx(value, abs=5e-6) if isinstance(value, float) else value), place
