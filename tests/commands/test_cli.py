"""The command line: what a person types and reads."""

import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from plyzero.check.violations import ALL_LAWS
from plyzero.commands import common
from plyzero.commands.cli import app
from plyzero.commands.games import costs
from plyzero.ops.status import balance, describe_waiting
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run import view
from plyzero.run.directory import create_run
from plyzero.run.json_games import Fault, import_games, json_games
from plyzero.run.metrics import Heartbeat
from plyzero.run.records import Games
from plyzero.run.view import Process
from tests.helpers.beats import process_of
from tests.helpers.cli import plyzero, plyzero_process, refused, shown
from tests.helpers.old_runs import contents
from tests.helpers.recorded import random_games, recorded
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games
from tests.helpers.surroundings import python


def changed_game(folder: Path, method: str) -> str:
    """Write a tic-tac-toe with another method into `altered.py`; return how the game is named."""
    imports = "from plyzero import Outcome\nfrom plyzero.check.template.tic_tac_toe import TicTacToe\n"
    lines = [f"{imports}class Altered(TicTacToe):", *method.splitlines()]
    (folder / "altered.py").write_text("\n    ".join(lines))
    return "altered:Altered"


@pytest.fixture
def costs_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` does not measure the default network, which takes seconds."""
    monkeypatch.setattr("plyzero.commands.games.default_network", lambda game: None)


@pytest.mark.usefixtures("costs_unknown")
def test_what_rules_print_is_not_in_the_report_of_check_and_is_bounded(tmp_path: Path):
    noisy = "def outcome(self):\n    print('looking at the board ' * 50)\n    return super().outcome()"
    done = plyzero("check", changed_game(tmp_path, noisy), "--games", "2", cwd=tmp_path, code=0)
    assert "looking at the board" not in done.stdout
    assert done.stderr.count("the code of the game prints without end; further output is dropped") == 1
    assert 100_000 < len(done.stderr) < 101_000


LOUD = """
import ctypes
import os
from plyzero.check.template.tic_tac_toe import TicTacToe

print("imported")
os.write(1, b"in C\\n")


class Loud(TicTacToe):
    def legal_actions(self):
        print("asked")
        os.write(1, b"in C\\n")
        ctypes.CDLL(None).puts(b"buffered")
        return super().legal_actions()
"""


@pytest.mark.parametrize(
    "command",
    [
        "analyze loud:Loud --simulations 2",
        "match random greedy --game loud:Loud --games 2 --json",
        "ladder loud:Loud --players random greedy --games 2 --processes 1 --out l --json",
        "replay export --run r",
        "replay verify --run r --rules --json",
        "gtp loud:Loud --player random",
        "check loud:Loud --games 2",
    ],
)
@pytest.mark.usefixtures("costs_unknown")
def test_what_rules_print_is_never_among_the_data(command: str, tmp_path: Path):
    (tmp_path / "loud.py").write_text(LOUD)
    if command.startswith("replay"):
        run = create_run(tmp_path / "r", GameSpec("loud:Loud", load_game("tic-tac-toe").start))
        seal(run, recorded(random_games(run.game.start, 1)))
    text = "genmove b\n" if command.startswith("gtp") else '{"moves": []}\n'
    done = plyzero(*command.split(), cwd=tmp_path, text=text, descriptors=True)
    said = {"imported", "asked", "in C"}
    assert (done.returncode, said & {*done.stdout.splitlines()}) == (0, set())
    if command.startswith("check"):
        assert done.stdout.startswith("loud:Loud v1: ")
        return
    assert said - {*done.stderr.splitlines()} == set()
    if command.startswith("gtp"):
        assert re.fullmatch(r"= [abc][123]\n\n", done.stdout)
    else:
        json.loads(done.stdout)


def commands_of(app: typer.Typer, *before: str) -> Iterator[list[str]]:
    for command in app.registered_commands:
        yield [*before, command.name or ""]
    for group in app.registered_groups:
        yield from commands_of(group.typer_instance, *before, group.name or "")


def test_every_command_has_a_short_option_for_help_and_the_version_is_told():
    for command in ([], *commands_of(app)):
        text = shown(*command, "-h")
        assert text.split()[:2] == ["Usage:", "plyzero"]
        assert re.search(r"--help\s+-h\b", text)
    assert shown("-h") == shown("--help")
    assert shown("--version") == f"plyzero {version('plyzero')}\n"


def test_files_of_a_user_hide_no_package_of_plyzero(tmp_path: Path):
    for name in ("games", "selfplay", "trainer", "experiments"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')")
    for command in (["match", "random", "random", "--game", "tic-tac-toe", "--games", "2"], ["experiment", "ls"]):
        done = plyzero_process(*command, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


INTERRUPTED = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt as error:
    raise {error} from error
"""


@pytest.mark.parametrize(
    ("module", "error", "command"),
    [
        ("typer", "KeyboardInterrupt", ["games"]),
        ("typer", "ImportError('interrupted')", ["games"]),
        ("own", "KeyboardInterrupt", ["check", "own:Own"]),
        ("own", "ImportError('interrupted')", ["train", "own:Own", "--run", "r"]),
        ("own", "SystemExit(3)", ["check", "own:Own"]),
        ("own", "ImportError('interrupted')", ["match", "own:Own", "random", "--game", "tic-tac-toe"]),
        ("numba", "ImportError('interrupted')", ["play", "tic-tac-toe"]),
        ("onnxruntime", "ImportError('interrupted')", ["gtp", "tic-tac-toe"]),
        ("torch", "ImportError('interrupted')", ["imitate", "tic-tac-toe", "games.jsonl", "-o", "bot.onnx"]),
    ],
)
def test_ctrl_c_while_something_is_imported_is_one_sentence(
    module: str, error: str, command: list[str], tmp_path: Path
):
    (tmp_path / f"{module}.py").write_text(INTERRUPTED.format(error=error))
    done = plyzero_process(*command, cwd=tmp_path)
    printed = [line for line in (done.stdout + done.stderr).splitlines() if line]
    (sentence,) = [line for line in printed if not line.startswith("       loading")]  # progress, if it takes long
    assert (done.returncode, sentence in done.stderr) == (130, True)
    assert sentence.startswith("plyzero: interrupted")


def test_check_reports_what_a_game_looks_like():
    text = shown("check", "tic-tac-toe", "--games", "8")
    assert "tic-tac-toe v1: 22 laws hold on 8 random games\n" in text
    assert "\n\nIs this the game you mean?\nFirst moves (9): a1 b1 c1 a2 b2 c2 a3 b3 c3\n" in text
    assert "at most 9" in text
    assert "max_plies is 9. The longest: " in text
    assert "each in its shortest game:\n\n 1 " in text
    assert "7 symmetries are declared, tested by playing." in text
    assert text.endswith("Next: plyzero train tic-tac-toe --run runs/first --minutes 2\n")


def test_check_shows_a_broken_law_and_ends_with_1(tmp_path: Path):
    done = plyzero("check", changed_game(tmp_path, "max_plies = 1"), "--games", "20", cwd=tmp_path, code=1)
    assert "broken law games_end: No game without dice is longer than max_plies, and " in done.stdout
    assert "the game is not over after 1 plies, but max_plies is 1" in done.stdout
    assert "raise max_plies if all games end, or end the game in outcome() and show the counter in " in done.stdout
    assert done.stderr.startswith("plyzero: altered:Altered does not pass; the shortest example")


def test_check_shows_the_first_example_then_a_shorter_one_and_leaves_no_files(tmp_path: Path):
    goes_on = "def legal_actions(self): return [each for each in range(9) if not self.board[each]]"
    done = plyzero("check", changed_game(tmp_path, goes_on), "--games", "5", cwd=tmp_path)
    first, _, shorter = done.stdout.partition("\na shorter example:\n")
    assert (done.returncode, done.stdout.count("broken law legal_actions_in_order")) == (1, 2)
    counts = [len(re.search(r"^moves: (.*)$", text, re.MULTILINE)[1].split()) for text in (first, shorter)]
    assert counts[0] > counts[1] == 5
    assert {path.name for path in tmp_path.iterdir()} <= {"altered.py", "__pycache__"}
    assert done.stderr.endswith("plyzero: altered:Altered does not pass; the shortest example found is above\n")


def test_check_may_leave_a_law_out_and_compare_two_forms():
    text = shown("check", "tic-tac-toe", "--games", "4", "--skip", "games_end")
    assert "tic-tac-toe v1: 21 laws hold on 4 random games, skipped: games_end\n" in text
    text = shown("check", "tic-tac-toe", "--games", "4", "--against", "plyzero.check.template.tic_tac_toe:TicTacToe")
    assert "tic-tac-toe v1: 24 laws hold on 4 random games, and it agrees with plyzero.check" in text
    assert "not compared" not in text


@pytest.mark.usefixtures("costs_unknown")
def test_check_says_what_it_cannot_compare_with_a_form_of_another_toolkit():
    other = "azg:tests.helpers.azg_games:Noughts"
    text = shown("check", "tic-tac-toe", "--games", "4", "--against", other)
    assert f"not compared with {other}: numbers of the actions (num_actions is 9 and 10); " in text


@pytest.mark.usefixtures("costs_unknown")
def test_check_lists_its_laws_and_takes_the_name_of_one_that_is_now_a_warning(tmp_path: Path):
    names = [line.split()[0] for line in shown("check", "--laws").splitlines()]
    assert names == [law.name for law in ALL_LAWS]
    three_lose = (
        "def outcome(self):\n    found = super().outcome()\n"
        "    return found if found is None or found.winner is None else Outcome(1 - found.winner)"
    )
    command = ("check", changed_game(tmp_path, three_lose), "--games", "30", "--skip", "last_mover_wins_some")
    text = shown(*command, cwd=tmp_path)
    assert "20 laws hold on 30 random games\n" in text
    warning, law = "warning: in 0% of the decided games the player who made the last move won", "20 laws hold"
    assert text.count(warning) == 1
    assert text.index(warning) < text.index(law)  # among the first things that are known
    assert "The player who made the last move won 0% of the decided games.\n" in text


@pytest.mark.usefixtures("costs_unknown")
def test_check_says_what_it_is_doing_where_the_output_is_no_terminal():
    done = plyzero("check", "plyzero.check.template.tic_tac_toe:TicTacToe", "--games", "50", line_seconds=0.01)
    assert re.search(r"^\d+ s: checking 20 laws: random games, game \d+$", done.stderr, re.MULTILINE)


def test_check_shows_what_costs_what_of_rules_in_plain_python():
    text = shown("check", "plyzero.check.template.tic_tac_toe:TicTacToe", "--games", "4")
    rows = re.findall(r"^  (\w+)(?: \(\d+ x \d+, (?:int8|fp32)\))? +[\d.]+ +(\d+)%$", text, re.MULTILINE)
    assert [name for name, _ in rows] == ["play", "outcome", "legal_actions", "observe", "network"]
    assert 97 <= sum(int(share) for _, share in rows) <= 103
    assert "What a worker pays" not in shown("check", "tic-tac-toe", "--games", "4")


def test_the_rule_that_costs_most_is_to_be_changed_first_unless_the_network_costs_more():
    rules = {"play": 3.0, "outcome": 1.0, "legal_actions": 9.0, "observe": 2.0}
    assert "Change first: legal_actions. " in [*costs(rules, ("3 x 32, int8", 10.0))][-1]
    assert "Change first: legal_actions. " in [*costs(rules, None)][-1]
    assert "they are fast enough" in [*costs(rules, ("3 x 32, int8", 20.0))][-1]


@pytest.mark.parametrize(
    ("arguments", "bot"),
    [
        (["examples.race:Race"], "mcts:1000"),
        (["examples.race:Race", "--simulations", "7"], "mcts:7"),
        (["tic-tac-toe", "--simulations", "7"], "tic-tac-toe.onnx with 7 simulations"),
        (["tic-tac-toe", "--against", "alphabeta:2"], "alphabeta:2"),
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
    name, verdict, score, *elo = shown(*arguments).splitlines()
    assert name.startswith("tic-tac-toe: 000001-000000012-")
    assert name.endswith("with 8 simulations (A) against random (B)")
    found = json.loads(shown(*arguments, "--json"))
    assert (found["version"], found["game"], found["b"]) == (1, "tic-tac-toe v1", "random")
    assert found["wins"] + found["draws"] + found["losses"] == 4
    counts = f"A won {found['wins']}, drew {found['draws']}, lost {found['losses']}"
    assert verdict == f"{counts}; {found['distinct']} different games among the 4"
    assert f"score {100 * found['score']:.1f} %" in score
    assert all(line.startswith("Elo difference") for line in elo)


@pytest.mark.parametrize("considered", [1, 4])
def test_analyze_searches_with_the_settings_it_is_given(root: Path, considered: int):
    options = ("--simulations", "16", "-o", f"search.max_considered_actions={considered}")
    answer = json.loads(shown("analyze", "tic-tac-toe", "--run", str(root), *options, text='{"id": 1, "moves": []}\n'))
    assert sum(move["visits"] > 0 for move in answer["moveInfos"]) == considered


def test_the_games_of_a_match_are_saved_for_imitation_and_never_replace_a_file(tmp_path: Path):
    path = tmp_path / "games.jsonl"
    command = ("match", "greedy", "random", "--game", "tic-tac-toe", "--games", "20", "--save", str(path))
    shown(*command)
    lines = path.read_bytes()
    games = [*import_games(json_games(lines.splitlines()), load_game("tic-tac-toe"))]
    assert len(games) == 20
    assert not any(isinstance(game, Fault) for game in games)
    assert f"{path} exists already; expected --save FILE with the name of a new file" in refused(*command)
    assert path.read_bytes() == lines


def process(name: str, state: str, **fields: float) -> Process:
    """A process, whose life may follow its name."""
    name, _, life = name.partition(" ")
    return process_of(name, state, life=life or "ok", **fields)


HUNGRY, FIRST, FULL = "waiting for 12 positions", "waiting for the first model", "paused: the volume has 3 MB left"
STUCK = "trainer: no new heartbeat, the process may be stuck; restart it if this lasts"


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ({"trainer stopped": "stopped", "w gone": "playing"}, "nothing is running"),
        ({"trainer": f"{HUNGRY}, 3 s", "w": "playing"}, f"the trainer waits for the workers: {HUNGRY}, 3 s"),
        ({"trainer": HUNGRY, "w gone": "playing"}, f"the trainer waits for workers, but none is running: {HUNGRY}"),
        ({"trainer": "training", "w": FIRST, "v": "playing"}, f"1 of 2 workers are {FIRST}"),
        ({"w": FIRST}, f"1 of 1 workers are {FIRST}, but no trainer is running; start one"),
        ({"trainer": HUNGRY, "w": FULL}, f"1 of 1 workers are {FULL}"),
        ({"trainer stalled": "training", "w": "playing"}, STUCK),
        ({"trainer": "training", "w": "playing"}, "no process is waiting for another"),
    ],
)
def test_status_says_who_waits_for_whom(states: dict[str, str], sentence: str):
    assert describe_waiting([process(*each) for each in states.items()]) == sentence


@pytest.mark.parametrize(
    ("trained", "made", "suitable"),
    [(800, [100, 100], 1), (800, [50, 50], 2), (1600, [50, 50], 4), (1700, [50, 50], 5), (80, [100], 1)],
)
def test_status_recommends_as_many_workers_as_the_trainer_can_use(trained: float, made: list[float], suitable: int):
    workers = [process(f"w{i}", "playing", full_positions_per_second=rate) for i, rate in enumerate(made)]
    trainer = process("trainer", "training", trained_per_second=trained)
    found = balance([trainer, *workers, process("w9 gone", "playing", full_positions_per_second=9)], ratio=8)
    assert found == {"made_per_second": sum(made), "wanted_per_second": trained / 8, "suitable_workers": suitable}
    assert balance(workers, ratio=8) is None
    assert balance([trainer], ratio=8) is None


def status_of(root: Path) -> tuple[dict[str, Any], str]:
    """The output of `status`: the JSON for programs, and the text for people."""
    return json.loads(shown("status", "--run", str(root), "--json")), shown("status", "--run", str(root))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Games]:
    """A run of tic-tac-toe with three games in two segments, and a worker and a trainer that have beaten once."""
    run = small_run(tmp_path_factory.mktemp("run") / "played", "tic-tac-toe")
    finished = [some_games(run.game, seed, (5 + seed,)) for seed in range(3)]
    for number, game in enumerate(finished):
        game.positions["model_step"][:] = 40 if number > 0 else 0
    for sequence, part in enumerate((finished[:1], finished[1:])):
        seal(run, Games.concatenate(part), sequence)
    worker = {"role": "selfplay", "state": "playing", "model": None, "games": 3}
    Heartbeat(run.workers / "w0.0123abcd.json").beat(worker)
    trainer = {"role": "trainer", "state": "waiting for positions", "step": 17, "window": 20, "games": 1}
    ratios = {"replay_ratio": 3.5, "replay_ratio_wanted": 8.0}
    Heartbeat(run.workers / "trainer.json").beat(trainer | ratios | {"cursor": {"0123abcd": 1}})
    return run.root, Games.concatenate(finished)


def test_replay_ls_lists_every_segment_and_the_sums_and_changes_nothing(played: tuple[Path, Games]):
    root, games = played
    before = contents(root)
    listed = json.loads(shown("replay", "ls", "--run", str(root), "--json"))
    assert listed["totals"] == {"games": 3, "positions": len(games.positions), "full": games.num_full}
    one, other = listed["segments"]
    assert (one["worker"], one["incarnation"], one["sequence"], one["games"]) == ("w0", "0123abcd", 0, 1)
    assert (one["high"], other["low"], other["high"]) == (0, 40, 40)
    rows = [line.split() for line in shown("replay", "ls", "--run", str(root)).splitlines()[1:]]
    assert [row[:3] for row in rows] == [["w0.0123abcd", "0", "1"], ["w0.0123abcd", "1", "2"], ["total", "2", "3"]]
    assert [row[5:] for row in rows] == [["no", "model"], ["40", "to", "40"], []]
    assert contents(root) == before


def test_status_says_what_every_process_does_and_changes_nothing(
    played: tuple[Path, Games], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(view, "UNLOCKED_SECONDS", 0.1)
    root, games = played
    before = contents(root)
    found, text = status_of(root)
    before_a_model = int(games.positions["full"][: games.games["positions"][0]].sum())
    assert (found["version"], found["game"], found["problem"]) == (1, "tic-tac-toe v1", None)
    assert found["workers"] == {"running": 0, "ended": 1}
    counts = {"read_games": 1, "unread_games": 2, "segments": 2, "games": 3, "positions": len(games.positions)}
    counts |= {"full_positions": games.num_full, "bootstrap_positions": before_a_model}
    none = ("removed_games", "quarantined_games", "missing_segments", "quarantined")
    assert found["replay"] == counts | dict.fromkeys(none, 0)
    assert found["models"] == {"count": 0, "newest": None}
    states = {each["name"]: each["state"] for each in found["processes"]}
    assert states == {"trainer": "waiting for positions", "w0.0123abcd": "playing"}
    positions = f"{len(games.positions)} positions ({games.num_full} with a full search)"
    assert f"replay: 3 games, {positions} in 2 segments" in text
    assert "models: none yet" in text
    assert "step 17, 1 games, 0 positions/s, replay ratio 3.50 of 8, window 20" in text
    assert "the trainer: 1 games read, 2 not read yet\n" in text
    assert "1 ended process of w0" in text
    assert "gone" in text
    assert contents(root) == before


def test_a_worker_that_was_started_again_is_one_worker_that_runs(played: tuple[Path, Games], tmp_path: Path):
    root = Path(shutil.copytree(played[0], tmp_path / "r"))
    for incarnation in ("0000000a", "0000000b"):
        beat = {"role": "selfplay", "state": "stopped", "model": None, "games": 2}
        Heartbeat(root / "workers" / f"w0.{incarnation}.json").beat(beat)
    (root / "workers" / "w0.0123abcd.json").unlink()
    found, text = status_of(root)
    assert "2 ended processes of w0" in text
    assert "4 games" in text
    assert found["workers"] == {"running": 0, "ended": 2}


@pytest.mark.parametrize(
    ("read", "cursor", "counts", "problem", "says"),
    [
        (0, 0, (0, 3, 0), "None", "the trainer: 0 games read, 3 not read yet\n"),
        (8, 2, (8, 0, 5), "None", "the trainer: 8 games read, 0 not read yet, 5 read and removed since\n"),
        (0, 1, (0, 2, 0), "has read 0 games: 1 games are damaged or occur twice", "occur twice"),
    ],
)
def test_status_compares_the_games_of_the_trainer_with_those_on_the_volume(
    played: tuple[Path, Games], tmp_path: Path, read: int, cursor: int, counts: tuple, problem: str, says: str
):
    root = Path(shutil.copytree(played[0], tmp_path / "r"))
    Heartbeat(root / "workers" / "trainer.json").beat({"role": "trainer", "state": "stopped", "games": 1000})
    Heartbeat(root / "trainer" / "cursor.json").beat({"games": read, "cursor": {"0123abcd": cursor}})
    found, text = status_of(root)
    assert tuple(found["replay"][f"{key}_games"] for key in ("read", "unread", "removed")) == counts
    assert problem in str(found["problem"])
    assert says in text


def test_without_a_terminal_what_goes_on_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert common.LINE_SECONDS <= 15
    monkeypatch.setattr(common, "LINE_SECONDS", 0.01)

    def lines_until(last: str) -> str:
        text = ""
        while last not in text:
            text += capsys.readouterr().err
        return text

    with common.show_progress("starting") as report:
        lines_until("0 s: starting\n")
        report("at work")
        lines_until("0 s: at work\n0 s: at work\n")
        report("")
    capsys.readouterr()
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_without_a_terminal_no_line_is_broken_or_cut(capsys: pytest.CaptureFixture[str]):
    console, table = common.make_console(), common.make_table("name", "text")
    table.add_row("[red]a[/red] :smile:", "word " * 60 + "x" * 300)
    console.print(table)
    console.print("y" * 500)
    _, row, line = capsys.readouterr().out.splitlines()
    assert row.split() == ["[red]a[/red]", ":smile:", *["word"] * 60, "x" * 300]
    assert line == "y" * 500


def test_a_match_that_is_interrupted_says_how_far_it_was(monkeypatch: pytest.MonkeyPatch):
    def interrupted(*players: object, on_progress, **options: object) -> None:
        on_progress(3, 5)
        raise KeyboardInterrupt

    monkeypatch.setattr("plyzero.play.match.play_match", interrupted)
    done = plyzero("match", "random", "random", "--game", "tic-tac-toe", "--games", "4")
    assert (done.returncode, done.stdout) == (130, "")
    says = "3 of 4 games were finished; there is no score, because the shortest games finish first"
    assert f"plyzero: {says}" in done.stderr


LOST = """
import os, signal, time
from plyzero.commands.cli import acknowledged_interrupts

class Destructor:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

interrupts = []
with acknowledged_interrupts(interrupts):
    try:
        Destructor()
        time.sleep(60)
    except KeyboardInterrupt:
        print(len(interrupts))
"""


def test_an_interrupt_that_python_loses_in_a_destructor_is_raised_again():
    done = python("-c", LOST)
    assert done.stdout == "2\n"
    assert done.stderr == "\nplyzero: interrupted; press Ctrl-C again to end at once\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "match random random --game tic-tac-toe --games 100000",
        "status --run R --watch",
        "gtp tic-tac-toe --player random",
    ],
)
def test_ctrl_c_is_acknowledged_and_ends_a_command_with_130(root: Path, command: str):
    given = [str(root) if word == "R" else word for word in command.split()]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    streams["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a shell's job may ignore
    code = "from plyzero.commands.cli import main; print('ready', flush=True); main()"
    with subprocess.Popen([sys.executable, "-c", code, *given], text=True, **streams) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "plyzero: interrupted; press Ctrl-C again to end at once\n" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("games > /dev/full", 2, "plyzero: cannot use the output or the volume: No space left on device\n"),
        ("games >&-", 0, ""),
        ("games | head -c 1", 1, ""),
        ("replay ls --run R --json | head -c 0", 0, ""),
        ("play tic-tac-toe <&- > /dev/null", 0, ""),
        ("analyze tic-tac-toe <&-", 0, ""),
    ],
)
def test_closed_and_full_streams_cause_no_traceback(root: Path, command: str, code: int, says: str):
    line = f"{sys.executable} -m plyzero {command.replace('R', str(root))}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == says
    assert done.returncode in (code, 0, 1) if "|" in command else done.returncode == code


OF_C = """
import ctypes, logging, sys
from plyzero.commands.common import bound_output_of_c
from plyzero.commands.roles import set_up_logging

set_up_logging("text")
bound_output_of_c()
libc = ctypes.CDLL(None)
for number in range(2):
    for _ in range({lines}):
        libc.puts(b"noise")
    logging.info("line %d", number)
print("last of Python", file=sys.stderr)
libc.fflush(None)
libc.abort()
"""


@pytest.mark.parametrize("lines", [20_000, 3])
def test_what_c_prints_is_bounded_and_the_log_goes_on(tmp_path: Path, lines: int):
    (tmp_path / "program.py").write_text(OF_C.format(lines=lines))
    output = python(tmp_path / "program.py", code=-signal.SIGABRT).stdout
    said = "the code of the game prints without end; further output of C is dropped"
    of_c = re.sub(r"\d{4}-\S+ \S+ INFO root: line \d\n", "", output)  # a line of the log may come amidst one of C
    assert of_c.count("noise\n") == (100_000 // 6 if lines > 3 else 6)
    assert output.count(said) == (lines > 3)
    assert [f"INFO root: line {number}" in output for number in range(2)] == [True, True]
