"""Positions, searches, bots and results as a notebook and a Python prompt show them."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from plyzero.ops.training import loss_chart
from plyzero.play.players import Bot
from plyzero.play.scores import MatchResult
from plyzero.rules.board import grid
from plyzero.rules.board_svg import render_svg, with_shares
from plyzero.rules.catalog import load_game
from tests.helpers import toys
from tests.helpers.dice import PlainRace


@pytest.fixture(scope="module")
def bot():
    return Bot.pure_mcts(load_game("tic-tac-toe"), np.random.default_rng(0), simulations=64)


def after(moves: str = ""):
    return toys.after(load_game("tic-tac-toe").start, moves)


def test_the_repr_of_a_position_has_the_game_whose_turn_it_is_and_the_board():
    assert repr(after("b2")) == "TicTacToe, player 1 to move:\n 1 . . .\n 2 . x .\n 3 . . .\n   a b c"
    assert repr(after("a1 a2 b1 b2 c1")).startswith("TicTacToe, Outcome(winner=0):\n")
    assert repr(PlainRace()).startswith("PlainRace, a roll is due:\n")


def test_results_and_bots_are_one_line(bot):
    result = MatchResult(5, 2, 3, leads=(1.0,) * 10)
    assert repr(result) == "MatchResult(wins=5, draws=2, losses=3: score 60% (31-83), +1.0 points)"
    assert repr(bot) == "<Bot: mcts:64 at tic-tac-toe>"
    searched = repr(bot.search([after()])[0])
    assert re.fullmatch(r"SearchResult\(action [0-8], value [+-]\d\.\d\d, 64 simulations\)", searched)


def test_a_search_is_a_table_whose_first_row_was_visited_most(bot):
    result = bot.search([after("a1")])[0]
    table = ET.fromstring(result._repr_html_())
    assert [head.text for head in table[0]] == ["action", "visits", "value", "policy"]
    visits = [int(row[1].text) for row in table[1:]]
    assert visits == sorted(result.visits.tolist(), reverse=True)
    assert {int(row[0].text) for row in table[1:]} == set(result.actions.tolist())


def test_a_bot_shows_the_winning_move_as_text_and_on_the_board(bot):
    shown = bot.show(after("a1 a2 b1 b2"))  # c1 wins
    lines = repr(shown).splitlines()
    assert "Player 0 to move; expected score 100%, proven win in 1 move, after " in repr(shown)
    (at,) = [place for place, line in enumerate(lines) if line.startswith("move")]
    assert lines[at].split() == ["move", "visits", "wins", "prior", "line"]
    assert lines[at + 1].split()[0] == "c1"
    picture = ET.fromstring(re.search("<svg.*</svg>", shown._repr_html_(), re.DOTALL)[0])
    marks = [group for group in picture if group.get("class") == "overlay"]
    cells = {each.get("data-cell"): each[0] for each in picture if each.get("data-cell")}
    largest = max(marks, key=lambda group: float(group[0].get("r")))
    c1 = cells["c1"]
    assert float(largest[0].get("cx")) == float(c1.get("x")) + float(c1.get("width")) / 2
    assert "<th>visits</th>" in shown._repr_html_()


def test_moves_from_one_square_to_another_are_arrows_and_names_are_text():
    board = grid([[0, 1], [0, 0]])
    ends = [each for each in board.cells if each.name in ("b1", "a2")]
    picture = ET.fromstring(with_shares(render_svg(board), [(ends, 0.5), ((), 0.3), (ends[:1], 0.001)]))
    (arrow,) = [group for group in picture if group.get("class") == "overlay"]
    assert (arrow[0].get("points"), arrow[-1].text) == ("40,0 0,40", "50")


def test_a_chart_of_losses_falls_with_them():
    picture = ET.fromstring(loss_chart([(0, 2.0), (10, 1.0)]))
    assert picture[1].get("points") == "0.0,10.0 300.0,55.0"
    assert [each.text for each in picture[2:]] == ["policy loss until step 10: 1.000"]
    assert ET.fromstring(loss_chart([(0, 0.5)])) is not None
