"""The export to Argo: the shipped experiments, what their templates say, and that mistakes in them are found."""

import copy
import re
import subprocess
from collections import Counter
from typing import Any

import pytest
import yaml

from plyzero.errors import UserError
from plyzero.kits.experiments.argo import CHECK, GO_NUMBER, PLACE, ROOM, workflow_template
from plyzero.kits.experiments.definition import Definition, Value, shipped
from plyzero.kits.experiments.plan import Plan, make_plan
from tests.helpers.argo import STATES, check_keys, check_references, command_in_pod
from tests.helpers.experiments import SHIPPED, Experiment, experiment_of, shipped_experiment


def two_runs(**tasks: dict[str, Any]) -> Experiment:
    return experiment_of(tasks, runs=2)


def template_of(experiment: Experiment) -> dict[str, Any]:
    return yaml.safe_load(workflow_template(*experiment, name="small", image="image", claim="claim"))


def tasks_of(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tasks of the plan: all but the one that checks the arguments."""
    return {task["name"]: task for task in named(template, "experiment")["dag"]["tasks"] if task["name"] != CHECK}


def named(template: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in template["spec"]["templates"] if each["name"] == name)


def containers(template: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in template["spec"]["templates"] if "container" in each and each["name"] != CHECK]


def plan_with_room(definition: Definition, parameters: dict[str, Value]) -> Plan:
    """Return the plan whose tasks are in the template of a shipped experiment."""
    if "runs" not in parameters:
        return make_plan(definition, parameters)
    return make_plan(definition, {**parameters, "runs": ROOM}, written={"runs": str(parameters["runs"])})


@pytest.fixture(scope="module")
def template():
    return template_of(shipped_experiment("train-and-compare"))


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_experiments_are_templates_without_mistakes_whose_containers_start_the_commands_of_the_plan(name):
    assert shipped().keys() == SHIPPED.keys()
    experiment = shipped_experiment(name)
    template = template_of(experiment)
    plan = plan_with_room(*experiment)
    assert check_keys(template) == []
    assert check_references(template) == []
    found = {name: command_in_pod(template, task) for name, task in tasks_of(template).items()}
    assert found == {task.name.replace("/", "-"): task.command for task in plan.tasks}
    kinds = Counter(task.kind for task in plan.tasks)
    assert all(("inputs" in named(template, kind)) == (count > 1) for kind, count in kinds.items())


def test_a_submission_changes_the_parameters_and_has_a_directory_of_its_own():
    definition, parameters = shipped_experiment("train-and-compare")
    template = template_of((definition, parameters))
    given = {"game": "hex(size=7)", "steps": "500", "minutes": "0", "opponents": "random 'gtp:gnugo --mode gtp'"}
    opponents = ["random", "gtp:gnugo --mode gtp"]
    changed = {**parameters, "game": "hex(size=7)", "steps": 500, "minutes": 0, "opponents": opponents}
    for task in plan_with_room(definition, changed).tasks:
        found = tasks_of(template)[task.name.replace("/", "-")]
        assert command_in_pod(template, found, given) == task.command
    arguments = {each["name"]: each["value"] for each in template["spec"]["arguments"]["parameters"]}
    assert arguments.keys() == {*parameters, "outdir"}
    places = {mount["subPath"] for each in containers(template) for mount in each["container"]["volumeMounts"][:1]}
    assert places == {"{{workflow.parameters.outdir}}/{{workflow.name}}"}


@pytest.mark.parametrize(
    ("name", "given", "refused"),
    [
        ("train-and-compare", {"runs": "2", "steps": "500"}, ""),
        ("train-and-compare", {"runs": "16"}, ""),
        (
            "train-and-compare",
            {"runs": "17"},
            "expected runs from 1 to 16, got runs=17: print a template with -p runs=17",
        ),
        ("train-and-compare", {"runs": "0"}, "expected runs from 1 to 16, got runs=0: "),
        ("train-and-compare", {"runs": "all"}, "expected runs from 1 to 16, got runs=all: "),
        ("train-and-compare", {"workers": "8"}, "expected workers=0, got workers=8: "),
        ("train-and-compare", {"device": "cpu"}, "expected device=auto, got device=cpu: "),
        ("train-and-compare", {"min_score": "$HOME"}, "expected min_score=0.55, got min_score=$HOME: "),
        ("sweep", {}, ""),
        ("sweep", {"seeds": "2"}, "expected seeds=3, got seeds=2: "),
    ],
)
def test_an_argument_that_cannot_change_is_refused_by_the_first_task(name, given, refused):
    template = template_of(shipped_experiment(name))
    first, *others = named(template, "experiment")["dag"]["tasks"]
    assert (first["name"], "depends" in first) == (CHECK, False)
    assert all(re.match(r"[\w-]+\.Succeeded( && |$)", each["depends"]) for each in others)
    done = subprocess.run(command_in_pod(template, first, given), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[: len(refused)]) == (int(bool(refused)), refused)


def test_braces_in_the_value_of_a_parameter_are_refused():
    definition, parameters = shipped_experiment("train-and-compare")
    with pytest.raises(UserError, match="Argo would read the braces in"):
        template_of((definition, parameters | {"settings": "{{workflow.name}}"}))


@pytest.mark.parametrize("runs", [1, 5, 16])
def test_the_tasks_over_all_runs_take_as_many_runs_as_were_submitted(template, runs):
    for name in ("average", "ladder", "index"):
        words = command_in_pod(template, tasks_of(template)[name], {"runs": str(runs)})
        assert f"first={runs}" in words
        assert f"runs={' '.join(f'run-{run:02d}' for run in range(ROOM))}" in words


def test_a_number_of_runs_that_decides_anything_else_cannot_change():
    task = {"command": "plyzero {seed}", "per_run": True, "out": "of-{runs}"}
    template = template_of(two_runs(each=task))
    assert len(tasks_of(template)) == 2
    first = named(template, "experiment")["dag"]["tasks"][0]
    done = subprocess.run(command_in_pod(template, first, {"runs": "1"}), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "expected runs=2, got runs=1: print a template with -p runs=1\n")


def test_a_submission_can_ask_for_fewer_and_for_more_runs(template):
    when = {name: task.get("when", "") for name, task in tasks_of(template).items()}
    assert when["run-15-train"] == "{{workflow.parameters.runs}} > 15"
    assert when["run-02-train"] == "{{workflow.parameters.runs}} > 2"
    assert when["run-01-evaluate"].startswith("{{workflow.parameters.runs}} > 1 && {{tasks.run-01-train.")
    assert when["average"] == when["ladder"] == ""
    by_values = template_of(shipped_experiment("sweep"))
    assert not any("when" in task for task in tasks_of(by_values).values())


def gpus_of(template: dict[str, Any]) -> dict[str, str]:
    limits = {each["name"]: each["container"]["resources"]["limits"] for each in containers(template)}
    return {name: each["nvidia.com/gpu"] for name, each in limits.items() if "nvidia.com/gpu" in each}


@pytest.mark.parametrize("name", SHIPPED)
def test_only_trainings_ask_for_a_gpu_and_none_does_with_the_device_cpu(name):
    definition, parameters = shipped_experiment(name)
    assert gpus_of(template_of((definition, parameters))) == {"train": "1"}
    assert gpus_of(template_of((definition, parameters | {"device": "cuda"}))) == {"train": "1"}
    assert gpus_of(template_of((definition, parameters | {"device": "cpu"}))) == {}


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("workers", [0, 5])
def test_a_task_finds_as_many_cores_as_it_asks_for_and_says_how_much_memory_it_needs(name, workers):
    definition, parameters = shipped_experiment(name)
    for each in containers(template_of((definition, parameters | {"workers": workers}))):
        requests, limits = (each["container"]["resources"][key] for key in ("requests", "limits"))
        assert limits["cpu"] == requests["cpu"] == str(max(1, workers) if each["name"] == "train" else 1)
        assert requests["memory"] == f"{definition.tasks[each['name']].memory_mb}Mi"


def test_averages_wait_for_all_runs_in_whatever_way_they_end(template):
    tasks = [f"run-{run:02d}-{kind}" for kind in ("train", "evaluate") for run in range(ROOM)]
    every_end = [" || ".join(f"{task}.{state}" for state in STATES) for task in tasks]
    assert tasks_of(template)["average"]["depends"] == f"{CHECK}.Succeeded && ({') && ('.join(every_end)})"
    assert tasks_of(template)["average-plots"]["depends"] == "average.Succeeded"
    assert named(template, "experiment")["dag"]["failFast"] is False


def test_conditions_compare_the_value_that_the_same_run_has_written(template):
    when = {name: task["when"] for name, task in tasks_of(template).items() if "tasks." in task.get("when", "")}
    text = (
        "{{{{workflow.parameters.runs}}}} > {run} && {{{{tasks.run-{run:02d}-train.outputs.parameters.score}}}} >= 0.55"
    )
    kinds = ("evaluate", "examples")
    assert when == {f"run-{run:02d}-{kind}": text.format(run=run) for kind in kinds for run in range(ROOM)}
    [output] = named(template, "train")["outputs"]["parameters"]
    path = "/experiment/{{inputs.parameters.out}}/values/score"
    assert output == {"name": "score", "valueFrom": {"path": path, "default": "nan"}}
    arguments = tasks_of(template)["run-01-train"]["arguments"]["parameters"]
    assert {"name": "out", "value": "run-01/train"} in arguments


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("train.loss < 0.00001", "VALUE < 0.00001"),
        ("train.loss > -2", "VALUE > -2.0"),
        ("train.loss == 1", "VALUE >= 1.0 && VALUE <= 1.0"),
        ("train.loss != 1", "(VALUE > 1.0 || VALUE < 1.0)"),
    ],
)
def test_conditions_are_written_so_that_a_missing_number_is_an_error(condition, expected):
    after = {"command": "plyzero", "needs": ["train"], "when": condition}
    template = template_of(two_runs(train={"command": "plyzero"}, after=after))
    found = tasks_of(template)["after"]["when"]
    assert found == expected.replace("VALUE", "{{tasks.train.outputs.parameters.loss}}")
    [output] = named(template, "train")["outputs"]["parameters"]
    assert output["valueFrom"]["path"] == "/experiment/train/values/loss"


def test_containers_are_locked_down_and_share_the_claim(template):
    spec = template["spec"]
    assert {"name": "experiment", "persistentVolumeClaim": {"claimName": "claim"}} in spec["volumes"]
    assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, 10001)
    for each in containers(template):
        container = each["container"]
        assert (container["image"], container["workingDir"]) == ("image", "/experiment")
        assert {"name": "experiment", "mountPath": "/experiment", "subPath": PLACE} in container["volumeMounts"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_retries_time_limits_and_resources_are_those_of_the_plan():
    room = {"memory_mb": 4096, "gpus": 1, "node_selector": {"disk": "ssd"}}
    limited = {"command": "plyzero", "retries": 2, "timeout_minutes": 0.51, "cpus": 3, **room}
    train, other = containers(template_of(two_runs(train=limited, other={"command": "plyzero"})))
    assert train["retryStrategy"] == {"limit": 2, "retryPolicy": "Always"}
    assert train["activeDeadlineSeconds"] == 31
    gpu = {"nvidia.com/gpu": "1"}
    requests, limits = {"cpu": "3", "memory": "4096Mi", **gpu}, {"cpu": "3", **gpu}
    assert train["container"]["resources"] == {"requests": requests, "limits": limits}
    assert train["nodeSelector"] == {"disk": "ssd"}
    assert not {"retryStrategy", "activeDeadlineSeconds"} & other.keys()


def test_any_word_arrives_unchanged():
    words = ["a b", "it's", 'say "x"', "$HOME", "$(date)", "$$", "1e3", "007", "0o17"]
    words += ["no", "y", "null", "~", "é", "", "#"]
    quoted = ["'it'\"'\"'s'" if word == "it's" else f"'{word}'" for word in words]
    experiment = two_runs(each={"command": f"plyzero {' '.join(quoted)} 'two\nlines' {{seed}}", "per_run": True})
    template = template_of(experiment)
    assert check_keys(template) == []
    found = tasks_of(template)
    for task in make_plan(*experiment).tasks:
        in_pod = command_in_pod(template, found[task.name.replace("/", "-")])
        assert in_pod == task.command == ("plyzero", *words, "two\nlines", str(task.run)[-1])


def test_texts_that_argo_could_read_as_numbers_have_quotes():
    experiment = two_runs(one={"command": "plyzero 1e3 0o17 1 -.5 1_0"})
    text = workflow_template(*experiment, name="a", image="a", claim="a")
    assert [word for word in ("1e3", "0o17", "1", "-.5", "1_0") if f"- '{word}'\n" not in text] == []
    assert not GO_NUMBER.fullmatch("run-00")


@pytest.mark.parametrize("name", ["", "Small", "a_b", "a.b", "-a", "a-", "a/b", "a" * 58])
def test_names_that_kubernetes_refuses_are_refused(name):
    with pytest.raises(UserError, match="expected --name to be"):
        workflow_template(*two_runs(one={"command": "plyzero"}), name=name, image="image", claim="claim")


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ({"one": {"command": "plyzero '{{{{x}}}}'"}}, "Argo would read the braces"),
        ({"a-b": {"command": "plyzero"}, "a_b": {"command": "plyzero"}}, "would both be a-b in Argo"),
        ({"train": {"command": "plyzero", "per_run": True}, "run-00-train": {"command": "plyzero"}}, "would both be"),
        ({"experiment": {"command": "plyzero"}}, "would both be experiment in Argo"),
        ({CHECK: {"command": "plyzero"}}, "would both be arguments in Argo"),
    ],
)
def test_commands_and_tasks_that_argo_would_confuse_are_refused(tasks, expected):
    with pytest.raises(UserError, match=expected):
        template_of(two_runs(**tasks))


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (lambda it: named(it, "train").update(retryStratgy={"limit": 1}), "retryStratgy"),
        (lambda it: tasks_of(it)["ladder"].update(template="laddr"), "ladder: no template is called laddr"),
        (lambda it: tasks_of(it)["average"].update(depends="index.Succeeded"), "wait for each other"),
        (lambda it: tasks_of(it)["run-01-train"]["arguments"]["parameters"].pop(), "differ from the inputs of train"),
        (lambda it: named(it, "train").pop("outputs"), "run-00-train has no output parameter score"),
    ],
)
def test_planted_mistakes_are_found(template, mistake, expected):
    changed = copy.deepcopy(template)
    mistake(changed)
    found = [*check_keys(changed), *check_references(changed)]
    assert any(expected in each for each in found), found
