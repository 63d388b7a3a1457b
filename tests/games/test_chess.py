"""Chess: published numbers of move sequences, known positions, and games compared with python-chess move by move.

python -m tests.games.test_chess 10000      # so many games, random and steered
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import pytest

from benchmarks.mistakes.chess_rules import PLANTED, as_plain_python, changed_module
from benchmarks.perft import counter
from plyzero.games.chess import Chess
from plyzero.kits.engines.pgn_games import parse_spelling, pgn_games
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Outcome, board_of
from tests.helpers import toys
from tests.helpers.toys import legal

START = Chess()
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


def at(fen: str, moves: str = "", *, chess960: bool = False) -> Chess:
    """Return the position of FEN after moves."""
    return toys.after(Chess(chess960=chess960).from_text(fen), moves)


def counted(fen: str, depth: int, *, chess960: bool = False) -> int:
    """Return the number of sequences of so many moves; draws by material or repetition end them, but none occurs."""
    return compiled_counter()(at(fen, chess960=chess960).state, depth, False)


@cache
def compiled_counter():
    return counter(START)


# --- known numbers of sequences of moves (public perft tables) ---

PERFT = {
    START.fen(): [20, 400, 8_902, 197_281, 4_865_609, 119_060_324],
    KIWIPETE: [48, 2_039, 97_862, 4_085_603, 193_690_690],
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": [14, 191, 2_812, 43_238, 674_624, 11_030_083],
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": [6, 264, 9_467, 422_333, 15_833_292],
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": [44, 1_486, 62_379, 2_103_487, 89_941_194],
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": [
        *(46, 2_079, 89_890, 3_894_594, 164_075_551)
    ],
}

PERFT_OF_CHESS960 = {
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9": [21, 528, 12_189, 326_672, 8_146_062],
    "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9": [21, 807, 18_002, 667_366, 16_253_601],
    "b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9": [20, 479, 10_471, 273_318, 6_417_013],
}

MOST_COUNTED = 5_000_000
"""Sequences of moves that are counted in a moment."""


def depths(known: dict[str, list[int]]) -> list:
    """Return the positions with their depths and known numbers; those with more than MOST_COUNTED are slow."""
    return [
        pytest.param(fen, depth, number, marks=[pytest.mark.slow] if number > MOST_COUNTED else [])
        for fen, numbers in known.items()
        for depth, number in enumerate(numbers, 1)
    ]


@pytest.mark.parametrize(("fen", "depth", "number"), depths(PERFT))
def test_a_position_has_the_known_number_of_move_sequences(fen: str, depth: int, number: int):
    assert counted(fen, depth) == number


@pytest.mark.parametrize(("fen", "depth", "number"), depths(PERFT_OF_CHESS960))
def test_a_position_of_chess960_has_the_known_number_of_move_sequences(fen: str, depth: int, number: int):
    assert counted(fen, depth, chess960=True) == number


# --- python-chess ---

# Its rules are compared position by position. They differ in the ends alone: python-chess lets players claim a draw
# after fifty moves and at the third occurrence, and ends a game by itself after 75 moves and at the fifth. Here such a
# game is drawn at once, so it is compared with the clock and the count of python-chess, not with its claims, which a
# player may also make before the move that leads there. Mate goes before fifty moves in both, and both end a game by
# the same material.

KINDS = ("random", "returning", "special", "rooks", "Chess960", "special Chess960", "ending", "castles")
"""Games are played by these kinds in turn.

