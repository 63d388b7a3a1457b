"""doctor: whether plyzero can run on this machine and on a volume."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from plyzero.commands.common import FailedError, Json, make_console, make_table, read_directory, show_progress
from plyzero.errors import plain

STYLES = {"ok": "green", "warning": "yellow", "failure": "bold red"}


def doctor(
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="DIR",
            parser=read_directory,
            help="Also check the volume on which this run directory is or would be.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether plyzero can run on this machine and on a volume; exit 1 if not."""
    from plyzero.ops.doctor import examine

    findings = []
    with show_progress("probing") as report:
        for finding in examine(run):
            findings.append(finding)
            report(f"probing, {len(findings)} done, the last: {finding.name}")
    failures = [finding.name for finding in findings if finding.verdict == "failure"]
    if as_json:
        print(json.dumps({"version": 1, "findings": [asdict(each) for each in findings], "fit": not failures}))
    else:
        table = make_table("", "check", "result")
        for each in findings:
            table.add_row(Text(each.verdict, STYLES[each.verdict]), each.name, Text(plain(each.says)))
        make_console().print(table)
    if failures:
        raise FailedError(f"cannot run here until these are fixed: {', '.join(failures)}")
    if not as_json:
        warnings = sum(finding.verdict == "warning" for finding in findings)
        where = "this machine" if run is None else "this machine and this volume"
        count = {0: "no warnings", 1: "1 warning"}.get(warnings, f"{warnings} warnings")
        print(f"\nplyzero can run on {where}: {count}.")
