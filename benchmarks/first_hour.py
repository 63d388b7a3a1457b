"""Train from nothing: seconds to the first model, the longest time without a finished game, scores at given minutes.

python -m benchmarks.first_hour my_game:MyGame --minutes 4 8 --seeds 1 2 3 --cores 0
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from plyzero.run.events import read_heartbeats
from plyzero.run.metrics import TRAINER
from plyzero.run.models import list_models

POLL_SECONDS = 0.25


def main() -> None:
    """Train with each seed, and print a line of JSON for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--minutes", type=float, nargs="*", default=[], help="when the newest model is scored")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", help="the cores to use, in the form of taskset, such as 0")
    parser.add_argument("--games", type=int, default=100, help="games of each score")
    parser.add_argument("--opponent", default="mcts:100")
    parser.add_argument("-o", action="append", default=[], metavar="SETTING=VALUE", help="of plyzero train")
    given = parser.parse_args()
    for seed in given.seeds:
        with tempfile.TemporaryDirectory() as made:
            print(json.dumps(measure(given, seed, Path(made))), flush=True)


def measure(given: argparse.Namespace, seed: int, made: Path) -> dict[str, Any]:
    """Return what one training has shown, in seconds from its start; without minutes it ends a minute after a model."""
    run = made / "run"
    plyzero = [*(["taskset", "-c", given.cores] if given.cores else []), sys.executable, "-m", "plyzero"]
    options = [part for option in given.o for part in ("-o", option)]
    place = [given.game, "--run", str(run)]
    subprocess.run([*plyzero, "init", *place, "--seed", str(seed), *options], check=True, stdout=subprocess.DEVNULL)
    training = subprocess.Popen([*plyzero, "train", *place, "--workers", str(given.workers)], stdout=subprocess.DEVNULL)
    try:
        found = watch(run, [60 * each for each in given.minutes], made)
    finally:
        training.send_signal(signal.SIGINT)
        training.wait()
    scores = {minutes: score(given, made / f"{60 * minutes:g}.onnx") for minutes in given.minutes}
    return {"game": given.game, "seed": seed, "options": given.o, "cores": given.cores, **found, "scores": scores}


def watch(run: Path, marks: list[float], made: Path) -> dict[str, Any]:
    """Watch a training, and copy its newest model to `made` at each of `marks`."""
    began = time.monotonic()
    first_model = ended_at = 0.0
    longest, finished = 0.0, 0
    left = list(marks)
    while True:
        time.sleep(POLL_SECONDS)
        now = time.monotonic() - began
        beats = read_heartbeats(run / "workers")
        games = sum(int(beat.fields.get("games", 0)) for name, beat in beats.items() if name != TRAINER)
        if not first_model and list_models(run / "models"):
            first_model = ended_at = now
        if games > finished:
            finished, ended_at = games, now
        longest = max(longest, now - ended_at) if first_model else 0.0
        while left and now >= left[0]:
            newest = list_models(run / "models")
            if newest:
                (made / f"{left[0]:g}.onnx").write_bytes((run / "models" / str(newest[0])).read_bytes())
            left.pop(0)
        if first_model and not left and (marks or now >= first_model + 60):
            break
    trainer = beats[TRAINER].fields
    return {
        "first_model": round(first_model, 1),
        "longest_without_game": round(longest, 1),
        "seconds": round(now),
        **{key: trainer[key] for key in ("step", "games", "bootstrap_positions", "generated_positions")},
    }


def score(given: argparse.Namespace, model: Path) -> dict[str, Any] | None:
    """Return the score of a model against the opponent, with its interval; None without a model."""
    if not model.exists():
        return None
    match = [sys.executable, "-m", "plyzero", "match", str(model), given.opponent, "--game", given.game, "--json"]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run([*match, "--games", str(given.games)], check=True, capture_output=True, env=environment)
    result = json.loads(done.stdout)
    low, high = result["score_interval"]
    return {"score": result["score"], "low": round(low, 3), "high": round(high, 3)}


if __name__ == "__main__":
    main()
