"""Mailboxes in shared memory: whoever is killed or suspended leaves nothing behind, and nobody waits for it."""

import fcntl
import json
import os
import random
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.evaluator import LABEL, PROCESSES, PretendedGpu, serve
from plyzero.files import socket_address
from plyzero.kits.cluster import local_evaluator, mailboxes
from plyzero.kits.cluster.batcher import Batcher
from plyzero.kits.cluster.evaluation_server import serving
from plyzero.kits.cluster.mailboxes import ANSWER, REQUEST, describe
from plyzero.kits.cluster.remote_network import RemoteNetwork
from plyzero.network.model_loader import load_newest
from plyzero.run.directory import Run, open_run
from plyzero.search.evaluators import EvaluationBatch
from tests.helpers import inference
from tests.helpers.inference import batch_of, ready_run
from tests.helpers.runs import small_run
from tests.helpers.surroundings import wait_until

LONGEST = 3.0
"""Time in which a worker is answered, or gives up, in seconds; a busy machine may add a little."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = small_run(tmp_path / "r", "connect-four")
    (made.models / LABEL).write_bytes(b"")  # of the pretended GPU
    return made


@contextmanager
def server(run: Run, *, max_batch: int = 64) -> Iterator[tuple[str, Batcher]]:
    """An evaluator in threads, with a pretended GPU; its address."""
    watch: Any = PretendedGpu(run)
    with Batcher(watch, max_batch=max_batch, wait_seconds=0) as batcher:
        wait_until(lambda: batcher.label)
        with serving(run, batcher) as port:
            yield f"127.0.0.1:{port}", batcher


def open_sockets() -> int:
    """Number of sockets that this process has open."""
    found = 0
    for each in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found += os.readlink(f"/proc/self/fd/{each}").startswith("socket:")
    return found


def sockets(run: Run) -> list[str]:
    return sorted(path.name for path in run.workers.iterdir() if path.suffix == ".sock" or path.name.startswith("."))


def blocks() -> int:
    """Number of blocks that this process has mapped."""
    return Path("/proc/self/maps").read_text().count("memfd:plyzero")


@contextmanager
def connection(run: Run) -> Iterator[socket.socket]:
    (name,) = sockets(run)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made, socket_address(run.workers / name) as address:
        made.settimeout(20)
        made.connect(address)
        yield made


@contextmanager
def worker(run: Run) -> Iterator[tuple[socket.socket, mailboxes.Block]]:
    """A worker by hand: its connection to an evaluator, and the block that it got."""
    with connection(run) as made:
        made.send(json.dumps(describe(run)).encode())
        content, (descriptor,), _, _ = socket.recv_fds(made, 1 << 13, 1)
        block = mailboxes.Block(descriptor, run.game.start, json.loads(content)["positions"])
        os.close(descriptor)
        yield made, block


@contextmanager
def evaluator(run: Run, port: int = 0, **gpu: float) -> Iterator[tuple[BaseProcess, int]]:
    """An evaluator with a pretended GPU in a process of its own, which is killed at the end."""
    bound = PROCESSES.Value("i", port)
    before = sockets(run)
    process = PROCESSES.Process(target=serve, args=(run.root, bound), kwargs=gpu, daemon=True)
    process.start()
    try:
        wait_until(lambda: bound.value and set(sockets(run)) - {*before})
        yield process, bound.value
    finally:
        process.kill()
        process.join()


def timed(remote: RemoteNetwork, batch: EvaluationBatch) -> tuple[Any, float]:
    began = time.monotonic()
    return remote.send(batch).answer(), time.monotonic() - began


def back(remote: RemoteNetwork) -> bool:
    remote.refresh()
    return remote.is_ready and remote._local is not None


@contextmanager
def connected(address: str, run: Run) -> Iterator[RemoteNetwork]:
    """A worker's connection in shared memory, however busy the machine is."""
    with closing(RemoteNetwork(address, run, retry_seconds=0.1)) as remote:
        wait_until(lambda: back(remote))
        yield remote


def test_answers_have_the_points_that_the_network_expects(tmp_path: Path):
    run = ready_run(tmp_path / "r", "tests.helpers.toys:Harvest")
    network, seen = load_newest(run.models, run.game), batch_of(run).observations
    with inference.server(run) as (address, _), connected(address, run) as remote:
        for size in (8, 1, 5):
            batch = EvaluationBatch(seen[:size], list)
            found, expected = remote(batch), network(batch)
            assert found.wdl.shape == (size, 4)
            assert np.array_equal(found.logits, expected.logits)
            assert np.array_equal(found.wdl, expected.wdl)


