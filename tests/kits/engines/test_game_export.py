"""Games written as PGN and SGF, which are read back as they were; python-chess reads them where it is installed."""

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.kits.engines.game_export import WIDTH, write_pgn, write_sgf
from plyzero.kits.engines.game_record import GameRecord, from_moves, read_games
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import random_game

CHESS, CHESS960, BREAKTHROUGH = map(load_game, ("chess", "chess(chess960=True)", "breakthrough"))

FOOLS_MATE = "f2f3 e7e5 g2g4 d8h4"


def test_a_game_has_seven_tags_its_moves_as_people_write_them_and_its_result():
    tags = {"White": 'Ann "A" \\ Lee', "Date": "2026.01.02", "Termination": "normal"}
    assert write_pgn(from_moves(CHESS, FOOLS_MATE), CHESS, tags) == (
        '[Event "?"]\n[Site "?"]\n[Date "2026.01.02"]\n[Round "?"]\n[White "Ann \\"A\\" \\\\ Lee"]\n[Black "?"]\n'
        '[Result "0-1"]\n[Termination "normal"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n'
    )


def test_variations_stand_behind_the_move_that_they_replace_and_comments_where_they_belong():
    text = write_pgn(
        from_moves(CHESS, "e2e4 e7e5 g1f3"),
        CHESS,
        {},
        variations=[
            ["e2e4", "c7c5", "g1f3", "d7d6"],
            ["e2e4", "c7c5", "b1c3"],
            ["d2d4"],
            ["e2e4", "e7e5", "g1f3", "b8c6"],
        ],
        comments={"": "Begin {here}", "e2e4 c7c5": "Sicilian", "e2e4 e7e5": "open\nfield"},
    )
    assert " ".join(text.partition("\n\n")[2].split()) == (
        "{Begin {here)} 1. e4 (1. d4) 1... e5 {open field} (1... c5 {Sicilian} 2. Nf3 (2. Nc3) 2... d6) 2. Nf3 *"
    )


def test_a_game_from_another_position_has_its_fen_and_begins_with_its_number():
    game = CHESS.set_up("4k3/P7/8/8/8/8/8/4K3 b - - 3 61", "a test")
    text = write_pgn(from_moves(game, "e8d7 a7a8n"), CHESS, {})
    assert text.endswith(
        '[Result "1/2-1/2"]\n[SetUp "1"]\n[FEN "4k3/P7/8/8/8/8/8/4K3 b - - 3 61"]\n\n61... Kd7 62. a8=N 1/2-1/2\n'
    )


def test_a_game_of_chess960_names_its_variant_and_its_set_up():
    text = write_pgn(from_moves(CHESS960, "518 e2e4"), CHESS960, {})
    assert '[Variant "Chess960"]\n[SetUp "1"]\n[FEN "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"]' in text
    assert text.endswith("\n\n1. e4 *\n")


def test_a_game_that_a_player_resigned_has_its_result():
    record = from_moves(CHESS, "e2e4")
    lost = GameRecord(record.positions, record.moves, resigned=0)
    assert write_pgn(lost, CHESS, {}).endswith("\n\n1. e4 0-1\n")


def test_a_variation_that_is_not_legal_is_refused():
    with pytest.raises(ValueError, match="got 'e2e5'"):
        write_pgn(from_moves(CHESS, "e2e4"), CHESS, {}, variations=[["e2e5"]])


def test_a_game_without_fen_that_was_set_up_is_refused():
    go = load_game("go(size=5)")
    with pytest.raises(ValueError, match="has no FEN"):
        write_pgn(from_moves(go.set_up("c3", "a test"), "d2"), go, {})


COMMENT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.sampled_from('()[];\\{}\n%"'))


