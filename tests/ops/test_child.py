"""A child process: its end is tied to its parent's, it is killed after its time, and its log begins with its start."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from plyzero.ops.child import Child
from tests.helpers.surroundings import is_running, python, wait_until

DEAF = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
"""A script that neither SIGTERM nor the end of its input ends."""

PARENT = """
import os, signal, sys
from pathlib import Path
from plyzero.ops.child import Child

command = [sys.executable, "-c", "import os; os.read({descriptor}, 1)"]
child = Child("w0", command, watched={watched!r})
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def started(log: Path, script: str, **how: str) -> Child:
    child = Child("w0", ["sh", "-c", script], log=log, **how)
    wait_until(lambda: "ready" in child.read_log())
    return child


@pytest.mark.parametrize(("descriptor", "watched"), [("0", ""), ("int(os.environ['PIPE'])", "PIPE")])
def test_a_child_reads_the_end_of_its_pipe_when_its_parent_is_killed(descriptor: str, watched: str):
    done = python("-c", PARENT.format(descriptor=descriptor, watched=watched), code=-signal.SIGKILL)
    wait_until(lambda: not is_running(int(done.stdout)))


def test_a_child_that_does_not_end_when_asked_to_is_killed_after_its_time_with_its_own_children(tmp_path: Path):
    child = started(tmp_path / "log", "sleep 600 & echo $!; " + DEAF)
    other = int(child.read_log().split()[0])
    began = time.monotonic()
    child.end(0.3)
    assert 0.3 <= time.monotonic() - began < 10
    assert (child.exit_code(), child.was_killed) == (-signal.SIGKILL, True)
    wait_until(lambda: not is_running(other))


def test_a_child_that_ends_when_asked_to_is_not_killed(tmp_path: Path):
    reads = started(tmp_path / "a", "echo ready; cat; exit 3")
    reads.end(60.0)
    assert (reads.exit_code(), reads.was_killed) == (3, False)
    of_others = started(tmp_path / "b", "trap 'exit 4' TERM; echo ready; sleep 600 & wait", watched="PIPE")
    of_others.end(60.0)
    assert (of_others.exit_code(), of_others.was_killed) == (4, False)
    of_others.kill()  # the `sleep` that it has left


def test_a_command_of_others_has_no_input_and_a_session_of_its_own(tmp_path: Path):
    child = Child("w0", ["sh", "-c", "cat; echo end"], log=tmp_path / "log", watched="PIPE")
    child.wait(60)
    assert (child.exit_code(), child.read_log()) == (0, "end\n")
    assert os.getsid(0) != child.pid
    other = started(
        tmp_path / "log", f"{sys.executable} -c 'import os; print(os.getsid(0))'; echo ready", watched="PIPE"
    )
    assert other.read_log().splitlines()[0] == str(other.pid)


def test_a_child_that_cannot_start_leaves_no_descriptor(tmp_path: Path):
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        Child("w0", ["no-such-program"], log=tmp_path / "log")
    assert len(os.listdir("/proc/self/fd")) == len(before)
