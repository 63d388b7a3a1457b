"""What limits a run of many workers, by arithmetic from measured figures; and simulated loops beside measured ones.

python -m benchmarks.scaling --write benchmarks/results/scaling.md
python -m benchmarks.scaling --full-per-second 300 --trained-per-second 50000 --cpu-hour 0.03

Every figure below is an option, and so is every price.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

from benchmarks.loop_comparison import compare
from benchmarks.loop_load import (
    DISK,
    Figures,
    Store,
    bytes_in,
    bytes_out,
    dollars_per_million_games,
    largest,
    model_age,
    pages,
    reached_ratio,
    requests,
    sample_age,
    upkeep,
)
from plyzero.files import BUCKET_SECONDS
from trainer.loop import POLL_SECONDS

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

STORES = {
    "disk": DISK,
    # benchmarks/bucket_speed.py, 2026-11-23, with other work on the machine
    "Ceph": Store(0.0462, 0.0031, 0.0071, 43e-6),
    "Ceph, no delay": Store(0.0018, 0.0026, 0.0100, 42e-6),
    "30 ms": Store(0.03, 0.03, 0.03),  # "tens of milliseconds" for small requests: S3's performance guide
}

WORKERS = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="a file for the page, which is printed otherwise")
    parser.add_argument("--no-simulation", action="store_true", help="without the simulated loops, a minute")
    named = ("NAME", "GET", "SEGMENT", "PUT", "PER_NAME")
    parser.add_argument("--store", nargs=5, action="append", default=[], metavar=named, help="a further store, seconds")
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
    stores = STORES | {name: Store(*map(float, seconds)) for name, *seconds in given["store"]}
    lines = list(page({name: replace(figures, **changed) for name, figures in profiles.items()}, stores))
    if not given["no_simulation"]:
        lines += ["", *compare()]
    text = "\n".join(lines) + "\n"
    if given["write"]:
        given["write"].write_text(text)
    else:
        print(text, end="")


def page(profiles: Mapping[str, Figures], stores: Mapping[str, Store]) -> Iterator[str]:
    """Yield the lines of the page: what the arithmetic says."""
    heads = " | ".join(profiles)
    yield from (*TITLE, "", f"| figure | {heads} | source, and unit |", f"|---|{'--:|' * len(profiles)}---|")
    for each in fields(Figures):
        values = " | ".join(short(getattr(figures, each.name)) for figures in profiles.values())
        yield f"| `{each.name}` | {values} | {each.metadata['source']} |"
    yield ""
    yield "Of 4 x 64, `full_per_second` follows from the 65 positions/s of speed.md; its seconds are those of preset"
    yield "standard; costs and sizes are those of `loop_costs -o network.blocks=4 -o network.channels=64`."
    for name, figures in profiles.items():
        yield from ("", f"## By the number of workers: {name}", "", *table_by_workers(figures, stores))
    yield from ("", "## How many workers until a limit is reached", "")
    yield "The largest number of workers, with a core each, with which this still holds; 0 = not even with one."
    yield from ("", f"| what | {heads} |", f"|---|{'--:|' * len(profiles)}")
    for row in zip(*(limits(figures, stores) for figures in profiles.values()), strict=True):
        yield f"| {row[0][0]} | {' | '.join(f'{most:,}' for _, most in row)} |"
    yield from ("", "## How old models and positions are", "")
    yield "Seconds since a model was published, on average: when it chooses a move, when the trainer reads that game."
    yield from ("", f"| volume | {heads} |", f"|---|{'--:|' * len(profiles)}")
    for name in ("file events", "a directory without them, such as NFS", "bucket"):
        yield f"| {name} | {' | '.join(ages(figures, name) for figures in profiles.values())} |"


def table_by_workers(figures: Figures, stores: Mapping[str, Store]) -> Iterator[str]:
    yield (
        f"A worker makes {short(figures.games_per_second)} games/s and a segment of "
        f"{short(figures.positions_per_segment)} positions, {short(figures.bytes_per_segment / 1024)} KiB, every "
        f"{short(1 / figures.segments_per_second)} s. replay/ keeps {short(figures.kept_segments)} of them, whose list "
        f"takes {pages(figures.kept_segments)} LIST. A game lasts {short(figures.game_seconds)} s."
    )
    heads = ["workers", "games/s", "segments/min", "MB/s in", "MB/s out", "PUT/min", "LIST/min", "GET and HEAD/min"]
    heads += ["$ for 1 M games: workers", "trainer", "requests"]
    yield from ("", f"| {' | '.join(heads)} |", "|--:" * len(heads) + "|")
    for workers in WORKERS:
        rate = requests(figures, workers)
        cells = [short(workers * figures.games_per_second), short(60 * workers * figures.segments_per_second)]
        cells += [short(each(figures, workers) / 1e6) for each in (bytes_in, bytes_out)]
        cells += [short(60 * each) for each in (rate["PUT"], rate["LIST"], rate["GET"] + rate["HEAD"])]
        cells += [f"{dollars:.2f}" for dollars in dollars_per_million_games(figures, workers, bucket=True)]
        yield f"| {workers} | {' | '.join(cells)} |"
    yield from ("", "Upkeep, and the ratio that one core reaches:", "")
    heads = ["workers", *(f"{name}: upkeep | ratio" for name in stores)]
    yield from (f"| {' | '.join(heads)} |", "|--:" * (1 + 2 * len(stores)) + "|")
    for workers in WORKERS:
        pairs = ((upkeep(figures, workers, each), reached_ratio(figures, workers, each)) for each in stores.values())
        yield f"| {workers} | {' | '.join(f'{share:.0%} | {ratio:.2f}' for share, ratio in pairs)} |"


def limits(figures: Figures, stores: Mapping[str, Store]) -> Iterator[tuple[str, int]]:
    """Yield what is limited, and the largest number of workers with which it still holds."""
    for speed in (1, 10, 100):
        for ratio in (8, 4, 1):
            wanted = replace(figures, replay_ratio=ratio, trained_per_second=speed * figures.trained_per_second)
            of = "one core" if speed == 1 else f"a trainer {speed} times as fast as one core"
            text = f"disk: {of} reaches a replay ratio of {ratio}"
            yield text, largest(lambda count, wanted=wanted, ratio=ratio: reached_ratio(wanted, count, DISK) >= ratio)
    for name, store in stores.items():
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
* **Stores.** *Disk* is a directory on a disk of the same machine. *Ceph* is Ceph 16's object gateway on the same
  machine, as it is installed, with its data in memory, and *no delay* the same with `tcp_nodelay=1` in its
  `rgw_frontends`; without that an answer to a small request waits for 40 ms. `python -m benchmarks.bucket_speed`
  measured both, and measures your bucket. *30 ms* is a store that takes so long for any request; S3's guide names
  "tens of milliseconds" for small ones. No shared file system was measured.
* **Heartbeats** in a bucket are read 16 at the same time, so the trainer waits for one answer in place of 16. Each
  still takes `get_cost` of its processor (0.32 to 0.45 ms in `bucket_speed`, 0.38 to 0.68 ms beside 100 workers, on a
  busy machine), which is the longer of the two where answers come fast. As a check, `maintain` of a trainer beside the
  heartbeats of 100 workers took 0.98 s on *Ceph* and 0.22 s with *no delay* (medians of series of five: 0.96 to 1.01 s
  and 0.19 to 0.25 s), where this arithmetic says 0.98 s and 0.09 s. With no delay, gateway, trainer and other work
  shared two busy cores, on which a single GET took 1.6 to 4.7 ms; the work of the gateway is not in the arithmetic,
  which is for a store with cores of its own. When they were read one after the other, the same day, it took 4.8 to 5.3
  s and 0.23 to 0.63 s.
* **MB/s in** are segments, models and states, **out** models and segments. Journals stay on the workers' disks where
  the run is in a bucket, and are written to the volume besides where it is in a directory.
* **PUT, LIST, GET** are those of a run in a bucket. `tests/test_scaling.py` compares them with those that a trainer and
  the parts of a worker send.
* **Prices** are list prices, without taxes, transfer and storage, as pages of others gave them in 2026.

## Figures
""".splitlines()


if __name__ == "__main__":
    main()
