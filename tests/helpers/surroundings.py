"""Processes of tests: commands that lack something which other systems have, and waiting for what others do."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

SITECUSTOMIZE = """
import importlib, os, sys

for name in os.environ["WITHOUT"].split():
    module, _, attribute = name.partition(".")
    if attribute:
        delattr(importlib.import_module(module), attribute)
    else:
        sys.modules[module] = None
"""
"""Run first in every Python process: removes packages such as torch, and functions such as os.fdatasync."""


def plyzero_without(
    missing: str,
    *arguments: str,
    cwd: Path,
    text: str = "",
    prefix: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run a command, and all its child processes, without the packages and functions in `missing`.

    prefix: words in front of the command, of a program that runs it.
    """
    command = [*prefix, sys.executable, "-P", "-m", "plyzero", *arguments]
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "sitecustomize.py").write_text(SITECUSTOMIZE)
        paths = os.pathsep.join([directory, str(Path(__file__).parents[2])])
        environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": paths, "WITHOUT": missing, **environment}
        return subprocess.run(
            command, cwd=cwd, input=text, capture_output=True, text=True, check=False, env=environment, timeout=600
        )


def python(
    *arguments: str | Path, text: str = "", code: int = 0, cwd: Path | None = None, **changes: str | None
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with variables changed or, for None, removed; it has to end with `code`."""
    command = [sys.executable, *arguments]
    environment = {name: value for name, value in (os.environ | changes).items() if value is not None}
    done = subprocess.run(
        command, cwd=cwd, input=text, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(
    condition: Callable[[], object], seconds: float = 300, *, alive: "subprocess.Popen[bytes] | None" = None
) -> None:
    """Wait until a condition holds; AssertionError after `seconds`, or once the process `alive` has ended."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert alive is None or alive.poll() is None, "the process ended by itself"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
