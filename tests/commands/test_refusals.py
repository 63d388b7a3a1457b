"""Commands refuse bad input with a sentence and an exit code, before anything is changed."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from plyzero.rules.catalog import load_game
from plyzero.trainer.export import untrained
from tests.helpers.cli import plyzero, refused
from tests.helpers.old_runs import contents
from tests.helpers.runs import small_run
from tests.helpers.teachers import game_lines, perfect

TEMPLATE = "from plyzero.check.template.tic_tac_toe import TicTacToe"

RULES = f"""
{TEMPLATE}

class NoActions(TicTacToe): num_actions = 0
class NoShape(TicTacToe): observation_shape = 3
class NoSize(TicTacToe): observation_shape = (0, 3, 3)
class Nobody(TicTacToe): to_play = 7
class Raises(TicTacToe):
    def play(self, action): raise RuntimeError("two\\nlines")
class Nothing(TicTacToe):
    def play(self, action): return None
class NoOutcome(TicTacToe):
    def outcome(self): return 5
class NoBoard(TicTacToe):
    def __str__(self): raise RuntimeError("no board")
class ManyPlanes(TicTacToe): policy_planes = 2
"""


def failing(statement: str) -> str:
    return f"import sys\n\n{TEMPLATE}\n\n\nclass Fails(TicTacToe):\n    def play(self, action):\n        {statement}\n"


FILES = {
    "wrong_rules.py": RULES,
    "syntax.py": "class Game(:\n",
    "two_lines.py": "raise RuntimeError('two\\nlines')\n",
    "exits.py": "raise SystemExit(3)\n",
    "opens.py": failing("open('/no/such/book')"),
    "ends.py": failing("sys.exit(3)"),
    "twin.py": f"{TEMPLATE}\n\nclass Twin(TicTacToe): pass\n",
    "folder/both.py": f"{TEMPLATE}\n\nclass One(TicTacToe): pass\n\nclass Two(One): pass\n",
    "games.jsonl": "\n".join(game_lines(load_game("tic-tac-toe").start, perfect, 7, opening=6)),
    "empty.jsonl": "\n\n",
    "folder.onnx/file": "",
    "twice.txt": "a1 a1",
}
"""Files in the directory in which commands are given."""


@pytest.fixture(scope="module")
def places(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Things that are wrong: D/ in arguments."""
    place = tmp_path_factory.mktemp("places")
    (place / "empty").mkdir()
    (place / "junk.onnx").write_bytes(b"junk" * 100)
    other = small_run(place / "c4", "connect-four")
    (place / "c4.onnx").write_bytes(untrained(other))
    (place / "ttt.onnx").write_bytes(next((root / "models").iterdir()).read_bytes())
    for name in ("binary", "pipes"):
        (place / name).mkdir()
    (place / "binary" / "run.toml").write_bytes(bytes(range(256)))
    os.mkfifo(place / "pipes" / "run.toml")
    shutil.copytree(root, place / "emptied")
    next((place / "emptied" / "models").iterdir()).write_bytes(b"")
    return place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which a command is given, on a machine with one GPU."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    return tmp_path


