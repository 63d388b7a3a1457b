"""Players: found by name, loaded from a run or a file."""

from pathlib import Path

import numpy as np
import pytest

from games.connect_four import ConnectFour
from games.tic_tac_toe import TicTacToe
from plyzero.arena.entrants import find_entrants
from plyzero.errors import UserError
from plyzero.network.model_loader import load_network
from plyzero.play import players
from plyzero.play.players import Bot, find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.run.metrics import append_line
from plyzero.run.models import best_model, list_models, publish_model
from plyzero.search.evaluators import Evaluation, EvaluationBatch, Uniform
from plyzero.search.tree import GUMBEL, PUCT
from plyzero.settings import SearchSettings
from plyzero.testing import LookaheadContract, PlayerContract
from tests.helpers.hostile_models import linear
from tests.helpers.runs import small_run
from tests.helpers.toys import Hashed
from trainer.export import untrained

GAMES = (
    "tic-tac-toe",
    "plyzero.check.template.tic_tac_toe:TicTacToe",
    "tests.helpers.dice:Race",
    "tests.helpers.dice:PlainRace",
)
"""Compiled and in plain Python, without and with dice."""


class Named:
    """A player that is found by its name."""

    @pytest.fixture(autouse=True)
    def given(self, game: str, name: str) -> None:
        self.game, self.name = game, name

    def player(self, rng: np.random.Generator):
        return find_player(self.name, load_game(self.game), rng)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", ["random", "mcts:8"])
class TestPlayersOfEveryGame(Named, PlayerContract):
    pass


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", ["greedy", "alphabeta:2", "mcts:200"])
class TestPlayersThatLookAhead(Named, LookaheadContract):
    pass


@pytest.mark.parametrize(("game", "name"), [("tic-tac-toe", "bot"), ("connect-four", "bot:2"), ("pig", "bot:1")])
class TestBundledBots(Named, PlayerContract):
    count = 8


@pytest.mark.parametrize("game", GAMES)
class TestBotsWithAnEvaluator(LookaheadContract):
    @pytest.fixture(autouse=True)
    def given(self, game: str) -> None:
        self.game = game

    def player(self, rng: np.random.Generator):
        game = load_game(self.game)
        return Bot("own", game, Hashed(game.start.num_actions), simulations=32)


class TestABotThatSamplesItsMoves(PlayerContract):
    game = "connect-four"

    def player(self, rng: np.random.Generator):
        return Bot("own", load_game(self.game), Hashed(7), simulations=8, temperature=1.0).with_rng(rng)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = small_run(tmp_path_factory.mktemp("run") / "r", "connect-four")
    publish_model(run.models, untrained(run), fence=1, step=1)
    return run.root


@pytest.mark.parametrize("simulations", [0, 16])
class TestBotsWithANetwork(PlayerContract):
    game = "connect-four"

    @pytest.fixture(autouse=True)
    def given(self, model: Path, simulations: int) -> None:
        self.model, self.simulations = model, simulations

    def player(self, rng: np.random.Generator):
        return find_player(str(self.model), load_game(self.game), rng, simulations=self.simulations)


def test_the_best_model_is_the_one_with_the_most_points_and_still_there(tmp_path: Path):
    run = small_run(tmp_path / "r")
    content = untrained(run)
    names = [publish_model(run.models, content, fence=1, step=step) for step in (1, 2, 3, 4)]
    rated = {1: [5, 4, 1], 2: [6, 2, 2], 3: [7, 0, 3]}  # 7, 7 and 7 points of 10
    for step, points in rated.items():
        append_line(run.metrics / "rating.jsonl", {"model": str(names[step - 1]), "scores": {"random": points}})
    gone = "000001-000000009-00000000.onnx"
    append_line(run.metrics / "rating.jsonl", {"model": gone, "scores": {"random": [10, 0, 0]}})
    assert best_model(run.models, run.metrics) == names[2]
    append_line(
        run.metrics / "rating.jsonl", {"model": str(names[0]), "scores": {"random": [5, 4, 1], "mcts:100": [0, 1, 9]}}
    )
    assert best_model(run.models, run.metrics) == names[0]
    assert load_network(run.root, model="best").step == 1
    assert load_network(run.root).step == 4
    assert load_network(run.root, model="2").step == 2


