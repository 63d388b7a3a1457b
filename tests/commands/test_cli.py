"""The command line: what a person types and reads."""

import itertools
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from plyzero.check.violations import ALL_LAWS
from plyzero.ops.status import balance, describe_waiting
from plyzero.run import liveness
from plyzero.run.metrics import Heartbeat
from plyzero.run.models import publish_model
from plyzero.run.records import Games
from plyzero.run.segments import write_segment
from tests.helpers.cli import plyzero, plyzero_process, shown
from tests.helpers.runs import small_run
from tests.helpers.segments import some_games
from trainer.export import untrained


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of tic-tac-toe with one model."""
    run = small_run(tmp_path_factory.mktemp("run") / "r", "tic-tac-toe")
    publish_model(run.models, untrained(run), fence=1, step=12)
    return run.root


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["train", "conect-four", "--run", "R"],
            "'conect-four' is not an installed game; the closest names: connect-four",
        ),
        (["train", "connect-four", "--run", "R"], "is a run of tic-tac-toe, not of connect-four"),
        (["play", "connect-four", "--run", "R"], "is a run of tic-tac-toe, not of connect-four"),
        (["train", "tic-tac-toe", "--run", "R", "-o", "selfplay.slot=1"], "no setting is called selfplay.slot; "),
        (["selfplay", "--run", "R", "-o", "selfplay.parallel_games=x"], "setting selfplay.parallel_games from -o"),
        (["trainer", "--run", "R/none"], "is not a run directory"),
        (["init", "tic-tac-toe", "--run", "R"], "is a run directory already; it was not changed"),
        (["init", "tic-tac-toe", "--run", "R/run.toml/below"], "cannot use R/run.toml/below"),
        (["play", "tic-tac-toe", "--net", "R/run.toml"], "is not a model that ONNX Runtime can read"),
        (["play", "tic-tac-toe", "--net", "R/none.onnx"], "cannot use R/none.onnx"),
        (["play", "tic-tac-toe", "--run", "R/none"], "R/none is not a run directory: it has no run.toml; make one"),
        (["play", "tic-tac-toe", "--run", "R", "--model", "5"], "no model of step 5"),
        (["play", "tic-tac-toe", "--as", "third"], "expected --as first, second or random, got 'third'"),
        (["play", "tic-tac-toe", "--run", "R", "--net", "x"], "expected --run or --net, got both"),
        (["play", "tic-tac-toe", "--model", "best"], "--model best needs --run"),
        (["play", "tic-tac-toe", "--run", "R", "--model", "last"], "expected model newest, best or a step, got 'last'"),
        (["play", "tic-tac-toe", "--run", "R", "--model", "best"], "no model in R/models has been measured"),
        (["play", "tic-tac-toe", "--net", "R/models"], "R/models is a directory; expected --net FILE, or --run"),
        (["analyze", "tic-tac-toe", "--net", "R/run.toml"], "is not a model that ONNX Runtime can read"),
        (["match", "nobody", "random", "--game", "tic-tac-toe"], "'nobody' does not exist; expected a player: random"),
        (["match", "R", "random", "--game", "connect-four"], "is a run of tic-tac-toe, not of connect-four"),
        (["match", "R@7", "random", "--game", "tic-tac-toe"], "no model of step 7 in R/models; the newest are 12"),
        (
            ["check", "tic-tac-toe", "--skip", "gravity"],
            "unknown law 'gravity'; the laws are numbers_fit_their_fields, compiled_as",
        ),
        (["check", "tic-tac-toe", "--skip", "rules_answer"], "rules_answer cannot be skipped: rules that raise"),
        (["check", "tic-tac-toe", "--against", "xyz"], "'xyz' is not an installed game"),
        (["new", "two words"], "begins with a letter and has only letters, digits and hyphens, got 'two words'"),
        (["new", "numpy"], "'numpy' would be the module numpy, which exists in Python already; choose another name"),
        (["new", "class"], "'class' would be the module class, which"),
        (["trainer", "--run", "R", "--device", "gpu"], "expected --device auto, cpu or cuda, got 'gpu'"),
        (["train", "othello(size=7)", "--run", "R"], "expected size 6 or 8, got 7"),
        (["status", "--run", "R/models"], "is not a run directory"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(root: Path, arguments: list[str], sentence: str, tmp_path: Path):
    before = files_of(root)
    given = [argument.replace("R", str(root), 1) if argument[0] == "R" else argument for argument in arguments]
    done = plyzero(*given, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("plyzero: ")
    assert sentence.replace("R/", f"{root}/") in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert files_of(root) == before
    assert not list(tmp_path.iterdir())


def test_a_process_that_got_bad_input_says_one_sentence_and_ends_with_2(tmp_path: Path):
    done = plyzero_process("train", "conect-four", "--run", str(tmp_path / "r"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("plyzero: 'conect-four' is not an installed game")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_to_is_one_sentence(tmp_path: Path):
    tmp_path.chmod(0o500)
    done = plyzero("init", "tic-tac-toe", "--run", str(tmp_path / "r"))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)


def test_check_reports_what_a_game_looks_like():
    text = shown("check", "tic-tac-toe", "--games", "8")
    assert "tic-tac-toe v1: 17 laws hold on 8 random games\n" in text
    assert "at most 9" in text
    assert "max_plies is 9" in text
    assert "7 symmetries are declared, tested by playing." in text
    assert text.endswith("Next: plyzero train tic-tac-toe --run runs/first --minutes 2\n")


def test_check_shows_a_broken_law_and_ends_with_1(tmp_path: Path):
    (tmp_path / "bad_rules.py").write_text(
        "from plyzero.check.template.tic_tac_toe import TicTacToe\n\n\nclass Bad(TicTacToe):\n    max_plies = 1\n"
    )
    done = plyzero("check", "bad_rules:Bad", "--games", "20", cwd=tmp_path)
    assert done.returncode == 1
    assert "broken law games_end: No game is longer than max_plies.\n" in done.stdout
    assert "the game is not over after 1 plies, but max_plies is 1" in done.stdout
    assert "raise max_plies if your rules allow such games\nmoves: " in done.stdout
    assert done.stderr.startswith("plyzero: bad_rules:Bad does not pass; the shortest example")


def test_check_may_leave_a_law_out_and_compare_two_forms():
    text = shown("check", "tic-tac-toe", "--games", "4", "--skip", "games_end")
    assert "tic-tac-toe v1: 16 laws hold on 4 random games, skipped: games_end\n" in text
    text = shown("check", "tic-tac-toe", "--games", "4", "--against", "plyzero.check.template.tic_tac_toe:TicTacToe")
    assert "tic-tac-toe v1: 18 laws hold on 4 random games\n" in text


def test_check_lists_its_laws_and_takes_the_name_of_one_that_is_now_a_warning():
    names = [line.split()[0] for line in shown("check", "--laws").splitlines()]
    assert names == [law.name for law in ALL_LAWS]
    text = shown("check", "tests.helpers.zoo:Chomp", "--games", "30", "--skip", "last_mover_wins_some")
    assert "17 laws hold on 30 random games\n" in text
    assert "warning: in 0% of the decided games the player who made the last move won" in text
    assert "The player who made the last move won 0% of the decided games.\n" in text


def test_check_says_what_it_is_doing_where_the_output_is_no_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.commands.games.PROGRESS_SECONDS", 0.01)
    text = shown("check", "plyzero.check.template.tic_tac_toe:TicTacToe", "--games", "50", "--seconds", "1")
    assert re.search(r"^\d+ s: checking 15 laws: random games, game \d+$", text, re.MULTILINE)


def test_a_module_that_cannot_be_imported_is_one_sentence(tmp_path: Path):
    (tmp_path / "typo.py").write_text("class Game(:\n")
    done = plyzero("check", "typo:Game", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "plyzero: cannot import typo: SyntaxError: invalid syntax (typo.py, line 1)\n"


def test_init_makes_a_run(tmp_path: Path):
    shown("init", "othello(size=6)", "--run", str(tmp_path / "r"), "--seed", "3")
    assert 'game = "othello(size=6)"\n' in (tmp_path / "r" / "run.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "bot"),
    [
        (["othello"], "mcts:1000"),
        (["othello", "--simulations", "7"], "mcts:7"),
        (["tic-tac-toe", "--simulations", "7"], "tic-tac-toe.onnx with 7 simulations"),
        (["tic-tac-toe", "--run", "R"], "onnx with 64 simulations"),
        (["tic-tac-toe", "--run", "R", "--model", "12", "--simulations", "0"], "onnx with 0 simulations"),
    ],
)
def test_play_says_who_the_bot_is_and_how_long_it_thinks(root: Path, arguments: list[str], bot: str):
    given = [str(root) if argument == "R" else argument for argument in arguments]
    text = shown("play", *given, text="quit\n")
    assert text.startswith(f"{arguments[0]}: you move first; the bot is ")
    assert text.splitlines()[0].endswith(f"{bot}.")


def test_random_sides_are_both_sides(monkeypatch: pytest.MonkeyPatch):
    seeds, as_it_is = itertools.count(), np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda: as_it_is(next(seeds)))
    command = ("play", "tic-tac-toe", "--as", "random", "--simulations", "1")
    texts = [shown(*command, text="quit\n") for _ in range(6)]
    assert {text.split("you move ")[1].split(";")[0] for text in texts} == {"first", "second"}


def test_match_tells_the_score_to_people_and_to_programs(root: Path):
    arguments = ("match", str(root), "random", "--game", "tic-tac-toe", "--games", "4", "--simulations", "8")
    name, verdict, score, elo = shown(*arguments).splitlines()
    assert name.startswith("tic-tac-toe: 000001-000000012-")
    assert name.endswith("with 8 simulations (A) against random (B)")
    found = json.loads(shown(*arguments, "--json"))
    assert (found["version"], found["game"], found["b"]) == (1, "tic-tac-toe v1", "random")
    assert found["wins"] + found["draws"] + found["losses"] == 4
    counts = f"A won {found['wins']}, drew {found['draws']}, lost {found['losses']}"
    assert verdict == f"{counts}; {found['distinct']} different games among the 4"
    assert f"score {100 * found['score']:.1f} %" in score
    assert elo.startswith("Elo difference")


def test_status_and_replay_ls_speak_to_people_and_to_programs(root: Path):
    assert "models: 1, newest 000001-000000012-" in shown("status", "--run", str(root))
    found = json.loads(shown("status", "--run", str(root), "--json"))
    assert (found["version"], found["game"], found["models"]["count"]) == (1, "tic-tac-toe v1", 1)
    assert "total" in shown("replay", "ls", "--run", str(root))
    listed = json.loads(shown("replay", "ls", "--run", str(root), "--json"))
    assert listed == {"version": 1, "segments": [], "totals": {"games": 0, "positions": 0, "full": 0}}


def process(name: str, state: str, life: str = "ok", **fields: float) -> dict:
    return {
        "name": name,
        "role": "trainer" if name == "trainer" else "selfplay",
        "state": state,
        "life": life,
        **fields,
    }


@pytest.mark.parametrize(
    ("processes", "sentence"),
    [
        ([process("trainer", "stopped", "stopped"), process("w", "playing", "gone")], "nothing is running"),
        (
            [process("trainer", "waiting for 12 positions, about 3 s"), process("w", "playing")],
            "the trainer waits for the workers: waiting for 12 positions, about 3 s",
        ),
        (
            [process("trainer", "waiting for 12 positions"), process("w", "playing", "gone")],
            "the trainer waits for workers, but none is running: waiting for 12 positions",
        ),
        (
            [process("trainer", "training"), process("w", "waiting for the first model"), process("v", "playing")],
            "1 of 2 workers are waiting for the first model",
        ),
        (
            [process("w", "waiting for the first model")],
            "1 of 1 workers are waiting for the first model, but no trainer is running; start one",
        ),
        (
            [process("trainer", "waiting for 1 positions"), process("w", "paused: the volume has 3 MB left")],
            "1 of 1 workers are paused: the volume has 3 MB left",
        ),
        (
            [process("trainer", "training", "stalled"), process("w", "playing")],
            "trainer: no new heartbeat, the process may be stuck; restart it if this lasts",
        ),
        ([process("trainer", "training"), process("w", "playing")], "no process is waiting for another"),
    ],
)
def test_status_says_who_waits_for_whom(processes: list[dict], sentence: str):
    assert describe_waiting(processes) == sentence


@pytest.mark.parametrize(
    ("trained", "made", "suitable"),
    [(800, [100, 100], 1), (800, [50, 50], 2), (1600, [50, 50], 4), (1700, [50, 50], 5), (80, [100], 1)],
)
def test_status_recommends_as_many_workers_as_the_trainer_can_use(trained: float, made: list[float], suitable: int):
    workers = [process(f"w{i}", "playing", full_positions_per_second=rate) for i, rate in enumerate(made)]
    trainer = process("trainer", "training", trained_per_second=trained)
    found = balance([trainer, *workers, process("w9", "playing", "gone", full_positions_per_second=9)], ratio=8)
    assert found == {"made_per_second": sum(made), "wanted_per_second": trained / 8, "suitable_workers": suitable}
    assert balance(workers, ratio=8) is None
    assert balance([trainer], ratio=8) is None


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Games]:
    """A run of tic-tac-toe with three games in two segments, and a worker and a trainer that have beaten once."""
    run = small_run(tmp_path_factory.mktemp("run") / "played", "tic-tac-toe")
    finished = [some_games(run.game, seed, (5 + seed,)) for seed in range(3)]
    for number, game in enumerate(finished):
        game.positions["model_step"][:] = 40 if number > 0 else 0
    for sequence, part in enumerate((finished[:1], finished[1:])):
        games = Games.concatenate(part)
        write_segment(run.segments, games, run.game, worker="w0", incarnation="0123abcd", sequence=sequence)
    worker = {"role": "selfplay", "state": "playing", "model": None, "games": 3}
    Heartbeat(run.workers / "w0.0123abcd.json").beat(worker)
    trainer = {"role": "trainer", "state": "waiting for positions", "step": 17, "window": 20}
    ratios = {"replay_ratio": 3.5, "replay_ratio_wanted": 8.0}
    Heartbeat(run.workers / "trainer.json").beat(trainer | ratios)
    return run.root, Games.concatenate(finished)


def test_replay_ls_lists_every_segment_and_the_sums_and_changes_nothing(played: tuple[Path, Games]):
    root, games = played
    before = files_of(root)
    listed = json.loads(shown("replay", "ls", "--run", str(root), "--json"))
    assert listed["totals"] == {"games": 3, "positions": len(games.positions), "full": games.num_full}
    one, other = listed["segments"]
    assert (one["worker"], one["incarnation"], one["sequence"], one["games"]) == ("w0", "0123abcd", 0, 1)
    assert (one["high"], other["low"], other["high"]) == (0, 40, 40)
    rows = [line.split() for line in shown("replay", "ls", "--run", str(root)).splitlines()[1:]]
    assert [row[:3] for row in rows] == [["w0.0123abcd", "0", "1"], ["w0.0123abcd", "1", "2"], ["total", "2", "3"]]
    assert [row[5:] for row in rows] == [["no", "model"], ["40", "to", "40"], []]
    assert files_of(root) == before


def test_status_says_what_every_process_does_and_changes_nothing(
    played: tuple[Path, Games], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(liveness, "UNLOCKED_SECONDS", 0.1)
    root, games = played
    before = files_of(root)
    found = json.loads(shown("status", "--run", str(root), "--json"))
    before_a_model = int(games.positions["full"][: games.games["positions"][0]].sum())
    assert found["replay"] == {
        "segments": 2,
        "games": 3,
        "positions": len(games.positions),
        "full_positions": games.num_full,
        "bootstrap_positions": before_a_model,
        "quarantined": 0,
    }
    assert found["models"] == {"count": 0, "newest": None}
    assert {process["name"]: process["state"] for process in found["processes"]} == {
        "trainer": "waiting for positions",
        "w0.0123abcd": "playing",
    }
    text = shown("status", "--run", str(root))
    positions = f"{len(games.positions)} positions ({games.num_full} with a full search)"
    assert f"replay: 3 games, {positions} in 2 segments" in text
    assert "models: none yet" in text
    assert "step 17, replay ratio 3.50 of 8, window 20" in text
    assert "1 worker" in text
    assert "gone" in text
    assert "3 games" in text
    assert files_of(root) == before
