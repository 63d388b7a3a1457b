"""OpenSpiel's games: what is refused, what the players see, dice, and that the rules are those of plyzero's own."""

import copy
import itertools
import pickle
import re
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from plyzero.check.agreement import agreement_with
from plyzero.check.violations import find_violation, laws_of
from plyzero.errors import UserError
from plyzero.games.hex import Hex
from plyzero.games.pig import Pig
from plyzero.kits.adapters import openspiel
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import chances_of, is_chance, move_name, possible_moves
from plyzero.rules.game import Game, Outcome
from plyzero.rules.notation import play_named
from plyzero.rules.random_game import PlayedGame, random_game
from plyzero.rules.trial import Trial, look
from tests.helpers.cli import shown
from tests.helpers.toys import ROOT

TURNED = (
    "amazons(board_size=6)",
    "breakthrough(columns=4, rows=6)",
    "checkers",
    "chess",
    "connect_four",
    "dots_and_boxes",
    "go(board_size=5)",
    "gomoku(size=6)",
    "hex(board_size=4)",
    "hex(board_size=4, swap=True)",
    "lines_of_action",
    "mnk(m=4, n=3)",
    "tic_tac_toe",
)
"""Games that are turned to the player to move."""


def start_of(name: str) -> Game:
    return load_game(f"openspiel:{name}").start


def games_of(start: Game, count: int = 5) -> list[PlayedGame]:
    return [random_game(start, np.random.default_rng(seed)) for seed in range(count)]


def first_move(position: Game) -> Game:
    """Return the position after the first of the legal actions."""
    return position.play(position.legal_actions()[0])


def played_by_name(name: str, *moves: str) -> Game:
    return play_named(start_of(name), moves)[0][-1]


# --- names and parameters ---


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("openspiel:hex", "openspiel:hex"),
        ("openspiel:hex(board_size=11)", "openspiel:hex"),
        (" openspiel:hex( swap=True, board_size = 7 )", "openspiel:hex(board_size=7, swap=True)"),
        ("openspiel:nim(pile_sizes='1;2')", "openspiel:nim(pile_sizes='1;2')"),
        ("openspiel:nim(pile_sizes=1;2,is_misere=false)", "openspiel:nim(is_misere=False, pile_sizes='1;2')"),
    ],
)
def test_a_game_has_one_canonical_name(text: str, name: str):
    assert load_game(text).name == name
    assert load_game(name).identity == load_game(text).identity


