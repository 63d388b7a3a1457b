"""Planes lie on the cells of the board as it is drawn, whoever is to move."""

import sys
from pathlib import Path

import numpy as np
import pytest

from plyzero.kits.engines.plane_cells import PlaneCells
from plyzero.rules.catalog import load_game
from plyzero.rules.game import board_of
from plyzero.rules.random_game import random_game

EXAMPLES = Path(__file__).parents[3] / "examples"
OWN_STONES_FIRST = (
    "tic-tac-toe",
    "connect-four",
    "othello",
    "othello(size=6)",
    "breakthrough",
    "breakthrough(size=5)",
    "hex",
    "hex(size=4)",
    "gomoku(size=9)",
    "go",
    "go(size=5)",
)
"""The included games whose planes lie on a board; plane 0 has the stones of the player to move."""


@pytest.fixture(autouse=True)
def examples_are_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("dots_and_boxes", None)
    sys.modules.pop("corners", None)


def positions_of(start):
    """Return positions of random games that the search for a layout has not seen."""
    games = [random_game(start, np.random.default_rng([9, seed])) for seed in range(3)]
    return [game.positions[i] for game in games for i in game.decisions]


@pytest.mark.parametrize("name", OWN_STONES_FIRST)
def test_the_plane_of_own_stones_lies_on_the_own_pieces_for_both_players(name):
    start = load_game(name).start
    plane_cells, seen = PlaneCells(start), set()
    for position in positions_of(start):
        cells = plane_cells.cells(position)
        own = np.asarray(position.observe())[0]
        drawn = {cells[row][column] for row, column in np.argwhere(own)}
        assert drawn == {cell for cell in board_of(position).cells if cell.piece == str(position.to_play)}
        seen.add((position.to_play, bool(drawn)))
    assert {(0, True), (1, True)} <= seen


def test_boxes_lie_in_the_squares_between_the_edges():
    start = load_game("dots_and_boxes:DotsAndBoxes").start
    plane_cells = PlaneCells(start)
    for position in positions_of(start):
        cells, own = plane_cells.cells(position), np.asarray(position.observe())[1]
        drawn = {cells[row][column] for row, column in np.argwhere(own)}
        assert drawn == {cell for cell in board_of(position).cells if cell.piece == str(position.to_play)}


def test_a_final_board_lies_on_the_pieces_that_it_counts():
    start = load_game("othello(size=6)").start
    plane_cells = PlaneCells(start)
    for seed in range(4):
        end = random_game(start, np.random.default_rng([9, seed])).positions[-1]
        cells = plane_cells.cells(end)
        for row, column in np.ndindex(6, 6):
            piece = {1: str(end.to_play), -1: str(1 - end.to_play), 0: ""}[int(end.final_board()[0, row, column])]
            assert cells[row][column].piece == piece


@pytest.mark.parametrize("name", ["backgammon", "pig"])
def test_planes_that_are_no_board_lie_nowhere(name):
    start = load_game(name).start
    game = random_game(start, np.random.default_rng(0))
    assert PlaneCells(start).cells(game.positions[game.decisions[0]]) is None
