"""Targets, window and ledger: what is learned of a record, worked out by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.games.connect_four import ConnectFour
from plyzero.games.othello import Othello
from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.rules.random_game import PlayedGame, random_game
from plyzero.run.records import GAME, POSITION, Games
from plyzero.search.tree import GUMBEL, PROVEN_LOSS, PROVEN_WIN, PUCT, UNPROVEN
from plyzero.trainer.ledger import Ledger
from plyzero.trainer.targets import value_targets
from plyzero.trainer.window import Batch, Window, _Chunk, window_size
from tests.helpers.recorded import recorded
from tests.helpers.runs import moves_of
from tests.helpers.samples import samples_of

Ply = tuple[int, float, float] | tuple[int, float, float, int]


def one_game(winner: int, plies: list[Ply]) -> tuple[np.ndarray, np.ndarray]:
    """A game from (player to move, root value, root draw) per ply, and what is proven, if anything is."""
    games = np.zeros(1, GAME)
    games["positions"], games["winner"] = len(plies), winner
    positions = np.zeros(len(plies), POSITION)
    positions["search"] = positions["full"] = positions["model_fence"] = 1
    for record, ply in zip(positions, plies, strict=True):
        record["to_play"], record["root_value"], record["root_draw"], record["proven"] = (*ply, UNPROVEN)[:4]
    return games, positions


WON, LOST, DRAWN = (1, 0), (-1, 0), (0, 1)
SURE = [(0, 0.9, 0), (1, 0.9, 0), (1, 0.9, 0)]
LEVEL = [(0, 0, 0), (1, 0, 0), (0, 0, 0)]
PROVEN_AT_1 = [(0, 0.0, 0), (0, 1.0, 0, PROVEN_WIN), (1, 0.3, 0)]
PROVEN_AT_2 = [(1, 0, 0), (1, 0, 0), (1, 1, 0, PROVEN_WIN)]
# G_2 = 0.6; G_1 = 0.5 * -0.4 + 0.5 * 0.6 = 0.1 (the same player moves twice); G_0 = 0.5 * 0.2 - 0.5 * 0.1 = 0.05
# D_2 = 0.0; D_1 = 0.15; D_0 = 0.5 * 0.1 + 0.5 * 0.15 = 0.125
UNSURE, AHEAD = [(0, 0.2, 0.1), (1, -0.4, 0.3), (1, 0.6, 0.0)], np.array([(0.05, 0.125), (0.1, 0.15), (0.6, 0)])
TARGETS = {
    "the outcome for the player to move": (1, SURE, (0, 0.9), None, [LOST, WON, WON]),
    "a draw": (DRAW, SURE, (0, 0.9), None, [DRAWN] * 3),
    "what the search saw ahead": (0, UNSURE, (1, 0.5), None, AHEAD),
    "a share of it": (0, UNSURE, (0.25, 0.5), None, 0.25 * AHEAD + 0.75 * np.array([WON, LOST, LOST])),
    # Before the proof: half the outcome, a loss; half the proven win ahead.
    "a proven value, whatever the game made of it": (1, PROVEN_AT_1, (0.5, 1), None, [(0, 0), WON, (0.65, 0)]),
    "what the search saw of a game given up": (ONGOING, [(0, 0.5, 0.2)], (0, 0.9), None, [(0.5, 0.2)]),
    # Player 0 won by 1; its luck from each move on is 0.75, 0.5, 1.
    "the outcome without luck": (0, LEVEL, (0, 0.9), [0.25, -0.5, 1], [(0.25, 0), (-0.5, 0), (0, 0)]),
    # G_1 = -0.4; G_0 = 0.5 * 0.2 + 0.5 * (0.4 - 0.6) = 0; the luck after the last move has nothing behind it.
    "the value ahead without luck": (ONGOING, UNSURE[:2], (1, 0.5), [0.6, 0.7], [(0, 0.2), (-0.4, 0.3)]),
    # Player 1 drew though player 0 was lucky: worth 3.25, which is cut to 1, and 0.25.
    "a probability, whatever the luck": (DRAW, PROVEN_AT_2, (0, 0.9), [3, 0.25, 0], [WON, (0.25, 0.75), WON]),
}
"""The winner and the plies, the weight of the search and lambda, the luck; the value and the draw of every target."""


@pytest.mark.parametrize(("winner", "plies", "weights", "luck", "expected"), TARGETS.values(), ids=TARGETS)
def test_the_value_target_is(winner: int, plies: list[Ply], weights: tuple[float, float], luck: Any, expected: Any):
    wdl = value_targets(*one_game(winner, plies), *weights, luck if luck is None else np.array(luck, np.float32))
    assert wdl.sum(axis=1) == pytest.approx(1)
    assert np.stack([wdl[:, 0] - wdl[:, 2], wdl[:, 1]], axis=1) == pytest.approx(np.array(expected), abs=1e-6)


def test_a_search_without_a_model_teaches_only_proofs_and_results():
    games, positions = one_game(1, [(0, 0.0, 1.0), (1, -1.0, 0, PROVEN_LOSS), (0, 0.0, 1.0), (1, 0.0, 1.0)])
    positions["model_fence"] = 0
    # Half the outcome, half the proof ahead; the proof; the outcome, although the search saw a draw.
    expected = [[0.5, 0, 0.5], [0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert value_targets(games, positions, 0.5, 0.9).tolist() == expected
    positions["model_fence"][2:] = 1  # a model came in mid-game: from there on its values count
    assert value_targets(games, positions, 0.5, 0.0)[2:, 1].tolist() == [0.5, 0.5]
    games["winner"] = DRAW
    positions["model_fence"] = 0
    assert value_targets(games, positions, 0.5, 0.9)[3].tolist() == [0, 1, 0]


def test_random_opening_moves_carry_no_value():
    games, positions = one_game(0, [(0, 0.0, 0), (1, -0.5, 0)])
    positions["search"][0] = 0
    assert value_targets(games, positions, 0.5, 0.9)[0].tolist() == [0, 0, 0]


def searched_game(start: Game, plies: int, seed: int = 0) -> Games:
    """The first plies of a random game with made-up search results, every second position with a full search."""
    rng = np.random.default_rng(seed)
    played = random_game(start, rng)
    games = recorded([PlayedGame(played.moves[:plies], played.positions[: plies + 1])])
    positions, moves, number = games.positions, games.moves, np.arange(plies)
    moves["visits"], moves["q"] = rng.integers(1, 20, len(moves)), rng.uniform(-0.9, 0.9, len(moves))
    moves["prior"] = 1 / np.repeat(positions["num_legal"], positions["num_legal"])
    positions["search"], positions["full"] = np.where(number % 4, GUMBEL, PUCT), number % 2 == 0
    positions["root_value"], games.games["winner"] = rng.uniform(-1, 1, plies), 0
    return games


def test_unproven_samples_are_full_searches_and_their_policies_sum_to_one():
    games = searched_game(ConnectFour(), 7)
    samples = samples_of(games)
    assert len(samples.wdl) == games.num_full == 4
    ends = np.cumsum(samples.num_legal)
    for start, end in zip(ends - samples.num_legal, ends, strict=True):
        assert samples.probabilities[start:end].sum() == pytest.approx(1)


def test_a_proof_by_a_fast_search_is_learned_exactly():
    games = searched_game(ConnectFour(), 4)
    games.positions["proven"][1], games.positions["root_value"][1] = PROVEN_WIN, 1
    row = slice(int(games.positions["num_legal"][0]), int(games.positions["num_legal"][:2].sum()))
    games.moves["q"][row][[2, 4]] = 1
    samples = samples_of(games)
    assert len(samples.wdl) == 3
    assert samples.wdl[1].tolist() == [1, 0, 0]
    assert samples.probabilities[7:14].tolist() == [0, 0, 0.5, 0, 0.5, 0, 0]


def test_games_without_any_full_search_are_no_samples():
    games = searched_game(ConnectFour(), 2)
    games.positions["full"] = 0
    assert len(samples_of(games).wdl) == 0


def test_a_visit_count_target_is_the_share_of_the_visits():
    games = searched_game(ConnectFour(), 1)
    games.positions["search"] = PUCT
    assert samples_of(games).probabilities == pytest.approx(games.moves["visits"] / games.moves["visits"].sum())


def test_where_all_moves_lose_the_search_still_teaches_a_policy():
    games = searched_game(ConnectFour(), 1)
    games.positions["proven"], games.moves["q"] = PROVEN_LOSS, -1
    assert samples_of(games).probabilities == pytest.approx(np.full(7, 1 / 7))


@given(st.integers(0, 2**32 - 1))
def test_a_sampled_position_is_an_image_of_a_recorded_one_with_its_policy(seed: int):
    start = Othello(size=6)
    games, window = searched_game(start, 12, seed % 5), Window(start)
    window.add("a", samples_of(games), size=1000)
    batch = window.sample(16, np.random.default_rng(seed))
    images = {}
    for i in range(0, 12, 2):
        for planes, actions in [(np.arange(72), np.arange(37)), *start.symmetries()]:
            image = games.observations[i].ravel()[planes].astype(np.float32)
            images.setdefault(image.tobytes(), []).append(set(actions[moves_of(games, i)["action"]].tolist()))
    for observation, legal, policy in zip(batch.observations, batch.legal, batch.policy, strict=True):
        assert set(np.flatnonzero(legal).tolist()) in images[observation.tobytes()]
        assert policy.sum() == pytest.approx(1, abs=1e-5)
        assert not policy[~legal].any()


def test_the_window_lets_the_oldest_segments_go_and_keeps_enough():
    start = ConnectFour()
    window = Window(start)
    for i in range(10):
        window.add(str(i), samples_of(searched_game(start, 8, i)), size=10)
    assert window.names == ["7", "8", "9"]
    assert len(window) == 12


def test_a_batch_is_the_same_in_few_chunks_and_in_many_and_is_taken_from_those_of_its_rows(
    monkeypatch: pytest.MonkeyPatch,
):
    start, batches, take = ConnectFour(), list[list[Batch]](), _Chunk.take
    taken: list[int] = []
    monkeypatch.setattr(_Chunk, "take", lambda chunk, rows: taken.append(len(rows)) or take(chunk, rows))
    for positions in (3, 1_000_000):
        monkeypatch.setattr("plyzero.trainer.window.CHUNK_POSITIONS", positions)
        window = Window(start)
        for i in range(40):
            window.add(str(i), samples_of(searched_game(start, 8, i)), size=100)
        assert len(window) == 100
        taken.clear()
        rng = np.random.default_rng(1)
        sampled = [window.sample(5, rng) for _ in range(10)]
        assert all(taken)
        assert sum(taken) == 50
        batches.append([*sampled, window.read(0, 9), window.read(95, 200), window.read(7, 7)])
    for few, many in zip(*batches, strict=True):
        for one, other in zip(few, many, strict=True):
            assert np.array_equal(one, other, equal_nan=True)
    assert [len(each.wdl) for each in batches[0][-3:]] == [9, 5, 0]


def test_the_window_is_everything_at_first_and_then_grows_as_a_power():
    sizes = [window_size(n, smallest=1000, growth=0.4, exponent=0.75) for n in (0, 1000, 1001, 16_000)]
    assert sizes == [1000, 1000, 1000, int(1000 * (1 + 0.4 * (16**0.75 - 1) / 0.75))]  # the third is 1000.4


def test_the_ledger_allows_the_ratio_and_no_more():
    ledger = Ledger()
    ledger.earn_bootstrap(60, passes=4, limit=100)
    ledger.earn_bootstrap(90, passes=4, limit=100)
    ledger.earn(50, ratio=8)
    assert (ledger.bootstrap, ledger.generated, ledger.credit) == (150, 50, 800)
    ledger.spend(800)
    assert ledger.credit == 0
    assert ledger.replay_ratio() == 8
    ledger.earn(10, ratio=2)  # another ratio counts from now on
    assert ledger.credit == 20


def test_credit_beyond_the_cap_is_given_up_and_counted():
    ledger = Ledger()
    ledger.earn(1000, ratio=8)
    for _ in range(2):
        ledger.cap(3000)
    assert (ledger.skipped, ledger.credit) == (5000, 3000)