def test_parameters_reach_the_game():
    assert (start_of("hex(board_size=7)").num_actions, start_of("hex").num_actions) == (49, 121)
    assert start_of("hex(num_rows=3, num_cols=5)").observation_shape[1:] == (3, 5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hexx", "OpenSpiel has no game 'hexx'; the closest names: hex, "),
        ("2048", "openspiel:2048 cannot be played: it is for 1 player, not for two"),
        ("goofspiel", "openspiel:goofspiel cannot be played: the players move at the same time"),
        ("kuhn_poker", "openspiel:kuhn_poker cannot be played: it has hidden information"),
        ("pig(players=3)", r"pig\(players=3\): it is for 3 players, not for two"),
        ("yacht(num_dice=6)", r"yacht\(num_dice=6\): expected at most 8192 different rolls, got 46656$"),
        ("yacht(num_dice=32)", r"yacht\(num_dice=32\): expected at most 8192 different rolls, got far more$"),
        ("efg_game", "openspiel:efg_game cannot be played: it needs a file or another game"),
        ("hex(size=3)", "openspiel:hex has no parameter 'size'; it has: board_size, num_cols, num_rows"),
        ("hex(board_size='x')", "expected for board_size an integer such as 11, got 'x'"),
        ("hex(board_size=[3])", r"expected for board_size an integer such as 11, got \[3\]"),
        ("go(komi=7)", "expected for komi a float such as 7.5, got 7"),
        ("havannah(board_size=-1)", "expected for board_size an integer from 0 to 10000, got -1"),
        ("hex(board_size=2147483647)", "expected for board_size an integer from 0 to 10000, got 2147483647"),
        ("hex(board_size=999)", r"an observation of shape \(9, 999, 999\) with 998001 actions is too small or too lar"),
        ("hex(board_size=7, num_cols=11)", "num_cols=11 is taken for not given, and then num_cols is 7 here"),
        ("checkers(rows=1)", "it is over before the first move"),
        ("amazons(board_size=3)", r"OpenSpiel refuses these parameters: amazons.cc:\d+ CHECK_TRUE\(board_size_ == 6"),
        ("go(board_size=9, handicap=2)", "OpenSpiel refuses these parameters: Trying to play the move B: q16"),
        ("hex(7)", "expected parameters as in othello"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_sentence(name: str, message: str):
    with pytest.raises(UserError, match=message) as refused:
        start_of(name)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("respect", "value", "reason"),
    [
        ("utility", openspiel.GameType.Utility.GENERAL_SUM, "one player may win what the other does not lose"),
        ("chance_mode", openspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC, "it does not give the probabilities of its"),
        ("reward_model", openspiel.GameType.RewardModel.REWARDS, "it has rewards before the end"),
        ("provides_observation_tensor", False, "it has no observation tensor"),
    ],
)
def test_what_no_game_of_openspiel_is_today_is_refused_as_well(respect: str, value: object, reason: str, monkeypatch):
    hex_type = start_of("hex")._state.get_game().get_type()
    fields = {name: getattr(hex_type, name) for name in dir(hex_type) if not name.startswith("_")}
    unlike = SimpleNamespace(**fields | {respect: value, "short_name": f"hex_of_other_{respect}"})
    monkeypatch.setattr(openspiel.pyspiel, "registered_games", lambda: [unlike])
    with pytest.raises(UserError, match=f"openspiel:hex_of_other_{respect} cannot be played: {reason}"):
        load_game(f"openspiel:hex_of_other_{respect}")
    assert openspiel.playable_games() == {}


def test_without_the_extra_the_message_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.delattr("plyzero.kits.adapters.openspiel")
    monkeypatch.delitem(sys.modules, "plyzero.kits.adapters.openspiel")
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(UserError, match=r"OpenSpiel is missing \(.*\): pip install -e '.\[openspiel\]' in a checkout"):
        load_game("openspiel:hex")
    assert "openspiel:hex(board_size=7): OpenSpiel is missing (" in shown("games")


def test_the_list_of_games_has_those_of_openspiel_that_can_be_played():
    listed = re.findall(r"openspiel:(\w+) +(.*?) *$", shown("games"), re.MULTILINE)
    assert dict(listed)["mnk"] == "k=5, m=15, n=15"
    assert {"backgammon", "chess", "go", "hex", "othello", "pig", "shogi"} <= dict(listed).keys()
    assert not {"2048", "efg_game", "kuhn_poker", "misere"} & dict(listed).keys()


# --- rules: the same as those of the games that plyzero includes ---


@pytest.mark.parametrize(
    ("name", "native", "own_and_other"),
    [("tic_tac_toe", "tic-tac-toe", [2, 1]), ("connect_four", "connect-four", [0, 1])],
)
def test_rules_and_pieces_are_those_of_the_included_game(name: str, native: str, own_and_other: list[int]):
    start, included = start_of(name), load_game(native).start
    assert (start.num_actions, start.max_plies) == (included.num_actions, included.max_plies)
    for game in games_of(start, 50):
        others = itertools.accumulate(game.moves, lambda position, move: position.play(move), initial=included)
        for position, other in zip(game.positions, others, strict=True):
            assert position.outcome() == other.outcome()
            assert position.legal_actions() == list(other.legal_actions())
            if position.outcome() is None:
                assert position.to_play == other.to_play
                assert np.array_equal(position.observe()[own_and_other], other.observe())


def test_rules_and_pieces_are_those_of_the_included_othello():
    start, native = start_of("othello"), load_game("othello").start
    passes = 0
    for game in games_of(start, 30):
        other = native
        for position, move in zip(game.positions, game.moves, strict=False):
            assert position.legal_names() == other.legal_names()
            assert np.array_equal(position.observe()[1:], other.observe())
            passes += move == 64
            other = other.play(other.parse_action(position.action_name(move)))
        while other.outcome() is None:  # here the game goes on with passes where OpenSpiel's is over
            assert other.legal_names() == "pass"
            other = other.play(64)
        assert game.positions[-1].outcome().winner == other.outcome().winner  # OpenSpiel does not tell the discs
    assert passes > 0


def test_the_player_who_moves_first_is_player_0_whatever_openspiel_calls_them():
    positions = play_named(start_of("chess"), ["f4", "e5", "g4", "Qh4#"])[0]
    assert [position.to_play for position in positions[:4]] == [0, 1, 0, 1]
    assert (positions[-1].outcome(), positions[-1].legal_actions()) == (Outcome(1), [])


def test_returns_count_by_their_sign():
    for game in games_of(start_of("dots_and_boxes(utility_margin=True)"), 20):
        returns = game.positions[-1]._state.returns()
        winner = None if returns[0] == 0 else int(returns[0] < 0)
        assert game.positions[-1].outcome() == Outcome(winner)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("go(board_size=3)", "a1", "PASS"), ("hex(board_size=3)", "a1", "c3"), ("connect_four", "x0", "o6")],
)
def test_names_of_moves_do_not_begin_with_a_word_that_all_have_in_common(name: str, first: str, second: str):
    assert start_of(name).legal_names().split()[0] == first
    assert played_by_name(name, first).legal_names().split()[-1] == second


