"""Workers and trainer under a real control plane, on nodes that run their pods as processes of this machine."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from plyzero.ops.verify import find_faults
from plyzero.run.directory import Run, open_run
from plyzero.run.journals import list_journals, read_journal
from plyzero.run.metrics import read_heartbeat
from plyzero.run.models import list_models
from tests.helpers.cluster import Space, Watched, kustomized
from tests.helpers.kubernetes import container_of, of_kind
from tests.helpers.node_agent import NodeAgent
from tests.helpers.runs import SMALL
from tests.helpers.victims import visible
from trainer.state import load_state

pytestmark = pytest.mark.cluster
GRACE = 60
"""Grace period of a pod of deploy/kubernetes, in seconds."""

SETTINGS = {"GAME": "tic-tac-toe"} | {
    f"PLYZERO_{name.replace('.', '__').upper()}": value
    for name, value in (
        option.split("=") for option in (*SMALL, "trainer.publish_seconds=1", "trainer.window_positions=1000000")
    )
}


@pytest.fixture
def add_node(space: Space, tmp_path: Path) -> Iterator[Callable[[str], NodeAgent]]:
    """Return a function that adds a node which runs its pods."""
    with ExitStack() as running:

        def add(name: str) -> NodeAgent:
            whole = space.add_node(name)
            return running.enter_context(NodeAgent(space.server, whole, tmp_path / "nodes" / name))

        yield add


def begin(space: Space, workers: int, *, hurry: bool = False, settings: Mapping[str, str] = SETTINGS) -> None:
    """Start a run of tic-tac-toe, and wait until all are at work and a model has been trained.

    A pod that starts is asked for its health every 5 seconds, not 30.

    hurry: whether it has 5 seconds to end, not 60, and is later asked for its health every second, not every 30.
    """
    space.add_volume()
    objects = kustomized(space.volume.parent / "kustomization", settings=settings)
    for each in of_kind(objects, "Deployment"):
        container_of(each)["startupProbe"]["periodSeconds"] = 5
        if hurry:
            container_of(each)["livenessProbe"]["periodSeconds"] = 1
            each["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 5
    space.apply(objects)
    space.scale("selfplay", workers)
    space.wait(lambda: are_at_work(space, workers) and steps(space) > 0)


def are_at_work(space: Space, workers: int) -> bool:
    """Return whether there are so many workers and a trainer, all of them ready, and no pod that is about to end."""
    pods = len(space.pods("selfplay")), len(space.pods("trainer"))
    return pods == (len(running(space, "selfplay")), len(running(space, "trainer"))) == (workers, 1)


def run_of(space: Space) -> Run:
    return open_run(space.volume / "run")


def steps(space: Space) -> int:
    """Return the step of the newest model, 0 if there is none."""
    models = space.volume / "run" / "models"
    return max((name.step for name in list_models(models)), default=0) if models.exists() else 0


def acknowledged(nodes: Path) -> set[int]:
    lines = (line for log in nodes.glob("*/acknowledged-*") for line in log.read_text().splitlines(keepends=True))
    return {int(line) for line in lines if line.endswith("\n")}


def running(space: Space, component: str) -> list[str]:
    """Return the names of the pods that are ready and not about to end."""
    pods = [each for each in space.pods(component) if "deletionTimestamp" not in each["metadata"]]
    ready = {"type": "Ready", "status": "True"}
    return [
        each["metadata"]["name"]
        for each in pods
        if any(ready.items() <= has.items() for has in each["status"].get("conditions", []))
    ]


def check_that_nothing_is_lost(space: Space, nodes: Path) -> None:
    """Stop the workers, let the trainer read the rest, stop it too, and count the games: acknowledged, sealed, read."""
    space.scale("selfplay", 0)
    space.wait(lambda: not space.pods("selfplay"))
    run = run_of(space)
    space.wait(lambda: not list_journals(run.journals))
    found, beat = visible(run), run.workers / "trainer.json"
    space.wait(lambda: (read_heartbeat(beat) or {}).get("games") == len(found))
    space.scale("trainer", 0)
    space.wait(lambda: not space.pods("trainer"))
    assert acknowledged(nodes)
    assert acknowledged(nodes) - found.keys() == set(), "lost"
    assert set(found.values()) == {1}, "doubled"
    state = load_state(run.trainer)
    assert state is not None
    assert state["games"] == len(found)
    assert [fault for _, fault in find_faults(run) if fault] == []


def test_workers_and_trainer_make_a_run_and_scaled_down_workers_seal_every_game(
    space: Space, add_node: Callable[[str], NodeAgent], tmp_path: Path
):
    node = add_node("node")
    begin(space, workers=1)
    space.scale("selfplay", 4)
    space.wait(lambda: are_at_work(space, 4))
    space.scale("selfplay", 2)
    space.wait(lambda: are_at_work(space, 2))
    assert len(node.ended) == 2
    assert [journaled(space, each.pod) for each in node.ended] == [0, 0]
    before = steps(space)
    space.wait(lambda: steps(space) > before)
    check_that_nothing_is_lost(space, tmp_path / "nodes")
    assert [each for each in node.ended if each.code or not (each.seconds and each.seconds < GRACE)] == []
    assert len(node.ended) == 5


def journaled(space: Space, pod: str) -> int:
    """Return how many games of a worker are in its journals only, so that somebody must still seal them."""
    run, worker = run_of(space), pod.replace("-", "_")
    paths = [run.journals / str(name) for name in list_journals(run.journals) if name.worker == worker]
    return sum(len(batch.games) for path in paths for batch in read_journal(path, run.game))


def test_a_changed_template_gives_the_run_to_a_new_trainer(
    space: Space, add_node: Callable[[str], NodeAgent], tmp_path: Path
):
    node = add_node("node")
    begin(space, workers=1)
    (old,) = running(space, "trainer")
    with Watched(space, "trainer") as trainers:
        space.patch("trainer", {"spec": {"template": {"metadata": {"annotations": {"changed": "now"}}}}})
        space.wait(lambda: {*running(space, "trainer")} - {old})
        assert trainers.most == 1
    assert [(each.pod, each.code) for each in node.ended] == [(old, 0)]
    before = steps(space)
    space.wait(lambda: steps(space) > before)
    assert fences(space) == {1, 2}
    check_that_nothing_is_lost(space, tmp_path / "nodes")


def fences(space: Space) -> set[int]:
    """Return the number of every start of a trainer, other than of one that was refused."""
    return {int(path.stem.removeprefix("fence-")) for path in run_of(space).trainer.glob("fence-*.json")}


def test_pods_of_a_drained_node_seal_and_save_in_time_and_go_on_elsewhere(
    space: Space, add_node: Callable[[str], NodeAgent], tmp_path: Path
):
    drained = add_node("drained")
    begin(space, workers=2)
    other = add_node("other")
    name = f"{space.name}-drained"
    space.server.kubectl("drain", name, "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=120s")
    assert len(drained.ended) == 3
    assert [each for each in drained.ended if each.code or not (each.seconds and each.seconds < GRACE)] == []
    assert [journaled(space, each.pod) for each in drained.ended] == [0, 0, 0]
    space.wait(lambda: are_at_work(space, 2))
    before = steps(space)
    space.wait(lambda: steps(space) > before)
    # The trainer that replaces it is started while the old one saves, may be refused, and is then started again.
    assert {(each.pod, each.code) for each in other.ended} <= {(pod, 2) for pod in running(space, "trainer")}
    assert fences(space) == {1, 2}
    check_that_nothing_is_lost(space, tmp_path / "nodes")


def test_a_trainer_that_died_and_a_worker_that_stands_still_are_started_again(
    space: Space, add_node: Callable[[str], NodeAgent], tmp_path: Path
):
    node = add_node("node")
    begin(space, workers=2, hurry=True)
    (trainer,), (worker, _) = running(space, "trainer"), sorted(running(space, "selfplay"))
    os.kill(node.process_of(worker), signal.SIGSTOP)
    os.kill(node.process_of(trainer), signal.SIGKILL)
    space.wait(lambda: restarts(space) == {trainer: 1, worker: 1})
    assert {(each.pod, each.code) for each in node.ended} == {(trainer, -signal.SIGKILL), (worker, -signal.SIGKILL)}
    space.wait(lambda: are_at_work(space, 2))
    before = steps(space)
    space.wait(lambda: steps(space) > before)
    assert fences(space) == {1, 2}
    check_that_nothing_is_lost(space, tmp_path / "nodes")


def restarts(space: Space) -> dict[str, int]:
    """Return how often the container of each pod was started again, if it was."""
    counts = {each["metadata"]["name"]: each["status"]["containerStatuses"][0]["restartCount"] for each in space.pods()}
    return {name: count for name, count in counts.items() if count}


def test_games_of_a_lost_node_are_sealed_and_workers_go_on_elsewhere(
    space: Space, add_node: Callable[[str], NodeAgent], tmp_path: Path
):
    add_node("kept")
    slow_to_seal = {"PLYZERO_SELFPLAY__SEAL_POSITIONS": "100000", "PLYZERO_SELFPLAY__SEAL_SECONDS": "10"}
    begin(space, workers=1, settings=SETTINGS | slow_to_seal)
    space.cordon("kept")
    with NodeAgent(space.server, space.add_node("lost"), tmp_path / "nodes" / "lost") as lost:
        space.scale("selfplay", 3)
        space.wait(lambda: are_at_work(space, 3))
        on_it = [pod["metadata"]["name"] for pod in space.pods("selfplay") if pod["spec"]["nodeName"].endswith("-lost")]
        space.wait(lambda: any(journaled(space, name) for name in on_it))
    assert {(each.pod, each.code) for each in lost.ended} == {(name, -signal.SIGKILL) for name in on_it}
    assert any(journaled(space, name) for name in on_it)
    # What the node controller does, but after five minutes: no new pods for the node, and none of its old ones.
    space.cordon("lost")
    space.cordon("kept", on=False)
    for pod in space.pods("selfplay"):
        if pod["metadata"]["name"] in on_it:
            space.remove_pod(pod)
    space.wait(lambda: are_at_work(space, 3))
    assert space.node_of("selfplay") == {"kept"}
    check_that_nothing_is_lost(space, tmp_path / "nodes")
