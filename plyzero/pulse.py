"""The pulse of a container: a small file outside the volume, which each heartbeat of its processes replaces.

`plyzero health` reads only this file, before anything else of plyzero is imported: it is called every few seconds, also
on a machine whose cores are all in use. The file is named by the mount namespace, because two containers may share a
host name, a volume and process numbers, but not that.
"""

from __future__ import annotations

import os
import sys
import time
import zlib

FOLDER = "/tmp"
"""Directory of the machine or container in which each user has a directory for these files."""

OPTIONS = ("--run", "--within", "--scratch")
"""Options of `plyzero health`."""


def pulse_file(run: str) -> str:
    """Return the file for the processes of this user and container that work on `run`, a directory or a bucket.

    The volume is not read, because it may not answer.
    """
    try:
        namespace = os.readlink("/proc/self/ns/mnt").strip("mnt:[]")
    except OSError:  # not on Linux
        namespace = "0"
    path = run if "://" in run else os.path.abspath(run)
    return f"{FOLDER}/plyzero-{os.getuid()}/{namespace}-{zlib.crc32(os.fsencode(path)):08x}.json"


def find_stalled(run: str, within: float) -> str | None:
    """Return a sentence if none of these processes makes progress, None if one does.

    within: seconds. A heartbeat file that is not older is progress; otherwise the next heartbeat is waited for.

    Raises FileNotFoundError if none of them runs.
    """
    path = pulse_file(run)
    if 0 <= time.time() - os.stat(path).st_mtime < within and not _has_stopped(_read(path)):
        return None
    first = _read(path)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        time.sleep(0.2)
        newest = _read(path)
        if newest != first and not _has_stopped(newest):
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
    """Return the process that has written a heartbeat, in words."""
    import json

    try:
        beat = json.loads(content)
        return f"the {beat['role']} of this container, process {int(beat['pid'])},"
    except (ValueError, TypeError, LookupError):
        return "the process of this container"


def answer(arguments: list[str]) -> int | None:
    """Answer `plyzero health` and return its exit code; None if the command line must answer instead.

    That is the case if no process runs here, or if the arguments are not plain ones.
    """
    given = _parse(arguments)
    if given is None:
        return None
    is_bucket = "://" in given["--run"]
    has_scratch = "--scratch" in given
    try:
        within = float(given.get("--within", "15"))
        if not 1 <= within <= 86_400 or is_bucket != has_scratch:
            return None
        problem = find_stalled(given["--run"], within)
    except (OSError, ValueError):
        return None
    if problem:
        print(f"plyzero: {problem}", file=sys.stderr, flush=True)
        return 1
    print("ok", flush=True)
    return 0


def _parse(arguments: list[str]) -> dict[str, str] | None:
    """Return the values of OPTIONS in the arguments; None if these are not plain ones."""
    words: list[str] = []
    for argument in arguments:
        if argument.startswith("--"):
            words += argument.split("=", 1)
        else:
            words.append(argument)
    given = dict(zip(words[::2], words[1::2], strict=False))
    is_plain = len(words) == 2 * len(given) and "--run" in given and given.keys() <= set(OPTIONS)
    return given if is_plain else None
