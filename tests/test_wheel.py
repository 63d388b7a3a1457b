"""The wheel, in an empty environment with the extra `cpu` alone, far from the checkout; and the core alone."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "plyzero", "games", "selfplay", "trainer")
KITS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["plyzero.commands"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def run(*command: str | Path, cwd: Path, given: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that ends with an exit code."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    options = {"cwd": cwd, "env": variables | {"COLUMNS": "120"}, "input": given, "capture_output": True, "text": True}
    done = subprocess.run([str(part) for part in command], check=False, **options)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def build_wheel(tmp_path: Path, *, without: str = "") -> Path:
    """Return a wheel built from a copy of the sources without a folder, so that nothing is left in the checkout."""
    copy = tmp_path / "sources"
    copy.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", without), symlinks=True)
        else:
            shutil.copy(source, copy / name)
    run(sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--wheel-dir", tmp_path / "wheels", cwd=copy)
    (wheel,) = (tmp_path / "wheels").glob("plyzero-*.whl")
    return wheel


def test_the_core_alone_has_the_whole_loop_and_says_which_extra_brings_the_rest(tmp_path: Path):
    wheel = build_wheel(tmp_path, without="kits")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"plyzero"}
    assert not [name for name in names if name.startswith("plyzero/kits")]
    venv.create(tmp_path / "venv")
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))  # torch and the other packages, not plyzero
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def plyzero(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run(tmp_path / "venv/bin/python", "-m", "plyzero", *arguments, **{"cwd": elsewhere, **options})

    plyzero("new", "my-game")
    plyzero("check", "my_game:MyGame", "--games", "5", cwd=elsewhere / "my-game")
    plyzero("train", "tic-tac-toe", "--run", "r", "--workers", "1", "--steps", "20", "-o", "network.channels=8")
    plyzero("play", "tic-tac-toe", "--run", "r", given="b2\nquit\n")
    plyzero("match", "r", "random", "--game", "tic-tac-toe", "--games", "2")
    plyzero("status", "--run", "r")
    for name, entry in KITS.items():
        refused = plyzero(name, "--help", code=2).stderr
        extra = entry.partition("[")[2].rstrip("]")
        assert refused.startswith(
            f"plyzero: plyzero {name} needs plyzero.kits, which cannot be found here: pip install"
        )
        assert f"[{extra}]" in refused
        assert refused.count("\n") == 1


def test_the_wheel_plays_and_checks_without_torch_in_an_empty_environment(tmp_path: Path):
    wheel = build_wheel(tmp_path)
    venv.create(tmp_path / "venv", with_pip=True)
    programs, elsewhere = tmp_path / "venv" / "bin", tmp_path / "elsewhere"
    elsewhere.mkdir()
    constraints = ROOT / "constraints.txt"
    run(programs / "pip", "install", "--quiet", "-c", constraints, f"{wheel}[cpu]", cwd=elsewhere)

    imported = run(programs / "python", "-c", "import plyzero; print(plyzero.__file__)", cwd=elsewhere).stdout
    assert Path(imported.strip()).is_relative_to(tmp_path / "venv")
    assert "No module named 'torch'" in run(programs / "python", "-c", "import torch", cwd=elsewhere, code=1).stderr

    match = ("match", "mcts:4", "random", "--game", "connect-four", "--games", "2")
    run(programs / "plyzero", *match, cwd=elsewhere)  # it compiles what no process has compiled yet
    shown = run(programs / "plyzero", "play", "connect-four", cwd=elsewhere, given="4\nquit\n").stdout
    assert "compiled" not in shown
    assert "connect-four: you move first; the bot is " in shown
    assert ", level " in shown  # pure MCTS, the opponent where no bot is bundled, has no levels
    assert "The bot plays " in shown
    checked = run(programs / "plyzero", "check", "connect-four", "--games", "5", cwd=elsewhere).stdout
    assert "connect-four v1: 22 laws hold on 5 random games" in checked  # below lines of progress
    made = run(programs / "plyzero", "new", "my-game", cwd=elsewhere).stdout
    assert made.startswith("# my-game")
    assert {path.name for path in (elsewhere / "my-game").iterdir()} == {"my_game.py", "test_my_game.py", "README.md"}
    assert "train-and-compare: " in run(programs / "plyzero", "experiment", "ls", cwd=elsewhere).stdout
    refused = run(
        programs / "plyzero", "experiment", "run", "tic-tac-toe", "--out", "out", cwd=elsewhere, code=2
    ).stderr
    assert refused.count("\n") == 1
    assert "needs torch, which cannot be found here: pip install -e '.[train]'" in refused
