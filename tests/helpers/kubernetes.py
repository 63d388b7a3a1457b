"""Kubernetes objects: rendering them, and the mistakes in them that no schema finds."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

OLDEST = "1.25"
"""The oldest version of Kubernetes whose schemas kubernetes-validate has."""

MAX_WORKER_NAME = 32
POD_SUFFIX = len("-0123456789-abcde")
"""Suffix of the name of a Deployment in that of a pod."""

Object = dict
"""A parsed object of Kubernetes."""


def render(folder: Path) -> list[Object]:
    """Return the objects of a kustomization."""
    done = subprocess.run([find_kubectl(), "kustomize", folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.safe_load_all(done.stdout))


def find_kubectl() -> str:
    """Return the path of kubectl, that of the tests' environment first. Skips the test where there is none."""
    beside = Path(sys.executable).parent / "kubectl"
    kubectl = str(beside) if beside.exists() else shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl")
    return kubectl


def mistakes(objects: list[Object]) -> list[str]:
    """Return a sentence for each mistake."""
    return [*against_schemas(objects), *in_references(objects), *in_quantities(objects), *in_pods(objects)]


def against_schemas(objects: list[Object]) -> Iterator[str]:
    for each in objects:
        for version in (OLDEST, kubernetes_validate.latest_version()):
            try:
                kubernetes_validate.validate(each, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"{title(each)} in version {version}: {error.message}"


def in_references(objects: list[Object]) -> Iterator[str]:
    """Names and labels by which objects find each other."""
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    if len(names) < len(objects):
        yield "two objects have one name"
    scaled = set()
    for each in of_kind(objects, "HorizontalPodAutoscaler"):
        target = each["spec"]["scaleTargetRef"]
        scaled.add(target["name"])
        if (target["kind"], target["name"]) not in names:
            yield f"{title(each)} scales {target['name']}, which is not there"
        if each["spec"].get("minReplicas", 1) > each["spec"]["maxReplicas"]:
            yield f"{title(each)} has more replicas at least than at most"
    pods = {title(each): each["spec"]["template"]["metadata"]["labels"] for each in workloads(objects)}
    policies = {title(each): chosen_by(each["spec"]["podSelector"], pods) for each in of_kind(objects, "NetworkPolicy")}
    if list(pods) not in policies.values():
        yield "no NetworkPolicy is for all pods"
    yield from (f"{policy} is for no pod" for policy, chosen in policies.items() if not chosen)
    for each in of_kind(objects, "Service"):
        chosen = [
            other for other in of_kind(objects, "Deployment") if title(other) in chosen_by(selector_of(each), pods)
        ]
        ports = [port["name"] for other in chosen for port in container_of(other).get("ports", [])]
        if not chosen or [port["targetPort"] for port in each["spec"]["ports"]] != ports:
            yield f"{title(each)} leads to no port of a pod"
    for each in of_kind(objects, "Deployment"):
        if chosen_by(each["spec"]["selector"], pods) != [title(each)]:
            yield f"{title(each)} selects the pods of others, or not its own"
        if ("replicas" in each["spec"]) == (each["metadata"]["name"] in scaled):
            yield f"{title(each)}: either it says how many replicas there are, or an autoscaler does"
    for each in workloads(objects):
        for name, volume in volumes_of(each).items():
            claim = volume.get("persistentVolumeClaim")
            if claim and ("PersistentVolumeClaim", claim["claimName"]) not in names:
                yield f"{title(each)}: the claim {claim['claimName']} of the volume {name} is not there"
            source = volume.get("configMap")
            if source and not source.get("optional") and ("ConfigMap", source["name"]) not in names:
                yield f"{title(each)}: the ConfigMap {source['name']} of the volume {name} is not there"
        for source in container_of(each).get("envFrom", []):
            kind, found = (
                ("ConfigMap", source.get("configMapRef"))
                if "configMapRef" in source
                else ("Secret", source["secretRef"])
            )
            if not found.get("optional") and (kind, found["name"]) not in names:
                yield f"{title(each)}: the {kind} {found['name']} of its environment is not there"
        for word in arguments_of(objects, each):
            if "$(" in word:
                yield f"{title(each)}: {word} has a variable that is not there"
        for probe in ("livenessProbe", "startupProbe"):
            for word in container_of(each)[probe]["exec"]["command"]:
                if "$(" in word:
                    yield f"{title(each)}: a probe gets no variables of a ConfigMap, so not {word}"


def in_quantities(objects: list[Object]) -> Iterator[str]:
    """Quantities that cannot be read, requests above limits, and volumes in memory above what a container may use."""
    for each in of_kind(objects, "PersistentVolumeClaim"):
        if not bytes_or_cores(each["spec"]["resources"]["requests"]["storage"]):
            yield f"{title(each)}: its storage is not a quantity"
    for each in workloads(objects):
        resources = container_of(each)["resources"]
        limits, requests = resources["limits"], resources["requests"]
        for name, text in [*limits.items(), *requests.items()]:
            if not (value := bytes_or_cores(text)):
                yield f"{title(each)}: {name} {text} is not a quantity"
            elif "/" in name and (value % 1 or requests.get(name, text) != limits.get(name)):
                yield f"{title(each)}: {name} must be a whole number, and the limit"
        for name in requests:
            if (bytes_or_cores(requests[name]) or 0) > (bytes_or_cores(limits.get(name, "0")) or 0):
                yield f"{title(each)} requests more {name} than its limit"
        for name, volume in volumes_of(each).items():
            if "emptyDir" in volume:
                size = bytes_or_cores(volume["emptyDir"].get("sizeLimit", ""))
                in_memory = volume["emptyDir"].get("medium") == "Memory"
                if not size or (in_memory and size >= (bytes_or_cores(limits["memory"]) or 0)):
                    yield f"{title(each)}: the volume {name} needs a size below the container's memory"


def in_pods(objects: list[Object]) -> Iterator[str]:
    """Volumes without mounts, names that are cut, and what a pod may do."""
    for each in workloads(objects):
        pod, container = each["spec"]["template"]["spec"], container_of(each)
        mounts = [mount["name"] for mount in container["volumeMounts"]]
        if sorted(mounts) != sorted(volumes_of(each)) or len(mounts) != len(pod["volumes"]):
            yield f"{title(each)}: its volumes {sorted(volumes_of(each))} are not its mounts {sorted(mounts)}"
        if len(each["metadata"]["name"]) + POD_SUFFIX > MAX_WORKER_NAME:
            yield f"{title(each)}: the names of its pods are too long for names of workers"
        about, own = pod.get("securityContext", {}), container.get("securityContext", {})
        hardened = {
            "the user 10001": about.get("runAsNonRoot") and about.get("runAsUser") == about.get("fsGroup") == 10001,
            "a profile for system calls": about.get("seccompProfile") == {"type": "RuntimeDefault"},
            "no capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "no more rights": own.get("allowPrivilegeEscalation") is False,
            "a read-only root": own.get("readOnlyRootFilesystem"),
            "no token": pod.get("automountServiceAccountToken") is False,
            "no variables of services": pod.get("enableServiceLinks") is False,
        }
        yield from (f"{title(each)} does not have {name}" for name, holds in hardened.items() if not holds)


def bytes_or_cores(text: str) -> Decimal | None:
    """Return the number that a quantity stands for, None if it is none."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?", str(text))
    if not found:
        return None
    number, binary, decimal, exponent = found.groups()
    factor = Decimal(10) ** int(exponent or 0)
    if binary:
        factor = Decimal(1024) ** ("KMGTPE".index(binary[0]) + 1)
    if decimal:
        factor = Decimal(1000) ** ("num kMGTPE".index(decimal) - 3)
    return Decimal(number) * factor


def environment_of(objects: list[Object], deployment: Object, pod: str) -> dict[str, str]:
    """Return the variables of a Deployment's container in the pod of this name."""
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")}
    container, found = container_of(deployment), {}
    for source in container.get("envFrom", []):
        found |= maps.get(source.get("configMapRef", {}).get("name"), {})
    for variable in container.get("env", []):
        field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        assert "value" in variable or field == "metadata.name", variable
        found[variable["name"]] = pod if field else variable["value"]
    return found


def arguments_of(objects: list[Object], deployment: Object, pod: str = "selfplay-0123456789-abcde") -> list[str]:
    """Return a container's arguments with the values of variables. Like Kubernetes, leave others as they are."""
    variables = environment_of(objects, deployment, pod)
    known = r"\$\((\w+)\)"
    return [
        re.sub(known, lambda found: variables.get(found[1], found[0]), word)
        for word in container_of(deployment)["args"]
    ]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def workloads(objects: list[Object]) -> list[Object]:
    """Return the objects that make pods: Deployments and Jobs."""
    return [each for each in objects if each["kind"] in ("Deployment", "Job")]


def chosen_by(selector: Object, pods: dict[str, Object]) -> list[str]:
    """Return the names of those that have the labels."""
    return [name for name, labels in pods.items() if selector["matchLabels"].items() <= labels.items()]


def selector_of(service: Object) -> Object:
    return {"matchLabels": service["spec"]["selector"]}


def title(each: Object) -> str:
    return f"{each['kind']} {each['metadata']['name']}"


def container_of(deployment: Object) -> Object:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return container


def volumes_of(deployment: Object) -> dict[str, Object]:
    return {each["name"]: each for each in deployment["spec"]["template"]["spec"]["volumes"]}
