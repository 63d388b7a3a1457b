"""The child processes of a training on this machine: a trainer, workers, and an evaluator that uses a GPU for these.

They run until their run is done or they are asked to stop; none is started again. One that ends before is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from plyzero.errors import FailedError, install_command
from plyzero.network.onnx_graph import MAX_BATCH
from plyzero.network.onnx_network import SMALLEST_BATCH, has_gpu
from plyzero.ops.child import Child, free_port, start_plyzero
from plyzero.ops.failures import describe_log
from plyzero.run.budget import read_done
from plyzero.run.directory import Run
from plyzero.run.metrics import TRAINER

POLL_SECONDS: Final = 0.25
"""Time between two looks at processes that stop, in seconds."""

STOP_SECONDS: Final = 60.0
"""Time that the processes have to save and end, in seconds; then they are killed."""


class ChildFailedError(FailedError):
    """A worker or the trainer failed, or ended without being asked to. The message says which, why, and where."""


@contextmanager
def children(
    run: Run,
    workers: int,
    *,
    device: str,
    options: Sequence[str],
    on_progress: Callable[[str], None],
    notify: Callable[[str], None],
) -> Iterator[list[Child]]:
    """Start the trainer and the workers, of which it needs none if it is reproducible; on exit stop them.

    On a machine with a GPU, unless `device` is cpu, one evaluator uses it for all workers, which do not see it.
    Raises ChildFailedError if one fails while it stops.
    """
    running: list[Child] = []
    try:
        for child in _start(run, workers, device=device, options=options, notify=notify):
            running.append(child)  # one by one: those that have started are stopped if another one cannot start
        yield running
    finally:
        _stop(running, run, on_progress=on_progress, notify=notify)


def check_children(running: Sequence[Child], run: Run) -> str:
    """Return why the run is done if a process has ended for that, otherwise "".

    Raises ChildFailedError if one has ended by itself.
    """
    for child in running:
        code = child.exit_code()
        if code is None:
            continue
        if code == 0 and (done := read_done(run)):
            return done
        raise ChildFailedError(f"{child.name} stopped by itself: {_reason(child, run)}")
    return ""


def _start(
    run: Run, workers: int, *, device: str, options: Sequence[str], notify: Callable[[str], None]
) -> Iterator[Child]:
    common = ["--run", str(run.root)]
    for option in options:
        common += ["-o", option]
    if run.scratch:
        common += ["--scratch", str(run.scratch)]

    trainer = ["trainer", *common, "--device", device]
    if not workers:
        trainer.append("--reproducible")
    yield start_plyzero("trainer", trainer, run.logs / "trainer.log")

    port = _find_port(run, notify=notify) if workers and device != "cpu" else None
    served: list[str] = []
    if port:
        batch = full_batch(workers, run.settings.selfplay.parallel_games)
        evaluator = ["evaluator", *common, "--port", str(port), "--max-batch", str(batch)]
        yield start_plyzero("evaluator", evaluator, run.logs / "evaluator.log")
        served = ["--evaluator", f"127.0.0.1:{port}"]

    for each in range(workers):
        name = f"w{each}"
        worker = ["selfplay", *common, "--name", name, *served]
        # Where cores are too few, the trainer has the time that the replay ratio needs, and the workers the rest.
        yield start_plyzero(name, worker, run.logs / f"{name}.log", niceness=10, sees_gpus=not port)


def _find_port(run: Run, *, notify: Callable[[str], None]) -> int | None:
    """Return a free port for an evaluator; None if there is no GPU, or if the workers cannot use an evaluator."""
    if not has_gpu() or run.settings.search.score_weight:  # an evaluator sends no scores
        return None
    if find_spec("grpc") is None:
        notify(f"warning: every worker uses the GPU by itself, which is slower: {install_command('grpc')}")
        return None
    return free_port()


def full_batch(workers: int, games: int) -> int:
    """Return the number of positions of a full batch for so many workers with `games` each at once.

    It is about half of them all, while the others are played on, and a size to which nothing is padded.
    """
    half = max(SMALLEST_BATCH, workers * games // 2)
    return min(MAX_BATCH, 1 << (half.bit_length() - 1))


def _stop(
    running: Sequence[Child], run: Run, *, on_progress: Callable[[str], None], notify: Callable[[str], None]
) -> None:
    """Stop all processes. Raises ChildFailedError if one of them fails only now."""
    ended = [child for child in running if child.exit_code() is not None]
    for child in running:
        child.ask_to_stop(STOP_SECONDS)
    for child in ended:
        if child.exit_code():
            notify(f"{child.name} has ended by itself")
    try:
        _wait_for_end(running, on_progress=on_progress, notify=notify)
    except KeyboardInterrupt:  # the first signal comes while they stop already; no other one raises
        _wait_for_end(running, on_progress=on_progress, notify=notify)
    if ended:
        return  # the caller knows of these
    for child in running:
        if child.exit_code() != 0:
            raise ChildFailedError(f"{child.name} failed while it stopped: {_reason(child, run)}")


def _wait_for_end(
    running: Sequence[Child], *, on_progress: Callable[[str], None], notify: Callable[[str], None]
) -> None:
    notify("stopping: the workers store their finished games, the trainer saves and publishes")
    while left := [child for child in running if child.exit_code() is None]:
        on_progress(f"stopping: waiting for {', '.join(child.name for child in left)}")
        left[0].wait(POLL_SECONDS)


def _reason(child: Child, run: Run) -> str:
    if child.was_killed:
        lost = "what it learned since its last saved state is" if child.name == TRAINER else "its unfinished games are"
        return f"it did not end within {STOP_SECONDS:.0f} s and was killed, {lost} lost (see {child.log})"
    return f"{describe_log(child.read_log(), child.exit_code() or 0, run.game)} (see {child.log})"
