"""The files for Kubernetes and Slurm: valid, without the mistakes that no schema finds, and read by plyzero."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from plyzero import __version__
from tests.helpers import kubernetes
from tests.helpers.cli import parsed
from tests.helpers.kubernetes import Object, arguments_of, container_of, environment_of, mistakes, of_kind, render

ROOT = Path(__file__).parent.parent
KUBERNETES, SLURM = ROOT / "deploy" / "kubernetes", ROOT / "deploy" / "slurm"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
ROLES = ("selfplay", "trainer", "rater")
COMMANDS = {"rater": "rate"}
OPTIONS_OF_PODS = {"--name", "--device", "--scratch", "--evaluator", "--stopped-code"}
FOLDERS = ("base", *sorted(path.parent.relative_to(KUBERNETES).as_posix() for path in KUBERNETES.glob("overlays/*/*")))


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Object]]:
    """The objects of the base, of every overlay, and of the kustomization in the guide, by name."""
    beside = tmp_path_factory.mktemp("guide")
    shutil.copytree(ROOT / "deploy", beside / "plyzero" / "deploy")
    page = (ROOT / "docs" / "scaling.md").read_text()
    whole, games = re.findall(r"^ *```yaml\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    guide = yaml.safe_load(whole)
    guide["configMapGenerator"] += yaml.safe_load(games)["configMapGenerator"]
    parts = [f"../plyzero/deploy/kubernetes/components/{name}" for name in ("gpu", "spot", "evaluator", "s3")]
    everything = {"resources": ["../plyzero/deploy/kubernetes/base"], "components": parts}
    for name, content in (("guide", guide), ("everything", everything)):
        (beside / name).mkdir()
        (beside / name / "kustomization.yaml").write_text(yaml.safe_dump(content))
        (beside / name / "my_game.py").write_text("# rules\n")
    places = {name: KUBERNETES / name for name in FOLDERS} | {name: beside / name for name in ("guide", "everything")}
    return {name: render(place) for name, place in places.items()}


def named(objects: list[Object], kind: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in of_kind(objects, kind)}


def in_a_bucket(objects: list[Object]) -> bool:
    return not of_kind(objects, "PersistentVolumeClaim")


def workloads(objects: list[Object]) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in kubernetes.workloads(objects)}


def options_of(objects: list[Object], role: str, **pod: str) -> dict[str, Any]:
    return parsed(arguments_of(objects, workloads(objects)[role], **pod))[1]


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A folder with a `plyzero` that prints its arguments, one on each line."""
    program = tmp_path / "bin" / "plyzero"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    return program.parent


def words_given(command: list[str | Path], folder: Path, variables: dict[str, str]) -> list[str]:
    """Return what the stand-in of plyzero gets when this command runs."""
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_base_overlays_and_the_kustomization_of_the_guide_have_no_mistakes(rendered: dict[str, list[Object]]):
    assert FOLDERS == ("base", "overlays/evaluator", "overlays/gpu", "overlays/s3", "overlays/spot")
    assert {name: mistakes(objects) for name, objects in rendered.items() if mistakes(objects)} == {}


def test_workers_and_trainer_are_started_as_by_compose(rendered: dict[str, list[Object]]):
    for name, objects in rendered.items():
        assert workloads(objects).keys() == {*ROLES, *(["evaluator"] if of_kind(objects, "Service") else [])}
        for role, pod in workloads(objects).items():
            words, settings = arguments_of(objects, pod), environment_of(objects, pod, "")
            command, options = parsed(words)
            assert command == COMMANDS.get(role, role)
            where = f"s3://{settings['BUCKET']}" if in_a_bucket(objects) else "/runs"
            assert (str(options["run"]), options["game"]) == (f"{where}/{settings['RUN']}", settings["GAME"])
            assert options["scratch"] == (Path("/scratch") if in_a_bucket(objects) else None)
            flags = {word.partition("=")[0] for word in words} - OPTIONS_OF_PODS
            if role in ROLES:
                assert flags == {word.partition("=")[0] for word in COMPOSE["services"][role]["command"]}
        assert options_of(objects, "selfplay", pod="selfplay-1-a")["name"] == "selfplay-1-a"
        on_gpu = options_of(objects, "trainer")["device"] == "cuda"
        assert on_gpu == (name in ("overlays/gpu", "guide", "everything"))


def test_workers_ask_the_evaluator_and_the_policies_let_them(rendered: dict[str, list[Object]]):
    for name, objects in rendered.items():
        asked = options_of(objects, "selfplay")["evaluator"]
        if name not in ("overlays/evaluator", "everything"):
            assert asked is None
            continue
        (service,) = of_kind(objects, "Service")
        (port,) = service["spec"]["ports"]
        assert asked == f"{service['metadata']['name']}:{port['port']}"
        assert options_of(objects, "evaluator")["port"] == port["port"]
        policies = named(objects, "NetworkPolicy")
        (into,), out = policies["plyzero-evaluator"]["spec"]["ingress"], policies["plyzero-selfplay"]["spec"]["egress"]
        pods = {role: each["spec"]["template"]["metadata"]["labels"] for role, each in workloads(objects).items()}
        for rule, peers, other in ((into, "from", "selfplay"), (out[0], "to", "evaluator")):
            ((peer,), (allowed,)) = rule[peers], rule["ports"]
            assert kubernetes.chosen_by(peer["podSelector"], pods) == [other]
            assert allowed == {"port": port["port"], "protocol": "TCP"}


