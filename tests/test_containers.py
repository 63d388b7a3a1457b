"""The containers: what can be said of the files, and, where there is an engine, the loop itself in a short form."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from plyzero.settings import RENAMED, Settings
from tests.helpers.cli import parsed

ROOT = Path(__file__).parent.parent
COMPOSE = (ROOT / "compose.yaml").read_text()
PROJECT = "plyzero-test"


def services_of(name: str) -> dict[str, dict]:
    return yaml.safe_load((ROOT / name).read_text())["services"]


def test_every_setting_can_be_given_to_the_containers_by_environment():
    expected = [
        f"PLYZERO_{section}__{name}".upper()
        for section, field in Settings.model_fields.items()
        for name in field.annotation.model_fields
    ]
    renamed = [f"PLYZERO_{name.replace('.', '__')}".upper() for name in RENAMED]  # refused, which names the new one
    assert re.findall(r"^    - (PLYZERO_\w+)(?:=\$\{.*)?$", COMPOSE, re.MULTILINE) == [*expected, *renamed]


def test_every_variable_of_the_compose_files_is_in_the_example():
    example = (ROOT / ".env.example").read_text()
    for text in (COMPOSE, (ROOT / "compose.gpu.yaml").read_text()):
        for name in re.findall(r"\$\{(\w+)", text):
            assert re.search(rf"^#?{name}=", example, re.MULTILINE), name


def test_nothing_in_the_compose_file_hinders_scaling():
    assert "container_name" not in COMPOSE
    assert "depends_on" not in COMPOSE
    scaled, _, web = COMPOSE.partition("  web:\n")
    assert "ports:" not in scaled
    assert web.count("ports:") == web.count('"127.0.0.1:') == 1  # reached from this machine alone


def test_the_trainers_container_alone_has_a_priority():
    services = services_of("compose.yaml")
    assert {name: each["cpu_shares"] for name, each in services.items() if "cpu_shares" in each} == {"trainer": 10240}


def test_with_a_gpu_workers_send_their_positions_to_the_one_evaluator_that_uses_it():
    plain, found = (services_of(name) for name in ("compose.yaml", "compose.gpu.yaml"))
    words = {name: " ".join(service["command"]) for name, service in found.items() if "command" in service}
    assert words.keys() == {"selfplay", "trainer", "evaluator"}
    options = {}
    for name, line in words.items():
        command, options[name] = parsed(re.sub(r"\$\{\w+:-(.*?)\}", r"\1", line).split())
        assert command == name
    assert len({(str(each["run"]), each["game"], each["preset"]) for each in options.values()}) == 1
    assert options["selfplay"]["evaluator"] == f"127.0.0.1:{options['evaluator']['port']}"
    assert options["trainer"]["device"] == "cuda"
    for name in ("selfplay", "trainer"):
        assert found[name]["command"][: len(plain[name]["command"])] == plain[name]["command"]
    gpus = {name: each.get("deploy", {}).get("resources", {}).get("reservations") for name, each in found.items()}
    (device,) = gpus["trainer"]["devices"]
    assert (device["driver"], device["count"], device["capabilities"]) == ("nvidia", 1, ["gpu"])
    assert (gpus["evaluator"], gpus["selfplay"], gpus["rater"]) == (gpus["trainer"], None, None)
    built = {each["image"]: each["build"]["args"] for each in found.values() if "build" in each}
    for image, arguments in built.items():
        assert "grpc" in arguments["EXTRAS"]
        assert ("ACCELERATOR" in arguments) == image.endswith("-cuda")
    images = {name: each["image"] for name, each in found.items()}
    assert images["trainer"] == images["evaluator"]
    assert images["selfplay"] == images["rater"] == images["play"]
    assert not set(images.values()) & {each["image"] for each in plain.values()}  # which are built of other parts


@pytest.mark.parametrize("names", [["compose.yaml"], ["compose.yaml", "compose.gpu.yaml"]])
def test_one_service_builds_each_image_so_that_no_build_replaces_the_image_of_running_containers(names: list[str]):
    services: dict[str, dict] = {}
    for name in names:
        for service, each in services_of(name).items():
            services[service] = services.get(service, {}) | each
    for each in services.values():
        assert "build" not in services.get(each.get("extends", {}).get("service"), {})  # it would be inherited
    builds = [each["image"] for each in services.values() if "build" in each]
    assert sorted(builds) == sorted({each["image"] for each in services.values()})


def docker(*arguments: str, given: str = "") -> str:
    environment = os.environ | {"GAME": "tic-tac-toe", "PLYZERO_TRAINER__PUBLISH_SECONDS": "3"}
    command = ["docker", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def compose(*arguments: str, given: str = "") -> str:
    return docker("compose", "--project-name", PROJECT, *arguments, given=given)


def ask(*arguments: str) -> dict:
    """What a command prints as JSON about the run on the volume."""
    volume = f"{PROJECT}_runs:/runs:ro"
    return json.loads(docker("run", "--rm", "-v", volume, "plyzero-worker", *arguments, "--run", "/runs/run", "--json"))


def wait_for(what: Callable[[], bool], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds  # how long a slow machine may take; nothing is measured
    while not what():
        assert time.monotonic() < deadline, compose("logs")
        time.sleep(2)


@pytest.fixture
def engine() -> Iterator[None]:
    def works(*command: str) -> bool:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    if shutil.which("docker") is None or not works("docker", "info"):
        pytest.skip("there is no Docker engine")
    if not works("docker", "compose", "version"):
        pytest.skip("the Docker engine has no Compose")
    base = os.environ.get("BASE", "python:3.13-slim-bookworm")
    if not works("docker", "image", "inspect", base) and not works("docker", "pull", base):
        pytest.skip(f"the base image {base} cannot be had")
    try:
        yield
    finally:
        compose("down", "--volumes", "--timeout", "60")


def started(service: str) -> set[str]:
    """When each container of a service was started, and how often again."""
    ids = compose("ps", "--quiet", service).split()
    return set(docker("inspect", "--format", "{{.Id}} {{.State.StartedAt}} {{.RestartCount}}", *ids).splitlines())


@pytest.mark.docker
def test_the_loop_runs_in_containers_scales_survives_a_kill_and_resumes(engine: None):
    compose("up", "--detach", "--build", "--scale", "selfplay=2")
    models = lambda: ask("status")["models"]["count"]  # noqa: E731
    wait_for(lambda: compose("logs", "selfplay").count("model 000001-") >= 4)  # both have reloaded, more than once
    assert {each["worker"] for each in ask("replay", "ls")["segments"]} == {
        each[:12] for each in compose("ps", "--quiet", "selfplay").split()
    }

    first, trainer = started("selfplay"), started("trainer")
    compose("up", "--detach", "--scale", "selfplay=1")
    compose("up", "--detach", "--scale", "selfplay=3")
    assert len(first & started("selfplay")) == 1
    assert started("trainer") == trainer

    wait_for(lambda: all("healthy" in line for line in compose("ps", "--format", "{{.Status}}").splitlines()))
    docker("kill", *compose("ps", "--quiet", "trainer").split(), compose("ps", "--quiet", "selfplay").split()[0])
    before = models()
    compose("up", "--detach", "--scale", "selfplay=3")
    wait_for(lambda: models() > before)
    assert "fence 2" in compose("logs", "trainer")

    assert "you move first; the bot is 00000" in compose("run", "--rm", "-T", "play", given="quit\n")
    compose("stop")
    ids = compose("ps", "--all", "--quiet").split()
    assert docker("inspect", "--format", "{{.State.ExitCode}}", *ids).split() == ["0"] * len(ids)
    totals = ask("replay", "ls")["totals"]
    compose("down")
    assert ask("replay", "ls")["totals"] == totals
    compose("up", "--detach")
    wait_for(lambda: ask("replay", "ls")["totals"]["games"] > totals["games"])
    wait_for(lambda: "fence 3" in compose("logs", "trainer"))


@pytest.mark.docker
def test_the_override_for_a_gpu_reserves_one_for_the_trainer_and_the_evaluator(engine: None):
    plain = json.loads(docker("compose", "config", "--format", "json"))["services"]
    files = ("-f", "compose.yaml", "-f", "compose.gpu.yaml")
    with_gpu = json.loads(docker("compose", *files, "config", "--format", "json"))["services"]
    trainer, limits = with_gpu["trainer"], plain["trainer"]["deploy"]["resources"]["limits"]
    assert "reservations" not in plain["trainer"]["deploy"]["resources"]
    for name in ("trainer", "evaluator"):
        (device,) = with_gpu[name]["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], device["count"], device["capabilities"]) == ("nvidia", 1, ["gpu"])
        assert with_gpu[name]["deploy"]["resources"]["limits"]["memory"] == limits["memory"]
        assert (with_gpu[name]["image"], with_gpu[name]["cpu_shares"]) == (trainer["image"], trainer["cpu_shares"])
        assert with_gpu[name]["volumes"] == plain["selfplay"]["volumes"]
    assert (trainer["build"]["args"]["ACCELERATOR"], trainer["build"]["target"]) == ("cuda", "trainer")
    assert "build" not in with_gpu["evaluator"]
    assert "--device=cuda" in with_gpu["trainer"]["command"]
    assert with_gpu["selfplay"]["command"] == [*plain["selfplay"]["command"], "--evaluator=127.0.0.1:8001"]
    assert "reservations" not in with_gpu["selfplay"]["deploy"]["resources"]


@pytest.mark.docker
def test_a_worker_that_cannot_write_says_so_and_ends_when_it_is_stopped(engine: None):
    compose("build", "selfplay")
    options = ("--detach", "--read-only", "--tmpfs", "/tmp", "--network", "none")
    command = ("selfplay", "--run", "/runs/run", "--game", "tic-tac-toe")
    worker = docker("run", *options, "plyzero-worker", *command).strip()
    try:
        log = lambda: docker("logs", worker)  # noqa: E731
        wait_for(lambda: "/runs/run: Read-only file system; will try again" in log())
        docker("stop", worker)
        assert "there is nothing to store" in log()
        assert docker("inspect", "--format", "{{.State.ExitCode}}", worker) == "0\n"
    finally:
        docker("rm", "--force", worker)
    assert "torch" not in docker("run", "--rm", "--entrypoint", "pip", "plyzero-worker", "list")
