"""The tool that measures the levels of bundled bots: computed scores, and what it writes on a card."""

import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks import pig
from benchmarks.strength import levels
from plyzero.play.anchors import Anchor
from plyzero.play.bundled_bots import list_cards
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


def test_a_level_is_measured_against_a_program_and_written_on_its_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(levels.PROGRAMS, "gnugo", f"text:{sys.executable} -m plyzero text tic-tac-toe --player random")
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


def test_the_table_of_levels_is_what_the_cards_say():
    shown = (ROOT / "docs" / "performance.md").read_text()
    rows = [row for card in list_cards() for row in levels.rows(card)]
    assert "\n".join(rows) in shown, "expected in docs/performance.md:\n" + "\n".join(rows)
