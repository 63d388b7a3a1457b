"""The processes of a crew (tests/helpers/attacks.py), and `python -m tests.helpers.attacked`, which starts them.

They are forked from one process, which has imported and compiled everything, so that they are at work at once.
"""

import ctypes
import json
import logging
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plyzero.run.directory import open_run
from plyzero.run.metrics import TRAINER
from plyzero.run.records import Games
from tests.helpers import victims
from tests.helpers.runs import small_run


def log_taken_in(log: Path) -> None:
    """Write into `log` every game that the trainer takes in, and with how many games it resumes."""
    from plyzero.trainer.loop import Trainer
    from plyzero.trainer.replay_reader import ReplayReader

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    begin, read_new = Trainer.__init__, ReplayReader.read_new

    def begun(trainer: Any, *arguments: Any, **named: Any) -> None:
        begin(trainer, *arguments, **named)
        os.write(descriptor, f"\nresumed {trainer.intake.games}\n".encode())

    def read(reader: Any, **named: Any) -> Iterator[Any]:
        for item in read_new(reader, **named):
            yield item  # and when the next is asked for, this one is in the window
            ids = next(each for each in item if isinstance(each, Games)).games["id"]
            os.write(descriptor, f"\ntaken {' '.join(map(str, ids))}\n".encode())

    Trainer.__init__ = begun  # type: ignore[method-assign]
    ReplayReader.read_new = read  # type: ignore[method-assign]


def be(name: str, root: str, counted: str, control: str, log: str, uid: int | None, umask: int) -> None:
    """Be a member of a crew."""
    preloaded = ctypes.CDLL(None)
    if failed := preloaded.attack_from(control.encode()):
        raise OSError(failed, os.strerror(failed), control)
    (log_taken_in if name == TRAINER else victims.log_acknowledged)(Path(counted))
    os.umask(umask)
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        preloaded.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: otherwise /proc/self/fd would not be its own
    preloaded.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    run = open_run(Path(root))
    if name == TRAINER:
        victims.train(run)
    else:
        victims.play(run, name)


def fork(name: str, *arguments: Any) -> int:
    """Start a member in a process of its own, which writes what it says into its log."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        log = os.open(arguments[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        be(name, *arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def warm_up() -> None:
    """Import and compile what a worker and a trainer need, since another user may not even read where it lies.

    No gradient is computed: after that torch does not let a process fork.
    """
    from contextlib import closing

    import torch._dynamo  # noqa: F401  # which the optimiser's first step would import

    from plyzero.search.evaluators import Uniform
    from plyzero.selfplay.games_in_play import GamesInPlay
    from plyzero.selfplay.replay_writer import ReplayWriter
    from plyzero.selfplay.worker import game_seeds
    from plyzero.trainer import loop
    from plyzero.trainer.export import untrained
    from plyzero.trainer.loop import Trainer

    loop.usable_cores = lambda: 1  # a process with threads of OpenMP cannot be forked
    with tempfile.TemporaryDirectory() as directory:
        run = small_run(Path(directory) / "r", "tic-tac-toe")
        games = GamesInPlay(run.game.start, run.settings, seeds=game_seeds(0, "w", "00000000"))
        with ReplayWriter(run, worker="w", incarnation="00000000") as writer:
            for _ in range(300):
                for finished in games.run(Uniform(run.game.start.num_actions)):
                    writer.add(finished)
        for _ in range(2):  # the second resumes
            with closing(Trainer(run, device="cpu")) as trainer:
                trainer.ingest()
                trainer.maintain()
                trainer.publisher.save()
        untrained(run)


def main() -> None:
    """Answer questions on standard input, one JSON line each, until it ends; then kill all that were started."""
    warm_up()
    running: set[int] = set()
    for line in sys.stdin:
        question, *arguments = json.loads(line)
        if question == "start":
            answer: Any = fork(*arguments)
            running.add(answer)
        else:
            answer = []
            while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                running.discard(ended[0])
                answer.append((ended[0], os.waitstatus_to_exitcode(ended[1])))
        print(json.dumps(answer), flush=True)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
