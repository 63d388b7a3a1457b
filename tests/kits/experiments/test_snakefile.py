"""The export to Snakemake: rules have the commands and the order of the plan, and Snakemake makes the same files."""

import ast
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from plyzero.errors import UserError
from plyzero.kits.experiments.manifest import open_experiment
from plyzero.kits.experiments.plan import Plan, make_plan
from plyzero.kits.experiments.runner import Slots, run_plan
from plyzero.kits.experiments.snakefile import snakefile
from tests.helpers.experiments import SHIPPED, experiment_of, shipped_experiment

ROOT = Path(__file__).parents[3]
SNAKEMAKE = ROOT / "build" / "snakemake"

SMALL: dict[str, Any] = {
    "train": {
        "command": """sh -c 'mkdir -p "$0/values"; echo "$1" > "$0/values/score"; echo trained; \
if ! test -e "$0/again"; then touch "$0/again"; exit 1; fi' {out} {score}""",
        "retries": 1,
        "per_run": True,
        "gpus": 1,
    },
    "judge": {
        "command": """awk -v out={out} 'BEGIN {{ print "a {{brace}} and $HOME" > out }}'""",
        "per_run": True,
        "needs": ["train"],
        "when": "train.score >= {least}",
    },
    "plot": {"command": "cp {run}/judge {out}", "per_run": True, "needs": ["judge"]},
    "average": {"command": """sh -c 'ls -d run-*/* > "$0"' {out}""", "after": ["train", "judge", "plot"]},
}
"""An experiment of a second: a training fails once, and a run with too low a score is neither judged nor plotted."""


def plan_of(tasks: dict[str, Any]) -> Plan:
    return make_plan(*experiment_of(tasks, matrix={"score": "scores"}, scores=["0.9", "0.4"], least=0.5))


def rules_of(plan: Plan, directory: Path = Path("/somewhere")) -> dict[str, dict[str, str]]:
    """Return what the Snakefile of a plan says: rule -> directive -> its text as Snakemake has it."""
    text, found = snakefile(plan, directory), {}
    for name, body in re.findall(r"^rule (\w+):\n((?:    .*\n)+)", text, flags=re.MULTILINE):
        directives = re.findall(r"^    (\w+):(.*\n(?:        .*\n)*)", body, flags=re.MULTILINE)
        found[name] = {key: value.strip() for key, value in directives}
    return found


def shell_of(rule: dict[str, str]) -> list[str]:
    """Return the lines of a rule's shell, once Snakemake has read them."""
    return ast.literal_eval(f"({rule['shell']})").format().splitlines()


def rule_name(task: str) -> str:
    return task.replace("/", "_").replace("-", "_")


def flags(rule: dict[str, str]) -> set[str]:
    return {*ast.literal_eval(f"({rule.get('input', '')})")}


@pytest.mark.parametrize("name", SHIPPED)
def test_rules_run_the_commands_of_the_plan_in_its_order(name):
    plan = make_plan(*shipped_experiment(name))
    rules = rules_of(plan)
    assert flags(rules.pop("all")) == {f"state/snakemake/{task.name}" for task in plan.tasks}
    assert rules.keys() == {rule_name(task.name) for task in plan.tasks}
    for task in plan.tasks:
        rule = rules[rule_name(task.name)]
        assert shlex.split(shell_of(rule)[-1]) == ["exec", *task.command]
        assert flags(rule) == {f"state/snakemake/{other}" for other in (*task.needs, *task.after)}
        assert rule["output"] == f"touch('state/snakemake/{task.name}')"
        assert shell_of(rule)[1] == f"exec >> logs/{task.name}.log 2>&1"
        gpus = "gpus=1, " if task.kind == "train" else ""
        assert rule["resources"] == f"{gpus}mem_mb={task.memory_mb}"
        assert rule.get("retries", "0") == str(task.retries)


def test_conditions_of_a_task_come_after_those_of_what_it_needs():
    rules = rules_of(make_plan(*shipped_experiment("train-and-compare")))
    [judged] = [line for line in shell_of(rules["run_01_evaluate"]) if line.startswith("awk")]
    assert "$1 >= 0.55" in judged
    assert "run-01/train/values/score" in judged
    assert judged in shell_of(rules["run_01_eval_plots"])
    assert not any("awk" in line for line in shell_of(rules["run_01_train_plots"]))
    chain = {
        "a": {"command": "true"},
        "b": {"command": "true", "needs": ["a"], "when": "a.x > 1"},
        "c": {"command": "true", "needs": ["b"], "when": "b.y > 2"},
    }
    lines = shell_of(rules_of(plan_of(chain))["c"])
    assert [line.split()[-6] for line in lines if line.startswith("awk")] == ["a/values/x", "b/values/y"]


