"""Luck: what a roll gave beyond its expectation has the mean 0, and without it exact values have no variance."""

import numpy as np
import pytest

from plyzero.rules.game import DRAW
from plyzero.run.records import Games
from plyzero.run.segments import read_segment
from plyzero.search.slots import SearchSlots
from plyzero.selfplay.step import luck_of_roll
from plyzero.settings import SearchSettings, SelfplaySettings, Settings, TrainerSettings
from plyzero.trainer.targets import mixed_targets, value_targets
from tests.helpers.dice import PlainRace, Race, Tosses, decisions
from tests.helpers.runs import bytes_of, games_by_seed, play_segment, replay, small_run
from tests.helpers.toys import Exact, Hashed, solve

with_and_without = pytest.mark.parametrize("all_rolls", [False, True])
both_games = pytest.mark.parametrize("start", [Race(), PlainRace()], ids=["compiled", "plain"])


def played(start, count, evaluate, *, all_rolls, **selfplay):
    """Games of the seeds 0 to count - 1."""
    options = {"parallel_games": 4, "simulations": 8, "fast_simulations": 4, "opening_plies": 0}
    settings = Settings(
        search=SearchSettings(all_rolls=all_rolls),
        selfplay=SelfplaySettings(**options | selfplay),
        trainer=TrainerSettings(luck_adjustment=True),
    )
    return Games.concatenate(games_by_seed(start, settings, evaluate, count=count)[0])


def value_of(wdl):
    return wdl[:, 0] - wdl[:, 2]


def firsts_of(games):
    """The first position of each game, `[G]`."""
    sizes = games.games["positions"].astype(int)
    return np.cumsum(sizes) - sizes


def total_luck(games):
    """The luck of each game, `[G]`."""
    assert games.luck is not None
    return np.add.reduceat(games.luck, firsts_of(games))


def results_of(games):
    """The result of each game for player 0, `[G]`."""
    return np.array([{DRAW: 0, 0: 1, 1: -1}[winner] for winner in games.games["winner"].tolist()])


@with_and_without
@both_games
def test_the_luck_of_the_rolls_at_a_node_has_the_mean_0_whatever_the_search_thinks(start, all_rolls):
    settings, checked = SearchSettings(all_rolls=all_rolls), 0
    for position in decisions(start):
        slots = SearchSlots(position, settings, slots=1, simulations=6)
        slots.begin(0, position, simulations=6)
        slots.run(Hashed(2))
        nodes, edges = slots.trees.nodes[0], slots.trees.edges[0]
        for n in range(int(slots.trees.slots["nodes"][0])):
            if nodes[n]["is_chance"]:
                below = range(nodes[n]["first_edge"], nodes[n]["first_edge"] + nodes[n]["num_edges"])
                luck = np.array([luck_of_roll(nodes, edges, n, e) for e in below])
                assert edges["prior"][list(below)].astype(float) @ luck == pytest.approx(0, abs=1e-9)
                checked += luck.any()
    assert checked > 30


def test_with_exact_values_the_target_is_the_value_itself():
    """Its variance is 0: in each game, at each position, whatever was rolled later."""
    start, memo = Tosses(), {}
    games = played(start, 200, Exact(1), all_rolls=True)
    lines = replay(start, games)
    expected = [solve(position, memo) for line in lines for position in line[:-1]]
    found = value_of(value_targets(games.games, games.positions, 0.0, 0.9, games.luck))
    assert found == pytest.approx(np.array(expected), abs=1e-5)
    raw = value_of(value_targets(games.games, games.positions, 0.0, 0.9))
    firsts = firsts_of(games)
    assert raw[firsts].std() > 0.8
    error = raw[firsts].std() / np.sqrt(len(firsts))
    assert raw[firsts].mean() == pytest.approx(found[firsts].mean(), abs=4 * error)


@with_and_without
@pytest.mark.parametrize(("start", "actions"), [(Race(), 2), (Tosses(), 1)], ids=["race", "tosses"])
def test_luck_taken_out_leaves_the_mean_and_lowers_the_variance(start, actions, all_rolls):
    games = played(start, 1500, Exact(actions), all_rolls=all_rolls)
    luck, result = total_luck(games), results_of(games)
    assert luck.mean() == pytest.approx(0, abs=4 * luck.std() / np.sqrt(len(luck)))
    assert (result - luck).std() < (0.6 if all_rolls else 0.8) * result.std()


@with_and_without
def test_opinions_that_are_wrong_leave_the_mean_too(all_rolls):
    luck = total_luck(played(Race(), 1500, Hashed(2), all_rolls=all_rolls))
    assert luck.std() > 0.1
    assert luck.mean() == pytest.approx(0, abs=4 * luck.std() / np.sqrt(len(luck)))


@with_and_without
@pytest.mark.parametrize(("algorithm", "reuse"), [("gumbel", False), ("puct", True)])
def test_compiled_and_plain_games_record_the_same_luck(algorithm, reuse, all_rolls):
    one, other = (
        played(start, 60, Hashed(2), all_rolls=all_rolls, fast_algorithm=algorithm, reuse_trees=reuse)
        for start in (Race(), PlainRace())
    )
    assert one.luck.any()
    assert bytes_of(one) == bytes_of(other)


def test_opening_moves_have_no_luck_since_no_search_saw_their_rolls():
    games = played(Race(), 200, Hashed(2), all_rolls=True, opening_plies=4)
    unsearched = games.positions["search"] == 0
    assert unsearched.sum() > 50
    assert not games.luck[unsearched].any()
    assert games.luck[~unsearched].any()


def test_luck_is_recorded_and_taken_out_where_the_setting_is_on(tmp_path):
    on = small_run(tmp_path / "on", "pig(goal=20)")  # the default of games with few rolls
    off = small_run(tmp_path / "off", "pig(goal=20)", "trainer.luck_adjustment=false")
    without_dice = small_run(tmp_path / "none", "tic-tac-toe", "trainer.luck_adjustment=true")
    games, others, none = (read_segment(play_segment(run, full=60), run.game) for run in (on, off, without_dice))
    assert others.luck is None
    assert none.luck is None
    assert games.luck is not None
    assert games.luck.any()
    given, taken = (
        mixed_targets(games, search=SearchSettings(), trainer=TrainerSettings(luck_adjustment=luck))
        for luck in (False, True)
    )
    assert not np.allclose(given.wdl, taken.wdl)
    assert np.allclose(taken.wdl[taken.is_sample].sum(axis=1), 1)
    assert taken.wdl.min() >= 0
