"""Films and pictures of recorded games: their frames, sizes, colours, and what they refuse."""

import importlib.util
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageSequence

from plyzero.errors import UserError
from plyzero.kits.engines.film import make_film, make_picture
from plyzero.kits.engines.game_record import GameRecord, frames_of, from_moves, read_game, result_of
from plyzero.lines import bounded_lines
from plyzero.rules.catalog import GameSpec, installed_games, load_game
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.notation import action_names, play_named
from plyzero.rules.random_game import random_game
from tests.helpers.cli import plyzero, refused, shown

EXAMPLES = Path(__file__).parents[3] / "examples"
MOVES = "4 4 4 4 3 2 5 6 5 6 3 3 2 1 1 1 2 2"
RED, YELLOW, HOLE, BLUE = (ImageColor.getrgb(each) for each in ("#c92a2a", "#f2c230", "#f5f5f5", "#2f5fb3"))


def test_a_recorded_game_may_have_a_byte_order_mark_and_several_lines(tmp_path: Path):
    fields = {"moves": ["4", "4"], "winner": "second", "end": "resign"}
    content = b"\xef\xbb\xbf" + json.dumps(fields, indent=1).encode()
    (tmp_path / "g.json").write_bytes(content)
    assert plyzero("render", "connect-four", "g.json", "-o", "g.html", cwd=tmp_path).returncode == 0
    found = read_game(bounded_lines(io.BytesIO(content)), connect_four(), "1", "g.json")
    assert (result_of(found), len(found.moves)) == ("the first player resigned", 2)


def connect_four() -> GameSpec:
    return load_game("connect-four")


def images_in(film: bytes) -> list[Image.Image]:
    return [image.copy() for image in ImageSequence.Iterator(Image.open(io.BytesIO(film)))]


def frames_in(film: bytes) -> list[Image.Image]:
    return [image.convert("RGB") for image in images_in(film)]


@pytest.mark.parametrize("kind", ["GIF", "PNG"])
def test_a_film_has_a_frame_more_than_plies_and_few_colours_and_stays_small(kind: str):
    record = from_moves(connect_four(), MOVES)
    film = make_film(frames_of(record), "cut off", kind=kind, size=360, seconds=0.5)
    frames = frames_in(film)
    assert len(frames) == len(record.moves) + 1 == 19
    assert len({colour for each in frames for _, colour in each.getcolors()}) <= 32
    assert len(film) < 60_000
    assert [image.info["duration"] for image in images_in(film)] == [500] * 18 + [2000]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg")
@pytest.mark.parametrize("kind", ["MP4", "WEBM"])
def test_a_video_shows_the_frames_for_their_time(kind: str, tmp_path: Path):
    record = from_moves(connect_four(), "4 4 3")
    film = make_film(frames_of(record), result_of(record), kind=kind, size=101, seconds=0.4)
    (tmp_path / "film").write_bytes(film)
    subprocess.run(("ffmpeg", "-loglevel", "error", "-i", "film", "%03d.png"), cwd=tmp_path, check=True)
    files = sorted(tmp_path.glob("*.png"))
    assert 4 * 10 - 1 <= len(files) <= 7 * 10 + 1  # 25 in a second; some players know how long the last one is shown
    pictures = [_pixels(io.BytesIO(make_picture(frame, 101))) for frame in frames_of(record)]
    for number in range(len(pictures)):
        found = _pixels(files[min(10 * number + 5, len(files) - 1)])
        errors = [np.abs(found[: len(each), : each.shape[1]] - each).mean() for each in pictures]
        assert np.argmin(errors) == number


def _pixels(file: io.BytesIO | Path) -> NDArray[np.float64]:
    return np.asarray(Image.open(file).convert("RGB"), float)


def test_without_ffmpeg_a_video_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    record = from_moves(connect_four(), "4")
    with pytest.raises(UserError, match="expected the program ffmpeg; install it, or choose"):
        make_film(frames_of(record), result_of(record), kind="MP4", size=100, seconds=1.0)


