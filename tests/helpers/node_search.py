"""The search of the page, plyzero/kits/browser/page/search.js, run by Node."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from plyzero.rules.compiled_game import CompiledGame

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
    start: CompiledGame, searches: Sequence[Mapping[str, Any]], evaluator: Mapping[str, str]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the result of each search, as search.js describes it, and the time and evaluations that all took together.

    searches: `state`, a position, and the options of search.js: simulations, leaves, cPuct ...
    Raises RuntimeError with what Node has written if it fails.
    """
    asked = {
        "page": PAGE.as_uri(),
        "game": description(start),
        "rules": base64.b64encode(rules_of(start)).decode(),
        "evaluator": evaluator,
        "searches": [{**each, "state": each["state"].tolist()} for each in searches],
    }
    node = find_node()
    assert node
    done = subprocess.run([node, DRIVER], input=json.dumps(asked), capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer = json.loads(done.stdout)
    return answer["results"], answer["usage"]


def description(start: CompiledGame) -> dict[str, Any]:
    """Return what rules.js needs to know of a game."""
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


@cache
def rules_of(start: CompiledGame) -> bytes:
    """Return the rules of a game as WebAssembly."""
    from plyzero.kits.browser.wasm import compile_rules

    return compile_rules(start)
