"""Definitions and plans: what a TOML file means, and what is wrong with it, before anything starts."""

import copy
import functools
import json
import operator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from plyzero.errors import UserError
from plyzero.kits.experiments.definition import FOLDER, Definition, parse_parameters, read_definition, schema, shipped
from plyzero.kits.experiments.plan import Plan, make_plan

SMALL: dict[str, Any] = {
    "version": 1,
    "name": "small",
    "parameters": {"runs": 2, "rate": 0.5, "game": "hex", "fast": True, "names": ["a", "b c"]},
    "matrix": {"seed": "runs"},
    "tasks": {
        "train": {"command": "train {seed} --in {run} --out {out} -p 'x={game} {names}'", "per_run": True},
        "judge": {
            "command": "judge {previous}",
            "per_run": True,
            "needs": ["train"],
            "previous": ["train"],
            "when": "train.score >= {rate}",
        },
        "average": {"command": "average {all}", "after": ["judge", "train"], "out": "means"},
    },
}


def changed(path: str, to: object) -> dict[str, Any]:
    """Return SMALL with another value at a path, such as tasks/train/command; None removes it."""
    definition = copy.deepcopy(SMALL)
    *parents, key = path.split("/")
    inner = functools.reduce(operator.getitem, parents, definition)
    inner[key] = to
    if to is None:
        del inner[key]
    return definition


def plan_of(found: dict[str, Any], *options: str) -> Plan:
    definition = Definition.model_validate(found)
    return make_plan(definition, parse_parameters(definition, options))


def test_a_plan_has_a_task_for_each_run_with_all_words_filled_in():
    plan = plan_of(SMALL, "names=d e", "names=f")
    tasks = {task.name: task for task in plan.tasks}
    assert [*tasks] == ["run-00/train", "run-01/train", "run-00/judge", "run-01/judge", "average"]
    command = ("train", "1", "--in", "run-01", "--out", "run-01/train", "-p", "x=hex 'd e' f")
    assert tasks["run-01/train"].command == command
    judge = tasks["run-01/judge"]
    assert (judge.needs, judge.after, judge.command) == (("run-01/train",), ("run-00/train",), ("judge", "run-00"))
    (condition,) = judge.conditions
    assert (condition.task, condition.file) == ("run-01/train", "run-01/train/values/score")
    assert condition.holds(0.5)
    assert not condition.holds(0.499)
    assert tasks["average"].after == ("run-00/judge", "run-01/judge", "run-00/train", "run-01/train")
    assert tasks["average"].command == ("average", "run-00 run-01")
    assert tasks["average"].out == "means"


def test_runs_are_all_combinations_of_the_matrix():
    found = changed("matrix", {"seed": "runs", "name": "names"})
    assert plan_of(found).runs == {
        "run-00": {"seed": 0, "name": "a"},
        "run-01": {"seed": 0, "name": "b c"},
        "run-02": {"seed": 1, "name": "a"},
        "run-03": {"seed": 1, "name": "b c"},
    }
    assert [*plan_of(SMALL, "runs=101").runs][-1] == "run-100"


