"""A game as JSON: positions, searches, what the network sees, and games as files."""

import json
from pathlib import Path

import numpy as np
import pytest

from plyzero import Bot
from plyzero.errors import UserError
from plyzero.kits.engines.plane_cells import PlaneCells
from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.play_api import (
    MAX_GAMES,
    MAX_TEXT,
    MAX_VARIATIONS,
    describe_ends,
    describe_file,
    describe_position,
    exported,
    network_view,
    search_position,
    unfinished_position,
)
from plyzero.play.clock import Clock
from plyzero.play.player import RandomPlayer
from plyzero.play.spots import final_board_of
from plyzero.rules.board_svg import UNIT
from plyzero.rules.catalog import load_game
from plyzero.rules.game import board_of
from plyzero.rules.notation import play_named
from tests.helpers.guests import Guests
from tests.helpers.toys import Constant, Relay, after


def test_the_opponent_under_a_clock_has_less_time_after_each_of_its_moves():
    game, clock = load_game("tic-tac-toe"), Clock(main=1.0, per_move=0.01)
    opponents = Opponents(game, clock=clock, threads=1)
    assert opponents.usual() == "clock"
    assert opponents.names()["clock"] == "the bot with a clock, 1 s"
    found = [opponents.find("clock", moves=moves) for moves in (0, 3)]
    assert [bot.clock.left for bot in found] == [1.0, clock.after(3).left]
    assert found[1].clock.left < 1.0
    last = search_position(found[1], game.start)(lambda event: None)
    assert last["simulations"] == last["of"]


def test_a_level_of_the_bundled_bot_is_named_by_what_was_measured_of_it():
    opponents = Opponents(load_game("backgammon"))
    assert opponents.names()["level:7"] == "the bundled bot, level 7 of 7: about Pubeval"
    assert opponents.strengths()["level:7"].startswith("scores 52 % (45 to 59) against Pubeval, ")
    assert (
        Opponents(load_game("hex"))
        .names()["level:2"]
        .endswith("level 2 of 8: scores 89 % against pure MCTS (200 random games a move)")
    )


def described(game: str, moves: str = ""):
    return describe_position(load_game(game), moves, np.random.default_rng(0))


def test_a_position_tells_who_moves_and_how_each_move_is_clicked():
    found = described("tic-tac-toe", "b2 a1")
    assert (found["moves"], found["movers"], found["toPlay"], found["outcome"]) == (["b2", "a1"], [0, 1], 0, None)
    assert {each["name"]: each["path"] for each in found["legal"]}["c3"] == ("c3",)
    assert all(len(each["spots"]) == 1 for each in found["legal"])
    assert found["svg"].count("data-cell") == 9
    assert found["svg"].count(" last") == 1


def test_a_move_of_two_clicks_is_drawn_from_the_piece_that_it_lifts():
    found = described("breakthrough", "")
    move = next(each for each in found["legal"] if each["name"].startswith("a2"))
    assert len(move["path"]) == len(move["spots"]) == 2
    backgammon = described("backgammon", "6-1")
    move = next(each for each in backgammon["legal"] if each["name"] == "13/7")
    assert move["path"] == ("13", "7")
    assert move["spots"] == [(0, 160), (200, 400)]  # the fifth checker from the edge, and the edge


def test_the_whole_last_turn_is_marked_with_the_moves_of_both_dice():
    assert described("backgammon", "6-1 13/7")["svg"].count(" last") == 2  # the fifth place of 13, the first of 7
    both = described("backgammon", "6-1 13/7 8/7 5-3")
    assert both["svg"].count(" last") == 4
    assert both["turn"] == [[(0, 160), (200, 400)], [(160, 320), (200, 360)]]
    assert described("tic-tac-toe", "b2 a1")["turn"] == [[(0, 0)]]
    assert described("tic-tac-toe")["turn"] == []


@pytest.mark.parametrize(
    ("game", "colours"),
    [("connect-four", ("red", "yellow")), ("backgammon", ("black", "white")), ("tests.helpers.toys:Relay", None)],
)
def test_the_players_have_the_colours_of_their_pieces(game, colours):
    assert described(game)["colours"] == colours


