"""plyzero experiment, as a person uses it."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.helpers.cli import plyzero, refused, shown
from tests.helpers.surroundings import wait_until

DEFINITION = """
version = 1
name = "echo"

[parameters]
runs = 2
text = "some words"
bad = "never"

[matrix]
seed = "runs"

[tasks.write]
per_run = true
command = "sh -c 'mkdir -p {run}; echo writes {seed}; echo \\"$0\\" > {out}; test {run} != {bad}' {text}"

[tasks.join]
command = "sh -c 'cat run-*/write > {out}'"
after = ["write"]
out = "index.html"
"""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def command(tmp_path: Path, out: Path) -> tuple[str, ...]:
    (tmp_path / "echo.toml").write_text(DEFINITION)
    return "experiment", "run", f"{tmp_path}/echo.toml", "--out", str(out)


def test_an_experiment_runs_once_and_says_what_came_of_it(command: tuple[str, ...], out: Path):
    done = plyzero(*command, "-p", "runs=3")
    assert (done.returncode, done.stdout) == (0, f"4 of 4 tasks are done; results: {out}/index.html\n")
    assert "run-02/write begins\n" in done.stderr
    assert "run-02/write done in 0 s\n" in done.stderr
    assert (out / "index.html").read_text() == "some words\n" * 3
    assert (out / "logs/run-01/write.log").read_text().endswith("\nwrites 1\n")
    again = shown(*command, "-p", "runs=3")
    assert again == f"nothing to do: 4 of 4 tasks are done; results: {out}/index.html\n"
    assert refused(*command) == (
        f"plyzero: {out} was begun with other parameters: runs 3 -> 2; give --out another directory, or --update to "
        "run again what they change\n"
    )


def test_a_failure_is_named_with_its_reason_and_its_log_and_ls_shows_it(command: tuple[str, ...], out: Path):
    failed = plyzero(*command, "-p", "bad=run-01", code=1)
    assert failed.stderr.endswith(
        "plyzero: 2 of 3 tasks are done; 1 failed, which the same command tries again: run-01/write: exit code 1: "
        f"writes 1 (see {out}/logs/run-01/write.log)\n"
    )
    (out / "run-00/write").unlink()
    rows = [line.split() for line in shown("experiment", "ls", str(out)).splitlines()]
    assert rows[0][:4] == ["echo:", "runs=2,", "text=some", "words,"]
    assert rows[3] == ["run-00/write", "done", "0", "missing"]
    assert rows[4][:4] == ["run-01/write", "failed", "0", "run-01/write"]
    assert rows[4][4:] == ["exit", "code", "1:", "writes", "1"]
    found = json.loads(shown("experiment", "ls", str(out), "--json"))
    assert [(task["task"], task["state"], task["exists"]) for task in found["tasks"]] == [
        ("run-00/write", "done", False),
        ("run-01/write", "failed", True),
        ("join", "done", True),
    ]


def test_the_manifest_says_with_what_the_experiment_was_made(command: tuple[str, ...], out: Path):
    assert [plyzero(*command).returncode for _ in range(2)] == [0, 0]
    manifest = json.loads((out / "experiment.json").read_text())
    assert manifest["parameters"] == {"runs": 2, "text": "some words", "bad": "never"}
    assert manifest["runs"] == {"run-00": {"seed": 0}, "run-01": {"seed": 1}}
    last_words = [task["command"][-1] for task in manifest["tasks"]]
    assert last_words == ["some words", "some words", "cat run-*/write > index.html"]
    for call in manifest["calls"]:
        assert {"plyzero", "numpy", "torch", "python"} <= call["versions"].keys()
        assert call["machine"]["cores"] == os.cpu_count()
        assert call["time"] <= time.time()
    assert len(manifest["calls"]) == 2


def test_the_manifest_has_the_commit_and_whether_anything_was_changed(command: tuple[str, ...], tmp_path: Path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "game.py").write_text("1\n")
    for words in ("init -q", "add .", "-c user.name=x -c user.email=x commit -qm x"):
        subprocess.run(["git", *words.split()], cwd=project, check=True)
    states = []
    for number, content in enumerate(("1\n", "2\n", "3\n")):
        (project / "game.py").write_text(content)
        out = tmp_path / f"out{number}"
        plyzero(*command[:-1], str(out), cwd=project, code=0)
        states.append(json.loads((out / "experiment.json").read_text())["calls"][0]["git"])
    assert len({state["commit"] for state in states}) == 1
    assert states[0]["changes"] is None
    assert len({state["changes"] for state in states}) == 3


def test_the_shipped_experiments_are_listed_with_their_parameters():
    text = shown("experiment", "ls")
    assert "train-and-compare: Train a bot several times" in text
    assert "sweep: Compare values of settings" in text
    assert "  min_score" in text
    assert json.loads(shown("experiment", "ls", "--json"))["sweep"]["parameters"]["seeds"] == 3


def test_a_full_disk_is_one_sentence_and_nothing_runs_on(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "its/state.json"))
    with monkeypatch.context() as patch:
        patch.setattr("plyzero.kits.experiments.runner.write_record", full)
        done = plyzero(*command, code=2)
    assert done.stderr.endswith("plyzero: cannot use its/state.json: No space left on device\n")
    plyzero(*command, code=0)


def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path: Path, out: Path):
    file = tmp_path / "x.toml"
    script = 'trap "touch saved; exit 1" TERM; test -e saved || { touch begun; sleep 60 & wait; }; echo > {out}'
    text = script.replace("{ ", "{{ ").replace("; }", "; }}").replace('"', '\\"')
    file.write_text(f'version = 1\nname = "x"\n[tasks.a]\ncommand = "sh -c \'{text}\'"\n')
    command = [sys.executable, "-m", "plyzero", "experiment", "run", str(file), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until((out / "begun").exists, alive=process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert errors.endswith("plyzero: stopped; the same command continues the experiment\n")
    assert (out / "saved").exists()
    assert "stopped" in shown("experiment", "ls", str(out))
    assert plyzero("experiment", "run", str(file), "--out", str(out)).returncode == 0
