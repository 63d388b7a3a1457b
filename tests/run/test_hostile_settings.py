"""Untrusted run.toml files: each is refused in one sentence, in little time and memory."""

import re
from pathlib import Path

import pytest

from plyzero.errors import UserError
from plyzero.run.directory import Run, open_run
from tests.helpers.hostile import at_most
from tests.helpers.runs import small_run


@pytest.fixture(scope="module")
def toml(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("run") / "r"
    small_run(root)
    return (root / "run.toml").read_text()


def opened(root: Path, content: str | bytes) -> Run:
    (root / "run.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with at_most(seconds=4, megabytes=128):
        return open_run(root)


def set_to(toml: str, key: str, value: str) -> str:
    changed = re.sub(rf"(?m)^{key} = .*$", lambda _: f"{key} = {value}", toml)
    assert changed != toml
    return changed


BAD_TOML: dict[str, tuple[str, str] | bytes] = {
    "two megabytes": b"# " + b"x" * (2 << 20),
    "nothing": b"",
    "a NUL at the end": b"x = 1\0",
    "UTF-16": "format = 1".encode("utf-16"),
    "bytes that are no text": b"\xff\xfe\xfd",
    "lone surrogates": b'game = "\xed\xa0\x80"',
    "deep arrays": ("parallel_games", "[" * 100_000 + "]" * 100_000),
    "deep tables": ("parallel_games", "{a=" * 100_000),
    "two of one key": ("parallel_games", "8\nparallel_games = 8"),
    "two of one section": ("parallel_games", "8\n[search]\n[search]"),
    "a key that no alphabet has": ("parallel_games", "8\nparallel_gameſ = 8"),
    "a long key": ("parallel_games", f"8\n{'a' * 500_000} = 8"),
    "an unknown preset": ("preset", '"x"'),
    "a game that is none": ("game", '"../x"'),
    "a game that is no game": ("game", '"os:system"'),
    "a game with deep parameters": ("game", f'"tic-tac-toe(size={"(" * 5000})"'),
    "a game with a long number": ("game", f'"othello(size={"1" * 5000})"'),
    "a game of huge size": ("game", '"othello(size=1000000)"'),
    "a game that calls": ("game", "\"othello(size=__import__('os').mkdir('harm'))\""),
    "a number of 10^4 digits": ("parallel_games", "1" * 10_000),
    "a seed of 10^4 digits": ("seed", "1" * 10_000),
    "a negative seed": ("seed", "-1"),
    "a seed of 70 bits": ("seed", "0x3fffffffffffffffff"),
    "a seed that is a truth": ("seed", "true"),
    "a preset that is a list": ("preset", "[]"),
    "a window of 10^400": ("window_positions", "1" + "0" * 400),
    "a game with many signs": ("game", f'"tic-tac-toe(size={"-" * 5000}1)"'),
    "a key of very many parts": ("parallel_games", "8\nx" + ".a" * 60_000 + " = 8"),
}


@pytest.mark.parametrize("what", BAD_TOML)
def test_settings_that_nobody_can_mean_are_refused(tmp_path: Path, toml: str, what: str):
    bad = BAD_TOML[what]
    with pytest.raises(UserError):
        opened(tmp_path, bad if isinstance(bad, bytes) else set_to(toml, *bad))
    assert not Path("harm").exists()
