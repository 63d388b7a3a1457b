"""How long the requests of a run take in your bucket: a GET, a PUT, a list; for `benchmarks.scaling`.

python -m benchmarks.bucket_speed s3://BUCKET/PREFIX

It writes objects of a few megabytes in all below the prefix, and removes them. Endpoint and credentials are those of a
run (docs/buckets.md).
"""

import argparse
import os
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from plyzero.bucket import BucketPath
from plyzero.files import list_files, read_file, read_files, remove, write_file
from plyzero.run.directory import to_path

HEARTBEAT = b"x" * 2000
SEGMENT = os.urandom(372 << 10)
"""Contents of the size of a heartbeat and of a segment of 8,192 positions."""

REQUESTS = 100
NAMES = 10, 1000, 5000
"""Sizes of the lists."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", help="s3://BUCKET/PREFIX; the bucket exists")
    place = to_path(parser.parse_args().place) / f"speed-{uuid.uuid4().hex}"
    small = measure(place / "beats", HEARTBEAT, "2 kB")
    cost = measure_cost(place / "beats")
    large = measure(place / "segments", SEGMENT, "372 KiB")
    lists = [measure_list(place / "names", count) for count in NAMES]
    for directory in ("beats", "segments", "names"):
        names = list_files(place / directory)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name, directory=directory: remove(place / directory / name), names))
    name = (lists[-1] - lists[0]) / (NAMES[-1] - NAMES[0])
    print(f"--store NAME {small[1]:.4f} {large[1]:.4f} {large[0]:.4f} {name:.7f} --get-cost {cost:.5f}")


def measure(place: BucketPath, content: bytes, what: str) -> tuple[float, float]:
    """Write and read objects, print how long that takes, and return the medians for a PUT and a GET, in seconds."""
    puts = [seconds_of(lambda n=n: write_file(place / str(n), content)) for n in range(REQUESTS)]
    gets = [seconds_of(lambda n=n: read_file(place / str(n), max_bytes=1 << 20)) for n in range(REQUESTS)]
    print(f"PUT {what}: {spread(puts)}")
    print(f"GET {what}: {spread(gets)}")
    return median(puts), median(gets)


def measure_cost(place: BucketPath) -> float:
    """Read what `measure` wrote, many at the same time, and return the processor time of this process for each."""
    paths = [place / str(n) for n in range(REQUESTS)]
    began, at = time.process_time(), time.perf_counter()
    read_files(paths, max_bytes=1 << 20)
    cost, seconds = (time.process_time() - began) / REQUESTS, time.perf_counter() - at
    print(f"GET of {REQUESTS} at the same time: {1000 * seconds:.1f} ms, {1000 * cost:.2f} ms of processor time each")
    return cost


def measure_list(place: BucketPath, count: int) -> float:
    """Fill a place up to so many objects, and return the median time of a list, in seconds."""
    there = len(list_files(place))
    with ThreadPoolExecutor(8) as pool:
        names = (f"w0.00000001-{number:08}-g20-p600-f150-m1_1.zarr.zip" for number in range(there, count))
        list(pool.map(lambda name: write_file(place / name, HEARTBEAT), names))
    times = [seconds_of(lambda: list_files(place)) for _ in range(REQUESTS // 10)]
    print(f"LIST of {count:,} objects: {spread(times)}")
    return median(times)


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def spread(times: list[float]) -> str:
    """Return median, smallest and 95th percentile, in milliseconds."""
    ordered = sorted(times)
    low, high = ordered[0], ordered[int(0.95 * len(ordered))]
    return f"{1000 * median(times):.1f} ms ({1000 * low:.1f} to {1000 * high:.1f})"


if __name__ == "__main__":
    main()
