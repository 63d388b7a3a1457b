"""The scale of a game: what counts as a mistake follows from random play, and margins fall with simulations."""

import json
import math

import numpy as np
import pytest

from plyzero import Bot
from plyzero.kits.review import measuring
from plyzero.kits.review.measuring import FILE, describe_scale, measure_scale, parse_scale, scale_of
from plyzero.kits.review.scale import Scale
from plyzero.kits.review.values import Valuer
from plyzero.play.judge import Judge
from plyzero.rules.catalog import load_game
from plyzero.settings import SearchSettings
from tests.helpers.toys import Exact


def test_bounds_are_shares_of_what_random_play_loses():
    scale = Scale("points", 0.5, {})
    assert [(round(bound, 3), kind) for bound, kind in scale.bounds] == [
        (0.15, "blunder"),
        (0.1, "mistake"),
        (0.05, "inaccuracy"),
    ]
    assert [scale.kind(lost) for lost in (0.2, 0.12, 0.06, 0.04)] == ["blunder", "mistake", "inaccuracy", None]


def test_accuracy_is_that_of_lichess_where_a_move_may_lose_the_whole_game():
    scale = Scale("score", 1.0, {})
    assert scale.accuracy([]) is None
    assert scale.accuracy([0, 0]) == pytest.approx(100, abs=0.001)
    assert scale.accuracy([0, 1]) == pytest.approx(50, abs=0.001)  # at least 0
    assert scale.accuracy([0.1]) == pytest.approx(103.1668 * np.exp(-0.4354) - 3.1669)
    assert Scale("points", 0.1, {}).accuracy([0.01]) == pytest.approx(scale.accuracy([0.1]))


def test_a_margin_falls_with_the_number_of_simulations():
    one = Scale("score", 1.0, {64: 0.2})
    assert one.margin(64) == pytest.approx(0.2)
    assert one.margin(256) == pytest.approx(0.2 * 2**-0.5)
    two = Scale("score", 1.0, {64: 0.2, 256: 0.05})
    assert two.margin(1024) == pytest.approx(0.0125)
    assert Scale("score", 1.0, {}).margin(64) == 0


def test_the_scale_of_a_game_is_measured_by_random_play_and_the_bots_own():
    game = load_game("tic-tac-toe")
    valuer = Valuer(Bot("exact", game, Exact(9), simulations=64, settings=SearchSettings()))
    seen: list[tuple[int, int]] = []
    scale = measure_scale(valuer, np.random.default_rng(1), on_game=lambda made, number: seen.append((made, number)))
    assert scale.bot == pytest.approx(100, abs=0.001)
    assert scale.random < 90
    assert 0.3 < scale.spread <= 1
    assert seen[-1] == (8, 8)
    assert parse_scale(json.loads(json.dumps(describe_scale(scale)))).spread == pytest.approx(scale.spread, abs=1e-4)


def test_the_scale_of_a_run_is_measured_once_and_kept_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "SECONDS", math.inf)
    game = load_game("tests.helpers.toys:Branching")
    judge = Judge(Bot("exact", game, Exact(3), simulations=16), "exact", tmp_path)
    first = scale_of(judge, Valuer(judge.bot), tmp_path, lambda made, number: None)
    kept = (tmp_path / FILE).read_bytes()

    def refuse(made: int, number: int) -> None:
        raise AssertionError("measured again")

    again = scale_of(judge, Valuer(judge.bot), tmp_path, refuse)
    assert again.spread == pytest.approx(first.spread, abs=1e-4)
    assert (tmp_path / FILE).read_bytes() == kept
    (tmp_path / FILE).write_text("{")  # damaged: measured again
    assert scale_of(judge, Valuer(judge.bot), tmp_path, lambda made, number: None) == first
    assert (tmp_path / FILE).read_bytes() == kept
