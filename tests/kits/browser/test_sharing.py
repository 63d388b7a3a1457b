"""A game in WebAssembly and in tables is the same as in Python, and a difference is refused with its moves."""

import json
from pathlib import Path

import numpy as np
import pytest

from plyzero.errors import FailedError, UserError
from plyzero.kits.browser import game_texts
from plyzero.kits.browser.game_folder import SharedBot, find_bot, write_folder
from plyzero.kits.browser.game_texts import board_parts, find_texts
from plyzero.kits.browser.module_rules import ModuleRules
from plyzero.kits.browser.proof import prove
from plyzero.kits.browser.sharing import share_game
from plyzero.kits.browser.wasm import compile_rules
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import parse_move
from tests.helpers import shared_games
from tests.helpers.shared_games import SIZE, Gather, spec

pytest.importorskip("wasmtime", reason="pip install -e '.[share]'")
pytest.importorskip("ziglang", reason="pip install -e '.[share]'")

BOT = SharedBot("a bot", b"a model", {})
POSITIONS = 400


@pytest.fixture(scope="module")
def module():
    return compile_rules(spec(Gather))


@pytest.fixture(scope="module")
def texts():
    return find_texts(spec(Gather))


def test_a_game_with_dice_points_lists_and_arrays_is_the_same_in_webassembly(module, texts):
    proof = prove(spec(Gather), module, texts, positions=POSITIONS)
    assert proof.positions >= POSITIONS
    assert proof.unknown == 0
    assert len(module) < 20_000


@pytest.mark.parametrize(
    ("planted", "difference"),
    [
        ("OneNeighbourLess", "leads to the byte .* in board, in WebAssembly"),
        ("OtherChances", "the probability of roll 0 is 0.5 in WebAssembly, expected 0.333333"),
        ("OtherScore", "the score is .* in WebAssembly"),
        ("OtherName", "the name of action 8 is 'c3=3' on the page, expected 'c3'"),
        ("OtherBoard", "part 5 of the board is .* on the page"),
    ],
)
def test_a_planted_difference_is_refused_with_the_moves_and_nothing_is_written(
    planted, difference, module, texts, monkeypatch, tmp_path
):
    monkeypatch.setattr("plyzero.kits.browser.sharing.compile_rules", lambda game: module)
    monkeypatch.setattr("plyzero.kits.browser.sharing.find_texts", lambda game, report: texts)
    game = spec(getattr(shared_games, planted))
    where = "at the start" if planted == "OtherChances" else r"after (one|two|three)( \w\d=\d| one| two| three)*"
    with pytest.raises(FailedError, match=f"Gather cannot be shared: {where} .*{difference}"):
        share_game(game, BOT, tmp_path / "shared", page={}, positions=POSITIONS)
    assert list(tmp_path.iterdir()) == []


def test_the_moves_of_a_difference_lead_to_it(module, texts):
    """Played in both, they end in different states."""
    game = spec(shared_games.OneNeighbourLess)
    with pytest.raises(FailedError) as error:
        prove(game, module, texts, positions=POSITIONS)
    _, _, after = str(error.value).partition(" after ")
    names, _, rest = after.partition(" move ")
    position, rules = game.start, ModuleRules(game.start, module)
    for name in names.split():
        position = position.play(parse_move(position, name))
    move = int(rest.partition(" ")[0])
    rules.set_state(position.state)
    rules.play(move)
    assert not np.array_equal(rules.state(), position.play(move).state)


def test_a_rule_that_raises_an_exception_says_so(module):
    rules = ModuleRules(Gather(), module)
    rules.set_state(Gather().state)
    rules.play(2)
    assert rules.legal().all()
    with pytest.raises(FailedError, match="a rule raises an exception in WebAssembly"):
        rules.play(SIZE * SIZE)
    rules.play(4)
    assert rules.state().view(Gather.State)["board"][0].tolist() == [0, 0, 0, 0, 3, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("planted", "sentence"),
    [
        ("ManyNames", "a page knows the names of moves from a few bytes of the state"),
        ("ManyPieces", "a page knows the board from a few bytes of the state, and no 8 of them decide the cell"),
    ],
)
def test_a_text_that_depends_on_the_whole_state_is_refused_in_one_sentence(planted, sentence):
    with pytest.raises(UserError, match=sentence):
        find_texts(spec(getattr(shared_games, planted)))


def test_a_scoreboard_that_counts_the_board_is_left_out_with_a_note(texts):
    assert texts.scoreboard is None
    assert any("scoreboard" in note for note in texts.notes)
    assert texts.paths[texts.names.texts.index("b2=3")] == ("b2",)


