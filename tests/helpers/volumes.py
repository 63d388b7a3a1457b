"""Volumes on which a run is attacked: mounts without common locks, full ones, and entries that cannot be read."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

KINDS = ("directory", "socket", "loop", "fifo", "unreadable")
"""Kinds of entries that cannot be read as a file."""

MARK = "99009"
"""In the name of every such entry, followed by the number of its kind."""

NAMES = (
    "journal/bad.00MARK-00000000.wal",
    "journal/bad.00MARK-00000000.taken",
    "replay/bad.00MARK-00000000-g1-p5-f1-m0_0.zarr.zip",
    "models/999999-000MARK-00000000.onnx",
    "workers/bad.00MARK.json",
    "trainer/state-999999-000MARK.pt",
    "trainer/fence-MARK.json",
    "metrics/trainer-MARK.jsonl",
)
"""Names under which they lie where a worker, the trainer or `train` looks."""


def lacks(*needed: str) -> str | None:
    """Return a sentence that says which of these is missing here: gcc, root, bindfs, loop. None = nothing is."""
    for each in needed:
        if each == "root" and os.geteuid() != 0:
            return "this attack needs root"
        if each == "gcc" and not shutil.which("gcc"):
            return "this attack needs gcc, which compiles the library that makes system calls fail"
        if each in ("bindfs", "loop"):
            with tempfile.TemporaryDirectory() as directory:
                try:
                    path = Path(directory)
                    mount = two_mounts(path, source=path) if each == "bindfs" else image(path, megabytes=8)
                    with mount:
                        pass
                except (OSError, subprocess.CalledProcessError) as error:
                    return f"{'bindfs' if each == 'bindfs' else 'an ext4 image'} cannot be mounted here: {error}"
    return None


@contextmanager
def two_mounts(directory: Path, source: Path) -> Iterator[list[Path]]:
    """Yield two mounts in `directory` of the directory `source`, across which locks do not reach."""
    mounts = [directory / name for name in ("one", "other")]
    mounted = []
    try:
        for mount in mounts:
            mount.mkdir(exist_ok=True)
            _run("bindfs", str(source), str(mount))
            mounted.append(mount)
        yield mounts
    finally:
        for mount in mounted:
            unmount(mount)


@contextmanager
def image(directory: Path, *, megabytes: int, inodes: int = 4096) -> Iterator[Path]:
    """Yield the directory of an ext4 volume of this size."""
    file, mount = directory / "image", directory / "volume"
    mount.mkdir(exist_ok=True)
    with file.open("wb") as made:
        made.truncate(megabytes << 20)
    _run("mkfs.ext4", "-q", "-m", "0", "-N", str(inodes), str(file))
    _run("mount", "-o", "loop", str(file), str(mount))
    try:
        mount.chmod(0o777)
        yield mount
    finally:
        unmount(mount)


def unmount(mount: Path) -> None:
    """Unmount, also if something still uses it."""
    subprocess.run(["umount", "-l", str(mount)] if os.geteuid() == 0 else ["fusermount3", "-uz", str(mount)])


@contextmanager
def full(volume: Path, *, inodes: bool) -> Iterator[None]:
    """Take all free inodes, or all free space, of a volume."""
    ballast = volume / "ballast"
    try:
        with suppress(OSError):
            ballast.mkdir(exist_ok=True)
            if inodes:
                for number in range(os.statvfs(volume).f_ffree + 100):
                    (ballast / str(number)).touch()
            else:
                with (ballast / "space").open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(1 << 16))
        yield
    finally:
        shutil.rmtree(ballast, ignore_errors=True)


@contextmanager
def bad_entries(root: Path, kinds: Iterable[str] = KINDS, names: Iterable[str] = NAMES) -> Iterator[list[Path]]:
    """Put entries that cannot be read under names that processes look for; yield them."""
    made = []
    try:
        for kind in kinds:
            for name in names:
                if kind == "unreadable" and name.startswith("trainer/"):
                    continue  # it may be of a trainer of another user, and must not be passed over
                path = root / name.replace("MARK", f"{MARK}{KINDS.index(kind)}")
                put_bad_entry(path, kind)
                made.append(path)
        yield made
    finally:
        for path in made:
            for left in (path, root / "quarantine" / path.name):
                with suppress(FileNotFoundError):
                    if left.is_dir() and not left.is_symlink():
                        left.rmdir()
                    else:
                        left.unlink()


def put_bad_entry(path: Path, kind: str) -> None:
    """Make a directory, a socket, a symlink to itself, a pipe, or a file that nobody but root may read."""
    if kind == "directory":
        path.mkdir()
    elif kind == "socket":
        there = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(there)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"secret")
        path.chmod(0)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
