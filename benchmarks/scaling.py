"""What limits a run of many workers, by arithmetic from measured figures; and simulated loops beside measured ones.

python -m benchmarks.scaling --write benchmarks/results/scaling.md
python -m benchmarks.scaling --full-per-second 300 --trained-per-second 50000 --cpu-hour 0.03

Every figure below is an option, and so is every price.
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.loop_comparison import compare
from plyzero.files import BUCKET_SECONDS
from plyzero.run.metrics import BEAT_SECONDS, LINE_SECONDS
from selfplay.backpressure import REFRESH_SECONDS
from trainer.loop import MAINTAIN_SECONDS, POLL_SECONDS

COSTS = "benchmarks/loop_costs.py, 2026-11-23"
SETTINGS = "docs/settings.md"
PAGE_KEYS = 1000
"""Objects that one LIST request names at most."""


def figure(value: float, source: str) -> Any:
    return field(default=value, metadata={"source": source})


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What the arithmetic starts from. The defaults are Connect Four with a network of 3 x 32, the preset quick."""

    full_per_second: float = figure(
        615, COSTS + "; full-search positions a worker makes in a second of a core, 550 to 640"
    )
    positions_for_full: float = figure(5.46, COSTS + "; positions recorded for each of them")
    positions_per_game: float = figure(27.8, COSTS)
    trained_per_second: float = figure(8200, COSTS + "; positions trained in a second of a core, 7,400 to 8,700")
    segment_cost: float = figure(0.006, COSTS + "; seconds of the trainer for each segment")
    position_cost: float = figure(1.5e-6, COSTS + "; and for each position in it")
    name_cost: float = figure(6.5e-6, COSTS + "; seconds of the trainer for each segment in a list")
    beat_cost: float = figure(26e-6, COSTS + "; seconds of the trainer for each heartbeat that it looks at")
    publish_cost: float = figure(0.22, COSTS + "; seconds of the trainer to save, export, check and publish")
    load_cost: float = figure(0.007, COSTS + "; seconds of a worker to load a model")
    segment_bytes: float = figure(12_800, COSTS + "; bytes of a segment without positions")
    position_bytes: float = figure(44.9, COSTS + "; and for each position")
    model_bytes: float = figure(287_069, COSTS)
    state_bytes: float = figure(1_199_173, COSTS)
    replay_ratio: float = figure(8, SETTINGS)
    parallel_games: float = figure(64, SETTINGS)
    seal_positions: float = figure(8192, SETTINGS)
    seal_seconds: float = figure(4, "preset quick")
    publish_seconds: float = figure(8, "preset quick")
    poll_seconds: float = figure(2, SETTINGS)
    keep_positions: float = figure(10_000_000, SETTINGS)
    keep_mb: float = figure(4096, SETTINGS)
    cpu_hour: float = figure(0.0408, "dollars; half an m7g.large on demand, us-east-1, June 2026")
    put_price: float = figure(0.005, "dollars for 1,000 PUT or LIST requests; S3 Standard, us-east-1, 2026")
    get_price: float = figure(0.0004, "dollars for 1,000 GET or HEAD requests; the same list")
    puts_per_second: float = figure(3500, "PUT requests that S3 promises for a prefix, its performance guide")
    gets_per_second: float = figure(5500, "GET and LIST requests, the same guide")
    bandwidth: float = figure(125e6, "bytes/s of 1 Gbit/s, an assumption")

    @property
    def positions_per_second(self) -> float:
        return self.full_per_second * self.positions_for_full

    @property
    def games_per_second(self) -> float:
        return self.positions_per_second / self.positions_per_game

    @property
    def segments_per_second(self) -> float:
        """Segments that a worker seals."""
        return max(1 / self.seal_seconds, self.positions_per_second / self.seal_positions)

    @property
    def positions_per_segment(self) -> float:
        return self.positions_per_second / self.segments_per_second

    @property
    def bytes_per_segment(self) -> float:
        return self.segment_bytes + self.position_bytes * self.positions_per_segment

    @property
    def kept_segments(self) -> float:
        """Segments in replay/ after a while: retention keeps so many positions or megabytes."""
        return min(self.keep_positions / self.positions_per_segment, self.keep_mb * 2**20 / self.bytes_per_segment)

    @property
    def game_seconds(self) -> float:
        """How long a game lasts: a worker plays many at once."""
        return self.parallel_games / self.games_per_second


