"""The pulse of a container: a small file outside the volume that the heartbeats of its processes replace.

`plyzero health` reads this one file, and answers before anything else of plyzero is imported: it is called every few
seconds, also on a machine whose cores are all in use. Two containers may have one host name, one volume and equal
process numbers, but never one mount namespace, by which the file is named.
"""

from __future__ import annotations

import os
import sys
import time
import zlib

FOLDER = "/tmp"
"""Directory of the machine, or of the container, below which each user has a directory for these files."""

OPTIONS = ("--run", "--within", "--scratch")
"""Options of `plyzero health`."""


def pulse_file(run: str) -> str:
    """Return the file for the processes of this user and container that work on `run`, a directory or a bucket.

    It does not ask the volume, which may not answer.
    """
    try:
        namespace = os.readlink("/proc/self/ns/mnt").strip("mnt:[]")
    except OSError:  # not on Linux
        namespace = "0"
    path = run if "://" in run else os.path.abspath(run)
    return f"{FOLDER}/plyzero-{os.getuid()}/{namespace}-{zlib.crc32(os.fsencode(path)):08x}.json"


def find_stalled(run: str, within: float) -> str | None:
    """Return a sentence if none of these processes makes progress, None if one does.

    within: seconds. A heartbeat that is no older is progress, by the time of its file; otherwise it is waited for.

    Raises FileNotFoundError if none of them runs.
    """
    path = pulse_file(run)
    if 0 <= time.time() - os.stat(path).st_mtime < within and not _has_stopped(_read(path)):
        return None
    first = _read(path)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        time.sleep(0.2)
        if (newest := _read(path)) != first and not _has_stopped(newest):
            return None
    if _has_stopped(first):
        raise FileNotFoundError(path)
    return f"{_describe(first)} has made no progress for {within:.0f} s"


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1 << 16)


def _has_stopped(content: bytes) -> bool:
    return b'"state": "stopped"' in content


def _describe(content: bytes) -> str:
    """Return which process has written a heartbeat."""
    import json

    try:
        beat = json.loads(content)
        return f"the {beat['role']} of this container, process {int(beat['pid'])},"
    except (ValueError, TypeError, LookupError):
        return "the process of this container"


def answer(arguments: list[str]) -> int | None:
    """Answer `plyzero health` and return its exit code; None if this is for the command line to do.

    That is the case if no process runs here, or if the arguments are not plain ones.
    """
    words = [part for each in arguments for part in (each.split("=", 1) if each.startswith("--") else [each])]
    given = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) != 2 * len(given) or not {"--run"} <= given.keys() <= {*OPTIONS}:
        return None
    try:
        within = float(given.get("--within", "15"))
        if not 1 <= within <= 86_400 or ("://" in given["--run"]) != ("--scratch" in given):
            return None
        problem = find_stalled(given["--run"], within)
    except (OSError, ValueError):
        return None
    print("ok" if problem is None else f"plyzero: {problem}", file=sys.stderr if problem else sys.stdout, flush=True)
    return 1 if problem else 0
