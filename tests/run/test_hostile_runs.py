"""Run directories of strangers: nothing in them is imported, and nothing in them reaches a terminal as it is."""

import json
import logging
import re
import sys
from pathlib import Path

import pytest

from plyzero.commands.roles import LOG_FORMATS
from plyzero.errors import UserError, plain
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, open_run, read_run
from plyzero.run.metrics import append_line
from tests.helpers.cli import plyzero, plyzero_process
from tests.helpers.hostile import put
from tests.helpers.runs import small_run
from tests.helpers.segments import some_games, write

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\u2066\r\n\x08\x7f\u2028"


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A run whose game is a module that lies beside run.toml and does harm when it is imported."""
    run = small_run(tmp_path / "r", "tic-tac-toe")
    (run.root / "evil.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'harm')!r})\n")
    text = (run.root / "run.toml").read_text()
    (run.root / "run.toml").write_text(text.replace('game = "tic-tac-toe"', 'game = "evil:Evil"'))
    return run.root


READ_ONLY = (["status"], ["status", "--json"], ["replay", "ls"], ["replay", "verify"], ["doctor"])


@pytest.mark.parametrize("command", READ_ONLY, ids=" ".join)
@pytest.mark.parametrize("at", ["inside", "outside"])
def test_commands_that_do_not_need_the_rules_never_import_them(evil: Path, tmp_path: Path, command: list[str], at: str):
    done = plyzero(*command, "--run", "." if at == "inside" else "r", cwd=evil if at == "inside" else tmp_path)
    assert done.stderr == ""
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("command", [["replay", "export", "--run", "."], ["selfplay", "--run", "."]], ids=" ".join)
def test_a_module_is_never_imported_from_a_run_directory(evil: Path, tmp_path: Path, command: list[str]):
    done = plyzero(*command, cwd=evil)
    assert done.returncode == 2
    assert "the module 'evil' is not imported" in done.stderr
    assert "keep the rules in a directory of their own" in done.stderr
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("where", ["path", "link", "package", "below"])
def test_a_module_in_a_run_is_not_imported_however_found(
    evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if where == "path":
        monkeypatch.syspath_prepend(evil)
    elif where == "link":
        (elsewhere / "linked").symlink_to(evil)
        monkeypatch.syspath_prepend(elsewhere / "linked")
    elif where == "package":
        (elsewhere / "evil").symlink_to(evil)
        (evil / "__init__.py").write_text((evil / "evil.py").read_text())
        monkeypatch.syspath_prepend(elsewhere)
    else:
        (evil / "models" / "evil.py").write_text((evil / "evil.py").read_text())
        elsewhere = evil / "models"
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(UserError, match="is in the run directory"):
        load_game("evil:Evil")
    assert not (tmp_path / "harm").exists()


@pytest.mark.slow
def test_a_training_in_its_run_directory_imports_nothing_from_there(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "rating.games=2")
    for name in ("watchdog", "onnx", "zarr"):
        (run.root / f"{name}.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'harm')!r})\n")
    command = ["train", "tic-tac-toe", "--run", ".", "--workers", "1", "--minutes", "0.05"]
    done = plyzero_process(*command, cwd=run.root, isolated=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "harm").exists()


def test_a_run_is_verified_without_its_rules(tmp_path: Path):
    run = small_run(tmp_path / "r", "connect-four")
    write(run.segments, some_games(run.game, 1), run.game, run_id=run.id)
    text = (run.root / "run.toml").read_text()
    (run.root / "run.toml").write_text(text.replace('"connect-four"', '"gone:Gone"'))
    done = plyzero("replay", "verify", "--run", str(run.root))
    assert "game is 'connect-four v1', not 'gone:Gone v1'" in done.stdout
    assert read_run(run.root).identity == "gone:Gone v1"
    with pytest.raises(UserError, match="there is no module 'gone'"):
        open_run(run.root)


NAMES = (
    f"w0{ESCAPES}.00000000.json",
    "\x1b[31mred.json",
    "\u202etxt.json",
    "a" * 240 + ".json",
    "-rf.json",
    "w\\x1b[2J.json",
    "[red]w[.00000000.json",
    "w0.00000000\n.json",
)


@pytest.fixture
def strange(tmp_path: Path) -> Run:
    """A run in which every name and every text has escapes, as far as files can have them."""
    run = small_run(tmp_path / "r", "tic-tac-toe")
    beat = {"state": f"paused: {ESCAPES}", "beats": 1, "pid": 1, "host": ESCAPES, "role": "selfplay", "model": ESCAPES}
    for name in NAMES:
        put(run.workers, name, beat)
    put(run.workers, "trainer.json", {**beat, "role": "trainer", "warning": ESCAPES * 100, "state": ESCAPES})
    for directory in (run.segments, run.journals, run.models, run.quarantine, run.metrics):
        directory.mkdir(exist_ok=True)
        for name in NAMES:
            put(directory, name, b"x")
    put(run.journals, "w0.0123abcd-00000000.wal", b"x")
    append_line(run.metrics / "rating.jsonl", {"model": ESCAPES, "scores": {ESCAPES: [1, 2, 3]}})
    return run


@pytest.mark.parametrize("command", [*READ_ONLY, ["play", "tic-tac-toe"], ["health"]], ids=" ".join)
def test_no_name_and_no_text_of_a_run_controls_the_terminal(strange: Run, command: list[str]):
    done = plyzero(*command, "--run", str(strange.root))
    for line in (done.stdout + done.stderr).split("\n"):
        assert line.isprintable(), line
        assert len(line) < 2200 or "--json" in command
    if "--json" in command:
        json.loads(done.stdout)


ESCAPED = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in ESCAPES)  # as TOML writes them
TEXTS = {
    "game": f'game = "tic-tac-toe{ESCAPED}"',
    "preset": f'preset = "{ESCAPED}"',
    "format": f'format = "{ESCAPED}"',
    "game_version": f'game_version = "{ESCAPED}"',
    "seed": f'seed = "{ESCAPED}"',
    "a key": f'"{ESCAPED}" = 1',
    "a section": f'["{ESCAPED}"]\nx = 1\n[x]',
    "a long game": f'game = "{"x" * 16_000}"',
    "a long key": f'"{"x" * 16_000}" = 1',
}


@pytest.mark.parametrize("what", TEXTS)
def test_no_text_of_a_run_toml_controls_the_terminal(strange: Run, what: str):
    path = strange.root / "run.toml"
    text = re.sub(rf"(?m)^{what} = .*$\n", "", path.read_text())
    path.write_text(f"{TEXTS[what]}\n{text}")
    done = plyzero("status", "--run", str(strange.root))
    assert done.returncode == 2
    assert done.stderr.removesuffix("\n").isprintable()
    assert len(done.stderr) < 2200


def test_a_log_line_is_one_line_of_printable_text(caplog: pytest.LogCaptureFixture):
    record = logging.LogRecord("plyzero", logging.WARNING, "x.py", 1, "keeping %s", (ESCAPES * 1000,), None)
    text = LOG_FORMATS["text"].format(record)
    assert text.isprintable()
    assert len(text) < 2200
    assert json.loads(LOG_FORMATS["json"].format(record))["message"].startswith("keeping \x1b")
    assert LOG_FORMATS["json"].format(record).isprintable()


@pytest.mark.parametrize("form", LOG_FORMATS)
@pytest.mark.parametrize("long", [ESCAPES, "x" * 1_000_000, "x\n" * 500_000, ("x" * 5000 + "\n") * 1000])
def test_a_log_line_with_a_traceback_keeps_its_lines_and_none_is_long(form: str, long: str):
    try:
        raise ValueError(long)
    except ValueError:
        record = logging.LogRecord("plyzero", logging.ERROR, "x.py", 1, "failed: x%s", (long,), sys.exc_info())
    text = LOG_FORMATS[form].format(record)
    lines = text.replace("\\n", "\n").splitlines()
    assert len(lines) >= 4
    assert all(line.isprintable() for line in lines)
    assert (len(text) < 500_000, max(map(len, lines)) < 2200, "failed: x" in text) == (True, True, True)


def test_plain_text_is_printable_and_bounded():
    assert plain("Zug nach e4 – 続く") == "Zug nach e4 – 続く"
    assert plain("a\x1b[31mb\nc") == "a?[31mb c"
    assert plain("x" * 3000, 100) == "x" * 97 + "..."