def test_two_games_won_do_not_count_for_more_than_nineteen_of_twenty(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    names = [publish_model(run.models, bytes([step]), fence=1, step=step) for step in (1, 2)]
    for name, points in zip(names, ([19, 0, 1], [2, 0, 0]), strict=True):
        append_line(run.metrics / "rating.jsonl", {"model": str(name), "scores": {"random": points}})
    assert best_model(run.models, run.metrics) == names[0]


def test_a_bot_finds_its_game_and_its_search_in_the_file(tmp_path: Path):
    run = small_run(tmp_path / "r", "connect-four", "search.algorithm=puct")
    name = publish_model(run.models, untrained(run), fence=1, step=3)
    copied = tmp_path / "copied.onnx"
    copied.write_bytes((run.models / str(name)).read_bytes())
    for path in (run.root, copied):
        bot = Bot.load(path, simulations=8)
        assert bot.game.name == "connect-four"
        position = bot.game.start
        root = bot.search([position])[0]
        assert (root.algorithm, root.simulations) == (PUCT, 8)
        assert bot.choose(position) == root.best_action() == bot.choose_all([position])[0]
    with pytest.raises(UserError, match="is a run of connect-four, not of othello"):
        Bot.load(run.root, game="othello")
    with pytest.raises(UserError, match="its game is 'connect-four v1', expected 'othello v1'"):
        Bot.load(copied, game="othello")


def test_positions_that_would_need_too_much_memory_are_searched_in_groups(monkeypatch: pytest.MonkeyPatch):
    game = load_game("tic-tac-toe")
    positions = [game.start, game.start.play(4), game.start.play(4).play(0)]
    bot = Bot("b", game, Hashed(9), simulations=9, settings=SearchSettings())
    together = [result.visits.tolist() for result in bot.search(positions)]
    groups: list[int] = []
    monkeypatch.setattr(players, "MAX_NODES", 20)
    found = bot.search(positions, on_batch=lambda slots: groups.append(len(slots.trees.slots)))
    assert [result.visits.tolist() for result in found] == together
    assert set(groups) == {2, 1}


def test_players_are_found_by_name(tmp_path: Path):
    run = small_run(tmp_path / "r")
    for step in (1, 2):
        publish_model(run.models, untrained(run), fence=1, step=step)
    rng = np.random.default_rng(0)
    names = {each: find_player(each, run.game, rng, simulations=5).name for each in ("random", "mcts:7")}
    assert names == {"random": "random", "mcts:7": "mcts:7"}
    assert find_player("mcts:7", run.game, rng).simulations == 7
    assert find_player(str(run.root), run.game, rng, simulations=5).name.startswith("000001-000000002-")
    assert find_player(f"{run.root}@1", run.game, rng, simulations=5).name.startswith("000001-000000001-")
    assert find_player(f"{run.root}@1", run.game, rng, simulations=5).name.endswith(" with 5 simulations")


def test_a_path_may_contain_an_at_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run = small_run(tmp_path / "u@1" / "r@2")
    for step in (1, 2):
        publish_model(run.models, untrained(run), fence=1, step=step)
    rng = np.random.default_rng(0)
    for name, step in ((f"{run.root}", 2), (f"{run.root}@1", 1), (f"{run.root}@newest", 2)):
        assert find_player(name, run.game, rng).name.startswith(f"000001-{step:09d}-")
    for name in ("u@1/r", "u@1/none@best"):
        with pytest.raises(UserError, match=r"^'u@1/(r|none)' does not exist; expected a player"):
            find_player(name, run.game, rng)
    of_run, _ = find_entrants([f"{run.root}@1", "random"], run.game, simulations=5)
    assert of_run.network == (run.models / str(list_models(run.models)[0])).read_bytes()


def test_an_onnx_file_of_somebody_else_is_named_as_such(tmp_path: Path):
    path = tmp_path / "other.onnx"
    path.write_bytes(linear(metadata={}).SerializeToString())
    for game in ("tic-tac-toe", None):
        with pytest.raises(UserError, match=r"other\.onnx is an ONNX file that plyzero has not written: .*MODULE:FUNC"):
            Bot.load(path, game=game)


def test_changed_search_settings_leave_the_others_as_in_training(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "search.algorithm=puct", "search.c_puct=2.5")
    publish_model(run.models, untrained(run), fence=1, step=1)
    bot = Bot.load(run.root, simulations=8, search={"algorithm": "gumbel"})
    assert bot.settings == SearchSettings(algorithm="gumbel", c_puct=2.5)
    assert bot.search([run.game.start])[0].algorithm == GUMBEL
    player = find_player(str(run.root), run.game, np.random.default_rng(0), search={"c_puct": 3})
    assert player.settings == SearchSettings(algorithm="puct", c_puct=3)
    with pytest.raises(UserError, match=r"no setting is called search.cpuct; the nearest is search.c_puct"):
        Bot.load(run.root, search={"cpuct": 2})
    with pytest.raises(UserError, match=r"setting search.c_puct: Input should be greater than 0, got -1"):
        Bot.load(run.root, search={"c_puct": -1})


def first_action(batch: EvaluationBatch) -> Evaluation:
    logits, wdl = Uniform(9)(batch)
    logits[:, 4] = 20.0
    return Evaluation(logits, wdl)


def test_a_bot_plays_with_an_evaluator_of_ones_own_and_the_default_settings():
    bot = Bot("own", load_game("tic-tac-toe"), first_action, simulations=8)
    assert bot.settings == SearchSettings()
    assert bot.choose(bot.game.start) == 4


@pytest.mark.parametrize(
    ("logits", "wdl", "sentence"),
    [
        (np.full((1, 9), np.nan), [[0, 1, 0]], "its logits are not finite"),
        (np.zeros((1, 9)), [[-0.5, 1, 0.5]], "its wdl are not finite numbers that are probabilities"),
        (np.zeros((1, 8)), [[0, 1, 0]], "its outputs have the shapes"),
    ],
)
def test_an_evaluation_with_impossible_values_is_one_sentence(logits: np.ndarray, wdl: list, sentence: str):
    bot = Bot("own", load_game("tic-tac-toe"), lambda batch: (logits, wdl), simulations=2)
    with pytest.raises(UserError, match=f"^own: {sentence}"):
        bot.choose(bot.game.start)


@pytest.mark.parametrize(
    "arguments", [{"simulations": -1}, {"simulations": 10_000_001}, {"temperature": -1.0}, {"temperature": np.nan}]
)
def test_a_bot_with_a_number_that_cannot_be_is_one_sentence(arguments: dict):
    with pytest.raises(UserError, match=r"expected (simulations from 0|a temperature of at least 0).*, got "):
        Bot("own", load_game("tic-tac-toe"), first_action, **arguments)


@pytest.mark.parametrize("position", [ConnectFour(), ConnectFour(rows=4, columns=5), TicTacToe()])
def test_a_position_of_another_game_is_one_sentence(position: Game):
    bot = Bot("own", load_game("connect-four(columns=5)"), Uniform(5), simulations=2)
    with pytest.raises(UserError, match=r"a position of connect-four\(columns=5\), ConnectFour with 5 .* got "):
        bot.choose(position)
