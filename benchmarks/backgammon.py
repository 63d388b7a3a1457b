"""GNU Backgammon's network without search, and Pubeval, as players; and how often a player makes the same turn as one.

plyzero match RUN benchmarks.backgammon:Gnubg --game backgammon --games 1000
plyzero match RUN benchmarks.backgammon:Pubeval --game backgammon --games 1000
python -m benchmarks.backgammon RUN --positions 1000 --simulations 64

RUN is any player of `plyzero match`. Both opponents are in the package gnubg-nn (pip install gnubg-nn, for this
benchmark alone). GNU Backgammon plays the move after which it likes the position best (0-ply), without the cube.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Hashable, Sequence

import gnubg_nn
import numpy as np

from plyzero.play.agents import Agent
from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.play.scores import wilson_interval
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import is_chance, played, rolled
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

PROGRESS_SECONDS = 5.0

Board = tuple[tuple[int, ...], tuple[int, ...]]
"""The checkers on points 1 to 24 and on the bar, as their player numbers them: of the opponent, then of the player."""

Choice = Callable[[CompiledGame], Board]
"""An opponent: the board after its turn in a position after a roll."""


def main() -> None:
    """Compare turns, and print the share of those that are the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player", metavar="PLAYER")
    parser.add_argument("--positions", type=int, default=1000, help="at which turns are compared")
    parser.add_argument("--simulations", type=int, default=64, help="of a network; 0 = raw")
    parser.add_argument("--game", default="backgammon", help="the game that the player was trained for")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pubeval", action="store_true", help="as the opponent")
    given = parser.parse_args()

    game, choice = load_game(given.game), pubeval_choice if given.pubeval else gnubg_choice
    player = find_player(given.player, game, np.random.default_rng(given.seed), simulations=given.simulations)
    asked = positions_of_gnubg(game.start, given.positions, seed=given.seed)
    answers = zip(boards_after(player, asked), map(choice, asked), strict=True)
    same = sum(board == expected for board, expected in answers)
    low, high = wilson_interval(same / len(asked), len(asked))
    name = "Pubeval" if given.pubeval else "gnubg-nn, 0-ply"
    share = f"{same / len(asked):.1%}, 95 % {low:.1%} to {high:.1%}"
    print(f"{player.name} makes the same turn as {name} in {same} of {len(asked)} positions: {share}")


class Planned(Agent):
    """A player that chooses a whole turn after a roll, and then plays its moves one by one."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._planned: dict[Hashable, int] = {}  # key of a position of a turn -> its next move; games go on in parallel

    def choose(self, position: Game) -> int:
        assert isinstance(position, CompiledGame)
        if position.key() not in self._planned:
            after = position
            for action in turn_of(self._choice, position):
                self._planned[after.key()] = action
                after = after.play_unchecked(action)
        return self._planned[position.key()]


class Gnubg(Planned):
    """GNU Backgammon's network without search."""

    def __init__(self) -> None:
        super().__init__(gnubg_choice)


class Pubeval(Planned):
    """Pubeval, a linear evaluation by Gerald Tesauro."""

    def __init__(self) -> None:
        super().__init__(pubeval_choice)


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
