"""Learn the games of a run again, in their order but with other settings, and score what is learned.

python -m benchmarks.strength.relearn RUN --exam FILE ... -o trainer.replay_ratio=2 -o network.blocks=6

Two such results differ in nothing but the settings, on one core and in minutes. What better games the settings would
have led to, only a whole run shows (learn.py).
"""

import argparse
import dataclasses
import tempfile
from contextlib import closing
from pathlib import Path

import torch

from benchmarks.strength.exams import find_exam
from benchmarks.strength.learn import scores_as_text
from benchmarks.strength.score import network_scores
from plyzero.play.model_loader import load_network
from plyzero.run.directory import Run, open_run, write_run
from plyzero.run.models import list_models
from plyzero.run.segments import list_segments, read_segment, write_segment
from trainer.loop import Trainer


def main() -> None:
    """Print a line with what the model that was learned is worth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="with all its segments: see store.keep_positions")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and the batches")
    parser.add_argument("--exam", nargs="+", required=True, metavar="FILE", help="see score.py")
    parser.add_argument("--simulations", type=int, nargs="+", default=[0, 64], help="when scored; 0 = raw")
    parser.add_argument("-o", action="append", default=[], metavar="SETTING=VALUE", help="of plyzero trainer")
    given = parser.parse_args()
    source = open_run(given.run)
    with tempfile.TemporaryDirectory() as made:
        run = dataclasses.replace(open_run(given.run, options=given.o), root=Path(made), seed=given.seed)
        write_run(run)
        steps, positions = relearn(source, run)
        network = load_network(run.models / str(list_models(run.models)[0]), run.game)
    scores = {
        Path(name).name: [network_scores(network, find_exam(name, run.game), number) for number in given.simulations]
        for name in given.exam
    }
    about = f"{' '.join(given.o) or 'the settings of the run'}, seed {given.seed}: {positions} positions, step {steps}"
    print(about, scores_as_text(scores))


def relearn(source: Run, run: Run) -> tuple[int, int]:
    """Give `run` the segments of `source` one by one, in the order in which they were sealed, and train on each.

    Return the number of steps, and of positions generated.
    """
    names = sorted(list_segments(source.segments), key=lambda name: sealed_at(source, str(name)))
    with closing(Trainer(run, device="cpu")) as trainer:
        torch.set_num_threads(run.settings.trainer.threads)
        for name in names:
            games = read_segment(source.segments / str(name), source.game, run_id=source.id)
            writer = {"worker": name.worker, "incarnation": name.incarnation, "sequence": name.sequence}
            write_segment(run.segments, games, run.game, **writer, run_id=run.id)
            trainer.ingest()
            while not trainer.missing_positions():
                trainer.train_step()
        trainer.publish()
        return trainer.step, trainer.ledger.bootstrap + trainer.ledger.generated


def sealed_at(run: Run, segment: str) -> float:
    """Return when a segment was sealed, in seconds since the epoch."""
    return (run.segments / segment).stat().st_mtime


if __name__ == "__main__":
    main()
