"""Positions from text: names of moves, boards, and what is said of bad text."""

from pathlib import Path

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.rules import notation
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import moves_to, read_starts
from plyzero.rules.random_game import random_game
from tests.helpers import toys

BOARD = " 1 x o .\n 2 . x .\n 3 . . .\n   a b c"


@pytest.mark.parametrize(
    "name", ["tic-tac-toe", "connect-four", "hex(size=4)", "gomoku(size=6)", "openspiel:connect_four"]
)
def test_boards_that_only_fill_are_read(name: str):
    start = load_game(name).start
    for seed in range(3):
        for position in random_game(start, np.random.default_rng(seed)).positions[:-1:3]:
            both = position, start.from_text(f"\n{position}\n\n")
            shown, read = ((str(each), each.to_play, each.legal_actions()) for each in both)
            assert read == shown


def test_names_of_moves_are_read_on_one_line_or_on_several():
    start = load_game("othello").start
    assert start.from_text("d3 c3\nc4").key() == toys.after(start, "d3 c3 c4").key()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tic-tac-toe", "a1 a1", ": move 2: expec"),
        ("tic-tac-toe", BOARD.replace("o", "x"), ""),
        ("connect-four(rows=4, columns=4)", BOARD, ""),
        ("othello", "\n".join([" 1 x x"] * 8), ""),
    ],
)
def test_bad_text_gets_one_sentence(name: str, text: str, message: str):
    expected = f"^expected a board that moves reach by filling cells, or names of moves{message}"
    with pytest.raises(ValueError, match=expected) as refused:
        load_game(name).start.from_text(text)
    assert "\n" not in str(refused.value)


def test_the_search_for_moves_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notation, "MAX_TRIED", 50)
    board = str(load_game("gomoku").start).replace(".", "x")
    with pytest.raises(ValueError, match=r"^expected a board that moves reach"):
        load_game("gomoku").start.from_text(board)


def test_a_board_of_forty_stones_needs_few_tries(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notation, "MAX_TRIED", 1000)
    position = random_game(load_game("gomoku").start, np.random.default_rng(1)).positions[40]
    assert str(load_game("gomoku").start.from_text(str(position))) == str(position)


def test_a_game_begins_at_a_position_in_which_it_is_not_over():
    game = load_game("tic-tac-toe")
    begun = game.starting_at(BOARD)
    assert (str(begun.start), begun.identity, begun.text) == (BOARD, game.identity, BOARD)
    assert game.starting_at("") is game
    assert begun.starting_at(BOARD) is begun
    with pytest.raises(ValueError, match=r"^the game begins at another position"):
        begun.starting_at("a1")
    with pytest.raises(ValueError, match=r"^the game is over in this position"):
        game.starting_at("a1 b1 a2 b2 a3")


def test_a_file_has_a_position_between_blank_lines(tmp_path: Path):
    start, file = load_game("tic-tac-toe").start, tmp_path / "starts.txt"
    file.write_text(f"\na1 b2\n\n{BOARD}\n \nc3\n")
    one, other, last = read_starts(file, start)
    assert (one, last) == ([0, 4], [8])
    assert sorted(other) == [0, 1, 4]
    assert moves_to(start, BOARD) == other


def test_a_file_of_positions_that_cannot_be_used_gets_one_sentence(tmp_path: Path):
    file = tmp_path / "starts.txt"
    with pytest.raises(UserError, match=r"starts.txt cannot be used: .*No such file"):
        read_starts(file, load_game("tic-tac-toe").start)
    file.write_text("a1\n\nz9")
    with pytest.raises(UserError, match=r"cannot be used: expected a board that moves reach .* got 'z9'$"):
        read_starts(file, load_game("tic-tac-toe").start)
    with pytest.raises(UserError, match="cannot be used: a game with dice begins with rolls of its own"):
        read_starts(file, load_game("pig").start)