def test_the_picture_of_a_known_position_has_its_colours_where_its_stones_are():
    picture = make_picture(frames_of(from_moves(connect_four(), "4 4 1"))[-1], 328)  # the picture is 8.2 cells wide
    pixels = Image.open(io.BytesIO(picture)).convert("RGB")

    def colour(column: int, row: int, dx: float = 0.0) -> tuple[int, ...]:
        return pixels.getpixel((round(40 * (1.6 + column - 1 + dx)), round(40 * (0.6 + 6 - row))))

    assert [colour(4, 1), colour(4, 2), colour(1, 1), colour(7, 6)] == [RED, YELLOW, RED, HOLE]
    assert colour(6, 3, 0.5) == BLUE
    assert colour(1, 1, 0.4) == (255, 255, 255)  # the ring around the last move


def test_the_frames_of_a_film_are_its_pictures():
    frames = frames_of(from_moves(connect_four(), "4 4 1"))
    film = frames_in(make_film(frames, "cut off", kind="GIF", size=328, seconds=1))
    for seen, frame in zip(film, frames, strict=True):
        drawn = Image.open(io.BytesIO(make_picture(frame, 328))).convert("RGB")
        for cell in frame.board.cells:
            place = round(40 * (1.6 + cell.x)), round(40 * (0.6 + cell.y))
            assert seen.getpixel(place) == drawn.getpixel(place)


def test_rolls_are_part_of_the_frame_that_they_lead_to():
    frames = frames_of(from_moves(load_game("pig"), "roll 4 hold roll 1"))
    expected = [("", None, ()), ("roll", 0, ("4",)), ("hold", 0, ()), ("roll", 1, ("1",))]
    assert [(each.move, each.by, each.rolls) for each in frames] == expected


