"""Matches: fair openings, right sums, honest intervals."""

import numpy as np
import pytest

from games.connect_four import ConnectFour
from games.tic_tac_toe import TicTacToe
from plyzero.errors import UserError
from plyzero.evaluate import Uniform
from plyzero.match import MatchResult, play_match
from plyzero.players import RandomPlayer, SearchPlayer, fixed_player
from plyzero.settings import SearchSettings
from tests.toys import Exact


class Spy(RandomPlayer):
    """A random player that remembers what it was asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.default_rng(seed))
        self.seen = []

    def choose(self, positions):
        self.seen += positions
        return super().choose(positions)


def test_the_score_counts_a_draw_as_half_a_point():
    assert MatchResult(3, 2, 5, distinct=10).score == 0.4


def test_the_interval_is_wilsons():
    # n = 100, p = 0.8, z = 1.96: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n) = 0.7112 .. 0.8666
    assert MatchResult(80, 0, 20, distinct=100).interval() == pytest.approx((0.7112, 0.8666), abs=1e-4)
    assert MatchResult(10, 0, 0, distinct=10).interval()[1] == 1
    assert str(MatchResult(80, 0, 20, distinct=100)) == "80% (71-87)"


def test_openings_come_in_pairs_with_colours_swapped():
    first, second = Spy(1), Spy(2)
    result = play_match(first, second, ConnectFour(), games=10, rng=np.random.default_rng(0), opening_plies=2)
    assert result.games == 10
    opened_by_first = [p.key() for p in first.seen if p.record["plies"] == 2]
    opened_by_second = [p.key() for p in second.seen if p.record["plies"] == 2]
    assert len(opened_by_first) == 5
    assert opened_by_first == opened_by_second


def test_a_player_that_sees_everything_never_loses_tic_tac_toe():
    perfect = SearchPlayer("perfect", Exact(9), simulations=50, settings=SearchSettings(kind="puct"))
    result = play_match(perfect, Spy(3), TicTacToe(), games=30, rng=np.random.default_rng(1), opening_plies=0)
    assert result.losses == 0
    assert result.wins > 20
    swapped = play_match(Spy(3), perfect, TicTacToe(), games=30, rng=np.random.default_rng(1), opening_plies=0)
    assert swapped.wins == 0


def test_games_that_are_the_same_are_counted_once():
    player = SearchPlayer("p", Uniform(9), simulations=50, settings=SearchSettings())
    result = play_match(player, player, TicTacToe(), games=8, rng=np.random.default_rng(0), opening_plies=0)
    assert (result.games, result.distinct) == (8, 1)


@pytest.mark.parametrize("name", ["mcts", "mcts:", "mcts:0", "mcts:x", "perfect"])
def test_an_unknown_player_is_one_sentence(name: str):
    with pytest.raises(UserError, match=f"expected a player such as random or mcts:1000, got '{name}'"):
        fixed_player(name, TicTacToe(), np.random.default_rng())


def test_fixed_players_choose_legal_moves():
    start = ConnectFour()
    for name in ("random", "mcts:20"):
        player = fixed_player(name, start, np.random.default_rng(0))
        assert player.name == name
        assert set(player.choose([start, start.play(3)])) <= set(range(7))
