"""Targets, window and ledger: what is learned of a record, worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.connect_four import ConnectFour
from games.othello import Othello
from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.rules.random_game import PlayedGame, random_game
from plyzero.run.records import GAME, POSITION, Games
from plyzero.search.tree import GUMBEL, PROVEN_LOSS, PROVEN_WIN, PUCT, UNPROVEN
from tests.helpers.recorded import recorded
from tests.helpers.runs import moves_of
from tests.helpers.samples import samples_of
from trainer.ledger import Ledger
from trainer.targets import value_targets
from trainer.window import Window, window_size


def one_game(winner: int, plies: list[tuple[int, float, float, int]]) -> tuple[np.ndarray, np.ndarray]:
    """A game from (player to move, root value, root draw, proven) per ply."""
    games = np.zeros(1, GAME)
    games["positions"], games["winner"] = len(plies), winner
    positions = np.zeros(len(plies), POSITION)
    positions["search"] = positions["full"] = positions["model_fence"] = 1
    for field, values in zip(("to_play", "root_value", "root_draw", "proven"), zip(*plies, strict=True), strict=True):
        positions[field] = values
    return games, positions


def test_the_value_target_is_the_outcome_for_the_player_to_move():
    games, positions = one_game(1, [(0, 0.9, 0, UNPROVEN), (1, 0.9, 0, UNPROVEN), (1, 0.9, 0, UNPROVEN)])
    assert value_targets(games, positions, 0.0, 0.9).tolist() == [[0, 0, 1], [1, 0, 0], [1, 0, 0]]
    games["winner"] = DRAW
    assert value_targets(games, positions, 0.0, 0.9).tolist() == [[0, 1, 0]] * 3


def test_the_search_part_looks_ahead_by_lambda():
    games, positions = one_game(0, [(0, 0.2, 0.1, UNPROVEN), (1, -0.4, 0.3, UNPROVEN), (1, 0.6, 0.0, UNPROVEN)])
    # G_2 = 0.6; G_1 = 0.5 * -0.4 + 0.5 * 0.6 = 0.1 (the same player moves twice); G_0 = 0.5 * 0.2 - 0.5 * 0.1 = 0.05
    # D_2 = 0.0; D_1 = 0.15; D_0 = 0.5 * 0.1 + 0.5 * 0.15 = 0.125
    wdl = value_targets(games, positions, 1.0, 0.5)
    assert wdl[:, 0] - wdl[:, 2] == pytest.approx([0.05, 0.1, 0.6], abs=1e-6)
    assert wdl[:, 1] == pytest.approx([0.125, 0.15, 0.0], abs=1e-6)
    assert wdl.sum(axis=1) == pytest.approx(1, abs=1e-6)
    mixed = value_targets(games, positions, 0.25, 0.5)
    assert mixed[0] == pytest.approx(0.25 * wdl[0] + 0.75 * np.array([1, 0, 0]), abs=1e-6)


def test_a_proven_value_is_the_target_whatever_the_game_made_of_it():
    games, positions = one_game(1, [(0, 0.0, 0, UNPROVEN), (0, 1.0, 0, PROVEN_WIN), (1, 0.3, 0, UNPROVEN)])
    wdl = value_targets(games, positions, 0.5, 1.0)
    assert wdl[1].tolist() == [1, 0, 0]
    assert wdl[0].tolist() == [0.5, 0, 0.5]  # half the outcome, a loss; half the proven win ahead


def test_a_search_without_a_model_teaches_only_proofs_and_results():
    line = [(0, 0.0, 1.0, UNPROVEN), (1, -1.0, 0, PROVEN_LOSS), (0, 0.0, 1.0, UNPROVEN), (1, 0.0, 1.0, UNPROVEN)]
    games, positions = one_game(1, line)
    positions["model_fence"] = 0
    wdl = value_targets(games, positions, 0.5, 0.9)
    assert wdl[3].tolist() == [1, 0, 0]  # the outcome, although the search saw a draw
    assert wdl[2].tolist() == [0, 0, 1]
    assert wdl[1].tolist() == [0, 0, 1]  # proven
    assert wdl[0].tolist() == [0.5, 0, 0.5]  # half the outcome, half the proof ahead
    positions["model_fence"][2:] = 1  # a model came in mid-game: from there on its values count
    assert value_targets(games, positions, 0.5, 0.0)[2:, 1].tolist() == [0.5, 0.5]
    games["winner"] = DRAW
    positions["model_fence"] = 0
    assert value_targets(games, positions, 0.5, 0.9)[3].tolist() == [0, 1, 0]


def test_a_game_given_up_teaches_only_what_its_searches_saw():
    games, positions = one_game(ONGOING, [(0, 0.5, 0.2, UNPROVEN)])
    assert value_targets(games, positions, 0.0, 0.9)[0] == pytest.approx([0.65, 0.2, 0.15])


def test_the_luck_of_later_rolls_is_taken_out_of_the_outcome():
    games, positions = one_game(0, [(0, 0, 0, UNPROVEN), (1, 0, 0, UNPROVEN), (0, 0, 0, UNPROVEN)])
    luck = np.array([0.25, -0.5, 1.0], np.float32)  # for player 0
    # Player 0 won by 1; the luck from each move on is 0.75, 0.5, 1.
    wdl = value_targets(games, positions, 0.0, 0.9, luck)
    assert wdl[:, 0] - wdl[:, 2] == pytest.approx([0.25, -0.5, 0.0])
    assert wdl[:, 1].tolist() == [0, 0, 0]
    assert wdl.sum(axis=1) == pytest.approx(1)


def test_the_luck_of_the_next_roll_is_taken_out_of_the_value_ahead():
    games, positions = one_game(ONGOING, [(0, 0.2, 0.1, UNPROVEN), (1, -0.4, 0.3, UNPROVEN)])
    # G_1 = -0.4; G_0 = 0.5 * 0.2 + 0.5 * (0.4 - 0.6) = 0; the luck after the last move has nothing behind it
    wdl = value_targets(games, positions, 1.0, 0.5, np.array([0.6, 0.7], np.float32))
    assert wdl[:, 0] - wdl[:, 2] == pytest.approx([0.0, -0.4], abs=1e-6)
    assert wdl[:, 1] == pytest.approx([0.2, 0.3], abs=1e-6)


def test_a_target_without_luck_stays_a_probability():
    games, positions = one_game(DRAW, [(1, 0, 0, UNPROVEN), (1, 0, 0, UNPROVEN), (1, 1, 0, PROVEN_WIN)])
    luck = np.array([3.0, 0.25, 0], np.float32)
    # Player 1 drew though player 0 was lucky: worth 3.25, which is cut to 1, and 0.25.
    wdl = value_targets(games, positions, 0.0, 0.9, luck)
    assert wdl == pytest.approx(np.array([[1, 0, 0], [0.25, 0.75, 0], [1, 0, 0]]))


def test_random_opening_moves_carry_no_value():
    games, positions = one_game(0, [(0, 0.0, 0, UNPROVEN), (1, -0.5, 0, UNPROVEN)])
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
