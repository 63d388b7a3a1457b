"""Breakthrough: known answers, and the compiled game against the example in plain Python."""

import numpy as np
import pytest

from examples.breakthrough import Breakthrough as Example
from plyzero.games.breakthrough import Breakthrough
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, Outcome
from plyzero.rules.random_game import random_game
from tests.helpers import naive_breakthrough, toys


def answers(position: Game) -> list[object]:
    seen = np.asarray(position.observe()).astype(bool).tolist()
    return [position.outcome(), position.to_play, tuple(position.legal_actions()), position.legal_names(), seen]


def compare(start: CompiledGame, size: int, *, positions: int) -> None:
    """Compare the positions of random games with those of the example: actions, names, observations and results."""
    seen = 0
    while seen < positions:
        game, example = random_game(start, np.random.default_rng(seen)), Example(size=size)
        for position, action in zip(game.positions, [*game.moves, None], strict=True):
            assert answers(position) == answers(example), str(position)
            assert str(position) == str(example)
            example = example if action is None else example.play_unchecked(action)
            seen += 1


@pytest.mark.parametrize("size", [4, 7, 10])
def test_the_compiled_game_is_the_example(size):
    compiled, example = Breakthrough(size=size), Example(size=size)
    for name in ("num_actions", "max_plies", "observation_shape"):
        assert getattr(compiled, name) == getattr(example, name)
    assert np.array_equal(np.hstack(compiled.symmetries()[0]), np.hstack(example.symmetries()[0]))
    assert len(compiled.symmetries()) == len(example.symmetries()) == 1
    compare(compiled.as_plain_python(), size, positions=50)  # so that nothing is compiled


def test_the_game_as_people_write_it_first_is_the_example():
    game, position = random_game(Example(), np.random.default_rng(0)), naive_breakthrough.Breakthrough()
    for example, action in zip(game.positions, [*game.moves, None], strict=True):
        assert (position.outcome(), position.to_play) == (example.outcome(), example.to_play)
        assert position.legal_actions() == example.legal_actions()
        assert np.array_equal(position.observe(), example.observe())
        position = position if action is None else position.play_unchecked(action)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 8])
def test_the_compiled_game_is_the_example_in_many_positions(size):
    compare(Breakthrough(size=size), size, positions=2_000)


def test_who_has_no_pawn_left_has_lost():
    position = Breakthrough(size=4).as_plain_python()
    position.record["board"] = np.diag([0, 1, 2, 0])
    position.record["pawns"] = 1
    assert position.outcome() is None
    assert toys.after(position, "b2-c3").outcome() == Outcome(0)
