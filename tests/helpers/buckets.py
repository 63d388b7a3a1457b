"""Buckets for tests: an S3 server of the tests' own, and a proxy in front of it that injects faults."""

import http.client
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

import boto3

from plyzero.kits.cluster import bucket
from plyzero.kits.cluster.bucket import BucketPath

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_REGION": "us-east-1"}

Fault = Callable[[str, str], str | None]
"""From the method and the path of a request to what goes wrong: None, or one of FAULTS."""

FAULTS = ("lost answer", "refused", "denied", "slow", "cut", "unconditional")
"""lost answer = the store does it, and the connection ends. refused = 503. denied = 403, as for a wrong key.
slow = the answer comes after SLOW_SECONDS. cut = half of the answer.
unconditional = the store is not told that the object must not exist."""

SLOW_SECONDS = 2.0


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the endpoint of an S3 server in this process, with the bucket `runs`."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    answer, one_at_a_time = DomainDispatcherApplication.__call__, threading.Lock()

    def answer_alone(application: Any, environment: Any, start_response: Any) -> Any:
        with one_at_a_time:  # moto looks whether an object exists, and writes it, in two steps
            return answer(application, environment, start_response)

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with patch.object(DomainDispatcherApplication, "__call__", answer_alone):
        server.start()
        try:
            host, port = server.get_host_and_port()
            endpoint = f"http://{host}:{port}"
            keys = {name.lower(): value for name, value in CREDENTIALS.items() if name != "AWS_REGION"}
            client = boto3.client("s3", endpoint_url=endpoint, region_name=CREDENTIALS["AWS_REGION"], **keys)
            client.create_bucket(Bucket="runs")
            yield endpoint
        finally:
            server.stop()


@contextmanager
def connected(endpoint: str) -> Iterator[None]:
    """Let this process, and those that it starts, use the buckets of an endpoint."""
    environment = {"AWS_ENDPOINT_URL": endpoint, **CREDENTIALS}
    with patch.dict(os.environ, environment), patch.dict(bucket._stores, clear=True):
        yield


def new_prefix(scheme: str = "s3") -> BucketPath:
    """A place in the bucket `runs` where nothing is."""
    return BucketPath(f"{scheme}://runs/{uuid.uuid4().hex}")


class Proxy:
    """A server that passes requests on to `endpoint`, except where `fault` says what goes wrong.

    endpoint: that of the proxy.
    injected: the faults that have happened.
    """

    def __init__(self, endpoint: str) -> None:
        self.fault: Fault = lambda method, path: None
        self.injected: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler(endpoint.removeprefix("http://")))
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def times(self, count: int, fault: str, method: str) -> None:
        """Inject a fault into the next `count` requests with this method."""
        left = count

        def next_fault(asked: str, path: str) -> str | None:
            nonlocal left
            if asked != method or left == 0:
                return None
            left -= 1
            return fault

        self.fault = next_fault

    def _make_handler(self, upstream: str) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fault = proxy.fault(self.command, self.path)
                if fault:
                    proxy.injected.append(fault)
                if fault in ("refused", "denied"):
                    if fault == "refused":
                        self.send_response(503, "Slow Down")
                    else:
                        self.send_response(403, "Forbidden")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                headers = dict(self.headers)
                if fault == "unconditional":
                    headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
                connection = http.client.HTTPConnection(upstream, timeout=60)
                connection.request(self.command, self.path, content, headers)
                answer = connection.getresponse()
                body = answer.read()
                connection.close()
                if fault == "lost answer":
                    self.close_connection = True
                    return
                if fault == "slow":
                    time.sleep(SLOW_SECONDS)
                self.send_response(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(body))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                if fault == "cut":
                    self.wfile.write(body[: len(body) // 2])
                    self.close_connection = True
                elif self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = pass_on

            def log_message(self, *_: object) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:  # a client that waits no longer
                    self.close_connection = True

        return Handler
