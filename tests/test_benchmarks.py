"""The benchmarks run, and count what they should: their figures are made by hand."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import evaluator, gpu_check, soak, speed
from benchmarks.strength import exams, ladder, perfect, score
from benchmarks.strength.openings import OthelloSolver
from benchmarks.strength.solver import Solver
from plyzero.kits.arena.ratings import rate
from plyzero.play.player import RandomPlayer
from plyzero.play.players import find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.random_game import random_game
from tests.helpers.cli import plyzero
from tests.helpers.surroundings import wait_until
from tests.helpers.toys import move_values


def test_a_process_that_is_asked_to_stop_has_a_handler_first():
    code = "import signal, time; time.sleep(0.5); signal.signal(signal.SIGTERM, lambda *_: exit(0)); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        assert not soak.handles_sigterm(process.pid)
        wait_until(lambda: soak.handles_sigterm(process.pid), alive=process)
        process.terminate()
    assert process.returncode == 0
    assert not soak.handles_sigterm(process.pid)


def test_the_cases_of_the_speed_page_are_commands_that_exist():
    for arguments in speed.CASES.values():
        done = plyzero("bench", *arguments, "--seconds", "0")
        assert (done.returncode, "--seconds" in done.stderr) == (2, True), done.stderr


def test_the_score_is_the_share_of_best_moves_in_all_and_by_ply(tmp_path: Path):
    class FirstColumn:
        def choose_all(self, positions):
            return [position.legal_actions()[0] for position in positions]

    path = tmp_path / "exam.txt"
    path.write_text("- 1 1 -1 -1 -1 -1 -1\n44 0 1 0 0 0 0 0\n11111144 . 0 0 -1 0 0 0\n22222211 1 . 0 0 0 0 0\n")
    game = load_game("connect-four")
    exam = exams.read_exam(path, game)
    asked = [(each.plies, sorted(each.best), each.value) for each in exam]
    assert asked == [(0, [0, 1], 1), (2, [1], 1), (8, [1, 2, 4, 5, 6], 0), (8, [0], 1)]
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
        position = random_game(game.start, np.random.default_rng(seed)).positions[-6]
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
    ratings = ladder.measure(game, {"deep": deep}, games=8, rng=rng, openings=[[]] * 4, rungs=("random", "greedy"))
    (counts,) = seen
    assert counts.sum(-1).tolist() == [[0, 4, 4], [4, 0, 4], [4, 4, 0]]
    assert counts[2, :, 2].sum() == 0  # alphabeta:9 never loses, whoever moves first
    assert counts[:, 2, 0].sum() == 0
    assert ratings["random"].elo == 0 < ratings["greedy"].elo < ratings["deep"].elo
    assert ratings["deep"].low < ratings["deep"].elo < ratings["deep"].high


def test_a_ladder_starts_from_drawn_positions():
    dev = Path(exams.__file__).parent / "connect-four-dev.txt"
    openings = ladder.drawn_openings(str(dev), load_game("connect-four"), 20)
    assert len(openings) == 10
    assert all(len(opening) <= 5 for opening in openings)


def test_games_against_the_perfect_player_count_for_the_other():
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    best, chance = find_player("greedy", game, rng), RandomPlayer(rng)
    won = game.start.play(0).play(3).play(1).play(4)  # for the player to move
    assert perfect.play_all([won] * 5, best, chance, begins=True) == ({1: 5}, 1)
    assert perfect.play_all([won] * 5, chance, best, begins=False) == ({-1: 5}, 1)


def test_a_simulated_gpu_is_kept_busy_by_enough_workers_and_by_few_only_as_their_costs_allow(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(evaluator, "WORKER_COST", (0.0, 0.0))
    monkeypatch.setattr(evaluator, "EVALUATOR_COST", (0.0, 0.0, 0.0))
    share, batch = evaluator.simulate(rate=1e6, workers=8, games=256)
    assert batch == pytest.approx(1024, rel=0.01)
    # of what costs nothing but the GPU
    assert share == pytest.approx(1024e-6 / (1024e-6 + evaluator.LATENCY), rel=0.01)
    monkeypatch.setattr(evaluator, "WORKER_COST", (0.0, 20e-6))
    share, batch = evaluator.simulate(rate=1e6, workers=4, games=256, parts=1)
    # one after the other: 256 leaves at 20 us, then all of them in a batch of 1024
    assert batch == pytest.approx(1024, rel=0.01)
    assert share == pytest.approx(1024 / (256 * 20 + 1024 + 400), rel=0.02)


@pytest.mark.parametrize("worse", [{"max_batch": 128}, {"parts": 1, "workers": 2}, {"workers": 2}])
def test_a_simulated_gpu_does_less_with_fewer_workers_or_smaller_batches(worse: dict):
    usual = {"rate": 500_000, "workers": 14, "games": 256}
    best = evaluator.simulate(**usual)[0]
    assert evaluator.simulate(**(usual | worse))[0] < 0.7 * best
    assert evaluator.simulate(**usual, streams=2)[0] > best


def test_a_page_has_a_section_for_each_part_and_a_table_for_each_list():
    parts = {"one": {"precision": "fp16", "rates": [{"batch": 1, "per_second": 2}, {"batch": 64, "per_second": 9}]}}
    report = {"game": "go", "preset": "gpu", "parts": parts | {"two": [{"workers": 1}], "three": {"error": "none"}}}
    expected = (
        "# GPU check of go, preset gpu\n\n"
        "## one\n\n* precision: fp16\n\n| batch | per_second |\n|---|---|\n| 1 | 2 |\n| 64 | 9 |\n\n"
        "## two\n\n\n| workers |\n|---|\n| 1 |\n\n"
        "## three\n\n* error: none\n"
    )
    assert gpu_check.page(report) == expected


@pytest.mark.slow
def test_the_gpu_check_runs_without_a_gpu_and_leaves_a_page(tmp_path: Path):
    command = [sys.executable, "-m", "benchmarks.gpu_check", "tic-tac-toe", "--quick", "--write", str(tmp_path)]
    subprocess.run(command, check=True)
    parts = json.loads((tmp_path / "gpu-check.json").read_text())["parts"]
    assert [*parts] == ["machine", "network alone", "workers through one evaluator", "one worker alone", "training"]
    assert not {name: found["error"] for name, found in parts.items() if "error" in found}
    alone, (through,) = parts["network alone"], parts["workers through one evaluator"]
    assert [each["batch"] for each in alone["rates"]] == [1, 64]
    assert alone["largest_difference_of_probabilities"] < 0.01
    assert through["workers"] == 1
    assert 1 <= through["batch"] <= 16  # its games, in two halves
    assert 0 < through["share"] < 1
    assert parts["training"]["steps_per_second"] > 0
    page = (tmp_path / "gpu-check.md").read_text()
    assert all(f"\n## {name}\n" in page for name in parts)