SLOW = Figures(
    full_per_second=65 / 5.46,  # speed.md: Connect Four, 4 x 64, 800 simulations: 65 positions/s
    trained_per_second=1944,  # the others: loop_costs with -o network.blocks=4 -o network.channels=64
    publish_cost=0.5,
    load_cost=0.0165,
    model_bytes=1_392_734,
    state_bytes=5_649_073,
    seal_seconds=10,  # the preset standard
    publish_seconds=30,
)
"""Connect Four with a network of 4 x 64 and 800 simulations, the preset standard."""

BUCKET_SETTINGS = {"seal_seconds": 60.0, "poll_seconds": 30.0, "keep_positions": 1_000_000.0}
"""What suits a bucket: fewer and larger segments, and fewer requests."""


class Store(NamedTuple):
    """How long a request to a store takes, in seconds: a GET, HEAD or LIST, a PUT, and each name in a list besides.

    poll: time between two looks at replay/.
    """

    get: float = 0.0
    put: float = 0.0
    name: float = 0.0
    poll: float = POLL_SECONDS


STORES = {
    "disk": Store(),
    "Ceph": Store(0.0033, 0.0095, 0.00024, BUCKET_SECONDS),  # 1 MiB: GET 3.3 ms, PUT 9.5 ms; LIST of 200 names 48 ms
    "30 ms": Store(0.03, 0.03, 0.0, BUCKET_SECONDS),  # S3's guide: "tens of milliseconds" for small requests
}


# --- what a run does to its store ---


def requests_of_a_worker(figures: Figures) -> Counter[str]:
    """Return kind -> requests per second of a worker of a run in a bucket, with a scratch directory of its own."""
    look = max(REFRESH_SECONDS / 2, BUCKET_SECONDS)
    found = Counter(PUT=1 / max(BEAT_SECONDS, BUCKET_SECONDS), GET=2 / look)  # heartbeats: the trainer's, and its own
    found.update(LIST=1 / max(figures.poll_seconds, BUCKET_SECONDS), GET=1 / figures.publish_seconds)  # models
    found.update(PUT=figures.segments_per_second, LIST=figures.segments_per_second * pages(figures.kept_segments))
    found.update(HEAD=1 / LINE_SECONDS, GET=1 / LINE_SECONDS, PUT=1 / LINE_SECONDS)  # a line of metrics
    return found


def requests_of_the_trainer(figures: Figures, workers: int) -> Counter[str]:
    """Return kind -> requests per second of the trainer of a run in a bucket, without removals, which cost nothing."""
    replay, beats = pages(figures.kept_segments), pages(workers + 1)
    found = Counter(LIST=replay / max(POLL_SECONDS, BUCKET_SECONDS), GET=workers * figures.segments_per_second)
    found.update(PUT=1 / max(BEAT_SECONDS, BUCKET_SECONDS))
    # maintain: replay/ four times, workers/ twice, models/ three times, trainer/ and metrics/ twice; all heartbeats
    found.update(LIST=(4 * replay + 2 * beats + 7) / MAINTAIN_SECONDS, GET=(workers + 2) / MAINTAIN_SECONDS)
    # publish: the lease twice, old states; state, model, line of metrics
    found.update({"LIST": 3 / figures.publish_seconds, "PUT": 3 / figures.publish_seconds})
    found.update({"GET": 1 / figures.publish_seconds, "HEAD": 1 / figures.publish_seconds})
    return found


def requests(figures: Figures, workers: int) -> Counter[str]:
    """Return kind -> requests per second of a run in a bucket."""
    found = Counter({kind: workers * count for kind, count in requests_of_a_worker(figures).items()})
    found.update(requests_of_the_trainer(figures, workers))
    return found