def test_hex_is_the_same_game_in_both_forms_by_the_names_of_its_moves():
    agreement = agreement_with(lambda: start_of("hex(board_size=3)"))
    for size, is_same in ((3, True), (4, False)):
        broken = find_violation(lambda size=size: Hex(size, swap=False), games=5, extra_laws=[agreement])
        assert (broken is None) == is_same


# --- what the player to move sees ---


@pytest.mark.parametrize("name", TURNED)
def test_turning_to_the_second_player_twice_changes_nothing(name: str):
    start = start_of(name)
    numbers, actions = start._view.numbers, start._view.actions or range(start.num_actions)
    assert np.array_equal(numbers[numbers], np.arange(len(numbers)))
    assert [actions[action] for action in actions] == list(range(start.num_actions))


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("amazons", [2]),
        ("breakthrough", [0]),
        ("breakthrough(columns=5, rows=7)", [0]),
        ("checkers", [0, 1]),
        ("chess", [0, 2, 4, 6, 8, 10]),
    ],
)
def test_the_second_player_first_sees_and_may_play_what_the_first_player_did(name: str, own: list[int]):
    start = start_of(name)
    position = start
    while position.to_play == 0:
        position = first_move(position)
    assert start.observe()[own].any()
    assert np.array_equal(position.observe()[own], start.observe()[own])
    assert position.legal_actions() == start.legal_actions()


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("connect_four", 0, 1),
        ("dots_and_boxes", 1, 2),
        ("go(board_size=5)", 0, 1),
        ("gomoku(size=6)", 0, 1),
        ("havannah(board_size=4)", 0, 1),
        ("mnk(m=4, n=3)", 2, 1),
        ("tic_tac_toe", 2, 1),
        ("y(board_size=5)", 0, 1),
    ],
)
def test_own_stones_are_the_opponents_after_a_move_and_one_more(name: str, own: int, other: int):
    seen = Counter()
    for game in games_of(start_of(name)):
        for before, after, move in zip(game.positions, game.positions[1:], game.moves, strict=False):
            if after.outcome() is None and after.to_play != before.to_play:
                grown = after.observe()[other] - before.observe()[own]
                is_pass = name.startswith("go(") and move == 25
                assert grown[grown != 0].tolist() == ([] if is_pass else [1])
                seen[before.to_play] += 1
    assert min(seen[0], seen[1]) > 10


@pytest.mark.parametrize("winner", [0, 1])
def test_in_hex_both_players_connect_the_first_row_with_the_last(winner: int):
    position = start_of("hex(board_size=4)")
    moves = {winner: [0, 4, 8, 12], 1 - winner: [12, 13, 14, 11]}  # the first column; the last row, which does not win
    for number, player in itertools.product(range(4), (0, 1)):
        if position.outcome() is None:
            assert position.to_play == player
            if player == winner and number:
                assert position.observe()[7, :number, 0].all()  # own stones that are connected with the first row
            position = position.play(moves[player][number])
    assert position.outcome() == Outcome(winner)


def test_in_hex_boards_that_are_not_square_are_not_turned():
    start = start_of("hex(num_rows=3, num_cols=5)")
    assert start._view.numbers is None
    after = start.play(start.parse_action("e2"))
    assert after.observe()[5, 1, 4] == after.observe()[-1].min() == 1


@pytest.mark.parametrize("name", ["twixt", "antichess", "hex(plain_obs_tensor=True)", "checkers(egocentric=True)"])
def test_where_nothing_is_turned_the_last_plane_shows_the_player_to_move(name: str):
    start, behind = start_of(name), 3 if name.startswith("checkers") else 1
    assert start.observation_shape[0] == start._state.get_game().observation_tensor_shape()[0] + behind
    assert not start.observe()[-1].any()
    assert first_move(start).observe()[-1].all()


