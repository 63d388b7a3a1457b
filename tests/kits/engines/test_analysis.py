"""JSON lines in, JSON lines out: every question gets its answer, whatever its neighbours are."""

import errno
import io
import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from plyzero.kits.engines import analysis
from plyzero.kits.engines.analysis import answer_queries
from plyzero.lines import MAX_LINE, bounded_lines
from plyzero.play.found_moves import move_infos, root_info
from plyzero.play.judge import Judge
from plyzero.play.players import Bot
from plyzero.rules.catalog import load_game
from plyzero.search.slots import search
from plyzero.settings import SearchSettings
from tests.helpers import toys

CONNECT_FOUR = load_game("connect-four")
TIC_TAC_TOE = load_game("tic-tac-toe")


class Counting(toys.Hashed):
    """An evaluator that remembers how large its batches were."""

    def __init__(self, num_actions: int):
        super().__init__(num_actions)
        self.batches: list[int] = []

    def __call__(self, leaves):
        self.batches.append(len(leaves.observations))
        return super().__call__(leaves)


def bot_of(evaluate, game=CONNECT_FOUR, *, simulations: int = 16, kind: str = "gumbel") -> Bot:
    return Bot("b", game, evaluate, simulations=simulations, settings=SearchSettings(algorithm=kind))


def answers(lines: list[str], bot: Bot, **more) -> list[dict]:
    sink = io.StringIO()
    answer_queries(bot.game, Judge(bot, "a bot"), lines, sink, **more)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def answer_to(moves: str, bot: Bot) -> dict:
    (answer,) = answers([json.dumps({"id": 1, "moves": moves.split()})], bot)
    return answer


def test_an_answer_has_the_fields_of_katago():
    answer = answer_to("4 4 5", bot_of(toys.Hashed(7)))
    assert answer["id"] == 1
    assert answer["rootInfo"].keys() == {"currentPlayer", "visits", "winrate", "drawrate", "proven", "pliesToEnd"}
    assert (answer["rootInfo"]["currentPlayer"], answer["rootInfo"]["visits"]) == (1, 16)
    assert len(answer["moveInfos"]) == 7
    for order, info in enumerate(answer["moveInfos"]):
        assert info.keys() == {"move", "visits", "winrate", "prior", "order", "pliesToEnd", "pv"}
        assert info["order"] == order
        assert info["pv"][0] == info["move"]
        assert 0 <= info["prior"] <= 1
        assert (info["winrate"] is None) == (info["visits"] == 0)
    assert sum(info["visits"] for info in answer["moveInfos"]) == 16
    assert sum(info["prior"] for info in answer["moveInfos"]) == pytest.approx(1, abs=1e-3)


def test_the_first_move_is_the_one_that_the_bot_plays():
    bot = bot_of(toys.Hashed(7))
    for moves in ("", "4", "4 4 3 2", "1 2 3"):
        position = toys.after(CONNECT_FOUR.start, moves)
        assert answer_to(moves, bot)["moveInfos"][0]["move"] == position.action_name(bot.choose(position))


def test_moves_come_in_the_order_of_their_visits_and_with_their_own_win_rates():
    position = toys.after(CONNECT_FOUR.start, "4 4")
    bot = bot_of(toys.Hashed(7), simulations=100, kind="puct")
    root = bot.search([position])[0]
    infos = move_infos(position, root)
    order = [(info["visits"], info["prior"]) for info in infos[1:]]
    assert order == sorted({*order}, reverse=True)
    by_name = {position.action_name(int(action)): i for i, action in enumerate(root.actions)}
    assert len({info["winrate"] for info in infos}) > 3
    for info in infos:
        i = by_name[info["move"]]
        assert (info["visits"], info["prior"]) == (root.visits[i], pytest.approx(root.prior[i], abs=1e-4))
        assert info["winrate"] == pytest.approx((1 + root.q[i]) / 2, abs=1e-4)


def test_a_bad_line_gets_an_error_with_its_id_and_the_others_their_answers():
    win, no_moves = '"1", "2", "1", "2", "1", "2", "1"', 'expected moves as a list of names, such as "moves": ["1"]'
    table = [
        ('{"id": "a", "moves": ["4"]}', "a", ""),
        ('{"id": "b", "moves": ["8"]}', "b", "move 1: expected one of 1 2 3 4 5 6 7, got '8'"),
        ("nonsense", None, "expected a JSON object: Expecting value: line 1 column 1 (char 0)"),
        ('{"id": "c"}', "c", no_moves),
        ('{"id": "d", "moves": "44"}', "d", no_moves),
        ('{"id": "e", "moves": ["4"], "depth": 7}', "e", "unknown field depth; expected id and moves"),
        (f'{{"id": "f", "moves": [{win}]}}', "f", "the game is over after these moves; there is nothing to analyze"),
        (f'{{"id": "g", "moves": [{win}, "3"]}}', "g", "move 8, '3': the game is already over"),
        ("[1]", None, "expected a JSON object, got [1]"),
        ('{"moves": []}', None, ""),
        ('{"id": NaN, "moves": []}', None, "expected a JSON object: NaN is not JSON"),
        ('{"id": {"any": "thing"}, "moves": []}', {"any": "thing"}, ""),
    ]
    lines = [line for line, _, _ in table]
    found = answers([*lines[:3], "", *lines[3:]], bot_of(toys.Hashed(7)))  # an empty line is none
    assert [(each["id"], each.get("error", "")) for each in found] == [row[1:] for row in table]
    assert [("moveInfos" in each) != ("error" in each) for each in found] == [True] * 12
    assert answers(lines[:1], bot_of(toys.Hashed(7)))[0] == found[0]


