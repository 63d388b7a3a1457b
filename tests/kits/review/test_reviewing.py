"""The review of a game: known mistakes are found and named, luck is none, and the sums are the result."""

import math
from functools import cache
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest

from plyzero import Bot
from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.review.by_tree import TreeJudging
from plyzero.kits.review.description import amount_lost, describe, doubt_of, verdict_of
from plyzero.kits.review.reviewing import Review, _margins, review
from plyzero.kits.review.scale import Scale
from plyzero.kits.review.turns import turns_of
from plyzero.kits.review.values import Valuer
from plyzero.play.judge import find_judge
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import chances_of
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, Outcome
from plyzero.rules.notation import action_names, play_named
from plyzero.rules.random_game import random_game
from plyzero.settings import SearchSettings
from tests.helpers.toys import Constant, Exact

SURE = Scale("score", 1.0, {})
"""The scale of a judge who is never wrong, in a game whose bounds are 0.1, 0.2 and 0.3."""


def bot_of(game: str, evaluate, simulations: int = 4096) -> Bot:
    spec = load_game(game)
    settings = SearchSettings(solver_nodes=0, algorithm="puct" if spec.start.num_chances else "gumbel")
    return Bot("judge", spec, evaluate, simulations=simulations, settings=settings)


def reviewed(game: str, moves: str, evaluate, simulations: int = 4096, scale: Scale = SURE) -> Review:
    valuer = Valuer(bot_of(game, evaluate))
    record = GameRecord(*play_named(valuer.bot.game.start, moves.split()))
    return review(valuer, scale, record, simulations)


def kinds(found: Review) -> list[str | None]:
    return [each.kind for each in found.turns]


def test_the_losing_move_is_a_blunder_and_the_better_one_is_named():
    found = reviewed("tic-tac-toe", "b2 a2 c3 a1 b3 c1", Exact(9))  # an edge loses against the centre
    judged = found.turns[1]
    position = judged.turn.positions[0]
    assert kinds(found)[:2] == [None, "blunder"]
    assert judged.turn.by == 1
    assert judged.lost == pytest.approx(0.5, abs=0.05)
    assert judged.margin == 0
    assert action_names(position, judged.best)[0] in ("a1", "c1", "a3", "c3")
    assert judged.line[0] == judged.best[0]
    assert len(judged.line) > 1
    assert judged.answer
    assert judged in found.largest(1)
    assert found.values[:3] == pytest.approx([0.5, 0.5, 1.0], abs=0.05)


def test_a_loss_that_is_seen_only_later_is_blamed_on_the_move_that_made_it():
    game, weak = "b2 a2 a1 c3 b1 b3 c1", Constant(9, 0, 1, 0)  # a2 loses; 32 simulations see it two moves later
    found = reviewed("tic-tac-toe", game, weak, simulations=32)
    before = reviewed("tic-tac-toe", "b2 a2", weak, simulations=32)
    assert before.values[2] == pytest.approx(0.5, abs=0.05)
    assert found.values == pytest.approx([0.5, 0.5, 1, 1, 1, 1, 1, 1], abs=0.05)
    assert kinds(found) == [None, "blunder", *[None] * 5]
    assert found.accuracy(1) < 75


def test_the_value_falls_only_where_a_turn_has_lost_it():
    for seed in range(8):
        game = random_game(load_game("connect-four").start, np.random.default_rng(seed))
        names = " ".join(action_names(game.positions[0], tuple(game.moves)))
        found = reviewed("connect-four", names, Constant(7, 0.4, 0.2, 0.4), simulations=24)
        for judged, (now, then) in zip(found.turns, pairwise(found.values), strict=True):
            fallen = (now - then) * judged.turn.sign()
            assert fallen == pytest.approx(judged.lost, abs=1e-9), f"seed {seed}: ply {judged.turn.ply}"
            assert fallen < 0.1 or judged.kind, f"seed {seed}: ply {judged.turn.ply} is not blamed"


@pytest.mark.parametrize("number", [4, 5])
def test_a_forced_move_loses_nothing(number: int):
    found = reviewed(f"tests.helpers.toys:Relay(n={number})", "0 " * number, Constant(1, 0, 1, 0), simulations=1)
    assert found.values == [float(number % 2 == 0)] * (number + 1)
    assert (found.accuracy(0), found.accuracy(1)) == (None, None)  # nobody had a choice
    assert found.largest() == []


def test_a_game_without_losses_is_fully_accurate_and_a_blunder_costs():
    perfect = reviewed("tic-tac-toe", "b2 a1", Exact(9))
    assert (perfect.accuracy(0), perfect.accuracy(1)) == pytest.approx((100, 100), abs=2)
    poor = reviewed("tic-tac-toe", "b2 a2", Exact(9))
    assert poor.accuracy(0) == pytest.approx(100, abs=2)
    assert poor.accuracy(1) == pytest.approx(103.1668 * math.exp(-4.354 * 0.5) - 3.1669, abs=1.5)
    assert reviewed("tic-tac-toe", "", Exact(9)).values == pytest.approx([0.5], abs=0.05)


