"""plyzero share: what it writes and says, and what it refuses in one sentence before anything is written."""

import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from posixpath import normpath

import pytest

from plyzero.kits.browser import folder_sizes, page_files
from plyzero.kits.browser.game_folder import MODEL, SharedBot, bot_of_run, write_folder
from plyzero.kits.browser.game_texts import find_texts
from plyzero.kits.browser.newest_bot import keep_newest
from plyzero.kits.browser.wasm import compile_rules
from plyzero.kits.browser.web_runtime import FILES
from plyzero.kits.web.pages import IMPORT
from plyzero.play.bundled_bots import find_card
from plyzero.rules.catalog import load_game
from plyzero.run.models import publish_model
from plyzero.trainer.export import untrained
from tests.helpers import shared_games
from tests.helpers.cli import plyzero
from tests.helpers.shared_games import Gather, spec

GAMES = "tests.helpers.shared_games"
REPOSITORY = Path(__file__).parents[3]

ABSOLUTE = re.compile(r"""(?:from ?|src=|href=|import\(|fetch\(|url\(|URL\()["'`]?/\w""")
"""An address that begins at the root of a server."""


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    folder = tmp_path / "onnxruntime-web"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture(scope="module")
def module():
    pytest.importorskip("ziglang")
    return compile_rules(spec(Gather))


@pytest.fixture(scope="module")
def texts():
    return find_texts(spec(Gather))


@pytest.fixture
def shared_gather(monkeypatch, module, texts, tmp_path, runtime):
    """A function that shares a variant of Gather with the module and the tables of Gather itself."""
    pytest.importorskip("wasmtime")
    monkeypatch.setattr("plyzero.kits.browser.sharing.compile_rules", lambda game: module)
    monkeypatch.setattr("plyzero.kits.browser.sharing.find_texts", lambda game, report: texts)
    bot = SharedBot("a bot", b"a model", {})
    monkeypatch.setattr("plyzero.kits.browser.game_folder.find_bot", lambda game, run, net: bot)

    def share(variant: str, *options: str, code: int = 0):
        game = spec(getattr(shared_games, variant))
        monkeypatch.setattr("plyzero.commands.common.find_game", lambda text: game)
        command = ("share", f"{GAMES}:{variant}", "-o", "shared", "--runtime", str(runtime), "--positions", "400")
        return plyzero(*command, *options, cwd=tmp_path, code=code)

    return share


def test_it_writes_a_folder_and_says_what_was_compared_and_how_large_it_is(shared_gather, tmp_path, runtime):
    done = shared_gather("Gather")
    first, *_, last = done.stdout.splitlines()
    assert first.startswith(f"shared has {GAMES}:Gather with a bot. In 4")
    assert "The scoreboard is left out" in done.stdout
    assert "At 10 Mbit/s a visitor can move after" in last
    assert [line.split()[0] for line in done.stdout.splitlines()[-6:-1]] == list(folder_sizes.ORDER)
    folder = tmp_path / "shared"
    about = json.loads((folder / MODEL).read_text())
    assert (about["bot"], about["step"], about["bytes"], about["isWatched"]) == ("a bot", None, 7, False)
    assert (folder / "static" / "board.js").is_file()
    assert (folder / "onnxruntime-LICENSE").read_text().startswith("MIT License")
    assert (folder / "LICENSE").read_bytes() == (REPOSITORY / "LICENSE").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"shared", runtime.name}


