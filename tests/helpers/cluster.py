"""A namespace of a real cluster for one test: its volume, its nodes, and what is applied to it."""

import http.client
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import yaml

from tests.helpers.control_plane import ROOT, ApiServer, NotThereError, wait_until
from tests.helpers.kubernetes import Object, of_kind, render

BASE = ROOT / "deploy" / "kubernetes" / "base"
COMPONENT = "app.kubernetes.io/component"
SECONDS = 300
"""Largest time of a controller or the scheduler for one step, on a loaded machine."""


def for_this_server(objects: list[Object]) -> list[Object]:
    """Return the objects in versions that Kubernetes 1.20 has: autoscaling/v2 has the fields of v2beta2."""
    older = {"autoscaling/v2": "autoscaling/v2beta2"}
    return [{**each, "apiVersion": older.get(each["apiVersion"], each["apiVersion"])} for each in objects]


def path_of(each: Object, space: str) -> str:
    """Return the path of an object at the API server."""
    group = "api/v1" if each["apiVersion"] == "v1" else f"apis/{each['apiVersion']}"
    plural = f"{each['kind'].lower()}s".replace("ys", "ies")
    return f"/{group}/namespaces/{space}/{plural}/{each['metadata']['name']}"


class Space:
    """A namespace.

    name:   its name, which the names of its nodes and its volume begin with too.
    volume: the directory that stands for the volume.
    """

    def __init__(self, server: ApiServer, name: str, volume: Path) -> None:
        self.server, self.name, self.volume = server, name, volume
        self._cluster_wide: list[str] = []
        server.create("/api/v1/namespaces", {"metadata": {"name": name}})

    def remove(self) -> None:
        """Remove the pods, the volume and the nodes. The namespace goes later, with what is left in it."""
        self.server.request("DELETE", f"/api/v1/namespaces/{self.name}")  # from now on it gets no new pods
        for pod in self.pods():
            self.remove_pod(pod)
        for path in self._cluster_wide:
            self.server.request("DELETE", path)

    def add_volume(self, access: str = "ReadWriteMany") -> None:
        """Offer a volume for the claim of this namespace."""
        spec = {
            "accessModes": [access],
            "capacity": {"storage": "50Gi"},
            "hostPath": {"path": str(self.volume)},
            "claimRef": {"namespace": self.name, "name": "plyzero-runs"},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        self._create("/api/v1/persistentvolumes", {"metadata": {"name": self.name}, "spec": spec})

    def add_node(
        self, name: str, *, gpus: int = 0, labels: Mapping[str, str] | None = None, taints: Sequence[Object] = ()
    ) -> str:
        """Add a node that is ready and has 16 cores; return its whole name."""
        name = f"{self.name}-{name}"
        room = {"cpu": "16", "memory": "64Gi", "pods": "32", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        about = {"metadata": {"name": name, "labels": {**(labels or {})}}, "spec": {"taints": list(taints)}}
        self._create("/api/v1/nodes", {**about, "status": status})
        return name

    def cordon(self, node: str, *, on: bool = True) -> None:
        """Let a node get no new pods, or let it get them again."""
        self.server.merge(f"/api/v1/nodes/{self.name}-{node}", {"spec": {"unschedulable": on}})

    def _create(self, path: str, body: Object) -> None:
        self.server.create(path, body)
        self._cluster_wide.append(f"{path}/{body['metadata']['name']}")

    def apply(self, objects: list[Object]) -> str:
        """Apply objects as `kubectl apply --server-side` does; return what it prints."""
        words = ("apply", "--server-side", "--force-conflicts", "--namespace", self.name, "--filename", "-")
        return self.server.kubectl(*words, objects=for_this_server(objects))

    def patch(self, deployment: str, body: Object) -> None:
        self.server.merge(f"/apis/apps/v1/namespaces/{self.name}/deployments/{deployment}", body)

    def scale(self, deployment: str, replicas: int) -> None:
        self.server.kubectl("--namespace", self.name, "scale", "deployment", deployment, f"--replicas={replicas}")

    def replicas(self, deployment: str) -> int:
        return int(
            self.server.get(f"/apis/apps/v1/namespaces/{self.name}/deployments/{deployment}")["spec"]["replicas"]
        )

    def pods(self, component: str | None = None) -> list[Object]:
        query = {"labelSelector": f"{COMPONENT}={component}"} if component else {}
        return list(self.server.get(f"/api/v1/namespaces/{self.name}/pods", **query)["items"])

    def node_of(self, component: str) -> set[str]:
        """Return the names of the nodes of a component's pods, without the name of the namespace; '' for none."""
        return {pod["spec"].get("nodeName", "").removeprefix(f"{self.name}-") for pod in self.pods(component)}

    def remove_pod(self, pod: Object) -> None:
        """Remove a pod at once, as its node does once its containers have ended."""
        with suppress(NotThereError):
            name = pod["metadata"]["name"]
            self.server.request("DELETE", f"/api/v1/namespaces/{self.name}/pods/{name}", {"gracePeriodSeconds": 0})

    def wait(self, holds: Callable[[], object], seconds: float = SECONDS) -> None:
        """Wait until a condition holds; if it does not, fail with the pods and the newest events."""
        wait_until(holds, seconds, self._describe)

    def _describe(self) -> str:
        pods = [f"{pod['metadata']['name']}: {pod.get('status')}" for pod in self.pods()]
        events = self.server.get(f"/api/v1/namespaces/{self.name}/events")["items"]
        return "\n".join(["waited in vain", *pods, *(each["message"] for each in events[-20:])])


class Watched:
    """The pods of a component from `with` to its end. most: the largest number of them that there were at one time."""

    def __init__(self, space: Space, component: str) -> None:
        self.most, self._names, self._ended = 0, set[str](), False
        path, query = f"/api/v1/namespaces/{space.name}/pods", {"labelSelector": f"{COMPONENT}={component}"}
        self._events = lambda: space.server.watch(path, 600, **query)
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread.is_alive(), "the server has ended the watch: there may have been more pods"
        self._ended = True

    def _follow(self) -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):  # once the server ends
            for event in self._events():
                if self._ended:
                    return
                name = event["object"]["metadata"]["name"]
                (self._names.discard if event["type"] == "DELETED" else self._names.add)(name)
                self.most = max(self.most, len(self._names))


def kustomized(
    folder: Path, *components: str, settings: Mapping[str, str] | None = None, autoscaler: bool = False
) -> list[Object]:
    """Return base and components, with settings, as a kustomization of a user's own would give them.

    autoscaler: whether there is one; without it, `Space.scale` sets the number of workers.
    """
    folder.mkdir(exist_ok=True)

    def at(name: str) -> str:
        return os.path.relpath(BASE.parent / name, folder.resolve())

    merged = {
        "name": "plyzero-settings",
        "behavior": "merge",
        "literals": [f"{k}={v}" for k, v in (settings or {}).items()],
    }
    whole = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [at("base")],
        "components": [at(f"components/{name}") for name in components],
        "configMapGenerator": [merged] if settings else [],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    objects = render(folder)
    if not autoscaler:
        (scaler,) = of_kind(objects, "HorizontalPodAutoscaler")
        objects.remove(scaler)
    return objects
