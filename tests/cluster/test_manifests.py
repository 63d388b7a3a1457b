"""deploy/kubernetes on a real API server, with real controllers and a real scheduler; its nodes are objects only."""

from collections.abc import Callable, Iterator

import pytest

from tests.helpers.cluster import BASE, SECONDS, Space, Watched, for_this_server, kustomized, path_of
from tests.helpers.control_plane import ApiServer, RefusedError, wait_until
from tests.helpers.kubernetes import Object, container_of, of_kind, render
from tests.helpers.pods import now

pytestmark = pytest.mark.cluster
FOLDERS = (
    "base",
    *sorted(path.parent.relative_to(BASE.parent).as_posix() for path in BASE.parent.glob("overlays/*/*")),
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_server_takes_every_object_as_it_is_and_again(space: Space, folder: str):
    objects = render(BASE.parent / folder)
    assert objects
    space.apply(objects)
    space.wait(lambda: space.replicas("selfplay") == 2)  # the autoscaler's least
    stored = [space.server.get(path_of(each, space.name)) for each in for_this_server(objects)]
    for sent, kept in zip(objects, stored, strict=True):
        assert list(lost({**sent, "apiVersion": kept["apiVersion"]}, kept)) == []
    space.apply(objects)
    again = [space.server.get(path_of(each, space.name)) for each in for_this_server(objects)]
    assert [each["metadata"].get("generation") for each in again] == [
        each["metadata"].get("generation") for each in stored
    ]


def lost(sent: object, kept: object, at: str = "") -> Iterator[str]:
    """Yield where something that was sent is not in what was kept, which has defaults besides."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for key, value in sent.items():
            yield from lost(value, kept.get(key), f"{at}/{key}")
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for number, value in enumerate(sent):
            yield from lost(value, kept[number], f"{at}/{number}")
    elif sent != kept:
        yield f"{at}: {sent!r} became {kept!r}"


def container(objects: list[Object]) -> Object:
    return container_of(of_kind(objects, "Deployment")[0])


def spec(objects: list[Object], kind: str) -> Object:
    return of_kind(objects, kind)[0]["spec"]


WRONG: dict[str, tuple[Callable[[list[Object]], object], str]] = {
    "a field that there is not": (lambda o: container(o).update(argz=["selfplay"]), "argz"),
    "a quantity": (lambda o: container(o)["resources"]["limits"].update(memory="2Gigs"), "quantit"),
    "a mount without a volume": (lambda o: container(o)["volumeMounts"][0].update(name="run"), "Not found"),
    "more workers at least than at most": (
        lambda o: spec(o, "HorizontalPodAutoscaler").update(minReplicas=9),
        "must be greater than or equal to `minReplicas`",
    ),
}
"""Mistakes that show that the server checks what it takes."""


@pytest.mark.parametrize("mistake", WRONG)
def test_the_server_refuses(space: Space, mistake: str):
    objects = render(BASE)
    plant, sentence = WRONG[mistake]
    plant(objects)
    with pytest.raises(RefusedError) as refused:
        space.apply(objects)
    assert sentence in str(refused.value)


def test_a_claim_is_bound_to_a_volume_that_many_nodes_write_to(space: Space):
    space.add_volume()
    space.apply(kustomized(space.volume / "k"))
    claim = f"/api/v1/namespaces/{space.name}/persistentvolumeclaims/plyzero-runs"
    space.wait(lambda: space.server.get(claim)["status"]["phase"] == "Bound")
    bound = space.server.get(claim)
    assert (bound["spec"]["volumeName"], bound["status"]["accessModes"]) == (space.name, ["ReadWriteMany"])


def test_a_volume_for_one_node_alone_is_not_taken_and_the_pods_wait(space: Space):
    space.add_volume("ReadWriteOnce")
    space.add_node("node")
    space.apply(kustomized(space.volume / "k"))
    space.wait(lambda: "unbound immediate PersistentVolumeClaims" in waiting_for(space, "trainer"))
    assert space.node_of("trainer") == space.node_of("selfplay") == {""}


def waiting_for(space: Space, component: str) -> str:
    """Return what the scheduler says of the pods that it could not bind to a node."""
    conditions = [each for pod in space.pods(component) for each in pod["status"].get("conditions", [])]
    return " ".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")


def test_a_trainer_with_a_gpu_waits_for_one_and_workers_stay_off_it(space: Space):
    space.add_volume()
    space.add_node("plain")
    space.apply(kustomized(space.volume / "k", "gpu"))
    space.scale("selfplay", 3)
    space.wait(lambda: "Insufficient nvidia.com/gpu" in waiting_for(space, "trainer"))
    assert space.node_of("trainer") == {""}
    space.add_node("gpu", gpus=1, taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}])
    space.wait(lambda: space.node_of("trainer") == {"gpu"})
    space.wait(lambda: len(space.pods("selfplay")) == 3 and space.node_of("selfplay") == {"plain"})


def test_workers_alone_run_on_spot_nodes_and_the_trainer_on_no_spot_node(space: Space):
    space.add_volume()
    spot = {"plyzero/spot": "true"}
    space.add_node("spot", labels=spot, taints=[{"key": "plyzero/spot", "value": "true", "effect": "NoSchedule"}])
    space.add_node("unmarked-spot", labels={"karpenter.sh/capacity-type": "spot"})
    space.apply(kustomized(space.volume / "k", "spot"))
    space.scale("selfplay", 4)
    space.wait(lambda: "" not in space.node_of("selfplay") and len(space.pods("selfplay")) == 4)
    space.wait(lambda: "node(s) didn't match" in waiting_for(space, "trainer"))
    space.add_node("plain")
    space.wait(lambda: space.node_of("trainer") == {"plain"})
    assert space.node_of("selfplay") == {"spot", "unmarked-spot"}


def new_template(space: Space, deployment: str) -> None:
    space.patch(deployment, {"spec": {"template": {"metadata": {"annotations": {"changed": now()}}}}})


@pytest.mark.parametrize(("strategy", "most"), [(None, 1), ("RollingUpdate", 2)])
def test_never_two_trainers_when_the_template_changes(space: Space, strategy: str | None, most: int):
    space.add_volume()
    space.add_node("node")
    objects = kustomized(space.volume / "k")
    if strategy:  # so that the test can fail
        of_kind(objects, "Deployment")[1]["spec"]["strategy"] = {"type": strategy}
    space.apply(objects)
    space.wait(lambda: space.node_of("trainer") == {"node"})
    (old,) = space.pods("trainer")
    with Watched(space, "trainer") as trainers:
        space.wait(lambda: trainers.most == 1)
        new_template(space, "trainer")
        if strategy is None:
            space.wait(lambda: "deletionTimestamp" in space.pods("trainer")[0]["metadata"])
            (ending,) = space.pods("trainer")
            assert ending["metadata"]["deletionGracePeriodSeconds"] == 60
            with pytest.raises(AssertionError):  # while its node has not ended it, there is no other
                wait_until(lambda: len(space.pods("trainer")) != 1, 5)
            space.remove_pod(old)
        space.wait(
            lambda: {old["metadata"]["name"]} < {each["metadata"]["name"] for each in [old, *space.pods("trainer")]}
        )
        space.wait(lambda: trainers.most == most)
    assert trainers.most == most


def test_workers_are_scaled_and_what_remains_when_all_is_deleted_is_nothing(space: Space):
    space.add_volume()
    space.add_node("node")
    objects = kustomized(space.volume / "k")
    space.apply(objects)
    for number in (1, 4, 2, 0, 3):
        space.scale("selfplay", number)
        space.wait(lambda number=number: remaining(space) == number and "" not in space.node_of("selfplay"))
    space.server.kubectl(
        *("--namespace", space.name, "delete", "--wait=false", "--filename", "-"), objects=for_this_server(objects)
    )
    space.wait(lambda: remaining(space) == 0 and not remaining(space, "trainer"))


def remaining(space: Space, component: str = "selfplay") -> int:
    """Remove the pods that are to end, as their nodes would, and return the number of the others."""
    pods = space.pods(component)
    for each in pods:
        if "deletionTimestamp" in each["metadata"]:
            space.remove_pod(each)
    return sum("deletionTimestamp" not in each["metadata"] for each in pods)


@pytest.fixture
def metrics(server: ApiServer) -> Iterator[str]:
    """The path of the metrics of pods, which are custom resources here: there is no metrics server."""
    names = {"kind": "PodMetrics", "listKind": "PodMetricsList", "plural": "pods", "singular": "podmetrics"}
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    body = {
        "metadata": {
            "name": "pods.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "metrics.k8s.io",
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": anything}],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    server.create(definitions, body)
    wait_until(lambda: server.get("/apis/metrics.k8s.io/v1beta1/pods"), SECONDS)
    yield "/apis/metrics.k8s.io/v1beta1"
    server.request("DELETE", f"{definitions}/pods.metrics.k8s.io")


def test_the_autoscaler_adds_playing_workers_and_removes_waiting_ones(space: Space, metrics: str):
    space.add_volume()
    space.add_node("node")
    objects = kustomized(space.volume / "k", autoscaler=True)
    space.apply(objects)
    space.wait(lambda: space.replicas("selfplay") == 2)  # the least
    space.wait(lambda: used(space, metrics, "980m") and space.replicas("selfplay") == 8)  # the most
    space.apply(objects)  # which leaves the number to the autoscaler
    assert space.replicas("selfplay") == 8
    space.wait(lambda: used(space, metrics, "800m") == 8)
    assert space.replicas("selfplay") == 8
    space.wait(lambda: used(space, metrics, "20m") and space.replicas("selfplay") == 2)


def used(space: Space, metrics: str, cpu: str) -> int:
    """Say of all workers that they run and use so much of a core; return their number."""
    pods = [each for each in space.pods("selfplay") if "deletionTimestamp" not in each["metadata"]]
    remaining(space)
    for each in pods:
        name = each["metadata"]["name"]
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": ready}
        space.server.merge(f"/api/v1/namespaces/{space.name}/pods/{name}/status", {"status": status})
        usage = [{"name": "selfplay", "usage": {"cpu": cpu, "memory": "1Gi"}}]
        labels = each["metadata"]["labels"]
        body = {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": "PodMetrics",
            "metadata": {"name": name, "labels": labels},
        }
        body |= {"timestamp": now(), "window": "30s", "containers": usage}
        path = f"{metrics}/namespaces/{space.name}/pods"
        try:
            space.server.create(path, body)
        except RefusedError:
            space.server.merge(f"{path}/{name}", body)
    return len(pods)
