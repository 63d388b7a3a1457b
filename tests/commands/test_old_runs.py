"""Runs of released versions: every command reads them and changes nothing, and what cannot go on says so at once."""

import json
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from plyzero import Bot
from plyzero.kits.web.run_state import Dashboard
from plyzero.run.directory import open_or_create_run, open_run
from plyzero.run.records import FOREIGN_FENCE
from plyzero.run.replay import read_games
from plyzero.run.segments import list_segments
from plyzero.settings import RENAMED, find_renamed
from plyzero.trainer.loop import Trainer
from tests.helpers.cli import plyzero, refused, shown
from tests.helpers.old_runs import VERSIONS, contents, old_run
from tests.helpers.runs import SMALL, small_run


@pytest.fixture(params=VERSIONS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return old_run(request.param, tmp_path)


def sections_of(root: Path) -> dict[str, dict[str, object]]:
    table = tomllib.loads((root / "run.toml").read_text())
    return {key: value for key, value in table.items() if isinstance(value, dict)}


def test_the_run_of_version_0_1_has_the_old_names_of_its_settings(tmp_path: Path):
    renamed = find_renamed(sections_of(old_run("0.1.0", tmp_path)))
    assert RENAMED.keys() - renamed.keys() == {"search.noise_alpha"}  # which is not set


def test_every_command_reads_a_run_of_an_earlier_version_and_changes_nothing(root: Path):
    before, run = contents(root), str(root)
    assert "models: 1, newest 000001-000000025-" in shown("status", "--run", run)
    assert ", 0 faults" in shown("replay", "verify", "--rules", "--run", run)
    games = [json.loads(line) for line in shown("replay", "export", "--run", run).splitlines()]
    assert len(games) == sum(name.games for name in list_segments(root / "replay")) > 300
    assert "score " in plyzero("match", run, "random", "--game", "tic-tac-toe", "--games", "2").stdout
    assert shown("analyze", "tic-tac-toe", "--run", run, text='{"moves": []}\n').startswith("{")
    assert "the bot is 000001-000000025-" in plyzero("play", "tic-tac-toe", "--run", run, text="resign\nquit\n").stdout
    bot = Bot.load(root)
    assert bot.choose(bot.game.start) in range(9)
    page = Dashboard(root)
    assert page.state()["game"] == "tic-tac-toe v1"
    assert page.series(0)["next"] > 0
    assert len(page.games(20)["games"]) == 20
    assert contents(root) == before


@pytest.mark.parametrize("command", [["train", "tic-tac-toe", "--workers", "1"], ["trainer"]], ids=["train", "trainer"])
def test_a_run_with_another_network_is_refused_before_anything_starts_or_is_written(root: Path, command: list[str]):
    before = contents(root)
    found = refused(*command, "--run", str(root))
    assert "has trained another network than plyzero.trainer.network:ResidualNetwork with 1 blocks of 8" in found
    assert found.endswith(f"plyzero init tic-tac-toe --run NEW --from {root}\n")
    assert contents(root) == before


def test_a_new_run_begins_with_the_games_of_an_old_one(root: Path, tmp_path: Path):
    before, options = contents(root), [part for option in SMALL for part in ("-o", option)]
    said = shown("init", "tic-tac-toe", "--run", str(tmp_path / "new"), "--from", str(root), *options)
    old, new = read_games(root), read_games(tmp_path / "new")
    assert f"; it begins with {len(old.games)} games of {root}; its last model, step 25, is the one to pass\n" in said
    assert Bot.load(tmp_path / "new" / "before").choose(open_run(root).game.start) in range(9)
    assert contents(root) == before
    assert sorted(new.games["id"].tolist()) == sorted(old.games["id"].tolist())
    evaluated = new.positions["model_fence"] > 0
    assert evaluated.sum() == (old.positions["model_fence"] > 0).sum() > 0
    assert set(new.positions["model_fence"][evaluated].tolist()) == {FOREIGN_FENCE}
    run = open_run(tmp_path / "new")
    with closing(Trainer(run, device="cpu")) as trainer:
        trainer.ingest()
        assert trainer.intake.games == len(old.games)
        assert not trainer.missing_positions()
        while not trainer.publish_is_due(waiting=trainer.missing_positions() > 0):
            trainer.train_step()
        trainer.publish()
    assert ", 0 faults" in shown("replay", "verify", "--run", str(run.root))


def test_a_run_without_games_begins_no_other(tmp_path: Path):
    empty = small_run(tmp_path / "empty").root
    found = refused("init", "tic-tac-toe", "--run", str(tmp_path / "new"), "--from", str(empty))
    assert "has no sealed games that can be read" in found
    assert not (tmp_path / "new" / "run.toml").exists()


def test_an_old_run_has_an_id_and_the_present_names_once_it_is_opened_for_writing(root: Path):
    before = contents(root)
    settings = open_run(root).settings
    run = open_or_create_run(root, None)
    assert run.id.older_without
    assert run.settings == settings == open_run(root).settings
    assert open_run(root).id == run.id
    assert not find_renamed(sections_of(root))
    after = contents(root)
    assert after.keys() - before.keys() == {"run-id"}
    assert {name for name in before if after[name] != before[name]} == {"run.toml"}
    assert ", 0 faults" in shown("replay", "verify", "--run", str(root))  # its files have no id
    assert open_or_create_run(root, None).id == run.id
    assert contents(root) == after
