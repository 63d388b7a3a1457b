"""The task that makes a page with links to all results of an experiment, and lists the missing ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks.results import CARD, read_json, runs_of, write_text

SHOWN: Final = (".png", ".gif")
"""Endings of files that are shown as pictures."""

STYLE: Final = """
body { font-family: system-ui, sans-serif; line-height: 1.5; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
img { max-width: 100%; display: block }
section { border-top: 1px solid #ccc; margin-top: 2rem }
td { padding-right: 1rem; overflow-wrap: anywhere }
.missing { color: #a00 }
"""


class Results(NamedTuple):
    """Files of a task that belong together.

    name:     their name on the page.
    task:     the directory of the task.
    patterns: patterns of their names in it.
    """

    name: str
    task: str
    patterns: tuple[str, ...]


OF_RUN: Final = (
    Results("bot and its card", "train", ("agent.onnx", "card.json")),
    Results("training curves", "train", ("train.csv",)),
    Results("plot of the training", "train-plots", ("train.png",)),
    Results("results of matches", "evaluate", ("eval.csv",)),
    Results("plot of the matches", "eval-plots", ("eval.png",)),
    Results("films", "examples", ("game-*.gif",)),
    Results("records", "examples", ("games.jsonl", "game-*.txt")),
)
"""Possible results of a run."""

OF_ALL: Final = (
    Results("averages over runs", "average", ("train.csv", "eval.csv", "missing.json")),
    Results("plots of the averages", "average-plots", ("train.png", "eval.png")),
    Results("ladder", "ladder", ("ratings.png", "ratings.csv", "ladder.json", "games.jsonl")),
    Results("effects", "effects", ("effects.md", "effects.csv")),
)
"""Possible results of an experiment."""


def index(
    inputs: Path, out: Path, *, report: Callable[[str], None], runs: Sequence[str], title: str, first: int = 0
) -> None:
    """Write the page `out` with relative links to the results in `inputs`; it loads nothing from elsewhere.

    Missing results of the tasks in experiment.json are listed; without this file, all possible results that are
    missing.

    runs:  directories of runs in `inputs`.
    title: title of the page.
    first: number of these runs that are shown; 0 = all.
    """
    manifest = _read(inputs / "experiment.json")
    planned = {str(task.get("out")) for task in manifest.get("tasks", ()) if isinstance(task, dict)}
    page = _Page(inputs, out.parent, planned or None)
    sections = [_parameters(manifest), _section("All runs", page.collections(Path(), OF_ALL))]
    for run in runs_of(runs, first):
        report(f"adding {run}")
        sections.append(_section(_heading(run, inputs), page.collections(Path(run), OF_RUN)))
    if logs := sorted((inputs / "logs").rglob("*.log")):
        sections.append(_section("Logs", [page.links(logs, inputs / "logs")]))
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
    )
    write_text(out, f"{head}{''.join(sections)}</body>\n</html>\n")


class _Page:
    """Finds the files of an experiment, and links them from the directory of the page.

    planned: outputs of the tasks of the experiment; None if they are not known.
    """

    def __init__(self, root: Path, directory: Path, planned: set[str] | None) -> None:
        self._root = root
        self._directory = directory
        self._planned = planned

    def collections(self, place: Path, known: Sequence[Results]) -> Iterator[str]:
        """Yield a paragraph for each of the results in `place`, a directory in the experiment."""
        for results in known:
            folder = place / results.task
            files: list[Path] = []
            for pattern in results.patterns:
                files += sorted((self._root / folder).glob(pattern))
            if files:
                others = [path for path in files if path.suffix not in SHOWN]
                pictures = [self._picture(path) for path in files if path.suffix in SHOWN]
                content = self.links(others, self._root / folder) + "".join(pictures)
                yield f"<h3>{escape(results.name)}</h3>\n{content}"
            elif self._planned is None or folder.as_posix() in self._planned:
                yield f'<p class="missing">missing: {escape(results.name)}</p>\n'

    def links(self, paths: Sequence[Path], folder: Path) -> str:
        """Return a paragraph with links to files, named by their paths in `folder`; "" without a file."""
        links = (f'<a href="{self._address(path)}">{escape(path.relative_to(folder).as_posix())}</a>' for path in paths)
        return f"<p>{', '.join(links)}</p>\n" if paths else ""

    def _picture(self, path: Path) -> str:
        address = self._address(path)
        return f'<p><a href="{address}"><img src="{address}" alt="{escape(path.name)}"></a></p>\n'

    def _address(self, path: Path) -> str:
        return escape(quote(Path(os.path.relpath(path, self._directory)).as_posix()))


def _section(heading: str, parts: Iterator[str] | Sequence[str]) -> str:
    return f"<section>\n<h2>{escape(heading)}</h2>\n{''.join(parts)}</section>\n"


def _heading(run: str, inputs: Path) -> str:
    card = _read(inputs / run / CARD)
    parts = [str(card["group"])] if card.get("group") else []
    parts += [f"{name} {card[name]}" for name in ("step", "score") if name in card]
    return ": ".join([run, ", ".join(parts)]) if parts else run


def _parameters(manifest: Mapping[str, object]) -> str:
    """Return the parameters of the experiment as a table; "" if they are not known."""
    parameters = manifest.get("parameters")
    if not isinstance(parameters, dict) or not parameters:
        return ""
    rows = []
    for name, value in parameters.items():
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows.append(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>\n")
    return _section("Parameters", [f"<table>\n{''.join(rows)}</table>\n"])


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; {} if it cannot be read, because a page is made in any case."""
    with suppress(UserError):
        return read_json(path)
    return {}