def lines_of(data: st.DataObject, moves: Sequence[str], game: GameSpec, seed: int) -> list[list[str]]:
    """Variations of a game that leave it at random moves."""
    found = []
    for number in range(data.draw(st.integers(0, 3))):
        begin = data.draw(st.integers(1 if game.start.awaits_setup else 0, len(moves) - 1))
        position = from_moves(game, " ".join(moves[:begin])).positions[-1]
        further = random_game(position, np.random.default_rng(seed + number))
        found.append([*moves[:begin], *action_names(position, tuple(further.moves[:4]))])
    return found


@given(data=st.data(), seed=st.integers(0, 2**32))
def test_random_games_are_read_back(data: st.DataObject, seed: int):
    game = data.draw(st.sampled_from([CHESS, CHESS960, BREAKTHROUGH]))
    played = random_game(game.start, np.random.default_rng(seed))
    count = data.draw(st.integers(2, min(60, len(played.moves))))
    record = from_moves(game, " ".join(action_names(game.start, tuple(played.moves[:count]))))
    moves = action_names(game.start, tuple(record.moves))
    at = data.draw(st.integers(0, count))
    text = write_pgn(
        record,
        game,
        {"White": data.draw(COMMENT), "Black": "Bo"},
        variations=lines_of(data, moves, game, seed),
        comments={" ".join(moves[:at]): data.draw(COMMENT)},
    )
    assert max(map(len, text.partition("\n\n")[2].splitlines())) <= WIDTH or "{" in text
    (found,) = read_games(io.BytesIO(text.encode()), game)
    assert isinstance(found.record, GameRecord), found.record
    begin = 1 if game.start.awaits_setup else 0
    names = action_names(found.record.positions[0], tuple(found.record.moves))
    assert (names, found.record.winner) == (moves[begin:], record.winner)
    assert_another_program_reads(text, moves[begin:])


def assert_another_program_reads(text: str, moves: list[str]) -> None:
    chess: Any = pytest.importorskip("chess.pgn")
    if '[Variant "Breakthrough"]' in text:
        return
    game = chess.read_game(io.StringIO(text))
    assert game.errors == []
    board = game.board()
    assert [board.uci(move) for move in game.mainline_moves()] == moves


GO = load_game("go(size=5)")


def test_sgf_has_variations_in_parentheses_comments_and_the_result_with_its_points():
    text = write_sgf(
        from_moves(GO, "c3 b4 pass pass"),
        GO,
        variations=[["c3", "d2"], ["c3", "b4", "pass", "pass"]],
        comments={"": "A game] \\", "c3 b4": "close"},
    )
    assert text == (
        "(;FF[4]CA[UTF-8]AP[plyzero]GM[1]SZ[5]KM[7.5]RE[W+7.5]C[A game\\] \\\\]\n"
        ";B[cc](;W[bb]C[close];B[];W[])\n(;W[dd]))\n"
    )


@pytest.mark.parametrize(("by_time", "result"), [(False, "RE[B+R]"), (True, "RE[B+T]")])
def test_sgf_says_how_a_game_was_lost_before_its_end(by_time: bool, result: str):
    record = from_moves(GO, "c3 b4")
    assert result in write_sgf(GameRecord(record.positions, record.moves, resigned=1), GO, by_time=by_time)
    assert "RE" not in write_sgf(record, GO)


@pytest.mark.parametrize(
    ("game", "start", "variations", "words"),
    [
        ("tic-tac-toe", "", [], "tic-tac-toe has no names for its moves in SGF files"),
        ("go(size=5)", "c3", [], "SGF files begin at the initial position"),
        ("go(size=5)", "", [["d2", "d2"]], "move 2: expected one of"),
    ],
)
def test_what_sgf_cannot_hold_is_refused(game: str, start: str, variations: list[list[str]], words: str):
    spec = load_game(game)
    begun = spec.set_up(start, "a test") if start else spec
    with pytest.raises(ValueError, match=re.escape(words)):
        write_sgf(from_moves(begun, begun.start.legal_names().split()[0]), spec, variations=variations)
