"""The Universal Chess Interface: what a controller sends and gets, and a public controller that plays with it."""

import re
import sys

import numpy as np
import pytest

from plyzero.kits.engines.programs.protocols import parse_uci, uci_name
from plyzero.kits.engines.text_engine import play_by_lines
from plyzero.kits.engines.uci import Engine
from plyzero.lines import ArrivingLines
from plyzero.play.players import find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import roll_dice


def answers(game: str, *commands: str, player: str = "mcts:40") -> list[str]:
    """Return the lines that an engine answers to commands, which it gets one after the other."""
    spec = load_game(game)
    written: list[str] = []
    lines = ArrivingLines(iter(commands))
    Engine(spec, find_player(player, spec, np.random.default_rng(0)), lines, written.append).run()
    return written


def move_of(lines: list[str]) -> str:
    found = [line for line in lines if line.startswith("bestmove")]
    return found[-1].split()[1]


def test_it_introduces_itself_with_the_variant_and_the_options():
    lines = answers("breakthrough", "uci", "isready")
    assert lines[0].startswith("id name plyzero ")
    assert "option name UCI_Variant type combo default breakthrough var breakthrough" in lines
    assert "option name Simulations type spin default 40 min 0 max 10000000" in lines
    assert lines[-2:] == ["uciok", "readyok"]


def test_chess960_is_an_option_of_its_own():
    commands = "setoption name UCI_Chess960 value true", "setoption name UCI_Chess960 value false"
    lines = answers("chess(chess960=True)", "uci", *commands, player="random")
    assert "option name UCI_Chess960 type check default true" in lines
    assert not any("UCI_Variant" in line for line in lines)
    assert lines[-1] == "info string UCI_Chess960 cannot be 'false'"


def test_it_takes_a_win_and_says_in_how_many_moves():
    lines = answers("tic-tac-toe", "position startpos moves a1 a3 b1 b3", "go nodes 100")
    assert move_of(lines) == "c1"
    info = next(line for line in lines[::-1] if line.startswith("info depth"))
    assert re.search(r"score mate 1 wdl 1000 0 0 pv c1$", info)


def test_a_loss_is_a_negative_number_of_moves():
    lines = answers("tic-tac-toe", "position startpos moves a1 b3 b2 c3 a3", "go nodes 400")  # c1 and a2: a fork
    info = next(line for line in lines[::-1] if line.startswith("info depth"))
    assert "score mate -1 wdl 0 0 1000" in info


@pytest.mark.parametrize(
    "go",
    [
        "go",
        "go depth 3",
        "go nodes 5",
        "go movetime 20",
        "go wtime 900 btime 20 winc 0 binc 10",
        "go btime 900 movestogo 3",
    ],
)
def test_every_limit_gives_a_legal_move(go: str):
    lines = answers("breakthrough", "isready", "position startpos moves a2a3", go)
    after = load_game("breakthrough").start
    after = after.play(parse_uci(after, "a2a3"))
    assert move_of(lines) in {uci_name(after, action) for action in after.legal_actions()}


def test_an_infinite_search_goes_on_until_it_is_stopped_and_answers_meanwhile():
    lines = answers("tic-tac-toe", "position startpos", "go infinite", "isready", "stop", "isready", "quit")
    assert lines.index("readyok") < next(i for i, line in enumerate(lines) if line.startswith("bestmove"))
    assert lines[-1] == "readyok"


def test_commands_that_arrive_during_a_search_are_answered_after_it():
    lines = answers("tic-tac-toe", "position startpos", "go nodes 3000", "position startpos moves b2", "go nodes 2")
    assert sum(line.startswith("bestmove") for line in lines) == 2


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("dance", "unknown command 'dance'"),
        ("position somewhere", "expected position startpos or position fen, got 'somewhere'"),
        ("position startpos moves z9", "expected one of a1 b1"),
        ("position fen 8/8 w", "expected a board"),
        ("setoption name Hash value 3", "there is no option 'Hash'"),
        ("setoption name Simulations value many", "Simulations cannot be 'many'"),
        ("setoption name UCI_Variant value chess", "UCI_Variant cannot be 'chess'"),
    ],
)
def test_what_is_not_understood_is_said_and_the_engine_goes_on(command: str, says: str):
    lines = answers("tic-tac-toe", command, "position startpos", "go nodes 4")
    assert lines[0].startswith("info string ")
    assert says in lines[0]
    assert move_of(lines) in load_game("tic-tac-toe").start.legal_names().split()


def test_no_move_is_made_where_none_can_be_made():
    over = "position startpos moves a1 a3 b1 b3 c1"
    for commands in ((over, "go"), ("position startpos moves zz", "go")):
        assert answers("tic-tac-toe", *commands)[-1] == "bestmove 0000"


def test_an_option_changes_the_simulations():
    lines = answers("tic-tac-toe", "setoption name Simulations value 7", "position startpos", "go")
    assert "nodes 7 " in next(line for line in lines[::-1] if line.startswith("info depth"))


