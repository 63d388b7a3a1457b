"""The tool that measures the levels of bundled bots: computed scores, and what it writes on a card."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from benchmarks import anchors, pig
from benchmarks.strength import levels
from plyzero.play.anchors import Anchor
from plyzero.play.bundled_bots import list_cards
from plyzero.play.player import RandomPlayer
from plyzero.play.players import Bot
from plyzero.rules.catalog import load_game
from tests.helpers.toys import Constant, Exact, FirstMoveWins, Harvest

ROOT = Path(__file__).parents[1]


def test_the_best_reply_wins_against_chance_and_draws_against_perfect_play():
    uniform = Bot("uniform", load_game(FirstMoveWins), Constant(2, 0, 1, 0), simulations=0, temperature=1.0)
    # as the first player it wins half of its games, as the second none
    assert levels.against_best_reply(uniform, uniform.game.start) == pytest.approx(0.25)
    perfect = Bot("perfect", load_game(Harvest), Exact(3), simulations=16)
    assert levels.against_best_reply(perfect, perfect.game.start) == 0.5


def test_a_rule_of_pig_with_probabilities_is_worth_what_lies_between_its_two_moves():
    best = pig.optimal(10)
    values = []
    for chance in (pig.HOLD, 0.5, pig.ROLL):
        rule = best.copy()
        rule[0, 0, 4] = chance  # a position that is met once at most before the opponent's turn
        values.append(pig.duel(rule, best))
    assert len(set(values)) == 3
    assert min(values) < values[1] < max(values)
    assert pig.duel(best, best) == pytest.approx(max(values), abs=1e-6)


class FirstLegal(anchors.Engine):
    """A program that plays the first legal move."""

    opening_plies = 1

    def __init__(self, start, level, seed):
        super().__init__(["cat"])

    def play(self, position, action):
        pass

    def choose(self, position):
        return position.legal_actions()[0]


def test_a_level_is_measured_against_a_program_and_written_on_its_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(anchors.ENGINES, "gnugo", FirstLegal)
    anchor = levels.measure("tic-tac-toe", 4, "gnugo:3", games=6, openings=None)
    assert anchor.opponent == "GNU Go level 3"
    assert anchor.low <= anchor.score <= anchor.high < 1.0 + 1e-9
    card = tmp_path / "card.toml"
    card.write_text("game = 'x'\n")
    levels.write(card, 4, anchor, "a")
    levels.write(card, 3, anchor, "b")
    levels.write(card, 4, anchor._replace(score=0.5), "c")
    found = tomllib.loads(card.read_text())
    assert found["game"] == "x"
    assert [(each["level"], each["command"]) for each in found["anchors"]] == [(4, "c"), (3, "b")]
    assert Anchor(*(found["anchors"][0][key] for key in Anchor._fields)) == anchor._replace(score=0.5)


def test_a_match_with_a_program_counts_for_the_player():
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    result = anchors.play_games(RandomPlayer(rng), game.start, FirstLegal, 1, games=4, rng=rng)
    assert result.games == 4


def test_the_table_of_levels_is_what_the_cards_say():
    shown = (ROOT / "docs" / "performance.md").read_text()
    rows = [row for card in list_cards() for row in levels.rows(card)]
    assert "\n".join(rows) in shown, "expected in docs/performance.md:\n" + "\n".join(rows)
