"""A real Kubernetes without nodes: etcd, API server, controllers and scheduler as processes of this machine.

tests/cluster/build_control_plane.sh makes the programs.
"""

import base64
import http.client
import json
import secrets
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.helpers.kubernetes import Object, find_kubectl
from tests.helpers.ports import free_ports

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "build" / "control-plane" / "bin"
SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
START_SECONDS = 180
"""Largest time to start everything, on a loaded machine."""

CONTROLLERS = (
    *("deployment", "replicaset", "horizontalpodautoscaling", "disruption"),
    *("namespace", "serviceaccount", "serviceaccount-token", "garbagecollector"),
    *("persistentvolume-binder", "pvc-protection", "pv-protection"),
)
"""Controllers that deploy/kubernetes needs; not `nodelifecycle`, since nodes are objects that nothing renews."""

FAST_AUTOSCALER = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=3s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--kube-api-content-type=application/json",  # the tests serve metrics as custom resources, which have no protobuf
)


class RefusedError(Exception):
    """The API server did not do what it was asked to do. The message is its own."""


class NotThereError(RefusedError):
    """There is no such object."""


class ApiServer:
    """The API of a control plane: plain requests, and kubectl."""

    def __init__(self, address: str, token: str, certificate: Path, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._host, self._token = urlsplit(address).netloc, token
        self._trust = ssl.create_default_context(cafile=str(certificate))

    def get(self, path: str, **query: str) -> Object:
        return self.request("GET", path, **query)

    def create(self, path: str, body: Object) -> Object:
        return self.request("POST", path, body)

    def merge(self, path: str, body: Object) -> Object:
        return self.request("PATCH", path, body, form="application/merge-patch+json")

    def request(
        self, method: str, path: str, body: Object | None = None, *, form: str = "application/json", **query: str
    ) -> Object:
        """Return the object that the server answers with. Raises RefusedError for an answer that is an error."""
        with self._open(method, path, body, form, query) as answer:
            return dict(json.loads(answer.read()))

    def watch(self, path: str, seconds: int, **query: str) -> Iterator[Object]:
        """Yield the events of a collection as they happen, for at most so many seconds."""
        query |= {"watch": "1", "timeoutSeconds": str(seconds)}
        with self._open("GET", path, None, "application/json", query, timeout=seconds + 30) as answer:
            yield from map(json.loads, answer)

    @contextmanager
    def _open(
        self, method: str, path: str, body: Object | None, form: str, query: Mapping[str, str], timeout: float = 60
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(self._host, timeout=timeout, context=self._trust)
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": form, "Accept": "application/json"}
            address = f"{path}?{urlencode(query)}" if query else path
            connection.request(method, address, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            if answer.status >= 300:
                kind = NotThereError if answer.status == 404 else RefusedError
                raise kind(f"{answer.status}: {answer.read().decode(errors='replace')}")
            yield answer
        finally:
            connection.close()

    def kubectl(self, *words: str | Path, objects: list[Object] | None = None) -> str:
        """Return what kubectl prints; `objects` are its standard input. Raises RefusedError where it fails."""
        command = [find_kubectl(), "--kubeconfig", self.kubeconfig, *words]
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects or []})
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise RefusedError(done.stderr)
        return done.stdout


@contextmanager
def control_plane(directory: Path) -> Iterator[ApiServer]:
    """Start a control plane whose files are in `directory`; end it when the context does, or this process.

    Skips the test where the programs have not been built.
    """
    missing = [name for name in SERVERS if not (PROGRAMS / name).is_file()]
    if missing:
        pytest.skip(f"no {', '.join(missing)} in {PROGRAMS}; run make control-plane")
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl, which makes the key of the service accounts")
    key, tokens, token = directory / "accounts.key", directory / "tokens.csv", secrets.token_hex()
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    tokens.write_text(f"{token},admin,admin,system:masters\n")
    client, peer, api = free_ports(3)
    with ExitStack() as ending:

        def start(name: str, *flags: str) -> None:
            ending.enter_context(program(name, directory, *flags))

        start(
            *("etcd", f"--data-dir={directory}/etcd", f"--listen-client-urls=http://127.0.0.1:{client}"),
            *(f"--advertise-client-urls=http://127.0.0.1:{client}", f"--listen-peer-urls=http://127.0.0.1:{peer}"),
            *(
                f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-cluster=default=http://127.0.0.1:{peer}",
            ),
        )
        start(
            *("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}", f"--cert-dir={directory}"),
            *("--bind-address=127.0.0.1", f"--secure-port={api}", "--endpoint-reconciler-type=none"),
            *("--authorization-mode=RBAC", "--anonymous-auth=false", f"--token-auth-file={tokens}"),
            *("--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://plyzero.test"),
            *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
            "--disable-admission-plugins=TaintNodesByCondition",  # nobody would say that a node is ready
        )
        server = connect(f"https://127.0.0.1:{api}", token, directory)
        loopback = (f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--port=0", "--secure-port=0")
        start(
            *("kube-controller-manager", *loopback, f"--controllers={','.join(CONTROLLERS)}", *FAST_AUTOSCALER),
            f"--service-account-private-key-file={key}",
        )
        start("kube-scheduler", *loopback)
        wait_until(lambda: server.get("/api/v1/namespaces/default/serviceaccounts/default"), START_SECONDS)
        yield server


def connect(address: str, token: str, directory: Path) -> ApiServer:
    """Return the API server at this address as soon as it is ready; its certificate is in `directory`."""
    certificate, kubeconfig = directory / "apiserver.crt", directory / "kubeconfig"
    wait_until(certificate.exists, START_SECONDS)
    trusted = base64.b64encode(certificate.read_bytes()).decode()
    about = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": address, "certificate-authority-data": trusted}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    kubeconfig.write_text(json.dumps(about))
    server = ApiServer(address, token, certificate, kubeconfig)
    wait_until(lambda: server.get("/version") and server.get("/api/v1/namespaces/kube-system"), START_SECONDS)
    return server


@contextmanager
def program(name: str, directory: Path, *flags: str) -> Iterator[None]:
    """Run a program of the control plane; its log is in `directory`. It is killed if this process is."""
    log = directory / f"{name}.log"
    command = ["setpriv", "--pdeathsig", "KILL", "--", PROGRAMS / name, *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=directory)
    try:
        yield
        assert process.poll() is None, f"{name} ended by itself: {log.read_text(errors='replace')[-3000:]}"
    finally:
        end(process)


def end(process: subprocess.Popen[bytes], seconds: float = 10) -> None:
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until(
    holds: Callable[[], object], seconds: float, what: Callable[[], object] = lambda: "waited in vain"
) -> None:
    """Wait until a condition holds; a server that refuses or does not answer counts as a condition that does not."""
    deadline, last = time.monotonic() + seconds, ""
    while True:
        try:
            if holds():
                return
        except (OSError, http.client.HTTPException, RefusedError) as error:
            last = str(error)
        assert time.monotonic() < deadline, f"{what()} after {seconds} s {last}"
        time.sleep(0.1)