def pages(names: float) -> int:
    return max(1, math.ceil(names / PAGE_KEYS))


def bytes_in(figures: Figures, workers: int) -> float:
    """Return the bytes that a run writes to its volume per second, without journals and heartbeats."""
    published = (figures.model_bytes + figures.state_bytes) / figures.publish_seconds
    return workers * figures.segments_per_second * figures.bytes_per_segment + published


def bytes_out(figures: Figures, workers: int) -> float:
    """Return the bytes that a run reads per second: models by each worker, segments by the trainer."""
    models = workers * figures.model_bytes / figures.publish_seconds
    return models + workers * figures.segments_per_second * figures.bytes_per_segment


# --- what the trainer has time for ---


def upkeep(figures: Figures, workers: int, store: Store) -> float:
    """Return the share of its time that the trainer does not train, although nothing is missing."""
    rate = requests_of_the_trainer(figures, workers)
    asking = (rate["GET"] + rate["HEAD"] + rate["LIST"]) * store.get + rate["PUT"] * store.put
    lists_of_segments = 1 / store.poll + 4 / MAINTAIN_SECONDS
    names = lists_of_segments * figures.kept_segments + 2 / MAINTAIN_SECONDS * workers
    listing = lists_of_segments * figures.kept_segments * figures.name_cost + names * store.name
    reading = figures.segment_cost + figures.position_cost * figures.positions_per_segment
    intake = workers * (figures.segments_per_second * reading + figures.beat_cost / MAINTAIN_SECONDS)
    return asking + listing + intake + figures.publish_cost / figures.publish_seconds


def reached_ratio(figures: Figures, workers: int, store: Store) -> float:
    """Return the replay ratio of a trainer on a core of its own, or a GPU, with workers on a core each."""
    left = max(0.0, 1 - upkeep(figures, workers, store)) * figures.trained_per_second
    return min(figures.replay_ratio, left / (workers * figures.full_per_second))