def test_rolls_are_among_the_moves():
    start = load_game("backgammon").start
    assert answers("backgammon", "position startpos", "go nodes 4") == ["info string a roll is due", "bestmove 0000"]
    position, (roll,) = roll_dice(start, np.random.default_rng(3))
    lines = answers("backgammon", f"position startpos moves {uci_name(start, roll)}", "go nodes 4")
    assert move_of(lines) in position.legal_names().split()


def test_an_agent_moves_too_and_one_that_fails_says_why():
    lines = answers("tic-tac-toe", "position startpos moves a1", "go", player="greedy")
    assert move_of(lines) != "0000"


# --- lines of text ---


def text_answers(*lines: str) -> list[str]:
    game, written = load_game("tic-tac-toe"), []
    play_by_lines(game, find_player("greedy", game, np.random.default_rng(0)), lines, written.append)
    return written


def test_moves_are_read_and_printed_line_by_line():
    assert text_answers("new", "a1", "a3", "b1", "b3", "go") == ["c1"]
    assert text_answers("a1", "new", "b1", "a3", "a1", "b3", "go", "new", "a1", "a3", "b1", "b3", "go") == ["c1", "c1"]


# --- a public controller ---


@pytest.mark.slow
def test_python_chess_plays_two_engines_to_the_end():
    chess = pytest.importorskip("chess", reason="pip install chess (GPL, a tool of this test alone)")
    engines = pytest.importorskip("chess.engine")
    game = load_game("breakthrough")

    class Breakthrough(chess.Board):
        """The rules as the controller knows them, written apart from those of the game."""

        uci_variant = "breakthrough"

        def generate_legal_moves(self, *_):
            step = 8 if self.turn == chess.WHITE else -8
            for square in self.pieces(chess.PAWN, self.turn):
                for side in (-1, 0, 1):
                    to = square + step + side
                    column = chess.square_file(square) + side
                    piece = self.color_at(to)
                    if column in range(8) and (piece is None or (side and piece != self.turn)):
                        yield chess.Move(square, to)

        generate_pseudo_legal_moves = generate_legal_moves

        def is_legal(self, move):
            return move in list(self.generate_legal_moves())

        def is_over(self):
            last = chess.BB_RANK_8 & self.pieces_mask(chess.PAWN, chess.WHITE)
            first = chess.BB_RANK_1 & self.pieces_mask(chess.PAWN, chess.BLACK)
            return bool(last or first) or not self.pieces_mask(chess.PAWN, self.turn)

    command = [sys.executable, "-m", "plyzero", "uci", "breakthrough", "--player", "mcts:30"]
    with (
        engines.SimpleEngine.popen_uci(command, timeout=60) as one,
        engines.SimpleEngine.popen_uci(command, timeout=60) as other,
    ):
        for number in range(4):
            board = Breakthrough(game.start.fen())
            position = game.start
            while not board.is_over():
                engine = (one, other)[(board.ply() + number) % 2]
                played = engine.play(board, engines.Limit(nodes=30), game=number, info=engines.INFO_ALL)
                assert board.is_legal(played.move)
                position = position.play(parse_uci(position, played.move.uci()))
                board.push(played.move)
                assert position.fen().split()[:2] == board.fen().split()[:2]
            assert position.outcome().winner == (0 if board.turn == chess.BLACK else 1)


CHESS_GAMES = {
    "chess": (("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 8), ("7k/8/5K2/8/8/8/8/6R1 w - - 0 1", 3)),
    "chess(chess960=True)": (
        ("bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq - 0 1", 8),
        ("2rkr3/2p1p3/8/8/8/8/8/RK6 w Q - 0 1", 1),  # the castling mates
    ),
}
"""The positions in which games of two engines begin, and their plies, the last of which mates in the second."""

CHESS_PLAYERS = {"chess": "bot", "chess(chess960=True)": "mcts:400"}
"""Pure MCTS finds a mate in one, but a bundled bot also the shortest of several moves."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CHESS_GAMES)
def test_python_chess_plays_two_engines_of_chess(name: str):
    chess = pytest.importorskip("chess", reason="pip install chess (GPL, a tool of this test alone)")
    engines = pytest.importorskip("chess.engine")
    game = load_game(name)
    command = [sys.executable, "-m", "plyzero", "uci", name, "--player", CHESS_PLAYERS[name]]
    with (
        engines.SimpleEngine.popen_uci(command, timeout=120) as one,
        engines.SimpleEngine.popen_uci(command, timeout=120) as other,
    ):
        assert ("UCI_Chess960" in one.options) is ("960" in name)
        for number, (fen, plies) in enumerate(CHESS_GAMES[name]):
            board = chess.Board(fen, chess960="960" in name)
            position = game.start.from_text(fen)
            for ply in range(plies):
                played = (one, other)[ply % 2].play(board, engines.Limit(nodes=400), game=number)
                assert board.is_legal(played.move)
                position = position.play(parse_uci(position, board.uci(played.move)))
                board.push(played.move)
                assert position.fen() == board.fen()
        assert board.is_checkmate()
        assert position.outcome().winner == (0 if board.outcome().winner == chess.WHITE else 1)
