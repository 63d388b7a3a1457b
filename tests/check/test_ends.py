"""First moves, and ends of games of each kind: what `check` and the page show for a person to judge."""

import numpy as np

from examples.dots_and_boxes import DotsAndBoxes
from plyzero.check.ends import MAX_LINES, ends_of, first_moves, longest_end, shown_ends
from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.rules.board import grid
from plyzero.rules.game import Game, Outcome
from plyzero.rules.notation import play_named
from plyzero.rules.random_game import PlayedGame
from tests.helpers.dice import PlainRace
from tests.helpers.toys import variant, with_winner

SHORT, LONGER, OTHER, FULL = "a1 a2 b1 b2 c1", "a1 a2 b1 b2 a3 b3 c1", "a1 a2 b1 b2 c3 c2", "a1 b1 c1 b2 a2 c2 b3 a3 c3"


def played(start: Game, moves: str) -> PlayedGame:
    positions, actions = play_named(start, moves.split())
    return PlayedGame(actions, positions)


def captions(start: Game, *games: str) -> list[list[str]]:
    return [end.caption for end in ends_of([played(start, moves) for moves in games])]


def test_the_kinds_of_ends_are_shown_by_their_shortest_games_and_the_commonest_first():
    assert captions(TicTacToe(), OTHER, FULL, LONGER, SHORT) == [
        ["player 0 won", "player 1: b2", "player 0: c1", "5 plies; 2 of 4 games"],
        ["player 1 won", "player 0: c3", "player 1: c2", "6 plies; 1 of 4 games"],
        ["drawn", "the board is full", "player 1: a3", "player 0: c3", "9 plies; 1 of 4 games"],
    ]


class WithoutLosers(TicTacToe):
    """The board shows nothing but the winner's pieces."""

    def render(self):
        over = self.outcome()
        board = np.reshape(self.board, (3, 3))
        return grid(np.where(board == over.winner + 1, board, 0) if over else board)


def test_what_a_person_sees_of_an_end_makes_a_kind_of_its_own():
    misere = with_winner(TicTacToe, lambda winner: 1 - winner)
    assert captions(misere(), SHORT)[0][:2] == ["player 1 won", "the last mover lost"]
    assert captions(variant(TicTacToe, max_plies=5)(), SHORT, LONGER) == [
        ["player 0 won", "after max_plies", "player 1: b2", "player 0: c1", "5 plies; 1 of 2 games"],
        ["player 0 won", "player 1: b3", "player 0: c1", "7 plies; 1 of 2 games"],
    ]
    assert captions(TicTacToe(), "a1")[0] == ["not over", "player 0: a1", "1 ply; 1 of 1 games"]
    assert captions(WithoutLosers(), OTHER)[0][:2] == ["player 1 won", "player 0 has lost all pieces"]


class Bid(TicTacToe):
    """One move, which wins as many points as its number."""

    def outcome(self):
        return Outcome(0, score=self.board.index(1)) if any(self.board) else None


def test_points_make_kinds_of_their_own_unless_they_are_too_many():
    assert captions(Bid(), "b1", "c1", "c1") == [
        ["player 0 won by 2", "player 0: c1", "1 ply; 2 of 3 games"],
        ["player 0 won by 1", "player 0: b1", "1 ply; 1 of 3 games"],
    ]
    assert captions(Bid(), "b1", "c1", "a2", "b2", "c2", "a3", "b3") == [
        ["player 0 won, here by 1", "player 0: b1", "1 ply; 7 of 7 games"]
    ]


def test_rolls_are_named_before_the_first_moves_and_among_the_last_ones():
    assert list(first_moves(PlainRace())) == ["First rolls (2): one three", "First moves after one (2): step throw"]
    assert captions(PlainRace(), "one step throw one step throw four throw again three") == [
        ["player 0 won", "roll: again", "roll: three", "5 plies; 1 of 1 games"]
    ]


def test_first_moves_are_counted_and_shortened_if_they_are_many():
    assert list(first_moves(TicTacToe())) == ["First moves (9): a1 b1 c1 a2 b2 c2 a3 b3 c3"]
    (many,) = first_moves(DotsAndBoxes(size=4))
    assert many == "First moves (40): b1 d1 f1 h1 a2 c2 e2 g2 i2 b3 ... h7 a8 c8 e8 g8 i8 b9 d9 f9 h9"
    over = variant(TicTacToe, outcome=lambda self: Outcome(0))()
    assert list(first_moves(over)) == ["First moves (0): none"]
    assert captions(over, "") == [["player 0 won", "0 plies; 1 of 1 games"]]


def test_the_end_of_the_longest_game_is_told():
    assert longest_end([played(TicTacToe(), moves) for moves in (SHORT, FULL, OTHER)]) == "drawn, the board is full"


BOTH = """\
 1 x x x                  1 x x .
 2 o o .                  2 o o o
 3 . . .                  3 . . x
   a b c                    a b c
player 0 won             player 1 won
player 1: b2             player 0: c3
player 0: c1             player 1: c2
5 plies; 1 of 2 games    6 plies; 1 of 2 games"""


def test_boards_are_side_by_side_where_there_is_room_and_never_cut():
    ends = ends_of([played(TicTacToe(), moves) for moves in (SHORT, OTHER)])
    assert list(shown_ends(ends, 46)) == BOTH.splitlines()
    columns = [[line[:25].rstrip() for line in BOTH.splitlines()], [line[25:] for line in BOTH.splitlines()]]
    assert list(shown_ends(ends, 45)) == [*columns[0], "", *columns[1]]


def test_of_high_boards_and_of_many_kinds_only_the_commonest_are_shown():
    high = variant(Bid, __str__=lambda self: "\n" * (MAX_LINES // 4) + "board")  # four take more lines, one by one
    ends = ends_of([played(high(), moves) for moves in ("a1", "b1", "c1", "a2")])
    narrow, wide = ("\n".join(shown_ends(ends, width)) for width in (40, 100))
    assert (narrow.count("board"), narrow.endswith("\n\nRarer kinds of ends that are not shown: 1.")) == (3, True)
    assert (wide.count("board"), "Rarer" in wide) == (4, False)
    assert "\n".join(shown_ends(2 * ends, 200)).endswith("\n\nRarer kinds of ends that are not shown: 2.")
