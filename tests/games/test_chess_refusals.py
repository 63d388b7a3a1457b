"""Positions and moves that chess does not have are refused in a sentence, wherever they are given."""

from pathlib import Path

import pytest

from plyzero.games.chess import Chess
from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.server import make_app
from plyzero.rules.catalog import load_game
from tests.helpers.cli import plyzero
from tests.helpers.web import get, serving

START = Chess()
FEN = "expected FEN such as 4k3/8/8/8/8/8/4P3/4K3 w - - 0 1, with the letters PNBRQK and pnbrqk, got '{}'"
SIZE = "expected FEN of 8 ranks with 8 squares, got '{}'"
BACK_RANK = "expected no pawn on the first and the last rank, got '{}'"
RIGHTS = "expected rights to castle for a king and rooks on their first squares, or - for none, got '{}'"
EN_PASSANT = "expected an en passant square behind a pawn that has moved two squares, or - for none, got {}"
MANY = "expected at most 16 pieces of {}, 8 of them pawns, got {} pieces, {} of them pawns"

WRONG_POSITIONS = {
    "8/8/8/8/8/8/8/4K3 w - - 0 1": "expected one king of Black, got 0",
    "8/8/8/8/8/8/8/4k3 w - - 0 1": "expected one king of White, got 0",
    "4k3/8/8/8/8/8/8/K3K3 w - - 0 1": "expected one king of White, got 2",
    "k3k3/8/8/8/8/8/8/K7 w - - 0 1": "expected one king of Black, got 2",
    "4k3/8/8/8/8/8/8/K3R3 w - - 0 1": (
        "expected a king of Black that is not attacked when White is to move, got one in check: is Black to move?"
    ),
    "4k3/8/8/8/8/8/4r3/4K3 b - - 0 1": (
        "expected a king of White that is not attacked when Black is to move, got one in check: is White to move?"
    ),
    "8/8/8/8/8/8/3k4/4K3 w - - 0 1": (
        "expected a king of Black that is not attacked when White is to move, got one in check: is Black to move?"
    ),
    "4k3/8/8/8/8/8/8/K3P3 w - - 0 1": BACK_RANK.format("4k3/8/8/8/8/8/8/K3P3"),
    "p3k3/8/8/8/8/8/8/K7 w - - 0 1": BACK_RANK.format("p3k3/8/8/8/8/8/8/K7"),
    "4k3/8/8/8/8/8/K7 w - - 0 1": SIZE.format("4k3/8/8/8/8/8/K7"),
    "4k3/8/8/8/8/8/8/8/K7 w - - 0 1": SIZE.format("4k3/8/8/8/8/8/8/8/K7"),
    "4k4/8/8/8/8/8/8/K7 w - - 0 1": SIZE.format("4k4/8/8/8/8/8/8/K7"),
    "4k3/8/8/8/8/8/8/K5 w - - 0 1": SIZE.format("4k3/8/8/8/8/8/8/K5"),
    "4k3/8/8/PPPPPPPP/P7/8/8/4K3 w - - 0 1": MANY.format("White", 10, 9),
    "4k3/8/8/8/NNNNNNN1/NNNNNNN1/NN6/3K4 w - - 0 1": MANY.format("White", 17, 0),
    "rnbqkbnr/pppppppp/p7/8/8/8/8/4K3 b - - 0 1": MANY.format("Black", 17, 9),
    "4k3/8/8/8/8/8/8/4K3 w K - 0 1": RIGHTS.format("K"),
    "4k3/8/8/8/8/8/8/3K3R w K - 0 1": RIGHTS.format("K"),
    "r3k3/8/8/8/8/8/8/4K3 w kq - 0 1": RIGHTS.format("k"),
    "4k3/8/8/8/8/8/8/4K3 w - d6 0 1": EN_PASSANT.format("d6"),
    "4k3/8/8/8/3pP3/8/8/4K3 w - e3 0 1": EN_PASSANT.format("e3"),
    "4k3/3p4/8/3pP3/8/8/8/4K3 w - d6 0 1": EN_PASSANT.format("d6"),
    "4k3/8/3n4/3pP3/8/8/8/4K3 w - d6 0 1": EN_PASSANT.format("d6"),
    **{
        wrong: FEN.format(wrong)
        for wrong in (
            "4k3/8/8/8/8/8/8/K3X3 w - - 0 1",
            "4k3/9/8/8/8/8/8/K7 w - - 0 1",
            "4k3/8/8/8/8/8/8/K7 x - - 0 1",
            "4k3/8/8/8/8/8/8/4K3 w KX - 0 1",
            "4k3/8/8/3pP3/8/8/8/4K3 w - d5 0 1",
            "4k3/8/8/8/8/8/8/K7 w - - -1 1",
            "4k3/8/8/8/8/8/8/K6Q w - - 0 1 or so",
            "4k3/8/8/8/8/8/8/K7 w",
            "4k3/8/8/8/8/8/8/K7",
        )
    },
}

