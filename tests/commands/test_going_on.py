"""init NEW --from OLD: a larger network begins with the games of a run, and says when it has passed its last model."""

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from plyzero import Bot
from plyzero.kits.web.run_state import Dashboard
from plyzero.ops import rating
from plyzero.ops.rating import Rater, Rating
from plyzero.play.scores import MatchResult
from plyzero.run.before import find_opponent
from plyzero.run.directory import Run, open_run
from plyzero.run.events import best_model, has_passed, read_scores
from plyzero.run.metrics import append_line
from plyzero.run.models import list_models
from plyzero.run.replay import read_games
from plyzero.run.segments import bootstrap_positions, list_segments
from plyzero.trainer.loop import Trainer
from tests.helpers.cli import refused, shown
from tests.helpers.learning import add_model, learn
from tests.helpers.old_runs import contents
from tests.helpers.runs import play_segment, small_run
from tests.helpers.segments import seal
from tests.helpers.surroundings import wait_until

LARGER = ("-o", "network.channels=16")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two models, the second of which has a score."""
    ratings = ("rating.opponents=random", "rating.games=20", "rating.simulations=4")
    root = tmp_path_factory.mktemp("runs") / "old"
    run = small_run(root, "tic-tac-toe", "budget.steps=1000", "search.c_puct=2", *ratings)
    learn(run, models=2, full=220)
    line = {"model": str(list_models(run.models)[0]), "scores": {"mcts:5": [15, 2, 3]}}
    append_line(run.metrics / "rating.jsonl", line)
    return run.root


def measured(run: Run) -> list[Rating | str]:
    """Measure the newest model; return its ratings, or the reason why there are none."""
    rater = Rater(run)
    rater.offer(list_models(run.models)[0])
    wait_until(lambda: not rater.is_busy)
    return [*iter(rater.poll, None)]


def test_a_larger_network_begins_with_the_games_of_a_run_which_may_be_removed_then(old: Path, tmp_path: Path):
    shutil.copytree(old, tmp_path / "old")
    before, found = contents(old), read_games(old)
    last = list_models(old / "models")[0]
    said = shown("init", "new", "--from", "old", *LARGER, cwd=tmp_path)
    assert said.endswith(
        f"; it begins with {len(found.games)} games of {tmp_path / 'old'}; "
        f"its last model, step {last.step}, is the one to pass\n"
    )
    assert contents(tmp_path / "old") == before
    shutil.rmtree(tmp_path / "old")
    run, earlier = open_run(tmp_path / "new"), open_run(old)
    assert sorted(read_games(run.root).games["id"].tolist()) == sorted(found.games["id"].tolist())
    assert run.settings.network.channels == 16
    assert (run.settings.search, run.settings.rating) == (earlier.settings.search, earlier.settings.rating)
    assert (run.settings.budget.steps, run.seed) == (None, earlier.seed + 1)
    assert bootstrap_positions(run.segments) == run.settings.selfplay.bootstrap_positions == found.num_full
    with closing(Trainer(run, device="cpu")) as trainer:
        trainer.ingest()
        assert trainer.intake.games == len(found.games)
        while not trainer.publish_is_due(waiting=trainer.missing_positions() > 0):
            assert not trainer.missing_positions()
            trainer.train_step()
        passes = run.settings.trainer.bootstrap_passes * found.num_full
        assert trainer.intake.ledger.trained == pytest.approx(passes, abs=run.settings.trainer.batch_size)
        trainer.publish()
    (first, *_) = measured(run)
    assert [*first.scores] == ["random", f"before@{last.step}"]
    assert f"%) against mcts:5; step {list_models(run.models)[0].step} scored " in shown(
        "status", "--run", str(run.root)
    )
    assert Bot.load(run.root / "before").name.startswith(str(last))
    record = Dashboard(run).series(0)["before"]
    assert record["ratings"]["mcts:5"]["score"] == [0.8]
    assert record["learning"]["step"][-1] == last.step
    assert ", 0 faults" in shown("replay", "verify", "--run", str(run.root))


def new_run(old: Path, root: Path) -> Run:
    """A run that goes on from `old`, with an untrained model."""
    shown("init", str(root), "--from", str(old))
    run = open_run(root)
    add_model(run)
    return run


@pytest.mark.parametrize(
    ("first", "further", "words"),
    [
        ((9, 0, 11), [], "45% (26-66) in 20 games against before@{}: it has not yet passed the last model of"),
        (
            (11, 0, 9),
            [(2, 0, 18)],
            "before@{}, played because it had reached 0.55 before: it has not yet passed the last",
        ),
        (
            (11, 0, 9),
            [(11, 0, 9), (20, 0, 0)],
            "played because it had reached 0.55 before: it has passed the last model",
        ),
    ],
)
def test_a_sentence_says_whether_the_last_model_of_the_run_before_is_passed(
    old: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[int, int, int],
    further: list[tuple[int, int, int]],
    words: str,
):
    run = new_run(old, tmp_path / "new")
    results = [MatchResult(2, 0, 0), MatchResult(18, 0, 0), MatchResult(0, 0, 2)]  # two games come first
    results += [MatchResult(first[0], first[1], first[2] - 2), *(MatchResult(*each) for each in further)]
    replayed = iter(results)
    monkeypatch.setattr(rating, "play_match", lambda *_, **__: next(replayed))
    said = [str(each) for each in measured(run)]
    assert words.format(list_models(run.root / "before" / "models")[0].step) in said[-1]
    assert [each.count("the run before") for each in said] == [0] * len(further[:1]) + [1]
    assert next(replayed, None) is None
    passed = "has passed" in said[-1]
    assert has_passed(run.metrics) == passed
    verdict = "last model: passed." if passed else "last model: not yet passed."
    assert verdict in shown("status", "--run", str(run.root)).splitlines()[0]


def test_what_is_passed_stays_an_opponent_and_is_no_condition_of_a_budget(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = new_run(old, tmp_path / "new")
    monkeypatch.setattr(rating, "play_match", lambda *_, games, **__: MatchResult(games, 0, 0))
    assert len(measured(run)) == 2
    add_model(run, 13)
    monkeypatch.setattr(rating, "play_match", lambda *_, games, **__: MatchResult(0, 0, games))
    (second,) = measured(run)
    assert [*second.scores] == ["random", find_opponent(run)]
    assert "the run before" not in str(second)
    add_model(run, 14)
    monkeypatch.setattr(rating, "play_match", lambda *_, games, **__: MatchResult(games, 0, 0))
    assert len(measured(run)) == 1
    assert [found.model.step for found in read_scores(run.metrics)] == [12, 12, 13, 14]
    assert best_model(run.models, run.metrics).step == 14


def test_a_segment_that_the_earlier_run_removes_meanwhile_is_left_out(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(old, tmp_path / "old")
    names = [*list_segments(old / "replay")]
    (tmp_path / "old" / "replay" / str(names[0])).unlink()
    listed = iter([names, names])
    monkeypatch.setattr("plyzero.run.replay.list_segments", lambda _: next(listed, names[1:]))
    kept = sum(name.games for name in names[1:])
    assert f" begins with {kept} games of " in shown("init", "new", "--from", "old", cwd=tmp_path)


def test_a_run_without_a_model_gives_its_games_alone(tmp_path: Path):
    play_segment(small_run(tmp_path / "old"), full=50)
    said = shown("init", "new", "--from", "old", "--seed", "7", cwd=tmp_path)
    assert said.endswith(f" games of {tmp_path / 'old'}, which has no model yet\n")
    run = open_run(tmp_path / "new")
    assert run.seed == 7
    assert find_opponent(run) is None
    assert not (run.root / "before").exists()
    assert "The run before" not in shown("status", "--run", "new", cwd=tmp_path)


def test_a_preset_takes_the_place_of_the_settings_of_the_earlier_run(old: Path, tmp_path: Path):
    shown("init", "new", "--from", str(old), "--preset", "standard", cwd=tmp_path)
    run = open_run(tmp_path / "new")
    assert (run.preset, run.settings.network.channels, run.settings.search.c_puct) == ("standard", 64, 1.25)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["new"], "expected --run DIR, the new run; only with --from and a run is its game known"),
        (["new", "--from", "nowhere"], "expected --run DIR, the new run; only with --from and a run"),
        (["tic-tac-toe", "--from", "old"], "expected the new run, got the game tic-tac-toe; give --run DIR too"),
        (["old", "--from", "old"], "old is a run directory already; it was not changed"),
        (["other", "--from", "old"], "other is a run directory already; it was not changed"),
        (["new", "--from", "empty"], "empty has no sealed games that can be read; begin without --from"),
        (["begun", "--from", "old"], "begun has the games of an init that did not end; remove it, or give another"),
        (["connect-four", "--run", "new", "--from", "old"], "its game is 'tic-tac-toe v1', expected 'connect-four v1'"),
        (["new", "--from", "changed"], "the rules of tic-tac-toe are not those that made the games in"),
        (["new", "--from", "old", "-o", "network.chanels=64"], "-o: no setting is called network.chanels"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(old: Path, tmp_path: Path, command: list[str], says: str):
    shutil.copytree(old, tmp_path / "old")
    small_run(tmp_path / "other")
    small_run(tmp_path / "empty")
    shutil.copytree(old / "replay", tmp_path / "begun" / "replay")
    with_other_rules(tmp_path / "changed")
    before = contents(tmp_path)
    assert says in refused("init", *command, cwd=tmp_path)
    assert contents(tmp_path) == before


def with_other_rules(root: Path) -> None:
    """A run of tic-tac-toe whose records say that the other player won."""
    run = small_run(root)
    path = play_segment(run)
    games = read_games(run.root)
    changed = games.games.copy()
    changed["winner"][changed["winner"] >= 0] ^= 1
    path.unlink()
    seal(run, replace(games, games=changed))
