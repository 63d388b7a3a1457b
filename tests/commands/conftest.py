"""A run for the tests of commands that only read."""

from pathlib import Path

import pytest

from tests.helpers.learning import add_model
from tests.helpers.runs import small_run


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of tic-tac-toe with one model, of step 12."""
    run = small_run(tmp_path_factory.mktemp("run") / "r")
    add_model(run)
    return run.root