def test_an_observation_that_openspiel_turns_is_not_turned_again():
    after = start_of("connect_four(egocentric_obs_tensor=True)").play(3)
    assert after.observe()[:-1].argmax(axis=0)[0, 3] == after.play(2).observe()[:-1].argmax(axis=0)[0, 2]


def test_a_tensor_alike_for_both_is_shown_with_a_turn_or_a_plane(monkeypatch):
    monkeypatch.setattr(openspiel.views, "MOVER_SEES", {"twixt"})
    assert first_move(start_of("twixt(board_size=8)")).observe()[-1].all()  # given in full: not loaded before


def test_each_observation_is_an_array_of_its_own():
    for name in ("hex(board_size=4)", "twixt", "othello"):
        before = start_of(name).observe()
        kept = before.copy()
        first_move(start_of(name)).observe()
        assert np.array_equal(before, kept)


# --- what the tensor leaves out ---


def planes_behind(position: Game, count: int) -> list[float]:
    """The numbers of the last planes, each of which has one number."""
    planes = position.observe()[len(position.observe()) - count :]
    assert all((plane == plane[0, 0]).all() for plane in planes)
    return planes[:, 0, 0].tolist()


def test_in_checkers_the_last_planes_show_a_further_jump_and_the_plies_since_the_last_capture():
    quiet = played_by_name("checkers", "a3b4", "f6g5", "b4a5")
    assert planes_behind(quiet, 2) == pytest.approx([0, 3 / 40])
    jumped = played_by_name("checkers", "a3b4", "d6c5", "b4d6")
    assert planes_behind(jumped, 2) == [0, 0]
    again = 0
    for game in games_of(start_of("checkers"), 20):
        for before, after in itertools.pairwise(game.positions[:-1]):
            shown, left = planes_behind(after, 2), [np.count_nonzero(each.observe()[:4]) for each in (before, after)]
            assert shown[0] == (before.to_play == after.to_play)
            assert (shown[1] == 0) == (left[0] > left[1])
            again += int(shown[0])
    assert again > 0


@pytest.mark.parametrize("name", ["lines_of_action", "nine_mens_morris", "oware", "xiangqi"])
def test_the_plies_are_shown_where_the_rules_count_them(name: str):
    for game in games_of(start_of(name), 2):
        for ply, position in enumerate(game.positions[:-1]):
            shown = {round(float(plane[0, 0]) * position.max_plies, 2) for plane in position.observe()[-3:]}
            assert ply in shown


def test_in_nine_mens_morris_a_plane_shows_whether_a_mill_is_to_be_answered_by_a_capture():
    position = played_by_name("nine_mens_morris", "0", "8", "1", "9", "2")
    assert "Capture time" in str(position)
    assert planes_behind(position, 3) == pytest.approx([1, 5 / 214, 0])
    assert planes_behind(first_move(position), 3) == pytest.approx([0, 6 / 214, 1])


def test_in_amazons_the_last_plane_shows_the_square_that_the_next_move_of_the_turn_depends_on():
    for game in games_of(start_of("amazons(board_size=6)"), 2):
        for before, move, after in zip(game.positions, game.moves, game.positions[1:-1], strict=False):
            shown = np.flatnonzero(after.observe()[-1]).tolist()
            assert shown == ([move] if after.to_play == before.to_play else [])


def test_what_a_tensor_leaves_out_otherwise_is_a_note_of_check(monkeypatch):
    monkeypatch.setitem(openspiel.views.OMITTED, "mnk", "the weather")
    out = shown("check", "openspiel:mnk(k=2, m=3, n=2)", "--games", "1")
    note = "note: equal_observations_equal_futures is not checked: OpenSpiel's tensor leaves out the weather: the"
    assert f"{note} network averages over it, the search does not" in " ".join(out.split())
    assert set(openspiel.views.OMITTED) - {"mnk"} == {"banqi", "cursor_go", "hive", "quoridor"}


def test_games_that_are_cut_at_our_own_limit_of_plies_break_no_law():
    cut, whole = ({law.name for law in laws_of(start_of(name))} for name in ("chess", "lines_of_action"))
    assert whole - cut == {"games_end"}
    assert start_of("banqi").waived_laws.keys() >= {"games_with_dice_end"}
    assert {law.name for law in laws_of(start_of("banqi"))} >= {"games_end"}  # rolls do end


