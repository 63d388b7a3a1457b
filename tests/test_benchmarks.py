"""The benchmarks run, and count what they should: their figures are made by hand."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import guard, inference, openspiel_games, soak, speed, store
from benchmarks.strength import exams, ladder, perfect, relearn, score
from benchmarks.strength.openings import OthelloSolver
from benchmarks.strength.solver import Solver
from games.backgammon import Backgammon
from plyzero.play.match import play_match
from plyzero.play.players import RandomPlayer, find_player
from plyzero.play.ratings import rate
from plyzero.rules.catalog import load_game
from plyzero.rules.random_game import random_game
from plyzero.run.metrics import read_lines
from plyzero.run.models import list_models
from plyzero.run.records import Games, check_games
from plyzero.run.segments import list_segments
from tests.helpers import toys
from tests.helpers.cli import plyzero
from tests.helpers.runs import SMALL, play_segment, small_run
from tests.helpers.toys import move_values


def test_made_up_games_are_as_a_worker_makes_them():
    games = Games.concatenate(store.play_games(5, seed=0))
    check_games(games, 65)
    assert 0.1 < games.positions["full"].mean() < 0.4
    assert len(set(games.games["id"])) == 5


@pytest.mark.slow
def test_store_benchmark_counts_every_game_once(tmp_path: Path):
    report = store.measure_writing(tmp_path / "r", store.play_games(20, seed=0), writers=1, seconds=1.0)
    assert report["games_written"] == report["games_read_once"] == report["games_read"] > 0
    assert report["acknowledged_per_second"] > 0
    assert report["segment_bytes_per_position"] < report["journal_bytes_per_position"]


def test_an_evaluator_is_compared_with_one_network_and_local_inference_with_two():
    rates = {case: inference.Rates([50.0, 100.0], [10.0, 10.0]) for case in inference.CASES}
    rates[inference.Case("alone", 2)] = inference.Rates([100.0, 200.0], [20.0, 20.0])
    trips = {
        name: inference.Trips(np.full(10, ms / 1000), ms / 2000) for name, ms in zip("abcd", (5, 1, 7, 8), strict=True)
    }
    page = inference.section("a game", trips, rates)
    assert "| b | 1.00 | **1.00** | 1.00 | 0.50 |" in page
    assert "takes 2.00 ms longer" in page
    share = {line.partition(" | ")[0]: line.split(" | ")[2:] for line in page.splitlines() if "workers: 4" in line}
    assert share["| one evaluator, --wait-ms 0, workers: 4"][0] == "**100.0** (100.0 to 100.0) %"
    assert share["| local inference, workers: 4"][0::2] == ["**50.0** (50.0 to 50.0) %", "**50.0** (50.0 to 50.0) % |"]


def test_sampling_benchmark_fills_the_window():
    report = store.measure_sampling(store.play_games(5, seed=0), window=500, slices=1)
    assert 500 <= report["window"] < 1000
    assert report["per_second"] > 0


@pytest.mark.slow
def test_a_short_soak_with_kills_finds_everything_in_order(tmp_path: Path, monkeypatch, capsys):
    options = [part for option in SMALL for part in ("-o", option)]
    arguments = ["--run", str(tmp_path / "r"), "--minutes", "0.4", "--workers", "2", "--game", "tic-tac-toe", *options]
    monkeypatch.setattr(sys, "argv", ["soak.py", *arguments])
    monkeypatch.setattr(soak, "WORKER_KILL_SECONDS", (2.0, 4.0))
    monkeypatch.setattr(soak, "TRAINER_KILL_SECONDS", (10.0, 12.0))
    monkeypatch.setattr(soak, "HELD_OUT_SECONDS", 5.0)
    assert soak.main() == 0
    report = json.loads((tmp_path / "r" / "soak.json").read_text())
    assert all(report["holds"].values())
    assert min(report["kills"].values()) > 0
    assert np.isfinite(report["held_out"]["newest"]["policy"])
    assert len([*read_lines(tmp_path / "r" / "soak.jsonl")]) >= 2


def test_a_process_that_is_asked_to_stop_has_a_handler_first():
    code = "import signal, time; time.sleep(0.5); signal.signal(signal.SIGTERM, lambda *_: exit(0)); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        assert not soak.handles_sigterm(process.pid)
        while not soak.handles_sigterm(process.pid):
            time.sleep(0.05)
        process.terminate()
    assert process.returncode == 0
    assert not soak.handles_sigterm(process.pid)


def test_the_table_of_openspiels_games_is_continued_where_it_was_stopped(tmp_path: Path, monkeypatch):
    page = tmp_path / "page.md"
    verdicts = {
        "openspiel:nim": ("all 15 hold", "100"),
        "openspiel:tic_tac_toe": openspiel_games.verdict("openspiel:tic_tac_toe", 1),
        "openspiel:quoridor": openspiel_games.verdict("openspiel:quoridor(board_size=3)", 5),
    }
    monkeypatch.setattr(openspiel_games, "verdict", lambda name, seconds: verdicts.pop(name))
    monkeypatch.setattr(sys, "argv", ["openspiel_games.py", "--write", str(page)])
    for games in (["nim"], ["nim", "tic_tac_toe"], ["nim", "quoridor", "tic_tac_toe"]):
        monkeypatch.setattr("plyzero.rules.openspiel.playable_games", lambda names=games: dict.fromkeys(names))
        openspiel_games.main()
    nim, tic_tac_toe, quoridor = page.read_text().splitlines()[-3:]
    assert nim.startswith(f"| {load_game('openspiel:nim').identity} | all 15 hold | 100 | 40x1x1 | 29 | 0 | ")
    assert re.search(r"openspiel:tic_tac_toe v\d+ \| all 17 hold \| \d+ \| 3x3x3 \| 9 \| 7 \| ", tic_tac_toe)
    assert "| `equal_observations_equal_futures` does not hold: only the first has the legal actions" in quoridor


def test_the_cases_of_the_speed_page_are_commands_that_exist():
    for arguments in speed.CASES.values():
        done = plyzero("bench", *arguments, "--seconds", "0")
        assert (done.returncode, "--seconds" in done.stderr) == (2, True), done.stderr


def test_the_games_of_a_run_are_learned_again_with_other_settings(tmp_path: Path):
    source = small_run(tmp_path / "source")
    for number in range(2):  # 200 positions without a model, whose passes are fixed, and 200 with one
        play_segment(source, sequence=number, fence=number, step=number)
    counted = {}
    for ratio in (2, 8):
        run = small_run(tmp_path / f"ratio {ratio}", "tic-tac-toe", f"trainer.replay_ratio={ratio}")
        counted[ratio], positions = relearn.relearn(source, run)
        assert len(list_models(run.models)) == 1
        assert positions == sum(name.full for name in list_segments(source.segments)) >= 400
    batch = source.settings.trainer.batch_size
    assert counted[8] - counted[2] == pytest.approx((positions - 200) * (8 - 2) / batch, abs=1)


def test_the_score_is_the_share_of_best_moves_in_all_and_by_ply(tmp_path: Path):
    class FirstColumn:
        def choose_all(self, positions):
            return [position.legal_actions()[0] for position in positions]

    path = tmp_path / "exam.txt"
    path.write_text("- 1 1 -1 -1 -1 -1 -1\n44 0 1 0 0 0 0 0\n11111144 . 0 0 -1 0 0 0\n22222211 1 . 0 0 0 0 0\n")
    game = load_game("connect-four")
    exam = exams.read_exam(path, game)
    assert [(each.plies, sorted(each.best), each.value) for each in exam] == [
        (0, [0, 1], 1),
        (2, [1], 1),
        (8, [1, 2, 4, 5, 6], 0),
        (8, [0], 1),
    ]
    chosen = score.choices(FirstColumn(), exam)
    right = np.array([action in each.best for action, each in zip(chosen, exam, strict=True)])
    shares = score.by_ply(game, exam[:3], right[:3])
    assert (shares["all"]["mean"], shares["all"]["positions"]) == (0.6667, 3)
    assert shares["plies 0 to 7"]["mean"] == 0.5
    assert score.mean(np.ones(100, bool))["low"] == pytest.approx(0.963, abs=1e-3)
    assert score.mean(np.array([0.0, 2.0] * 50))["low"] == pytest.approx(1 - 1.96 / 10)


@pytest.mark.parametrize("name", ["othello(size=6)", "connect-four(columns=4, rows=4)"])
def test_the_solver_finds_what_exhaustive_search_finds(name: str):
    game = load_game(name)
    solver = Solver(game.start)
    for seed in range(20):
        played = random_game(game.start, np.random.default_rng(seed))
        position = played.positions[-6]
        assert solver.move_values(position) == move_values(position)


def test_the_solver_of_othello_finds_what_the_general_one_finds():
    game = load_game("othello(size=6)")
    fast, general = OthelloSolver(), Solver(game.start)
    for seed in range(20):
        position = random_game(game.start, np.random.default_rng(seed)).positions[-9]
        assert fast.move_values(position) == general.move_values(position)


def test_every_position_of_tic_tac_toe_is_asked_and_its_start_is_a_draw():
    exam = exams.find_exam("all", load_game("tic-tac-toe"))
    assert (exam[0].plies, exam[0].value, len(exam[0].best)) == (0, 0, 9)
    assert len(exam) == 4520 - (390 - 168)  # unfinished positions, less those with a single move
    assert {question.value for question in exam} == {-1, 0, 1}


def test_an_exam_is_read_as_it_was_written(tmp_path: Path):
    game = load_game("othello(size=6)")
    moves = random_game(game.start, np.random.default_rng(3)).moves[:26]
    position = exams.after(game.start, moves)
    values = Solver(game.start).move_values(position)
    path = tmp_path / "exam.txt"
    path.write_text(exams.write_line(game, moves, values) + "\n")
    [question] = exams.read_exam(path, game)
    assert (question.position.key(), question.plies, question.value) == (position.key(), 26, max(values.values()))
    assert question.best == {action for action, value in values.items() if value == max(values.values())}


def test_a_ladder_of_fixed_players_counts_who_moved_first(monkeypatch: pytest.MonkeyPatch):
    seen = []
    monkeypatch.setattr(ladder, "rate", lambda counts, anchor: seen.append(counts) or rate(counts, anchor))
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    deep = find_player("alphabeta:9", game, rng)
    ratings = ladder.measure(game, {"deep": deep}, games=20, rng=rng, openings=[[]] * 10, rungs=("random", "greedy"))
    (counts,) = seen
    assert counts.sum(-1).tolist() == [[0, 10, 10], [10, 0, 10], [10, 10, 0]]
    assert counts[2, :, 2].sum() == 0  # alphabeta:9 never loses, whoever moves first
    assert counts[:, 2, 0].sum() == 0
    assert ratings["random"].elo == 0 < ratings["greedy"].elo < ratings["deep"].elo
    assert ratings["deep"].low < ratings["deep"].elo < ratings["deep"].high


def test_a_ladder_starts_from_drawn_positions_and_swaps_colours():
    class Columns:
        """Plays the first or the last column that is open."""

        def __init__(self, index):
            self.index = index

        def choose_all(self, positions):
            return [position.legal_actions()[self.index] for position in positions]

    game = load_game("connect-four")
    dev = Path(exams.__file__).parent / "connect-four-dev.txt"
    openings = ladder.drawn_openings(str(dev), game, 20)
    assert openings is not None
    assert len(openings) == 10
    assert all(len(opening) <= 5 for opening in openings)
    rng = np.random.default_rng(0)
    result = play_match(Columns(0), Columns(-1), game.start, games=20, rng=rng, openings=openings)
    other = play_match(Columns(-1), Columns(0), game.start, games=20, rng=rng, openings=openings)
    assert (result.wins, result.draws, result.losses) == (other.losses, other.draws, other.wins)


def test_games_against_the_perfect_player_are_counted_for_the_player_that_is_measured():
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    best, chance = find_player("greedy", game, rng), RandomPlayer(rng)
    won = game.start.play(0).play(3).play(1).play(4)  # for the player to move
    assert perfect.play_all([won] * 5, best, chance, begins=True) == ({1: 5}, 1)
    assert perfect.play_all([won] * 5, chance, best, begins=False) == ({-1: 5}, 1)


def test_the_tables_of_the_guard_show_the_last_run_of_a_case_and_its_first_warning():
    common = {"games": 1234, "step": 5, "policy_learned": 0.5, "value_learned": 0.25, "trainer_cpu": 9, "worker_cpu": 8}
    right = common | {"case": "nim", "compared": {"legal": [30, 1], "images": [70, 0]}}
    wrong = common | {"case": "nobody wins"}
    tables = guard.table(
        [
            right | {"seconds": 120.0, "warning": "of an earlier run"},
            right | {"seconds": 60.0, "warning": None},
            right | {"seconds": 600.0, "warning": None},
            wrong | {"seconds": 10.0, "warning": None},
            wrong | {"seconds": 20.0, "warning": "all games were drawn: plyzero check x"},
            wrong | {"seconds": 30.0, "warning": "another one"},
        ]
    )
    assert "| nim | 10 | 2 | 5 | 1,234 | 0.50, 0.25 | 100 | 1 | none |" in tables
    assert "| 20 | 9 + 8 | 1234 | 5 | all games were drawn |" in tables


# --- backgammon ---


def test_gnubg_is_asked_about_the_right_board():
    gnubg = pytest.importorskip("benchmarks.backgammon")
    start = Backgammon().as_plain_python()
    known = {"3-1": "8/5 6/5", "4-2": "8/4 6/4", "6-1": "13/7 8/7", "5-3": "8/3 6/3", "6-5": "24/18 18/13"}
    for roll, moves in known.items():
        thrown = toys.after(start, roll)
        expected = gnubg.board_of(toys.after(thrown, moves), player=0)
        assert gnubg.gnubg_choice(thrown) == expected
        assert gnubg.turns(thrown)[expected]


def test_gnubg_plays_turns_that_are_legal_here_on_both_sides():
    gnubg = pytest.importorskip("benchmarks.backgammon")
    found = gnubg.positions_of_gnubg(Backgammon().as_plain_python(), 60, seed=1)
    assert {position.to_play for position in found} == {0, 1}
    assert sum(position.record["checkers"][:, 0].any() for position in found) > 5  # of those who bear off


def test_a_player_is_compared_with_gnubg():
    gnubg = pytest.importorskip("benchmarks.backgammon")
    start = Backgammon().as_plain_python()
    player = RandomPlayer(np.random.default_rng(1))
    results = gnubg.play_games(player, start, games=4, seed=1)
    assert all(each.wins * each.points in (1, 2, 3) for each in results)
    assert sum(each.points for each in results) < -4
    asked = gnubg.positions_of_gnubg(start, 8, seed=1)
    boards = gnubg.boards_after(player, asked)
    assert all(board in gnubg.turns(position) for board, position in zip(boards, asked, strict=True))


@pytest.mark.parametrize(("places", "points"), [({0: 1, 6: 14}, 1), ({18: 15}, 2), ({19: 1, 6: 14}, 3), ({25: 15}, 3)])
def test_gammons_and_backgammons_are_counted(places, points):
    gnubg = pytest.importorskip("benchmarks.backgammon")
    position = Backgammon()
    position.record["checkers"] = 0
    position.record["checkers"][1, 0] = 15
    for place, count in places.items():
        position.record["checkers"][0, place] = count
    assert gnubg.result_of(position.as_plain_python(), side=1) == (1, points)
    assert gnubg.result_of(position.as_plain_python(), side=0) == (-1, -points)


def test_points_have_an_interval_of_pairs_that_share_dice():
    gnubg = pytest.importorskip("benchmarks.backgammon")
    won, lost = gnubg.Result(1, 2), gnubg.Result(-1, -1)
    lines = gnubg.report([won, lost, won, lost]).splitlines()
    assert lines[0] == "won 2 of 4 games"
    assert lines[1].endswith("wins only: +0.000, 95 % +0.000 to +0.000")
    assert lines[2].endswith("backgammons 3: +0.500, 95 % +0.500 to +0.500")
