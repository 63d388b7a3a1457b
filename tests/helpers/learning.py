"""Models of a run, trainers in this process, and a worker and a trainer that take turns: every run is the same."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count

from plyzero.kits.cluster.data_parallel import Ranks
from plyzero.network.model_loader import load_newest
from plyzero.network.onnx_network import Network
from plyzero.run.directory import Run
from plyzero.run.models import ModelName, list_models, publish_model
from plyzero.search.evaluators import Uniform
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.trainer.export import untrained
from plyzero.trainer.loop import Trainer


def add_model(run: Run, step: int = 12, fence: int = 1) -> ModelName:
    """Publish an untrained model."""
    return publish_model(run.models, untrained(run), fence=fence, step=step)


def trainer_on(run: Run, devices: int) -> Trainer:
    """A trainer on the CPU, in as many processes as there are `devices`."""
    start_devices = partial(Ranks, run=run, devices=devices) if devices > 1 else None
    return Trainer(run, device="cpu", start_devices=start_devices)


@contextmanager
def training(run: Run, *, steps: int = 1, devices: int = 1) -> Iterator[Trainer]:
    """A trainer that has read all segments and made some steps."""
    with closing(trainer_on(run, devices)) as trainer:
        trainer.ingest()
        for _ in range(steps):
            trainer.train_step()
        yield trainer


def learn(run: Run, *, models: int, full: int) -> Network:
    """Let a worker and a trainer take turns in this thread, `full` positions with a full search at a time.

    Return the last of `models`. The same on every machine, but for what floating point does.
    """
    games = GamesInPlay(run.game.start, run.settings, seeds=count())
    network: Network | None = None
    with closing(Trainer(run, device="cpu")) as trainer:
        while len(list_models(run.models)) < models:
            fence, step = (network.fence, network.step) if network else (0, 0)
            with ReplayWriter(run, worker="w0", incarnation=f"{trainer.intake.games:08x}") as store:
                while store.totals()["full_positions"] < full:
                    for finished in games.run(network or Uniform(run.game.start.num_actions), fence=fence, step=step):
                        store.add(finished)
            trainer.ingest()
            while not trainer.missing_positions():
                trainer.train_step()
            if trainer.learner.step:
                trainer.publish()
                network = load_newest(run.models, run.game)
    assert network is not None
    return network