# --- what a trial shows ---


@pytest.mark.parametrize(
    ("name", "dtype"), [("connect_four", np.bool_), ("go", np.bool_), ("chess", np.float32), ("mancala", np.float32)]
)
def test_observations_of_0_and_1_are_stored_as_bool(name: str, dtype: type):
    start = start_of(name)
    assert start.observation_dtype == first_move(start).observation_dtype == dtype


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("breakthrough", 0),
        ("connect_four", 1),
        ("go(board_size=5)", 7),
        ("gomoku(size=6)", 7),
        ("havannah(board_size=4)", 3),
        ("hex(board_size=4)", 1),
        ("hex(board_size=4, swap=True)", 1),
        ("hex(board_size=4, plain_obs_tensor=True)", 1),
        ("othello", 3),
        ("tic_tac_toe", 7),
        ("y(board_size=5)", 1),
    ],
)
def test_symmetries_are_found_and_hold_in_other_games(name: str, count: int):
    start = start_of(name)
    other = Trial(games := games_of(start, 20), [[look(position) for position in game.positions] for game in games])
    assert len(start.symmetries()) == len(other.proven(start.symmetries())) == count


def test_the_version_is_the_same_in_every_process():
    identity = "from plyzero.rules.catalog import load_game; print(load_game('openspiel:hex(board_size=3)').identity)"
    done = subprocess.run([sys.executable, "-c", identity], stdout=-1, text=True, check=True)
    assert done.stdout == f"{load_game('openspiel:hex(board_size=3)').identity}\n"


def test_long_games_are_cut_off():
    names = ("chess", "go(board_size=5)", "go")  # the last is cut by OpenSpiel's own bound
    assert [start_of(name).max_plies for name in names] == [512, 50, 722]


# --- people and copies ---


def test_names_that_differ_in_case_only_get_their_numbers():
    position = played_by_name("chess", "d4", "Nf6", "Bd2", "Ne4", "a3", "Nc3")
    captures = [name for name in position.legal_names().split() if "xc3" in name]
    assert {re.sub(r"/\d+$", "/number", name) for name in captures} == {"Nxc3", "bxc3/number", "Bxc3/number"}
    assert [position.action_name(position.parse_action(name)) for name in captures] == captures


def test_names_are_words():
    assert "Place_Stone" in start_of("cursor_go").legal_names().split()


def test_the_board_is_text_without_colours_and_more_than_one_line():
    for name in ("twixt", "chess", "go(board_size=5)"):
        text = str(start_of(name))
        assert "\x1b" not in text
        assert len(text.splitlines()) >= 5


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
@pytest.mark.parametrize(
    ("name", "ply"), [("checkers", 30), ("chess(chess960=True)", 6), ("pig", 6)], ids=["jumps", "set-ups", "rolls"]
)
def test_a_position_can_be_copied(name: str, ply: int, again):
    position = games_of(start_of(name))[0].positions[ply]
    other = again(position)
    assert type(other) is type(position)
    for one, two in ((position, other), (first_move(position), first_move(other))):
        assert (two.key(), two.to_play, two.legal_actions()) == (one.key(), one.to_play, one.legal_actions())
        assert np.array_equal(two.observe(), one.observe())


# --- dice ---

DICE = ("backgammon", "banqi", "einstein_wurfelt_nicht", "maedn", "pig", "yacht(num_dice=2)")


def played(name: str, seed: int) -> list[Game]:
    return random_game(start_of(name), np.random.default_rng(seed)).positions


@pytest.mark.parametrize("name", [*DICE, "pig(piglet=True)"])
def test_probabilities_are_exactly_those_of_openspiel(name: str):
    different = set()
    for position in played(name, 1):
        rolls = position._state.chance_outcomes() if position._state.is_chance_node() else []
        given = position.chances()
        assert {roll: given[roll] for roll in range(len(given)) if given[roll]} == dict(rolls)
        assert len(given) in (0, position.num_chances)
        assert is_chance(position) == bool(rolls)
        assert position.to_play in (0, 1)
        different |= {tuple(given)} if rolls else set()
    # Backgammon's first roll is not a double, pieces leave banqi's sack, cubes are placed before the die is rolled.
    assert (len(different) > 1) == name.startswith(("backgammon", "banqi", "einstein", "yacht"))