TOLERATED = {
    "4k3/8/8/8/8/8/8/K6Q w - -": "4k3/8/8/8/8/8/8/K6Q w - - 0 1",
    "4k3/8/8/8/8/8/8/K6Q w - - 3 0": "4k3/8/8/8/8/8/8/K6Q w - - 3 1",
    "4k3/8/8/8/8/8/8/K6Q w - - 200 9": "4k3/8/8/8/8/8/8/K6Q w - - 100 9",
    "4k3/8/8/8/8/8/8/4K2R w KK - 0 1": "4k3/8/8/8/8/8/8/4K2R w K - 0 1",
    "4k3/8/8/8/QQQQ1QQQ/8/PPPPPPPP/4K3 b - - 0 1": "4k3/8/8/8/QQQQ1QQQ/8/PPPPPPPP/4K3 b - - 0 1",  # and no pawn is gone
    "4R3/8/8/4k3/4R3/8/6K1/8 b - - 0 1": "4R3/8/8/4k3/4R3/8/6K1/8 b - - 0 1",  # no move leads to these two checks
    "4k3/8/8/1B3N2/8/8/3N4/K3R3 b - - 0 1": "4k3/8/8/1B3N2/8/8/3N4/K3R3 b - - 0 1",
}
"""Positions that no game reaches, or that are written carelessly, as they are understood."""


@pytest.mark.parametrize(("fen", "sentence"), WRONG_POSITIONS.items())
def test_a_wrong_position_is_refused_in_a_sentence(fen: str, sentence: str):
    with pytest.raises(ValueError, match=r".") as refused:
        START.from_text(fen)
    assert str(refused.value) == sentence


def test_python_chess_refuses_these_positions_too():
    chess = pytest.importorskip("chess")
    for fen in WRONG_POSITIONS:
        try:
            is_valid = chess.Board(fen).is_valid()
        except ValueError:
            is_valid = False
        assert not is_valid or len(fen.split()) < 4, fen  # it has a player and rights where FEN has none


@pytest.mark.parametrize(("fen", "understood"), TOLERATED.items())
def test_a_position_that_the_rules_can_go_on_from_is_tolerated(fen: str, understood: str):
    assert START.from_text(fen).fen() == understood


# --- where they are given ---

TAGS = '[Event "?"]\n[Result "1-0"]\n'
NULL = "expected a move, got '{}', by which a player passes: chess has no such move"

WRONG_GAMES = {
    "1. e4 e5 2. -- Nc6 1-0": f"move 3 in line 4, '--': {NULL.format('--')}",
    "1. e4 Z0 2. d4 1-0": f"move 2 in line 4, 'Z0': {NULL.format('Z0')}",
    "1. e4 e5 2. Ke3 Nc6 1-0": "move 3 in line 4, 'Ke3': expected one of e1e2 a2a3 b2b3 c2c3 d2d3",
    "1. e4 e5 2. Nf3 Nc6 3. c3 Nf6 4. d3 d5 5. Nd2 1-0": (
        "move 9 in line 4, 'Nd2': expected one of Nbd2 Nfd2, got 'Nd2'"
    ),
    '[Variant "Crazyhouse"]\n\n1. e4 d5 1-0': ('expected a game of chess, got one with the tag Variant "Crazyhouse"'),
    '[FEN "4k3/8/8/8/8/8/8/K3K3 w - - 0 1"]\n\n1. Kb1 1-0': (
        "cannot begin at the position in its tag FEN: expected one king of White, got 2"
    ),
}
"""Text after the tags of a game in PGN -> part of the sentence."""


@pytest.mark.parametrize("command", ["review", "imitate"])
@pytest.mark.parametrize(("text", "sentence"), WRONG_GAMES.items())
def test_a_wrong_game_in_pgn_is_refused_in_a_sentence(command: str, text: str, sentence: str, tmp_path: Path):
    path = tmp_path / "game.pgn"
    path.write_text(f"{TAGS}{'' if text.startswith('[') else chr(10)}{text}\n")
    more = ("-o", str(tmp_path / "bot.onnx")) if command == "imitate" else ("--simulations", "16")
    done = plyzero(command, "chess", str(path), *more, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("plyzero: ")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("command", ["play", "analyze"])
def test_a_wrong_position_in_a_file_is_refused_in_a_sentence(command: str, tmp_path: Path):
    fen, sentence = "4k3/8/8/8/8/8/8/K3K3 w - - 0 1", "expected one king of White, got 2"
    path = tmp_path / "start.fen"
    path.write_text(fen)
    done = plyzero(command, "chess", "--start", str(path), code=2)
    assert done.stdout == ""
    assert done.stderr.endswith(f"plyzero: cannot begin at the position in {path}: {sentence}\n")


@pytest.mark.parametrize(
    ("position", "sentence"),
    [
        ("fen 4k3/8/8/8/8/8/8/K3K3 w - - 0 1", "expected one king of White, got 2"),
        ("startpos moves e2e4 0000", NULL.format("0000")),
        ("startpos moves e2e4 e7e4", "expected one of a7a6 b7b6 c7c6"),
    ],
)
def test_a_controller_that_gives_a_wrong_position_gets_a_sentence_and_no_move(position: str, sentence: str):
    commands = f"position {position}\ngo nodes 1\nquit\n"
    said, *rest = plyzero("uci", "chess", "--player", "random", text=commands, code=0).stdout.splitlines()
    assert said.startswith(f"info string {sentence}")
    assert rest == ["info string there is no position to play", "bestmove 0000"]


def test_the_page_refuses_a_wrong_position_in_a_sentence():
    game = load_game("chess")
    with serving(make_app(game, Opponents(game))) as address:
        for fen, sentence in [*WRONG_POSITIONS.items()][::8]:
            status, answer = get(address, "/api/position", start=fen)
            assert (status, answer["error"]) == (400, f"cannot begin at the position in the text: {sentence}")
        status, answer = get(address, "/api/position", moves="e2e4 0000")
        assert (status, answer["error"]) == (400, f"move 2: {NULL.format('0000')}")