def test_a_shared_game_has_its_files_and_replaces_one_of_its_kind_only(module, texts, monkeypatch, tmp_path):
    monkeypatch.setattr("plyzero.kits.browser.sharing.compile_rules", lambda game: module)
    monkeypatch.setattr("plyzero.kits.browser.sharing.find_texts", lambda game, report: texts)
    folder = tmp_path / "shared"
    for page in ({"old.js": b"1"}, {"index.html": b"<p>", "licences/ort.txt": b"MIT"}):
        share_game(spec(Gather), BOT, folder, page=page, positions=50)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    parts = {"rules.wasm", "model.onnx", "model.json", "board.css", "game.json", "files.json"}
    assert found == {*parts, "index.html", "licences/ort.txt"}
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]
    assert (folder / "rules.wasm").read_bytes() == module
    game = json.loads((folder / "game.json").read_text())
    assert game["format"] == "plyzero.share/1"
    assert (game["stateBytes"], game["toPlay"], game["actions"], game["numChances"]) == (20, 0, 9, 3)
    assert game["start"] == Gather().state.tolist()
    assert follow(game["names"], 8, [0] * 19 + [3]) == "c3=3"
    (folder / "game.json").write_text("{}")
    with pytest.raises(UserError, match="has other files than those of a shared game"):
        write_folder(folder, {"a": b""})
    assert (folder / "game.json").read_text() == "{}"


def follow(table, item, state):
    """Return a text as docs/formats.md says that a page finds it."""
    found = table["items"][item]
    while found < 0:
        at, *runs = table["nodes"][-1 - found]
        found = next(runs[i + 2] for i in range(0, len(runs), 3) if runs[i] <= state[at] <= runs[i + 1])
    return table["texts"][found]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tests.helpers.dice:PlainRace", "plyzero new NAME --from tests.helpers.dice:PlainRace --compiled begins it"),
        ("azg:tests.helpers.azg_games:Noughts", "of another toolkit: docs/compiled-games.md"),
    ],
)
def test_a_game_that_is_not_compiled_is_refused_with_what_to_do(name, sentence):
    with pytest.raises(UserError, match=sentence):
        compile_rules(load_game(name))


def test_a_machine_without_a_linker_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr("plyzero.kits.browser.wasm.find_spec", lambda name: None)
    monkeypatch.setattr("plyzero.kits.browser.wasm.which", lambda name: None)
    with pytest.raises(UserError, match=r"ziglang or wasm-ld, and neither is here: pip install -e '.\[share\]'"):
        compile_rules(spec(Gather))


def test_a_bot_is_of_a_file_or_bundled_and_fits_the_size_of_the_board(tmp_path: Path):
    bot = find_bot(load_game("tic-tac-toe"))
    assert bot.name == "the bundled bot"
    assert bot.search["cPuct"] > 0
    file = tmp_path / "my.onnx"
    file.write_bytes(bot.model)
    assert find_bot(load_game("tic-tac-toe"), net=file).name == "my.onnx"
    with pytest.raises(UserError, match="its game is 'tic-tac-toe v1', expected"):
        find_bot(load_game("connect-four"), net=file)
    with pytest.raises(UserError, match="has no bundled bot: give one by --run DIR or --net FILE"):
        find_bot(load_game("chess(chess960=True)"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["tic-tac-toe", "connect-four", "backgammon", "chess", "pig", "othello(size=6)", "hex(size=5)"]
)
def test_included_games_are_the_same_in_webassembly(name):
    game = load_game(name)
    proof = prove(game, compile_rules(game), find_texts(game), positions=1000)
    assert proof.positions >= 1000


def test_a_page_draws_each_value_on_each_square_also_where_a_board_has_gaps_between_its_values():
    game = load_game("hex(size=7)")
    table = find_texts(game).board
    values = (0, 1, 2, 5, 6, 9, 10)  # a stone, and whether it is connected to the first or to the last edge
    for cell in range(7 * 7):
        for value in values:
            state = game.start.state.copy()
            state[cell] = value
            expected = board_parts(game.start.with_state(state))
            assert [table.text(item, state) for item in range(len(expected))] == list(expected), (cell, value)


@pytest.mark.parametrize("more", [0, game_texts.MORE])
def test_a_name_that_few_positions_have_is_decided_by_more_made_states(more, monkeypatch):
    monkeypatch.setattr(game_texts, "REAL", 60)
    monkeypatch.setattr(game_texts, "MAX_TEXTS", 1200)  # as with many actions: few made states for each
    monkeypatch.setattr(game_texts, "MORE", more)
    game = spec(shared_games.RareName)
    if more == 0:
        with pytest.raises(UserError, match="decide"):
            find_texts(game)
    else:
        names = find_texts(game).names
        position = game.start.with_state(np.uint8([0] + [1] * 8 + [0, 2, 1, 0, 0, 1]))
        assert position.legal_actions() == (8,)
        assert names.text(8, position.state) == position.action_name(8) == "c3=2/1001"
