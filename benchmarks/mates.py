"""Measure whether players find forced wins in 1, 2 and 3 of their own moves, and play the shortest.

python -m benchmarks.mates chess --players mcts:800 MODEL.onnx --simulations 800 --count 100

The positions are from games of its own, each from another game and none twice. In these games each player has a share
of moves that leave the opponent the fewest replies; the other moves are random, so wins are overlooked. An exhaustive
search proves the number of moves, answers for the defender with the longest resistance, and judges the player's moves.
A player who cannot win in time is given up. The same seed gives the same positions.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import without_setup
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import ONGOING

GAME_PLIES = 240
"""Plies after which a game of its own is given up."""

NEAR_END = 10
"""Positions are taken from so many plies before the end of a game."""

FREE_SHARE = 0.7
"""Largest share of the moves of a player that leave the fewest replies; each player's share is sampled below it."""

TOO_MANY = 300_000
"""Moves that the exhaustive search may try before a position is left out."""

SPARE_MOVES = 10
"""A player who needs so many moves more than the shortest win is given up."""

Solve = Callable[[NDArray[np.uint8], int, int, NDArray[np.int64]], bool]


class Mate(NamedTuple):
    """A position in which the player to move has a forced win in exactly `moves` of their own moves."""

    position: CompiledGame
    moves: int


