"""The plugin that finds tests which have outgrown their fast form."""

import json
import shutil
from pathlib import Path

from tests.helpers import cpu_times
from tests.helpers.surroundings import python

TESTS = """
import subprocess, sys, time, pytest
BURN = "import time\\nwhile time.process_time() < 0.4: pass"

def test_of_a_child(): subprocess.run([sys.executable, "-c", BURN], check=True)
def test_that_waits(): time.sleep(0.5)
@pytest.mark.slow
def test_that_is_slow(): test_of_a_child()
"""


def test_a_test_that_is_not_slow_and_uses_too_much_cpu_fails_the_session_and_one_that_waits_does_not(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(TESTS)
    shutil.copy(cpu_times.__file__, tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow")
    options = ("-p", "xdist", "-n1", "--max-cpu", "0.3", "--cpu-times", "times.json")
    done = python("-m", "pytest", *options, cwd=tmp_path, code=1, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    listed = done.stdout.partition("not slow, and over 0.3 CPU seconds")[2].splitlines()[1:-1]
    assert [line.split()[1] for line in listed] == ["test_it.py::test_of_a_child"]
    times = json.loads((tmp_path / "times.json").read_text())
    assert [row["cpu_seconds"] > 0.3 for row in times] == [True, True, False]
    assert times[2]["test"] == "test_it.py::test_that_waits"
