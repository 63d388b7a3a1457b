"""What each part of the training loop costs in processor time: a move, a training step, a segment, a publication.

python -m benchmarks.loop_costs --run RUN

RUN is a finished run; it is only read. Processor time, and not the time on the wall, because the figures are wanted for
a loop whose processes share cores. A second of processor time does less on a machine that is busy with other work. So
before each slice a yardstick is measured, the network of 2 x 32 alone, and what the slice needed is converted to a
machine on which the yardstick is as fast as the documentation says. Each figure is the median of some slices, with the
smallest and the largest.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from plyzero.files import list_files
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.run.metrics import Heartbeat
from plyzero.run.models import list_models
from plyzero.run.records import Games
from plyzero.run.segments import SegmentName, list_segments, read_segment, write_segment
from plyzero.search.onnx_network import Network
from selfplay.games_in_play import GamesInPlay
from selfplay.worker import game_seeds
from trainer.export import untrained
from trainer.loop import Trainer

SLICES = 5
STEPS = 40
"""Training steps of a slice."""

PLAYED_SECONDS = 4.0
"""Processor time of a slice of self-play."""

POSITIONS = 200, 1000, 8192
SEGMENTS = 10
"""So many segments of each of these sizes, in positions, are taken in."""

YARDSTICK = 50_138
"""Evaluations/s of the network of 2 x 32 alone, Connect Four, batches of 64: benchmarks/results/speed.md."""

YARDSTICK_SECONDS = 0.5
"""Processor time for which it is measured before a slice."""

SEGMENT_POSITIONS = 4096
"""Size of the segments of which the trainer has a window when it trains."""

NAMES = 10_000
"""Segments in a listing."""

BEATS = 200
"""Heartbeats of workers that `maintain` reads."""


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a finished run, which is only read")
    parser.add_argument("--net", type=Path, nargs="*", default=[], help="further networks for self-play")
    parser.add_argument("-o", dest="options", action="append", default=[], metavar="SETTING", help="as for plyzero")
    given = parser.parse_args()
    run = open_run(given.run)
    games = Games.concatenate(list(newest_games(run, positions=100_000)))
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        clock = Clock(root / "yardstick")
        own = create_run(root / "own", run.game, preset=run.preset, options=given.options)
        newest = run.models / str(list_models(run.models)[0])
        networks = {path.name: path.read_bytes() for path in (newest, *given.net)}
        if own.settings.network != run.settings.network:
            networks = {"untrained": untrained(own)}
        report = {
            "game": run.game.name,
            "options": given.options,
            "model_bytes": max(map(len, networks.values())),
            "self-play": {name: measure_playing(clock, own, content) for name, content in networks.items()},
            "intake": [
                measure_intake(clock, root / str(size), run, list(islice(parts_of(games, size), SEGMENTS)))
                for size in POSITIONS
            ],
            "listing_seconds_for_a_name": measure_listing(clock, create_run(root / "names", run.game)),
            "trainer": measure_trainer(clock, own, games),
            "share of the yardstick's documented speed": spread(clock.speeds),
        }
    print(json.dumps(report, indent=1))


def newest_games(run: Run, *, positions: int) -> Iterator[Games]:
    """Yield the games of the newest segments that a network has played, until there are so many positions."""
    names = sorted(
        (name for name in list_segments(run.segments) if not name.bootstrap), key=lambda name: -name.last_step
    )
    for name in names:
        if positions <= 0:
            return
        positions -= name.positions
        yield read_segment(run.segments / str(name), run.game)


class Clock:
    """Measures processor time in seconds of a machine on which the yardstick has its documented speed.

    speeds: what the yardstick reached, as a share of that, whenever it was measured.
    """

    def __init__(self, root: Path) -> None:
        run = create_run(root, load_game("connect-four"), options=["network.blocks=2", "network.channels=32"])
        self._network = Network(untrained(run), run.game, label="yardstick")
        leaves = GamesInPlay(run.game.start, run.settings, seeds=game_seeds(0, "costs", "00000000")).leaves()
        assert leaves is not None
        self._leaves = leaves
        self.speeds: list[float] = []

    def seconds(self, call: Callable[[], Any]) -> float:
        """Return what a call takes."""
        calls, took = repeat(YARDSTICK_SECONDS, lambda: self._network(self._leaves))
        self.speeds.append(len(calls) * len(self._leaves.observations) / took / YARDSTICK)
        began = time.process_time()
        call()
        return (time.process_time() - began) * self.speeds[-1]


def measure_playing(clock: Clock, run: Run, content: bytes) -> dict[str, Any]:
    """Let a worker's games be played, each slice with a network that is new to its cache, and count."""
    games = GamesInPlay(run.game.start, run.settings, seeds=game_seeds(0, "costs", "00000000"))
    lines, loads = [], []
    for number in range(SLICES + 1):
        networks: list[Network] = []
        finished: list[Games] = []

        def play(networks: list[Network] = networks, finished: list[Games] = finished) -> None:
            batches, _ = repeat(PLAYED_SECONDS, lambda: games.run(networks[0], fence=1, step=1))
            finished += [each for batch in batches for each in batch]

        label, evaluated = str(number), games.search.evaluations
        loads.append(clock.seconds(lambda: networks.append(Network(content, run.game, label=label))))  # noqa: B023
        seconds = clock.seconds(play)
        played = Games.concatenate(finished)
        lines.append(
            {
                "positions_per_second": len(played.positions) / seconds,
                "full_positions_per_second": played.num_full / seconds,
                "games_per_second": len(played.games) / seconds,
                "evaluations_per_second": (games.search.evaluations - evaluated) / seconds,
            }
        )
    rates = {key: spread([line[key] for line in lines[1:]]) for key in lines[0]}  # the first one compiles
    return {**rates, "model_load_seconds": spread(loads[1:])}


