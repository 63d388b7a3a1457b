"""plyzero review: files of one and of many games, as text, JSON and a page; what cannot be reviewed is said."""

import json
from pathlib import Path

import pytest

from tests.helpers.cli import plyzero, shown

LOST = {
    "game": "tic-tac-toe v1",
    "first": "A",
    "second": "B",
    "moves": ["b2", "a2", "a1", "c3", "b1", "b3", "c1"],
    "winner": "first",
}
DRAWN = {
    **LOST,
    "first": "B",
    "second": "A",
    "moves": ["b2", "a1", "c1", "a3", "a2", "c2", "b1", "b3", "c3"],
    "winner": "draw",
}
FEW = ("--simulations", "32")


@pytest.fixture
def file(tmp_path: Path):
    def write(*games: object) -> str:
        path = tmp_path / "games.jsonl"
        path.write_text("".join(json.dumps(game) + "\n" for game in games))
        return str(path)

    return write


def test_one_game_is_reviewed_turn_by_turn(file):
    text = shown("review", "tic-tac-toe", file(LOST), *FEW)
    assert "Game 1, 7 turns: the first player won." in text
    assert "The second player has lost 50 percentage points by a turn that was clearly worse." in text
    assert "The largest losses of B:" in text
    played = next(line for line in text.splitlines() if line.startswith("2     a2"))
    assert "50 percentage points" in played
    assert "blunder" in played
    assert "The judge: the bundled bot" in text
    assert "In this game random play has an accuracy of " in text


def test_many_games_are_a_table_by_game_and_by_player(file):
    lines = shown("review", "tic-tac-toe", file(LOST, DRAWN), *FEW).splitlines()
    assert [line.split()[:3] for line in lines[1:5]] == [
        ["1", "won", "A"],
        ["1", "lost", "B"],
        ["2", "draw", "B"],
        ["2", "draw", "A"],
    ]
    means = {line.split()[0]: line.split() for line in lines[-7:-4]}
    assert (means["A"][1], means["A"][2]) == ("2", "100")
    assert means["B"][1] == "2"
    assert int(means["B"][2]) < 100


PGN = """[White "Ann"]
[Black "Bo"]

1. b2 a2 2. a1 c3 {a slip} 3. b1 b3 (3... c1) 4. c1 1-0
"""


def test_a_game_in_pgn_is_reviewed_as_the_same_game_in_json(file, tmp_path: Path):
    (tmp_path / "games.pgn").write_text(PGN)
    found = shown("review", "tic-tac-toe", str(tmp_path / "games.pgn"), *FEW)
    assert found == shown("review", "tic-tac-toe", file({**LOST, "first": "Ann", "second": "Bo"}), *FEW)
    assert "The largest losses of Bo:" in found
    assert found == shown("review", "tic-tac-toe", "-", *FEW, text=PGN)


def test_every_game_is_a_json_object(file):
    path = file(LOST, DRAWN)
    found = [json.loads(line) for line in shown("review", "tic-tac-toe", path, "--json", *FEW).splitlines()]
    assert [each["game"] for each in found] == [1, 2]
    assert (found[0]["first"], found[0]["winner"], found[0]["unit"]) == ("A", "first", "score")
    assert found[0]["turns"][1]["mistake"] == "blunder"
    assert json.loads(shown("review", "tic-tac-toe", path, "--json", "--game", "2", *FEW))["game"] == 2


def test_a_page_shows_one_game(file, tmp_path: Path):
    page = tmp_path / "game.html"
    shown("review", "tic-tac-toe", file(LOST, DRAWN), "--game", "1", "-o", str(page), *FEW)
    assert "The second player has lost 50 percentage points" in page.read_text()
    refused = plyzero("review", "tic-tac-toe", file(LOST, DRAWN), "-o", str(page))
    assert refused.returncode == 2
    assert "has 2 games, and a page shows one: choose it by --game N" in refused.stderr


def test_what_cannot_be_reviewed_is_one_sentence_and_the_other_games_are(file):
    other = {**LOST, "game": "hex v1"}
    illegal = {**LOST, "moves": ["b2", "b2"]}
    unfinished = {**LOST, "moves": ["b2"], "winner": None}
    done = plyzero("review", "tic-tac-toe", file(other, illegal, LOST, unfinished, "nonsense"), "--json", *FEW)
    assert done.returncode == 2
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["game"] for each in answers] == [1, 2, 3, 4, 5]
    assert "line 1: it is a game of 'hex v1', not of tic-tac-toe v1" in answers[0]["error"]
    assert "line 2: move 2: " in answers[1]["error"]
    assert answers[2]["turns"]
    assert answers[3]["error"] == "the game is not over after its 1 moves; expected one that has ended"
    assert answers[4]["error"].startswith("line 5: ")
    assert "4 of 5 games could not be reviewed" in done.stderr


def test_wrong_input_is_one_sentence(file, tmp_path: Path):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    for words, sentence in (
        ((str(empty),), "contains no game"),
        ((str(tmp_path / "none.jsonl"),), "No such file"),
        ((file(LOST), "--game", "2"), "expected --game from 1 to 1"),
        ((file(LOST), "-o", "game.png"), "expected -o FILE.html"),
        ((file(LOST), "--run", str(tmp_path / "no")), "is not a run directory"),
    ):
        done = plyzero("review", "tic-tac-toe", *words)
        assert done.returncode == 2, words
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
