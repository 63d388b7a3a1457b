"""The statistics, warnings and advice of check."""

import functools
import re
from importlib.metadata import entry_points

import numpy as np
import pytest

from examples.breakthrough import Breakthrough
from examples.dots_and_boxes import DotsAndBoxes
from plyzero.check.sampling import Extent, Sample
from plyzero.check.survey import advice, is_below_half, planes_of_actions, survey
from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.check.violations import find_violation
from plyzero.games.backgammon import Backgammon
from plyzero.games.connect_four import ConnectFour
from plyzero.games.gomoku import Gomoku
from plyzero.games.hex import Hex
from plyzero.games.othello import Othello
from plyzero.rules.board import grid
from plyzero.rules.catalog import ENTRY_POINT_GROUP, load_game
from plyzero.rules.game import Game, Outcome, observation_text
from plyzero.rules.random_game import random_game
from plyzero.rules.symmetry import Symmetry
from tests.helpers import toys, zoo
from tests.helpers.dice import PlainRace, Race
from tests.helpers.toys import variant, with_winner


def test_the_figures_of_a_game_whose_every_game_is_known():
    found = survey(toys.Chain("0010"), games=5)
    assert (found.games, found.branching, found.plies) == (5, (1.0, 1), (4, 4.0, 4, 4))
    assert found.results == (0.0, 0.0, 1.0)  # who makes the last move loses: player 0
    assert found.symmetries == (0, 0)
    assert found.microseconds.keys() == {"play", "outcome", "legal_actions", "observe"}
    assert all(cost > 0 for cost in found.microseconds.values())


@pytest.mark.parametrize(
    ("pieces", "alike"),
    [
        (("", "0:♞", "1:♘"), ""),
        (("", "0", "1"), ""),
        (("", "0:1", "1:1"), "1"),
        (("", "0:o", "1"), "o"),
        (("", "0:.", "1"), "."),
        (("x", "0", "1"), "x"),
    ],
)
def test_pieces_that_look_alike_in_text_are_a_warning(pieces, alike):
    figures = variant(TicTacToe, render=lambda self: grid(np.reshape(self.board, (3, 3)), pieces=pieces))
    found = [each for each in survey(figures(), games=5).warnings if "the printed board shows" in each]
    expected = [repr(alike)] if alike else []
    assert [each.split()[4] for each in found] == expected
    written = variant(figures, __str__=lambda self: "in my own words")
    assert "in text, " not in suspected(written, games=5)


def test_a_game_without_any_move_has_figures_too():
    found = survey(variant(TicTacToe, outcome=lambda self: Outcome(0))(), games=3)
    assert (found.branching, found.plies, found.results) == ((0.0, 0), (0, 0.0, 0, 9), (1.0, 0.0, 0.0))


def test_the_figures_are_those_of_the_random_games():
    found = survey(TicTacToe(), games=40)
    games = [random_game(TicTacToe(), np.random.default_rng([0, number])) for number in range(40)]
    winners = [game.positions[-1].outcome().winner for game in games]
    lengths = [len(game.moves) for game in games]
    assert found.results == tuple(winners.count(winner) / 40 for winner in (0, None, 1))
    assert (found.branching[1], *found.plies[:2]) == (9, min(lengths), np.mean(lengths))


def test_symmetries_that_change_the_start_are_reported_as_untried():
    found = survey(Othello(size=6), games=2)
    assert found.symmetries == (7, 3)
    assert "4 of 7 symmetries change the initial position" in " ".join(found.advice)


UnnamedRace = variant(Race, roll_names=())
UnnamedPlainRace = variant(PlainRace, roll_name=Game.roll_name)
Numbered = variant(TicTacToe, action_name=Game.action_name)
Floats = variant(TicTacToe, observation_dtype=np.float32)


class DenseGomoku(Gomoku):
    def __init__(self, size: int = 15) -> None:
        super().__init__(size=size)
        self.policy_planes = 0


def advised(start, symmetries: tuple[int, int] = (1, 1)) -> str:
    return " ".join(advice(start, [start], symmetries))