def files_of(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("train conect-four --run R", "'conect-four' is not an installed game; the closest names: connect-four"),
        ("train connect-four --run R", "is a run of tic-tac-toe, not of connect-four"),
        ("train tic-tac-toe --run R -o selfplay.slot=1", "no setting is called selfplay.slot; "),
        ("trainer --run R/none", "is not a run directory"),
        ("init tic-tac-toe --run R", "is a run directory already; it was not changed"),
        ("init tic-tac-toe --run R/run.toml/below", "cannot use R/run.toml/below"),
        ("play tic-tac-toe --net R/none.onnx", "cannot use R/none.onnx"),
        ("play tic-tac-toe --run R/none", "R/none is not a run directory: it has no run.toml; make one"),
        ("play tic-tac-toe --as third", "'third' is not one of 'first', 'second', 'random'"),
        ("play tic-tac-toe --run R --net x", "expected --run or --net, got both"),
        ("play tic-tac-toe --model best", "--model best needs --run"),
        ("play tic-tac-toe --run R --model last", "expected model newest, best or a step, got 'last'"),
        ("play tic-tac-toe --run R --model best", "no model in R/models has been measured"),
        ("play tic-tac-toe --net R/models", "R/models is a directory; expected --net FILE, or --run"),
        ("match nobody random --game tic-tac-toe", "'nobody' does not exist; expected a player: random"),
        ("match R random --game connect-four", "is a run of tic-tac-toe, not of connect-four"),
        ("match R@7 random --game tic-tac-toe", "no model of step 7 in R/models; the newest are 12"),
        ("check tic-tac-toe --skip gravity", "unknown law 'gravity'; the laws are numbers_fit_their_fields, comp"),
        ("check tic-tac-toe --skip rules_answer", "rules_answer cannot be skipped: rules that raise"),
        ("new 'two words'", "begins with a letter and has only letters, digits and hyphens, got 'two words'"),
        ("new numpy", "'numpy' would be the module numpy, which exists in Python already; choose another name"),
        ("new fast --compiled", "--compiled needs --from GAME, the game in plain Python whose compiled form is to be"),
        ("new fast --compiled --from tic-tac-toe", "tic-tac-toe is compiled already; --compiled begins the compiled"),
        ("new twin --compiled --from twin:Twin", "'twin' would be the module twin, which exists in Python already"),
        ("new folder --compiled --from twin:Twin", "folder exists already and was not changed; choose another name"),
        (
            "new fast --compiled --from opens:Fails",
            "opens:Fails cannot be played: FileNotFoundError: [Errno 2] No such",
        ),
        # what every command reads first
        ("frobnicate", "No such command 'frobnicate'"),
        ("train", "Missing argument 'GAME'; see plyzero train --help"),
        ("train connect-four", "Missing option '--run'"),
        ("play tic-tac-toe --port 80", "No such option"),
        ("games x", "unexpected extra argument"),
        ("replay list", "No such command 'list'"),
        # settings
        ("init tic-tac-toe --run D/n -o selfplay.simulations=-1", "greater than or equal to 2, got '-1'"),
        ("init tic-tac-toe --run D/n -o trainer.learning_rate=nan", "a finite number, got 'nan'"),
        ("init tic-tac-toe --run D/n -o selfplay.parallel_games=1000000000", "less than or equal to 65536"),
        ("init tic-tac-toe --run D/n -o selfplay.simulations=1000000000", "less than or equal to 10000000"),
        ("init tic-tac-toe --run D/n -o trainer.batch_size=1000000000", "less than or equal to 131072"),
        ("init tic-tac-toe --run D/n -o selfplay.threads=100000", "less than or equal to 1024"),
        ("init tic-tac-toe --run D/n -o selfplay.cache_mb=100000000", "less than or equal to 65536"),
        ("init tic-tac-toe --run D/n --preset huge", "expected one of the presets quick, standard, gpu"),
        ("init tic-tac-toe --run D/n --seed -1", "expected a seed from 0 to 2^63 - 1, got -1"),
        ("train tic-tac-toe --run D/n --device tpu", "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
        ("train tic-tac-toe --run D/n --workers 0", "Invalid value for '--workers'"),
        ("train tic-tac-toe --run D/n --minutes nan", "Invalid value for '--minutes'"),
        ("train tic-tac-toe --run D/n --minutes inf", "Invalid value for '--minutes'"),
        ("selfplay --run R --log-format xml", "'xml' is not one of 'text', 'json'"),
        # places
        ("init tic-tac-toe --run ''", "expected --run DIR, got an empty name"),
        ("init tic-tac-toe --run /dev/null", "cannot use /dev/null/replay: Not a directory"),
        (f"init tic-tac-toe --run {'x' * 300}", "File name too long"),
        ("status --run D/empty", "is not a run directory: it has no run.toml"),
        ("status --run D/binary", "D/binary/run.toml is not valid TOML"),
        ("status --run D/pipes", "D/pipes/run.toml cannot be read: not a file"),
        ("health --run R --within nan", "Invalid value for '--within'"),
        # games
        ("check tic-tac-toe --games 0", "Invalid value for '--games'"),
        ("play wrong_rules:NoActions", "wrong_rules:NoActions.num_actions: expected a number from 1 on, got 0"),
        ("play wrong_rules:ManyPlanes", "ManyPlanes.policy_planes: expected a number from 0 to 1, got 2"),
        ("play wrong_rules:NoShape", "observation_shape: expected (planes, rows, columns), got 3"),
        ("play wrong_rules:NoSize", "observation_shape: expected (planes, rows, columns), got (0, 3, 3)"),
        ("play wrong_rules:Nobody", "wrong_rules:Nobody.to_play: expected 0 or 1, got 7"),
        ("play syntax:Game", "cannot import syntax: SyntaxError: invalid syntax (syntax.py, line 1)\n"),
        ("play two_lines:Game", "cannot import two_lines: RuntimeError: two lines (two_lines.py, line 1)"),
        ("play exits:Game", "cannot import exits: SystemExit: 3 (exits.py, line 1)"),
        # models
        ("play tic-tac-toe --net D/junk.onnx", "is not a model that ONNX Runtime can read"),
        ("play tic-tac-toe --net D/c4.onnx", "its game is 'connect-four v1', expected 'tic-tac-toe v1'"),
        ("play tic-tac-toe --net /dev/zero", "cannot use /dev/zero: not a file"),
        ("play tic-tac-toe --run D/emptied", "no model in D/emptied/models can be used: "),
        (f"play tic-tac-toe --run R --model {'9' * 5000}", "expected model newest, best or a step, got '999"),
        ("play tic-tac-toe --level 1 --simulations 5", "--level selects the bundled bot"),
        ("play tic-tac-toe --simulations -1", "Invalid value for '--simulations'"),
        ("play tic-tac-toe --simulations 99999999999", "expected simulations from 0 to 10000000, got 99999999999"),
        # matches
        ("match random random", "Missing option '--game'"),
        ("match random random --game tic-tac-toe --games 0", "Invalid value for '--games'"),
        ("match random random --game tic-tac-toe --games 3", "expected an even number of --games"),
        ("match random random --game tic-tac-toe --opening-plies 500", "expected opening_plies from 0 to 8, got 500"),
        ("match mcts:-5 random --game tic-tac-toe", "expected mcts:N with 1 to 10000000 rollouts per move"),
        ("match '' random --game tic-tac-toe", "'' does not exist; expected a player: random"),
        ("match D/ttt.onnx@best random --game tic-tac-toe", "@ chooses among the models of a run directory"),
        # settings of the search
        (
            "analyze tic-tac-toe --run R -o search.cpuct=2",
            "no setting is called search.cpuct; the nearest is search.c_puct",
        ),
        ("match R random --game tic-tac-toe -o search.c_puct=0", "setting search.c_puct: Input should be greater than"),
        ("match R random --game tic-tac-toe -o selfplay.threads=9", "-o: expected a setting of the search, such as "),
        # serve and gtp
        ("serve tic-tac-toe --run a --net b", "expected --run or --net, got both"),
        ("serve --run a", "a is not a run directory"),
        ("serve --net a", "need a game"),
        ("serve tic-tac-toe --net none.onnx", "none.onnx is not a file"),
        ("serve tic-tac-toe --host 300.1.1.1", "cannot listen on 300.1.1.1 port 8765"),
        ("gtp tic-tac-toe --run a --player random", "expected one of --run, --net and --player, got several"),
        ("gtp tic-tac-toe --coordinates sgf", "'sgf' is not one of 'names', 'points'"),
        ("gtp tests.helpers.dice:PlainRace --player random --coordinates points", "PlainRace has no board"),
        # bench
        ("bench tic-tac-toe --seconds inf", "Invalid value for '--seconds'"),
        ("bench tic-tac-toe --channels 100000000", "but an ONNX file has at most 2.1 GB"),
        # a game, a player or a part in another form
        ("check twin", "'twin' is not an installed game; did you mean twin:Twin?"),
        ("train twin.py --run r", ", got 'twin.py'; did you mean twin:Twin?"),
        ("check ./twin.py:Twin", ", got './twin.py:Twin'; did you mean twin:Twin?"),
        ("init folder/both.py --run r", "; did you mean folder.both:One or folder.both:Two?"),
        ("init folder.both:Tow --run r", "module 'folder.both' has no class 'Tow'; its games: One, Two"),
        ("check nothing.py", "my_module:MyGame, got 'nothing.py'\n"),
        (
            "init twin:Twin --run r -o trainer.targets=a.b",
            "trainer.targets from -o: expected MODULE:FUNCTION, such as a:b, got",
        ),
        (
            "init twin:Twin --run r -o network.module=n.py:N",
            "network.module from -o: expected MODULE:CLASS, such as n:N, got",
        ),
        ("match no:player random --game twin:Twin", "the form is MODULE:CLASS or MODULE:FUNCTION\n"),
        ("match no.py:player random --game twin:Twin", "expected the name of a module, such as no, got"),
        # opponents
        ("play tic-tac-toe --against greedy --level 1", "--against names the opponent; omit --run, --net,"),
        # positions to begin at
        ("analyze tic-tac-toe --start none.txt", "cannot begin at the position in none.txt: "),
        ("gtp tic-tac-toe --start none.txt", "cannot begin at the position in none.txt: "),
        ("match random random --game tic-tac-toe --start none.txt", "cannot begin at the position in none.txt: "),
        ("analyze tic-tac-toe --start twice.txt", "reach by filling cells, or names of moves: move 2: "),
        # games to imitate
        ("imitate connect-four games.jsonl -o b.onnx", "; are these games of connect-four?"),
        ("imitate tic-tac-toe empty.jsonl -o b.onnx", "empty.jsonl has no finished game of tic-tac-toe"),
        ("imitate tic-tac-toe nowhere -o b.onnx", "cannot read nowhere: No such file or directory"),
        ("imitate tic-tac-toe games.jsonl -o a=1", "expected one -o BOT.onnx, the file to write, got none"),
        ("imitate tic-tac-toe games.jsonl -o a.onnx -o b.onnx", "the file to write, got a.onnx b.onnx"),
        ("imitate tic-tac-toe games.jsonl -o folder.onnx", "folder.onnx is a directory; expected -o BOT.onnx"),
        ("imitate tic-tac-toe games.jsonl -o b.onnx -o x=1", "expected -o SECTION.KEY=VALUE"),
        ("imitate tic-tac-toe games.jsonl -o b.onnx --preset x", "expected one of the presets quick, standard, gpu"),
        # experiments, also what only a task would refuse
        ("experiment run tik-tac-toe --out o", "'tik-tac-toe' is not an installed game; the closest names: "),
        ("experiment run tic-tac-toe --out o -p game=tik", "'tik' is not an installed game; the closest names"),
        ("experiment run sweep --out o -p sedes=3", "sweep has no parameter 'sedes'; the nearest is seeds"),
        ("experiment run none.toml --out o", "cannot read none.toml: No such file or directory"),
        ("experiment run sweep --out o --gpus 3", "expected at most 1 --gpus, the GPUs that are visible, got 3"),
        ("experiment run tic-tac-toe --out o -p opponents=mctz:5", "there is no module 'mctz' in this directory"),
        ("experiment run tic-tac-toe --out o -p games=5", "expected an even number of games, so that both"),
        ("experiment run tic-tac-toe --out o -p examples=0", "expected an opponent and at least one game, got 3"),
        ("experiment run tic-tac-toe --out o -p settings=selfplay.simulatoins=4", "no setting is called selfplay."),
        ("experiment run tic-tac-toe --out o -p preset=slow", "expected one of the presets quick, standard, gpu, got"),
        ("experiment run tic-tac-toe --out o -p minutes=0", "expected more than 0 minutes or steps of training, or"),
        ("experiment task trian --in . --out o", "plyzero: no task is called 'trian'; the nearest is train\n"),
        (
            "experiment task evaluate --in . --out o -p gams=4",
            "evaluate has no parameter 'gams'; the nearest is games\n",
        ),
        ("experiment task evaluate --in . --out o -p games=four", "expected -p games=A WHOLE NUMBER, got 'four'\n"),
        (
            "experiment task evaluate --in . --out o -p games",
            "expected -p NAME=VALUE, such as -p runs=3, got 'games'\n",
        ),
        ("experiment task average --in . --out o", "plyzero: the task average needs -p runs=...\n"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    root: Path, places: Path, place: Path, arguments: str, sentence: str
):
    before = contents(root), contents(places), files_of(place)
    given = [_placed(argument, root, places) for argument in shlex.split(arguments)]
    found = refused(*given, cwd=place)
    assert sentence.replace("R/", f"{root}/").replace("D/", f"{places}/") in found
    assert len(found) < 1000
    assert (contents(root), contents(places), files_of(place)) == before


def _placed(argument: str, root: Path, places: Path) -> str:
    """Replace R by the run and D by the directory of things that are wrong."""
    if argument in ("R", "R@", "R@7") or argument.startswith("R/"):
        return argument.replace("R", str(root), 1)
    return argument.replace("D/", f"{places}/", 1) if argument.startswith("D/") else argument


@pytest.mark.parametrize(
    ("command", "game", "cause"),
    [
        ("play", "wrong_rules:Raises", "RuntimeError: two lines (wrong_rules.py, line 9, in play)"),
        ("play", "wrong_rules:Nothing", "AttributeError: 'NoneType' object"),
        ("play", "wrong_rules:NoOutcome", "AttributeError: 'int' object"),
        ("play", "wrong_rules:NoBoard", "RuntimeError: no board (wrong_rules.py, line 15, in __str__)"),
        (
            "match random random --game",
            "wrong_rules:Raises",
            "RuntimeError: two lines (wrong_rules.py, line 9, in play)",
        ),
        ("match random random --game", "wrong_rules:Nothing", "AttributeError: 'NoneType' object"),
        *(
            (f"match {player} random --game", f"{module}:Fails", f"{error} ({module}.py, line 8, in play)")
            for player in ("random", "mcts:4")
            for module, error in (
                ("opens", "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/book'"),
                ("ends", "SystemExit: 3"),
            )
        ),
    ],
)
def test_rules_that_fail_are_named_with_their_line_and_with_how_to_test_them(
    place: Path, command: str, game: str, cause: str
):
    done = plyzero(*command.split(), game, cwd=place, text="a1\n", code=1)
    assert done.stderr.startswith(f"plyzero: {game} cannot be played: {cause}")
    assert done.stderr.endswith(f"; plyzero check {game} tests the rules\n")
    assert len(done.stderr.splitlines()) == 1
    assert {*re.findall(r"\((\w+)\.py, line", done.stderr)} <= {game.partition(":")[0]}  # never one of plyzero


@pytest.mark.parametrize("module", ["opens", "ends"])
def test_check_names_rules_that_end_the_process_or_open_no_file_as_others(module: str, place: Path):
    done = plyzero("check", f"{module}:Fails", cwd=place, code=1)
    assert "broken law play_makes_a_new_position" in done.stdout
    assert re.search(rf"{module}.py, line 8\b", done.stdout)
    assert "Traceback" not in done.stderr
