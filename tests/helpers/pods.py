"""A pod as a process of this machine: what a kubelet and a container runtime do for a pod of deploy/kubernetes.

Of a container there are its arguments, variables, volumes, host name, exec probes, restarts, SIGTERM and grace period.
There is no image, user, limit or network of its own: every image is the plyzero of these sources.
"""

import http.client
import os
import re
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.helpers.control_plane import ROOT, ApiServer, NotThereError, RefusedError
from tests.helpers.kubernetes import Object, arguments_of, environment_of

BACK_OFF = (1, 2, 4, 8, 16, 30)
"""Seconds before the first and further restarts of a container; a kubelet waits ten times as long."""

IN_POD = 'hostname "$0" && exec setpriv --pdeathsig KILL -- "$@"'
"""Gives a process the host name of its pod; it is killed when the thread that has started it ends."""


@dataclass(frozen=True)
class End:
    """The end of a container: its exit code, and the seconds since it was asked to end, None if it was not asked."""

    pod: str
    code: int
    seconds: float | None


class PodOfNode:
    """One pod. latest: its object as the server has it; None once it is gone, which ends its process at once."""

    def __init__(self, server: ApiServer, pod: Object, directory: Path, ended: list[End]) -> None:
        self.latest, self.name, self.thread = pod, pod["metadata"]["name"], threading.Thread(target=self._run)
        self._server, self._directory, self._ended, self._spec = server, directory, ended, pod["spec"]
        self._space = f"/api/v1/namespaces/{pod['metadata']['namespace']}"
        (self._container,) = pod["spec"]["containers"]
        self._status = {"phase": "Running", "startTime": now()}
        self._unhealthy = False

    def _run(self) -> None:
        """Start the container again and again until the pod is deleted; then remove the pod."""
        used = [each["configMapRef"]["name"] for each in self._container["envFrom"]]
        maps = [{**self._server.get(f"{self._space}/configmaps/{name}"), "kind": "ConfigMap"} for name in used]
        about = (maps, {"spec": {"template": {"spec": self._spec}}}, self.name)
        paths = {each["name"]: each["mountPath"] for each in self._container["volumeMounts"]}
        self._variables = environment_of(*about)
        self._mounts = {paths[each["name"]]: self._directory_of(each) for each in self._spec["volumes"]}
        state = {"restartCount": 0, "lastState": {}, "state": {"running": {}}}
        while not self._is_deleted():
            self.process, self._unhealthy = self._start(["plyzero", *arguments_of(*about)]), False
            self._report(state)
            prober = threading.Thread(target=self._probe, args=(state,))
            prober.start()
            self._ended.append(end := self._wait())
            prober.join()
            state |= {"lastState": {"terminated": {"exitCode": end.code % 256}}}
            self._report(state | {"state": {"waiting": {"reason": "CrashLoopBackOff"}}})
            again = time.monotonic() + BACK_OFF[min(state["restartCount"], len(BACK_OFF) - 1)]
            while time.monotonic() < again and not self._is_deleted():
                time.sleep(0.1)
            state["restartCount"] += 1
        if self.latest is not None:
            self._server.request("DELETE", f"{self._space}/pods/{self.name}", {"gracePeriodSeconds": 0})

    def _is_deleted(self) -> bool:
        return self.latest is None or "deletionTimestamp" in self.latest["metadata"]

    def _wait(self) -> End:
        """Wait until the process has ended: by itself, or asked to because the pod was deleted or is not healthy."""
        asked, grace = None, self._spec["terminationGracePeriodSeconds"]
        while self.process.poll() is None:
            if self.latest is None or (asked and time.monotonic() > asked + grace):
                self.process.kill()
            elif asked is None and (self._is_deleted() or self._unhealthy):
                self.process.terminate()
                asked = time.monotonic()
            time.sleep(0.05)
        return End(self.name, self.process.returncode, asked and time.monotonic() - asked)

    def _probe(self, state: Object) -> None:
        """Run the startup probe until it passes, then the liveness probe; after too many failures, say so and end."""
        for kind in ("startupProbe", "livenessProbe"):
            probe, failures = self._container[kind], 0
            while self.process.poll() is None:
                passed = self._passes(probe)
                failures = 0 if passed else failures + 1
                if failures >= probe["failureThreshold"]:
                    self._unhealthy = True
                    return
                if passed and kind == "startupProbe":
                    self._report(state, ready=True)
                    break
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(probe["periodSeconds"])

    def _passes(self, probe: Object) -> bool:
        asked, deadline = self._start(probe["exec"]["command"]), time.monotonic() + probe["timeoutSeconds"]
        while asked.poll() is None and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        asked.kill()
        return asked.wait() == 0

    def _report(self, state: Object, *, ready: bool = False) -> None:
        """Tell the server how the pod is; a server that does not answer now is told the next time."""
        if self.latest is None:
            return
        holds = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
        conditions = [{"type": key, "status": str(value), "lastTransitionTime": now()} for key, value in holds.items()]
        container = {key: self._container[key] for key in ("name", "image")}
        container |= {**state, "ready": ready, "started": ready, "imageID": ""}
        status = {**self._status, "conditions": conditions, "containerStatuses": [container]}
        with suppress(OSError, http.client.HTTPException, RefusedError):
            self._server.merge(f"{self._space}/pods/{self.name}/status", {"status": status})

    def _directory_of(self, volume: Object) -> Path:
        own = self._directory / self.name / volume["name"]
        own.mkdir(parents=True)
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
            claim = self._server.get(f"{self._space}/persistentvolumeclaims/{name}")
            volume = self._server.get(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
            return Path(volume["spec"]["hostPath"]["path"])
        if "configMap" in volume:
            with suppress(NotThereError):  # those of deploy/kubernetes are optional
                files = self._server.get(f"{self._space}/configmaps/{volume['configMap']['name']}")["data"]
                for name, text in files.items():
                    (own / name).write_text(text)
        return own

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a command in the container. Where it names a mount, it gets the directory that is mounted there."""
        mounts = rf"(?<![\w/])({'|'.join(map(re.escape, self._mounts))})(?![\w.-])"
        words = [re.sub(mounts, lambda at: str(self._mounts[at[1]]), word) for word in command]
        namespace = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--uts"]
        own = {"PATH": f"{self._directory}/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        own |= {"HOME": str(self._mounts["/tmp"]), "TMPDIR": str(self._mounts["/tmp"]), "COUNTED": str(self._directory)}
        with (self._directory / f"{self.name}.log").open("ab") as log:
            return subprocess.Popen(
                [*namespace, "sh", "-c", IN_POD, self.name, *words],
                env={**own, **self._variables},
                cwd=self._mounts["/games"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


def now() -> str:
    """Return the time in the form of Kubernetes."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
