"""Small runs for tests: settings under which a worker and a trainer do their whole work within seconds."""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from plyzero.rules.catalog import load_game
from plyzero.rules.chance import replay_game
from plyzero.rules.game import Game
from plyzero.run.directory import Run, create_run
from plyzero.run.records import Games
from plyzero.run.segments import list_segments, read_segment
from plyzero.search.evaluators import Evaluate, Uniform
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.selfplay.worker import run_worker
from plyzero.settings import Settings
from tests.helpers.segments import seal

SMALL = (
    "selfplay.parallel_games=8",
    "selfplay.simulations=16",
    "selfplay.fast_simulations=4",
    "selfplay.bootstrap_positions=200",
    "selfplay.seal_positions=100",
    "selfplay.poll_seconds=0.05",
    "network.blocks=1",
    "network.channels=8",
    "trainer.batch_size=32",
    "trainer.publish_seconds=0.2",
    "trainer.window_positions=2000",
)


def small_run(root: Path, game: str = "tic-tac-toe", *options: str) -> Run:
    return create_run(root, load_game(game), options=[*SMALL, *options])


def play_segment(run: Run, *, full: int = 200, sequence: int = 0, fence: int = 0, step: int = 0) -> Path:
    """Play games without a network until they have `full` positions with a full search, and seal them.

    fence: of the model that is recorded as their evaluator; with 0 their search values teach nothing.
    step:  of that model; with 0 they count as played before there was a model.
    """
    in_play, played = GamesInPlay(run.game.start, run.settings, seeds=itertools.count(1000 * sequence)), []
    while sum(games.num_full for games in played) < full:
        played += in_play.run(Uniform(run.game.start.num_actions), fence=fence, step=step)
    return seal(run, Games.concatenate(played), sequence)


@contextmanager
def playing(run: Run, *, name: str = "w0", **options: str) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Let a worker play in a thread; yield a function that waits until a condition holds."""
    stop = threading.Event()
    worker = threading.Thread(target=run_worker, args=(run,), kwargs={"name": name, "stop": stop, **options})

    def until(condition: Callable[[], object]) -> None:
        while not condition():
            assert worker.is_alive()
            worker.join(0.05)

    worker.start()
    try:
        yield until
    finally:
        stop.set()
        worker.join()


def play_bootstrap(run: Run, **options: str) -> Games:
    """Let one worker play until it waits for a first model; return its games."""
    wanted = run.settings.selfplay.bootstrap_positions
    with playing(run, **options) as until:
        until(lambda: sum(name.full for name in list_segments(run.segments)) >= wanted)
    return games_of(run)


def games_of(run: Run) -> Games:
    """The games in all segments of a run."""
    names = sorted(list_segments(run.segments))
    return Games.concatenate([read_segment(run.segments / str(name), run.game) for name in names])


def games_by_seed(
    start: Game, settings: Settings, evaluate: Evaluate, *, count: int, fence: int = 1
) -> tuple[list[Games], GamesInPlay]:
    """Play the games with the seeds 0 to count - 1; return them, and all that have been in play."""
    games, found = GamesInPlay(start, settings, seeds=itertools.count()), dict[int, Games]()
    while not found.keys() >= set(range(count)):
        found |= {int(game.games["seed"][0]): game for game in games.run(evaluate, fence=fence, step=2)}
    return [found[seed] for seed in range(count)], games


def bytes_of(games: Games) -> list[bytes]:
    """Every array of some games as bytes: equal games have equal ones."""
    parts = (games.games, games.positions, games.moves, games.observations, games.luck)
    return [b"" if part is None else part.tobytes() for part in parts]


def records_by_seed(start: Game, settings: Settings, evaluate: Evaluate, *, count: int) -> list[list[bytes]]:
    """Return the fields of the records of the games with the seeds 0 to count - 1, each as bytes."""
    return [bytes_of(game) for game in games_by_seed(start, settings, evaluate, count=count)[0]]


def replay(start: Game, games: Games) -> list[list[Game]]:
    """The positions of players in every recorded game, and the final one, as the rules make them from its actions."""
    return [
        [position for position, _ in replay_game(start, one.games[0], one.positions["action"].tolist())]
        for one in games
    ]


def moves_of(games: Games, position: int) -> np.ndarray:
    """The `[n]` MOVE records of one position."""
    first = int(games.positions["num_legal"][:position].sum())
    return games.moves[first : first + int(games.positions["num_legal"][position])]
