"""Data parallelism: several processes, each with a device of its own, make every step of a learner together.

The process of the trainer is rank 0. It starts the others and gives them, through the standard input of each, first
what a learner is made of and then their rows of every batch. When that input ends, such a process ends. Gradients are
averaged by torch's `DistributedDataParallel`, so all processes have the same weights after every step.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed import FileStore, Store  # type: ignore[attr-defined]
from torch.nn.parallel import DistributedDataParallel

from plyzero.errors import FailedError, UserError
from plyzero.ops.child import PYTHON, Child
from plyzero.ops.failures import describe_exit
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.run.directory import Run
from plyzero.settings import Settings
from plyzero.threads import start_thread
from plyzero.trainer.learner import Learner
from plyzero.trainer.loss import Losses
from plyzero.trainer.network import choose_device
from plyzero.trainer.parts import make_parts
from plyzero.trainer.state import pack_state
from plyzero.trainer.window import Batch, BatchTensors

START_SECONDS: Final = 300.0  # longest time until all processes can make a step
STEP_SECONDS: Final = 300.0  # longest time of a step; it takes longer only if a process no longer answers
NOTICE_SECONDS: Final = 5.0  # time to notice that another process has ended, when a step has failed because of it
END_SECONDS: Final = 10.0  # time for a process to end, before it is killed
POLL_SECONDS: Final = 0.1  # time between two looks at the processes
COMMAND: Final = "from plyzero.kits.cluster.data_parallel import run_rank; run_rank()"

log = logging.getLogger(__name__)


class RankError(FailedError):
    """A process has ended or does not answer, so no further step is possible. The message is one sentence."""


def prepare_devices(run: Run, *, device: str, devices: int) -> Callable[[Learner], Ranks]:
    """Return the function that starts the devices of the trainer of `run`; it raises RankError if that fails.

    device:  cpu, cuda or auto.
    devices: number of GPUs, or of processes on the CPU.

    Raises UserError if there are not as many, or if they cannot share a batch.
    """
    check_devices(devices, choose_device(device), asked=device, batch_size=run.settings.trainer.batch_size)
    return partial(Ranks, run=run, devices=devices)


class Ranks:
    """The processes that make the steps of a learner together; this one is rank 0.

    The others end when this one closes them, and when it ends in any other way, even by SIGKILL.
    """

    def __init__(self, learner: Learner, *, run: Run, devices: int) -> None:
        """Start `devices` - 1 processes with copies of `learner` as it is now. Raises RankError if that fails."""
        self._learner = learner
        self._devices = devices
        self._failure = ""  # why no further step is possible
        self._failed = threading.Event()
        self._closed = threading.Event()
        self._is_closing = False
        self._limit: _Limit | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="plyzero-")
        self._others: list[Child] = []
        try:
            for rank in range(1, devices):
                self._others.append(Child(f"process {rank}", [*PYTHON, "-c", COMMAND]))
            start_thread(self._watch, name="ranks")
            with self._noticing_failures(START_SECONDS):
                self._join_all(run)
            if learner.device.type == "cpu":
                log.info("%d processes on the CPU train together, which is for tests", devices)
        except BaseException:
            self.close()
            raise

    def learn(self, batch: Batch | BatchTensors) -> Tensor:
        """Make one step of the learner, each process with its rows of `batch`; return what `Learner.learn` returns.

        The losses are means over the whole batch, on the CPU: the step has ended on all devices. Raises RankError if
        a process has ended or does not answer.
        """
        self.check()
        assert isinstance(batch, Batch)
        with self._noticing_failures(STEP_SECONDS):
            for rank, child in enumerate(self._others, 1):
                for field in share_of(batch, rank, self._devices):
                    child.input.send_bytes(np.ascontiguousarray(field).reshape(-1).view(np.uint8).data)
            return self._learner.learn(share_of(batch, 0, self._devices)).cpu()

    def check(self) -> None:
        """Raise RankError if a process has ended."""
        if self._failed.is_set():
            raise RankError(self._failure)

    def close(self) -> None:
        """End all processes, which have then left the group."""
        self._is_closing = True
        for child in self._others:
            child.input.close()
        with self._limited(3 * END_SECONDS):
            if dist.is_initialized():
                dist.destroy_process_group()
            for child in self._others:
                child.ask_to_stop(END_SECONDS)
            for child in self._others:
                child.end(END_SECONDS)
        self._closed.set()
        self._folder.cleanup()

    def _join_all(self, run: Run) -> None:
        """Give each process its place and a copy of the learner, and join it when all are ready."""
        place = Place(
            rank=0,
            devices=self._devices,
            device=self._learner.device.type,
            has_own_parts=_named_parts(run.settings) != _named_parts(Settings()),
            file=str(Path(self._folder.name) / "store"),
        )
        work = {"game": run.game.name, "settings": run.settings.model_dump(mode="json"), "seed": run.seed}
        state = pack_state(self._learner.state_dict())
        store = FileStore(place.file)
        for rank, child in enumerate(self._others, 1):
            device = f"cuda:{rank}" if place.device == "cuda" else place.device
            own = place._replace(rank=rank, device=device)
            child.input.send_bytes(json.dumps({"place": own, **work}).encode())
            child.input.send_bytes(state)
        while not store.check([f"ready {rank}" for rank in range(1, self._devices)]):
            self._failed.wait(POLL_SECONDS)
            self.check()
        place.join(self._learner, store)

    @contextmanager
    def _noticing_failures(self, seconds: float) -> Iterator[None]:
        """Raise RankError in place of the error that the end of another process causes in this one."""
        try:
            with self._limited(seconds):
                yield
        except (RuntimeError, OSError) as error:
            if self._failed.wait(NOTICE_SECONDS):
                raise RankError(self._failure) from error
            raise

    @contextmanager
    def _limited(self, seconds: float) -> Iterator[None]:
        """End this process if the block takes longer."""
        self._limit = _Limit(seconds)
        try:
            yield
        finally:
            self._limit = None

    def _watch(self) -> None:
        """Notice the end of other processes, and end this one if its main thread waits forever for one.

        With NCCL there is no other way to wake it.
        """
        while not self._closed.wait(POLL_SECONDS):
            limit = self._limit
            for child in self._others:
                code = child.exit_code()
                if not self._failure and not self._is_closing and code is not None:
                    how = describe_exit(code) if code < 0 else f"with {describe_exit(code)}"
                    self._fail(f"{child.name} of --devices {self._devices} has ended, {how}")
                    if limit:
                        limit.seconds = 3 * END_SECONDS
            if limit:
                limit.seconds -= POLL_SECONDS  # no clock is read: this process may have been suspended
                if limit.seconds < 0:
                    self._end_at_once()

    def _end_at_once(self) -> None:
        """End this process, whose main thread waits for one that does not answer."""
        if not self._failure:
            self._fail(f"a process of --devices {self._devices} does not answer")
        print(f"plyzero: {self._failure}", file=sys.stderr, flush=True)
        os._exit(1)

    def _fail(self, what: str) -> None:
        self._failure = f"{what}; the next start of the trainer continues from the last saved state"
        self._failed.set()


@dataclass
class _Limit:
    """Seconds until a call counts as hung; each call has its own."""

    seconds: float


def _named_parts(settings: Settings) -> tuple[str, str]:
    return settings.network.module, settings.trainer.loss


def run_rank() -> None:
    """Be another rank: make every step that rank 0 makes, with the rows from standard input, until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # rank 0 decides when it ends
    inbox = Inbox(Connection(os.dup(0), writable=False))
    try:
        work = json.loads(inbox.receive())
        place = Place(*work["place"])
        game = load_game(work["game"])
        settings = Settings.model_validate(work["settings"])
        state = torch.load(io.BytesIO(inbox.receive()), map_location="cpu", weights_only=True)
        torch.set_num_threads(settings.trainer.threads)
        parts = make_parts(game, settings)
        seeds = np.random.SeedSequence([work["seed"], place.rank, state["step"]])
        torch.manual_seed(int(seeds.generate_state(1)[0]))
        device = torch.device(place.device)
        learner = Learner(parts.network, parts.loss, settings.trainer, device, halves_on_cpu=False)
        learner.load_state_dict(state)
        store = FileStore(place.file)
        store.set(f"ready {place.rank}", "")
        place.join(learner, store)
        while True:
            learner.learn(inbox.receive_batch(game.start))
    except EOFError:
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        if not inbox.has_ended.wait(NOTICE_SECONDS):  # if it has ended, that is why a step failed
            traceback.print_exc()
            os._exit(1)
    os._exit(0)  # does not wait for threads that are still running


