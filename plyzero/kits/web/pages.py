"""Self-contained HTML files: the dashboard of a run, and a recorded game."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path, PurePosixPath
from typing import Final

from plyzero.kits.engines.game_record import Frame
from plyzero.rules.board_svg import board_css, svg_parts
from plyzero.run.directory import RunDirectory

PAGE: Final = Path(__file__).parent / "page"
"""The directory of the files that a browser loads."""

IMPORT: Final = re.compile(r'^import ?(\w+)? ?(?:\{(.*?)\})? ?from ?"\./(.*?)";', re.MULTILINE)
"""An import of a module: its default, its names, the file, which lies beside the module that imports it."""


def make_report(run: RunDirectory) -> str:
    """Return the dashboard of `run` as an HTML file. Takes seconds: it watches which processes are alive."""
    from plyzero.kits.web.run_state import Dashboard  # it loads the store, which the page of a game does not need

    view = Dashboard(run, at_once=True)
    return inlined(
        "run.html",
        {"made": round(time.time()), "state": view.state(), "series": view.series(0), "games": view.games(50)},
    )


def make_page(frames: Sequence[Frame], game: str, result: str, *, review: Mapping[str, object] | None = None) -> str:
    """Return a recorded game as an HTML file.

    game:   the name of the game.
    result: how it ended, as a clause.
    review: its review as JSON, see plyzero.kits.review.description.
    """
    sentence = f"{result[0].upper()}{result[1:]}."
    board = frames[0].board
    colours = board.player_colours if board else None
    data = {"game": game, "result": sentence, "colours": colours, "frames": _describe(frames), "review": review}
    return inlined("game.html", data)


def _describe(frames: Sequence[Frame]) -> list[dict[str, object]]:
    """Return an object for each frame.

    move, by, setup, rolls: as in Frame.
    score: the expected score of the first player, or None.
    size:  number of parts of the picture.
    parts: [place, part] for each part that differs from the picture before.
    """
    described: list[dict[str, object]] = []
    before: list[str] = []
    for frame in frames:
        parts = [f'<pre tabindex="0">{escape(str(frame.position))}</pre>']
        if frame.board:
            parts = svg_parts(frame.board, last=frame.last, style=False)
        changed = [[i, part] for i, part in enumerate(parts) if i >= len(before) or before[i] != part]
        score = None if frame.score is None else round(frame.score, 4)
        fields = {
            "move": frame.move,
            "by": frame.by,
            "setup": frame.setup,
            "rolls": frame.rolls,
            "score": score,
        }
        described.append({**fields, "size": len(parts), "parts": changed})
        before = parts
    return described


def inlined(name: str, data: object) -> str:
    """Return a page of `page/` with everything that it loads inside, and `data` as `window.PLYZERO_REPORT`.

    Its content security policy names the digest of each script and style sheet, so nothing else runs in it.
    """
    page = text_of(name)
    icon = f'<link rel="icon" href="{_data_address("image/svg+xml", text_of("icon.svg"))}">'
    page = page.replace('<link rel="icon" href="/static/icon.svg">', icon)
    style = r'<link rel="stylesheet" href="/static/(.*?)">'
    page = re.sub(style, lambda found: f"<style>\n{text_of(found[1])}\n</style>", page)
    page = re.sub(r'<script src="/static/(.*?)"></script>', lambda found: _script(text_of(found[1])), page)
    page = re.sub(r'<script type="module" src="/static/(.*?)"></script>', lambda found: _module(found[1], data), page)
    allowed = f"script-src {_digests(page, 'script')}; style-src {_digests(page, 'style')}; img-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    charset = '<meta charset="utf-8">\n'
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return page.replace(charset, charset + meta, 1)


def _digests(page: str, tag: str) -> str:
    """Return the SHA-256 digests of the contents of all elements `tag`, in the form of a content security policy."""
    texts = re.findall(rf"<{tag}\b.*?>(.*?)</{tag}>", page, re.DOTALL)
    digests = [base64.b64encode(sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _module(name: str, data: object) -> str:
    """Return a script that sets `data`, and one with a module and all modules that it imports."""
    bundle = "\n".join(["const modules = {};", *map(_wrapped, [*_imported(name), name])])
    return "\n".join([_script(f"window.PLYZERO_REPORT = {as_script(data)};"), _script(bundle, ' type="module"')])


def _imported(name: str) -> dict[str, None]:
    """Return the modules that a module imports, in the order in which they can be evaluated."""
    found: dict[str, None] = {}
    for _, _, file in IMPORT.findall(text_of(name)):
        each = _beside(name, file)
        found |= {**_imported(each), each: None}
    return found


def _beside(name: str, file: str) -> str:
    """Return the name of a file that lies beside the module `name`."""
    return str(PurePosixPath(name).parent / file)


def _wrapped(name: str) -> str:
    """Return a module as a function that runs at once and returns what the module exports."""
    exported: list[str] = []

    def names(found: re.Match[str]) -> str:
        exported.extend(_renamed(found[1], lambda own, other: f"{other}: {own}"))
        return ""

    def declaration(found: re.Match[str]) -> str:
        exported.append(found[2])
        return found[1] + found[2]

    def default(found: re.Match[str]) -> str:
        exported.append("default: exportedByDefault")
        return "const exportedByDefault = "

    source = IMPORT.sub(lambda found: _as_constants(found, name), text_of(name))
    source = re.sub(r"\bexport ?\{(.*?)\};", names, source)
    source = re.sub(r"^export ((?:async )?(?:const|function) )(\w+)", declaration, source, flags=re.MULTILINE)
    source = re.sub(r"\bexport default ", default, source)
    return f'modules["{name}"] = (() => {{\n{source}\nreturn {{ {", ".join(exported)} }};\n}})();'


def _as_constants(found: re.Match[str], name: str) -> str:
    """Return constants in place of an import by the module `name`."""
    names = _renamed(found[2] or "", lambda theirs, own: f"{theirs}: {own}")
    if found[1]:
        names.append(f"default: {found[1]}")
    return f'const {{ {", ".join(names)} }} = modules["{_beside(name, found[3])}"];'


def _renamed(names: str, rename: Callable[[str, str], str]) -> list[str]:
    """Return the names of an import or an export; `rename` is applied to both names of an `as`."""
    pairs = [each.split(" as ") for each in names.split(",") if each.strip()]
    return [rename(*pair) if len(pair) == 2 else pair[0].strip() for pair in pairs]


def as_script(data: object) -> str:
    """Return JSON that may stand in a <script>: no text in it can end that element or begin a comment."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def text_of(name: str) -> str:
    """Return a file of `page/`, or the style sheet of boards."""
    return board_css() if name == "board.css" else (PAGE / name).read_text(encoding="utf-8")


def _script(source: str, kind: str = "") -> str:
    return f"<script{kind}>\n{source}\n</script>"


def _data_address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