LINES_THAT_ARE_NO_QUERIES = [
    b"\xff\n",
    b"[" * 200_000 + b"\n",
    b'{"id": ' + b"[" * 500 + b"]" * 500 + b', "moves": []}\n',
    b'{"id": 1e999, "moves": []}\n',
    b'{"moves": []}' + b" " * MAX_LINE + b"\n",
]


def test_hostile_lines_get_an_error_and_the_others_their_answers():
    sound = [b'\xef\xbb\xbf{"id": %d, "moves": []}\n' % number for number in range(5)]
    lines = b"".join(hostile + line for hostile, line in zip(LINES_THAT_ARE_NO_QUERIES, sound, strict=True))
    found = answers([*bounded_lines(io.BytesIO(lines))], bot_of(toys.Hashed(7)))
    assert ["error" in each for each in found] == [True, False] * 5
    assert [each["id"] for each in found[1::2]] == [*range(5)]
    assert found[0]["error"] == "expected a JSON object: it is no text in UTF-8"
    assert max(len(each["error"]) for each in found[::2]) < 200


def test_an_input_that_cannot_be_read_ends_in_its_error_after_the_answers():
    def broken():
        yield '{"id": 1, "moves": []}'
        raise OSError(errno.EIO, "it is gone")

    sink = io.StringIO()
    with pytest.raises(OSError, match="it is gone"):
        answer_queries(CONNECT_FOUR, Judge(bot_of(toys.Hashed(7)), "a bot"), broken(), sink)
    assert json.loads(sink.getvalue())["id"] == 1


GO = load_game("go(size=5)")


@pytest.mark.parametrize(
    "fields",
    [
        {"moves": [["B", "e5"], ["W", "c3"]]},
        {"rules": "tromp-taylor", "komi": 7.5, "boardXSize": 5, "boardYSize": 5},
        {"maxVisits": 8, "analyzeTurns": [2], "initialStones": [], "initialPlayer": "B", "overrideSettings": {}},
        {"includePolicy": False, "priority": 3, "reportDuringSearchEvery": 0.5, "avoidMoves": []},
    ],
)
def test_fields_of_katago_that_change_nothing_are_ignored_with_one_note(fields):
    bot, notes = bot_of(toys.Hashed(26), GO, simulations=8), []
    lines = [json.dumps({"moves": ["E5", "C3"], **more}) for more in ({}, fields, fields)]
    plain, *same = answers(lines, bot, on_note=notes.append)
    assert same == [plain, plain]
    assert "moveInfos" in plain
    ignored = ", ".join(sorted(fields.keys() - {"moves"}))
    assert notes == ([f"these fields change nothing and are ignored: {ignored}"] if ignored else [])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"maxVisits": 9}, "maxVisits 9 would change the answer, and here it is 8: leave it out, or start "),
        ({"komi": 6.5}, "komi 6.5 would change the answer, and here it is 7.5: "),
        ({"rules": "japanese"}, "rules 'japanese' would change the answer, and here it is 'tromp-taylor': "),
        ({"boardXSize": 9}, "boardXSize 9 would change the answer, and here it is 5: "),
        ({"analyzeTurns": [0, 1]}, "analyzeTurns [0, 1] would change the answer, and here it is [2]: "),
        ({"initialPlayer": "W"}, "initialPlayer 'W' would change the answer"),
        ({"includePolicy": True}, "includePolicy True would change the answer"),
        ({"allowMoves": [{"player": "B"}]}, "allowMoves [{'player': 'B'}] would change the answer"),
        ({"moves": [["W", "e5"]]}, "move 1: it is the turn of B, the players are B and W, got 'W'"),
        ({"moves": [["B", "e5"], "c3"]}, "expected moves as a list of names"),
    ],
)
def test_fields_of_katago_that_would_change_the_answer_are_refused(fields, words):
    (answer,) = answers([json.dumps({"moves": ["E5", "C3"], **fields})], bot_of(toys.Hashed(26), GO, simulations=8))
    assert words in answer["error"]


