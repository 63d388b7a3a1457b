"""Runs that released versions have made, a few games and one model each, and what is in a directory."""

import tarfile
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
VERSIONS = ("0.1.0", "0.2.0")


def old_run(version: str, directory: Path) -> Path:
    """Unpack the run of a version below `directory`."""
    root = directory / f"run-{version}"
    with tarfile.open(DATA / f"{root.name}.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Name -> content of every file below `root`."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
