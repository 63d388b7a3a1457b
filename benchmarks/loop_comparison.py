"""The simulated loop beside runs that were measured. Nothing is fitted: what is given to it was measured elsewhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.loop_simulation import Loop, simulate
from plyzero.ops.rating import RATING_SHARE
from plyzero.settings import SelfplaySettings, Settings, TrainerSettings

LEARNED = Path(__file__).parent / "results" / "learning.jsonl"

QUICK = Settings(selfplay=SelfplaySettings(seal_seconds=4.0), trainer=TrainerSettings(publish_seconds=8.0))
"""The preset quick, as all of these runs have it."""

FREE = QUICK.trainer.bootstrap_passes * QUICK.selfplay.bootstrap_positions
"""Positions trained for the bootstrap, which the ratio does not count."""

TRAINER_AND_TWO_WORKERS = Loop(
    workers=2,
    cores=2,
    beside=RATING_SHARE,
    settings=QUICK,
    full_per_second=615,  # benchmarks/loop_costs.py, here and below, as in scaling.py
    positions_for_full=5.46,
    trained_per_second=8200,
    segment_cost=0.006,
    position_cost=1.5e-6,
    publish_cost=0.22,
    load_cost=0.007,
    first_model_at=5.0,  # logs: a start takes two seconds, and the bootstrap positions three
)
"""The loop of `plyzero train` on two cores."""


class Measured(NamedTuple):
    """A run, or the average of several; None = not known, or of no use because other work slowed it down."""

    what: str
    minutes: float
    full_per_second: float  # given to the simulation: of a worker with a core of its own
    ratio: float
    trained: float | None = None
    full: float | None = None
    trainer_waits: float | None = None


def measured() -> Iterator[Measured]:
    """Yield what is known of runs with two workers and a trainer on two cores."""
    speeds = {5.0: 615, 15.0: 615, 60.0: 642}  # of workers with a network of five minutes, and of an hour
    for line in map(json.loads, LEARNED.read_text().splitlines()):
        if line["game"] == "connect-four":
            seconds, generated = 60 * line["minutes"], line["generated_positions"]
            yield Measured(
                f"learning.jsonl, seed {line['seed']}",
                line["minutes"],
                speeds[line["minutes"]],
                ratio=(line["trained_positions"] - FREE) / generated,
                trained=line["trained_positions"] / seconds,
                full=generated / seconds,
            )
    # the metrics of the runs of sweep.md, beside other work: last line of the trainer
    for ratio, waited in ((7.584, 11.5 / 113.5), (7.690, 8.3 / 112.7), (7.785, 8.5 / 112.5)):
        yield Measured("sweep.md, 64 simulations", 2, 615, ratio, trainer_waits=waited)
    for ratio, waited in ((6.284, 4.0 / 113.0), (6.464, 4.4 / 113.3), (6.362, 4.1 / 113.8)):
        yield Measured("sweep.md, 32 simulations", 2, 834, ratio, trainer_waits=waited)
    # the run whose costs were measured
    yield Measured("the run of loop_costs.py", 5, 615, 7.211, trainer_waits=13.3 / 290.8)


def compare() -> Iterator[str]:
    """Yield the lines of a table: measured and simulated."""
    yield from TITLE
    heads = ("run", "minutes", "ratio measured", "simulated", "difference", "trained/s measured", "simulated")
    heads += ("full positions/s measured", "simulated", "trainer waits measured", "simulated")
    yield from (f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1))
    for each in measured():
        loop = TRAINER_AND_TWO_WORKERS.__class__(
            **{**TRAINER_AND_TWO_WORKERS.__dict__, "full_per_second": each.full_per_second}
        )
        found = simulate(loop, 60 * each.minutes)
        cells = [each.what, f"{each.minutes:g}", f"{each.ratio:.2f}", f"{found.ratio:.2f}"]
        cells += [f"{found.ratio / each.ratio - 1:+.0%}"]
        trained = found.trained + FREE / (60 * each.minutes)
        cells += [known(each.trained, ",.0f"), f"{trained:,.0f}", known(each.full, ",.0f"), f"{found.full:,.0f}"]
        cells += [known(each.trainer_waits, ".1%"), f"{found.trainer_waits:.1%}"]
        yield f"| {' | '.join(cells)} |"


def known(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


TITLE = """## The loop, simulated and measured

`benchmarks/loop_simulation.py` simulates workers that play, seal and look for models, and a trainer that reads, trains
while it has credit, and publishes. It gets the costs above and the settings, and nothing is fitted. All runs: Connect
Four, preset quick, `plyzero train` with two workers and a trainer, which share two cores; a third process measures
strength for a tenth of the time. Where a cell is empty the figure was not recorded, or other work slowed the run down.
""".splitlines()
