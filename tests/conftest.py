"""Fixtures of all tests: fixed randomness, Ctrl-C, a run, a clock, and the option that rewrites golden files."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from plyzero.run.directory import Run
from tests.helpers.clock import Clock

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background; child processes would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files from what the code does now")


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