def measure_intake(clock: Clock, root: Path, run: Run, parts: list[Games]) -> dict[str, Any]:
    """Let a trainer take in these games, a segment each; return seconds for each segment, and how large it is."""
    taken = create_run(root, run.game)
    with closing(Trainer(taken, device="cpu")) as trainer:
        write_segments(taken, parts[:1], incarnation=SLICES)
        trainer.ingest()  # compiles
        seconds = []
        for number in range(SLICES):
            some = parts[number::SLICES]
            write_segments(taken, some, incarnation=number)
            seconds.append(clock.seconds(trainer.ingest) / len(some))
        sizes = list_files(taken.segments).values()
    positions = [len(part.positions) for part in (*parts, parts[0])]
    return {
        "positions": float(np.mean(positions)),
        "bytes_per_position": sum(sizes) / sum(positions),
        "seconds": spread(seconds),
    }


def measure_trainer(clock: Clock, taken: Run, games: Games) -> dict[str, Any]:
    """Let a trainer of a new run train on these games, publish, and look at the heartbeats of many workers."""
    write_segments(taken, list(parts_of(games, SEGMENT_POSITIONS)), incarnation=0)
    with closing(Trainer(taken, device="cpu")) as trainer:
        trainer.ingest()
        batch = trainer.settings.batch_size
        trainer.train_step()
        steps = [clock.seconds(lambda: [trainer.train_step() for _ in range(STEPS)]) / STEPS for _ in range(SLICES)]
        published = []
        for _ in range(SLICES):
            trainer.train_step()
            published.append(clock.seconds(trainer.publish))
        alone = [clock.seconds(trainer.maintain) for _ in range(SLICES)]
        for number in range(BEATS):
            fields = {"role": "selfplay", "state": "playing", "model": None, "games": 1234567, "positions": 12345678}
            Heartbeat(taken.workers / f"w{number}.{number:08x}.json").beat(fields)
        trainer.maintain()
        beside = [clock.seconds(trainer.maintain) for _ in range(SLICES)]
        state_bytes = max(path.stat().st_size for path in taken.trainer.glob("*.pt"))
    return {
        "trained_per_second": spread([batch / each for each in steps]),
        "publish_seconds": spread(published),
        "maintain_seconds": spread(alone),
        "maintain_seconds_for_a_heartbeat": spread([(each - np.median(alone)) / BEATS for each in beside]),
        "state_bytes": state_bytes,
    }


def measure_listing(clock: Clock, run: Run) -> list[float]:
    """Let a trainer look for new segments among many that it has read; return seconds for each of them."""
    for number in range(NAMES):
        name = SegmentName("w0", "00000001", number, games=20, positions=600, full=150, first_step=1, last_step=1)
        (run.segments / str(name)).touch()
    with closing(Trainer(run, device="cpu")) as trainer:
        trainer.replay_reader.cursor["00000001"] = NAMES
        trainer.ingest()
        return spread([clock.seconds(trainer.ingest) / NAMES for _ in range(SLICES)])


def parts_of(games: Games, positions: int) -> Iterator[Games]:
    """Yield the games in order, each time at least so many positions; what is left over is dropped."""
    total, first = 0, 0
    for number, plies in enumerate(games.games["positions"].tolist()):
        total += plies
        if total >= positions:
            mask = np.zeros(len(games.games), np.bool_)
            mask[first : number + 1] = True
            yield games.select(mask)
            total, first = 0, number + 1


def write_segments(run: Run, parts: list[Games], *, incarnation: int) -> None:
    for number, part in enumerate(parts):
        write_segment(
            run.segments, part, run.game, run_id=run.id, worker="w0", incarnation=f"{incarnation:08x}", sequence=number
        )


def repeat(seconds: float, call: Callable[[], Any]) -> tuple[list[Any], float]:
    """Call again and again for so much processor time; return the answers, and the time that it took."""
    began, answers = time.process_time(), []
    while time.process_time() < began + seconds:
        answers.append(call())
    return answers, time.process_time() - began


def spread(values: list[float]) -> list[float]:
    """Return median, smallest and largest, to four digits."""
    return [float(f"{value:.4g}") for value in (float(np.median(values)), min(values), max(values))]


if __name__ == "__main__":
    main()