@pytest.mark.parametrize(
    "name", [*sorted(installed_games()), "breakthrough:Breakthrough", "dots_and_boxes:DotsAndBoxes", "othello(size=6)"]
)
def test_every_game_gives_a_film(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    start = load_game(name).start
    start = start.as_plain_python() if isinstance(start, CompiledGame) else start  # nothing to compile
    played = random_game(start, np.random.default_rng(3))
    moves = action_names(start, tuple(played.moves[: played.decisions[6]]))
    frames = frames_of(GameRecord(*play_named(start, moves)))
    assert len(frames_in(make_film(frames, "cut off", kind="GIF", size=120, seconds=1))) == len(frames) > 2
    sys.modules.pop(name.partition(":")[0] if ":" in name else "", None)


LINE = json.dumps({"version": 1, "id": "00000000000000aa", "moves": ["4", "4"], "winner": None, "end": "truncated"})
WRONG = json.dumps({"version": 1, "id": "00000000000000bb", "moves": ["4", "9"]})
OTHER = json.dumps({"version": 1, "game": "othello v1", "person": "first", "moves": [], "bot": "x"})
WON = json.dumps({"version": 1, "moves": ["4"], "winner": "first", "end": "rule"})


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        (f"{LINE}\n\n{WRONG}\n", ("--game", "2"), "games.jsonl, line 3: move 2: expected one of 1 2 3 4 5 6 7, got"),
        (OTHER, (), "line 1: it is a game of 'othello v1', not of connect-four v1"),
        (WON, (), "winner is 'first', but by the rules of connect-four v1 the game is not over after these moves"),
        ("", (), "games.jsonl contains no game; expected JSON lines"),
        (LINE, ("--game", "2"), "expected --game from 1 to 1, the number of games in"),
        (LINE, ("--game", "00000000000000cc"), "none of the 1 games in"),
        (LINE, ("--game", "x"), "expected --game with a number from 1 on, or an id of 16 digits, got 'x'"),
        (
            "(;GM[1]FF[4]SZ[9];B[ee])",
            (),
            "line 1: this is an SGF file, which has no names for the moves of connect-four: it has no sgf_game",
        ),
        ("[1]", (), "line 1: expected a JSON object, got [1]"),
        (LINE, ("--ply", "1"), "--ply is for .png, .svg, not for .gif; omit it"),
        (LINE, ("--moves", "4"), "expected a file GAMES or --moves"),
    ],
)
def test_what_is_no_game_is_one_sentence_and_leaves_no_file(tmp_path: Path, text: str, arguments, sentence: str):
    (tmp_path / "games.jsonl").write_text(text)
    assert sentence in refused("render", "connect-four", "games.jsonl", "-o", "game.gif", *arguments, cwd=tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["games.jsonl"]


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (
            "game.avi",
            "expected -o FILE with the ending .gif, .apng, .mp4, .webm, .png, .svg, .html, .pgn, got 'game.avi'",
        ),
        ("none/game.gif", "expected -o FILE in a directory that exists"),
        ("folder.gif", "expected -o FILE in a directory that exists"),
    ],
)
def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, out: str, sentence: str):
    (tmp_path / "folder.gif").mkdir()
    assert sentence in refused("render", "connect-four", "-o", out, "--moves", "4 4", cwd=tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["folder.gif"]


def test_games_are_found_by_number_by_id_and_in_a_saved_game(tmp_path: Path):
    saved = {"version": 1, "game": "connect-four v1", "person": "second", "bot": "x", "moves": ["4"], "resigned": True}
    (tmp_path / "saved.json").write_text(json.dumps(saved, indent=1))
    (tmp_path / "games.jsonl").write_text(f"{WRONG}\n{LINE}\n")
    for arguments, text in (
        (("games.jsonl", "--game", "2"), "3 frames"),
        (("games.jsonl", "--game", "00000000000000aa"), "3 frames"),
        (("saved.json",), "2 frames"),
        (("--moves", "4 4 1"), "4 frames"),
    ):
        assert text in shown("render", "connect-four", *arguments, "-o", "game.gif", cwd=tmp_path)
    shown("render", "connect-four", "-", "-o", "game.svg", text=f"{LINE}\n", cwd=tmp_path)
    assert (tmp_path / "game.svg").read_text().count("stone p") == 2


def test_a_game_of_a_match_is_written_as_pgn(tmp_path: Path):
    played = {
        "version": 1,
        "game": "chess v1",
        "first": "random",
        "second": "mcts:9",
        "moves": ["e2e4", "e7e5", "g1f3"],
    }
    (tmp_path / "games.jsonl").write_text(json.dumps({**played, "winner": None, "end": "truncated"}) + "\n")
    said = shown("render", "chess", "games.jsonl", "-o", "game.pgn", cwd=tmp_path)
    assert said.startswith("game.pgn: 3 moves, ")
    assert (tmp_path / "game.pgn").read_text() == (
        '[Event "?"]\n[Site "?"]\n[Date "????.??.??"]\n[Round "?"]\n[White "random"]\n[Black "mcts:9"]\n'
        '[Result "*"]\n\n1. e4 e5 2. Nf3 *\n'
    )


@pytest.mark.parametrize("missing", ["PIL", "resvg_py", "matplotlib"])
def test_without_a_package_of_pictures_the_extra_is_named(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find_spec(name))
    monkeypatch.delitem(sys.modules, "plyzero.kits.engines.film", raising=False)
    if missing != "matplotlib":  # which is looked for, and never imported
        monkeypatch.setitem(sys.modules, missing, None)
    found = refused("render", "connect-four", "-o", "game.gif", "--moves", "4 4", cwd=tmp_path)
    assert "pip install -e '.[plot]'" in found


def test_the_picture_of_a_text_keeps_its_indentation():
    (start,) = frames_of(from_moves(load_game("tests.helpers.dice:PlainRace"), ""))
    picture = make_picture(start._replace(position="1234\n    |"), 140)  # seven glyphs wide, the margins among them
    dark = np.asarray(Image.open(io.BytesIO(picture)).convert("L")) < 128
    assert dark[len(dark) // 2 :].nonzero()[1].mean() // 20 == 5