def largest(holds: Callable[[int], bool], most: int = 1_000_000) -> int:
    """Return the largest number of workers with which `holds` is still true, 0 if not even with one."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


# --- how old things are, and what they cost ---


def model_age(figures: Figures, *, poll: float) -> float:
    """Return the mean age of the model that chooses a move, in seconds since its publication.

    poll: time between two looks for a model; 0 where a file event comes.
    """
    return figures.publish_seconds / 2 + poll / 2 + figures.load_cost


def sample_age(figures: Figures, *, poll: float, trainer_poll: float) -> float:
    """Return how long after its publication the trainer reads what a model has played, in seconds, on average."""
    sealing = figures.positions_per_segment / figures.positions_per_second / 2
    return model_age(figures, poll=poll) + figures.game_seconds / 2 + sealing + trainer_poll / 2


def dollars_per_million_games(figures: Figures, workers: int, *, bucket: bool) -> tuple[float, float, float]:
    """Return what a million games cost in workers, in the trainer, and in requests."""
    seconds = 1e6 / (workers * figures.games_per_second)
    rate = requests(figures, workers) if bucket else Counter()
    paid = (rate["PUT"] + rate["LIST"]) * figures.put_price + (rate["GET"] + rate["HEAD"]) * figures.get_price
    core = seconds / 3600 * figures.cpu_hour
    return workers * core, core, seconds * paid / 1000


# --- the page ---

WORKERS = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="a file for the page, which is printed otherwise")
    parser.add_argument("--no-simulation", action="store_true", help="without the simulated loops, a minute")
    for each in fields(Figures):
        text = f"{each.metadata['source']}; default: {each.default:g}".replace("%", "%%")
        parser.add_argument("--" + each.name.replace("_", "-"), type=float, metavar="X", help=text)
    given = vars(parser.parse_args())
    changed = {each.name: given[each.name] for each in fields(Figures) if given[each.name] is not None}
    profiles = {
        "3 x 32, quick": Figures(),
        "4 x 64, 800 simulations, standard": SLOW,
        "the same, settings for a bucket": replace(SLOW, **BUCKET_SETTINGS),
    }
    lines = list(page({name: replace(figures, **changed) for name, figures in profiles.items()}))
    if not given["no_simulation"]:
        lines += ["", *compare()]
    text = "\n".join(lines) + "\n"
    if given["write"]:
        given["write"].write_text(text)
    else:
        print(text, end="")


def page(profiles: Mapping[str, Figures]) -> Iterator[str]:
    """Yield the lines of the page: what the arithmetic says."""
    heads = " | ".join(profiles)
    yield from (*TITLE, "", f"| figure | {heads} | source, and unit |", f"|---|{'--:|' * len(profiles)}---|")
    for each in fields(Figures):
        values = " | ".join(short(getattr(figures, each.name)) for figures in profiles.values())
        yield f"| `{each.name}` | {values} | {each.metadata['source']} |"
    for name, figures in profiles.items():
        yield from ("", f"## By the number of workers: {name}", "", *table_by_workers(figures))
    yield from ("", "## How many workers until a limit is reached", "")
    yield "The largest number of workers, with a core each, with which this still holds; 0 = not even with one."
    yield from ("", f"| what | {heads} |", f"|---|{'--:|' * len(profiles)}")
    for row in zip(*map(limits, profiles.values()), strict=True):
        yield f"| {row[0][0]} | {' | '.join(f'{most:,}' for _, most in row)} |"
    yield from ("", "## How old models and positions are", "")
    yield "Seconds since a model was published, on average: when it chooses a move, when the trainer reads that game."
    yield from ("", f"| volume | {heads} |", f"|---|{'--:|' * len(profiles)}")
    for name in ("file events", "a directory without them, such as NFS", "bucket"):
        yield f"| {name} | {' | '.join(ages(figures, name) for figures in profiles.values())} |"


def table_by_workers(figures: Figures) -> Iterator[str]:
    yield (
        f"A worker makes {short(figures.games_per_second)} games/s and a segment of "
        f"{short(figures.positions_per_segment)} positions, {short(figures.bytes_per_segment / 1024)} KiB, every "
        f"{short(1 / figures.segments_per_second)} s; replay/ keeps {short(figures.kept_segments)} of them, "
        f"{pages(figures.kept_segments)} requests for a list. A game lasts {short(figures.game_seconds)} s."
    )
    heads = ["workers", "games/s", "segments/min", "MB/s in", "MB/s out", "PUT/min", "LIST/min", "GET and HEAD/min"]
    heads += [f"upkeep, {name}" for name in STORES] + [f"ratio, {name}" for name in STORES]
    heads += ["$ for 1 M games: workers", "its trainer", "its requests"]
    yield from ("", f"| {' | '.join(heads)} |", "|--:" * len(heads) + "|")
    for workers in WORKERS:
        rate = requests(figures, workers)
        cells = [short(workers * figures.games_per_second), short(60 * workers * figures.segments_per_second)]
        cells += [short(each(figures, workers) / 1e6) for each in (bytes_in, bytes_out)]
        cells += [short(60 * each) for each in (rate["PUT"], rate["LIST"], rate["GET"] + rate["HEAD"])]
        cells += [f"{upkeep(figures, workers, store):.0%}" for store in STORES.values()]
        cells += [f"{reached_ratio(figures, workers, store):.2f}" for store in STORES.values()]
        cells += [f"{dollars:.2f}" for dollars in dollars_per_million_games(figures, workers, bucket=True)]
        yield f"| {workers} | {' | '.join(cells)} |"


def limits(figures: Figures) -> Iterator[tuple[str, int]]:
    """Yield what is limited, and the largest number of workers with which it still holds."""
    disk = STORES["disk"]
    for speed in (1, 10, 100):
        for ratio in (8, 4, 1):
            wanted = replace(figures, replay_ratio=ratio, trained_per_second=speed * figures.trained_per_second)
            of = "one core trains" if speed == 1 else f"a trainer {speed} times as fast as a core trains"
            text = f"{of}, and the replay ratio is {ratio}"
            yield text, largest(lambda count, wanted=wanted, ratio=ratio: reached_ratio(wanted, count, disk) >= ratio)
    for name, store in STORES.items():
        for share in (0.5, 1):
            text = "half of the trainer's time is left for training" if share < 1 else "any of its time is left"
            yield (
                f"{name}: {text}",
                largest(lambda count, store=store, share=share: upkeep(figures, count, store) <= share),
            )
    network = f"models and segments are read with {figures.bandwidth * 8e-9:g} Gbit/s"
    yield network, largest(lambda count: bytes_out(figures, count) <= figures.bandwidth)
    yield (
        "S3: PUT requests for one prefix",
        largest(lambda count: requests(figures, count)["PUT"] <= figures.puts_per_second),
    )
    yield (
        "S3: GET and LIST requests for one prefix",
        largest(
            lambda count: sum(requests(figures, count)[kind] for kind in ("GET", "LIST")) <= figures.gets_per_second
        ),
    )


def ages(figures: Figures, volume: str) -> str:
    polls = {"file events": 0.0, "bucket": max(figures.poll_seconds, BUCKET_SECONDS)}
    poll, trainer_poll = polls.get(volume, figures.poll_seconds), BUCKET_SECONDS if volume == "bucket" else POLL_SECONDS
    return f"{model_age(figures, poll=poll):.1f}, {sample_age(figures, poll=poll, trainer_poll=trainer_poll):.1f}"


def short(value: float) -> str:
    """Return a number with three digits, or all of a whole number's."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.1e}"


