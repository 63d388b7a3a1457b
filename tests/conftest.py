"""What all tests share: fresh compiled code, fixed randomness, and the option that rewrites golden files."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent


def delete_stale_caches() -> None:
    # Numba recompiles a cached function when the file of that very function changes, but not when a function it calls
    # in another file does: after an edit of gumbel.py the cached advance_all of simulate.py would run the old code.
    sources = ("tree", "gumbel", "simulate", "policy", "evaluate", "compiled", "records")
    newest = max((ROOT / "plyzero" / f"{name}.py").stat().st_mtime for name in sources)
    for index in (path for package in ("plyzero", "selfplay") for path in ROOT.glob(f"{package}/__pycache__/*.nbi")):
        if index.stat().st_mtime < newest:
            index.unlink(missing_ok=True)


delete_stale_caches()

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from what the code does now")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