def test_a_turn_of_several_moves_is_one_decision():
    """Two moves by each player; the second move of the first turn gives the game away."""
    spec = load_game("tests.kits.review.test_reviewing:TwoMoves")
    bot = Bot("judge", spec, Exact(2), simulations=256, settings=SearchSettings())
    record = GameRecord(*play_named(spec.start, ["1", "0", "0", "0"]))
    found = review(Valuer(bot), SURE, record, 256)
    assert [(each.turn.ply, each.turn.moves) for each in found.turns] == [(0, (1, 0)), (2, (0, 0))]
    assert found.turns[0].best == (1, 1)
    assert found.turns[0].lost == 1
    assert found.values == [1, 1, 0, 0, 0]


class TwoMoves(Game):
    """Both players make two moves in a row. Player 0 wins with moves 1 and 1, otherwise player 1 does."""

    num_actions, observation_shape, max_plies = 2, (4, 2, 1), 4
    moves: tuple[int, ...] = ()

    @property
    def to_play(self) -> int:
        return len(self.moves) // 2 % 2

    def legal_actions(self):
        return [0, 1] if len(self.moves) < 4 else []

    def play(self, action):
        after = TwoMoves()
        after.moves = (*self.moves, action)
        return after

    def outcome(self):
        return Outcome(0 if self.moves[:2] == (1, 1) else 1) if len(self.moves) == 4 else None

    def observe(self):
        planes = np.zeros(self.observation_shape)
        planes[range(len(self.moves)), self.moves] = 1
        return planes


RACE = "tests.helpers.dice:Race"


def exact_value(position: CompiledGame) -> float:
    """Return the score of player 0 under perfect play, by the whole tree."""
    return _exact_value(position.state.tobytes())


@cache
def _exact_value(state: bytes) -> float:
    position = load_game(RACE).start.with_state(np.frombuffer(state, np.uint8))
    outcome = position.outcome()
    if outcome is not None:
        return (1 + outcome.value(0)) / 2
    chances = chances_of(position)
    if len(chances):
        rolls = np.flatnonzero(chances)
        return sum(float(chances[roll]) * exact_value(position.play(roll)) for roll in rolls.tolist())
    values = [exact_value(position.play(action)) for action in position.legal_actions()]
    return min(values) if position.to_play else max(values)


@pytest.mark.parametrize("moves", ["one throw four step throw three", "one throw one throw one throw four step"])
def test_luck_is_what_a_roll_gives_beside_its_expectation(moves: str):
    found = reviewed(
        RACE,
        moves,
        Exact(2, lambda leaf: (2 * exact_value(leaf) - 1) * (1 - 2 * leaf.to_play)),
        simulations=4096,
    )
    positions = play_named(load_game(RACE).start, moves.split())[0]
    assert found.rolls
    for each in found.rolls:
        expected = exact_value(positions[each.rolls.end]) - exact_value(positions[each.rolls.ply])
        assert each.luck == pytest.approx(expected, abs=0.02)


def test_luck_and_play_add_up_to_the_result():
    even = Constant(2, 0.5, 0, 0.5)
    for seed in range(20):
        spec = load_game(RACE)
        game = random_game(spec.start, np.random.default_rng(seed))
        found = review(Valuer(bot_of(RACE, even)), SURE, GameRecord(game.positions, game.moves), 32)
        result = (1 + game.positions[-1].outcome().value(0)) / 2
        total = found.values[0] + found.luck(0) - found.lost(0) + found.lost(1)
        assert total == pytest.approx(result, abs=1e-9)
        assert found.luck(1) == -found.luck(0)


def test_a_roll_is_nobodys_mistake():
    even = Constant(load_game("backgammon").start.num_actions, 0.5, 0, 0.5)
    found = reviewed("backgammon", "6-1 13/7 8/7 6-6", even, simulations=64)
    assert [each.turn.moves for each in found.turns] == [
        tuple(play_named(load_game("backgammon").start, ["6-1", "13/7", "8/7"])[1][1:])
    ]
    assert [each.rolls.names for each in found.rolls] == [("6-1",), ("6-6",)]


def test_a_game_that_counts_points_is_judged_in_points_if_the_judge_estimates_them():
    assert Valuer(bot_of("backgammon", Constant(151, 0.5, 0, 0.5))).unit == "score"
    assert Valuer(Bot.at_level(load_game("backgammon"))).unit == "points"
    assert Valuer(Bot.at_level(load_game("othello(size=6)"))).unit == "score"


def test_a_loss_within_its_margin_is_not_called_a_mistake_but_named():
    unsure = Scale("score", 1.0, {256: 10.0})
    found = reviewed("tic-tac-toe", "b2 a2", Constant(9, 0.3, 0.4, 0.3), simulations=64, scale=unsure)
    worst = found.largest(1)
    assert kinds(found) == [None, None]
    assert all(not each.is_clear for each in worst)
    if worst:
        assert "±" in amount_lost(worst[0], "score")


