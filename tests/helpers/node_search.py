"""The search of the page, plyzero/kits/browser/page/search.js, run by Node."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from plyzero.kits.browser.wasm import compile_rules
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

PAGE = Path(__file__).parents[2] / "plyzero" / "kits" / "browser" / "page"
DRIVER = Path(__file__).with_suffix(".mjs")
SECONDS = 600

UNIFORM = {"kind": "uniform"}
HASHED = {"kind": "hashed"}
"""Evaluators that agree with plyzero.search.evaluators.Uniform and tests.helpers.toys.Hashed."""


def network(model: Path, runtime: Path) -> dict[str, str]:
    """Return the evaluator of an ONNX file; `runtime` is the folder dist of onnxruntime-web."""
    return {"kind": "network", "model": str(model.absolute()), "runtime": runtime.absolute().as_uri()}


def find_node() -> str | None:
    """Return the program node; None if there is none."""
    return shutil.which("node")


def search_in_node(
    game: GameSpec, searches: Sequence[Mapping[str, Any]], evaluator: Mapping[str, str]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the result of each search, as search.js describes it, and the time and evaluations that all took together.

    searches: `state`, a position, and the options of search.js: simulations, leaves, cPuct ...
    Raises RuntimeError with what Node has written if it fails.
    """
    asked = {
        "game": description(game.start),
        "rules": base64.b64encode(rules_of(game)).decode(),
        "evaluator": evaluator,
        "searches": [{**each, "state": each["state"].tolist()} for each in searches],
    }
    answer = run_node(DRIVER, asked)
    return answer["results"], answer["usage"]


def run_node(driver: Path, asked: Mapping[str, Any], files: Mapping[str, bytes] = MappingProxyType({})) -> Any:
    """Return the JSON that `driver` writes; it gets `asked` and `page`, a folder with the page and other `files`.

    Raises RuntimeError with what Node has written if it fails.
    """
    node = find_node()
    assert node, "expected node, which is not installed"
    with TemporaryDirectory() as folder:
        page = Path(folder, "page")
        shutil.copytree(PAGE, page)
        for name, content in {"package.json": b'{"type": "module"}', **files}.items():
            (page / name).parent.mkdir(parents=True, exist_ok=True)
            (page / name).write_bytes(content)
        text = json.dumps({"page": page.as_uri(), **asked})
        done = subprocess.run([node, driver], input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def description(start: Game) -> dict[str, Any]:
    """Return what wasm.js needs to know of a compiled game."""
    assert isinstance(start, CompiledGame)
    assert start.State.fields is not None
    return {
        "stateBytes": start.State.itemsize,
        "toPlay": start.State.fields["to_play"][1],
        "start": start.state.tolist(),
        "actions": start.num_actions,
        "observation": start.observation_shape,
        "numChances": start.num_chances,
        "maxScore": start.max_score,
    }


def rules_of(game: GameSpec) -> bytes:
    """Return the rules of a game as WebAssembly, compiled once for all tests of a process."""
    return _compiled(game.name)


@cache
def _compiled(name: str) -> bytes:
    return compile_rules(load_game(name))
