"""Fixtures of all tests: kept machine code, fixed randomness, Ctrl-C, a run, a clock; an option for golden files."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from plyzero.run.directory import Run
from tests.helpers.clock import Clock

ROOT = Path(__file__).resolve().parent.parent

# Machine code is kept between runs of the tests, also of other checkouts. Numba reads the variable when it is imported.
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "plyzero-tests")
)

pytest_plugins = ["tests.helpers.cpu_times"]

# Before torch is imported: its threads would wait for one another in loops, and the cores belong to other tests.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")

# Hypothesis also tries the constants of all modules that are imported: examples would depend on which tests ran before.
patch.object(providers, "_get_local_constants", lambda: providers._local_constants).start()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background; child processes would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files from what the code does now")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile once what all processes of the test runner need, before it starts them."""
    if getattr(session.config.option, "numprocesses", None):
        subprocess.run([sys.executable, ROOT / "container" / "warm.py"], cwd=ROOT, check=True)


@pytest.fixture(autouse=True)
def no_thread_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ended a thread in one test is not in the heartbeats of the next."""
    monkeypatch.setattr("plyzero.threads._errors", {})


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A new run of tic-tac-toe."""
    from tests.helpers.runs import small_run  # with numba, which not every test needs

    return small_run(tmp_path / "r")
