"""A process of the product whose calls on the volume are counted, and whose trainer's CPU time is measured by parts.

python -m benchmarks.scale.role OUT NAME ROOT LATENCY_MS trainer --run ROOT
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Final

from benchmarks.scale.calls import Calls, dump, watch
from benchmarks.scale.ledger import Log
from plyzero.volumes import to_path

PARTS: Final = ("ingest", "maintain", "train_step", "publish")
"""Methods of the trainer whose CPU and elapsed time are measured."""


def main() -> None:
    """Run a command of plyzero."""
    out, name, root, latency_ms, *command = sys.argv[1:]
    calls = Calls(to_path(root), float(latency_ms) / 1000)
    calls.install()
    path = Path(out) / f"calls-{name}.json"
    watch(calls, path)
    if command[0] == "trainer":
        measure_trainer(calls, Log(Path(out) / f"used-{name}"))
    from plyzero.__main__ import main as plyzero

    sys.argv = ["plyzero", *command]
    try:
        plyzero()
    finally:
        dump(calls, path)


def measure_trainer(calls: Calls, used: Log) -> None:
    """Measure the parts of the trainer of this process, and log every game when it is in the window."""
    from plyzero.trainer.loop import Trainer
    from plyzero.trainer.replay_reader import ReplayReader

    for part in PARTS:
        setattr(Trainer, part, _measured(calls, part, getattr(Trainer, part)))
    read_new = ReplayReader.read_new

    def logged(reader: ReplayReader, **words: Any) -> Iterator[Any]:
        for name, games in read_new(reader, **words):
            yield name, games
            ids = games.games["id"].tolist()
            used.add(ids, [time.time()] * len(ids))
            calls.cpu["segments"] += 1
            calls.cpu["full positions"] += games.num_full

    ReplayReader.read_new = logged  # type: ignore[method-assign]


def _measured(calls: Calls, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def measured(*arguments: Any, **words: Any) -> Any:
        cpu, began = time.thread_time(), time.monotonic()
        try:
            return method(*arguments, **words)
        finally:
            calls.cpu[part] += time.thread_time() - cpu
            calls.cpu[f"{part} elapsed"] += time.monotonic() - began

    return measured


if __name__ == "__main__":
    main()
