"""What a run asks of its store and of its trainer's time, by arithmetic from measured figures."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from plyzero.files import BUCKET_SECONDS, REQUESTS_AT_ONCE
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
    get_cost: float = figure(
        0.0005,
        "benchmarks/bucket_speed.py, 2026-11-23; seconds of the trainer for one GET of many, 0.0003 to 0.0007",
    )
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


class Store(NamedTuple):
    """How long a request to a store takes, in seconds.

    get:     a GET of a heartbeat, a HEAD, and a LIST besides its names.
    segment: a GET of a segment.
    put:     a PUT.
    name:    each name in a list.
    poll:    not a request: time between two looks at replay/.
    """

    get: float = 0.0
    segment: float = 0.0
    put: float = 0.0
    name: float = 0.0
    poll: float = BUCKET_SECONDS


DISK = Store(poll=POLL_SECONDS)

# --- what a run does to its store ---


def requests_of_a_worker(figures: Figures) -> Counter[str]:
    """Return kind -> requests per second of a worker of a run in a bucket."""
    look = max(REFRESH_SECONDS / 2, BUCKET_SECONDS)
    found = Counter(PUT=1 / max(BEAT_SECONDS, BUCKET_SECONDS), GET=1 / look)  # heartbeats: its own, the trainer's
    found.update(
        LIST=1 / max(figures.poll_seconds, BUCKET_SECONDS), GET=1 / figures.publish_seconds
    )  # models, of 32 bits
    found.update(PUT=figures.segments_per_second, LIST=figures.segments_per_second * pages(figures.kept_segments))
    found.update(HEAD=1 / LINE_SECONDS, GET=1 / LINE_SECONDS, PUT=1 / LINE_SECONDS)  # a line of metrics
    return found


def requests_of_the_trainer(figures: Figures, workers: int) -> Counter[str]:
    """Return kind -> requests per second of the trainer of a run in a bucket, without removals, which cost nothing."""
    replay, beats = pages(figures.kept_segments), pages(workers + 1)
    found = Counter(LIST=replay / max(POLL_SECONDS, BUCKET_SECONDS), GET=workers * figures.segments_per_second)
    found.update(PUT=1 / max(BEAT_SECONDS, BUCKET_SECONDS))
    # maintain: replay/ four times, workers/ twice, models/ three times, trainer/ and metrics/ twice; all heartbeats;
    # whether there are ratings
    found.update(LIST=(4 * replay + 2 * beats + 7) / MAINTAIN_SECONDS, GET=(workers + 1) / MAINTAIN_SECONDS)
    found.update(HEAD=1 / MAINTAIN_SECONDS)
    # publish: the lease twice, old states; state, model (its 8-bit form is one more), line of metrics
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
    rate, segments = requests_of_the_trainer(figures, workers), workers * figures.segments_per_second
    beats = workers + 1  # the trainer reads its own, too
    others = rate["GET"] - segments - beats / MAINTAIN_SECONDS + rate["HEAD"] + rate["LIST"]
    asking = others * store.get + seconds_for_beats(figures, beats, store) / MAINTAIN_SECONDS
    asking += segments * store.segment + rate["PUT"] * store.put
    lists_of_segments = 1 / store.poll + 4 / MAINTAIN_SECONDS
    names = lists_of_segments * figures.kept_segments + 2 / MAINTAIN_SECONDS * workers
    listing = lists_of_segments * figures.kept_segments * figures.name_cost + names * store.name
    reading = figures.segment_cost + figures.position_cost * figures.positions_per_segment
    intake = workers * (figures.segments_per_second * reading + figures.beat_cost / MAINTAIN_SECONDS)
    return asking + listing + intake + figures.publish_cost / figures.publish_seconds


def seconds_for_beats(figures: Figures, beats: int, store: Store) -> float:
    """Return how long it takes to get heartbeats from a store, many at the same time: to wait, or to work if longer."""
    return max(math.ceil(beats / REQUESTS_AT_ONCE) * store.get, beats * min(figures.get_cost, store.get))


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
