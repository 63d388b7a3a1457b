"""Compare a run in a bucket with the same run in a directory: positions per second, in turn.

python -m benchmarks.bucket --server ceph --rounds 3 --minutes 1.5

The S3 server runs on this machine too, so what it takes of the processors is counted against the bucket.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.helpers.buckets import connected, new_prefix, server_of_tests


def main() -> None:
    """Measure, and print a line for each run and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="connect-four")
    parser.add_argument("--server", choices=("moto", "ceph"), default="ceph")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=1.5, help="of each run")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        (directory / "server").mkdir()
        endpoint, variables = stack.enter_context(server_of_tests(given.server, directory / "server"))
        stack.enter_context(connected(endpoint, **variables))
        for number in range(given.rounds):
            speeds = {}
            for kind in ("directory", given.server) if number % 2 else (given.server, "directory"):
                root = new_prefix() if kind == given.server else directory / f"run{number}"
                scratch = ["--scratch", str(directory / "scratch")] if kind == given.server else []
                speeds[kind] = positions_per_second(given, str(root), scratch)
                print(f"round {number}: {kind}: {speeds[kind]:.0f} positions/s", flush=True)
            ratios.append(speeds[given.server] / speeds["directory"])
            print(f"round {number}: {given.server} / directory = {ratios[-1]:.2f}", flush=True)
    print(f"median of {given.rounds}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def positions_per_second(given: argparse.Namespace, root: str, scratch: list[str]) -> float:
    """Train, and return how many positions the workers made a second while they played."""
    command = [sys.executable, "-m", "plyzero"]
    minutes, workers = str(given.minutes), str(given.workers)
    arguments = ["train", given.game, "--run", root, *scratch, "--minutes", minutes, "--workers", workers]
    # Matches would take a core at times, and games without a network are played many times as fast as others.
    off = ["-o", "rating.games=2", "-o", "rating.opponents=random", "-o", "selfplay.bootstrap_positions=512"]
    subprocess.run([*command, *arguments, *off], check=True, stdout=subprocess.DEVNULL, env=os.environ)
    found = subprocess.run([*command, "status", "--run", root, "--json"], check=True, capture_output=True, text=True)
    workers_of_run = [each for each in json.loads(found.stdout)["processes"] if each["role"] == "selfplay"]
    return sum(each["positions"] / (each["seconds"] - each["waited_seconds"]) for each in workers_of_run)


if __name__ == "__main__":
    main()