def test_the_end_of_a_game_is_told_with_its_winner():
    found = described("tic-tac-toe", "a1 b1 a2 b2 a3")
    assert (found["outcome"], found["legal"]) == ({"winner": 0}, [])
    assert described("tic-tac-toe", "a1 b1 c1 b2 a2 c2 b3 a3 c3")["outcome"] == {"winner": None}


class Failing(Relay):
    def play(self, action):
        raise ValueError("not written yet")


def test_ends_of_games_whose_rules_raise_an_error_are_a_sentence():
    with pytest.raises(UserError, match="test_play_api:Failing cannot be played: ValueError: not written yet"):
        describe_ends(load_game("tests.kits.web.test_play_api:Failing"))


def test_dice_are_rolled_where_chance_moves_and_belong_to_nobody():
    found = described("backgammon")
    assert len(found["moves"]) == 1
    assert found["movers"] == [None]
    assert described("backgammon", found["moves"][0])["moves"] == found["moves"]


def test_an_earlier_position_is_shown_after_the_rolls_that_were_made():
    game, moves = load_game("tests.helpers.dice:Race"), "one throw again one step step"
    movers = [None, 0, None, None, 1, 0]
    for at, shown in ((0, 1), (1, 1), (2, 4), (3, 4), (4, 4), (5, 5), (6, 6), (7, 6)):
        found = describe_position(game, moves, np.random.default_rng(at), at=at)
        before = describe_position(game, " ".join(moves.split()[:shown]), np.random.default_rng(0))
        assert (found["at"], found["moves"], found["movers"]) == (shown, moves.split(), movers)
        assert all(found[key] == before[key] for key in ("text", "toPlay", "legal"))
    last = describe_position(game, "one throw", np.random.default_rng(0), at=2)
    assert last["at"] == len(last["moves"]) >= 3


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ("a1 b1 a2 b2 a3 b3", "the game is already over"),
        ("a1 " * MAX_TEXT, f"expected at most {MAX_TEXT} characters"),
    ],
)
def test_moves_that_are_impossible_are_one_sentence(moves, words):
    with pytest.raises(UserError, match=words):
        described("tic-tac-toe", moves)


def test_nobody_searches_where_chance_moves():
    with pytest.raises(UserError, match="add a roll, one of 6-5"):
        unfinished_position(load_game("backgammon"), "")


def test_a_search_reports_as_it_goes_and_ends_with_the_bots_choice():
    game = load_game("tic-tac-toe")
    position = after(game.start, "a1 b1 a2 b2")  # a3 wins
    bot = Bot("constant", game, Constant(9, 0.3, 0.4, 0.3), simulations=200)
    reported = []
    found = search_position(bot, position)(reported.append)
    assert found["choice"] == "a3"
    assert found["rootInfo"]["proven"] == "win"
    assert found["moveInfos"][0]["move"] == "a3"
    assert sum(each["policy"] for each in found["moveInfos"]) == pytest.approx(1, abs=0.01)
    assert found["moveInfos"][0]["line"][0]["spots"] == [(0, 80)]
    assert all(each["simulations"] <= 200 and each["of"] == 200 for each in reported)
    assert search_position(RandomPlayer(np.random.default_rng(0)), position)(reported.append).keys() == {"choice"}


def test_the_view_of_the_network_is_that_of_the_player_to_move():
    game = load_game("tic-tac-toe")
    bot = Bot("constant", game, Constant(9, 0.5, 0.3, 0.2), simulations=0)
    found = network_view(bot, after(game.start, "a1"))
    assert found["wdl"] == [0.5, 0.3, 0.2]
    assert len(found["policy"]) == 8
    assert sum(share for _, share in found["policy"]) == pytest.approx(1, abs=0.01)
    assert np.asarray(found["planes"]).shape == game.start.observation_shape
    assert found["planes"][1][0][0] == 1  # the opponent's stone


