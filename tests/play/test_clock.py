"""Clocks: their form, the time they give to a move, and that no search takes more."""

import itertools

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.play.clock import NO_LIMIT, Clock, describe_limits
from plyzero.play.match import play_match
from plyzero.play.player import RandomPlayer
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.random_game import random_game
from plyzero.search.evaluators import Evaluation, EvaluationBatch, Uniform
from plyzero.settings import SearchSettings
from plyzero.testing import PlayerContract
from tests.helpers.clock import Clock as Pretended
from tests.helpers.toys import Hashed


class Costly:
    """An evaluator with arbitrary but fixed opinions whose batches take a time that a pretended clock shows.

    A batch takes 1 ms and 0.2 ms per position, and up to half as much again.
    """

    def __init__(self, num_actions: int, now: Pretended) -> None:
        self.opinion, self.now, self.rng = Hashed(num_actions), now, np.random.default_rng(0)

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        self.now.now += (0.001 + 0.0002 * len(batch.observations)) * self.rng.uniform(1, 1.5)
        return self.opinion(batch)


def timed_bot(game: GameSpec, clock: Clock, *, threads: int = 1, kind: str = "gumbel", most: int = NO_LIMIT) -> Bot:
    """Return a bot whose time is pretended; alpha-beta, whose time is real, is off."""
    assert isinstance(clock.now, Pretended)
    settings = SearchSettings(algorithm=kind, solver_nodes=0)
    evaluate = Costly(game.start.num_actions, clock.now)
    return Bot("b", game, evaluate, simulations=most, settings=settings, clock=clock, threads=threads)


def positions(game: GameSpec, number: int) -> list:
    """Return positions of random games at which a player moves."""
    games = (random_game(game.start, np.random.default_rng(seed)) for seed in itertools.count())
    found = (played.positions[i] for played in games for i in played.decisions[: played.plies])
    return [*itertools.islice(found, number)]


class TestABotUnderAClock(PlayerContract):
    game = "connect-four"

    def player(self, rng: np.random.Generator):
        return timed_bot(load_game(self.game), Clock(per_move=0.03, now=Pretended()))


@pytest.mark.parametrize(
    ("text", "main", "increment"),
    [("5m+3s", 300, 3), ("90s", 90, 0), ("90", 90, 0), ("1h", 3600, 0), ("1.5m+0.5", 90, 0.5)],
)
def test_a_clock_is_written_as_minutes_and_seconds_and_what_a_move_adds(text: str, main: float, increment: float):
    clock = Clock.parse(text)
    assert (clock.main, clock.left, clock.increment) == (main, main, increment)


@pytest.mark.parametrize("text", ["", "5x", "0s+3s", "3s+", "-5m", "5m+3m", "1e3s"])
def test_what_is_no_clock_is_refused(text: str):
    with pytest.raises(UserError, match="expected a clock, such as 5m"):
        Clock.parse(text)


def test_limits_are_told():
    assert str(Clock.parse("5m+3s")) == "300 s + 3 s a move"
    assert describe_limits(NO_LIMIT, {}, Clock(per_move=2), 2) == "2 s a move, 2 threads"
    assert describe_limits(64, {"c_puct": 2.0}) == "64 simulations, c_puct=2.0"


@pytest.mark.parametrize("clock", [Clock.parse("5m+3s"), Clock.parse("10s"), Clock.parse("1s+2s"), Clock(per_move=0.5)])
def test_a_clock_never_runs_out_if_every_move_takes_its_time(clock: Clock):
    for moves in range(500):
        assert clock.after(moves).left >= 0
        assert 0 < clock.after(moves).seconds() <= clock.after(moves).left + clock.per_move


@pytest.mark.parametrize(("name", "threads", "kind"), [("connect-four", 1, "gumbel"), ("othello(size=6)", 0, "puct")])
def test_no_search_takes_more_than_its_time_in_a_thousand_moves(name: str, threads: int, kind: str):
    game, now = load_game(name), Pretended()
    bot = timed_bot(game, Clock(per_move=0.03, now=now), threads=threads, kind=kind)
    used = []
    for position in positions(game, 1000):
        began = now()
        bot.choose(position)
        used.append(now() - began)
    assert max(used) <= 0.03
    assert np.median(used) > 0.01  # decided positions and proofs end sooner


def test_a_game_keeps_within_its_clock_and_a_new_game_has_all_of_it():
    game, now = load_game("connect-four"), Pretended()
    bot = timed_bot(game, Clock(main=1.0, increment=0.01, now=now))
    assert bot.clock is not None
    began, moves = now(), positions(game, 200)
    for made, position in enumerate(moves):
        bot.choose(position)
        assert bot.clock.left > 0
        assert now() - began <= 1.0 + 0.01 * made
    rng = np.random.default_rng(0)
    play_match(bot, RandomPlayer(rng), game.start, games=2, rng=rng, at_once=1)
    assert bot.clock.left == bot.clock.main == 1.0


def test_with_a_clock_games_are_played_one_after_the_other():
    game, together = load_game("tic-tac-toe"), []
    bot = timed_bot(game, Clock(per_move=0.02, now=Pretended()))

    class Watching(RandomPlayer):
        def choose_all(self, positions):
            together.append(len(positions))
            return super().choose_all(positions)

    rng = np.random.default_rng(0)
    assert play_match(bot, Watching(rng), game.start, games=6, rng=rng, at_once=1).games == 6
    assert set(together) == {1}


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_a_search_that_is_decided_ends_early_with_the_same_move(kind: str):
    game, now, ended = load_game("connect-four"), Pretended(), 0
    settings = SearchSettings(algorithm=kind, solver_nodes=0)
    whole = Bot("b", game, Hashed(7), simulations=200, settings=settings)
    early = timed_bot(game, Clock(per_move=100.0, now=now), threads=0, kind=kind, most=200)
    for position in positions(game, 40):
        (expected,), (found,) = whole.search([position]), early.search([position])
        if found.simulations != expected.simulations:
            ended += 1
            assert found.simulations < expected.simulations
        if np.nanmax(np.abs(expected.q)) < 0.999:  # no proof has changed the leader meanwhile
            assert found.best_action() == expected.best_action()
    assert ended > 3 or kind == "gumbel"  # whose best two are visited by turns


def test_simulations_are_the_most_that_a_clock_allows_and_the_raw_network_needs_none():
    game, clock = load_game("tic-tac-toe"), Clock(per_move=10.0, now=Pretended())
    assert timed_bot(game, clock, most=30).search([game.start])[0].simulations <= 30
    assert timed_bot(game, clock, most=0).search([game.start])[0].simulations == 0


@pytest.mark.parametrize(("threads", "positions", "most"), [(0, 1, 1), (1, 1, 4), (2, 1, 4), (1, 2, 2)])
def test_one_leaf_at_a_time_is_the_default(threads: int, positions: int, most: int):
    sizes: list[int] = []

    def evaluate(batch: EvaluationBatch) -> Evaluation:
        sizes.append(len(batch.observations))
        return Uniform(7)(batch)

    game = load_game("connect-four")
    starts = [game.start, game.start.play(3)][:positions]
    Bot("b", game, evaluate, simulations=64, threads=threads).search(starts)
    assert max(sizes) == most
