"""The simulated loop beside runs that were measured. Nothing is fitted: what is given to it was measured elsewhere."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from benchmarks.loop_simulation import Loop, Report, simulate
from plyzero.ops.rating import RATING_SHARE
from plyzero.settings import SelfplaySettings, Settings, TrainerSettings

QUICK = Settings(
    selfplay=SelfplaySettings(seal_seconds=4.0, bootstrap_positions=8192), trainer=TrainerSettings(publish_seconds=8.0)
)
"""The preset quick as all of these runs had it."""

FREE = QUICK.trainer.bootstrap_passes * QUICK.selfplay.bootstrap_positions
"""Positions trained for the bootstrap, which the ratio does not count."""

TRAINER_AND_TWO_WORKERS = Loop(
    workers=2,
    cores=2,
    beside=RATING_SHARE,
    settings=QUICK,
    full_per_second=0,  # of each run
    positions_for_full=5.46,  # benchmarks/loop_costs.py, here and below, as in scaling.py
    trained_per_second=8200,
    segment_cost=0.006,
    position_cost=1.5e-6,
    publish_cost=0.22,
    load_cost=0.007,
    first_model_at=5.0,  # logs: a start takes two seconds, and the bootstrap positions three
)
"""The loop of `plyzero train` on two cores."""


LEARNED = (
    (5, 1, 10_249_508, 165_974, 1_255_680),
    (5, 2, 10_533_148, 169_425, 1_223_936),
    (5, 3, 10_466_724, 170_416, 1_272_320),
    (15, 1, 30_744_950, 611_870, 4_162_048),
    (15, 2, 30_335_353, 594_803, 4_060_160),
    (15, 3, 30_231_729, 594_399, 4_045_824),
    (60, 1, 118_408_883, 2_521_600, 17_234_688),
    (60, 2, 116_156_533, 2_453_421, 16_493_824),
    (60, 3, 114_936_568, 2_457_137, 16_680_192),
)
"""Minutes, seed, evaluations, full-search positions and trained positions of benchmarks/strength/learn.py, 2026-11-22.

They are of the code whose costs are above; the runs of a later network have other costs.
"""

EVALUATIONS = 28_600
"""Evaluations that a worker makes in a second of a core: loop_costs.py, the mean of 30,430, 27,920 and 27,490."""


class Measured(NamedTuple):
    """A run. `evaluations` for a full-search position is what the run recorded, and is given to the simulation.

    It depends on the cache, the length of games and the simulations of a search, and falls while a network learns.
    None = not known, or of no use because other work slowed the run down.
    """

    what: str
    minutes: float
    evaluations: float
    ratio: float
    trained: float | None = None
    full: float | None = None
    trainer_waits: float | None = None


def measured() -> Iterator[Measured]:
    """Yield what is known of runs with two workers and a trainer on two cores."""
    for minutes, seed, evaluations, generated, trained in LEARNED:
        yield Measured(
            f"defaults, seed {seed}",
            minutes,
            evaluations / (generated + QUICK.selfplay.bootstrap_positions),
            ratio=(trained - FREE) / generated,
            trained=trained / (60 * minutes),
            full=generated / (60 * minutes),
        )
    # the last lines of the metrics of these runs, beside which other work ran
    yield Measured("the run of loop_costs.py", 5, 62.7, 7.211, trainer_waits=13.3 / 290.8)
    yield Measured("sweep.md, 64 simulations, seed 0", 2, 70.5, 7.584, trainer_waits=11.5 / 113.5)
    yield Measured("sweep.md, 64 simulations, seed 1", 2, 71.4, 7.690, trainer_waits=8.3 / 112.7)
    yield Measured("sweep.md, 64 simulations, seed 2", 2, 75.2, 7.785, trainer_waits=8.5 / 112.5)
    yield Measured("sweep.md, 32 simulations, seed 0", 2, 53.3, 6.284, trainer_waits=4.0 / 113.0)
    yield Measured("sweep.md, 32 simulations, seed 1", 2, 53.8, 6.464, trainer_waits=4.4 / 113.3)
    yield Measured("sweep.md, 32 simulations, seed 2", 2, 53.0, 6.362, trainer_waits=4.1 / 113.8)


def compare() -> Iterator[str]:
    """Yield the lines of a table: measured and simulated."""
    yield from (*TITLE, "")
    heads = (
        "run",
        "minutes",
        "evaluations for a full position",
        "ratio measured",
        "simulated",
        "difference",
        "trained/s measured",
        "simulated",
    )
    heads += ("full positions/s measured", "simulated", "trainer waits measured", "simulated")
    yield from (f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1))
    differences = []
    for each in measured():
        found = simulated(each)
        differences.append(found.ratio / each.ratio - 1)
        cells = [each.what, f"{each.minutes:g}", f"{each.evaluations:.1f}", f"{each.ratio:.2f}", f"{found.ratio:.2f}"]
        cells += [f"{differences[-1]:+.0%}"]
        trained = found.trained + FREE / (60 * each.minutes)
        cells += [known(each.trained, ",.0f"), f"{trained:,.0f}", known(each.full, ",.0f"), f"{found.full:,.0f}"]
        cells += [known(each.trainer_waits, ".1%"), f"{found.trainer_waits:.1%}"]
        yield f"| {' | '.join(cells)} |"
    yield from ("", f"The simulated ratio differs by {min(differences):+.0%} to {max(differences):+.0%}. {REASONS}")


REASONS = (
    "Known reasons: a simulated worker has one speed for the whole run, while a real one becomes faster as its network "
    "learns (its cache answers more, and more of its positions have a full search), so that the trainer of a short run "
    "waits at other times; and the speeds were measured on another day than the runs, beside other work."
)


def simulated(run: Measured) -> Report:
    """Return what the simulation makes of a run."""
    loop = replace(TRAINER_AND_TWO_WORKERS, full_per_second=EVALUATIONS / run.evaluations)
    return simulate(loop, 60 * run.minutes)


def known(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


TITLE = """## The loop, simulated and measured

`benchmarks/loop_simulation.py` simulates workers that play, seal and look for models, and a trainer that reads,
trains while it has credit, and publishes. It is given the costs above, the settings, and how many evaluations a
full-search position took in the run, which depends on its games and its cache. Nothing is fitted. All runs: Connect
Four, preset quick, `plyzero train` with two workers and a trainer on two cores; a fourth process, which measures
strength, wants a core for a tenth of the time. Where a cell is empty the figure was not recorded, or other work
slowed the run down. The columns of the ratio compare what the queues and the shares of the cores make of these rates;
the rates themselves are those of a machine that was not quiet.
""".splitlines()
