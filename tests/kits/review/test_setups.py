"""The review of a game with set-ups: it says which one it was, and a set-up is no luck."""

import numpy as np
import pytest

from plyzero import Bot
from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.review.by_ends import EndsJudging
from plyzero.kits.review.by_tree import TreeJudging
from plyzero.kits.review.reviewing import _judging, review
from plyzero.kits.review.scale import Scale
from plyzero.kits.review.tables import ReviewedGame, review_text, reviews_text
from plyzero.kits.review.values import Valuer
from plyzero.rules.catalog import GameSpec
from plyzero.rules.notation import play_named
from plyzero.settings import SearchSettings
from tests.helpers.setups import Heaps, ThrownHeaps, start_of
from tests.helpers.toys import Exact

SURE = Scale("score", 1.0, {})
TWO_HEAPS_OF_ONE = "0 2 0 4"  # three heaps of one stone: first, second, third


def reviewed(cls, moves):
    settings = SearchSettings(solver_nodes=0, algorithm="puct" if cls.num_chances else "gumbel")
    spec = GameSpec("heaps", start_of(cls))
    valuer = Valuer(Bot("judge", spec, Exact(spec.start.num_actions), simulations=256, settings=settings))
    record = GameRecord(*play_named(spec.start, moves.split()))
    return valuer, record, review(valuer, SURE, record, 256)


def test_without_dice_a_game_is_judged_by_trees_and_its_set_up_has_the_value_after_it():
    valuer, record, found = reviewed(Heaps, TWO_HEAPS_OF_ONE)
    assert isinstance(_judging(valuer, record)[0], TreeJudging)
    assert len(found.values) == len(record.positions) == 5
    assert found.values == pytest.approx([1, 1, 1, 1, 1])  # three heaps of one are won by whoever begins
    assert found.winrates[0] == found.values[0]
    assert found.rolls == []
    assert [each.turn.ply for each in found.turns] == [1, 2, 3]
    text = review_text(ReviewedGame(1, ("a", "b"), record, found))
    assert text.startswith("Game 1, set-up 0, 3 turns: ")
    assert "luck" not in text
    many = reviews_text([ReviewedGame(number, ("a", "b"), record, found) for number in (1, 2)])
    assert "set-up" in many


def test_with_dice_the_roll_after_the_set_up_is_luck_and_the_set_up_is_not():
    valuer, record, found = reviewed(ThrownHeaps, "0 tails 0 2 5")
    assert isinstance(_judging(valuer, record)[0], EndsJudging)
    assert len(found.values) == len(record.positions)
    assert [(each.rolls.ply, each.rolls.names) for each in found.rolls] == [(1, ("tails",))]
    assert found.values[0] == found.values[1]
    told = ReviewedGame(1, ("a", "b"), record, found).describe("The judge.")
    assert told["setup"] == "set-up 0"


def test_a_game_of_its_set_up_alone_is_reviewed():
    _, record, found = reviewed(Heaps, "0")
    assert len(found.values) == len(record.positions) == 2
    assert found.turns == []
    assert np.isfinite(found.values).all()
