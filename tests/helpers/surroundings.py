"""Commands of plyzero in processes that lack something which other systems have."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
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
"""What Python runs first in every process: it takes away packages such as torch, and functions such as os.fdatasync."""


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
