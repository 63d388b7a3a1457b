"""The id of a run: its models, segments and journals carry it, so that those of another run are refused."""

from __future__ import annotations

import re
import secrets
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import tomli_w

from plyzero.errors import UserError, shown
from plyzero.files import read_file, write_file
from plyzero.lines import decode
from plyzero.settings import with_new_names

KEY: Final = "run"
"""Where files have the id: a metadata key of models, an attribute of segments, and a key of journals and states."""

CLAIM: Final = "run-id"
"""File of a run of an earlier version: the id that it is given. It is made first, so that all processes agree."""

WITHOUT: Final = "files_without_id"
"""The key of run.toml, beside `id`, that says whether files without an id belong to the run too."""

PATTERN: Final = r"[0-9a-f]{16}"
"""Pattern of an id."""

MAX_BYTES: Final = 1 << 14
"""Largest size of a run.toml, in bytes."""


class RunId(NamedTuple):
    """Which files belong to a run.

    text:          16 hex digits, random. A copy of a run has the id of the original, and goes on.
    older_without: whether files without an id belong to it too, because the run is older than ids are.
    """

    text: str
    older_without: bool = False

    @property
    def header(self) -> dict[str, str | bool]:
        """The id as run.toml has it, which `pop_run_id` reads."""
        return {"id": self.text, **({WITHOUT: True} if self.older_without else {})}

    def find_fault(self, found: object) -> str | None:
        """Return why a file whose id is `found`, None if it has none, is not of this run, or None if it is."""
        if found == self.text or (found is None and self.older_without):
            return None
        of = "no run" if found is None else f"the run {shown(found)}"
        return f"it is of {of}, and this is the run {self.text}"


def new_run_id() -> RunId:
    """Return an id that no other run has."""
    return RunId(secrets.token_hex(8))


def pop_run_id(table: dict[str, Any]) -> RunId | None:
    """Take the id out of the table of a run.toml, None if it has none yet. Raises ValueError if it is not an id."""
    text, older_without = table.pop("id", None), table.pop(WITHOUT, False)
    if text is None:
        return None
    if not (isinstance(text, str) and re.fullmatch(PATTERN, text) and type(older_without) is bool):
        raise ValueError(f"expected an id of 16 hex digits and {WITHOUT} true or false, got {shown(text)}")
    return RunId(text, older_without)


def bring_up_to_date(root: Path) -> None:
    """Give the run.toml of an earlier version an id, and the settings in it their present names.

    Processes that do this at once write the same: the id is that of the first one to create the file CLAIM.
    """
    path = root / "run.toml"
    text = decode(read_file(path, max_bytes=MAX_BYTES))
    table = tomllib.loads(text)
    sections = {key: value for key, value in table.items() if isinstance(value, dict)}
    renamed = with_new_names(sections)
    if "id" in table and renamed == sections:
        return
    if renamed != sections:
        text = tomli_w.dumps(table | renamed)
    if "id" not in table:
        text = tomli_w.dumps(RunId(_claim(root / CLAIM), older_without=True).header) + text
    write_file(path, text.encode(), replace=True)


def _claim(path: Path) -> str:
    """Return the id that `path` has; the first process that asks creates it."""
    with suppress(FileExistsError):
        write_file(path, new_run_id().text.encode())
    text = read_file(path, max_bytes=MAX_BYTES).decode()
    if not re.fullmatch(PATTERN, text):
        raise UserError(f"{path} has no id of 16 hex digits; remove it and start again")
    return text
