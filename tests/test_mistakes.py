"""Mistakes are planted where they belong, found by the law that names them, and counted."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.mistakes.__main__ import is_survivor, planted, report
from benchmarks.mistakes.interface import interface_mistakes
from benchmarks.mistakes.planted import Planted, with_changes
from benchmarks.mistakes.source import source_mistakes
from benchmarks.mistakes.trial import Trial, changes, differs_from, try_mistakes
from examples.race import Race
from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.rules.random_game import random_game


def test_a_game_without_a_change_answers_like_the_one_inside():
    same = with_changes(TicTacToe, {})
    assert isinstance(same(), Planted)
    assert changes(same, TicTacToe) == "nothing"
    assert differs_from(same, TicTacToe) == ""


def test_each_operator_changes_what_it_names():
    found = {(each.operator, each.where): each for each in interface_mistakes(TicTacToe)}
    position = found["a plane is left out", "plane 1"].make().play(4)
    assert position.observe()[1].sum() == 0
    assert position.inner.observe()[1].sum() == 1
    assert found["the wrong winner", "player 0"].make().outcome() is None
    game = random_game(found["the wrong winner", "nobody"].make(), np.random.default_rng(0))
    assert game.positions[-1].outcome().winner is None


def test_mistakes_in_the_source_are_of_both_kinds_and_each_makes_a_game_of_its_own():
    found = list(source_mistakes(Race, 2))
    operators = Counter((each.operator, each.contradicts) for each in found)
    assert {"a wrong direction", "a test is off by one or turned"} <= {operator for operator, _ in operators}
    assert {contradicts for _, contradicts in operators} == {True, False}
    assert max(operators.values()) == 2
    assert len({type(each.make()) for each in found}) == len(found)


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    asked = [*planted(["tic-tac-toe"], ["a name", "is shared"], None)]
    return [*try_mistakes(asked, jobs=2)]


def test_a_mistake_is_found_by_the_law_that_names_it(trials: list[Trial]):
    assert {each.found_by for each in trials} == {"actions_have_names", "play_makes_a_new_position"}
    assert all(0 <= each.seconds < 60 and each.moves >= 0 for each in trials)


def test_the_report_counts_what_is_found_and_lists_what_is_not(trials: list[Trial]):
    missed = replace(trials[0], found_by="", changes="names")
    equal = replace(trials[1], found_by="", changes="nothing")
    assert [is_survivor(each) for each in (missed, equal, trials[2])] == [True, False, False]
    text = "\n".join(report([missed, equal, *trials[2:]]))
    left = len(trials) - 1
    assert f"parts that contradict one another: {left - 1} of {left} found" in text
    assert f"{len(trials)} mistakes; 1 of them change nothing" in text
    assert f"tic-tac-toe | {missed.operator} | {missed.where}  (changes names)" in text
