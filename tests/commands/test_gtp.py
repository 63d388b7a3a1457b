"""gtp: a process that controllers talk to; whole games between engines, and against GNU Go."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plyzero.kits.engines.engine import Engine
from plyzero.kits.engines.graphics import COLOURS
from plyzero.kits.engines.programs.program import Command, Program
from plyzero.kits.engines.programs.protocols import Gtp
from plyzero.play.players import find_player
from plyzero.rules.catalog import load_game
from tests.helpers.cli import shown

GNUGO = Path("/usr/games/gnugo")


def test_moves_are_points_if_that_is_asked_for_and_nothing_after_quit_is_read():
    command = ("gtp", "connect-four", "--player", "random", "--coordinates", "points")
    answer = shown(*command, text="1 gogui-rules_legal_moves\n2 quit\n3 name\n")
    assert answer == "=1 A1 B1 C1 D1 E1 F1 G1\n\n=2\n\n"


@pytest.mark.slow
def test_an_analysis_goes_on_until_a_line_arrives():
    command = [sys.executable, "-m", "plyzero", "gtp", "tic-tac-toe", "--player", "mcts:50"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        try:
            engine.stdin.write("8 kata-analyze 5\n")
            engine.stdin.flush()
            assert engine.stdout.readline() == "=8\n"
            info = r"info move \w\d visits \d+ winrate [01]\.\d+ prior 0\.\d+ order 0 pv "
            assert all(re.match(info, engine.stdout.readline()) for _ in range(5))
            engine.stdin.write("\n9 quit\n")
            engine.stdin.flush()
            *lines, end, last, nothing = engine.stdout.read().split("\n")[:-1]
            assert (end, last, nothing) == ("", "=9", "")
            assert all(line.startswith("info ") for line in lines)
        finally:
            engine.kill()


def check_that_they_agree(black: Callable[[str], str], white: Callable[[str], str]) -> None:
    """Let two engines, functions from a command to its response, play a whole game."""
    words = 0
    while legal := black("gogui-rules_legal_moves"):
        assert white("gogui-rules_legal_moves") == legal
        side = black("gogui-rules_side_to_move")
        mover, other = (black, white) if side == "black" else (white, black)
        word = mover(f"genmove {side}")
        assert word in legal.split()
        other(f"play {side} {word}")
        words += 1
    assert words >= 5
    assert black("gogui-rules_board") == white("gogui-rules_board")
    assert black("final_score") == white("final_score")
    assert re.fullmatch(r"[BW]\+\d*|0", black("final_score"))  # with points where the game counts them


@pytest.mark.parametrize(
    ("name", "points"),
    [("tic-tac-toe", False), ("othello(size=6)", False), ("breakthrough", True), ("connect-four", True)],
)
def test_two_engines_of_one_process_play_a_whole_game_and_agree(name: str, points: bool):
    game, rng = load_game(name), np.random.default_rng(0)

    def begun(player: str) -> Callable[[str], str]:
        engine = Engine(game, find_player(player, game, rng), points=points, rng=rng)
        return lambda command: re.fullmatch(r"= ?(.*)\n\n", engine.answer(command), re.DOTALL)[1]

    check_that_they_agree(begun("mcts:20"), begun("random"))


@pytest.mark.slow
@pytest.mark.skipif(not GNUGO.exists(), reason="GNU Go is not installed (Debian package gnugo)")
def test_a_game_against_gnu_go_is_legal_for_both_and_has_one_score():
    position = load_game("go(size=9)").start
    command = f"{sys.executable} -m plyzero gtp go(size=9) --player mcts:50"
    rules = "--chinese-rules --positional-superko --capture-all-dead"
    ours, gnugo = begun(command), begun(f"{GNUGO} --mode gtp --level 1 --seed 1 {rules}")
    while position.outcome() is None:
        side = COLOURS[position.to_play]
        theirs = {*gnugo.asked(f"all_legal {side}").lower().split(), "pass"}
        assert set(ours.asked("gogui-rules_legal_moves").split()) == theirs
        mover, other = (ours, gnugo) if position.to_play == 0 else (gnugo, ours)
        word = mover.asked(f"genmove {side}").lower()
        other.asked(f"play {side} {word}")
        position = position.play(position.parse_action(word))
    assert ours.asked("final_score") == gnugo.asked("final_score")  # points and all


def begun(command: str) -> Gtp:
    program = Program(Command.parse(command).words, directory=".", memory=4 << 30)
    gtp = Gtp(program, load_game("go(size=9)"), {}, seconds=60)
    gtp.begin()
    gtp.new_game()
    return gtp


@pytest.mark.slow
def test_openspiels_bot_plays_with_the_engine():
    pyspiel = pytest.importorskip("pyspiel")
    gtp = pytest.importorskip("open_spiel.python.bots.gtp")
    game = pyspiel.load_game("connect_four")
    state = game.new_initial_state()
    command = [sys.executable, "-m", "plyzero", "gtp", "openspiel:connect_four", "--player", "mcts:20"]
    bot = gtp.GTPBot(game, command, player_colors=("b", "w"))
    assert bot.name == "plyzero"
    while not state.is_terminal():
        player = state.current_player()
        if player == 0:
            action = bot.step(state)
        else:
            action = state.legal_actions()[0]
            bot.inform_action(state, player, action)
        state.apply_action(action)
    winner = {1.0: "b+", -1.0: "w+", 0.0: "0"}[state.returns()[0]]
    assert bot.gtp_cmd("final_score") == winner
    bot.close()
