"""Players: found by name, loaded from a run or a file."""

import re
import shutil
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from plyzero import extensions
from plyzero.errors import UserError
from plyzero.games.connect_four import ConnectFour
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.kits.arena.entrants import find_entrants
from plyzero.network.model_loader import load_network
from plyzero.play import search_player
from plyzero.play.match import play_match
from plyzero.play.player import Player
from plyzero.play.players import GROUP, Bot, find_player
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import Game
from plyzero.rules.notation import play_named
from plyzero.run.directory import Run
from plyzero.run.events import best_model
from plyzero.run.metrics import append_line
from plyzero.run.models import list_models, publish_model
from plyzero.search.evaluators import Evaluation, EvaluationBatch, Uniform
from plyzero.search.tree import GUMBEL, PUCT
from plyzero.settings import SearchSettings
from plyzero.testing import LookaheadContract, PlayerContract
from plyzero.trainer.export import untrained
from tests.helpers.hostile_models import linear
from tests.helpers.runs import small_run
from tests.helpers.toys import Hashed

PLAIN = "plyzero.check.template.tic_tac_toe:TicTacToe"
GAMES = ("tic-tac-toe", PLAIN, "tests.helpers.dice:Race", "tests.helpers.dice:PlainRace")
"""Compiled and in plain Python, without and with dice."""


class Named:
    """A player that is found by its name."""

    @pytest.fixture(autouse=True)
    def given(self, game: str, name: str) -> None:
        self.game, self.player = game, lambda rng: find_player(name, load_game(game), rng)


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


def own_bot(game: str, **options) -> Bot:
    found = load_game(game)
    return Bot("own", found, Hashed(found.start.num_actions), **options)


@pytest.mark.parametrize("game", GAMES)
class TestBotsWithAnEvaluator(LookaheadContract):
    @pytest.fixture(autouse=True)
    def given(self, game: str) -> None:
        self.game, self.player = game, lambda rng: own_bot(game, simulations=32)


class TestABotThatSamplesItsMoves(PlayerContract):
    game = "connect-four"

    def player(self, rng: np.random.Generator):
        return own_bot(self.game, simulations=8, temperature=1.0).with_rng(rng)


def run_with_models(root: Path, game: str = "tic-tac-toe", *options: str, models: int = 1) -> Run:
    """Return a run with untrained models of the steps 1 to `models`."""
    run = small_run(root, game, *options)
    for step in range(1, models + 1):
        publish_model(run.models, untrained(run), fence=1, step=step)
    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_with_models(tmp_path_factory.mktemp("run") / "r", "connect-four").root


@pytest.mark.parametrize("simulations", [0, 16])
class TestBotsWithANetwork(PlayerContract):
    game = "connect-four"

    @pytest.fixture(autouse=True)
    def given(self, model: Path, simulations: int) -> None:
        self.player = lambda rng: find_player(str(model), load_game(self.game), rng, simulations=simulations)


def measure(run: Run, model: object, **scores: list[int]) -> None:
    """Write a line of ratings; mcts_100 stands for mcts:100."""
    named = {opponent.replace("_", ":"): points for opponent, points in scores.items()}
    append_line(run.metrics / "rating.jsonl", {"model": str(model), "scores": named})


def test_the_best_model_is_the_one_with_the_most_points_and_still_there(tmp_path: Path):
    run = run_with_models(tmp_path / "r", models=4)
    names = list_models(run.models)[::-1]  # the oldest first
    for name, points in zip(names, ([5, 4, 1], [6, 2, 2], [7, 0, 3]), strict=False):  # 7, 7 and 7 points of 10
        measure(run, name, random=points)
    measure(run, "000001-000000009-00000000.onnx", random=[10, 0, 0])
    assert best_model(run.models, run.metrics) == names[2]
    measure(run, names[0], random=[5, 4, 1], mcts_100=[0, 1, 9])
    assert best_model(run.models, run.metrics) == names[0]
    assert [load_network(run.root, **which).step for which in ({"model": "best"}, {}, {"model": "2"})] == [1, 4, 2]


def test_two_games_won_do_not_count_for_more_than_nineteen_of_twenty(tmp_path: Path):
    run = run_with_models(tmp_path / "r", models=2)
    names = list_models(run.models)[::-1]  # the oldest first
    measure(run, names[0], random=[19, 0, 1])
    measure(run, names[1], random=[2, 0, 0])
    assert best_model(run.models, run.metrics) == names[0]


def test_a_bot_finds_its_game_and_its_search_in_the_file(tmp_path: Path):
    run = run_with_models(tmp_path / "r", "connect-four", "search.algorithm=puct")
    (model,) = list_models(run.models)
    copied = shutil.copy(run.models / str(model), tmp_path / "copied.onnx")
    for path in (run.root, copied):
        bot = Bot.load(path, simulations=8)
        assert bot.game.name == "connect-four"
        position = bot.game.start
        root = bot.search([position])[0]
        assert (root.algorithm, root.simulations) == (PUCT, 8)
        assert bot.choose(position) == root.best_action() == bot.choose_all([position])[0]


def test_positions_that_would_need_too_much_memory_are_searched_in_groups(monkeypatch: pytest.MonkeyPatch):
    bot = own_bot("tic-tac-toe", simulations=9)
    positions = play_named(bot.game.start, ["b2", "a1"])[0]
    together = [result.visits.tolist() for result in bot.search(positions)]
    groups: list[int] = []
    monkeypatch.setattr(search_player, "MAX_NODES", 20)
    found = bot.search(positions, on_batch=lambda slots: groups.append(len(slots.trees.slots)))
    assert [result.visits.tolist() for result in found] == together
    assert set(groups) == {2, 1}


