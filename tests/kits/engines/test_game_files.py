"""Files of people's games: SGF and PGN are read as the rules see them, or refused by a sentence with its line."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.kits.engines.game_files import find_games, open_lines, reader_of
from plyzero.kits.engines.game_record import GameRecord, read_game, read_games, result_of
from plyzero.kits.engines.pgn_games import parse_spelling
from plyzero.kits.engines.sgf_games import sgf_names
from plyzero.lines import MAX_LINE, bounded_lines
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import ONGOING, Game, outcome_code
from plyzero.rules.notation import action_names
from plyzero.run.json_games import WINNERS, Fault, import_games
from plyzero.run.records import BY_RULE, RESIGNED, UNKNOWN_SCORE, Games
from plyzero.trainer.targets import board_targets

FILES = Path(__file__).parents[2] / "data" / "games"

OTHELLO = "d5 e5 c2 b2 e4 c1 b3 b4 a2 f4 d2 d1 e1 c5 e6 b5 e3 f5 a4 b1 a1 f3 b6 a3 f2 a6 f6 a5 d6 c6 pass e2 pass pass"
CLUB = (
    "g2-g3 b7-b6 a2-a3 h7-g6 g1-g2 g7-h6 f2-f3 g6-g5 f1-f2 b6-c5 b1-a2 e7-e6 g3-f4 d7-c6 b2-c3 g5-g4 f3-g4 c5-d4 d2-d3 "
    "f8-e7 a3-a4 d4-e3 a1-b2 e3-f2 a2-a3 e8-d7 g4-h5 f2-g1"
)

TABLE: list[tuple[str, str, list[tuple[str, str | None, str] | str]]] = [
    # the file, the game, and for each game its moves, winner and end, or the reason for which it is refused
    ("variations.sgf", "go(size=5)", [("c3 pass b4 pass pass", "first", "rule")]),
    (
        "hex.sgf",
        "hex(size=5)",
        [
            ("a1 swap c3 b4", "second", "resign"),
            ("a2 c2 c3 d2 c1", "first", "adjudicated"),
            "line 4: move 2, W[swap-sides] in line 4: expected one of a1 a2 a3 ",
            ("a2 swap c3 d4", "second", "resign"),
            ("a2 c2", "second", "adjudicated"),
        ],
    ),
    (
        "handicap.sgf",
        "go(komi=0.5)",
        [
            ("e5 c5 g5", "first", "adjudicated"),
            ("c7 d6", "second", "adjudicated"),
            "line 4: HA[3] is given, but AB places no stones of the handicap",
            "line 5: expected stones to be placed before the first move only, got AB in line 5",
        ],
    ),
    (
        "other-size.sgf",
        "go",
        [
            "line 1: expected a game of go, got one with SZ[13] and KM[6.5]; name the game go(komi=6.5, size=13)",
            "line 2: expected a game of go, got one with SZ[9:13]; there is no such game",
            "line 3: expected GM[1], the number of go, got GM[2], another game",
            "line 4: expected a game of go, got one with KM[375]; there is no such game",
            ("d6 e5", "first", "resign"),
        ],
    ),
    (
        "collection.sgf",
        "gomoku",
        [
            ("h8 a15 i8 b15 j8 c15 k8 d15 l8", "first", "rule"),
            ("h8 i7", "second", "adjudicated"),
            ("h8 i7", "draw", "adjudicated"),
            ("h8 i7", None, "rule"),
            ("h8 i7", None, "adjudicated"),
            "line 7: move 2, W[hh] in line 8: expected one of a1 b1 ",
            "line 9: move 3: expected B, whose turn it is, got W[ff] in line 9",
            "line 10: 2 of its parentheses are not closed before line 11",
            "line 11: winner is 'second', but by the rules of gomoku v1 the first player won after these moves",
            "line 12: expected a node or a property in line 12, got '='",
            "line 13: expected a result such as B+R, W+3.5, 0 or ?, got RE[nobody knows]",
            ("h8 g9", "first", "resign"),
            "line 15: the value that begins with [ in line 15 is not closed",
        ],
    ),
    (
        "fox.sgf",
        "go",
        [
            ("d6 e5", "second", "adjudicated"),
            "line 6: expected a game of go, got one with KM[650]; name the game go(komi=6.5)",
            ("d6 e5", "first", "resign"),
        ],
    ),
    ("long-names.sgf", "go(size=5)", [("c3 pass b4", "first", "resign")]),
    ("encoding.sgf", "go(size=5)", [("c3 b4 d2", "first", "resign")]),
    (
        "othello.sgf",
        "othello(size=6)",
        [
            (OTHELLO, "second", "rule"),
            ("d5 e5 c2 b2", "second", "resign"),
            "line 5: othello(size=6) cannot begin with the stones of AB and AW: expected one of c2 b3 e4 d5, got 'c4'",
        ],
    ),
    (
        "scores.sgf",
        "go(size=5)",
        [
            ("c3 pass pass", "first", "rule"),
            ("c3 b4 pass pass", "second", "adjudicated"),
            ("c3 pass pass", "first", "adjudicated"),
            ("c3 b4", "second", "adjudicated"),
            ("c3 pass pass", "first", "rule"),
            "line 6: move 4, W[bb] in line 6: the game is already over",
        ],
    ),
    ("broken.sgf", "go(size=5)", ["line 1: 2 of its parentheses are not closed at the end of the file"]),
    (
        "games.pgn",
        "breakthrough",
        [
            (CLUB, "second", "rule"),
            ("a2-a3 a7-a6", "first", "resign"),
            ("a2-a3 a7-a6", "second", "adjudicated"),
            ("a2-a3 a7-a6", "draw", "adjudicated"),
            ("a2-a3", None, "rule"),
        ],
    ),
    (
        "positions.pgn",
        "breakthrough",
        [
            ("a2-a3 a7-a6", "first", "resign"),
            "line 8: cannot begin at the position in its tag FEN: expected a board that moves reach by filling cells",
            'line 14: expected a game of breakthrough, got one with the tag Variant "Atomic"',
        ],
    ),
    (
        "broken.pgn",
        "breakthrough",
        [
            "line 1: move 2 in line 3, 'a7-a5': expected one of a7-a6 ",
            "line 5: move 2 in line 7, 'b2-b3': expected one of a7-a6 ",
            "line 9: its tag Result is 1-0, but its moves end with 0-1",
            'line 14: expected a tag such as [White "Ann"] in line 14, got \'[Event "no tag"\'',
            ("a2-a3 a7-a6", "first", "resign"),
            "line 21: the comment that begins with { in line 21 is not closed before line 23",
            "line 23: the comment that begins with { in line 25 is not closed before line 27",
            "line 27: the variation that begins with ( in line 29 is not closed before line 31",
            "line 31: expected a move in line 33, got ')'",
            ("a2-a3 a7-a6", "first", "resign"),
            "line 39: expected a move in line 41, got ')'",
            ("a2-a3 a7-a6", "first", "resign"),
        ],
    ),
    ("untagged.pgn", "breakthrough", [("a2-a3 a7-a6 b2-b3", "second", "resign"), ("b2-b3 b7-b6", "first", "resign")]),
    ("untagged.pgn", "go", ["line 1: move 1 in line 1, 'a2a3': ", "line 2: move 1 in line 2, 'B2-B3': "]),
    ("hex.sgf", "breakthrough", [f"line {line}: this is an SGF file, which has no names " for line in (1, 3, 4, 5, 6)]),
]


@pytest.mark.parametrize(("name", "game", "expected"), TABLE, ids=[f"{name} {game}" for name, game, _ in TABLE])
def test_a_file_is_read_or_refused_with_its_line_and_the_reason(name: str, game: str, expected: list[Any]):
    spec = load_game(game)
    with open_lines(str(FILES / name)) as lines:
        found = list(find_games(lines, spec))
    with open_lines(str(FILES / name)) as lines:
        read = list(read_games(lines, spec))
    assert len(found) == len(read) == len(expected)
    for each, (number, _, record), wanted in zip(found, read, expected, strict=True):
        if isinstance(wanted, str):
            assert isinstance(record, str)
            assert record.startswith(wanted)
            continue
        moves, winner, end = wanted
        fields = each.fields()
        assert (" ".join(fields["moves"]), fields["winner"], fields["end"]) == wanted
        assert isinstance(record, GameRecord)
        assert record.winner == winner
        assert action_names(record.positions[0], tuple(record.moves)) == moves.split()
        assert (record.resigned is not None) == (end == "resign")
        assert number == found.index(each) + 1


def test_all_files_are_in_the_table():
    assert {path.name for path in FILES.iterdir()} == {name for name, _, _ in TABLE}


@pytest.mark.parametrize(
    ("name", "game", "players"),
    [
        ("variations.sgf", "go(size=5)", ("Ann ]the] Strong", "Bö \\ Zoë")),
        ("long-names.sgf", "go(size=5)", ("Jürgen", "Renée")),
        ("encoding.sgf", "go(size=5)", ("博乙", "樝誒")),  # with bytes that are brackets and backslashes in ASCII
        ("games.pgn", "breakthrough", ('Ann "A" Lee', "Bo")),
    ],
)
def test_players_have_their_names_in_any_encoding(name: str, game: str, players: tuple[str, str]):
    with open_lines(str(FILES / name)) as lines:
        assert next(read_games(lines, load_game(game))).players == players


def test_a_handicap_is_a_start_by_moves_and_passes():
    spec = load_game("go(komi=0.5)")
    with open_lines(str(FILES / "handicap.sgf")) as lines:
        first, second, *_ = read_games(lines, spec)
    for each, board in ((first, {"c3": "0", "g7": "0"}), (second, {"a9": "0", "b9": "0", "c9": "0", "e5": "1"})):
        assert isinstance(each.record, GameRecord)
        start = each.record.positions[0]
        assert {cell.name: cell.piece for cell in start.render().cells if cell.piece} == board
    assert first.record.positions[0].to_play == 1
    assert second.record.positions[0].to_play == 0


def test_an_adjudicated_game_has_the_result_of_its_file():
    with open_lines(str(FILES / "scores.sgf")) as lines:
        records = [each.record for each in read_games(lines, load_game("go(size=5)"))]
    by_rules, dead_stones, *_ = records
    assert isinstance(by_rules, GameRecord)
    assert isinstance(dead_stones, GameRecord)
    assert (by_rules.winner, result_of(by_rules)) == ("first", "the first player won")
    assert outcome_code(dead_stones.positions[-1].outcome()) == 1
    assert (dead_stones.winner, result_of(dead_stones)) == ("second", "the second player won by adjudication")


def imported(name: str, game: str) -> list[Games | Fault]:
    spec = load_game(game)
    with open_lines(str(FILES / name)) as lines:
        return list(import_games(find_games(lines, spec), spec))


def test_what_is_imported_has_a_result_and_a_score_by_the_rules_only():
    found = imported("scores.sgf", "go(size=5)")
    ends = [
        (WINNERS[int(each.games["winner"][0])], int(each.games["end"][0]), float(each.games["score"][0]))
        for each in found[:-1]
        if isinstance(each, Games)
    ]
    assert ends == [
        ("first", BY_RULE, 17.5),
        ("second", RESIGNED, UNKNOWN_SCORE),
        ("first", RESIGNED, UNKNOWN_SCORE),
        ("second", RESIGNED, UNKNOWN_SCORE),
        ("first", BY_RULE, 17.5),
    ]
    assert str(found[-1]) == "line 6: move 4, W[bb] in line 6: the game is already over"
    start = GAMES["go(size=5)"].start
    has_board = [bool(np.isfinite(board_targets(each, start)).all()) for each in found if isinstance(each, Games)]
    assert has_board == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("name", "game", "number", "fault"),
    [
        ("collection.sgf", "gomoku", 3, "line 5: the game is not over after its 2 moves"),
        ("collection.sgf", "gomoku", 4, "line 6: the game is not over after its 2 moves"),
        ("games.pgn", "breakthrough", 4, "line 33: the game is not over after its 1 moves"),
        ("handicap.sgf", "go(komi=0.5)", 0, "line 1: the game begins at another position than the initial one, "),
    ],
)
def test_what_cannot_be_imitated_is_named_by_its_line(name: str, game: str, number: int, fault: str):
    assert str(imported(name, game)[number]).startswith(fault)


GAMES = {name: load_game(name) for name in ("go(size=5)", "gomoku(size=6)", "hex(size=5)", "othello(size=6)")}
BREAKTHROUGH = load_game("breakthrough(size=5)")

COMMENTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.sampled_from("()[];\\{}\n"))
"""Texts with what has a meaning elsewhere in a file."""


def random_game(game: GameSpec, seed: int, most: int) -> tuple[list[int], list[Game]]:
    rng = np.random.default_rng(seed)
    positions, actions = [game.start], list[int]()
    while positions[-1].outcome() is None and len(actions) < most:
        actions.append(int(rng.choice(positions[-1].legal_actions())))
        positions.append(positions[-1].play(actions[-1]))
    return actions, positions


def written_sgf(game: GameSpec, moves: list[str], positions: list[Game], result: str, data: st.DataObject) -> str:
    """A game as SGF with random comments, variations and white space."""
    names = sgf_names(game)
    assert names is not None
    space = st.sampled_from(["", " ", "\n", "\t\r\n"])
    with_pairs = data.draw(st.booleans())
    written = {name: pair for pair, name in names.read.items() if name != "pass"} if with_pairs else names.written
    omits_passes = game.name.startswith("othello") and positions[-1].outcome() is not None and data.draw(st.booleans())
    rest = ""
    for name, position in reversed([*zip(moves, positions, strict=False)]):
        if omits_passes and name == "pass":
            continue
        text = f"[{written.get(name, name)}]"
        comment = data.draw(COMMENTS).replace("\\", "\\\\").replace("]", "\\]") if data.draw(st.booleans()) else ""
        comment = f"C[{comment}]" if comment else ""
        node = f";{'BW'[position.to_play]}{text}{comment}{data.draw(space)}"
        if data.draw(st.integers(0, 3)) == 0:
            rest = f"({node}{rest})(;B[zz](;W[aa]C[\\])])(;W[bb])){data.draw(space)}"
        else:
            rest = node + rest
    return f"(;GM[{names.number}]SZ[{names.size}]{data.draw(space)}RE[{result}]{rest})"


def written_pgn(moves: list[str], positions: list[Game], actions: list[int], result: str, data: st.DataObject) -> str:
    """A game as PGN with random comments, annotations, variations and spellings."""
    parts = [f'[Event "?"]\n[Result "{result}"]\n\n']
    for number, (name, position, action) in enumerate(zip(moves, positions, actions, strict=False)):
        if number % 2 == 0 or data.draw(st.booleans()):
            parts.append(f"{number // 2 + 1}{'.' if number % 2 == 0 else '...'}")
        spelling = data.draw(st.sampled_from([name, position.uci_move(action), name.upper(), name.replace("-", "x")]))
        parts.append(spelling + data.draw(st.sampled_from(["", "+", "!?", "#", " $14"])))
        extra = data.draw(st.integers(0, 5))
        if extra == 0:
            parts.append(f"{{{data.draw(COMMENTS).replace('}', '')}}}")
        elif extra == 1:
            parts.append("(1. z9 (1. y8 {)} x7) 1... 1-0)")
        elif extra == 2:
            parts.append(f"; {data.draw(COMMENTS)}".replace("\n", " ") + "\n")
    return data.draw(st.sampled_from([" ", "\n", "\r\n"])).join([*parts, result]) + "\n"


@given(data=st.data(), seed=st.integers(0, 2**32), most=st.integers(1, 200))
def test_random_games_are_read_back_from_sgf(data: st.DataObject, seed: int, most: int):
    game = GAMES[data.draw(st.sampled_from([*GAMES]))]
    texts, wanted = [], []
    for number in range(data.draw(st.integers(1, 3))):
        actions, positions = random_game(game, seed + number, most)
        moves = action_names(game.start, tuple(actions))
        code = outcome_code(positions[-1].outcome())
        winner = data.draw(st.sampled_from([0, 1])) if code == ONGOING else code
        lead = f"{positions[-1].outcome().score:g}" if code != ONGOING and game.start.max_score else ""
        result = "0" if winner < 0 else f"{'BW'[winner]}+{'R' if code == ONGOING else lead}"
        texts.append(written_sgf(game, moves, positions, result, data))
        wanted.append((moves, WINNERS[winner], "resign" if code == ONGOING else "rule"))
    lines = [*bounded_lines(io.BytesIO("\n".join(texts).encode()))]
    found = [each.fields() for each in find_games(lines, game)]
    assert [(each["moves"], each["winner"], each["end"]) for each in found] == wanted
    for each, (moves, winner, _) in zip(read_games(lines, game), wanted, strict=True):
        assert isinstance(each.record, GameRecord), each.record
        assert (len(each.record.moves), each.record.winner) == (len(moves), winner)


def stones_of(position: Game) -> dict[str, str]:
    board = position.render()
    assert board is not None
    return {cell.name: cell.piece for cell in board.cells if cell.piece}


@given(
    name=st.sampled_from(["go(size=5)", "gomoku(size=6)", "hex(size=5, swap=False)"]),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_any_position_of_stones_is_a_start(name: str, seed: int, data: st.DataObject):
    game = load_game(name)
    _, positions = random_game(game, seed, data.draw(st.integers(1, 40)))
    position = positions[-1]
    if position.outcome() is not None or not stones_of(position):
        return
    placed = [f"{'AB' if piece == '0' else 'AW'}[{cell}]" for cell, piece in stones_of(position).items()]
    order = "".join(data.draw(st.permutations(placed)))
    move = data.draw(st.sampled_from([*position.legal_actions()]))
    colour = "BW"[position.to_play]
    content = f"(;SZ[{game.parameter('size')}]{order}PL[{colour}];{colour}[{position.action_name(move)}])"
    (found,) = read_games([content], game)
    assert isinstance(found.record, GameRecord), found.record
    start = found.record.positions[0]
    assert (stones_of(start), start.to_play) == (stones_of(position), position.to_play)
    assert found.record.moves == [move]


@pytest.mark.parametrize(
    ("game", "content", "sentence"),
    [
        (
            "gomoku",
            "(;AB[hh][ii];W[jj])",
            "gomoku cannot begin with the stones of AB and AW: its players place stones in ",
        ),
        (
            "go(size=5)",
            "(;AB[aa:zz];W[jj])",
            "go(size=5) cannot begin with the stones of AB and AW: expected one of a1",
        ),
        ("go(size=5)", "(;AB[aa:b];W[jj])", "expected a rectangle of points such as aa:cc, got 'aa:b'"),
        ("go(size=5)", "(;AE[aa];B[cc])", "expected stones to be placed before the first move only, got AE in line 1"),
    ],
)
def test_a_position_without_moves_to_it_is_refused(game: str, content: str, sentence: str):
    (found,) = read_games([content], load_game(game))
    assert isinstance(found.record, str)
    assert found.record.startswith(f"line 1: {sentence}")


@given(data=st.data(), seed=st.integers(0, 2**32), most=st.integers(1, 200))
def test_random_games_are_read_back_from_pgn(data: st.DataObject, seed: int, most: int):
    game = data.draw(st.sampled_from([BREAKTHROUGH, GAMES["othello(size=6)"], GAMES["hex(size=5)"]]))
    texts, wanted = [], []
    for number in range(data.draw(st.integers(1, 3))):
        actions, positions = random_game(game, seed + number, most)
        moves = action_names(game.start, tuple(actions))
        code = outcome_code(positions[-1].outcome())
        winner = data.draw(st.sampled_from([-1, 0, 1])) if code == ONGOING else code
        result = {-1: "1/2-1/2", 0: "1-0", 1: "0-1"}[winner]
        end = "rule" if code != ONGOING else "adjudicated" if winner < 0 else "resign"
        texts.append(written_pgn(moves, positions, actions, result, data))
        wanted.append((moves, WINNERS[winner], end))
    lines = [*bounded_lines(io.BytesIO("\n".join(texts).encode()))]
    found = [each.fields() for each in find_games(lines, game)]
    assert [(each["moves"], each["winner"], each["end"]) for each in found] == wanted


FLOOD = 5 << 20
LINE = b"x" * 1023 + b"\n"
LINES = FLOOD // len(LINE)

HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    # the content of a file, and the beginning of the sentence about its game
    "parentheses in one line": (lambda: b"(" * FLOOD, f"line 1: line 1 is longer than {MAX_LINE} bytes"),
    "parentheses in many lines": (lambda: LINE.replace(b"x", b"(") * LINES, "line 1: longer than "),
    "a comment of SGF": (lambda: b"(;C[" + LINE * LINES, "line 1: longer than "),
    "a short comment of SGF": (
        lambda: b"(;\nC[" + b"x\n" * 9,
        "line 1: the value that begins with [ in line 2 is not ",
    ),
    "escapes": (lambda: b"(;PB[" + b"\\" * FLOOD, f"line 1: line 1 is longer than {MAX_LINE} bytes"),
    "moves of SGF": (lambda: b"(;" + LINE.replace(b"x", b"B[aa]") * (LINES // 5), "line 1: longer than "),
    "an encoding that is none": (lambda: b"(;CA[zlib];B[cc];B[dd])", "line 1: move 2: expected W, whose turn it is"),
    "variations of PGN": (lambda: b'[Event "?"]\n' + LINE.replace(b"x", b"(") * LINES, "line 1: longer than "),
    "a comment of PGN": (lambda: b"1. a2-a3 {" + LINE * LINES, "line 1: longer than "),
    "moves of PGN": (lambda: LINE.replace(b"x", b"1. a2-a3 ") * (LINES // 8), "line 1: longer than "),
    "a tag": (lambda: b'[Event "' + b'\\" ' * (FLOOD // 3), f"line 1: line 1 is longer than {MAX_LINE} bytes"),
    "digits": (lambda: b"1. " + b"1" * FLOOD, f"line 1: line 1 is longer than {MAX_LINE} bytes"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_flood_of_anything_ends_in_a_sentence(kind: str):
    make, sentence = HOSTILE[kind]
    game = BREAKTHROUGH if "PGN" in kind else GAMES["go(size=5)"]
    (found,) = read_games(bounded_lines(io.BytesIO(make())), game)
    assert isinstance(found.record, str)
    assert found.record.startswith(sentence)
    assert len(found.record) < 400


def test_a_game_within_many_parentheses_is_read():
    text = b"(;RE[B+R]" + b"(" * 1_000_000 + b";B[cc]" + b")" * 1_000_001
    (found,) = find_games(bounded_lines(io.BytesIO(text)), GAMES["go(size=5)"])
    assert found.fields()["moves"] == ["c3"]


def test_a_game_after_one_that_is_too_long_is_read():
    long = b"(;GM[1]C[" + LINE * LINES + b"])\n"
    sound = b"(;GM[1]SZ[5]RE[B+R];B[cc])\n"
    game = GAMES["go(size=5)"]
    found = [each.record for each in read_games(bounded_lines(io.BytesIO(long + sound)), game)]
    assert found[0] == f"line 1: longer than {MAX_LINE} bytes"
    assert isinstance(found[1], GameRecord)
    assert isinstance(read_game(bounded_lines(io.BytesIO(long + sound)), game, "2", "x"), GameRecord)


@pytest.mark.parametrize(
    ("beginning", "reader"),
    [
        (b"(;GM[1]", "sgf_games"),
        (b" ( ; GM[1]", "sgf_games"),
        (b'[Event "?"]', "pgn_games"),
        (b"% escaped", "pgn_games"),
        (b"; a comment", "pgn_games"),
        (b"1. e4 e5", "pgn_games"),
        (b"1.e4 e5", "pgn_games"),
        (b'{"moves": []}', "json_games"),
        (b'["Event"]', "json_games"),
        (b"[1]", "json_games"),
        (b"1.5", "json_games"),
        (b"\xff\xfe", "json_games"),
    ],
)
def test_the_beginning_of_a_file_decides_what_it_is(beginning: bytes, reader: str):
    found: Any = reader_of(beginning, BREAKTHROUGH)
    assert getattr(found, "func", found).__name__ == reader


@pytest.mark.parametrize(
    ("tags", "end", "expected"),
    [
        ('[Termination "Normal"]', "1-0", ("first", "resign")),
        ('[Termination "Ann won by resignation"]', "0-1", ("second", "resign")),
        ('[Termination "adjudication"]', "1-0", ("first", "adjudicated")),
        ('[Termination "Time forfeit"]', "0-1", ("second", "adjudicated")),
        ('[Result "0-1"]', "", ("second", "resign")),
        ('[Result "*"]', "0-1", ("second", "resign")),
        ("", "1/2-1/2", ("draw", "adjudicated")),
        ("", "1/2", ("draw", "adjudicated")),
        ("", "*", (None, "rule")),
        ("", "", (None, "rule")),
    ],
)
def test_a_result_that_the_rules_do_not_give_is_resigned_or_adjudicated(tags: str, end: str, expected: object):
    lines = f'[Event "?"]\n{tags}\n\n1. a2-a3 {end}\n'.encode().splitlines(keepends=True)
    (found,) = find_games(lines, load_game("breakthrough"))
    fields = found.fields()
    assert (fields["winner"], fields["end"]) == expected


class Letters(Game):
    """A game whose moves differ by case and signs alone."""

    num_actions, observation_shape, max_plies = 4, (1, 1, 1), 1
    names = ("b1-c2", "b1xc2", "B1-c2", "d1-d2")
    to_play = 0

    def legal_actions(self) -> list[int]:
        return [0, 1, 2, 3]

    def play(self, action: int) -> "Letters":
        return self

    def outcome(self) -> None:
        return None

    def observe(self) -> np.ndarray:
        return np.zeros((1, 1, 1))

    def action_name(self, action: int) -> str:
        return self.names[action]

    def parse_action(self, text: str) -> int:
        return 3 if text == "advance" else super().parse_action(text)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("b1-c2", 0),
        ("b1xc2+", 1),
        ("B1-c2!?", 2),
        ("D1D2#", 3),
        ("advance", 3),  # as the game itself parses it
    ],
)
def test_a_move_is_found_by_any_spelling_that_means_one_action(text: str, action: int):
    assert parse_spelling(Letters(), text) == action


def test_a_spelling_that_means_several_actions_or_none_is_refused():
    for text in ("b1c2", "e1-e2", ""):
        with pytest.raises(ValueError, match=re.escape(f"got {text!r}")):
            parse_spelling(Letters(), text)