def test_each_worker_gets_its_own_answers(run: Run):
    gpu, rng = PretendedGpu(run), np.random.default_rng(0)
    shape = run.game.start.observation_shape
    batches = [rng.integers(0, 2, (size, *shape)).astype(np.float32) for size in rng.integers(1, 9, 40)]

    def ask(address: str) -> None:
        with connected(address, run) as remote:
            calls = [remote.send(EvaluationBatch(batches[0], list))]
            for before, batch in zip(batches, [*batches[1:], None], strict=True):  # two on their way
                if batch is not None:
                    calls.append(remote.send(EvaluationBatch(batch, list)))
                answer, expected = calls.pop(0).answer(), gpu.answer(before)
                assert np.array_equal(answer.evaluation.logits, expected.logits)
                assert np.array_equal(answer.evaluation.wdl, expected.wdl)
                assert (answer.fence, answer.step, answer.label) == (gpu.fence, gpu.step, gpu.label)

    with evaluator(run, rate=20_000) as (_, port), ThreadPoolExecutor() as pool:
        list(pool.map(ask, [f"127.0.0.1:{port}"] * 4))


def test_no_worker_waits_long_for_an_evaluator_that_is_killed_or_suspended_and_nothing_of_it_stays(run: Run, caplog):
    batch = batch_of(run)
    mapped = blocks()
    with evaluator(run, latency=0.05) as (process, port), connected(f"127.0.0.1:{port}", run) as remote:
        wait_until(lambda: back(remote) and remote.send(batch).answer())
        os.kill(process.pid, signal.SIGSTOP)
        answer, seconds = timed(remote, batch)
        assert answer is None
        assert 2 < seconds < LONGEST + 1
        assert "is not used: its process is suspended; evaluating here" in caplog.text
        wait_until(lambda: remote.refresh() or remote._probe)  # which waits for the hello
        os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: back(remote) and remote.send(batch).answer())
        call = remote.send(batch)
        process.kill()
        began = time.monotonic()
        assert call.answer() is None
        assert time.monotonic() - began < LONGEST
        assert (len(sockets(run)), blocks()) == (1, mapped)
        wait_until(lambda: remote.refresh() or not sockets(run))
        process.join()
        with evaluator(run, port) as (process, _):
            wait_until(lambda: back(remote) and remote.send(batch).answer())
    with closing(RemoteNetwork(f"127.0.0.1:{port}", run)) as refused:
        assert not refused.is_ready
    assert (sockets(run), blocks()) == ([], mapped)
    assert not [name for name in os.listdir("/dev/shm") if "plyzero" in name]


def ask_forever(root: Path, port: int, waits: Any, answers: Any) -> None:
    """Be a worker: its longest wait goes into `waits`. Wrong answers end it."""
    run = open_run(root)
    gpu, remote, batch = PretendedGpu(run), RemoteNetwork(f"127.0.0.1:{port}", run, retry_seconds=0.2), batch_of(run)
    expected = gpu.answer(batch.observations)
    while True:
        remote.refresh()
        if not remote.is_ready:
            time.sleep(0.01)
            continue
        before = waits[1]
        answer, seconds = timed(remote, batch)
        if before == waits[1]:  # it was not suspended itself meanwhile
            waits[0] = max(waits[0], seconds)
        if answer is not None:
            assert np.array_equal(answer.evaluation.logits, expected.logits)
            answers.value += 1


def start_worker(run: Run, port: int, state: tuple[Any, Any]) -> BaseProcess:
    process = PROCESSES.Process(target=ask_forever, args=(run.root, port, *state), daemon=True)
    process.start()
    return process


def new_state() -> tuple[Any, Any]:
    return PROCESSES.Array("d", 2), PROCESSES.Value("i", 0)


def test_an_evaluator_keeps_nothing_of_workers_that_are_killed_or_suspended(run: Run):
    with server(run) as (address, batcher):
        mapped, before, port = blocks(), open_sockets(), int(address.rpartition(":")[2])
        states = [new_state() for _ in range(2)]
        workers = [start_worker(run, port, each) for each in states]
        wait_until(lambda: blocks() == mapped + 2 and batcher.batches > 20)
        os.kill(workers[0].pid, signal.SIGSTOP)
        batches = batcher.batches
        wait_until(lambda: batcher.batches > batches + 20)
        for worker in workers:
            worker.kill()
            worker.join()
        wait_until(lambda: (blocks(), open_sockets()) == (mapped, before), 60)
        assert not batcher._requests
        with connected(address, run) as remote:
            assert len(remote(batch_of(run)).wdl) == 8


