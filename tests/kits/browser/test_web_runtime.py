"""The runtime of a page comes from a folder, from the cache, or from npm, and only in the version that is known."""

import pytest

from plyzero.errors import FailedError, UserError
from plyzero.kits.browser import web_runtime
from plyzero.kits.browser.web_runtime import FILES, cache_directory, find_runtime


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Return a function that makes a shell script stand for npm."""

    def make(script: str) -> None:
        npm = tmp_path / "npm"
        npm.write_text(f"#!/bin/sh\n{script}\n")
        npm.chmod(0o755)
        monkeypatch.setattr(web_runtime, "which", lambda name: str(npm))

    return make


@pytest.mark.parametrize("below", ["", "dist"])
def test_a_folder_has_the_files_or_the_missing_one_is_named(below, tmp_path):
    folder = tmp_path / "package" / below
    folder.mkdir(parents=True)
    for name in FILES[:-1]:
        (folder / name).write_bytes(name.encode())
    with pytest.raises(UserError, match=f"package has no {FILES[-1]}"):
        find_runtime(tmp_path / "package")
    (folder / FILES[-1]).write_bytes(FILES[-1].encode())
    found = find_runtime(tmp_path / "package")
    assert found.pop(web_runtime.LICENSE).startswith(b"MIT License")
    assert found == {name: name.encode() for name in FILES}


def test_a_machine_without_npm_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(web_runtime, "which", lambda name: None)
    with pytest.raises(UserError, match=r"npm, which fetches it, is not here: install Node\.js, or unpack"):
        find_runtime()


def test_another_archive_than_the_known_one_is_refused_and_not_kept(stand_in):
    stand_in('while [ "$1" != --pack-destination ]; do shift; done\necho other > "$2/a.tgz"')
    with pytest.raises(FailedError, match=rf"has the SHA-256 \w+, expected {web_runtime.DIGEST}"):
        find_runtime()
    assert not cache_directory().exists()


def test_npm_that_fails_is_quoted(stand_in):
    stand_in("echo no network >&2\nexit 1")
    with pytest.raises(FailedError, match=r"npm cannot fetch onnxruntime-web@\S+: no network"):
        find_runtime()