def test_players_are_found_by_name():
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    assert [find_player(name, game, rng, simulations=5).name for name in ("random", "mcts:7")] == ["random", "mcts:7"]
    assert find_player("mcts:7", game, rng, simulations=5).simulations == 7


def test_a_path_may_contain_an_at_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run = run_with_models(tmp_path / "u@1" / "r@2", models=2)
    rng = np.random.default_rng(0)
    for name, step in ((f"{run.root}", 2), (f"{run.root}@1", 1), (f"{run.root}@newest", 2)):
        found = find_player(name, run.game, rng, simulations=5).name
        assert re.fullmatch(f"000001-{step:09d}-.* with 5 simulations", found)
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
    run = run_with_models(tmp_path / "r", "tic-tac-toe", "search.algorithm=puct", "search.c_puct=2.5")
    bot = Bot.load(run.root, simulations=8, search={"algorithm": "gumbel"})
    assert bot.settings == SearchSettings(algorithm="gumbel", c_puct=2.5)
    assert bot.search([run.game.start])[0].algorithm == GUMBEL
    player = find_player(str(run.root), run.game, np.random.default_rng(0), search={"c_puct": 3})
    assert player.settings == SearchSettings(algorithm="puct", c_puct=3)


def test_an_identity_says_what_a_player_is_and_nothing_of_the_limits(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "own_identity.py").write_text("from plyzero.play.rule_based import Greedy\ndef evaluate(batch): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    game = load_game("connect-four")

    def identity(name: str, **limits: object) -> tuple[str, bool]:
        found = find_player(name, game, np.random.default_rng(0), **limits)
        return found.identity, found.takes_limits

    for name in ("random", "greedy", "alphabeta:4", "mcts:20", "own_identity:Greedy", "bot:1", "bot:2"):
        assert identity(name) == identity(name, simulations=3)
        assert not identity(name)[1]
    assert identity("mcts:020") == identity("mcts:20") == ("mcts:20", False)
    assert identity("bot:1") != identity("bot:2")
    (file,) = model.glob("models/*.onnx")
    copied = str(shutil.copy(file, tmp_path / "copied.onnx"))
    assert identity(str(model), simulations=3) == identity(copied, simulations=5)
    assert identity(copied)[1]
    assert identity("own_identity:evaluate")[1]
    before = identity("own_identity:evaluate")
    assert before[0].startswith("own_identity:evaluate ")
    (tmp_path / "own_identity.py").write_text("def evaluate(batch): return 1\n")
    assert identity("own_identity:evaluate") != before


def test_the_strength_of_a_player_that_nobody_has_measured_judges_nothing():
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    for player in (find_player("random", game, rng), own_bot("tic-tac-toe")):
        assert not player.strength().judges
        assert "has not been measured" in player.strength().text


class Fixed(Player):
    """A player of another package, which remembers with what it was made."""

    def __init__(self, argument: str, game: GameSpec, rng: np.random.Generator, **limits: object) -> None:
        if argument == "wrong":
            raise UserError("expected hello:N, got hello:wrong")
        self.name, self.game, self.limits = f"Fixed {1 // int(argument)}", game, limits

    def choose_all(self, positions):
        return [int(position.legal_actions()[0]) for position in positions]


def duck(argument: str, *_: object, **limits: object) -> SimpleNamespace:
    return SimpleNamespace(name=argument, choose_all=lambda positions: [4 for _ in positions])


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages with players of the prefixes hello, duck, broken, absent and, in vain, mcts."""
    values = {"hello": "Fixed", "duck": "duck", "broken": "GAMES.index", "mcts": "Fixed"}
    found = [EntryPoint(name, f"{__name__}:{value}", GROUP) for name, value in values.items()]
    found.append(EntryPoint("absent", "no_such_package:player", GROUP))
    monkeypatch.setattr(
        extensions, "entry_points", lambda group: found if group == GROUP else entry_points(group=group)
    )


@pytest.mark.usefixtures("packages")
def test_a_package_makes_players_for_its_prefix_with_the_limits_of_the_command():
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    found = find_player("hello:1", game, rng, simulations=5, search={"c_puct": 2.0})
    assert isinstance(found, Fixed)
    assert (found.name, found.identity, found.game) == ("Fixed 1", "Fixed 1", game)
    assert found.limits == {"simulations": 5, "search": {"c_puct": 2.0}}
    assert find_player("mcts:7", game, rng).name == "mcts:7"  # a built-in prefix stays what it is
    assert find_player("duck:x", game, rng).choices([game.start], [[]]) == [4]


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("hello:wrong", "^cannot use hello:wrong: expected hello:N, got hello:wrong$"),
        ("hello:0", r"^cannot use hello:0: ZeroDivisionError: .*\(test_players.py, line \d+, in \w+\)$"),
        ("absent:1", "^player absent cannot be used: importing no_such_package failed with ModuleNotFoundError"),
        ("broken:1", "^cannot use broken:1: TypeError"),
        ("nobody", r"mcts:1000, bot, absent:\.\.\., broken:\.\.\., duck:\.\.\., hello:\.\.\., a run directory"),
    ],
)
def test_what_is_wrong_with_a_player_of_a_package_is_one_sentence(name: str, sentence: str):
    with pytest.raises(UserError, match=sentence):
        find_player(name, load_game("tic-tac-toe"), np.random.default_rng(0))


def test_a_match_takes_objects_with_a_name_and_choose_all_and_refuses_others():
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    own = SimpleNamespace(name="own", choose_all=lambda positions: [each.legal_actions()[0] for each in positions])
    assert play_match(own, own, game.start, games=2, rng=rng, opening_plies=0).losses == 1
    with pytest.raises(
        UserError, match=r"^expected a player: an object with a name and a method choose_all, got 'random'"
    ):
        play_match("random", own, game.start, games=2, rng=rng)


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