def test_impossible_messages_end_their_connection_and_no_other(run: Run, caplog: pytest.LogCaptureFixture):
    hello, positions = json.dumps(describe(run)).encode(), batch_of(run).observations
    requests = [REQUEST.pack(*request) for request in ((2, 1), (0, 0), (1, 17), (0, 1 << 31))]
    with server(run, max_batch=16) as (address, _), connected(address, run) as other:
        for message in (b"\0", b"[" * 2000, b"{}x"):
            with connection(run) as made:
                made.send(message)
                assert made.recv(1 << 13) == b""
        for message in (b"", b"x", *requests):
            with connection(run) as made:
                made.send(hello)
                content, descriptors, _, _ = socket.recv_fds(made, 1 << 13, 1)
                assert json.loads(content) == {"positions": 16}
                with pytest.raises(PermissionError):  # it cannot be made smaller, which would end the evaluator
                    os.ftruncate(descriptors[0], 64)
                os.close(descriptors[0])
                made.send(message)
                assert made.recv(1 << 13) == b""
        with worker(run) as (made, block):  # numbers that are none, or huge, are the worker's fault, not the model's
            for number in (np.nan, np.inf, 3e38, -1e5):
                block.observations[1, :8] = 0
                block.observations[1, 7].flat[-1] = number
                made.send(REQUEST.pack(1, 8))
                packet = made.recv(1 << 13)
                assert ANSWER.unpack_from(packet) == (1, 0)
                said = b"expected observations of numbers between -65504 and 65504, got some that are not"
                assert packet[ANSWER.size :] == said
        assert np.array_equal(other(EvaluationBatch(positions, list)).wdl, other(batch_of(run)).wdl)
    assert "a worker sent an impossible message: ValueError('1 positions in mailbox 2')" in caplog.text


def test_what_a_worker_writes_after_its_request_has_been_checked_is_not_evaluated(run: Run, monkeypatch):
    with server(run) as (_, batcher), worker(run) as (made, block):
        add = batcher.add

        def write_first(request: Any) -> None:
            block.observations[0, :2] = np.nan
            assert (request.observations == 1).all()
            add(request)

        monkeypatch.setattr(batcher, "add", write_first)
        block.observations[0, :2] = 1
        made.send(REQUEST.pack(0, 2))
        assert ANSWER.unpack_from(made.recv(1 << 13)) == (0, 3)


@contextmanager
def answering(run: Run, hello: bytes, *, seals: int = 0) -> Iterator[tuple[str, Callable[[], Any]]]:
    """An evaluator that answers a worker with `hello` and a block that has some seals, and does nothing else.

    Its address, and what returns its end of the newest connection, with the descriptor of the block.
    """
    listening = mailboxes._listen(run.workers / f"evaluator.00000000{mailboxes.socket_ending(9)}")
    listening.setblocking(True)
    descriptor = os.memfd_create("plyzero", os.MFD_ALLOW_SEALING)
    os.truncate(descriptor, mailboxes.block_bytes(run.game.start, 16))
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    connections: list[socket.socket] = []

    def answer() -> None:
        with suppress(OSError):  # the end of `listening`
            while True:
                connections.append(listening.accept()[0])
                connections[-1].recv(1 << 13)
                socket.send_fds(connections[-1], [hello], [descriptor])

    with ThreadPoolExecutor() as pool:
        pool.submit(answer)
        yield "127.0.0.1:9", lambda: (connections[-1], descriptor)
        listening.shutdown(socket.SHUT_RDWR)
    for each in (listening, *connections):
        each.close()
    os.close(descriptor)


def test_a_worker_uses_no_memory_that_could_be_made_smaller(run: Run, caplog: pytest.LogCaptureFixture):
    with answering(run, b'{"positions": 16}') as (address, _), closing(RemoteNetwork(address, run)) as remote:
        wait_until(lambda: remote.refresh() or caplog.records)
        assert not remote.is_ready
    expected = "expected memory that is sealed against being made smaller, got other memory"
    assert f"is not used: its shared memory cannot be used: {expected}; evaluating here" in caplog.text


@pytest.mark.parametrize(
    "hello",
    [
        b'{"positions": 1e300}',
        b'{"positions": 1000000000000}',
        b'{"positions": true}',
        b'{"positions": -1}',
        b'{"positions": "16"}',
        b"{}",
        b"[]",
        b"16",
        b"\xff",
        b"[" * 3000,
        b'{"positions": NaN}',
    ],
)
def test_a_worker_that_is_told_nonsense_says_so_in_one_sentence(run: Run, hello: bytes, caplog):
    with (
        answering(run, hello, seals=fcntl.F_SEAL_SHRINK) as (address, _),
        closing(RemoteNetwork(address, run)) as remote,
    ):
        wait_until(lambda: remote.refresh() or caplog.records)
        assert not remote.is_ready
    (warning,) = [record.message for record in caplog.records]
    assert re.fullmatch(
        r"the evaluator \S+ is not used: its shared memory cannot be used: expected .*; evaluating here", warning
    )


