"""Ratings: closed forms, simulated tournaments, agreement with another library, and the choice of the next games."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.kits.arena.ratings import Games, bootstrap, next_pairs, rate
from plyzero.play.scores import ELO, PRIOR_ELO, MatchResult

WIN, DRAW, LOSS = range(3)


def counts_of(players: int, *games: tuple[int, int, int, int]) -> np.ndarray:
    """Counts from (first, second, outcome, number)."""
    counts = np.zeros((players, players, 3))
    for first, second, outcome, number in games:
        counts[first, second, outcome] += number
    return counts


def simulate(
    elo: np.ndarray, *, games: int, side: float, draws: float, rng: np.random.Generator, sample: bool = True
) -> np.ndarray:
    """Counts of a tournament in which everybody plays `games` games with each colour against everybody else.

    sample: False = the expected counts.
    """
    s = (elo[:, None] - elo + side) * math.log(10) / 400
    weights = np.stack([np.exp(s / 2), np.full(s.shape, draws), np.exp(-s / 2)], axis=-1)
    p = weights / weights.sum(-1, keepdims=True)
    counts = rng.multinomial(games, p).astype(float) if sample else games * p
    counts[np.arange(len(elo)), np.arange(len(elo))] = 0
    return counts


def counts_by(elo: list[float], *, seed: int = 0, **options) -> np.ndarray:
    """`simulate` with random numbers of its own."""
    return simulate(np.array(elo), rng=np.random.default_rng(seed), **options)


def covered(tournaments: int, *, spread: float, players: int, games: int, side: float, draws: float) -> list[float]:
    """The shares of 95 % intervals that hold the true rating, side advantage and share of draws."""
    rng, hits = np.random.default_rng(1), []
    for _ in range(tournaments):
        elo = rng.normal(0, spread, players)
        found = rate(simulate(elo, games=games, side=side, draws=draws, rng=rng))
        ratings = np.abs(found.elo - (elo - elo[0]))[1:] <= found.error[1:]
        truths = (found.side, side), (found.draws, draws / (2 + draws))
        hits.append([ratings.mean(), *(interval.low <= truth <= interval.high for interval, truth in truths)])
    return np.mean(hits, axis=0).tolist()


def test_two_players_are_rated_by_the_usual_curve():
    for won, lost in ((75, 25), (50, 50), (10, 90)):
        won_by_second = (0, 1, LOSS, 500 * won), (1, 0, WIN, 500 * won)
        found = rate(counts_of(2, *won_by_second, (0, 1, WIN, 500 * lost), (1, 0, LOSS, 500 * lost)))
        assert found.elo[0] == found.error[0] == 0
        assert found.elo[1] == pytest.approx(ELO * math.log(won / lost), abs=0.5)
        assert found.side.value == pytest.approx(0, abs=1e-6)
        # the variance of a logit of n games is 1 / (n p (1 - p))
        n, p = 500 * 2 * (won + lost), won / (won + lost)
        assert found.error[1] == pytest.approx(1.96 * ELO / math.sqrt(n * p * (1 - p)), rel=0.01)


def test_the_elo_difference_of_a_match_is_the_one_of_a_ladder_of_two():
    result = rate([[[0, 0, 0], [6, 3, 1]], [[2, 3, 5], [0, 0, 0]]], anchor=1)  # [A first], [B first]
    value, low, high = MatchResult(11, 6, 3, distinct=1).elo()
    assert value == pytest.approx(result.elo[0], rel=0.03)  # which also fits the side advantage
    assert (high - low) / 2 == pytest.approx(result.error[0], rel=0.03)


@pytest.mark.parametrize("counts", [(0, 0, 3), (0, 5, 0), (7, 0, 0), (40, 21, 6)])
def test_they_are_equal_if_each_half_of_the_games_was_played_with_one_side(counts: tuple[int, int, int]):
    half = np.array(counts) / 2
    result = rate([[[0, 0, 0], half], [half[::-1], [0, 0, 0]]], anchor=1)
    value, low, high = MatchResult(*counts).elo()
    assert (value, (high - low) / 2) == pytest.approx((result.elo[0], result.error[0]), abs=1e-6)


def test_expected_counts_give_back_every_parameter():
    elo = [0.0, 150, -300, 420]
    found = rate(counts_by(elo, games=10**6, side=60, draws=0.8, sample=False))
    assert found.elo == pytest.approx(elo, abs=0.1)
    assert found.side.value == pytest.approx(60, abs=0.1)
    assert found.draws.value == pytest.approx(0.8 / 2.8, abs=1e-4)
    assert found.side.low < found.side.value < found.side.high
    assert found.draws.low < found.draws.value < found.draws.high
    assert found.pairs.points == pytest.approx(found.pairs.expected, rel=1e-4)
    assert np.abs(found.pairs.z).max() < 0.1


def test_twenty_wins_in_a_row_are_a_finite_rating_with_a_wide_interval():
    found = rate(counts_of(2, (1, 0, WIN, 10), (0, 1, LOSS, 10)))
    assert 600 < found.elo[1] < 1300
    assert 0 < found.elo[1] - found.error[1] < 400
    assert found.elo[1] + found.error[1] > 1500


def test_only_draws_are_equal_players_and_many_draws():
    found = rate(counts_of(2, (1, 0, DRAW, 10), (0, 1, DRAW, 10)))
    assert found.elo[1] == pytest.approx(0, abs=1e-9)
    assert found.draws.value > 0.9
    assert found.draws.high < 1


def test_a_player_without_games_has_the_prior_and_changes_nothing():
    games = (1, 0, WIN, 30), (0, 1, WIN, 20), (1, 0, DRAW, 7)
    two, three = rate(counts_of(2, *games)), rate(counts_of(3, *games))
    assert three.elo[2] == 0
    assert three.error[2] == pytest.approx(1.96 * PRIOR_ELO)
    assert three.elo[:2] == pytest.approx(two.elo)
    assert three.error[:2] == pytest.approx(two.error)
    assert (three.pairs.z[2] == 0).all()


def test_players_apart_from_the_anchor_are_compared_but_not_placed():
    found = rate(counts_of(4, (0, 1, WIN, 10), (1, 0, WIN, 10), (2, 3, WIN, 40), (3, 2, LOSS, 40)))
    assert found.elo[2] > found.elo[3] + 500
    assert min(found.error[2:]) > PRIOR_ELO
    assert found.elo[1] == pytest.approx(0, abs=1)


def test_the_anchor_shifts_the_ratings_and_the_intervals_are_of_differences():
    counts = counts_by([0.0, 100, 200], games=200, side=20, draws=0.3, seed=2)
    by_first, by_last = rate(counts, 0), rate(counts, 2)
    assert by_last.elo[2] == by_last.error[2] == 0
    assert by_last.elo - by_last.elo[0] == pytest.approx(by_first.elo, abs=2)
    assert by_last.error[0] == pytest.approx(by_first.error[2], rel=0.02)  # the same difference


@pytest.mark.parametrize(("players", "anchor"), [(1, 0), (0, 0)])
def test_one_player_is_refused_in_one_sentence(players: int, anchor: int):
    with pytest.raises(UserError, match=f"expected at least two players to rate, got {players}"):
        rate(np.zeros((players, players, 3)), anchor)
    with pytest.raises(UserError, match="expected an anchor from 0 to 1, got 2"):
        rate(np.zeros((2, 2, 3)), 2)


def test_any_counts_have_ratings_at_the_top_of_the_posterior():
    rng = np.random.default_rng(3)
    for _ in range(40):
        players = int(rng.integers(2, 6))
        shape = players, players, 3
        counts = rng.integers(0, 50, shape) * (rng.random(shape) < 0.3) * 10 ** rng.integers(0, 3)
        counts[np.arange(players), np.arange(players)] = 0
        found = rate(counts)
        assert np.isfinite(found.elo).all()
        # the prior pulls a rating by as much as the games push it
        push = (found.pairs.points - found.pairs.expected).sum(1)
        assert push[1:] == pytest.approx(found.elo[1:] * ELO / PRIOR_ELO**2, abs=1e-6)
        assert found.pairs.z == pytest.approx(-found.pairs.z.T)
        assert (np.abs(found.elo[1:]) < 10 * PRIOR_ELO).all()


@pytest.mark.parametrize(
    ("tournaments", "spread", "players", "games", "side", "draws", "least"),
    [
        (300, 200, 5, 8, 40, 0.6, 0.92),
        pytest.param(1000, 150, 4, 3, 30, 0.5, 0.93, marks=pytest.mark.slow),
        pytest.param(1000, 150, 4, 10, 120, 2.0, 0.93, marks=pytest.mark.slow),
        pytest.param(1000, 300, 8, 5, 0, 0.1, 0.93, marks=pytest.mark.slow),
        pytest.param(1000, 300, 3, 60, -50, 1.0, 0.93, marks=pytest.mark.slow),
    ],
)
def test_intervals_hold_the_truth_in_93_to_97_of_100_cases(tournaments, spread, players, games, side, draws, least):
    found = covered(tournaments, spread=spread, players=players, games=games, side=side, draws=draws)
    assert 0.93 <= found[0] <= 0.97
    assert least <= found[1] <= 1.9 - least
    assert 0.92 <= found[2] <= 0.98


def test_a_pair_that_contradicts_the_others_is_a_misfit_and_chance_is_not():
    rng = np.random.default_rng(4)
    by_chance = (simulate(rng.normal(0, 200, 5), games=30, side=30, draws=0.4, rng=rng) for _ in range(200))
    assert np.mean([rate(counts).pairs.misfits.any() for counts in by_chance]) <= 0.08  # promised: 0.05
    # rock, paper, scissors: each of three players beats the next one
    pairs = [(0, 1), (1, 2), (2, 0)]
    found = rate(counts_of(3, *((*pair, WIN, 30) for pair in pairs), *((*pair[::-1], LOSS, 30) for pair in pairs)))
    assert found.elo == pytest.approx(np.zeros(3), abs=1e-6)
    assert found.pairs.misfits.sum() == 6
    assert found.pairs.z[0, 1] > 5 > -5 > found.pairs.z[1, 0]
    assert found.pairs.expected[0, 1] == pytest.approx(30, rel=1e-6)


def test_one_surprising_game_is_not_a_misfit():
    counts = counts_by([0.0, 400, 800], games=400, side=0, draws=0.01, sample=False)
    counts[0, 2] = counts[2, 0] = 0
    counts[2, 0, WIN], counts[0, 2, LOSS], counts[0, 2, WIN] = 10, 9, 1
    found = rate(counts)
    assert found.pairs.expected[0, 2] < 0.3
    assert 1 < found.pairs.z[0, 2] < 2.4
    assert not found.pairs.misfits.any()


def test_ratings_agree_with_choix_within_10_elo():
    choix = pytest.importorskip("choix")
    rng = np.random.default_rng(5)
    elo = rng.normal(0, 200, 6)
    counts = simulate(elo, games=100, side=0, draws=0, rng=rng)
    won = counts[..., WIN] + counts[..., LOSS].T
    data = [(i, j) for i, j in np.argwhere(won).tolist() for _ in range(int(won[i, j]))]
    theirs = ELO * np.asarray(choix.ilsr_pairwise(6, data))
    assert rate(counts).elo == pytest.approx(theirs - theirs[0], abs=10)


def games_of(counts: np.ndarray, times: int = 1) -> Games:
    """The games of counts, each of which is there `times` with the same opening."""
    games = [cell for cell in np.ndindex(counts.shape) for _ in range(int(counts[cell]))]
    rows = [(*cell, opening) for opening, cell in enumerate(games) for _ in range(times)]
    return Games(*np.array(rows).T)


def test_the_bootstrap_agrees_with_the_curvature_for_many_independent_games():
    counts = counts_by([0.0, 100, -150, 250], games=60, side=30, draws=0.5, seed=6)
    errors = bootstrap(games_of(counts), 4, samples=600, rng=np.random.default_rng(0))
    assert errors[0] == 0
    assert errors[1:] == pytest.approx(rate(counts).error[1:], rel=0.12)


def test_the_bootstrap_is_not_deceived_by_games_that_are_repeated():
    counts = counts_by([0.0, 100, -150], games=40, side=30, draws=0.5, seed=7)
    repeated = bootstrap(games_of(counts, times=4), 3, samples=400, rng=np.random.default_rng(0))
    assert (repeated[1:] > 1.6 * rate(4 * counts).error[1:]).all()


def test_the_bootstrap_of_no_games_is_no_width():
    nothing = Games(*np.zeros((4, 0), np.int64))
    assert bootstrap(nothing, 3, samples=10, rng=np.random.default_rng(0)).tolist() == [0, 0, 0]


def test_the_next_pair_is_of_near_players_with_few_games():
    counts = counts_by([0.0, 50, 60, 900], games=2000, side=0, draws=0.2, seed=8)
    counts[1] = counts[:, 1] = 0
    counts[0, 1], counts[1, 0] = [5, 1, 4], [4, 1, 5]
    pairs = next_pairs(counts, 0, 30)
    assert set(pairs[:10]) <= {(0, 1), (1, 2)}  # player 1 has few games; 900 Elo away, a game says little
    assert next_pairs(counts, 0, 30) == pairs
    assert next_pairs(counts, 0, 5) == pairs[:5]


def test_without_games_every_pair_of_players_meets():
    pairs = next_pairs(np.zeros((4, 4, 3)), 2, 6)
    assert sorted(pairs) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def play_field(elo: list[float], *, seed: int) -> NDArray[np.float64]:
    """The counts of a tournament of 100 games for each player, in rounds, in which the schedule follows the ratings."""
    rng, players = np.random.default_rng(seed), len(elo)
    counts = np.zeros((players, players, 3))
    for _ in range(50 * players // 25):
        for pair in next_pairs(counts, 2, 25):
            for first, second in (pair, pair[::-1]):
                wins = 1 / (1 + 10 ** ((elo[second] - elo[first]) / 400))
                counts[first, second, rng.choice(3, p=[0.95 * wins, 0.05, 0.95 * (1 - wins)])] += 1
    return counts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "elo",
    [
        [-900, -200, 0, 150],
        [-700, -300, 0, 100, 200, 300, 400, 500],
        [-900, -250, 0, -600, -100, 0, 80, 150, 220, 260, 300, 350],
    ],
    ids=len,
)
def test_pairs_near_in_strength_meet_and_a_weak_player_costs_no_more_games(elo: list[float], seed: int):
    counts = play_field(elo, seed=seed)
    games = counts.sum(-1) + counts.sum(-1).T
    near = [games[i, j] for i in range(len(elo)) for j in range(i) if abs(elo[i] - elo[j]) <= 150]
    assert min(near) >= 2
    assert np.quantile(near, 0.1) >= 6  # a player who is unlucky at first may be taken to be far from another
    assert games[0].sum() <= games.sum() / len(elo)  # 2 / n of the games are a player's, if all have as many
    found = rate(counts, 2)
    assert (abs(found.elo - np.array(elo)) < 2 * found.error)[1:].sum() >= len(elo) - 2