def test_the_game_and_settings_of_the_guide_reach_all_processes(rendered: dict[str, list[Object]]):
    for role in ROLES:
        pod = workloads(rendered["guide"])[role]
        assert options_of(rendered["guide"], role)["game"] == "othello(size=6)"
        assert environment_of(rendered["guide"], pod, "")["PLYZERO_SELFPLAY__SIMULATIONS"] == "128"
        games = kubernetes.volumes_of(pod)["games"]["configMap"]["name"]
        assert games in named(rendered["guide"], "ConfigMap")
        assert container_of(pod)["image"].startswith("registry.example/plyzero-")


def test_every_variable_is_one_that_compose_knows(rendered: dict[str, list[Object]]):
    passed = set(COMPOSE["x-role"]["environment"]) | {"GAME", "RUN", "PRESET", "LOG_FORMAT"}
    for objects in rendered.values():
        for pod in kubernetes.workloads(objects):
            found = set(environment_of(objects, pod, "")) - {"POD_NAME"}
            assert found - passed == ({"BUCKET", "AWS_REGION"} if in_a_bucket(objects) else set())


def test_a_change_of_a_setting_restarts_the_pods(rendered: dict[str, list[Object]]):
    names = [container_of(workloads(rendered[each])["selfplay"])["envFrom"] for each in ("base", "overlays/gpu")]
    assert names[0] != names[1]  # the name of a ConfigMap ends with a hash of its content