@pytest.mark.parametrize(
    ("columns", "label", "number", "reason"),
    [
        (
            3,
            "000001-000000011-00000000.onnx",
            1 / 3,
            "names '000001-000000011-00000000.onnx', which is no model of the run",
        ),
        (3, "\x1b[31m", 1 / 3, "which is no model of the run"),
        (3, LABEL, np.nan, "its wdl are not finite numbers that are probabilities"),
        (3, LABEL, 0.5, "its wdl are not finite numbers that are probabilities"),
        (4, LABEL, 0.25, "its outputs have the shapes (2, 7) and (2, 4), expected (2, 7) and (2, 3)"),
        (9, LABEL, 1 / 9, "its outputs have the shapes (2, 7) and (2, 9)"),
        (1 << 31, LABEL, 1 / 3, "its message cannot be read"),
    ],
)
def test_an_impossible_answer_in_shared_memory_is_not_used(run: Run, columns, label, number, reason, caplog):
    sealed = answering(run, b'{"positions": 16}', seals=fcntl.F_SEAL_SHRINK)
    with sealed as (address, found), closing(RemoteNetwork(address, run)) as remote:
        wait_until(lambda: back(remote))
        call = remote.send(batch_of(run, 2))
        connection, descriptor = found()
        mailboxes.Block(descriptor, run.game.start, 16).wdl[0] = number
        connection.send(ANSWER.pack(0, columns) + label.encode())
        assert call.answer() is None
        assert not remote.is_ready
    assert reason in caplog.text


def test_a_worker_of_another_version_is_refused_with_a_sentence_and_uses_grpc(run: Run, monkeypatch):
    with server(run) as (address, _):
        with connection(run) as made:
            made.send(json.dumps(describe(run) | {"version": 7}).encode())
            sentence = json.loads(made.recv(1 << 13))["error"]
            assert "got a worker of {'version': 7, 'model': 'connect-four_v1_" in sentence
            assert sentence.endswith("give both the same --run and the same version of plyzero")
        monkeypatch.setattr(local_evaluator, "describe", lambda run: describe(run) | {"version": 7})
        with closing(RemoteNetwork(address, run, retry_seconds=0.05)) as remote:
            assert remote.is_ready
            assert remote._local is None
            assert len(remote(batch_of(run)).wdl) == 8
            monkeypatch.undo()
            wait_until(lambda: back(remote))  # gRPC is left once shared memory can be used
            assert len(remote(batch_of(run)).wdl) == 8


def test_a_run_with_a_long_name_and_a_system_without_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = small_run(tmp_path / ("long" * 50) / "r", "connect-four")
    (run.models / LABEL).write_bytes(b"")
    with server(run) as (address, _), connected(address, run):
        pass

    def fail(*_: object) -> None:
        raise OSError("no sockets here")

    for name in ("socket_address", "socket_ending"):  # the volume has none; another system
        with monkeypatch.context() as patched:
            patched.setattr(mailboxes, name, fail)
            patched.setattr(local_evaluator, name, fail)
            with server(run) as (address, _), closing(RemoteNetwork(address, run)) as remote:
                assert remote._local is None
                assert len(remote(batch_of(run)).wdl) == 8
    assert sockets(run) == []


def suspend(process: BaseProcess, seconds: float) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGCONT)


@pytest.mark.soak
def test_random_kills_and_suspensions_leave_nothing_and_nobody_waits_long(run: Run):
    rng = random.Random(1)
    state = [new_state() for _ in range(3)]
    with evaluator(run) as (_, port):
        pass
    workers = [start_worker(run, port, each) for each in state]
    try:
        for _ in range(8):
            with evaluator(run, port, latency=0.002) as (process, _):
                before = [count.value for _, count in state]
                for (_, count), old in zip(state, before, strict=True):
                    wait_until(lambda count=count, old=old: count.value > old)
                number = rng.randrange(3)
                match rng.randrange(4):
                    case 0:
                        workers[number].kill()
                        workers[number].join()
                        workers[number] = start_worker(run, port, state[number])
                    case 1:
                        state[number][0][1] += 1
                        suspend(workers[number], rng.random())
                    case 2:
                        suspend(process, 4 * rng.random())
                time.sleep(rng.random() / 2)
        assert all(worker.is_alive() for worker in workers), "a wrong answer"
        assert max(waits[0] for waits, _ in state) < LONGEST + 1
        wait_until(lambda: not sockets(run))  # workers remove what the last one has left
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
