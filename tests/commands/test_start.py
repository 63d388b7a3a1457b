"""--start FILE: commands begin at the position of a text, and games that are saved say so."""

import json
from pathlib import Path

import numpy as np
import pytest

from plyzero.commands import play
from plyzero.kits.engines.game_record import read_game
from plyzero.lines import parse_object
from plyzero.play.session import Session
from plyzero.rules.catalog import load_game
from plyzero.run.json_games import import_games, json_games
from tests.helpers.cli import plyzero, shown
from tests.helpers.web import get, serving

TIC_TAC_TOE = load_game("tic-tac-toe")
BOARD = " 1 x o .\n 2 x . .\n 3 . o .\n   a b c\n"
AFTER = " 1 x o .\n 2 x . .\n 3 x o .\n   a b c"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "start.txt"
    path.write_text(BOARD)
    return path


def test_positions_are_analyzed_from_it_on(file: Path):
    answers = shown("analyze", "tic-tac-toe", "--simulations", "50", "--start", str(file), text='{"moves": []}\n')
    answer = json.loads(answers)
    assert answer["moveInfos"][0]["move"] == "a3"
    assert answer["rootInfo"]["proven"] == "win"


def test_gtp_clears_the_board_to_it(file: Path):
    text = "play b a3\nclear_board\nshowboard\nundo\n"
    answer = shown("gtp", "tic-tac-toe", "--player", "random", "--start", str(file), text=text)
    assert f"{BOARD.rstrip()}\nblack to move" in answer
    assert "cannot undo: nothing has been played" in answer


def test_a_match_begins_at_it_and_its_games_replay(file: Path, tmp_path: Path):
    saved = tmp_path / "games.jsonl"
    arguments = ["match", "alphabeta:2", "random", "--game", "tic-tac-toe", "--games", "2", "--opening-plies", "0"]
    out = shown(*arguments, "--start", str(file), "--save", str(saved))
    assert "tic-tac-toe: alphabeta:2 (A) against random (B)" in out
    for number, line in enumerate(saved.read_bytes().splitlines(), 1):
        assert (parse_object(line)["start"], parse_object(line)["version"]) == (BOARD, 2)
        record = read_game([line], TIC_TAC_TOE, "1", f"game {number}")
        assert str(record.positions[0]) == BOARD.rstrip()
        assert record.winner is not None
    assert parse_object(saved.read_bytes().splitlines()[0])["moves"] == ["a3"]


def test_games_that_begin_at_it_are_not_imported_as_training_games(file: Path):
    line = json.dumps({"start": BOARD, "moves": ["a3"], "winner": "first"}).encode()
    (fault,) = import_games(json_games([line]), TIC_TAC_TOE)
    assert "the game begins at another position than the initial one" in str(fault)


def test_a_person_plays_from_it_and_loads_the_game_again(file: Path):
    game = TIC_TAC_TOE.starting_at(BOARD)
    session = Session(game, 0, rng=np.random.default_rng(0))
    session.play(session.position.parse_action("a3"))
    record = session.record("bot")
    assert (record["start"], record["version"], record["result"]) == (BOARD, 2, "first")
    for reader in (game, TIC_TAC_TOE):
        again = Session.from_record(reader, record)
        assert (str(again.position), again.undo(), str(again.position)) == (AFTER, True, BOARD.rstrip())
    with pytest.raises(ValueError, match=r"^the game begins at another position, ''$"):
        Session.from_record(game, Session(TIC_TAC_TOE, 0).record("bot"))
    assert Session(TIC_TAC_TOE, 0).record("bot")["version"] == 1


def test_the_terminal_and_the_page_begin_at_it(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(play, "_begin_at_once", lambda game: None)
    done = plyzero("play", "tic-tac-toe", "--against", "random", "--start", str(file), text="a3\n")
    assert BOARD.rstrip() in done.stdout
    assert "You win." in done.stdout
    served = []
    monkeypatch.setattr("plyzero.kits.web.connections.serve_forever", lambda app, listening: served.append(app))
    shown("serve", "tic-tac-toe", "--port", "0", "--start", str(file))
    with serving(served[0]) as address:
        _, position = get(address, "/api/position")
    assert (position["text"], position["moves"]) == (BOARD.rstrip(), [])
