"""Dice in sessions, matches and analysis: who rolls, what is shown, what is taken back."""

import io
import json
from unittest.mock import Mock

import numpy as np
import pytest

from plyzero.commands.terminal import Terminal
from plyzero.errors import UserError
from plyzero.kits.engines.analysis import answer_queries
from plyzero.play.judge import Judge
from plyzero.play.match import play_match, random_openings
from plyzero.play.player import RandomPlayer
from plyzero.play.players import Bot
from plyzero.play.session import Session
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import is_chance
from plyzero.rules.notation import action_names, play_named
from tests.helpers.dice import PlainRace, Race, WhoBegins
from tests.helpers.toys import variant

both_games = pytest.mark.parametrize("start", [Race(), PlainRace()], ids=["compiled", "plain"])


def session(start, seed=0, person=0):
    return Session(GameSpec("race", start), person, rng=np.random.default_rng(seed))


@both_games
def test_a_session_rolls_before_the_first_move_and_after_every_one(start):
    seen = set()
    assert is_chance(start)
    for seed in range(30):
        game = session(start, seed)
        assert (game.last_rolls, game.last_mover) == (action_names(start, game.moves[:1]), None)
        assert len(game.moves) == 1
        while game.outcome is None:
            assert not is_chance(game.position)
            mover = game.position.to_play
            game.play(1)
            assert game.last_mover == mover
            assert len(game.last_rolls) >= 1
        seen.add(tuple(game.moves))
    assert len(seen) > 15


@both_games
def test_undo_takes_a_roll_back_with_the_move(start):
    game = session(start)
    before = len(game.moves), game.position.key()
    assert not game.undo()
    game.play(1)
    while game.outcome is None and game.position.to_play == 1:
        game.play(1)
    assert game.undo()
    assert (len(game.moves), game.position.key()) == before


@both_games
def test_a_saved_game_has_its_rolls_and_goes_on_from_them(start):
    game = session(start, seed=5)
    for action in (1, 0, 1):
        if game.outcome is None:
            game.play(action)
    record = json.loads(json.dumps(game.record("bot")))
    again = Session.from_record(GameSpec("race", start), record)
    assert (again.moves, again.position.key()) == (game.moves, game.position.key())
    assert record["moves"][0] in ("one", "three")
    assert "throw" in record["moves"]
    record["moves"] = ["one", "throw"]  # somebody has cut it off before the roll
    assert not is_chance(Session.from_record(GameSpec("race", start), record).position)


@both_games
def test_a_name_that_is_no_possible_roll_is_refused(start):
    with pytest.raises(ValueError, match="move 1: expected a roll, one of one three, got 'four'"):
        play_named(start, ["four"])


def test_the_terminal_says_what_was_rolled(capsys):
    terminal = Terminal(session(PlainRace()), RandomPlayer(np.random.default_rng(0)), Mock())
    terminal.show_board()
    first = terminal.session.last_rolls
    terminal.play(1)
    terminal.show_board()
    shown = capsys.readouterr().out
    assert f"Rolled: {first[0]}." in shown
    assert f"Rolled: {' '.join(terminal.session.last_rolls)}." in shown


@pytest.mark.parametrize(
    ("person", "rolled", "said"),
    [
        (0, "one", "you move first"),
        (1, "one", "you move second"),
        (0, "three", "you are the first player, and the bot moves first"),
        (1, "three", "you are the second player, and you move first"),
    ],
)
def test_the_terminal_says_who_begins_where_dice_decide(person, rolled, said, capsys):
    game = GameSpec("race", WhoBegins())
    begun = Session(game, person, *play_named(game.start, [rolled]))
    Terminal(begun, RandomPlayer(np.random.default_rng(0)), Mock()).begin()
    assert f"race: {said}; the bot is random.\n" in capsys.readouterr().out
    assert begun.first_mover == ["one", "three"].index(rolled)
    assert begun.is_persons_turn == ("you move first" in said)


class Recording(RandomPlayer):
    """A player who always throws, and writes down what it saw."""

    def __init__(self):
        self.seen = []

    def choose_all(self, positions):
        self.seen += [each.key() for each in positions]
        return [1] * len(positions)


@both_games
def test_both_games_of_an_opening_share_their_dice(start):
    # Both throw at every move, so that with equal dice the two games of a pair are the same, and each wins one.
    for seed in range(5):
        result = play_match(Recording(), Recording(), start, games=20, rng=np.random.default_rng(seed), opening_plies=0)
        assert result.wins == result.losses
        assert 2 < result.distinct <= 10


@both_games
def test_openings_hold_their_rolls_and_end_where_a_player_moves(start):
    openings = random_openings(start, 2, np.random.default_rng(0), count=20)
    assert len({*map(tuple, openings)}) > 10
    for opening in openings:
        position = play_named(start, action_names(start, opening))[0][-1]
        assert position.outcome() is None
        assert not is_chance(position)


@both_games
def test_a_match_with_random_openings_counts_moves_and_not_rolls(start):
    with pytest.raises(UserError, match="expected opening_plies from 0 to 13"):
        play_match(Recording(), Recording(), start, games=2, rng=np.random.default_rng(0), opening_plies=14)
    plies, rng = [], np.random.default_rng(0)
    play_match(RandomPlayer(rng), RandomPlayer(rng), start, games=40, rng=rng, on_progress=lambda _, n: plies.append(n))
    assert max(plies) <= start.max_plies


MOVES = ("", "one", "one throw", "one throw again three", "throw")


def test_analysis_takes_rolls_and_asks_for_one_that_is_missing():
    game, answers = GameSpec("race", Race()), io.StringIO()
    queries = [json.dumps({"moves": moves.split()}) for moves in MOVES]
    judge = Judge(Bot.pure_mcts(game, np.random.default_rng(0), simulations=20), "pure MCTS")
    answer_queries(game, judge, queries, answers)
    found = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert found[0]["error"] == "chance moves after these moves; add to them a roll, one of one three"
    assert {info["move"] for info in found[1]["moveInfos"]} == {"step", "throw"}
    assert found[2]["error"].endswith("one of one three four again")
    assert found[3]["rootInfo"]["currentPlayer"] == 1
    assert "expected a roll" in found[4]["error"]


Forgotten = variant(PlainRace, num_chances=0)
Compiled = variant(Race, num_chances=0)
Half = variant(PlainRace, num_chances=1.5)


class Without(PlainRace):
    def __init__(self):
        self.num_chances, self.begun = 0, True

    def chances(self):
        return ()


def test_a_game_that_declares_its_rolls_wrongly_is_not_loaded():
    for name, words in (
        ("Forgotten", r"Forgotten defines chances\(\), but num_chances is 0"),
        ("Compiled", "has a rule chances, but num_chances is 0"),
        ("Half", r"Half.num_chances: expected a number from 0 on, got 1.5"),
    ):
        with pytest.raises(UserError, match=words):
            load_game(f"{__name__}:{name}")
    assert load_game(f"{__name__}:Without").start.num_chances == 0