@pytest.mark.parametrize(
    ("words", "due", "not_due"),
    [
        ("define render", [toys.Relay(), zoo.Nim()], [TicTacToe()]),  # the text of Nim is a sentence
        ("define roll_name", [UnnamedRace(), UnnamedPlainRace()], [TicTacToe(), Race(), PlainRace()]),
        ("such as 0 do not begin with the name of a cell", [Numbered()], []),
        ("name of a cell", [Numbered()], [TicTacToe(), ConnectFour()]),
        ("observation_dtype = bool", [Floats()], [TicTacToe(), zoo.Nim()]),
        ("declare policy_planes = 1,", [DenseGomoku()], []),
        ("policy_planes", [DenseGomoku()], [DenseGomoku(size=9), Gomoku()]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_advice_is_given_where_it_is_due_and_not_elsewhere(words, due, not_due):
    assert [words in advised(start) for start in (*due, *not_due)] == [True] * len(due) + [False] * len(not_due)


def test_no_advice_is_given_about_what_plyzero_declares_for_a_game_of_another_toolkit():
    assert advised(load_game("azg:tests.helpers.azg_games:Objects").start, symmetries=(0, 0)) == ""


def test_symmetries_are_asked_for_where_there_are_none():
    assert advised(TicTacToe()) == ""
    assert "no symmetries are declared" in advised(TicTacToe(), symmetries=(0, 0))


class Turned(TicTacToe):
    """The actions have another order than the squares."""

    def symmetries(self) -> list[Symmetry]:
        order = np.array([1, 0, 2, 3, 4, 5, 6, 7, 8])
        return [each._replace(actions=order[each.actions[order]]) for each in super().symmetries()]


def test_planes_of_actions_are_proposed_where_symmetries_show_them():
    starts = (TicTacToe(), Othello(size=6), ConnectFour(), toys.Relay(), Turned())
    assert [planes_of_actions(start) for start in starts] == [1, 1, 0, 0, 0]


def test_how_often_a_player_moves_again_is_counted():
    assert survey(toys.Chain("0010"), games=2).same_mover == 1 / 3
    assert survey(TicTacToe(), games=2).same_mover == 0


def suspected(make, games: int = 30) -> str:
    return " ".join(survey(make(), games=games).warnings)


def test_unusual_results_are_warnings_although_no_law_forbids_them():
    assert "all 30 random games were won by player 1: is outcome() right?" in suspected(toys.Chain)
    assert "random games were" not in suspected(toys.Chain, games=5)
    drawn = variant(toys.Relay, outcome=lambda self: toys.Relay.outcome(self) and Outcome(None))
    assert "all 30 random games were drawn" in suspected(drawn)


@pytest.mark.parametrize(
    ("board", "words"),
    [
        (lambda self: 0 * DotsAndBoxes.final_board(self), "final_board() is 0 everywhere"),
        (lambda self: -DotsAndBoxes.final_board(self), "favours the winner: is +1 for the player to_play"),
        (lambda self: DotsAndBoxes.final_board(self), ""),
    ],
)
def test_final_boards_that_are_empty_or_against_the_winner_are_warnings(board, words):
    text = suspected(variant(DotsAndBoxes, final_board=board))
    assert words in text
    assert ("final_board" in text) == bool(words)


def test_a_square_that_a_final_board_leaves_out_is_a_warning():
    def without_corner(self):
        board = Othello.final_board(self)
        board[0, 0, 0] = 0
        return board

    assert "always 0 at 1 of 36 places, such as plane 0, row 0, column 0," in suspected(
        functools.partial(variant(Othello, final_board=without_corner), size=6)
    )


def test_final_boards_that_do_not_decide_are_a_warning():
    def without_centre(self):
        board = DotsAndBoxes.final_board(self)
        board[0, 3, 3] = 0
        return board

    words = "the same final_board() stands at the end of games with different results, Outcome(winner="
    assert words in suspected(variant(DotsAndBoxes, final_board=without_centre), games=100)
    assert words not in suspected(DotsAndBoxes, games=100)


def test_decided_games_that_one_player_wins_are_a_warning_also_beside_draws():
    text = suspected(with_winner(TicTacToe, lambda winner: 0), games=100)
    assert re.search(r"all \d\d decided random games were won by player 0: is outcome\(\) right\?", text)


def test_the_results_of_long_games_are_those_of_enough_games_for_a_conclusion():
    long, few = Sample(Backgammon(), Extent()), Sample(Backgammon(), Extent(games=2))
    assert (len(long.games), len(long.results)) == (9, 30)
    assert few.results == few.games
    assert [game.positions[-1].outcome() is None for game in long.results] == [False] * 30


class LabelsOneMoveWrong(ConnectFour):
    """The seventh move is labelled as one of the other player, who seems to move twice; the planes are right."""

    @property
    def to_play(self):
        return super().to_play ^ (np.count_nonzero(self.record["board"]) % 7 == 6)


def test_planes_that_change_places_where_they_should_not_are_a_warning():
    wrong = "of observe() change places when the turn passes, but at "
    assert f"planes 0 and 1 {wrong}" in suspected(LabelsOneMoveWrong)
    for correct in (ConnectFour, DotsAndBoxes, Othello, Breakthrough, zoo.Shuffle, zoo.Kalah):
        assert wrong not in suspected(correct)


WinnerIsTheLoser = with_winner(TicTacToe, lambda winner: 1 - winner)  # a wrong sign


@pytest.mark.parametrize("make", [WinnerIsTheLoser, zoo.Chomp])
def test_a_game_whose_last_mover_loses_is_a_warning_and_no_failure(make):
    assert "in 0% of the decided games the player who made the last move won; if that player should" in suspected(make)
    assert survey(make(), games=30).last_mover == 0
    assert survey(TicTacToe(), games=30).last_mover == 1


@pytest.mark.parametrize(
    ("won", "lost", "is_below"), [(66, 34, False), (34, 66, True), (40, 60, False), (0, 9, False), (0, 0, False)]
)
def test_a_share_below_one_half_is_a_warning_only_if_chance_does_not_explain_it(won: int, lost: int, is_below: bool):
    assert is_below_half([True] * won + [False] * lost) is is_below


def test_a_game_that_goes_on_for_ever_when_pieces_move_to_and_fro_is_a_warning():
    # Without the rule about repetition, whose counter random games seldom reach.
    endless = variant(zoo.Shuffle, is_third=lambda self: False)
    assert "a game in which both players move to and fro is not over after max_plies = 40 plies" in suspected(endless)


class OneSignedPlane(ConnectFour):
    """One plane with +1 for player 0 and -1 for player 1, whoever is to move."""

    observation_dtype = np.float32
    observation_shape = (1, 6, 7)

    def observe(s, planes):
        planes[0] = (s["board"] != 0) * (3 - 2 * s["board"])


class BlackAndWhite(Breakthrough):
    """The view of player 0 for both: the commonest mistake, which no law can see."""

    def observe(self):
        return super().observe() if self.to_play == 0 else super().observe()[::-1, ::-1]


class FirstAndSecond(ConnectFour):
    def observe(s, planes):
        planes[0] = s["board"] == 1
        planes[1] = s["board"] == 2


@pytest.mark.parametrize("make", [BlackAndWhite, FirstAndSecond, OneSignedPlane])
def test_an_observation_that_is_the_same_for_both_players_is_suspicious(make):
    text = suspected(make)
    assert "observe() seems to show the pieces of player 0 and of player 1, whoever is to move" in text
    assert re.search("player 0 to move, observation:(.|\n)*player 1 to move, observation:|player 1 to move, obs", text)


# The opponent's pieces come first, in every position: the network learns from it as well.
OpponentFirst = variant(TicTacToe, observe=lambda self: TicTacToe.observe(self)[::-1])


EXAMPLES = [TicTacToe, OpponentFirst, ConnectFour, Othello, Breakthrough, DotsAndBoxes, functools.partial(Hex, size=4)]


@pytest.mark.parametrize("make", [*EXAMPLES, zoo.Kalah, zoo.Clobber, zoo.Shuffle, zoo.Nim, toys.Wide, toys.Written])
def test_a_correct_game_is_not_suspected(make):
    assert suspected(make) == ""


@pytest.mark.parametrize("name", sorted(each.name for each in entry_points(group=ENTRY_POINT_GROUP)))
def test_no_included_game_has_a_warning(name):
    assert survey(load_game(name).start).warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["go", "hex", "pig"])  # in as many positions as a person's check; others in test_laws
def test_an_included_game_keeps_all_laws(name):
    assert find_violation(lambda: load_game(name).start) is None


class Meters(toys.Relay):
    """Many planes of one number."""

    observation_shape = (60, 1, 1)

    def observe(self):
        planes = np.zeros(self.observation_shape, np.float32)
        planes[7 + self.to_play] = 0.5
        return planes


class Strip(toys.Relay):
    """Planes that are wider than what people read."""

    observation_shape = (2, 1, 30)

    def observe(self):
        return np.ones(self.observation_shape, np.float32)


def test_many_planes_and_wide_ones_are_listed_by_number():
    start = Meters()
    assert observation_text(start) == "player 0 to move, observation, planes that are not 0: 7: 0.5"
    assert observation_text(start, start.play(0)).endswith("planes that differ: 7: 0.5, 8: 0")
    assert observation_text(Strip()).endswith("planes that are not 0: 0: sum 30, 1: sum 30")


def test_a_position_without_a_drawing_shows_what_the_network_sees():
    undrawn = variant(TicTacToe, render=Game.render)()
    assert str(undrawn.play(4)) == "player 1 to move, observation:\n0 0 0   0 0 0\n0 0 0   0 1 0\n0 0 0   0 0 0"


@pytest.mark.parametrize("make", [functools.partial(toys.Relay, 3), zoo.Kalah])
def test_a_game_without_a_drawing_can_be_surveyed(make):
    assert survey(make(), games=2).games == 2
