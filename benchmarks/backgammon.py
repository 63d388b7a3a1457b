"""A player against GNU Backgammon's network without search, or against Pubeval: games won and points per game.

python -m benchmarks.backgammon RUN --games 1000 --simulations 64
python -m benchmarks.backgammon RUN --games 1000 --simulations 64 --pubeval

PLAYER is a run, an ONNX file, mcts:N or random. Both opponents are in the package gnubg-nn (pip install gnubg-nn, for
this benchmark alone). GNU Backgammon plays the move after which it likes the position best (0-ply), without the cube.
Two games share their dice, with sides swapped, and the 95 % intervals are those of the means of such pairs.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import gnubg_nn
import numpy as np

from plyzero.games.backgammon import BAR, HOME, OFF
from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.play.scores import wilson_interval
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import is_chance, played, rolled
from plyzero.rules.compiled_game import CompiledGame

PROGRESS_SECONDS = 5.0

Board = tuple[tuple[int, ...], tuple[int, ...]]
"""The checkers on points 1 to 24 and on the bar, as their player numbers them: of the opponent, then of the player."""

Choice = Callable[[CompiledGame], Board]
"""An opponent: the board after its turn in a position after a roll."""


def main() -> None:
    """Play, compare turns, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player", metavar="PLAYER")
    parser.add_argument("--games", type=int, default=1000, help="an even number; 0 = none")
    parser.add_argument("--positions", type=int, default=1000, help="at which turns are compared; 0 = none")
    parser.add_argument("--simulations", type=int, default=64, help="of a network; 0 = raw")
    parser.add_argument("--game", default="backgammon", help="the game that the player was trained for")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pubeval", action="store_true", help="as the opponent")
    parser.add_argument("--all-rolls", action="store_true", help="search.all_rolls for the player")
    given = parser.parse_args()
    if given.games % 2:
        parser.error(f"expected an even number of games, got {given.games}")

    game, choice = load_game(given.game), pubeval_choice if given.pubeval else gnubg_choice
    rng, search = np.random.default_rng(given.seed), {"all_rolls": True} if given.all_rolls else {}
    player = find_player(given.player, game, rng, simulations=given.simulations, search=search)
    print(f"{player.name} against {'Pubeval' if given.pubeval else 'gnubg-nn, 0-ply'}")
    if given.games:
        print(report(play_games(player, game.start, choice, games=given.games, seed=given.seed)))
    if given.positions:
        asked = positions_of_gnubg(game.start, given.positions, seed=given.seed)
        answers = zip(boards_after(player, asked), map(choice, asked), strict=True)
        same = sum(board == expected for board, expected in answers)
        low, high = wilson_interval(same / len(asked), len(asked))
        print(f"same turn in {same} of {len(asked)} positions: {same / len(asked):.1%}, 95 % {low:.1%} to {high:.1%}")


# --- games ---


class Result(NamedTuple):
    """The result of a game for the player: +1 or -1, and the same with 2 for a gammon and 3 for a backgammon."""

    wins: int
    points: int