def test_pig_is_the_included_pig():
    rng, numbers = np.random.default_rng(0), re.compile(r"\d+")
    ends_by_stopping = 0
    for _ in range(20):
        theirs, ours = start_of("pig(winscore=30)"), Pig(goal=30).as_plain_python()
        while ours.outcome() is None:
            assert theirs.outcome() is None
            first, second, player, turn = map(int, numbers.findall(str(ours)))
            assert list(map(int, numbers.findall(str(theirs))))[:3] == [first, second, turn]
            assert chances_of(theirs).tolist() == chances_of(ours).tolist()
            move = int(rng.choice(possible_moves(ours)))
            name = move_name(ours, move)
            if not is_chance(ours):
                assert theirs.to_play == player
                assert theirs.legal_names() == "roll stop"  # here there must be something to keep
                assert ours.legal_names() == ("hold roll" if turn else "roll")
                name = name.replace("hold", "stop")
            by_name = {move_name(theirs, each): each for each in possible_moves(theirs)}
            theirs = theirs.play(by_name[name])
            ours = ours.play(move)
        if theirs.outcome() is None:  # which needs the move stop
            theirs = theirs.play(theirs.parse_action("stop"))
            ends_by_stopping += 1
        assert theirs.outcome() == ours.outcome()
    assert ends_by_stopping > 0


def test_backgammon_begins_with_a_roll_that_decides_who_moves_first():
    start = start_of("backgammon")
    assert (is_chance(start), start.num_chances) == (True, 36)
    movers = {}
    for roll in possible_moves(start):
        name = start.roll_name(roll)
        movers.setdefault(name[0], set()).add(start.play(roll).to_play)
        assert re.fullmatch(r"[XO]_starts,_[1-6]{2}", name)
    assert movers == {"X": {0}, "O": {1}}
    after = start.play(1)
    again = after.play(after.legal_actions()[0])
    assert {again.roll_name(roll) for roll in possible_moves(again)} >= {"11", "12", "66"}
    assert "-" not in after.legal_names()


@pytest.mark.parametrize("name", ["chess(chess960=True)", "einstein_wurfelt_nicht", "yacht(num_dice=2)"])
def test_who_moves_first_after_every_roll_is_player_0(name: str):
    for seed in range(5):
        assert next(each for each in played(name, seed) if not is_chance(each)).to_play == 0


@pytest.mark.parametrize("name", ["chess(chess960=True)", "crazyhouse(chess960=True)"])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_game_whose_only_roll_is_the_first_has_set_ups(name: str, again):
    start = start_of(name)
    assert (start.setups, start.num_chances, is_chance(start)) == (960, 0, True)
    assert again(start).awaits_setup
    first = {str(start.play(number)).splitlines()[0].split("/")[-1].split()[0] for number in range(960)}
    assert len(first) == 959  # back ranks; OpenSpiel has one of the 960 twice
    begun = again(start.play(518))
    assert (begun.key(), is_chance(begun)) == ((518,), False)
    assert find_violation(lambda: start, games=2, skip=["equal_observations_equal_futures"]) is None


def test_the_network_sees_the_die_in_einstein_wurfelt_nicht():
    for seed in range(3):
        for before, after in itertools.pairwise(played("einstein_wurfelt_nicht", seed)[:-1]):
            if is_chance(before) and not is_chance(after):
                assert np.flatnonzero(after.observe()[-7:-1]).tolist() == [after.key()[-1]]


def test_in_pig_a_plane_shows_the_plies():
    positions = [each for each in played("pig", 0)[:-1] if not is_chance(each)]
    assert [round(1000 * float(each.observe()[-2, 0, 0])) for each in positions] == list(range(len(positions)))


def test_a_match_with_dice_is_played_by_name():
    name = "openspiel:pig(winscore=5)"
    assert name in shown("match", "mcts:2", "random", "--game", name, "--games", "2")


def test_every_playable_game_can_be_loaded_and_is_in_the_table_of_games():
    table = (ROOT / "benchmarks" / "results" / "openspiel.md").read_text()
    assert re.findall(r"^\| openspiel:(\w+) v", table, re.MULTILINE) == sorted(openspiel.playable_games())
    starts = {name: start_of(name) for name in sorted(openspiel.playable_games())}
    assert all(start.outcome() is None and len(possible_moves(start)) for start in starts.values())
    dice = (ROOT / "docs" / "adapters.md").read_text().partition("37 games")[2].partition(" have dice")[0]
    assert re.findall(r"`(\w+)`", dice) == [name for name, start in starts.items() if start.num_chances]
