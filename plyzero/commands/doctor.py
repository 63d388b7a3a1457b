"""doctor: whether this machine and a volume are fit, and what plyzero does about what they lack."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plyzero.commands.common import FailedError, Json

STYLES = {"ok": "green", "warning": "yellow", "failure": "bold red"}


def doctor(
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="Examine the volume too on which this directory is, or would be."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell whether this machine and a volume are fit, and what plyzero does about what they lack; exit 1 if unfit."""
    from plyzero.ops.doctor import examine

    findings = list(examine(run))
    unfit = [finding.name for finding in findings if finding.verdict == "failure"]
    if as_json:
        print(json.dumps({"version": 1, "findings": [asdict(each) for each in findings], "fit": not unfit}))
    else:
        table = Table("", "what", "found", box=None)
        for each in findings:
            table.add_row(Text(each.verdict, STYLES[each.verdict]), each.name, Text(each.says))
        Console(highlight=False).print(table)
    if unfit:
        raise FailedError(f"unfit for plyzero until this is mended: {', '.join(unfit)}")
    if not as_json:
        warnings = sum(finding.verdict == "warning" for finding in findings)
        where = "This machine is" if run is None else "This machine and this volume are"
        mind = {0: ".", 1: "; mind the warning."}.get(warnings, f"; mind the {warnings} warnings.")
        print(f"\n{where} fit for plyzero{mind}")