class Inbox:
    """The messages of rank 0. When it ends, this process ends too: by a timer if its main thread does not notice.

    has_ended: set when rank 0 has closed its end, or has ended itself.
    """

    def __init__(self, source: Connection) -> None:
        self.has_ended = threading.Event()
        self._messages: SimpleQueue[bytes | None] = SimpleQueue()
        start_thread(self._read, source, name="inbox")

    def receive(self) -> bytes:
        """Return the next message. Raises EOFError after the last one."""
        message = self._messages.get()
        if message is None:
            raise EOFError
        return message

    def receive_batch(self, start: Game) -> Batch:
        """Return the next rows, of the game with the position `start`. Raises EOFError after the last ones."""

        def rows(dtype: type[np.generic], *shape: int) -> NDArray[Any]:
            return np.frombuffer(self.receive(), dtype).reshape(-1, *shape).copy()

        observations = rows(np.float32, *start.observation_shape)
        legal = rows(np.bool_, start.num_actions)
        policy = rows(np.float32, start.num_actions)
        wdl = rows(np.float32, 3)
        score = rows(np.float32)
        content = self.receive()
        count, squares = len(observations), start.observation_shape[1:]
        final_planes = len(content) // (4 * count * math.prod(squares))
        board = np.ndarray((count, final_planes, *squares), np.float32, content).copy()
        return Batch(observations, legal, policy, wdl, score, board)

    def _read(self, source: Connection) -> None:
        try:
            while True:
                self._messages.put(source.recv_bytes())
        except (EOFError, OSError):
            self.has_ended.set()
            self._messages.put(None)
            time.sleep(END_SECONDS / 2)
            os._exit(0)  # the main thread waits in a step that no process will answer


class Place(NamedTuple):
    """The place of a process among the others, and what they share.

    rank:          its number, 0 to `devices` - 1.
    devices:       number of processes.
    device:        cpu, or cuda with the number of the GPU.
    has_own_parts: whether network or loss are the user's own, which may leave parameters without a gradient.
    file:          in which the processes find each other, without a port.
    """

    rank: int
    devices: int
    device: str
    has_own_parts: bool
    file: str

    def join(self, learner: Learner, store: Store) -> None:
        """Wait for all processes, and let the learner make its steps together with theirs."""
        uses_gpus = learner.device.type == "cuda"
        if uses_gpus:
            torch.cuda.set_device(self.rank)
        else:  # the loopback device: all are on this machine, and its host name may not be known
            loopback = next(name for _, name in socket.if_nameindex() if name[:2] == "lo")
            os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
        dist.init_process_group(
            "nccl" if uses_gpus else "gloo",
            store=store,
            rank=self.rank,
            world_size=self.devices,
            timeout=timedelta(seconds=2 * STEP_SECONDS),  # longer than the limit of rank 0, which ends with a sentence
        )
        learner.share(lambda losses_of: average(losses_of, find_unused=self.has_own_parts))


def average(losses_of: nn.Module, *, find_unused: bool) -> nn.Module:
    """Return a module that computes losses as `losses_of` does, with means over all processes, of gradients too.

    find_unused: find out at every step which parameters have no gradient.

    On GPUs batch normalisation uses the statistics of the whole batch. On the CPU torch cannot do that: there each
    process uses those of its own rows, and the running averages are rank 0's.
    """
    uses_gpus = next(losses_of.parameters()).is_cuda
    if uses_gpus:
        losses_of = nn.SyncBatchNorm.convert_sync_batchnorm(losses_of)  # type: ignore[no-untyped-call]
    return MeanLosses(
        DistributedDataParallel(
            losses_of,
            device_ids=[torch.cuda.current_device()] if uses_gpus else None,
            find_unused_parameters=find_unused,
        )
    )


class MeanLosses(nn.Module):
    """Computes the losses of this process's rows, of which all but `total` are means over all processes."""

    def __init__(self, losses_of: nn.Module) -> None:
        super().__init__()
        self._losses_of = losses_of

    def forward(self, batch: BatchTensors) -> Losses:
        losses: Losses = self._losses_of(batch)
        sums = torch.stack([losses.policy, losses.value])
        dist.all_reduce(sums)
        policy, value = sums / dist.get_world_size()
        return losses._replace(policy=policy, value=value)


def share_of(batch: Batch, rank: int, devices: int) -> Batch:
    """Return the rows of one process: every `devices`th one, because a batch is in the order of age."""
    return Batch._make(field[rank::devices] for field in batch)


def check_devices(devices: int, device: torch.device, *, asked: str, batch_size: int) -> None:
    """Raise UserError if `devices` processes cannot train: `device` was chosen for the one that was `asked` for."""
    if devices == 1:
        return
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if asked == "auto" and not found:
        raise UserError(
            f"--devices {devices}: torch finds no CUDA device here; for tests, add --device cpu, which runs {devices} "
            "processes on the CPU"
        )
    if device.type == "cuda" and found < devices:
        raise UserError(f"--devices {devices}: torch finds {found} CUDA devices here; use at most --devices {found}")
    if batch_size % devices:
        nearest = max(1, batch_size // devices) * devices
        raise UserError(
            f"--devices {devices} must divide trainer.batch_size = {batch_size}; for example -o "
            f"trainer.batch_size={nearest}"
        )
