"""The program of a further process of data parallelism: it makes every step that rank 0 makes, with rows of its own."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.settings import Settings
from plyzero.threads import start_thread
from trainer.data_parallel import END_SECONDS, NOTICE_SECONDS, Place
from trainer.learner import Learner
from trainer.parts import make_parts
from trainer.window import Batch


def run_rank() -> None:
    """Be one of the other processes: make steps with the rows that come through standard input, until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # rank 0 decides when it ends
    inbox = Inbox(Connection(os.dup(0), writable=False))
    try:
        work = json.loads(inbox.receive())
        place, game = Place(*work["place"]), load_game(work["game"])
        settings = Settings.model_validate(work["settings"])
        state = torch.load(io.BytesIO(inbox.receive()), map_location="cpu", weights_only=True)
        torch.set_num_threads(settings.trainer.threads)
        parts = make_parts(game, settings)
        torch.manual_seed(int(np.random.SeedSequence([work["seed"], place.rank, state["step"]]).generate_state(1)[0]))
        device = torch.device(place.device)
        learner = Learner(parts.network, parts.loss, settings.trainer, device, halves_on_cpu=False)
        learner.load_state_dict(state)
        store = place.store()
        store.set(f"ready {place.rank}", "")
        place.join(learner, store)
        while True:
            learner.learn(inbox.receive_batch(game.start))
    except EOFError:
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        if not inbox.has_ended.wait(NOTICE_SECONDS):  # then rank 0 has ended, which is why a step failed
            traceback.print_exc()
            os._exit(1)
    os._exit(0)  # whatever threads are still running


class Inbox:
    """What rank 0 sends. When it ends, this process does, if the main thread does not notice then by a timer.

    has_ended: set when rank 0 has closed its end, or has ended itself.
    """

    def __init__(self, source: Connection) -> None:
        self.has_ended = threading.Event()
        self._messages: SimpleQueue[bytes | None] = SimpleQueue()
        start_thread(self._read, source, name="inbox")

    def receive(self) -> bytes:
        """Return the next message. Raises EOFError if there is none."""
        message = self._messages.get()
        if message is None:
            raise EOFError
        return message

    def receive_batch(self, start: Game) -> Batch:
        """Return rows of a batch of the game with the position `start`. Raises EOFError if there is none."""
        return Batch(
            observations=self._receive_rows(start.observation_shape, np.float32),
            legal=self._receive_rows((start.num_actions,), np.bool_),
            policy=self._receive_rows((start.num_actions,), np.float32),
            wdl=self._receive_rows((3,), np.float32),
        )

    def _receive_rows(self, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        return np.frombuffer(self.receive(), dtype).reshape(-1, *shape).copy()

    def _read(self, source: Connection) -> None:
        try:
            while True:
                self._messages.put(source.recv_bytes())
        except (EOFError, OSError):
            self.has_ended.set()
            self._messages.put(None)
            time.sleep(END_SECONDS / 2)
            os._exit(0)  # the main thread is in a step, which no process will answer