def play_games(player: Player, start: CompiledGame, choice: Choice, *, games: int, seed: int) -> list[Result]:
    """Return the results of `games` games against the opponent that makes `choice`, played in parallel.

    Games 2i and 2i + 1 share their dice; the player begins the first of them.
    """
    dice = [np.random.default_rng((seed, i // 2)) for i in range(games)]
    positions = [rolled(start, rng) for rng in dice]
    playing = list(range(games))
    moves = 0
    progress = Progress("games are over", games)
    while playing:
        to_move = []
        for i in playing:
            while positions[i].outcome() is None and positions[i].to_play != i % 2:
                for action in turn_of(choice, positions[i]):
                    positions[i] = played(positions[i], action, dice[i])
            if positions[i].outcome() is None:
                to_move.append(i)
        if to_move:
            for i, action in zip(to_move, player.choose_all([positions[i] for i in to_move]), strict=True):
                positions[i] = played(positions[i], action, dice[i])
        playing = [i for i in to_move if positions[i].outcome() is None]
        moves += len(to_move)
        progress.show(games - len(playing), f" after {moves:,} moves of {player.name}")
    return [result_of(position, i % 2) for i, position in enumerate(positions)]


def result_of(position: CompiledGame, side: int) -> Result:
    """Return the result of a finished game for the player of a side."""
    winner = position.outcome().winner
    loser = position.record["checkers"][1 - winner]
    if loser[OFF]:
        points = 1
    elif loser[BAR - HOME :].any():  # a checker in the winner's home or on the bar: a backgammon
        points = 3
    else:
        points = 2
    sign = 1 if winner == side else -1
    return Result(sign, sign * points)


def report(results: Sequence[Result]) -> str:
    """Return the means of the results and their intervals, from the means of the pairs that share dice."""
    lines = [f"won {sum(each.wins > 0 for each in results)} of {len(results)} games"]
    pairs = np.array(results, float).reshape(-1, 2, 2).mean(axis=1)
    half = 1.96 * pairs.std(axis=0, ddof=1) / math.sqrt(len(pairs)) if len(pairs) > 1 else np.full(2, np.inf)
    for what, mean, width in zip(("wins only", "gammons 2, backgammons 3"), pairs.mean(axis=0), half, strict=True):
        lines.append(f"points per game, {what}: {mean:+.3f}, 95 % {mean - width:+.3f} to {mean + width:+.3f}")
    return "\n".join(lines)


# --- the same turns ---


def positions_of_gnubg(start: CompiledGame, count: int, *, seed: int) -> list[CompiledGame]:
    """Return positions after a roll, of games of gnubg against itself, in which turns can end in several ways."""
    found: list[CompiledGame] = []
    rng, progress = np.random.default_rng((seed, 0, 0)), Progress("positions are found", count)
    while len(found) < count:
        position = rolled(start, rng)
        while position.outcome() is None:
            if len(turns(position)) > 1:
                found.append(position)
            for action in turn_of(gnubg_choice, position):
                position = played(position, action, rng)
            progress.show(len(found))
    return found[:count]


def boards_after(player: Player, starts: Sequence[CompiledGame]) -> list[Board]:
    """Return the boards after the player's turns."""
    positions, progress = list(starts), Progress("turns are over", len(starts))
    open_ = list(range(len(starts)))
    while open_:
        for i, action in zip(open_, player.choose_all([positions[i] for i in open_]), strict=True):
            positions[i] = positions[i].play(action)
        open_ = [i for i in open_ if not has_ended(positions[i])]
        progress.show(len(starts) - len(open_))
    return [board_of(after, before.to_play) for after, before in zip(positions, starts, strict=True)]


# --- the opponents ---


def turn_of(choice: Choice, position: CompiledGame) -> tuple[int, ...]:
    """Return the actions of the turn that `choice` makes in a position after a roll."""
    found = turns(position)
    return found[choice(position)] if len(found) > 1 else next(iter(found.values()))


def gnubg_choice(position: CompiledGame) -> Board:
    """Return the board after gnubg's turn in a position after a roll, in which something can be played."""
    _, key = gnubg_nn.best_move(board_of(position, position.to_play), *dice_of(position), b=1)
    own, other = gnubg_nn.board_from_position_key(key)  # the opponent is on roll there
    return other, own


def pubeval_choice(position: CompiledGame) -> Board:
    """Return the board after Pubeval's turn, as `gnubg_choice` does."""
    other, own = (list(side) for side in board_of(position, position.to_play))
    moves = gnubg_nn.pub_best_move([other, own], *dice_of(position))
    for source, target in zip(moves[::2], moves[1::2], strict=True):
        own[source] -= 1
        if target >= 0:  # else it is borne off
            own[target] += 1
            if other[23 - target]:
                other[23 - target] -= 1
                other[24] += 1
    return tuple(other), tuple(own)


def dice_of(position: CompiledGame) -> tuple[int, int]:
    """Return the two dice of a roll of which nothing has been played, the larger one first."""
    dice = [number for number in range(1, 7) for _ in range(position.record["dice"][number])]
    return dice[-1], dice[0]


def board_of(position: CompiledGame, player: int) -> Board:
    """Return the board as gnubg has it for `player`."""
    checkers = position.record["checkers"][:, 1:]
    return tuple(checkers[1 - player].tolist()), tuple(checkers[player].tolist())


def turns(start: CompiledGame) -> dict[Board, tuple[int, ...]]:
    """Return the boards in which the turn can end, with actions that lead there."""
    ended: dict[Board, tuple[int, ...]] = {}
    seen, open_ = {start.key()}, [(start, ())]
    for position, actions in open_:
        for action in position.legal_actions():
            after = position.play_unchecked(action)
            if after.key() not in seen:
                seen.add(after.key())
                if has_ended(after):
                    ended[board_of(after, start.to_play)] = (*actions, action)
                else:
                    open_.append((after, (*actions, action)))
    return ended


def has_ended(position: CompiledGame) -> bool:
    """Return whether a turn is over, or the game."""
    return position.outcome() is not None or is_chance(position)


class Progress:
    """Prints how many of `count` are done, at most every PROGRESS_SECONDS."""

    def __init__(self, what: str, count: int) -> None:
        self.what = what
        self.count = count
        self.last = time.monotonic()

    def show(self, done: int, note: str = "") -> None:
        if time.monotonic() - self.last > PROGRESS_SECONDS:
            self.last = time.monotonic()
            print(f"{done:,} of {self.count:,} {self.what}{note}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
