"""The command line, as a person uses it."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from plyzero.commands.cli import app


def plyzero(*arguments: str, text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plyzero", *arguments]
    environment = os.environ | {"COLUMNS": "120"}
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment, cwd=cwd)


def shown(*arguments: str) -> str:
    """What a command that only looks prints; in this process, which is quicker."""
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"}, catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout
