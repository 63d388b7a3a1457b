"""Games written for alpha-zero-general are played unchanged, with the planes and symmetries that a trial finds."""

import re

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.adapters import alpha_zero_general
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import action_names, play_named
from plyzero.rules.random_game import random_game
from tests.helpers import azg_games

NAME = "azg:tests.helpers.azg_games:"
GAMES = ("Noughts", "InPlace", "Absolute", "Unturned", "Fork", "Objects", "Old")


@pytest.mark.parametrize("name", GAMES)
def test_a_game_of_each_kind_is_the_game_that_it_describes(name: str):
    start, native = load_game(NAME + name).start, load_game("tic-tac-toe").start
    rng = np.random.default_rng(1)
    for _ in range(30):
        game = random_game(start, rng)
        positions = play_named(native, action_names(native, game.moves))[0]
        for here, position in zip(game.positions, positions, strict=True):
            assert here.outcome() == position.outcome()
            assert list(here.legal_actions()) == list(position.legal_actions())
            if here.outcome() is None:
                assert here.to_play == position.to_play
                turned = -1 if name == "Unturned" and here.to_play else 1
                assert np.array_equal(here.observe()[:2][::turned], position.observe()[:2])
    assert start.max_plies >= 9


@pytest.mark.parametrize(("name", "symmetries"), [("Noughts", 7), ("Fork", 7), ("Absolute", 7), ("Lost", 0)])
def test_symmetries_are_those_of_get_symmetries_that_hold(name: str, symmetries: int):
    assert len(load_game(NAME + name).start.symmetries()) == symmetries


def test_where_the_canonical_board_does_not_turn_a_plane_shows_who_moves():
    start = load_game(NAME + "Unturned").start
    assert start.observation_shape == (3, 3, 3)
    assert not start.observe()[2].any()
    assert start.play(4).observe()[2].all()


@pytest.mark.parametrize(
    ("name", "played"),
    [("Absolute", "the canonical board, as their search does"), ("Unturned", "the board itself, as their Arena does")],
)
def test_where_the_canonical_board_changes_the_result_the_moves_are_named(
    name: str, played: str, caplog: pytest.LogCaptureFixture
):
    alpha_zero_general._initial_position.cache_clear()
    load_game(NAME + name)
    found = re.search(
        rf"azg_games:{name}: after the moves ([\d ]+) getGameEnded gives another result .* {played}", caplog.text
    )
    game, board, player = getattr(azg_games, name)(), np.zeros((3, 3), int), 1
    for move in map(int, found[1].split()):
        board, player = game.getNextState(board, player, move)
    assert game.getGameEnded(board, player) != game.getGameEnded(game.getCanonicalForm(board, player), 1)
    caplog.clear()
    alpha_zero_general._initial_position.cache_clear()
    load_game(NAME + "Noughts")
    assert not caplog.text


def test_where_boards_have_a_class_of_their_own_a_plane_shows_the_ply():
    start = load_game(NAME + "Objects").start
    assert start.observation_shape == (3, 3, 3)
    for ply, position in enumerate(random_game(start, np.random.default_rng(0)).positions):
        assert np.array_equal(np.rint(position.observe()[2] * start.max_plies), np.full((3, 3), ply))


def test_of_a_few_initial_boards_every_game_begins_with_the_same(caplog: pytest.LogCaptureFixture):
    starts = set()
    for seed in range(8):
        np.random.seed(seed)
        state = np.random.get_state()[1].tolist()
        starts.add(load_game(f"{NAME}TwoStarts").start.key())
        assert np.random.get_state()[1].tolist() == state
        alpha_zero_general._initial_position.cache_clear()
    assert len(starts) == 1
    assert "getInitBoard returns different boards; every game begins with the same one" in caplog.text


def test_moves_have_the_names_of_squares_and_the_board_is_drawn():
    position = load_game(NAME + "Noughts").start.play(4)
    assert (position.action_name(0), position.action_name(9), position.policy_planes) == ("a1", "pass", 1)
    assert str(position).splitlines()[1].split() == ["2", ".", "x", "."]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Fork(players=3)", "it is for 3 players, not for two"),
        ("RandomMove", r"getNextState returns different boards for the same move, .* \(after the moves \d\)"),
        ("Endless", "a random game has not ended after 2000 moves"),
        ("Stuck", "getValidMoves allows no move, and getGameEnded is 0 there"),
        ("Half", "it has no getActionSize, getNextState"),
        ("LINES", "it is not a class"),
        ("Nothing", "has no class or function 'Nothing'"),
        ("Noughts(n=3)", "has no parameter 'n'"),
    ],
)
def test_what_cannot_be_played_is_refused_with_the_reason(name: str, reason: str):
    with pytest.raises(UserError, match=reason):
        load_game(NAME + name)


def test_the_version_is_that_of_the_rules_and_not_of_the_way_in_which_they_are_written():
    versions = {load_game(NAME + name).start.version for name in ("Noughts", "Noughts", "InPlace")}
    assert len(versions) == 1
