"""Matches: fair openings, right sums, honest intervals."""

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.games.connect_four import ConnectFour
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.play.match import PlayedGame, play_match, random_opening, random_openings
from plyzero.play.player import Player, RandomPlayer
from plyzero.play.players import Bot, find_player
from plyzero.play.scores import MatchResult, wilson_interval
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.rules.notation import play_named
from plyzero.search.evaluators import Uniform
from plyzero.settings import SearchSettings
from tests.helpers.toys import Relay, Written

TIC_TAC_TOE = load_game("tic-tac-toe")


class Spy(RandomPlayer):
    """A random player that remembers what it was asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.default_rng(seed))
        self.seen = []

    def choose_all(self, positions):
        self.seen += positions
        return super().choose_all(positions)


def played(first: Player, second: Player, start: Game, *, seed: int = 0, **options) -> MatchResult:
    """Return the result of a match, which has no random openings unless `options` say so."""
    return play_match(first, second, start, rng=np.random.default_rng(seed), **{"opening_plies": 0} | options)


def counts(result: MatchResult) -> tuple[int, int, int]:
    return result.wins, result.draws, result.losses


def test_an_interval_ends_exactly_at_0_or_1_where_every_game_was_lost_or_won():
    for games in range(1, 60):
        assert (wilson_interval(0.0, games)[0], wilson_interval(1.0, games)[1]) == (0, 1)


@pytest.mark.parametrize(
    ("counts", "score", "interval"),
    [
        # z = 1.96: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)
        ((80, 0, 20), 0.8, (0.7112, 0.8666)),
        ((10, 0, 0), 1.0, (0.7225, 1.0)),
        ((0, 10, 0), 0.5, (0.2366, 0.7634)),  # (0.5 + 0.19208 ± 1.96 √(0.025 + 0.009604)) / 1.38416
        ((1, 0, 0), 1.0, (0.2065, 1.0)),  # 1 / (1 + z²) = 1 / 4.8416
    ],
)
def test_the_interval_is_wilsons(counts: tuple[int, int, int], score: float, interval: tuple[float, float]):
    result = MatchResult(*counts, distinct=1)
    assert result.score == score
    assert result.interval() == pytest.approx(interval, abs=1e-4)
    assert result.short == f"{score:.0%} ({100 * interval[0]:.0f}-{100 * interval[1]:.0f})"


@pytest.mark.parametrize(("wins", "losses", "elo"), [(50, 50, 0), (75, 25, 190.85), (25, 75, -190.85), (100, 10, 400)])
def test_an_elo_difference_says_how_many_wins_there_are_for_each_loss(wins: int, losses: int, elo: float):
    for draws in (0, 50):
        value, low, high = MatchResult(100 * wins, 100 * draws, 100 * losses, distinct=1).elo()
        assert value == pytest.approx(elo, abs=1)
        assert low < value < high < low + 40


def test_the_report_gives_every_number_with_its_interval():
    assert MatchResult(80, 0, 20, distinct=98).report().splitlines() == [
        "A won 80, drew 0, lost 20; 98 different games among the 100",
        "score 80.0 %, 95 % interval 71.1 to 86.7",
        "Elo difference +241, 95 % interval +156 to +326",
    ]
    elo, low, high = MatchResult(20, 0, 0, distinct=20).elo()
    assert 600 < elo < 1200
    assert 0 < low < 300
    assert 1500 < high < 2500  # finite, and wide


def test_an_elo_difference_that_says_little_is_not_reported():
    assert MatchResult(6, 14, 0, distinct=20).report().splitlines() == [
        "A won 6, drew 14, lost 0; 20 different games among the 20",
        "score 65.0 %, 95 % interval 43.3 to 81.9",
    ]
    assert "Elo" not in MatchResult(20, 0, 0).report()
    assert "Elo difference +323, 95 % interval -22 to +668" in MatchResult(7, 12, 1).report()


def test_openings_differ_where_they_can():
    rng = np.random.default_rng(0)
    lines = random_openings(ConnectFour(), 2, rng, count=40)
    assert len({tuple(line) for line in lines}) == 40
    assert len(random_openings(TicTacToe(), 1, rng, count=30)) == 30
    first, second = Spy(1), Spy(2)
    play_match(first, second, ConnectFour(), games=2, rng=rng)
    assert min(position.record["plies"] for position in first.seen + second.seen) == 4


def test_somebody_is_told_how_far_the_match_is():
    told = []
    played(Spy(1), Spy(2), TicTacToe(), games=4, on_progress=lambda *done: told.append(done))
    assert told[-1][0] == 4
    assert [finished for finished, _ in told] == sorted(finished for finished, _ in told)


def test_openings_come_in_pairs_with_colours_swapped():
    first, second = Spy(1), Spy(2)
    assert played(first, second, ConnectFour(), games=10, opening_plies=2).games == 10
    opened = [[p.key() for p in spy.seen if p.record["plies"] == 2] for spy in (first, second)]
    assert len(opened[0]) == 5
    assert opened[0] == opened[1]


@pytest.mark.parametrize(
    ("games", "opening_plies", "sentence"),
    [
        (0, 0, "expected at least one game, got 0"),
        (-3, 0, "expected at least one game, got -3"),
        (2, 9, "expected opening_plies from 0 to 8, got 9: a game has at most 9 plies"),
        (2, -1, "expected opening_plies from 0 to 8, got -1"),
    ],
)
def test_a_match_that_cannot_be_played_is_refused(games: int, opening_plies: int, sentence: str):
    with pytest.raises(UserError, match=sentence):
        played(Spy(3), Spy(3), TicTacToe(), games=games, opening_plies=opening_plies)


def test_games_that_are_the_same_are_counted_once_and_others_apart():
    player = Bot("p", TIC_TAC_TOE, Uniform(9), simulations=50, settings=SearchSettings())
    result = played(player, player, TicTacToe(), games=8)
    assert (result.games, result.distinct) == (8, 1)
    assert played(Spy(1), Spy(2), ConnectFour(), games=20).distinct == 20


@pytest.mark.parametrize("name", ["mcts", "mcts:", "mcts:0", "mcts:x"])
def test_a_player_without_a_number_of_rollouts_is_one_sentence(name: str):
    expected = f"expected mcts:N with 1 to 10000000 rollouts per move, such as mcts:1000, got '{name}'"
    with pytest.raises(UserError, match=expected):
        find_player(name, TIC_TAC_TOE, np.random.default_rng())


@pytest.mark.parametrize("opening_plies", [None, 0])
def test_a_game_that_is_over_at_the_start_is_one_sentence(opening_plies):
    over = type("Over", (TicTacToe,), {"outcome": lambda s: 0})()
    with pytest.raises(UserError, match=r"Over cannot be played: the game is over before any player has moved; "):
        played(Spy(1), Spy(2), over, games=2, opening_plies=opening_plies)


def test_whose_turn_it_is_is_asked_of_the_game():
    start = Written("0011", "01" * 8)  # both players move twice in a row
    first, second = Spy(1), Spy(2)
    played(first, second, start, games=1)
    assert [len(position.moves) for position in first.seen] == [0, 1]
    assert [len(position.moves) for position in second.seen] == [2, 3]


def test_the_result_is_the_first_players_in_both_colours():
    # Who has the winner's side wins, whatever is played; an odd game is the first player's with side 0.
    for winner, games, expected in (("0", 4, (2, 0, 2)), ("-", 4, (0, 4, 0)), ("1", 3, (1, 0, 2))):
        assert counts(played(Spy(1), Spy(2), Written("01", winner * 4), games=games)) == expected


def test_every_finished_game_is_handed_over_once_and_leads_to_its_result():
    games = list[PlayedGame]()
    game = load_game("connect-four")
    result = played(Spy(0), Spy(1), game.start, games=10, opening_plies=3, on_game=games.append)
    assert len(games) == 10
    points = [0, 0, 0]
    for each in games:
        points[1 - each.outcome.value(each.swapped)] += 1
        found = each.as_json(game, ("random", "spy"))
        assert play_named(game.start, found["moves"])[0][-1].outcome() == each.outcome
        assert (found["first"], found["second"]) == (("spy", "random") if each.swapped else ("random", "spy"))
        assert (found["end"], found["opening_plies"], len(found["moves"])) == ("rule", 3, len(each.moves))
        assert found["winner"] == {None: "draw", 0: "first", 1: "second"}[each.outcome.winner]
    assert points == [*counts(result)]


def test_a_game_longer_than_it_may_be_is_a_draw():
    start = Relay(6)
    start.max_plies = 4
    start.outcome = lambda: None
    games = list[PlayedGame]()
    assert counts(played(Spy(1), Spy(2), start, games=4, on_game=games.append)) == (0, 4, 0)
    assert [each.outcome for each in games] == [None] * 4


def test_an_opening_never_ends_a_game_and_is_as_long_as_asked_where_it_can_be():
    rng = np.random.default_rng(0)
    assert random_opening(Relay(3), 5, rng) == [0, 0]
    for _ in range(50):
        position = TicTacToe()
        for action in random_opening(TicTacToe(), 8, rng):
            position = position.play(action)
        assert position.outcome() is None
    assert len(random_opening(ConnectFour(), 6, rng)) == 6


def test_a_printed_result_is_a_table_in_a_notebook_too():
    result = MatchResult(80, 0, 20, distinct=98, leads=(1.5,))
    assert str(result).splitlines() == [
        "games  won  drawn  lost  score              points  Elo difference",
        "100    80   0      20    80.0 % (71 to 87)  +1.50   +241 (+156 to +326)",
    ]
    html = result._repr_html_()
    assert html.startswith("<table><tr><th>games</th>")
    assert "<td>+241 (+156 to +326)</td>" in html


def test_a_match_that_its_openings_have_decided_says_so():
    players = [find_player("alphabeta:9", TIC_TAC_TOE, np.random.default_rng(seed)) for seed in (0, 1)]
    openings = [[0, 1], [0, 3], [2, 1], [8, 5], [6, 7]]  # an edge after a corner loses
    result = played(*players, TicTacToe(), games=10, openings=openings)
    assert (counts(result), result.pairs, result.repeated) == ((5, 0, 5), 5, 5)
    sentence = "With sides swapped, each of the 5 openings ended in the same way: they have decided these games, which"
    for text in (str(result), result.report(), result._repr_html_()):
        assert sentence in text
    assert "each of the 10 openings" in str(result + result)
    drawn = played(*players, TicTacToe(), games=8, openings=[[4, each] for each in (0, 2, 6, 8)])
    assert "each of the 4 openings ended in the same way" in str(drawn)
    few = played(*players, TicTacToe(), games=6, openings=openings)
    assert (few.pairs, few.repeated, "openings" in str(few)) == (3, 3, False)
    won = played(players[0], RandomPlayer(np.random.default_rng(0)), TicTacToe(), games=20, opening_plies=1)
    assert won.repeated < won.pairs == 10
    assert "openings" not in str(won)
