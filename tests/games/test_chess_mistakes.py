"""Each usual mistake of chess programs, planted into the rules, is found by a test of chess, which is named here."""

from collections.abc import Callable

import pytest

from benchmarks.mistakes.chess_rules import PLANTED, as_plain_python, changed_module
from tests.games import test_chess as tests

FOUND_BY: dict[str, Callable[..., None]] = {
    "en passant may leave the king attacked along the rank": tests.test_moves_are_legal_or_not,
    "en passant is possible on later moves": tests.test_a_pawn_is_captured_en_passant_only_at_once,
    "en passant leaves the captured pawn": tests.test_a_pawn_is_captured_en_passant_only_at_once,
    "en passant is noted where it is illegal": tests.test_en_passant_is_noted_only_where_it_is_legal,
    "castling through check": tests.test_moves_are_legal_or_not,
    "castling out of check": tests.test_moves_are_legal_or_not,
    "castling into check": tests.test_moves_are_legal_or_not,
    "castling although the rook covered the king": tests.test_castling_of_chess960_may_be_illegal,
    "no castling if the rook passes an attacked square": tests.test_moves_are_legal_or_not,
    "castling over a piece beside the rook": tests.test_moves_are_legal_or_not,
    "rights stay after the rook is captured": tests.test_rights_to_castle_are_lost,
    "rights stay after the rook moves": tests.test_rights_to_castle_are_lost,
    "rights stay after the king moves": tests.test_rights_to_castle_are_lost,
    "a position is repeated with other rights": tests.test_a_position_occurs_again_only_with_the_same_rights,
    "a position is repeated with another en passant": tests.test_a_position_occurs_again_only_with_the_same_en_passant,
    "a position is repeated with the other player to move": (
        tests.test_a_position_occurs_again_only_with_the_same_player_to_move
    ),
    "the second occurrence is a draw": tests.test_the_third_occurrence_of_a_position_is_a_draw,
    "a move of a pawn does not reset the clock": tests.test_a_game_ends_or_goes_on,
    "a capture does not reset the clock": tests.test_a_game_ends_or_goes_on,
    "mate with the hundredth ply is a draw": tests.test_a_game_ends_or_goes_on,
    "stalemate is a loss": tests.test_a_game_ends_or_goes_on,
    "mate is won by the player who is mated": tests.test_the_shortest_game_is_won_by_black,
    "two knights, or two bishops, are a draw": tests.test_a_game_ends_where_nobody_can_mate,
    "promotion to a queen only": tests.test_moves_are_legal_or_not,
    "captures that promote to less go the other way": tests.test_moves_are_legal_or_not,
    "a pinned piece leaves its line": tests.test_moves_are_legal_or_not,
    "a pinned piece cannot move along its line": tests.test_moves_are_legal_or_not,
    "a check may be ignored": tests.test_moves_are_legal_or_not,
    "the king steps back on the line of its attacker": tests.test_moves_are_legal_or_not,
    "a pawn jumps over a piece": tests.test_moves_are_legal_or_not,
    "a pawn moves two squares onto a piece": tests.test_moves_are_legal_or_not,
    "a pawn moves two squares from the third rank": tests.test_moves_are_legal_or_not,
    "a pawn captures straight ahead": tests.test_moves_are_legal_or_not,
    "knights jump round the edge": tests.test_moves_are_legal_or_not,
    "Black's board is rotated": tests.test_the_player_to_move_sees_the_board_from_their_own_side,
}


def run(test: Callable[..., None]) -> None:
    """Call a test as pytest does, with each row of its table of parameters, if it has one."""
    tables = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    names, rows = tables[0].args if tables else ((), [()])
    for row in rows:
        test(**dict(zip(names, row, strict=True)))


def play_as(module, monkeypatch) -> None:
    """Have the tests of chess play the game of another module, which is not compiled."""
    monkeypatch.setattr(tests, "Chess", lambda **options: as_plain_python(module, **options))
    monkeypatch.setattr(tests, "START", as_plain_python(module))


def test_each_mistake_has_a_test():
    assert FOUND_BY.keys() == PLANTED.keys()


def test_the_tests_pass_without_a_mistake(monkeypatch):
    play_as(changed_module(), monkeypatch)
    for test in {*FOUND_BY.values()}:
        run(test)


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_is_found_by_its_test(name: str, monkeypatch):
    play_as(changed_module(*PLANTED[name]), monkeypatch)
    with pytest.raises((AssertionError, ValueError)):  # ValueError: a move of the test is illegal
        run(FOUND_BY[name])
