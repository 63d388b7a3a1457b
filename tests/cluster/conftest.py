"""One control plane for all tests, and a namespace with a volume for each of them."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.helpers.cluster import Space
from tests.helpers.control_plane import ApiServer, control_plane

NUMBERS = count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with control_plane(tmp_path_factory.mktemp("control-plane")) as started:
        yield started


@pytest.fixture
def space(server: ApiServer, tmp_path: Path) -> Iterator[Space]:
    volume = tmp_path / "volume"
    volume.mkdir()
    made = Space(server, f"test-{next(NUMBERS)}", volume)
    yield made
    made.remove()
