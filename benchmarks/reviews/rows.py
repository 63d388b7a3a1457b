"""Reviews beside each other, beside another judge, and beside the result."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.reviews.games import Side, game_of, mixed_game, play, random_moves, to_the_end
from benchmarks.reviews.judges import Reviewer, mean, progress, share
from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.review.reviewing import JudgedTurn, Review
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game


def random_row(game: GameSpec, games: int, simulations: int, seed: int) -> None:
    """Print how many mistakes of 60 random moves of backgammon are named, and the accuracy."""
    reviewer = Reviewer(game)
    named: list[int] = []
    accuracies: list[float] = []
    for number in range(games):
        judged = reviewer.review(random_moves(game, "bot:3", 60, (seed, number)), simulations)
        named.append(sum(each.kind is not None for each in judged.turns if each.turn.by == 0))
        accuracies.append(judged.accuracy(0) or 0.0)
        progress(number + 1, games)
    print(f"{game.name}, {simulations} simulations, {games} games, 60 random moves against bot:3")
    print(f"  named mistakes of the random side: {min(named)} to {max(named)}, median {np.median(named):.0f}")
    low, high = min(accuracies), max(accuracies)
    print(f"  its accuracy: mean {np.mean(accuracies):.1f} % ({low:.1f} to {high:.1f})")
    print(f"  random play, by the scale: {reviewer.scale.random:.1f} %")


def agreement_row(
    game: GameSpec, games: int, simulations: int, other: int, seed: int, *, rollouts: bool = False
) -> None:
    """Print in how many games two reviews name two of the same three turns as the largest losses."""
    reviewer = Reviewer(game, rollouts=1) if rollouts else Reviewer(game)
    second = Reviewer(game, rollouts=2, scale=reviewer.scale) if rollouts else reviewer
    same: list[int] = []
    for number in range(games):
        record = random_moves(game, "bot:3", 60, (seed, number))
        judged = reviewer.review(record, simulations), second.review(record, other)
        first, again = ({each.turn.ply: each for each in one.largest(0)} for one in judged)
        same.append(len(first.keys() & again.keys()))
        print(f"game {number}: {same[-1]} the same, {_losses(first)} / {_losses(again)}", file=sys.stderr)
        progress(number + 1, games)
    judge = "pure MCTS, other random numbers" if rollouts else "bundled bot"
    print(f"{game.name}, {judge}, {simulations} against {other} simulations, 60 random moves against bot:3")
    two = sum(each >= 2 for each in same)
    print(f"  two of the three largest losses are the same: {share(two, games)}; all three: {same.count(3)}")


def _losses(turns: dict[int, JudgedTurn]) -> str:
    return ", ".join(f"{ply}: {each.lost:.3f} +- {each.margin:.3f}" for ply, each in turns.items())


def luck_row(game: GameSpec, games: int, simulations: int, seed: int) -> None:
    """Print whether luck and play add up to the result, and the mean of luck in games of bots."""
    reviewer = Reviewer(game)
    errors: list[float] = []
    of_first: list[float] = []  # per roll, the mean of each game
    of_roller: list[float] = []
    all_luck: list[float] = []
    for number in range(games):
        rng = np.random.default_rng((seed, number))
        bot = reviewer.valuer.bot.with_simulations(16)
        record = play(game.start, (Side(bot), Side(bot)), rng, is_over=to_the_end)
        judged = reviewer.review(record, simulations)
        outcome = record.positions[-1].outcome()
        assert outcome is not None
        result = reviewer.valuer.of_outcome(outcome)
        errors.append(judged.values[0] + judged.luck(0) - judged.lost(0) + judged.lost(1) - result)
        luck = [each.luck for each in judged.rolls]
        movers = [_mover(record, each.rolls.ply) for each in judged.rolls]
        all_luck += luck
        of_first.append(float(np.mean(luck)))
        of_roller.append(float(np.mean([each if by == 0 else -each for each, by in zip(luck, movers, strict=True)])))
        progress(number + 1, games)
    print(f"{game.name}, {simulations} simulations, {games} games of the judge, {len(all_luck)} rolls, {judged.unit}")
    print(f"  start + luck + play - result: largest {np.abs(errors).max():.2e}")
    print(f"  luck per roll, mean over games, of player 0: {mean(of_first)}")
    print(f"  of the player who rolls: {mean(of_roller)}; size {np.abs(all_luck).mean():.4f}")


def _mover(record: GameRecord, ply: int) -> int:
    """Return who rolls: the player of the position after the rolls, or of the last one before them."""
    return int(record.positions[ply].to_play)


def coverage_row(game: GameSpec, games: int, simulations: int, other: int, seed: int) -> None:
    """Print the share of losses that matter whose margin covers the loss by a much longer search."""
    reviewer = Reviewer(game)
    covered: list[bool] = []
    rows: list[tuple[float, float, float]] = []
    for number in range(games):
        record = mixed_game(game, (seed, number))
        few, many = (reviewer.review(record, each) for each in (simulations, other))
        for before, after in zip(few.turns, many.turns, strict=True):
            matters = before.lost >= reviewer.scale.bounds[-1][0] / 2 and before.margin > 0
            if matters and before.turn.has_choice:
                covered.append(abs(before.lost - after.lost) <= before.margin)
                rows.append((before.lost, before.margin, after.lost))
                if not covered[-1]:
                    text = f"{before.lost:.3f} +- {before.margin:.3f}, then {after.lost:.3f} +- {after.margin:.3f}"
                    print(f"{game.name} game {number} ply {before.turn.ply}: {text}", file=sys.stderr)
        progress(number + 1, games)
    scale = reviewer.scale
    print(f"{game.name}, {simulations} against {other} simulations, {games} games")
    print(f"  scale: spread {scale.spread:.3f}, margins {dict(scale.margins)}")
    print(f"  losses whose margin covers the longer search: {share(sum(covered), len(covered))}")
    if rows:
        lost, margin, after = np.array(rows).T
        print(f"  mean margin {margin.mean():.3f}, mean change {np.abs(lost - after).mean():.3f}")
        print(f"  mean loss {lost.mean():.3f}, by the longer search {after.mean():.3f}")


def mistakes_row(game: GameSpec, games: int, simulations: int, other: int, seed: int, bad: int = 11) -> None:
    """Print whether two numbers of simulations of pure MCTS call the same turns of a bad player mistakes."""
    reviewer = Reviewer(game, rollouts=1)
    both = open_to_one = opposed = 0
    for number in range(games):
        record = _bad_game(game, reviewer.valuer.bot, bad, (seed, number))
        few, many = (reviewer.review(record, each) for each in (simulations, other))
        print(f"accuracy {[few.accuracy(0), many.accuracy(0)]}", file=sys.stderr)
        for one, two in zip(few.turns, many.turns, strict=True):
            named = [each for each in (one, two) if each.kind in ("mistake", "blunder")]
            if not named:
                continue
            apart = abs(one.lost - two.lost) > one.margin + two.margin
            both += len(named) == 2
            open_to_one += len(named) == 1 and not apart
            opposed += apart
            text = " / ".join(f"{each.kind} {each.lost:.3f} +- {each.margin:.3f}" for each in (one, two))
            print(f"game {number} ply {one.turn.ply} by {one.turn.by}: {text}", file=sys.stderr)
        progress(number + 1, games)
    print(
        f"{game.name}, pure MCTS, {simulations} against {other} simulations, {games} games, {bad} bad moves of player 0"
    )
    print(f"  mistakes or blunders of both: {both}; of one, within the margins of the other: {open_to_one}")
    print(f"  losses apart by more than both margins: {opposed}")


class Bad:
    """Plays the move that a search likes least, `count` times, then the best one."""

    def __init__(self, bot: Bot, count: int) -> None:
        self.bot, self.left = bot, count

    def choose(self, position: Game) -> int:
        (result,) = self.bot.search([position])
        if self.left:
            self.left -= 1
            return int(result.actions[np.argmin(np.where(np.isnan(result.q), np.inf, result.q))])
        return result.best_action()


def _bad_game(game: GameSpec, bot: Bot, bad: int, seed: tuple[int, int]) -> GameRecord:
    rng = np.random.default_rng(seed)
    quick = Bot.pure_mcts(game, rng, simulations=100)
    player = Bad(quick, bad)
    positions, moves = [game.start], list[int]()
    while positions[-1].outcome() is None and (player.left or len(moves) < 2 * bad + 6):
        position = positions[-1]
        moves.append(player.choose(position) if position.to_play == 0 else quick.choose(position))
        positions.append(position.play_unchecked(moves[-1]))
    return GameRecord(positions, moves)


PAIRS = ("random", "bot:3"), ("bot:4", "bot:7"), ("bot", "bot")


def gnubg_row(game: GameSpec, games: int, simulations: int, seed: int) -> None:
    """Print the correlation of losses of turns of backgammon with those by gnubg's network."""
    from benchmarks.reviews.gnubg import equity_lost

    reviewer = Reviewer(game)
    pairs: list[tuple[int, float, float]] = []
    for number in range(games):
        kind = number % len(PAIRS)
        judged: Review = reviewer.review(game_of(game, PAIRS[kind], (seed, number)), simulations)
        for each in judged.turns:
            if each.turn.has_choice:
                pairs.append((kind, each.lost, equity_lost(each.turn)))
                if abs(pairs[-1][1] - pairs[-1][2]) > 0.3:
                    text = f"{each.lost:.3f} +- {each.margin:.3f}, gnubg {pairs[-1][2]:.3f}"
                    print(f"game {number} ply {each.turn.ply}: {text}", file=sys.stderr)
        progress(number + 1, games)
    kinds, own, others = np.array(pairs).T
    print(
        f"{game.name}, {simulations} simulations, {games} games, {len(own)} turns with a choice, beside gnubg-nn, 0-ply"
    )
    for name, chosen in (("all", kinds >= 0), *((" - ".join(each), kinds == i) for i, each in enumerate(PAIRS))):
        x, y = own[chosen], others[chosen]
        pearson, spearman = np.corrcoef(x, y)[0, 1], np.corrcoef(_ranks(x), _ranks(y))[0, 1]
        means = f"mean loss {x.mean():.4f}, by gnubg {y.mean():.4f}"
        print(f"  {name}: Pearson {pearson:.3f}, Spearman {spearman:.3f}; {means}; {len(x)} turns")


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value, of equal ones the mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]
