"""The benchmarks run, and count what they should: their figures are made by hand."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import soak, speed, store
from benchmarks.strength import exams, ladder, page, score
from benchmarks.strength.solver import Solver
from plyzero.play.match import play_match
from plyzero.rules.catalog import load_game
from plyzero.rules.random_game import random_game
from plyzero.run.metrics import read_lines
from plyzero.run.records import Games, check_games
from tests.helpers.cli import plyzero
from tests.helpers.runs import SMALL
from tests.helpers.toys import move_values


def test_made_up_games_are_as_a_worker_makes_them():
    games = Games.concatenate(store.play_games(5, seed=0))
    check_games(games, 65)
    assert 0.1 < games.positions["full"].mean() < 0.4
    assert len(set(games.games["id"])) == 5


def test_store_benchmark_counts_every_game_once(tmp_path: Path):
    report = store.measure_writing(tmp_path / "r", store.play_games(20, seed=0), writers=1, seconds=1.0)
    assert report["games_written"] == report["games_read_once"] == report["games_read"] > 0
    assert report["acknowledged_per_second"] > 0
    assert report["segment_bytes_per_position"] < report["journal_bytes_per_position"]


def test_sampling_benchmark_fills_the_window():
    report = store.measure_sampling(store.play_games(5, seed=0), window=500, slices=1)
    assert 500 <= report["window"] < 1000
    assert report["per_second"] > 0


def test_longest_gap_counts_one_that_began_before():
    assert store.longest_gap([0.0, 1.0, 4.0, 4.5, 9.0], 3.0, 5.0) == pytest.approx(4.5)
    assert store.longest_gap([], 3.0, 5.0) == pytest.approx(2.0)


def test_memory_is_summarised_by_process():
    lines = [
        {"seconds": 60.0 * minute, "memory": {"w0": {"rss_mb": 100.0 + 2 * minute, "pss_mb": 50.0}}}
        for minute in range(21)
    ]
    rss = soak.summarise_memory(lines, 20)["w0"]["rss_mb"]
    assert (rss["minute 5"], rss["last"]) == (110, 140)
    assert rss["growth_per_minute"] == pytest.approx(2)
    assert soak.memory_of(os.getpid())["rss_mb"] > 10
    assert soak.memory_of(2**22 + 1) is None


@pytest.mark.slow
def test_a_short_soak_with_kills_finds_everything_in_order(tmp_path: Path, monkeypatch, capsys):
    options = [part for option in SMALL for part in ("-o", option)]
    arguments = ["--run", str(tmp_path / "r"), "--minutes", "0.7", "--workers", "2", "--game", "tic-tac-toe", *options]
    monkeypatch.setattr(sys, "argv", ["soak.py", *arguments])
    monkeypatch.setattr(soak, "HELD_OUT_SECONDS", 8.0)
    assert soak.main() == 0
    report = json.loads((tmp_path / "r" / "soak.json").read_text())
    assert all(report["holds"].values())
    assert report["kills"]["worker"] > 0
    assert np.isfinite(report["held_out"]["newest"]["policy"])
    assert len(read_lines(tmp_path / "r" / "soak.jsonl")) >= 4


def test_the_page_of_speed_is_whole_after_every_line(tmp_path: Path):
    report = {
        **dict.fromkeys(("ceiling_per_second", "evaluations_per_second", "simulations_per_second"), 1234.5),
        **dict.fromkeys(("share_of_ceiling", "cache_hit_rate", "simulations_of_ceiling"), 0.975),
        "share_of_ceiling_quartiles": [0.9, 0.95, 0.99],
        "positions_per_second": 12.3,
        "memory_mb": 300,
        "shares": {"network": 0.9, "other": 0.1},
    }
    page = speed.Page(tmp_path / "results" / "speed.md", net=tmp_path / "x.onnx", train_minutes=6)
    for written in range(1, 3):
        page.add_line(f"game {written}", ["plyzero", "bench", "x"], report)
        text = (tmp_path / "results" / "speed.md").read_text()
        assert text.count("| **97.5%** (90.0% to 99.0%) |") == text.count("`plyzero bench x`") == written
    page.add_pair("game 1", [0.9, 0.99, 1.0])
    row = {
        "evaluations_per_second": 1,
        "share_of_ceiling": 0.1,
        "simulations_per_second": 12,
        "positions_per_second": 3,
    }
    page.add_openspiel(["x.py"], {"rows": {"its bot": row}, "versions": {"open_spiel": "1.6"}})
    text = (tmp_path / "results" / "speed.md").read_text()
    assert "| game 1 | **99.0%** (94.5% to 99.5%) |" in text
    assert "| its bot | 1 | 10.0% | 12 | 3.0 |" in text


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


@pytest.mark.parametrize("name", ["othello(size=6)", "tic-tac-toe", "connect-four(columns=5, rows=4)"])
def test_the_solver_finds_what_exhaustive_search_finds(name: str):
    game = load_game(name)
    solver = Solver(game.start)
    for seed in range(20):
        played = random_game(game.start, np.random.default_rng(seed))
        position = played.positions[-6]
        assert solver.move_values(position) == move_values(position)


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


def test_ratings_are_those_that_the_points_mean():
    three_to_one = 400 * np.log10(3)
    pairings = [ladder.Pairing(0, 1, 299.5, 399), ladder.Pairing(2, 1, 99.5, 399)]  # with one draw: 300 and 100 of 400
    ratings, errors = ladder.rate(pairings, players=3, anchor=1)
    assert ratings == pytest.approx([three_to_one, 0, -three_to_one])
    of_400_games = 1.96 * 400 / np.log(10) / np.sqrt(400 * 0.25 * 0.75)
    assert errors == pytest.approx([of_400_games, 0, of_400_games])
    ratings, errors = ladder.rate([ladder.Pairing(0, 1, 100, 100)], players=2, anchor=1)
    assert 800 < ratings[0] < 1000  # all won: far ahead, and who knows how far
    assert errors[0] > 400


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


def test_the_page_shows_the_median_of_the_seeds_per_budget(tmp_path: Path, monkeypatch, capsys):
    def line(minutes: float, seed: int, share: float) -> str:
        report = {"simulations": 0, "best moves": {"all": {"mean": share, "low": share - 0.02, "high": share + 0.02}}}
        about = {"game": "g", "options": [], "minutes": minutes, "seed": seed, "evaluations": 2e6}
        about |= {"date": "2026-11-22", "hardware": "an abacus"}
        return json.dumps(about | {"generated_positions": 1e5, "scores": {"exam": [report]}})

    path = tmp_path / "results.jsonl"
    path.write_text("\n".join([line(15, 1, 0.9), line(5, 1, 0.7), line(5, 2, 0.8), line(5, 3, 0.75)]))
    baselines = tmp_path / "baselines.jsonl"
    random = {"game": "g", "player": "random", "best moves": {"all": {"mean": 0.3, "low": 0.2, "high": 0.4}}}
    baselines.write_text("\n".join(json.dumps(random | {"exam": exam}) for exam in ("exam", "other")))
    monkeypatch.setattr(sys, "argv", ["page", str(path), "--baselines", str(baselines)])
    page.main()
    printed = capsys.readouterr().out.splitlines()
    assert "an abacus, 2026-11-22." in printed[6]
    assert printed[10:] == [
        "| minutes | seeds | raw network | evaluations | positions with a full search |",
        "|---|---|---|---|---|",
        "| 5 | 3 | **0.750** (0.700 to 0.800; ± 0.020) | 2.00 M | 0.10 M |",
        "| 15 | 1 | **0.900** (± 0.020) | 2.00 M | 0.10 M |",
        "",
        "By ply, after 15 minutes, and of players that learn nothing:",
        "",
        "| | all |",
        "|---|---|",
        "| raw network, best moves | **0.900** (± 0.020) |",
        "| random, best moves | **0.300** (± 0.100) |",
        "",
    ]
