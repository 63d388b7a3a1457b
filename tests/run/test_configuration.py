"""Settings and run directories: the layers, and one clear sentence for everything that is wrong."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game, Outcome
from plyzero.run.configuration import PRESETS, preset_for, resolve
from plyzero.run.directory import create_run, open_or_create_run, open_run
from plyzero.settings import RENAMED, Settings, find_renamed, parse_stored_settings
from tests.helpers.hostile import at_once
from tests.helpers.toys import Chain, Relay


class Over(Relay):
    """A game that is over at its start."""

    def outcome(self):
        return Outcome(0)


class Fails(Relay):
    """A game whose rules fail at its start."""

    def outcome(self):
        raise KeyError("winner")


SECTIONS = {name: field.annotation for name, field in Settings.model_fields.items()}
VARIABLE, OF_RUN = "PLYZERO_SELFPLAY__PARALLEL_GAMES", {"selfplay": {"parallel_games": 3}}


def test_layers_go_defaults_preset_run_environment_options():
    gpu, found, given = PRESETS["gpu"], [], {"environment": {}}
    layers = (
        {},
        {"preset": gpu},
        {"run": OF_RUN},
        {"environment": {VARIABLE: "4"}},
        {"options": ["selfplay.parallel_games=5"]},
    )
    for layer in layers:
        given |= layer
        found.append(resolve(**given).selfplay.parallel_games)
    assert found == [Settings().selfplay.parallel_games, gpu["selfplay"]["parallel_games"], 3, 4, 5]
    assert found[0] != found[1]


def test_lists_and_none_can_be_written_on_the_command_line():
    settings = resolve(environment={}, options=["rating.opponents=random,mcts:7", "search.dirichlet_alpha=none"])
    assert settings.rating.opponents == ("random", "mcts:7")
    assert settings.search.dirichlet_alpha is None
    assert resolve(environment={}, options=["rating.opponents=random"]).rating.opponents == ("random",)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ({"options": ["selfplay.simulation=4"]}, r"-o: no setting is called .*; .*selfplay.simulations"),
        ({"options": ["selfply.simulations=4"]}, r"-o: no section is called 'selfply'; the nearest is selfplay"),
        ({"run": {"trainer": {"batch": 4}}}, r"run.toml: no setting is called trainer.batch; .* trainer.batch_size"),
        ({"environment": {"PLYZERO_TRAINER__BATCH": "4"}}, r"the environment: no setting is called trainer.batch"),
        ({"options": ["selfplay.parallel_games=many"]}, r"selfplay.parallel_games from -o: .*integer.*, got 'many'"),
        ({"run": {"selfplay": {"starts": "a\0"}}}, r"selfplay.starts from run.toml: expected text without .* NUL, got"),
        ({"run": {"rating": {"opponents": ["a\0:B"]}}}, r"rating.opponents\S* from run.toml: .*got "),
        ({"run": {"selfplay": {"parallel_games": "x"}}}, r"selfplay.parallel_games from run.toml: .* got 'x'"),
        # the layer that holds is named
        ({"run": OF_RUN, "environment": {VARIABLE: "0"}}, r"selfplay.parallel_games from the environment: .* got '0'"),
        ({"run": OF_RUN, "options": ["selfplay.parallel_games=-7"]}, r"selfplay.parallel_games from -o: .* got '-7'"),
        ({"environment": {"PLYZERO_SELFPLAY_SLOTS": "4"}}, r"PLYZERO_SELFPLAY_SLOTS: expected PLYZERO_SECTION__KEY"),
        ({"options": ["slots=4"]}, r"expected -o SECTION.KEY=VALUE, .* got 'slots=4'"),
        (
            {"options": ["rating.opponents=best"]},
            r"rating.opponents.0 from -o: expected a player such as random, mcts:100",
        ),
    ],
)
def test_what_is_wrong_with_a_setting_is_said_in_one_sentence(layers, message: str):
    with pytest.raises(UserError, match=message):
        resolve(**{"environment": {}, **layers})


def test_every_setting_has_a_default_and_says_what_it_means():
    for section in SECTIONS.values():
        for name, field in section.model_fields.items():
            assert (bool(field.description), field.is_required()) == (True, False), name


def test_a_run_holds_the_settings_it_was_started_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLYZERO_TRAINER__THREADS", "3")
    made = create_run(tmp_path / "r", load_game("othello(size=6)"), seed=7, options=["selfplay.parallel_games=5"])
    monkeypatch.delenv("PLYZERO_TRAINER__THREADS")
    table = tomllib.loads((tmp_path / "r" / "run.toml").read_text())
    assert (table["game"], table["seed"], table["selfplay"]["parallel_games"]) == ("othello(size=6)", 7, 5)
    for name, section in SECTIONS.items():
        values = getattr(made.settings, name).model_dump()
        assert set(table[name]) == {key for key in section.model_fields if values[key] is not None}
    opened = open_run(tmp_path / "r")
    assert opened.settings == made.settings
    assert opened.game.identity == "othello(size=6) v1"


def test_a_run_opens_for_its_own_game_alone(tmp_path: Path):
    create_run(tmp_path, load_game("tic-tac-toe"))
    with pytest.raises(UserError, match="is a run of tic-tac-toe, not of connect-four; give another --run"):
        open_run(tmp_path, game=load_game("connect-four"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "is empty; put back a copy of it, or give another --run directory"),
        (lambda text: "= =", "is not valid TOML"),
        (lambda text: text.replace("format = 1", "format = 99"), "has format 99"),
        (lambda text: text.replace("game_version = 1", "game_version = 2"), "the rules are now version 1; start a new"),
        (lambda text: "slots = 4\n" + text, "before slots"),
        (lambda text: text.replace("seed = 0", 'seed = "x"'), "needs game"),
        (lambda text: text.replace("\nparallel_games", "\nparallel"), "no setting is called selfplay.parallel;"),
    ],
)
def test_a_damaged_run_file_is_one_sentence(tmp_path: Path, change, message: str):
    create_run(tmp_path, load_game("tic-tac-toe"))
    path = tmp_path / "run.toml"
    path.write_text(change(path.read_text()))
    with pytest.raises(UserError, match=message):
        open_run(tmp_path)


def test_a_run_is_not_taken_up_with_another_seed_or_preset(tmp_path: Path):
    game = load_game("tic-tac-toe")
    open_or_create_run(tmp_path, game, seed=3)
    assert open_or_create_run(tmp_path, game).seed == 3
    with pytest.raises(UserError, match="was made with seed 3, not 4"):
        open_or_create_run(tmp_path, game, seed=4)
    with pytest.raises(UserError, match="was made with preset quick, not gpu"):
        open_or_create_run(tmp_path, game, preset="gpu")


def test_many_processes_may_make_one_run_at_once(tmp_path: Path):
    game, runs = load_game("tic-tac-toe"), []
    at_once(8, lambda _: runs.append(open_or_create_run(tmp_path / "r", game, seed=None)))
    assert len(runs) == 8
    assert len({run.settings.model_dump_json() for run in runs}) == 1
    assert not list((tmp_path / "r").glob(".tmp-*"))


def test_every_preset_makes_valid_settings():
    for preset in PRESETS:
        resolve(preset=preset_for(preset, load_game("othello").start), environment={})


def test_a_preset_grows_with_the_board_the_choice_and_the_length_of_a_game():
    def flat(preset: dict) -> set:
        return {(f"{name}.{key}", value) for name, section in preset.items() for key, value in section.items()}

    def enlarged(name: str) -> dict:
        return dict(flat(preset_for("quick", load_game(name).start)) - flat(PRESETS["quick"]))

    assert enlarged("tic-tac-toe") == enlarged("connect-four") == {}
    assert enlarged("othello(size=6)") == {"network.points": True}
    assert enlarged("pig(goal=50)") == {"search.all_rolls": True, "trainer.luck_adjustment": True}
    assert enlarged("gomoku(size=7)") == {"network.value_head": "pooled"}
    plain = {"selfplay.parallel_games": 16, "selfplay.simulations": 32, "selfplay.fast_simulations": 8}
    hour = flat(preset_for("standard", load_game(f"{__name__}:Broken").start)) - flat(PRESETS["standard"])
    assert hour == {("selfplay.parallel_games", 16)}
    assert enlarged("tests.helpers.toys:Wide") == {"selfplay.simulations": 128}
    assert enlarged(f"{__name__}:Wall") == plain | {"network.blocks": 5, "trainer.window_positions": 75_000}
    assert enlarged(f"{__name__}:Broken") == plain


class Wall(Chain):
    """300 plies of one move on a board of 3 x 20."""

    num_actions, observation_shape = 2, (1, 3, 20)

    def __init__(self) -> None:
        super().__init__("01" * 150)

    def observe(self):
        return np.zeros(self.observation_shape, np.float32)


class Broken(Wall):
    """Its rules fail."""

    def play(self, action):
        raise ZeroDivisionError


def test_a_run_that_is_there_is_not_made_anew(tmp_path: Path):
    create_run(tmp_path, load_game("tic-tac-toe"), seed=3)
    written = (tmp_path / "run.toml").read_bytes()
    with pytest.raises(FileExistsError):
        create_run(tmp_path, load_game("connect-four"), seed=4)
    assert (tmp_path / "run.toml").read_bytes() == written


@pytest.mark.parametrize(
    ("bad", "good", "sentence"),
    [
        (
            ["trainer.bootstrap_passes=1.5", "selfplay.bootstrap_positions=100", "trainer.batch_size=151"],
            "trainer.batch_size=150",
            "trainer.bootstrap_passes * selfplay.bootstrap_positions = 1.5 * 100 = 150 is less than "
            "trainer.batch_size = 151: the trainer could never make a step, and the workers would wait forever for its "
            "first model",
        ),
        (
            ["trainer.replay_ratio=0.5", "trainer.window_positions=799", "trainer.batch_size=100"],
            "trainer.window_positions=800",
            "trainer.replay_ratio * trainer.window_positions = 0.5 * 799 = 399.5 is less than 4 * trainer.batch_size "
            "= 400: the trainer could never collect enough positions for its steps",
        ),
    ],
)
def test_settings_with_which_all_would_wait_forever_are_refused(bad: list[str], good: str, sentence: str):
    with pytest.raises(UserError) as refused:
        resolve(environment={}, options=bad)
    assert str(refused.value) == sentence
    resolve(environment={}, options=[*bad, good])


OLD_NAMES = {
    "search": {"kind": "puct", "noise_fraction": 0.2, "noise_alpha": 0.3, "considered_actions": 8},
    "selfplay": {"slots": 8, "full_share": 0.5, "fast_kind": "gumbel"},
    "trainer": {"gradient_norm": 3.0, "search_value_share": 0.4, "value_lambda": 0.8, "average_decay": 0.98},
    "store": {"reserve_mb": 3},
}
NEW_NAMES = {
    "search": {"algorithm": "puct", "dirichlet_fraction": 0.2, "dirichlet_alpha": 0.3, "max_considered_actions": 8},
    "selfplay": {"parallel_games": 8, "full_search_probability": 0.5, "fast_algorithm": "gumbel"},
    "trainer": {"max_grad_norm": 3.0, "search_value_weight": 0.4, "td_lambda": 0.8, "ema_decay": 0.98},
    "store": {"min_free_mb": 3},
}


def test_settings_of_version_0_1_are_read_by_their_old_names():
    expected = Settings.model_validate(NEW_NAMES)
    assert resolve(run=OLD_NAMES, environment={}) == expected
    assert parse_stored_settings(json.dumps(OLD_NAMES)) == parse_stored_settings(expected.model_dump_json()) == expected
    assert find_renamed(OLD_NAMES) == RENAMED


def test_renamed_settings_are_read_in_a_run_toml_and_refused_elsewhere():
    with pytest.raises(UserError) as refused:
        resolve(environment={"PLYZERO_STORE__RESERVE_MB": "1", "PLYZERO_SEARCH__KIND": "puct"})
    assert str(refused.value) == (
        "the environment: these variables have new names since version 0.2: "
        "PLYZERO_SEARCH__KIND is now PLYZERO_SEARCH__ALGORITHM, "
        "PLYZERO_STORE__RESERVE_MB is now PLYZERO_STORE__MIN_FREE_MB; rename them and start again"
    )
    with pytest.raises(UserError, match=r"^-o: .* selfplay.slots is now selfplay.parallel_games; rename them"):
        resolve(environment={}, options=["selfplay.slots=3", "selfplay.parallel_games=3"])
    assert resolve(run={"selfplay": {"slots": 3}}, environment={}).selfplay.parallel_games == 3
    both = {"selfplay": {"parallel_games": 4, "slots": 3}}
    assert resolve(run=both, environment={}).selfplay.parallel_games == 4


@pytest.mark.parametrize(("game", "message"), [(Over, "the game is over before"), (Fails, "KeyError.*winner")])
def test_no_run_is_created_for_a_game_that_cannot_begin(tmp_path: Path, game: type[Game], message: str):
    with pytest.raises(UserError, match=f"{game.__name__} cannot be played: {message}"):
        create_run(tmp_path / "r", load_game(game))
    assert not (tmp_path / "r").exists()
