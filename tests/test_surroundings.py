"""Systems that lack something which Linux usually has: every command works there, or says in a sentence what to do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plyzero.run.directory import Run
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.surroundings import plyzero_without

MACOS = "os.sched_getaffinity os.fdatasync errno.EREMOTEIO mmap.MADV_NOHUGEPAGE mmap.MADV_HUGEPAGE"
"""Names that macOS lacks."""

NO_PROC = "mount -t tmpfs none /proc"
NO_INOTIFY = "echo 0 > /proc/sys/user/max_inotify_instances"
READ_ONLY = "mount --bind $RUN $RUN && mount -o remount,ro,bind $RUN"
ASCII = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict"}
NO_HOME = {"HOME": "/nonexistent", "XDG_CACHE_HOME": ""}


def in_namespace(change: str, root: Path) -> list[str]:
    """Return the words in front of a command that runs where `change`, a command of a shell, has been made.

    root: $RUN in the environment.
    """
    if not change:
        return []
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f'{change} && exec "$@"', "sh"]
    environment = {**os.environ, "RUN": str(root)}
    if not shutil.which("unshare") or subprocess.run([*words, "true"], env=environment, check=False).returncode:
        pytest.skip(f"this machine cannot take it away: {change}")
    return words


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with a model."""
    run = small_run(tmp_path / "r", "tic-tac-toe", "rating.games=2")
    add_model(run)
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "change", "environment"),
    [
        pytest.param(MACOS, NO_PROC, {}, id="what macOS lacks"),
        pytest.param("", NO_INOTIFY, NO_HOME | ASCII, id="inotify instances, a home and UTF-8"),
    ],
)
def test_check_train_play_and_analyze_work(
    tmp_path: Path, run: Run, missing: str, change: str, environment: dict[str, str]
):
    prefix = in_namespace(change, run.root)

    def plyzero(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        done = plyzero_without(missing, *arguments, cwd=tmp_path, text=text, prefix=prefix, environment=environment)
        assert (done.returncode, "Traceback" in done.stdout + done.stderr) == (0, False), (done.stdout, done.stderr)
        return done

    assert "laws hold" in plyzero("check", "tic-tac-toe", "--games", "2").stdout
    trained = plyzero("train", "tic-tac-toe", "--run", "r", "--workers", "1", "--minutes", "0.1")
    assert "saved. To continue" in trained.stdout
    for log in run.logs.iterdir():
        odd = [line for line in log.read_text().splitlines() if "WARNING" in line or "Traceback" in line]
        assert all("no file events" in line and change == NO_INOTIFY for line in odd), odd
    assert "The bot plays" in plyzero("play", "tic-tac-toe", "--run", "r", text="b2\n").stdout
    answer = plyzero("analyze", "tic-tac-toe", "--run", "r", text='{"id": 1, "moves": ["b2"]}\n').stdout
    assert '"id": 1' in answer


@pytest.mark.slow
def test_a_run_on_a_read_only_mount_can_be_played_and_watched(tmp_path: Path, run: Run):
    prefix = in_namespace(READ_ONLY, run.root)
    for command in ("play tic-tac-toe", "status", "doctor"):
        words, environment = (*command.split(), "--run", str(run.root)), {"RUN": str(run.root)}
        done = plyzero_without("", *words, cwd=tmp_path, text="b2\n", prefix=prefix, environment=environment)
        assert "Traceback" not in done.stderr
        assert "cannot be opened" not in done.stderr
        assert done.returncode == (command == "doctor")