@pytest.mark.parametrize("operator", [">=", "<=", "==", "!=", ">", "<"])
@pytest.mark.parametrize(
    "content", ["0.4\n", "0.5\n", "0.6", "-3\n", "5e-1", "1E+3", "00.50\n", None, "", "nan\n", "inf", "x"]
)
def test_a_shell_judges_a_value_as_the_plan_does(tmp_path, operator, content):
    judge = {"command": "touch judge", "needs": ["train"], "when": f"train.score {operator} 0.5"}
    plan = plan_of({"train": {"command": "true"}, "judge": judge})
    lines = shell_of(rules_of(plan, tmp_path)["judge"])
    if content is not None:
        (tmp_path / "train" / "values").mkdir(parents=True)
        (tmp_path / "train" / "values" / "score").write_text(content)
    script = "\n".join(["set -euo pipefail", *lines])
    code = subprocess.run(["bash", "-c", script], cwd=tmp_path, check=False).returncode
    is_number = content not in (None, "", "nan\n", "inf", "x")
    assert (code == 0) == is_number
    assert (tmp_path / "judge").exists() == (is_number and plan.tasks[1].conditions[0].holds(float(content)))


def test_time_limits_and_cpus_are_those_of_the_plan():
    tasks = {"one": {"command": "true", "cpus": 3, "gpus": 2, "timeout_minutes": 1.5}, "two": {"command": "true"}}
    rules = rules_of(plan_of(tasks))
    assert (rules["one"]["threads"], rules["one"]["resources"]) == ("3", "gpus=2, runtime=2")
    assert rules["two"]["threads"] == "1"
    assert "resources" not in rules["two"]


@pytest.mark.parametrize("tasks", [("a-b", "a_b"), ("all",)], ids=["a hyphen", "the name of the target"])
def test_tasks_that_would_be_the_same_rule_are_refused(tasks):
    with pytest.raises(UserError, match="would both be the rule"):
        rules_of(plan_of({name: {"command": "true"} for name in tasks}))


@pytest.fixture(scope="module")
def snakemake():
    """The program, in an environment of its own, which is kept: it has 55 packages that plyzero does not need."""
    ready = SNAKEMAKE / ".ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", SNAKEMAKE], check=True)
        if subprocess.run([SNAKEMAKE / "bin" / "pip", "install", "--quiet", "snakemake"], check=False).returncode:
            pytest.skip("pip cannot install snakemake")
        ready.touch()
    return SNAKEMAKE / "bin" / "snakemake"


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the outputs of the tasks and the logs; what the engines note for themselves is left out."""
    paths = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if re.match(r"run-|average|logs/", name)}


@pytest.mark.slow
def test_snakemake_makes_the_same_files_as_the_local_engine(tmp_path, snakemake):
    plan, here, there = plan_of(SMALL), tmp_path / "here", tmp_path / "there"
    slots = Slots(cpus=2, gpus=["slot 0"])
    with open_experiment(here, plan) as experiment:
        records = run_plan(plan, here, experiment, slots=slots, environment=os.environ, stop=threading.Event())
    assert records["run-01/judge"].state == records["run-01/plot"].state == "skipped"
    assert records["average"].state == "done"

    def start() -> str:
        command = [snakemake, "-s", tmp_path / "Snakefile", "--cores", "2", "--resources", "gpus=1", "--keep-going"]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
        assert found.returncode == 0, found.stderr
        return found.stderr

    (tmp_path / "Snakefile").write_text(snakefile(plan, there))
    start()
    made = files_of(there)
    # The local engine writes the command above what the task has printed.
    expected = {name: re.sub(rb"(?m)^\$ .*\n", b"", content) for name, content in files_of(here).items()}
    for name in ("run-01/judge", "run-01/plot"):  # left out: only the log of nothing is there
        assert made.pop(f"logs/{name}.log") == b""
        assert name not in made
    assert made == expected
    assert made["run-00/plot"] == b"a {brace} and $HOME\n"
    assert made["logs/run-00/train.log"] == b"trained\ntrained\n"
    assert b"run-01/train\n" in made["average"]
    assert "Nothing to be done" in start()
