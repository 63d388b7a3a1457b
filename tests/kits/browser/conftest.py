"""Tests of modules for a browser, which Node runs here, need it and what compiles rules for WebAssembly."""

import shutil
from importlib.util import find_spec

import pytest

from tests.helpers.node_search import find_node


@pytest.fixture(scope="session")
def node():
    if find_node() is None:
        pytest.skip("no Node; install Debian's nodejs")


@pytest.fixture(scope="session")
def compiled_for_node(node):
    if not (find_spec("ziglang") or shutil.which("wasm-ld") or shutil.which("lld")):
        pytest.skip("no linker for WebAssembly; pip install ziglang")