def test_the_judge_searches_on_where_a_loss_is_not_clear():
    class Counting(Exact):
        asked = 0

        def __call__(self, leaves):
            Counting.asked += len(leaves.observations)
            return super().__call__(leaves)

    def noise(leaf: CompiledGame) -> float:
        return crc32(leaf.state.tobytes()) % 100 / 100 - 0.5

    def evaluations(scale: Scale) -> int:
        Counting.asked = 0
        reviewed("connect-four", "4 4 4 4 4 1 2 7", Counting(7, noise), 16, scale)
        return Counting.asked

    assert evaluations(Scale("score", 0.1, {16: 1.0})) > 1.25 * evaluations(Scale("score", 0.1, {16: 0.0001}))


def test_the_verdict_names_what_decided():
    found = reviewed("tic-tac-toe", "b2 a2 c3 a1 b3 c1", Exact(9))
    assert verdict_of(found, 1).startswith("The second player has lost ")
    assert verdict_of(found, None) == ""
    perfect = reviewed("tic-tac-toe", "b2 a1", Exact(9))
    assert verdict_of(perfect, 1) == "The turns of the second player were as good as the judge can tell."


def test_a_described_review_is_whole():
    found = reviewed("tic-tac-toe", "b2 a2 c3 a1 b3 c1", Exact(9))
    positions = play_named(load_game("tic-tac-toe").start, ["b2", "a2", "c3", "a1", "b3", "c1"])[0]
    described = describe(found, positions, judge="The judge.", loser=1)
    assert described["unit"] == "score"
    assert [each["moves"] for each in described["turns"]] == [["b2"], ["a2"], ["c3"], ["a1"], ["b3"], ["c1"]]
    assert described["turns"][1]["mistake"] == "blunder"
    assert 1 in described["players"][1]["largest"]
    assert len(described["plies"]) == 7
    assert [each["withoutLuck"] for each in described["plies"]] == [each["value"] for each in described["plies"]]


def test_the_best_turn_is_never_worse_than_the_one_played():
    valuer = Valuer(bot_of("connect-four", Constant(7, 0.4, 0.2, 0.4)))
    game = random_game(load_game("connect-four").start, np.random.default_rng(3))
    turns, _ = turns_of(game.positions, game.moves)
    judging = TreeJudging(valuer, game.positions, game.moves, turns)
    judging.search(range(len(turns)), 24)
    for turn, verdict in zip(turns, judging.verdicts([0.0] * len(turns)), strict=True):
        assert turn.sign() * (verdict.before - verdict.after) >= 0
        assert (verdict.best[: len(turn.moves)] == turn.moves) == (verdict.before == verdict.after)


class Hopeful(Valuer):
    """Finds after every move that was not played that player 0 is ahead."""

    def of_positions(self, positions, simulations):
        return [0.9] * len(positions)


def test_a_better_move_is_worth_what_a_search_of_the_position_after_it_finds():
    valuer = Hopeful(bot_of("connect-four", Constant(7, 0.5, 0, 0.5)))
    positions, moves = play_named(valuer.bot.game.start, ["4"])
    turns, _ = turns_of(positions, moves)
    judging = TreeJudging(valuer, positions, moves, turns)
    judging.search([0], 8)
    judging.confirm([0], 8)
    (verdict,) = judging.verdicts([0.0])
    assert judging.unconfirmed(0, 8) == []
    assert (verdict.before, verdict.after) == pytest.approx((0.9, 0.5))


def test_the_margin_is_that_of_the_least_searched_turn_on_which_a_loss_depends():
    valuer = Valuer(bot_of("connect-four", Constant(7, 0.5, 0, 0.5)))
    positions, moves = play_named(valuer.bot.game.start, ["4", "4", "4"])
    turns, _ = turns_of(positions, moves)
    judging = TreeJudging(valuer, positions, moves, turns)
    scale = Scale("score", 1.0, {256: 0.1, 1024: 0.05})
    assert _margins(judging, scale, [1024, 256, 1024]) == pytest.approx([0.1, 0.1, 0.05])


def test_random_opening_moves_are_nobodys_mistake():
    valuer = Valuer(bot_of("tic-tac-toe", Exact(9)))
    positions, moves = play_named(valuer.bot.game.start, ["b2", "a2", "c3", "a1", "b3", "c1"])
    found = review(valuer, SURE, GameRecord(positions, moves, opening=2), 1024)
    assert found.turns[1].lost == 0  # a2, which loses
    assert found.values[:3] == [found.values[2]] * 3
    total = found.values[0] - found.lost(0) + found.lost(1)
    assert total == pytest.approx(found.values[-1])


def test_a_review_does_not_depend_on_those_before_it():
    judge = find_judge(load_game("tests.helpers.toys:Branching"), simulations=32)
    valuer = Valuer(judge.bot)
    game = random_game(judge.bot.game.start, np.random.default_rng(1))
    record = GameRecord(game.positions, game.moves)
    first, second = (review(valuer, SURE, record, 32) for _ in range(2))
    assert first.values == second.values


def test_a_judge_that_does_not_know_good_play_says_so():
    assert doubt_of(Scale("score", 1.0, {}, random=67.0, bot=68.0)).startswith("It hardly tells")
    assert doubt_of(Scale("score", 1.0, {}, random=67.0, bot=90.0)) == ""
