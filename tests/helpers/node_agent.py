"""A node of a cluster: it runs the pods that the scheduler has bound to it, as processes of this machine."""

import http.client
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.helpers.control_plane import ApiServer, RefusedError
from tests.helpers.pods import End, PodOfNode


class NodeAgent:
    """Runs the pods of one node from `with` to its end, at which they are killed as if the node had lost its power.

    ended: the ends of containers, in their order.
    """

    def __init__(self, server: ApiServer, node: str, directory: Path) -> None:
        self.ended, self._pods = list[End](), dict[str, PodOfNode]()
        self._server, self._node, self._directory = server, node, directory
        self._lost, self._thread = threading.Event(), threading.Thread(target=self._follow)
        program = directory / "bin" / "plyzero"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m tests.helpers.counted "$@"\n')
        program.chmod(0o755)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._lost.set()
        self._thread.join()
        for pod in self._pods.values():
            pod.latest = None
        for pod in self._pods.values():
            pod.thread.join()

    def process_of(self, pod: str) -> int:
        """Return the number of the process that runs in the pod of this name."""
        (found,) = (each.process.pid for each in self._pods.values() if each.name == pod)
        return found

    def _follow(self) -> None:
        while not self._lost.wait(0.2):
            with suppress(OSError, http.client.HTTPException, RefusedError):
                bound = self._server.get("/api/v1/pods", fieldSelector=f"spec.nodeName={self._node}")["items"]
                objects = {pod["metadata"]["uid"]: pod for pod in bound}
                for uid in objects.keys() - self._pods.keys():
                    self._pods[uid] = PodOfNode(self._server, objects[uid], self._directory, self.ended)
                    self._pods[uid].thread.start()
                for uid, pod in self._pods.items():
                    pod.latest = objects.get(uid)