def main() -> None:
    """Print three shares for each player and each number of moves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", help="a compiled game without dice")
    parser.add_argument("--players", nargs="+", required=True, help="as in plyzero match")
    parser.add_argument("--simulations", type=int, default=800, help="of networks")
    parser.add_argument("--algorithm", choices=("gumbel", "puct"), help="of the search of networks")
    parser.add_argument("--solver-nodes", type=int, help="search.solver_nodes of networks; 0 = the tree alone")
    parser.add_argument("--count", type=int, default=100, help="positions for each number of moves")
    parser.add_argument("--moves", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    game = load_game(given.game)
    began = time.process_time()
    exact = Exact(without_setup(game.start))
    mates = find_mates(exact, counts=dict.fromkeys(given.moves, given.count), seed=given.seed)
    found = ", ".join(f"{sum(each.moves == n for each in mates)} in {n}" for n in given.moves)
    print(f"{game.name}: forced wins {found}, made in {time.process_time() - began:.0f} s", flush=True)
    changes = {"algorithm": given.algorithm, "solver_nodes": given.solver_nodes}
    search = {name: value for name, value in changes.items() if value is not None}
    for name in given.players:
        rng = np.random.default_rng(given.seed)
        player = find_player(name, game, rng, simulations=given.simulations, search=search)
        for n in given.moves:
            began = time.process_time()
            shares = measure(exact, player, [each for each in mates if each.moves == n])
            print(f"{name}, in {n}: {shares}, {time.process_time() - began:.0f} s", flush=True)


class Shares(NamedTuple):
    """The results at some positions: the moves that keep the shortest win, the wins, and the shortest of them."""

    keeps: list[bool]
    wins: list[bool]
    in_time: list[bool]

    def __str__(self) -> str:
        keeps, wins, in_time = (f"{np.mean(each):.0%}" for each in self)
        return f"{keeps} of the first moves keep the shortest win, {wins} win, {in_time} as fast as possible"


def measure(exact: "Exact", player: Player, mates: Sequence[Mate]) -> Shares:
    """Let `player` win the positions `mates` against the longest resistance."""
    positions = [each.position for each in mates]
    keeps, made = [False] * len(mates), [0] * len(mates)
    open_games = [*range(len(mates))]
    while open_games:
        actions = player.choose_all([positions[i] for i in open_games])
        for i, action in zip(tuple(open_games), actions, strict=True):
            winner = mates[i].position.to_play
            made[i] += 1
            left = mates[i].moves - made[i]
            after = cast(CompiledGame, positions[i].play_unchecked(action))
            if made[i] == 1:
                keeps[i] = exact.wins(after, winner, 2 * left)
            positions[i], is_won = exact.resist(after, winner, max(left, 1))
            if is_won or positions[i].outcome() or made[i] == mates[i].moves + SPARE_MOVES:
                made[i] = made[i] if is_won else 0
                open_games.remove(i)
    in_time = [0 < made[i] <= mates[i].moves for i in range(len(mates))]
    return Shares(keeps, [each > 0 for each in made], in_time)


class Exact:
    """Exhaustive search for forced wins of one game, in compiled code."""

    def __init__(self, start: CompiledGame) -> None:
        """Raises SystemExit for a game that has dice or is not compiled."""
        if not isinstance(start, CompiledGame) or start.num_chances:
            raise SystemExit("expected a compiled game without dice")
        self.start = start
        self._solve = solver(start)
        self._play = player_of_games(start)

    def wins(self, position: CompiledGame, winner: int, plies: int, *, most: int = 1 << 40) -> bool | None:
        """Return whether `winner` can force a win within `plies`; None if that takes more than `most` moves."""
        left = np.array([most])
        found = self._solve(position.state, winner, plies, left)
        return found if found or left[0] > 0 else None

    def distance(self, position: CompiledGame, most_moves: int) -> int:
        """Return in how many of their own moves the player to move wins; 0 = not within `most_moves`, or unknown."""
        for moves in range(1, most_moves + 1):
            found = self.wins(position, position.to_play, 2 * moves - 1, most=TOO_MANY)
            if found is None:
                return 0
            if found:
                return moves
        return 0

    def resist(self, position: CompiledGame, winner: int, moves: int) -> tuple[CompiledGame, bool]:
        """Return the position after the defender's best reply, and whether `winner` has won.

        The best reply is one after which there is no win in `moves` moves or fewer, otherwise the longest.
        """
        outcome = position.outcome()
        if outcome or position.to_play == winner:
            return position, bool(outcome and outcome.winner == winner)
        replies = [cast(CompiledGame, position.play_unchecked(each)) for each in position.legal_actions()]
        for within in range(1, moves + 1):
            longer = [each for each in replies if not self.wins(each, winner, 2 * within - 1)]
            if not longer:
                break
            replies = longer
        return replies[0], False

    def games(self, seed: int) -> Iterator[list[CompiledGame]]:
        """Yield the positions of games that never end to come, without their last one."""
        states = np.zeros((GAME_PLIES + 1, len(self.start.state)), np.uint8)
        number = 0
        while True:
            plies = self._play(states, self.start.state, seed * 1_000_003 + number)
            yield [self.start.with_state(state) for state in states[:plies]]
            number += 1


def find_mates(exact: Exact, *, counts: dict[int, int], seed: int) -> list[Mate]:
    """Return so many positions for each number of moves, in the order in which they are found."""
    mates, wanted, seen = list[Mate](), dict(counts), set[str]()
    for positions in exact.games(seed):
        if not any(wanted.values()):
            return mates
        rarest = max(wanted, key=lambda moves: (wanted[moves], moves))
        for position in positions[-NEAR_END:]:
            moves = exact.distance(position, rarest)
            if moves == rarest and str(position) not in seen:
                seen.add(str(position))
                mates.append(Mate(position, moves))
                wanted[moves] -= 1
                break
    return mates


def solver(start: CompiledGame) -> Solve:
    """Return a compiled function of a state, the winner, the plies, and the moves that may still be tried, `[1]`.

    It returns whether the winner can force a win within these plies; False if no moves are left.
    """
    play, outcome, legal, *_ = start.rules
    actions, to_play = start.num_actions, player_byte(start)

    @numba.njit
    def wins(state: NDArray[np.uint8], winner: int, plies: int, left: NDArray[np.int64]) -> bool:
        code = outcome(state)
        if code != ONGOING or plies == 0 or left[0] <= 0:
            return code == winner
        attacks = state[to_play] == winner
        mask = np.zeros(actions, np.bool_)
        legal(state, mask)
        for action in range(actions):
            if mask[action]:
                left[0] -= 1
                after = state.copy()
                play(after, action)
                if wins(after, winner, plies - 1, left) == attacks:
                    return attacks
        return not attacks

    wins(start.state, 0, 1, np.array([100]))
    return wins


def player_of_games(start: CompiledGame) -> Callable[[NDArray[np.uint8], NDArray[np.uint8], int], int]:
    """Return a compiled function that plays a game from a seed into states, `[P, S]`, and returns its length."""
    play, outcome, legal, *_ = start.rules
    actions, to_play = start.num_actions, player_byte(start)

    @numba.njit
    def play_game(states: NDArray[np.uint8], first: NDArray[np.uint8], seed: int) -> int:
        np.random.seed(seed)
        shares = np.random.random(2) * FREE_SHARE
        states[0] = first
        mask, replies = np.zeros(actions, np.bool_), np.zeros(actions, np.bool_)
        for ply in range(len(states) - 1):
            if outcome(states[ply]) != ONGOING:
                return ply
            mask[:] = False
            legal(states[ply], mask)
            is_free = np.random.random() >= shares[states[ply, to_play]]
            best, fewest = 0, np.inf
            for action in range(actions):
                if mask[action]:
                    rank = np.random.random()
                    if not is_free:
                        after = states[ply].copy()
                        play(after, action)
                        replies[:] = False
                        legal(after, replies)
                        rank += replies.sum() if outcome(after) == ONGOING else actions
                    if rank < fewest:
                        best, fewest = action, rank
            states[ply + 1] = states[ply]
            play(states[ply + 1], best)
        return len(states) - 1

    return play_game


def player_byte(start: CompiledGame) -> int:
    """Return the byte of a state that holds the player to move."""
    assert start.State.fields is not None
    return int(start.State.fields["to_play"][1])


if __name__ == "__main__":
    main()
