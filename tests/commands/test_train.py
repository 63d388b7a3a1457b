"""The output of `train` without a terminal; the processes are replaced."""

import io
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console

from plyzero.commands import train as command
from plyzero.ops import supervisor
from plyzero.ops.local_processes import ChildFailedError
from plyzero.ops.rating import Rating
from plyzero.ops.summary import Bar
from plyzero.ops.supervisor import OnProgress, Report
from plyzero.play.scores import MatchResult
from plyzero.run.directory import describe_changed_settings, open_run
from plyzero.run.events import TrainerLine
from plyzero.run.metrics import append_line
from tests.helpers.cli import plyzero, shown
from tests.helpers.runs import small_run

WARNING = f"warning: [Errno 5] Input/output error [the volume] :smile: {'x' * 300}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return small_run(tmp_path / "r", "tic-tac-toe").root


def during(monkeypatch: pytest.MonkeyPatch, happens: Callable[..., None]) -> None:
    """Let `happens`, which gets what `supervisor.train` gets, take its place."""
    monkeypatch.setattr(supervisor, "train", lambda run, **options: happens(**options))


def test_settings_of_a_start_that_differ_from_run_toml_are_named(root: Path, monkeypatch: pytest.MonkeyPatch):
    assert describe_changed_settings(open_run(root)) is None
    monkeypatch.setenv("PLYZERO_RATING__OPPONENTS", "random")
    during(monkeypatch, lambda **_: None)
    said = shown("train", "tic-tac-toe", "--run", str(root), "-o", "network.blocks=2", "-o", "network.channels=8")
    changed = "network.blocks = 2 instead of 1, rating.opponents = random instead of random,mcts:100\n"
    assert f"settings of this start that differ from run.toml: {changed}" in said


def test_warnings_and_scores_are_printed_whole_whatever_the_width(root: Path, monkeypatch: pytest.MonkeyPatch):
    def happens(*, on_message: Callable, on_rating: Callable, on_report: Callable, **_: object) -> None:
        on_message(WARNING)
        line = TrainerLine.parse({"games": "many", "step": 12})
        on_report(Report(seconds=61.0, positions_per_second=7.0, line=line))
        on_rating(Rating(step=12, scores={"random": MatchResult(2, 0, 0, distinct=2)}))

    monkeypatch.setenv("COLUMNS", "40")
    during(monkeypatch, happens)
    lines = shown("train", "tic-tac-toe", "--run", str(root)).splitlines()
    assert f"       {WARNING}" in lines
    assert "  1:01        0      7      12               0.00" in lines
    assert "       step 12 scores 100% (34-100) in 2 games against random" in lines


def test_without_a_terminal_progress_is_printed_after_a_while_without_output(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(command, "QUIET_SECONDS", 0.0)
    printed: list[str] = []
    monkeypatch.setattr(command._Screen, "message", lambda screen, text: printed.append(text))

    def happens(*, on_progress: OnProgress, **_: object) -> None:
        on_progress("1 worker playing.", [Bar("first model", 0.035, 0.0, "7 of 200 positions")])
        while "1 worker playing. First model: 7 of 200 positions." not in printed:
            time.sleep(0.01)

    during(monkeypatch, happens)
    shown("train", "tic-tac-toe", "--run", str(root))


def test_bars_are_below_one_another_in_80_columns_and_show_what_is_under_way():
    bars = [Bar("first model", 0.5, 0.25, "2048 of 4096 positions, about 2 min left"), Bar("budget", 1, 0, "100 %")]
    assert command._drawn(bars, 77) == [
        "first model ████████████▒▒▒▒▒░░░░░░  2048 of 4096 positions, about 2 min left",
        "budget      ███████████████████████  100 %",
    ]
    assert command._drawn(bars[1:], 117) == [f"budget      {'█' * 30}  100 %"]


def test_on_a_terminal_scores_are_small_bars_beside_the_rated_row_and_in_a_row_at_the_end(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    written = io.StringIO()
    monkeypatch.setattr(
        command.common, "make_console", lambda: Console(file=written, force_terminal=True, width=80, color_system=None)
    )
    for step, wins in ((1, 0), (2, 5), (3, 10)):
        line = {"model": f"000001-{step:09d}-0123abcd.onnx", "scores": {"mcts:100": [wins, 0, 10 - wins]}}
        append_line(root / "metrics" / "rating.jsonl", line)
    screen = command._Screen()
    screen.rating(Rating(step=64, scores={"random": MatchResult(9, 0, 1), "mcts:100": MatchResult(1, 0, 9)}))
    screen.scores(open_run(root))
    assert [line.strip() for line in written.getvalue().splitlines()] == [
        "64  █ 90% (60-98) random  ▁ 10% (2-40) mcts:100",
        "against mcts:100   ▁▅█ 100% (72-100)",
    ]


def test_a_second_ctrl_c_is_answered_and_interrupts_nothing(root: Path, monkeypatch: pytest.MonkeyPatch):
    def happens(*, on_progress: Callable[[str], None], stop: threading.Event, **_: object) -> None:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        signal.raise_signal(signal.SIGINT)
        on_progress("stopping: waiting for trainer")

    during(monkeypatch, happens)
    said = shown("train", "tic-tac-toe", "--run", str(root))
    assert "still stopping, for a minute at most; nothing is lost, even if this process is killed\n" in said
    assert "stopped and saved, but there is no model yet" in said


def test_a_process_that_failed_is_one_sentence_without_a_hint(root: Path, monkeypatch: pytest.MonkeyPatch):
    during(monkeypatch, Mock(side_effect=ChildFailedError("trainer stopped by itself: the volume is full")))
    done = plyzero("train", "tic-tac-toe", "--run", str(root))
    assert (done.returncode, done.stderr) == (1, "plyzero: trainer stopped by itself: the volume is full\n")
