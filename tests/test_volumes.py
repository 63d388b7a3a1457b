"""The promises of every volume: a directory, a bucket in memory or one of an S3 server; and a store with faults."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from plyzero.errors import UserError
from plyzero.files import list_names, lock, read_file, remove, write_file
from plyzero.kits.cluster import bucket
from plyzero.kits.cluster.bucket import BucketPath
from plyzero.ops.doctor import examine
from plyzero.rules.catalog import load_game
from plyzero.run.directory import create_run
from plyzero.testing import VolumeContract
from plyzero.volume_errors import NO_LOCKS, explain, is_transient
from plyzero.volumes import keeps_first, to_path
from tests.helpers.buckets import SLOW_SECONDS, Proxy, connected, new_prefix, s3_server

MOST = 1 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3(server: str) -> Iterator[None]:
    with connected(server):
        yield


class TestDirectory(VolumeContract):
    def volume(self, directory: Path) -> Path:
        return directory


class TestBucketInMemory(VolumeContract):
    def volume(self, directory: Path) -> Path:
        return new_prefix("memory")


@pytest.mark.usefixtures("s3")
class TestBucketOfAServer(VolumeContract):
    def volume(self, directory: Path) -> Path:
        return new_prefix()


def content_of(path: Path) -> bytes:
    return read_file(path, max_bytes=MOST)


def test_a_path_of_a_bucket_is_no_file_of_this_machine():
    path = to_path("s3://runs/some/run")
    assert isinstance(path, BucketPath)
    assert (str(path), str(path / "run.toml"), path.parent.name) == (
        "s3://runs/some/run",
        "s3://runs/some/run/run.toml",
        "some",
    )
    assert (path / "run.toml").key == "some/run/run.toml"
    for use in (path.open, path.read_bytes, lambda: os.listdir(path), lambda: path.rename("x"), path.resolve):
        with pytest.raises((TypeError, OSError)):
            use()
    assert to_path("runs/1") == Path("runs/1")
    for wrong in ("s3://", "s3:///x"):
        with pytest.raises(UserError, match="expected s3://BUCKET/PREFIX"):
            to_path(wrong)


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    with Proxy(server) as proxy, connected(proxy.endpoint):
        yield proxy


def test_a_wrong_key_is_refused_in_a_sentence(proxy: Proxy):
    proxy.fault = lambda method, path: "denied"
    for ask in ((new_prefix() / "a").exists, lambda: write_file(new_prefix() / "a", b"")):
        with pytest.raises(PermissionError, match="the store refuses access; check AWS_ACCESS_KEY_ID") as error:
            ask()
        assert explain(error.value) == error.value.strerror


def test_a_creation_whose_answer_is_lost_has_succeeded(proxy: Proxy):
    path = new_prefix() / "segment"
    proxy.times(1, "lost answer", "PUT")
    write_file(path, b"games")
    assert proxy.injected == ["lost answer"]
    assert content_of(path) == b"games"
    with pytest.raises(FileExistsError):
        write_file(path, b"games")


def test_a_lost_answer_does_not_hide_that_another_was_first(proxy: Proxy):
    path = new_prefix() / "fence"
    write_file(path, b"the same content")
    proxy.times(1, "lost answer", "PUT")
    with pytest.raises(FileExistsError):
        write_file(path, b"the same content")
    assert proxy.injected == ["lost answer"]


def test_what_a_store_refuses_a_moment_is_asked_again(proxy: Proxy):
    directory = new_prefix()
    for method, ask in (
        ("PUT", lambda: write_file(directory / "a", b"a")),
        ("GET", lambda: content_of(directory / "a")),
        ("GET", lambda: list_names(directory)),
        ("HEAD", (directory / "a").is_file),
        ("POST", lambda: remove(directory / "a")),
    ):
        proxy.times(2, "refused", method)
        ask()
    assert proxy.injected == ["refused"] * 10


def test_a_store_that_keeps_refusing_is_an_error_that_may_pass(proxy: Proxy):
    path = new_prefix() / "a"
    proxy.fault = lambda method, path: "refused"
    for ask in (lambda: write_file(path, b"a"), lambda: content_of(path), lambda: list_names(path.parent), path.exists):
        with pytest.raises(OSError, match=r"no proper answer from .*503 Service Unavailable") as error:
            ask()
        assert is_transient(error.value)


def test_half_an_answer_is_never_taken_for_the_content(proxy: Proxy):
    path, content = new_prefix() / "a", bytes(range(256)) * 100
    write_file(path, content)
    proxy.times(1, "cut", "GET")
    assert content_of(path) == content
    proxy.fault = lambda method, path: "cut" if method == "GET" else None
    with pytest.raises(OSError, match="no proper answer"):
        content_of(path)


def test_a_store_that_is_too_slow_is_an_error_that_may_pass(proxy: Proxy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bucket, "TIMEOUT", timedelta(seconds=SLOW_SECONDS / 4))
    proxy.fault = lambda method, path: "slow"
    with pytest.raises(OSError, match="no proper answer") as error:
        content_of(new_prefix() / "a")
    assert is_transient(error.value)


def test_a_store_that_ignores_the_condition_is_refused(proxy: Proxy):
    root = new_prefix()
    assert keeps_first(root)
    proxy.fault = lambda method, path: "unconditional" if method == "PUT" else None
    assert not keeps_first(root)
    with pytest.raises(UserError, match="ignores If-None-Match"):
        create_run(root, load_game("tic-tac-toe"))
    assert list_names(root) == []
    verdicts = {finding.name: finding.verdict for finding in examine(root)}
    assert {name: verdicts[name] for name in ("access", "exclusive names", "requests")} == {
        "access": "ok",
        "exclusive names": "failure",
        "requests": "ok",
    }


def test_a_bucket_has_no_locks():
    with pytest.raises(OSError, match="locks") as error:
        lock(new_prefix("memory") / "lease.lock")
    assert error.value.errno in NO_LOCKS