def test_the_probes_are_those_of_compose(rendered: dict[str, list[Object]], stand_in: Path):
    times = COMPOSE["x-role"]["healthcheck"]
    for objects in rendered.values():
        for pod in kubernetes.workloads(objects):
            variables = environment_of(objects, pod, "") | {"RUN": "a run; of two"}
            where = f"s3://{variables['BUCKET']}" if in_a_bucket(objects) else "/runs"
            for probe in (container_of(pod)["livenessProbe"], container_of(pod)["startupProbe"]):
                command, options = parsed(words_given(probe["exec"]["command"], stand_in, variables))
                assert (command, str(options["run"])) == ("health", f"{where}/a run; of two")
                assert options["scratch"] == (Path("/scratch") if in_a_bucket(objects) else None)
                assert f"{probe['periodSeconds']}s" == times["interval"]
                assert f"{probe['timeoutSeconds']}s" == times["timeout"]
            assert container_of(pod)["livenessProbe"]["failureThreshold"] == times["retries"]
            startup = container_of(pod)["startupProbe"]
            needed = int(times["start_period"].removesuffix("s"))
            assert startup["periodSeconds"] * startup["failureThreshold"] >= needed
            grace = pod["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
            assert f"{grace}s" == COMPOSE["x-role"]["stop_grace_period"]


def test_there_is_one_trainer_at_a_time_and_all_nodes_write_to_the_volume(rendered: dict[str, list[Object]]):
    for objects in rendered.values():
        trainer = workloads(objects)["trainer"]["spec"]
        assert trainer.get("parallelism", 1) == trainer.get("completions", 1) == 1
        for claim in of_kind(objects, "PersistentVolumeClaim"):
            assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
        policy = named(objects, "NetworkPolicy")["plyzero"]["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        rules = {key: value for key, value in policy.items() if key not in ("podSelector", "policyTypes")}
        to_the_store = [{"port": 53, "protocol": "UDP"}, *({"port": port, "protocol": "TCP"} for port in (53, 443))]
        assert rules == ({"egress": [{"ports": to_the_store}]} if in_a_bucket(objects) else {})


def test_trainer_and_rater_end_with_the_training_and_are_started_again_when_they_are_stopped(
    rendered: dict[str, list[Object]],
):
    for objects in rendered.values():
        assert named(objects, "Job").keys() == {"trainer", "rater"}
        for role, job in named(objects, "Job").items():
            assert options_of(objects, role)["stopped_code"] > 0
            assert job["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
            assert job["spec"]["backoffLimit"] >= 1_000_000


def test_the_images_are_those_that_compose_builds(rendered: dict[str, list[Object]]):
    gpu = yaml.safe_load((ROOT / "compose.gpu.yaml").read_text())["services"]["trainer"]["image"]
    for name, role, image in (
        ("base", "selfplay", COMPOSE["services"]["selfplay"]["image"]),
        ("base", "trainer", COMPOSE["services"]["trainer"]["image"]),
        ("overlays/gpu", "trainer", gpu),
        ("overlays/evaluator", "evaluator", gpu),
    ):
        assert container_of(workloads(rendered[name])[role])["image"] == image.replace("${TAG:-latest}", __version__)


def test_only_trainers_ask_for_gpus_and_only_workers_run_on_spot_nodes(rendered: dict[str, list[Object]]):
    def limits(name: str, role: str) -> dict:
        return container_of(workloads(rendered[name])[role])["resources"]["limits"]

    assert limits("base", "selfplay") == limits("overlays/gpu", "selfplay") == {"cpu": "1", "memory": "2Gi"}
    assert limits("overlays/gpu", "trainer") == {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1"}

    def terms(role: str) -> list[list[tuple]]:
        affinity = workloads(rendered["overlays/spot"])[role]["spec"]["template"]["spec"]["affinity"]
        required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        return [[(e["key"], e["operator"], *e["values"]) for e in each["matchExpressions"]] for each in required]

    spot = [(key, "In", value) for ((key, _, value),) in terms("selfplay")]
    assert terms("selfplay") == [[each] for each in spot]  # one of them holds
    assert terms("trainer") == [[(key, "NotIn", value) for key, _, value in spot]]  # none of them does
    replicas = {name: of_kind(rendered[name], "HorizontalPodAutoscaler")[0]["spec"]["maxReplicas"] for name in FOLDERS}
    assert replicas["overlays/spot"] > replicas["base"]


JOB = {"SLURM_ARRAY_JOB_ID": "123456789", "SLURM_ARRAY_TASK_ID": "80"}
JOB |= {"RUN": "/shared/my runs/c4", "GAME": "othello(size=6)", "PRESET": "quick"}


@pytest.mark.parametrize("role", ROLES)
def test_a_slurm_job_becomes_plyzero(stand_in: Path, role: str):
    command, options = parsed(words_given(["bash", SLURM / f"{role}.sbatch"], stand_in, JOB))
    expected = COMMANDS.get(role, role), "/shared/my runs/c4", "othello(size=6)"
    assert (command, str(options["run"]), options["game"]) == expected
    assert options["preset"] == "quick"
    if role == "selfplay":
        name = re.sub(r"[^a-z0-9_]", "-", options["name"])
        assert (name, len(name) <= kubernetes.MAX_WORKER_NAME) == ("slurm_123456789_80", True)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("missing", ["RUN", "GAME"])
def test_a_slurm_job_without_a_run_or_a_game_ends_with_a_sentence(stand_in: Path, role: str, missing: str):
    job = {name: text for name, text in JOB.items() if name != missing}
    with pytest.raises(subprocess.CalledProcessError) as ended:
        words_given(["bash", SLURM / f"{role}.sbatch"], stand_in, job)
    assert f"{missing}: set {missing} to the" in ended.value.stderr


@pytest.mark.parametrize("role", ROLES)
def test_a_signal_to_the_script_of_a_slurm_job_reaches_plyzero(stand_in: Path, role: str):
    waits = "#!/bin/sh\ntrap 'echo sealed; exit 0' TERM\necho begun\nwhile :; do sleep 0.1; done\n"
    (stand_in / "plyzero").write_text(waits)
    environment = JOB | {"PATH": f"{stand_in}{os.pathsep}{os.environ['PATH']}"}
    script = subprocess.Popen(["bash", SLURM / f"{role}.sbatch"], env=environment, stdout=subprocess.PIPE, text=True)
    assert script.stdout.readline() == "begun\n"
    script.send_signal(signal.SIGTERM)  # as --signal=B does: to this process alone
    assert (script.communicate()[0], script.returncode) == ("sealed\n", 0)


@pytest.mark.parametrize(("role", "at_a_time"), [("selfplay", 8), ("trainer", 1)])
def test_slurm_asks_for_what_kubernetes_asks_for(role: str, at_a_time: int, rendered: dict[str, list[Object]]):
    text = (SLURM / f"{role}.sbatch").read_text()
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=?(.*)$", text, re.MULTILINE))
    assert (options["signal"], options["requeue"], options["open-mode"]) == ("B:TERM@90", "", "append")
    assert options["array"].endswith(f"%{at_a_time}")
    limits = container_of(workloads(rendered["base"])[role])["resources"]["limits"]
    assert (options["cpus-per-task"], f"{options['mem']}i") == (limits["cpu"], limits["memory"])
    assert text.index("#SBATCH") < text.index("set -euo")  # options behind a command are not read


def test_the_commands_of_the_guide_name_what_is_there():
    page = (ROOT / "docs" / "scaling.md").read_text()
    for path in re.findall(r"deploy/(?:kubernetes|slurm)[\w./]*\w", page):
        assert (ROOT / path).exists(), path
    inside = re.findall(r" -- plyzero (.*)$", page, re.MULTILINE)
    assert [parsed(shlex.split(words))[0] for words in inside] == ["status"]