random:    from the initial position, all moves are as likely.
returning: the players like to move back what they have moved, so that positions repeat.
special:   they like castling, captures en passant, double steps of pawns and promotions.
rooks:     they like moves of kings and rooks without a capture, so that rights to castle end in positions that repeat.
Chess960:  from a random set-up.
ending:    from a position of a few pieces at random, with any number of moves without progress.
castles:   from kings and rooks on their first squares, with a few pawns and pieces at random.
"""


def compare_games(count: int, seed: int, kinds: Sequence[str] = KINDS) -> Counter:
    """Play games in both, compare all positions, and return how often each end and each special move occurred."""
    chess = pytest.importorskip("chess")
    seen = Counter()
    for number in range(count):
        kind = kinds[number % len(kinds)]
        rng = np.random.default_rng([seed, number])
        board = first_board(chess, kind, rng)
        position = Chess(chess960=board.chess960).from_text(board.fen())
        while not (end := ended_by(board)):
            assert position.outcome() is None, str(position)
            assert position.fen() == board.fen()
            actions = {position.action_name(action): action for action in position.legal_actions()}
            moves = {board.uci(move): move for move in board.legal_moves}
            assert sorted(actions) == sorted(moves), str(position)
            if rng.random() < 0.1:
                compare_views(position, board)
            name = chosen(chess, board, moves, kind, rng)
            if rng.random() < 0.1:
                san = board.san(moves[name])
                assert (position.san(actions[name]), position.parse_action(san)) == (san, actions[name])
            seen.update(kinds_of(chess, board, moves[name]))
            position = position.play_unchecked(actions[name])
            board.push(moves[name])
            seen.update(["en passant that leaves the king attacked"] * is_en_passant_illegal(board))
        assert position.fen() == board.fen()
        assert position.outcome() == Outcome(1 - position.to_play if end == "mate" else None), (end, str(position))
        seen.update([f"end: {end}", f"game: {kind}", f"end of {kind}: {end}"])
    return seen


def compare_views(position: Chess, board) -> None:
    """Compare whether there is check, and whether the position has occurred before, as a network sees it."""
    assert position.is_check() == board.is_check(), str(position)
    assert position.observe()[12].all() == board.is_repetition(2), str(position)


def first_board(chess, kind: str, rng):
    """Return the board of python-chess with which a game of a kind begins."""
    if kind.endswith("Chess960"):
        return chess.Board.from_chess960_pos(int(rng.integers(960)))
    while kind in ("ending", "castles"):
        board = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1" if kind == "castles" else None)
        pieces = rng.choice([*"PPPPNBRQpppnbrq"], size=rng.integers(1, 6))
        if kind == "ending":
            board.clear()
            board.halfmove_clock = int(rng.integers(100))
            pieces = ["K", "k", *pieces]
        free = [square for square in chess.SQUARES if not board.piece_at(square)]
        for piece, square in zip(pieces, rng.choice(free, size=len(pieces), replace=False).tolist(), strict=True):
            board.set_piece_at(square, chess.Piece.from_symbol(str(piece)))
        board.turn = bool(rng.integers(2))
        if board.is_valid():
            return board
    return chess.Board()


def chosen(chess, board, moves: dict, kind: str, rng) -> str:
    """Return the name of the move that a game of a kind goes on with."""
    back = board.move_stack[-2].uci() if len(board.move_stack) > 1 else ""
    if kind in ("returning", "rooks") and back[2:4] + back[:2] in moves and rng.random() < 0.45:
        return back[2:4] + back[:2]
    weights = np.array([liking(chess, board, move, kind) for move in moves.values()])
    return str(rng.choice([*moves], p=weights / weights.sum()))


def liking(chess, board, move, kind: str) -> float:
    """Return how much rather than others the players of a kind make a move."""
    piece = board.piece_type_at(move.from_square)
    if kind == "rooks":
        is_quiet = piece in (chess.KING, chess.ROOK) and not board.is_capture(move)
        return 5 if is_quiet else 0.3 if board.is_capture(move) else 1
    if kind.startswith("special") or kind == "castles":
        if board.is_castling(move) or board.is_en_passant(move):
            return 40
        if piece == chess.PAWN:
            return 6 if abs(move.to_square - move.from_square) == 16 else 4
    return 1


def kinds_of(chess, board, move) -> Iterator[str]:
    """Yield what is special about a move."""
    if board.is_castling(move):
        wing = "O-O" if board.is_kingside_castling(move) else "O-O-O"
        yield wing if board.king(board.turn) in (chess.E1, chess.E8) else f"{wing} of a king elsewhere"
    if board.is_en_passant(move):
        yield "en passant"
    if move.promotion:
        yield f"={chess.piece_symbol(move.promotion).upper()}{' by a capture' if board.is_capture(move) else ''}"
    if board.is_check():
        yield "out of a double check" if len(board.checkers()) > 1 else "out of check"


def is_en_passant_illegal(board) -> bool:
    return board.has_pseudo_legal_en_passant() and not board.has_legal_en_passant()


def ended_by(board) -> str:
    if board.is_checkmate():
        return "mate"
    if board.is_stalemate():
        return "stalemate"
    if board.is_insufficient_material():
        return "material"
    if board.halfmove_clock >= 100:
        return "50 moves"
    return "repetition" if board.is_repetition(3) else ""


def test_games_of_each_kind_are_those_of_python_chess():
    seen = compare_games(3 * len(KINDS), seed=0)
    assert sum(seen[f"game: {kind}"] for kind in KINDS) == 3 * len(KINDS)
    assert all(seen[move] for move in ("O-O", "O-O-O", "en passant", "=N"))


@pytest.mark.slow
def test_many_games_are_those_of_python_chess():
    seen = compare_games(400, seed=1)
    ends = {name for name in seen if name.startswith("end: ")}
    assert ends == {f"end: {end}" for end in ("mate", "stalemate", "material", "50 moves", "repetition")}
    assert all(seen[f"={piece}{how}"] for piece in "QRBN" for how in ("", " by a capture"))
    rare = ("O-O of a king elsewhere", "O-O-O of a king elsewhere", "out of a double check")
    assert all(seen[move] for move in rare)


# --- moves ---


@pytest.mark.parametrize(
    ("fen", "has", "has_not"),
    [
        ("8/8/8/K2pP2q/8/8/8/7k w - d6 0 1", "e5e6", "e5d6"),  # both pawns would leave the king's rank
        ("4r2k/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5e6", "e5d6"),
        ("7k/8/8/3pP3/4K3/8/8/8 w - d6 0 1", "e5d6 e4d5", "e5e6"),  # it captures the pawn that gives check
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1 e1c1", ""),
        ("4k3/8/8/8/8/4r3/8/R3K2R w KQ - 0 1", "", "e1g1 e1c1"),  # out of check
        ("4k3/8/8/8/8/5r2/8/R3K2R w KQ - 0 1", "e1c1", "e1g1"),  # through check
        ("4k3/8/8/8/8/6r1/8/R3K2R w KQ - 0 1", "e1c1", "e1g1"),  # into check
        ("4k3/8/8/8/8/1r6/8/R3K2R w KQ - 0 1", "e1c1 e1g1", ""),  # only the rook passes an attacked square
        ("4k3/8/8/8/8/8/8/RN2K1NR w KQ - 0 1", "", "e1g1 e1c1"),
        ("4k3/8/8/8/8/8/8/R3K2R w K - 0 1", "e1g1", "e1c1"),
        ("3rk3/8/8/8/8/8/3R4/3K4 w - - 0 1", "d2d8 d2d3", "d2e2"),  # a pinned piece stays on its line
        ("3k4/8/8/8/7q/8/6P1/4K2R w K - 0 1", "e1f1", "g2g4 h1g1 e1g1"),
        ("4k3/8/8/8/1b2r3/8/8/2N1K3 w - - 0 1", "e1f2", "c1e2"),  # after a double check only the king can move
        ("1n5k/P7/8/8/8/8/8/7K w - - 0 1", "a7a8q a7a8r a7a8b a7a8n a7b8q a7b8n", "a7a8 a7a8k"),
        (
            "4k3/8/8/8/8/n7/P3p2P/4K2N w - - 0 1",
            "h2h3 h2h4",
            "a2a3 a2a4 a2b3 h2g3",
        ),  # nothing is jumped or captured ahead
        ("4k3/8/8/8/n7/8/P7/4K3 w - - 0 1", "a2a3", "a2a4"),
        ("4k3/8/8/8/8/P7/8/4K3 w - - 0 1", "a3a4", "a3a5"),
        ("4k3/4r3/8/8/8/8/4K3/8 w - - 0 1", "e2d1 e2f3", "e2e1 e2e3"),  # it stays on the line of the rook
        ("4k3/8/8/8/8/8/8/N3K2N w - - 0 1", "a1b3 a1c2 h1g3 h1f2", "a1h3 a1g2 a1h2 h1a3 h1b2 h1a4"),
    ],
)
def test_moves_are_legal_or_not(fen: str, has: str, has_not: str):
    names = legal(at(fen))
    assert names.issuperset(has.split())
    assert not names.intersection(has_not.split())


def test_a_pawn_is_captured_en_passant_only_at_once():
    position = at("4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1", "d7d5")
    assert position.fen().split()[3] == "d6"
    assert toys.after(position, "e5d6").fen().startswith("4k3/8/3P4/8/8")
    assert "e5d6" not in legal(toys.after(position, "e1e2 e8e7"))


@pytest.mark.parametrize(
    ("fen", "move"),
    [
        ("4k3/3p4/8/8/8/8/8/4K3 b - - 0 1", "d7d5"),  # there is no pawn to capture it
        ("7k/3p4/8/K3P2q/8/8/8/8 b - - 0 1", "d7d5"),
    ],
)
def test_en_passant_is_noted_only_where_it_is_legal(fen: str, move: str):
    assert at(fen, move).fen().split()[3] == "-"
    assert at(at(fen, move).fen().replace(" - - ", " - d6 ")).fen() == at(fen, move).fen()


@pytest.mark.parametrize(
    ("moves", "rights"),
    [
        ("e1e2", "kq"),
        ("a1b1", "Kkq"),
        ("h1g1", "Qkq"),
        ("a1a8", "Kk"),  # the rook that moves, and the one that it captures
        ("h1h8", "Qq"),
        ("e1g1", "kq"),
        ("a1b1 a8b8 b1a1 b8a8", "Kk"),  # rights do not come back
        ("e1d1 e8d8 d1e1 d8e8", "-"),
    ],
)
def test_rights_to_castle_are_lost(moves: str, rights: str):
    assert at("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", moves).fen().split()[2] == rights


@pytest.mark.parametrize(
    ("fen", "move", "after"),
    [
        ("4k3/8/8/8/8/8/8/1RK3R1 w KQ - 0 1", "c1b1", "4k3/8/8/8/8/8/8/2KR2R1"),
        ("4k3/8/8/8/8/8/8/1RK3R1 w KQ - 0 1", "c1g1", "4k3/8/8/8/8/8/8/1R3RK1"),
        ("4k3/8/8/8/8/8/8/5KR1 w K - 0 1", "f1g1", "4k3/8/8/8/8/8/8/5RK1"),  # they change places
        ("rk6/8/8/8/8/8/8/4K3 b q - 0 1", "b8a8", "2kr4/8/8/8/8/8/8/4K3"),
    ],
)
def test_castling_of_chess960_is_the_kings_move_onto_its_rook(fen: str, move: str, after: str):
    assert at(fen, move, chess960=True).fen().split()[0] == after


@pytest.mark.parametrize(
    ("fen", "move"),
    [
        ("4k3/8/8/8/8/8/8/rRK5 w Q - 0 1", "c1b1"),  # the rook was between the king and the rook on a1
        ("4k3/8/8/8/8/8/8/1RK2BR1 w KQ - 0 1", "c1g1"),
        ("4k3/8/8/8/8/8/8/RN2K3 w Q - 0 1", "e1a1"),  # the rook cannot pass b1
    ],
)
def test_castling_of_chess960_may_be_illegal(fen: str, move: str):
    assert move not in legal(at(fen, chess960=True))


def test_a_rook_that_is_not_the_outermost_is_named_by_its_file():
    position = at("4k3/8/8/8/8/8/8/1RKR2R1 w BD - 0 1", chess960=True)
    assert position.fen().split()[2] == "DQ"
    assert at(position.fen(), chess960=True).key() == position.key()
    outermost = at("4k3/8/8/8/8/8/8/1RKR2R1 w K - 0 1", chess960=True)
    assert outermost.key() == at("4k3/8/8/8/8/8/8/1RKR2R1 w G - 0 1", chess960=True).key()


# --- ends ---


def test_the_shortest_game_is_won_by_black():
    assert toys.after(START, "f2f3 e7e5 g2g4 d8h4").outcome() == Outcome(1)


@pytest.mark.parametrize(
    ("fen", "move", "outcome"),
    [
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "", Outcome(None)),  # stalemate
        ("6rk/6pp/8/6N1/8/8/8/K7 w - - 0 1", "g5f7", Outcome(0)),  # mate by a knight
        ("5bnr/4P1pk/6pp/8/8/8/8/K7 w - - 0 1", "e7f8n", Outcome(0)),
        ("5bnr/4P1pk/6pp/8/8/8/8/K7 w - - 0 1", "e7f8q", None),
        ("8/8/8/8/8/6k1/4p3/7K b - - 0 1", "e2e1r", Outcome(1)),
        ("8/8/8/8/8/6k1/4p3/7K b - - 0 1", "e2e1b", Outcome(None)),  # too little is left
        ("k7/8/1K6/8/8/8/8/7R w - - 98 80", "h1h2", None),
        ("k7/8/1K6/8/8/8/8/7R w - - 99 80", "h1h2", Outcome(None)),
        ("k7/8/1K6/8/8/8/8/7R w - - 99 80", "h1h8", Outcome(0)),  # mate goes before 50 moves
        ("k7/8/1K6/8/8/8/P7/7R w - - 99 80", "a2a3", None),
        ("k7/8/1K6/8/8/8/7b/7R w - - 99 80", "h1h2", None),
    ],
)
def test_a_game_ends_or_goes_on(fen: str, move: str, outcome: Outcome | None):
    assert at(fen, move).outcome() == outcome


@pytest.mark.parametrize(
    ("pieces", "is_dead"),
    [
        ("", True),
        ("B", True),
        ("n", True),
        ("BB", False),
        ("NN", False),
        ("Bn", False),
        ("P", False),
        ("r", False),
        ("q", False),
    ],
)
def test_a_game_ends_where_nobody_can_mate(pieces: str, is_dead: bool):
    rank = "".join(pieces).ljust(2, "1")
    assert (at(f"7k/8/8/{rank}6/8/8/8/7K w - - 0 1").outcome() == Outcome(None)) is is_dead


@pytest.mark.parametrize(("bishops", "is_dead"), [("B1b5", True), ("Bb6", False), ("B1B1b3", True)])
def test_bishops_on_squares_of_one_colour_cannot_mate(bishops: str, is_dead: bool):
    assert (at(f"7k/8/8/{bishops}/8/8/8/7K w - - 0 1").outcome() is not None) is is_dead


TO_AND_FRO = "g1f3 g8f6 f3g1 f6g8"


def test_the_third_occurrence_of_a_position_is_a_draw():
    twice = toys.after(START, f"{TO_AND_FRO} g1f3 g8f6 f3g1")
    assert twice.outcome() is None
    assert toys.after(twice, "f6g8").outcome() == Outcome(None)
    assert toys.after(twice, "h8g8").outcome() is None


def test_a_position_occurs_again_only_with_the_same_player_to_move():
    fen = "4k3/7p/8/8/8/8/7P/4K3 w - - 0 1"
    white = "e1e2 e8e7 e2d1 e7e8 d1e1"  # a triangle, after which Black is to move
    black = "e8e7 e1e2 e7d8 e2e1 d8e8"
    third = at(fen, f"{white} {black}")
    assert third.fen().split()[:4] == fen.split()[:4]
    assert third.outcome() is None
    assert toys.after(third, f"{white} {black}").outcome() == Outcome(None)


def test_a_position_occurs_again_only_with_the_same_rights():
    rooks = "h1g1 h8g8 g1h1 g8h8"
    twice = at("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", f"{rooks} {rooks}")
    assert twice.outcome() is None  # at first the kings could castle with these rooks
    assert toys.after(twice, "h1g1").outcome() is None
    assert toys.after(twice, "h1g1 h8g8").outcome() == Outcome(None)  # now without them for the third time
    assert at("r3k2r/8/8/8/8/8/8/R3K2R w Qq - 0 1", f"{rooks} {rooks}").outcome() == Outcome(None)


def test_a_position_occurs_again_only_with_the_same_en_passant():
    kings = "e1e2 e8e7 e2e1 e7e8"
    twice = at("4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1", f"d7d5 {kings} {kings}")
    assert twice.outcome() is None
    assert toys.after(twice, "e1e2").outcome() == Outcome(None)


def test_en_passant_that_is_illegal_makes_no_difference_to_a_position():
    kings = "a5a4 h8h7 a4a5 h7h8"
    assert at("7k/3p4/8/K3P2q/8/8/8/8 b - - 0 1", f"d7d5 {kings} {kings}").outcome() == Outcome(None)


# --- what the network sees ---


def planes_of(position: Chess) -> dict[str, np.ndarray]:
    planes = np.asarray(position.observe(), int)
    names = [f"{letter}{age}" for age in range(4) for letter in "PNBRQKpnbrqk="]
    names += [
        "own rooks",
        "other rooks",
        "en passant",
        *(f">={tens}0" for tens in range(1, 10)),
        "+1",
        "+2",
        "+4",
        "+8",
    ]
    return dict(zip(names, planes, strict=True))


def squares(plane: np.ndarray) -> str:
    return " ".join(f"{'abcdefgh'[column]}{row + 1}" for row, column in np.argwhere(plane).tolist())


def test_the_player_to_move_sees_the_board_from_their_own_side():
    white = planes_of(START)
    black = planes_of(toys.after(START, "e2e4"))
    assert (squares(white["K0"]), squares(white["k0"])) == ("e1", "e8")
    assert (squares(black["K0"]), squares(black["k0"])) == ("e1", "e8")  # mirrored, not rotated
    assert squares(black["p0"] - white["p0"]) == "e5 e7"
    assert (squares(white["own rooks"]), squares(black["other rooks"])) == ("a1 h1", "a8 h8")


def test_an_action_is_a_kind_of_move_of_a_square_as_the_player_sees_it():
    shape = (73, 8, 8)
    white = np.unravel_index(START.parse_action("e2e4"), shape)
    assert white == np.unravel_index(toys.after(START, "e2e4").parse_action("e7e5"), shape) == (1, 1, 4)
    assert np.unravel_index(START.parse_action("b1c3"), shape) == (56, 0, 1)
    promotion = at("1n5k/P7/8/8/8/8/8/7K w - - 0 1")
    assert np.unravel_index(promotion.parse_action("a7b8q"), shape) == (7, 6, 0)
    assert np.unravel_index(promotion.parse_action("a7b8n"), shape) == (66, 6, 0)


def test_earlier_positions_are_seen_as_long_as_they_can_come_again():
    planes = planes_of(toys.after(START, "g1f3 g8f6"))
    assert [squares(planes[f"N{age}"]) for age in range(4)] == ["b1 f3", "b1 f3", "b1 g1", ""]
    assert [squares(planes[f"n{age}"]) for age in range(4)] == ["f6 b8", "b8 g8", "b8 g8", ""]
    assert not planes_of(toys.after(START, "g1f3 g8f6 e2e4"))["P1"].any()


def test_positions_that_have_occurred_before_are_marked():
    planes = planes_of(toys.after(START, f"{TO_AND_FRO} g1f3"))
    assert [planes[f"={age}"].all() for age in range(4)] == [True, True, False, False]


@pytest.mark.parametrize("clock", [0, 9, 10, 37, 99])
def test_the_plies_without_progress_are_tens_and_the_rest_in_binary(clock: int):
    planes = planes_of(at(f"k7/8/1K6/8/8/8/8/7R w - - {clock} 80"))
    tens = sum(int(planes[f">={tens}0"].all()) for tens in range(1, 10))
    assert 10 * tens + sum(value * int(planes[f"+{value}"].all()) for value in (1, 2, 4, 8)) == clock


def test_en_passant_is_seen():
    assert squares(planes_of(at("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1"))["en passant"]) == "d6"


# --- texts ---


@pytest.mark.parametrize(
    ("fen", "san", "name"),
    [
        (START.fen(), "Nf3", "g1f3"),
        (START.fen(), "e4", "e2e4"),
        (START.fen(), "e2-e4", "e2e4"),
        ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "exd5", "e4d5"),
        ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "ed5", "e4d5"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "exd6", "e5d6"),
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "O-O", "e1g1"),
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "0-0-0", "e1c1"),
        ("7k/4P3/8/8/8/8/8/4K3 w - - 0 1", "e8=Q+", "e7e8q"),
        ("7k/4P3/8/8/8/8/8/4K3 w - - 0 1", "e8N", "e7e8n"),
        ("6k1/8/8/8/8/8/3K4/R6R w - - 0 1", "Rae1", "a1e1"),  # pieces of the same kind are told apart by the file
        ("6k1/R7/8/8/8/8/8/R2K4 w - - 0 1", "R1a4", "a1a4"),
        ("2Q1Q3/7k/8/8/2Q5/8/8/3K4 w - - 0 1", "Qc8e6", "c8e6"),
        ("k7/8/1K6/8/8/8/8/7R w - - 0 1", "Rh8#", "h1h8"),
        ("4k3/8/8/8/8/2p5/1B6/4K3 w - - 0 1", "Bxc3", "b2c3"),
    ],
)
def test_moves_are_read_as_people_write_them(fen: str, san: str, name: str):
    position = at(fen)
    assert position.action_name(position.parse_action(san)) == name
    assert parse_spelling(position, san) == position.parse_action(san)
    assert position.parse_action(position.san(position.parse_action(san))) == position.parse_action(name)


def test_a_bishop_and_a_pawn_of_file_b_are_told_apart_by_case():
    position = at("4k3/8/8/8/8/2p5/1P1B4/4K3 w - - 0 1")
    assert [position.action_name(position.parse_action(text)) for text in ("Bxc3", "bxc3")] == ["d2c3", "b2c3"]
    assert [parse_spelling(position, text) for text in ("Bxc3", "bxc3")] == list(
        map(position.parse_action, ("d2c3", "b2c3"))
    )


def test_a_move_that_may_be_two_is_refused_with_both():
    with pytest.raises(ValueError, match=r"^expected one of Rae1 Rhe1, got 'Re1'$"):
        at("6k1/8/8/8/8/8/3K4/R6R w - - 0 1").parse_action("Re1")


def test_a_move_that_is_not_legal_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"^expected one of h1h2 h1g1 h1g2, got 'Nf3'$"):
        at("7k/7p/8/8/8/8/8/7K w - - 0 1").parse_action("Nf3")


@pytest.mark.parametrize("fen", [*PERFT, "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 12", "4k3/8/8/8/8/8/8/4K2R b K - 99 9999"])
def test_fen_is_read_as_it_is_written(fen: str):
    assert at(fen).fen() == fen


def test_a_move_after_fen_that_is_not_legal_is_refused_with_its_number():
    with pytest.raises(ValueError, match=r"^move 1: expected one of .*, got 'e2e5'$"):
        START.from_text("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1 moves e2e5")


def test_the_set_ups_of_chess960_have_their_usual_numbers():
    start = Chess(chess960=True)
    assert start.set_up(518).key() == start.key() == START.key()
    assert start.set_up(0).fen().startswith("bbqnnrkr/")
    assert start.set_up(959).fen().startswith("rkrnnqbb/")
    assert len({start.set_up(number).key() for number in range(start.setups)}) == 960


def test_all_set_ups_of_chess960_are_those_of_python_chess():
    chess = pytest.importorskip("chess")
    start = Chess(chess960=True)
    for number in range(960):
        assert start.set_up(number).fen() == chess.Board.from_chess960_pos(number).fen()


def test_pgn_of_chess960_begins_with_its_fen():
    lines = [b'[Variant "Chess960"]\n', f'[FEN "{START.fen()}"]\n'.encode(), b"1. Nf3 d5 2. g3 d4 3. Bg2 d3 4. O-O *\n"]
    (game,) = pgn_games(lines, game=load_game("chess(chess960=True)"))
    assert game.fields()["moves"][-1] == "e1h1"
    with pytest.raises(ValueError, match=r'expected a game of chess, got one with the tag Variant "Chess960"'):
        next(pgn_games(lines, game=load_game("chess"))).fields()


def test_the_king_of_chess960_may_begin_elsewhere():
    fen = "4k3/8/8/8/8/8/8/3K3R w K - 0 1"
    assert at(fen, chess960=True).fen() == fen


@pytest.mark.parametrize("moves", ["", "e2e4 e7e5 g1f3", f"e2e4 e7e5 {TO_AND_FRO} f1b5", "d2d4 g8f6 d4d5 e7e5"])
def test_the_text_of_a_position_holds_what_can_come_again(moves: str):
    position = toys.after(START, moves)
    assert START.from_text(str(position)).key() == position.key()


def test_a_start_may_be_moves_as_people_write_them():
    position = START.from_text("1. e4 e5 2. Nf3 Nc6 3. Bb5")
    assert position.fen().startswith("r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/")


PGN = """[Event "A test"]
[White "Ann"]
[Black "Bo"]
[Result "1-0"]

