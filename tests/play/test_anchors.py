"""The strength of a level in words: it follows from measured scores by one rule."""

import pytest

from plyzero.play.anchors import Anchor, claim
from plyzero.play.bundled_bots import list_cards
from plyzero.play.scores import MatchResult

LEVELS = [
    pytest.param(level, id=f"{card.game}, level {level.number}") for card in list_cards() for level in card.levels
]


def against(opponent: str, wins: int, losses: int) -> Anchor:
    result = MatchResult(wins, 0, losses)
    return Anchor(opponent, result.score, *result.interval())


@pytest.mark.parametrize(
    ("anchors", "words"),
    [
        ([against("X", 19, 21)], "about X"),  # 48 %, 33 to 63
        ([against("X", 26, 14)], "about X"),  # 65 %, 50 (49.5) to 78
        ([against("X", 27, 13)], "stronger than X"),  # 68 %, 52 to 80
        ([against("X", 13, 27)], "weaker than X"),
        ([against("X", 9, 10)], "scores 47 % (27 to 68) against X"),  # 41 points wide
        ([against("X", 10, 9), against("Y", 5, 35)], "weaker than Y"),  # who is stronger than X is not known
        ([against("X", 35, 5), against("Y", 9, 10)], "stronger than X"),
        ([against("X", 40, 0), against("Y", 19, 21)], "about Y"),
        ([against("X", 40, 0), against("Y", 30, 10), against("Z", 5, 35)], "between Y and Z"),
        ([against("X", 40, 0), against("Y", 40, 0)], "stronger than Y"),
        ([against("X", 0, 40), against("Y", 0, 40)], "weaker than X"),
        ([Anchor("the optimum", 0.4864, 0.4864, 0.4864)], "weaker than the optimum"),
        ([against("X", 40, 0), Anchor("perfect play", 0.5, 0.5, 0.5)], "cannot be beaten"),
        ([against("X", 40, 0), Anchor("perfect play", 0.49, 0.49, 0.49)], "between X and perfect play"),
    ],
)
def test_the_words_follow_from_the_interval(anchors: list[Anchor], words: str):
    assert claim(anchors) == words


def test_a_score_is_told_with_its_interval_and_one_that_was_computed_says_so():
    assert str(against("X", 19, 21)) == "48 % (33 to 63) against X"
    assert str(against("X", 1000, 0)) == "over 99 % against X"
    assert str(against("X", 0, 1000)) == "under 1 % against X"
    assert str(Anchor("the optimum", 0.4864, 0.4864, 0.4864)) == "48.6 % against the optimum (computed)"


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_of_a_bundled_bot_is_named_by_a_player_that_it_was_measured_against(level):
    assert any(each.opponent in level.claim for each in level.anchors) or level.claim == "cannot be beaten"
    assert all(0 <= each.low <= each.score <= each.high <= 1 for each in level.anchors)