def own_stones(position):
    """A final board on which every stone stays."""
    own, other = np.asarray(position.observe())[:2].astype(np.float32)
    return (own - other)[np.newaxis]


@pytest.mark.parametrize("moves", ["c2", "c2 d3"])  # Black's and White's numbers have opposite signs
def test_an_expected_final_board_lies_on_the_stones_of_its_owners(moves):
    start = load_game("go(size=5)").start
    position = after(start, moves)
    found = final_board_of(own_stones(position), PlaneCells(start).cells(position), position.to_play)
    owned = {(x, y): value for x, y, value in found["owned"] if value}
    assert owned == {(80, 120): 1, (120, 80): -1} if "d3" in moves else {(80, 120): 1}
    assert (len(found["owned"]), found["cells"], found["lead"]) == (25, "points", 1 if moves == "c2" else 0)


def test_an_expected_final_board_whose_place_is_unknown_is_not_drawn():
    position = load_game("go(size=5)").start
    assert final_board_of(own_stones(position), None, 0) is None


def test_a_search_tells_the_final_board_that_its_network_expects():
    game = load_game("othello")
    bot = Bot.at_level(game).with_simulations(16)
    reported = []
    found = search_position(bot, game.start, cells=PlaneCells(game.start).cells)(reported.append)
    assert len(found["finalBoard"]["owned"]) == 64
    assert found["finalBoard"]["cells"] == "squares"
    assert search_position(bot, game.start)(reported.append)["finalBoard"] is None


def test_the_planes_of_a_network_view_have_their_places():
    game = load_game("breakthrough")
    bot, cells = Bot.at_level(game), PlaneCells(game.start).cells
    for moves in ("", "a2-a3"):  # the second player sees the board turned
        position = after(game.start, moves)
        found = network_view(bot, position, cells(position))
        own = {tuple(found["places"][row][column]) for row, column in np.argwhere(np.array(found["planes"][0]))}
        drawn = {(40 * x, 40 * y) for _, x, y, piece, _ in board_of(position).cells if piece == str(position.to_play)}
        assert own == drawn
    assert network_view(bot, position)["places"] is None


def test_the_territory_at_the_end_is_that_of_the_rules():
    game = load_game("go(size=5, komi=0.5)")
    moves = "b1 d1 b2 d2 b3 d3 b4 d4 b5 d5"
    cells_of = PlaneCells(game.start).cells
    running = describe_position(game, moves, np.random.default_rng(0), cells_of=cells_of)
    assert running["territory"] == []
    over = describe_position(game, f"{moves} pass pass", np.random.default_rng(0), cells_of=cells_of)
    assert over["outcome"]["score"] == 0.5
    owners = {(x / UNIT, value) for x, _, value in over["territory"]}
    assert owners == {(0, 1.0), (4, -1.0)}  # the columns a and e
    assert len(over["territory"]) == 10


def test_a_program_stays_for_all_its_visitors_who_have_a_game_each(tmp_path: Path):
    guests, game = Guests(tmp_path / "log"), load_game("tic-tac-toe")
    opponents = Opponents(game, others=[guests.name("text")])
    for moves, choice in (("b2", "a1"), ("c3", "a1"), ("b2 a1 c3", "b1")):
        positions, made = play_named(game.start, moves.split())
        found = search_position(opponents.find(guests.name("text")), positions[-1], moves=made)(lambda event: None)
        assert found == {"choice": choice}
    assert len(guests.processes()) == 1


def test_moves_have_the_names_that_people_write():
    found = described("chess", "e2e4 e7e5 d1h5 b8c6 f1c4 g8f6")
    assert found["written"] == ["e4", "e5", "Qh5", "Nc6", "Bc4", "Nf6"]
    assert {each["name"]: each["written"] for each in found["legal"]}["h5f7"] == "Qxf7#"
    plain = described("breakthrough", "a2-a3 h7-h6")
    assert plain["written"] == plain["moves"] == ["a2-a3", "h7-h6"]
    dice = described("backgammon", "3-1 24/23")
    assert dice["written"] == dice["moves"]


