"""An extra that is not installed: one sentence with the command that installs it, before anything is written."""

from pathlib import Path

import pytest

from plyzero.commands import roles
from plyzero.commands.common import describe_missing
from plyzero.errors import UserError
from tests.helpers.surroundings import plyzero_without

NEW_RUN = ["--run", "new", "--game", "tic-tac-toe"]


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        ("torch", ["train", "tic-tac-toe", "--run", "new", "--minutes", "0"], "train"),
        ("torch", ["trainer", *NEW_RUN], "train"),
        ("torch", ["imitate", "tic-tac-toe", "games.jsonl", "-o", "bot.onnx"], "train"),
        ("torch", ["init", "tic-tac-toe", "--run", "new", "--from", "bot.onnx"], "train"),
        ("torch onnx onnxruntime", ["train", "tic-tac-toe", "--run", "new", "--minutes", "0"], "train,cpu"),
        ("onnx onnxruntime", ["selfplay", *NEW_RUN], "cpu"),
        ("onnxruntime", ["play", "tic-tac-toe", "--level", "1"], "cpu"),
        ("grpc", ["evaluator", *NEW_RUN], "grpc"),
        ("grpc", ["selfplay", *NEW_RUN, "--evaluator", "127.0.0.1:1"], "grpc"),
        ("starlette", ["serve", "tic-tac-toe"], "web"),
        ("scipy", ["experiment", "run", "tic-tac-toe", "--out", "new"], "experiments"),
        ("wasmtime", ["share", "tic-tac-toe", "-o", "new"], "share"),
    ],
)
def test_a_missing_extra_is_one_sentence_before_anything_is_written(
    tmp_path: Path, missing: str, command: list[str], extra: str
):
    done = plyzero_without(missing, *command, cwd=tmp_path)
    sentence = describe_missing(missing.split())
    if "--evaluator" in command:  # other packages may bring evaluators, so it is named
        sentence = sentence.replace("this", "the evaluator 127.0.0.1:1", 1)
    assert done.stderr == f"plyzero: {sentence}\n"
    assert f"pip install -e '.[{extra}]'" in done.stderr
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_several_devices_without_the_kit_that_brings_them_are_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(roles, "find_extensions", lambda group: {})
    with pytest.raises(UserError, match=r"^--devices 2 needs the kit cluster, .*: pip install -e '.\[cluster\]'"):
        roles._prepare_devices(None, "cpu", 2)