1. e4 e5 2. Bc4 {the bishop} Nc6 3. Qh5 Nf6?? (3... g6 4. Qf3) 4. Qxf7# 1-0

[Event "Another"]
[White "Bo"]
[Black "Ann"]
[FEN "r3k2r/1P6/8/3pP3/8/8/8/R3K2R w KQkq d6 0 20"]
[Result "1/2-1/2"]

20. exd6 O-O 21. b8=Q Rxa1+ 22. Ke2 Rxh1 1/2-1/2
"""


def test_pgn_of_people_is_read():
    game = load_game("chess")
    first, second = (each.fields() for each in pgn_games([line.encode() for line in PGN.splitlines(True)], game=game))
    assert first["moves"] == ["e2e4", "e7e5", "f1c4", "b8c6", "d1h5", "g8f6", "h5f7"]
    assert (first["winner"], first["end"]) == ("first", "rule")
    assert second["moves"] == ["e5d6", "e8g8", "b7b8q", "a8a1", "e1e2", "a1h1"]
    assert (second["winner"], second["end"]) == ("draw", "adjudicated")


@pytest.mark.parametrize(
    ("fen", "name", "sentence"),
    [
        (START.fen(), "e4e5", "No piece of yours is on e4."),
        (START.fen(), "e7e5", "No piece of yours is on e7."),
        (START.fen(), "d1d2", "A piece of your own is on d2."),
        (START.fen(), "e2e5", "e2 to e5 is no move of a pawn."),
        (START.fen(), "g1g3", "g1 to g3 is no move of a knight."),
        ("3rk3/8/8/8/8/8/3R4/3K4 w - - 0 1", "d2e2", "The king would be in check."),
        ("4r1k1/8/8/8/8/8/P7/4K3 w - - 0 1", "a2a3", "The king is in check, and stays so."),
        ("4k3/8/8/8/8/8/8/4K2R w - - 0 1", "e1g1", "The king or this rook has moved, so they cannot castle."),
        ("4r1k1/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "The king is in check, so it cannot castle."),
        ("5rk1/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "The king cannot castle: a piece is in the way, or .*"),
    ],
)
def test_a_click_that_is_no_legal_move_is_explained(fen: str, name: str, sentence: str):
    position = at(fen)
    meant = [action for action in range(position.num_actions) if position.action_name(action) == name]
    assert meant
    for action in meant:
        assert position.why_illegal(action) == sentence or sentence.endswith(".*")
        assert position.why_illegal(action).startswith(sentence.removesuffix(".*"))


@pytest.mark.parametrize(
    ("fen", "first", "second"),
    [
        ("rnbqkbnr/8/PPPPPPPP/8/8/8/8/RNBQKBNR w KQkq - 0 1", "♟\ufe0e" * 8, ""),
        ("r1b1kb1r/pppppppp/8/8/8/8/PPPPPP2/RNBQKBNR b KQkq - 0 1", "♛♞♞", "♙♙"),
        ("4r1k1/8/8/8/8/8/8/4K2R w K - 0 1", "♛♜♝♝♞♞" + "♟\ufe0e" * 8 + ", in check", "♕♖♗♗♘♘♙♙♙♙♙♙♙♙"),
        # a pawn of White has become a second queen
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPP2/RNBQKBNQ w Qkq - 0 1", "", "♖♙"),
    ],
)
def test_what_was_taken_and_check_are_shown_beside_the_players(fen: str, first: str, second: str):
    assert at(fen).scoreboard() == (first, second)


def test_nothing_is_shown_beside_the_players_at_the_beginning_and_check_without_captures():
    assert START.scoreboard() == ("", "")
    assert toys.after(START, "e2e4 f7f6 d1h5").scoreboard() == ("", "in check")


@pytest.mark.parametrize(
    ("fen", "marked"),
    [
        ("4r1k1/8/8/8/8/8/8/4K2R w K - 0 1", [("e1", "in check")]),
        ("4k3/8/8/8/8/8/8/K3R3 b - - 0 1", [("e8", "in check")]),
        ("4k3/8/8/8/8/8/8/K2R4 b - - 0 1", []),
        ("R5k1/5ppp/8/8/8/8/8/K7 b - - 0 1", [("g8", "in check")]),  # which is mate
    ],
)
def test_the_king_in_check_is_marked_on_the_board(fen: str, marked: list[tuple[str, str]]):
    board = board_of(at(fen))
    assert board is not None
    assert list(board.marks) == marked


def test_the_board_has_figures_for_both():
    lines = str(START).splitlines()
    assert (lines[0], lines[7]) == (" 8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜", " 1 ♖ ♘ ♗ ♕ ♔ ♗ ♘ ♖")


# --- usual mistakes of chess programs, planted into the rules, and the test that finds each ---

FOUND_BY: dict[str, Callable[..., None]] = {
    "en passant may leave the king attacked along the rank": test_moves_are_legal_or_not,
    "en passant is possible on later moves": test_a_pawn_is_captured_en_passant_only_at_once,
    "en passant leaves the captured pawn": test_a_pawn_is_captured_en_passant_only_at_once,
    "en passant is noted where it is illegal": test_en_passant_is_noted_only_where_it_is_legal,
    "castling through check": test_moves_are_legal_or_not,
    "castling out of check": test_moves_are_legal_or_not,
    "castling into check": test_moves_are_legal_or_not,
    "castling although the rook covered the king": test_castling_of_chess960_may_be_illegal,
    "no castling if the rook passes an attacked square": test_moves_are_legal_or_not,
    "castling over a piece beside the rook": test_moves_are_legal_or_not,
    "rights stay after the rook is captured": test_rights_to_castle_are_lost,
    "rights stay after the rook moves": test_rights_to_castle_are_lost,
    "rights stay after the king moves": test_rights_to_castle_are_lost,
    "a position is repeated with other rights": test_a_position_occurs_again_only_with_the_same_rights,
    "a position is repeated with another en passant": test_a_position_occurs_again_only_with_the_same_en_passant,
    "a position is repeated with the other player to move": (
        test_a_position_occurs_again_only_with_the_same_player_to_move
    ),
    "the second occurrence is a draw": test_the_third_occurrence_of_a_position_is_a_draw,
    "a move of a pawn does not reset the clock": test_a_game_ends_or_goes_on,
    "a capture does not reset the clock": test_a_game_ends_or_goes_on,
    "mate with the hundredth ply is a draw": test_a_game_ends_or_goes_on,
    "stalemate is a loss": test_a_game_ends_or_goes_on,
    "mate is won by the player who is mated": test_the_shortest_game_is_won_by_black,
    "two knights, or two bishops, are a draw": test_a_game_ends_where_nobody_can_mate,
    "promotion to a queen only": test_moves_are_legal_or_not,
    "captures that promote to less go the other way": test_moves_are_legal_or_not,
    "a pinned piece leaves its line": test_moves_are_legal_or_not,
    "a pinned piece cannot move along its line": test_moves_are_legal_or_not,
    "a check may be ignored": test_moves_are_legal_or_not,
    "the king steps back on the line of its attacker": test_moves_are_legal_or_not,
    "a pawn jumps over a piece": test_moves_are_legal_or_not,
    "a pawn moves two squares onto a piece": test_moves_are_legal_or_not,
    "a pawn moves two squares from the third rank": test_moves_are_legal_or_not,
    "a pawn captures straight ahead": test_moves_are_legal_or_not,
    "knights jump round the edge": test_moves_are_legal_or_not,
    "Black's board is rotated": test_the_player_to_move_sees_the_board_from_their_own_side,
}


def run(test: Callable[..., None]) -> None:
    """Call a test as pytest does, with each row of its table of parameters, if it has one."""
    tables = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    names, rows = tables[0].args if tables else ((), [()])
    for row in rows:
        test(**dict(zip(names, row, strict=True)))


def play_as(module, monkeypatch) -> None:
    """Have the tests of this file play the game of another module, which is not compiled."""
    here = sys.modules[__name__]
    monkeypatch.setattr(here, "Chess", lambda **options: as_plain_python(module, **options))
    monkeypatch.setattr(here, "START", as_plain_python(module))


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


if __name__ == "__main__":
    found = compare_games(int(sys.argv[1]), seed=3)
    print("\n".join(f"{found[name]:8d} {name}" for name in sorted(found)))
    print(f"{time.process_time():8.0f} CPU seconds")