@pytest.mark.parametrize(
    ("options", "value"),
    [(["runs=7"], 7), (["rate=1e-3"], 0.001), (["fast=False"], False), (["game=a=b"], "a=b"), (["names=x"], ["x"])],
)
def test_a_parameter_has_the_type_of_its_default(options: list[str], value: object):
    found = parse_parameters(Definition.model_validate(SMALL), options)
    assert found[options[0].partition("=")[0]] == value


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("rums=3", "small has no parameter 'rums'; the nearest is runs"),
        ("runs=three", "expected -p runs=A WHOLE NUMBER, got 'three'"),
        ("runs=2.5", "expected -p runs=A WHOLE NUMBER, got '2.5'"),
        ("rate=nan", "expected -p rate=A NUMBER, got 'nan'"),
        ("fast=1", "expected -p fast=TRUE OR FALSE, got '1'"),
        ("runs", "expected -p NAME=VALUE, such as -p runs=3, got 'runs'"),
        ("runs=0", "expected runs to be a number from 1 to 1000 or a list of values, got 0"),
        ("runs=1001", "expected runs to be a number from 1 to 1000 or a list of values, got 1001"),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_sentence(option: str, message: str):
    with pytest.raises(UserError) as error:
        plan_of(SMALL, option)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        ("taks", {}, "the file has the unknown key 'taks'; the nearest is tasks"),
        ("tasks/train/comand", "x", "[tasks.train] has the unknown key 'comand'; the nearest is command"),
        ("tasks/train/command", None, "[tasks.train] has no command"),
        ("tasks/train/retries", "2", "retries in [tasks.train] should be a valid integer, got '2'"),
        ("tasks/Train it", {"command": "x"}, "[tasks] has the name 'Train it'; expected small letters"),
        ("tasks", {}, "tasks in the file"),
        ("version", 2, "version in the file should be 1, got 2"),
        ("tasks/train/out", "\0", "out in [tasks.train] expected text without the character NUL, got '\\x00'"),
        ("tasks/train/command", "a \0", "command in [tasks.train] expected text without the character NUL"),
        ("tasks/train/node_selector", {"disk": "\0"}, "node_selector in [tasks.train] expected text without"),
        ("parameters/names", ["a", "\0"], "parameters in the file expected text without the character NUL"),
        ("description", "\0", "description in the file expected text without the character NUL"),
        ("name", None, "the file has no name"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_and_the_nearest_one(path: str, to: object, message: str, tmp_path: Path):
    file = tmp_path / "wrong.toml"
    file.write_text(tomli_w.dumps(changed(path, to)))
    with pytest.raises(UserError) as error:
        read_definition(file)
    assert str(error.value).startswith(f"{file}: {message}")
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_or_no_toml_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"cannot read .*none.toml: No such file or directory"):
        read_definition(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_text("version = = 1")
    with pytest.raises(UserError, match=r"x.toml is not TOML: Invalid value"):
        read_definition(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        ("tasks/judge/needs", ["trian"], "task judge: needs names the unknown task 'trian'; the nearest is train"),
        ("tasks/average/after", ["jugde"], "task average: after names the unknown task 'jugde'; the nearest is judge"),
        ("tasks/train/needs", ["judge"], "the tasks wait for each other: run-00/train -> run-00/judge -> run-00/train"),
        ("tasks/train/after", ["average"], "the tasks wait for each other: run-00/train -> average -> run-00/judge "),
        ("tasks/average/needs", ["judge"], "task average: judge is of each run; write after = ['judge'], which waits"),
        ("tasks/average/previous", ["judge"], "task average: previous is for tasks of each run"),
        ("tasks/judge/when", "train.score > high", "task judge: expected when = 'TASK.VALUE >= NUMBER', such as"),
        ("tasks/judge/when", "average.score > 1", "task judge: when compares a value of average, which is not in nee"),
        ("tasks/judge/when", "train.score > {rat}", "task judge: no variable is called {rat}; the nearest is rate"),
        ("tasks/train/cpus", 0, "task train: expected cpus, or a parameter, from 1 to 1024, got 0 = 0"),
        ("tasks/train/cpus", "cores", "task train: expected cpus, or a parameter, from 0 to 1024, got cores = None"),
        ("tasks/train/command", "train {sed}", "task train: no variable is called {sed}; the nearest is seed"),
        ("tasks/average/command", "average {run}", "task average: no variable is called {run}; the nearest is r"),
        ("tasks/train/command", "train {seed", "task train: a brace without its other half in '{seed'"),
        ("tasks/train/command", "train 'x", "task train: its command cannot be split into words: No closing"),
        ("tasks/average/out", "../x", "task average: expected out to be a name in the experiment's directory, got"),
        ("tasks/average/out", "/x", "task average: expected out to be a name in the experiment's directory, got"),
        ("tasks/average/out", ".", "task average: expected out to be a name in the experiment's directory, got"),
        ("tasks/average/out", "state", "task average: expected out to be a name in the experiment's directory, got"),
        ("tasks/average/out", "run-00", "tasks run-00/train and average have the same output run-00; change out"),
        ("tasks/judge/out", "train", "tasks run-00/train and run-00/judge have the same output run-00/train; chan"),
        ("matrix/seed", "rums", "[matrix] names the unknown parameter 'rums'; the nearest is runs"),
        ("matrix/seed", "game", "expected game to be a number from 1 to 1000 or a list of values, got 'hex'"),
        ("matrix/out", "runs", "[matrix] has the variable out, which has a meaning of its own; rename it"),
        ("parameters/all", 1, "the parameter all has the name of a variable; rename it"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_is_refused_in_one_sentence(path: str, to: object, message: str):
    with pytest.raises(UserError) as error:
        plan_of(changed(path, to))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["train-and-compare", "sweep"])
def test_the_shipped_experiments_are_plans_and_their_schema_is_the_shipped_one(name: str):
    definition = read_definition(shipped()[name])
    plan = make_plan(definition, parse_parameters(definition, []))
    assert definition.name == name
    assert len(plan.tasks) > 10
    assert json.loads((FOLDER / "schema.json").read_text()) == schema()


def test_braces_are_written_twice():
    (task,) = plan_of({"version": 1, "name": "x", "tasks": {"a": {"command": "echo {{x}} $HOME"}}}).tasks
    assert task.command == ("echo", "{x}", "$HOME")