@pytest.mark.parametrize(
    ("planted", "sentence"),
    [
        ("OneNeighbourLess", "in board, in WebAssembly, expected"),
        ("OtherName", "the name of action 8 is 'c3=3' on the page, expected 'c3'"),
        ("OtherBoard", "part 5 of the board is"),
    ],
)
def test_a_planted_difference_is_refused_with_its_moves(planted, sentence, shared_gather, tmp_path, runtime):
    done = shared_gather(planted, code=1)
    assert done.stderr.startswith(f"plyzero: {GAMES}:Gather cannot be shared: after ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == [runtime.name]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (
            "share tests.helpers.dice:PlainRace",
            "plyzero new NAME --from tests.helpers.dice:PlainRace --compiled begins it",
        ),
        ("share azg:tests.helpers.azg_games:Noughts", "of another toolkit: docs/compiled-games.md shows how"),
        ("share openspiel:tic_tac_toe", "of another toolkit: docs/compiled-games.md shows how"),
        ("share chess(chess960=True)", "chess(chess960=True) has no bundled bot: give one by --run DIR or --net FILE"),
        ("share connect-four --net {bot}", "its game is 'tic-tac-toe v1', expected"),
        ("share connect-four --run runs/x --net {bot}", "expected --run or --net, got both"),
        ("share tic-tac-toe --watch", "expected --watch with --run DIR, a run whose newest model is kept"),
        (f"share {GAMES}:ManyCells", "no board is drawn: render() has 1024 cells, expected at most 999"),
        ("share tic-tac-toe --output full", "full has other files than those of a shared game"),
        ("share tic-tac-toe --runtime full", "full has no ort.wasm.min.mjs"),
    ],
)
def test_what_cannot_be_shared_is_refused_in_one_sentence(command, sentence, tmp_path):
    if "openspiel" in command:
        pytest.importorskip("pyspiel")
    pytest.importorskip("wasmtime")
    pytest.importorskip("ziglang")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    card = find_card(load_game("tic-tac-toe"))
    arguments = command.format(bot=card.network).split()
    output = [] if "--output" in arguments else ["-o", "new"]
    done = plyzero(*arguments, *output, cwd=tmp_path, code=2)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "notes.txt"]


def test_without_a_linker_it_says_what_to_install(monkeypatch, tmp_path):
    pytest.importorskip("wasmtime")
    monkeypatch.setattr("plyzero.kits.browser.wasm.find_spec", lambda name: None)
    monkeypatch.setattr("plyzero.kits.browser.wasm.which", lambda name: None)
    done = plyzero("share", "tic-tac-toe", "-o", "new", cwd=tmp_path, code=2)
    assert "ziglang or wasm-ld, and neither is here: pip install -e '.[share]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_the_page_are_complete_and_work_in_every_folder():
    files = page_files.page_files()
    texts = {name: content.decode() for name, content in files.items() if name.endswith((".js", ".html", ".css"))}
    assert not [name for name, text in texts.items() if ABSOLUTE.search(text)]
    for name in page_files.FROM_WEB:
        source = (page_files.PAGE_OF_WEB / name).read_text()
        for _, _, imported in IMPORT.findall(source):
            path = normpath(f"static/{name}/../{imported}")
            assert path in files, f"{name} imports {imported}: add it to FROM_WEB"


def test_a_folder_keeps_the_newest_model_of_a_run(run, tmp_path):
    first = publish_model(run.models, untrained(run), fence=1, step=1)
    bot = bot_of_run(run, first)
    folder = tmp_path / "shared"
    game = {"format": "plyzero.share/1", "bot": bot.name, "search": bot.search, "start": [1, 2]}
    write_folder(folder, {"game.json": json.dumps(game).encode(), "model.onnx": bot.model})
    second = publish_model(run.models, untrained(replace(run, seed=1)), fence=1, step=20)
    stop, told, states = threading.Event(), [], []

    def report(text: str) -> None:
        told.append(text)
        states.append(json.loads((folder / MODEL).read_text()))
        stop.set()

    assert keep_newest(run, folder, bot, stop=stop, report=report) == "stopped"
    newest = bot_of_run(run, second)
    assert told == [f"the page has the network of {run.root.name} after 20 steps"]
    assert (states[0]["step"], states[0]["isWatched"]) == (20, True)
    about = json.loads((folder / MODEL).read_text())
    assert about == {**states[0], "isWatched": False}
    assert (folder / "model.onnx").read_bytes() == newest.model
    assert json.loads((folder / "game.json").read_text()) == {**game, "bot": newest.name}