def test_a_set_up_has_its_number_among_the_names_that_people_write():
    assert described("chess(chess960=True)", "518 e2e4")["written"] == ["518", "e4"]


PGN = """[White "Ann"]
[Black "Bo"]
[Result "1-0"]
[Date "1858.01.02"]

1. e4 e5 1-0

1. d4 *

1. Qh5 *
"""


def test_a_file_has_titles_of_its_games_and_the_fields_of_one():
    chess = load_game("chess")
    found = describe_file(chess, PGN.encode(), 0)
    assert found["titles"] == ["Ann – Bo, 1-0, 1858", "Game 2", "Game 3"]
    assert found["game"] == {
        "first": "Ann",
        "second": "Bo",
        "moves": ["e2e4", "e7e5"],
        "winner": "first",
        "end": "resign",
    }
    assert describe_file(chess, PGN.encode(), 1)["game"] == {"moves": ["d2d4"], "winner": None, "end": "rule"}
    sgf = describe_file(load_game("go(size=5)"), b"(;GM[1]SZ[5];B[cc])", 0)
    assert sgf["game"] == {"moves": ["c3"], "winner": None, "end": "rule"}
    assert sgf["titles"] == ["Game 1"]


@pytest.mark.parametrize(
    ("content", "number", "words"),
    [
        (PGN, 2, "the game in line 10: move 1 in line 10, 'Qh5': expected one of"),
        (PGN, 3, "expected a file with at least 4 games, got one with 3"),
        ("", 0, "expected a file with at least 1 games, got one with 0"),
    ],
)
def test_a_game_that_is_not_in_the_file_or_not_legal_is_one_sentence(content, number, words):
    with pytest.raises(UserError, match=f"^{words}"):
        describe_file(load_game("chess"), content.encode(), number)


def test_a_visitor_chooses_from_a_bounded_number_of_games():
    found = describe_file(load_game("chess"), b"1. e4 *\n\n" * (MAX_GAMES + 5), MAX_GAMES - 1)
    assert len(found["titles"]) == MAX_GAMES
    assert found["game"]["moves"] == ["e2e4"]


SAVED = {"version": 1, "game": "chess v1", "person": "second", "bot": "pure MCTS", "moves": ["e2e4"], "resigned": True}


def test_a_saved_game_is_written_with_the_names_of_its_players():
    text = exported(load_game("chess"), json.dumps({**SAVED, "timeOver": True}).encode(), "pgn")
    assert '[White "pure MCTS"]\n[Black "?"]\n[Result "1-0"]\n[Termination "time forfeit"]\n' in text
    named = exported(load_game("chess"), json.dumps({**SAVED, "first": "Ann", "second": "Bo"}).encode(), "pgn")
    assert '[White "Ann"]\n[Black "Bo"]\n[Result "1-0"]\n\n1. e4 1-0\n' in named
    go = {**SAVED, "game": "go(size=5) v1", "moves": ["c3"], "timeOver": True, "bot": "you"}
    assert "RE[B+T]" in exported(load_game("go(size=5)"), json.dumps(go).encode(), "sgf")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"moves": ["e2e5"]}, "move 1: expected one of"),
        ({"game": "go v1"}, "it is a game of 'go v1', not of chess v1"),
        ({"variations": ["e2e4"]}, "expected variations as lists of names"),
        ({"variations": [["e2e4", 1]]}, "expected variations as lists of names"),
        ({"variations": [["d2d4"]] * (MAX_VARIATIONS + 1)}, f"expected at most {MAX_VARIATIONS} variations"),
        ({"variations": [["d2d5"]]}, "expected one of"),
        ({"comments": {"": 1}}, "expected comments as texts"),
        ({"comments": []}, "expected comments as texts"),
    ],
)
def test_a_saved_game_that_is_none_is_not_written(fields, words):
    with pytest.raises(UserError, match=f"^the game cannot be written as PGN: {words}"):
        exported(load_game("chess"), json.dumps({**SAVED, **fields}).encode(), "pgn")
