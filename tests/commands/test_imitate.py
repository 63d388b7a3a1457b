"""imitate, and init --from: a bot from a file of games, and what is said of files that are none."""

import json
from pathlib import Path

import onnx
import pytest

from plyzero.kits.imitation.commands import MAX_FAULTS
from plyzero.rules.catalog import load_game
from tests.helpers.cli import plyzero, refused, shown
from tests.helpers.teachers import game_lines, perfect

GAME = load_game("tic-tac-toe")
SIZE = ("-o", "network.blocks=1", "-o", "network.channels=8")
STEPS = ("-o", "trainer.batch_size=16", "-o", "trainer.warmup_steps=1")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("games") / "games.jsonl"
    path.write_text("\n".join(game_lines(GAME.start, perfect, 100, opening=6)))
    return path


def test_a_bot_is_made_plays_and_begins_a_run(games: Path, tmp_path: Path):
    command = ("imitate", "tic-tac-toe", str(games), "-o", "bot.onnx", *SIZE, *STEPS, "--minutes", "0")
    text = shown(*command, cwd=tmp_path)
    assert text.startswith("100 games: ")
    assert "\nIt agrees with the held-out games in " in text
    assert text.endswith("bot.onnx has the weights of step 1. To play: plyzero play tic-tac-toe --net bot.onnx\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bot.onnx", "bot.pt"]
    match = ("match", "bot.onnx", "random", "--game", "tic-tac-toe", "--games", "2", "--simulations", "0")
    assert "2 different games among the 2" in shown(*match, cwd=tmp_path)
    begin = ("init", "tic-tac-toe", "--run", "r", "--from", "bot.onnx")
    assert refused(*begin, cwd=tmp_path) == (
        "plyzero: bot.onnx is another network than that of the run, which has blocks = 3, channels = 32; give "
        "-o network.blocks=1 -o network.channels=8\n"
    )
    assert not (tmp_path / "r").exists()
    expected = "created r for tic-tac-toe; its settings are in r/run.toml; its first model is bot.onnx\n"
    assert shown(*begin, *SIZE, cwd=tmp_path) == expected
    (model,) = (tmp_path / "r" / "models").iterdir()
    assert model.name.startswith("000001-000000001-")
    found, given = (onnx.load(path) for path in (model, tmp_path / "bot.onnx"))
    assert found.graph == given.graph
    assert {entry.key for entry in found.metadata_props} - {entry.key for entry in given.metadata_props} == {"run"}
    assert refused(*begin, *SIZE, cwd=tmp_path) == "plyzero: r is a run directory already; it was not changed\n"
    assert len(list((tmp_path / "r" / "trainer").glob("fence-*.json"))) == 1


def written_pgn(line: str) -> str:
    fields = json.loads(line)
    result = {"first": "1-0", "second": "0-1", "draw": "1/2-1/2"}[fields["winner"]]
    return f'[Event "?"]\n[Result "{result}"]\n\n1. {" ".join(fields["moves"])} {result}\n\n'


def test_games_in_pgn_are_imitated_also_from_standard_input(games: Path, tmp_path: Path):
    found = "".join(map(written_pgn, games.read_text().splitlines()))
    (tmp_path / "games.pgn").write_text(found)
    command = ("imitate", "tic-tac-toe", "-o", "bot.onnx", *SIZE, *STEPS, "--minutes", "0")
    assert shown(*command, "games.pgn", cwd=tmp_path).startswith("100 games: ")
    unfinished = '[Event "?"]\n\n1. a1 b1 *\n'
    fault = "line 501: the game is not over after its 2 moves"
    text = shown(*command, "-", "--skip-bad", text=found + unfinished, cwd=tmp_path)
    assert text.startswith("100 games: ")
    assert f"; 1 left out, the first is {fault}\n" in text
    refusal = plyzero(*command, "-", text=found + unfinished, code=2, cwd=tmp_path).stderr
    sentence = f"plyzero: 1 of 101 games in standard input are not finished games of tic-tac-toe: {fault}; "
    assert refusal.startswith(sentence)


def test_bad_lines_are_named_and_can_be_left_out(games: Path, tmp_path: Path):
    wrong = ["{}", json.dumps({"moves": ["a1", "a1"], "winner": "first"}), *["{}"] * MAX_FAULTS]
    (tmp_path / "bad.jsonl").write_text("\n".join([*games.read_text().splitlines(), *wrong]))
    command = ("imitate", "tic-tac-toe", "bad.jsonl", "-o", "bot.onnx", *SIZE, *STEPS, "--minutes", "0")
    found = refused(*command, cwd=tmp_path)
    assert found.startswith(
        "plyzero: 7 of 107 games in bad.jsonl are not finished games of tic-tac-toe: line 101: expected moves, a list "
        "of names; line 102: move 2: expected one of b1 c1 a2"
    )
    assert found.endswith(
        "; line 105: expected moves, a list of names; ...; correct them, or leave them out with --skip-bad\n"
    )
    assert "line 106" not in found
    assert not (tmp_path / "bot.onnx").exists()
    text = shown(*command, "--skip-bad", cwd=tmp_path)
    assert text.startswith("100 games: ")
    assert "; 7 left out, the first is line 101: expected moves, a list of names\n" in text