def test_many_positions_are_one_pass_over_the_network():
    evaluate = Counting(7)
    openings = itertools.islice(itertools.product("1234567", repeat=4), 300)
    lines = [json.dumps({"id": i, "moves": moves}) for i, moves in enumerate(openings)]
    found = answers(lines, bot_of(evaluate, simulations=16))
    assert [each["id"] for each in found] == list(range(300))
    assert all(each["rootInfo"]["visits"] == 16 for each in found if each["rootInfo"]["proven"] is None)
    assert evaluate.batches[0] == 300
    assert len(evaluate.batches) <= 17


def test_more_than_a_batch_is_several_passes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(analysis, "BATCH", 4)
    evaluate = Counting(7)
    found = answers(['{"id": 1, "moves": []}'] * 10, bot_of(evaluate, simulations=0))
    assert len(found) == 10
    assert evaluate.batches == [4, 4, 2]


def test_without_simulations_the_answer_is_what_the_network_says():
    answer = answer_to("", bot_of(toys.Hashed(7), simulations=0))
    logits, wdl = toys.Hashed(7)(toys.EvaluationBatch(CONNECT_FOUR.start.observe()[None], list))
    prior = np.exp(logits[0]) / np.exp(logits[0]).sum()
    assert [info["winrate"] for info in answer["moveInfos"]] == [None] * 7
    assert [info["prior"] for info in answer["moveInfos"]] == pytest.approx(sorted(prior, reverse=True), abs=1e-4)
    assert answer["rootInfo"]["winrate"] == pytest.approx((1 + wdl[0, 0] - wdl[0, 2]) / 2, abs=1e-4)
    assert answer["rootInfo"]["drawrate"] == pytest.approx(wdl[0, 1], abs=1e-4)


def test_values_are_for_the_player_to_move_and_proofs_are_said():
    bot = bot_of(toys.Exact(9), TIC_TAC_TOE, simulations=200)
    for moves, player, winrate, proven, best in (
        ("a1 a2 b1 b2", 0, 1, "win", "c1"),
        ("a1 a2 b1 b2 c3", 1, 1, "win", "c2"),
        ("a1 b2 b1 c1 a3 a2 c2", 1, 0.5, "draw", "b3"),
        ("a1 a2 b2", 1, 0, "loss", "c1"),
    ):
        answer = answer_to(moves, bot)
        root = answer["rootInfo"]
        assert (root["currentPlayer"], root["winrate"], root["proven"]) == (player, winrate, proven)
        assert proven != "win" or answer["moveInfos"][0]["move"] == best


def test_a_line_that_is_expected_can_be_played_and_follows_the_visits():
    position = toys.after(CONNECT_FOUR.start, "4 4")
    for simulations in (3, 10, 50, 200):
        root = search([position], toys.Hashed(7), simulations=simulations)[0]
        for info in move_infos(position, root):
            assert toys.after(position, " ".join(info["pv"]))
            assert len(info["pv"]) <= max(1, info["visits"])
    assert len(move_infos(position, root)[0]["pv"]) > 3
    assert root_info(position, root)["visits"] == 200


def test_a_forced_line_is_told_to_its_end():
    root = search([toys.Relay(5)], toys.Exact(1), simulations=50)[0]
    assert root.principal_variations == ((0, 0, 0, 0, 0),)


COMMAND = [sys.executable, "-m", "plyzero"]
TIC_TAC_TOE_QUICKLY = ["tic-tac-toe", "--simulations", "0"]


def test_a_program_may_wait_for_an_answer_before_it_asks_again():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [*COMMAND, "analyze", *TIC_TAC_TOE_QUICKLY]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environment) as process:
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "moves": ["b2"]}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("command", "text", "refusal", "answer"),
    [
        ("analyze", b'\xff\xe9\n{"id": 1, "moves": []}\n', b".*error", b"moveInfos"),
        ("gtp", b"name \xe9\xff\n2 name\n", rb"\?", b"=2 plyzero"),
    ],
)
def test_a_byte_that_the_locale_does_not_know_stops_nobody(command: str, text: bytes, refusal: bytes, answer: bytes):
    environment = os.environ | {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"}
    command = [*COMMAND, command, *TIC_TAC_TOE_QUICKLY]
    done = subprocess.run(command, input=text, stdout=-1, env=environment, timeout=100, check=True)
    first, rest = done.stdout.split(b"\n", 1)
    assert re.match(refusal, first)
    assert answer in rest


def test_progress_is_told_during_a_search_and_not_while_nothing_is_asked():
    told: list[str] = []
    answers(['{"moves": []}\n', "no JSON\n"], bot_of(toys.Hashed(7)), on_progress=told.append)
    assert told == ["0 lines answered, searching 1 positions", ""]