TITLE = """# What limits a run of many workers

`python -m benchmarks.scaling --write benchmarks/results/scaling.md` makes this page, and every figure of the first
table is an option of it. 23 November 2026; the costs were measured by `python -m benchmarks.loop_costs --run RUN`
with a run of Connect Four of five minutes, on two cores of a shared AMD EPYC. Nothing here was tried with more than a
few workers: it is arithmetic from the figures of one machine, and says which limit comes first, and about where.

* **Costs** are processor time, because other work ran on that machine. The network of 2 x 32 was measured before each
  slice and made 50 to 69 % of the evaluations that it makes on the quiet machine; the costs are converted by that.
  The same conversion gives 6,900 evaluations/s for the network of 4 x 64, of which a quiet machine makes 9,150
  ([speed.md](speed.md)): so an absolute rate may be wrong by a quarter, a ratio of two rates by less.
* **Intake.** A segment of 8,200 positions takes the trainer 19 ms (14 to 23 over 15 slices): 54 segments/s, 440,000
  positions/s, if it does nothing else. One of 1,000 positions takes 8 ms (4.8 to 12.7), one of 220 takes 5 ms (3.2 to
  8.4).
* **Upkeep** is the share of its time that the trainer spends on other things than training: it reads segments, looks
  at heartbeats, lists and publishes, one after the other, and waits for every answer of the store. **Ratio** is the
  replay ratio that it then reaches, of a wanted 8, with a core for it and one for each worker. Above 100 % it never
  catches up.
* **Stores.** *Disk* is a directory on a disk of the same machine. *Ceph* is an S3 server on the same machine with its
  data in memory (GET 3.3 ms, PUT 9.5 ms, LIST 0.24 ms for each name: upper bounds, other work ran). *30 ms* is a
  store that takes so long for any request; S3's guide names "tens of milliseconds" for small ones. No shared file
  system was measured.
* **MB/s in** are segments, models and states, **out** models and segments. Journals stay on the workers' disks where
  the run is in a bucket, and are written to the volume besides where it is in a directory.
* **PUT, LIST, GET** are those of a run in a bucket, with a scratch directory for each worker: of several with one
  directory, each reads the heartbeats of all. `tests/test_scaling.py` compares them with those that a trainer and the
  parts of a worker send.
* **Prices** are list prices, without taxes, transfer and storage.

## Figures
""".splitlines()


if __name__ == "__main__":
    main()
