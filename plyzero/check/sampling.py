"""The sample of positions on which laws about many positions are checked: near the start, in random games, repeated."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.check.laws import evenly_spaced, observation_bytes, some_setups
from plyzero.rules import random_game
from plyzero.rules.chance import MAX_ROLLS, is_chance, possible_moves
from plyzero.rules.game import Game
from plyzero.rules.random_game import PlayedGame

POSITIONS: Final = 2500  # positions in random games
NEAR_POSITIONS: Final = 500  # positions next to the initial one, in breadth-first order
NEAR_SETUPS: Final = 3  # sampled set-ups that these come from, besides the first and the last ones
RANDOM_PER_SHUFFLING: Final = 10  # random games, or their positions, per game that moves to and fro
MIN_SHUFFLING: Final = 4  # games that move to and fro
SHUFFLING_SEED: Final = 1  # part of the seed of such a game, besides 0 and the game's number
MAX_OPENING: Final = 12  # first plies of such a game, some of them random
RECENT: Final = 8  # last positions; a move to and fro tries to come back to one of them
WINDOW_ACTIONS: Final = 4  # consecutive actions of a game that are played in all orders
WINDOW_POSITIONS: Final = 400  # positions that these may reach
MAX_WINDOWS: Final = 40  # games for which it is done
PARENTS: Final = 300  # positions of games whose children are compared, and from which a few pairs of moves are played
MAX_CHILDREN: Final = 8  # moves of a parent
ENOUGH_RESULTS: Final = 30  # random games whose results are compared
MAX_FOR_RESULTS: Final = 10_000  # positions of those of them that are played for their results only
RESULTS_SEED: Final = 3  # part of the seed of such a game
RANDOM_PER_SOUGHT: Final = 8  # positions of random games per position of games that look for rare events
SOUGHT_SEED: Final = 2  # part of the seed of such a game
MAX_LOOKED_AT: Final = 8  # moves of which such a game plays the one whose result is rarest
"""The size of a sample."""

ENDS: Final = (("end", None), ("end", 0), ("end", 1))
"""The results of games among the events that are counted."""


class Extent(NamedTuple):
    """The amount of play: whole games until they have the positions, or a number of games.

    positions: no game is begun once there are so many.
    games:     largest number of games.
    """

    positions: float = POSITIONS
    games: float = math.inf

    def part(self, divisor: int) -> Extent:
        """Return one of `divisor` parts, of one game at least."""
        return Extent(self.positions / divisor, max(1, self.games / divisor))


def extent_of(games: int | None) -> Extent:
    """Return the extent of a number of games; None stands for POSITIONS positions."""
    return Extent() if games is None else Extent(math.inf, games)


def positions_near(start: Game, count: int = NEAR_POSITIONS) -> list[SamplePosition]:
    """Return `count` or a few more positions next to `start` at which a player moves, in breadth-first order.

    Transpositions are listed repeatedly.
    """
    found = [SamplePosition((), start)]
    for moves, position in found:
        following = possible_moves(position)
        if position.awaits_setup:
            following = some_setups(position.setups, NEAR_SETUPS)
        for move in following:
            after = position.play_unchecked(move)
            if after.outcome() is None:
                found.append(SamplePosition((*moves, move), after))
        if len(found) >= count:
            break
    return [each for each in found if not is_chance(each.position)]


def positions_within_turns(games: Sequence[PlayedGame]) -> list[SamplePosition]:
    """Return positions that look alike but were reached after different numbers of moves of the same turn.

    If a player moves several times in a row, an observation may omit how much of the turn is left, but in random games
    hardly any board comes twice. So a few actions of each game are played in all orders, from its start and from a turn
    in its middle.
    """
    found: list[SamplePosition] = []
    for number, game in enumerate(evenly_spaced(games, max_count=MAX_WINDOWS)):
        movers = {ply: game.positions[ply].to_play for ply in game.decisions}
        turns = [*movers][:1]  # the first ply of each turn
        turns += [ply for before, ply in itertools.pairwise(movers) if movers[before] != movers[ply]]
        if len(turns) == len(movers):  # no player moves twice in a row
            continue
        is_from_start = number % 2 == 0
        first = turns[0] if is_from_start else turns[len(turns) // 2]
        actions = dict.fromkeys(game.moves[ply] for ply in movers if first <= ply < len(game.moves))
        found += _alike_within_turns(game, first, [*actions][:WINDOW_ACTIONS])
    return found


def _alike_within_turns(game: PlayedGame, first: int, actions: Sequence[int]) -> list[SamplePosition]:
    """Return positions after `actions`, in any order from ply `first` on, that differ only in the turn's moves."""
    reached: list[tuple[tuple[int, ...], Game, int | None, int]] = [
        (tuple(game.moves[:first]), game.positions[first], None, 0)
    ]
    alike: dict[bytes, dict[int, SamplePosition]] = defaultdict(dict)
    for moves, position, mover, moved in itertools.islice(reached, WINDOW_POSITIONS):  # moved: so often in this turn
        following = possible_moves(position)
        if is_chance(position):
            following = following[:1]
        else:
            moved = moved + 1 if position.to_play == mover else 0
            mover, group = position.to_play, alike[observation_bytes(position)]
            if moved in group:
                continue
            group[moved] = SamplePosition(moves, position)
            following = [action for action in actions if action in following]
        for move in following:
            after = position.play_unchecked(move)
            if after.outcome() is None:
                reached.append(((*moves, move), after, mover, moved))
    return [each for group in alike.values() if len(group) > 1 for each in group.values()]


def relatives(games: Sequence[PlayedGame], parents: int) -> list[SamplePosition]:
    """Return positions that few moves reach from each of `parents` positions of games, spread evenly.

    A counter of plies makes all positions of a game different, but positions after the same number of moves from one
    parent share it. Children look alike if observe() omits what the last move has changed, and children of children
    after the same reply if it omits what the move before has.
    """
    found: list[SamplePosition] = []
    places = [(game, ply) for game in games for ply in game.decisions]
    for game, ply in evenly_spaced(places, max_count=max(1, parents)):
        parent = SamplePosition(tuple(game.moves[:ply]), game.positions[ply])
        actions = evenly_spaced(possible_moves(parent.position), max_count=MAX_CHILDREN)
        children = [child for action in actions for child in after_move(parent, action)]
        found += children
        replies = possible_moves(children[0].position) if children else []
        for reply in dict.fromkeys([*replies[:1], *replies[-1:]]):
            found += [each for child in children for each in after_move(child, reply)]
    return found


def after_move(parent: SamplePosition, action: int) -> Iterator[SamplePosition]:
    """Yield the position after `action` and the first of each possible rolls; nothing if it cannot be played."""
    if action not in possible_moves(parent.position):
        return
    moves, position = (*parent.moves, action), parent.position.play_unchecked(action)
    for _ in range(MAX_ROLLS):
        if not is_chance(position):
            break
        roll = possible_moves(position)[0]
        moves, position = (*moves, roll), position.play_unchecked(roll)
    if position.outcome() is None and not is_chance(position):
        yield SamplePosition(moves, position)


def play_games(
    start: Game, choose: Callable[[np.random.Generator, Sequence[Game]], int], extent: Extent, seeds: Sequence[int]
) -> list[PlayedGame]:
    """Return games in which `choose` returns each move; `seeds` and the number of a game seed its generator."""
    played: list[PlayedGame] = []
    while len(played) < extent.games and sum(len(each.positions) for each in played) < extent.positions:
        rng = np.random.default_rng([*seeds, len(played)])
        played.append(play_game(start, functools.partial(choose, rng)))
    return played


def play_game(start: Game, choose: Callable[[Sequence[Game]], int]) -> PlayedGame:
    """Play a game from `start`, which is cut off after max_plies.

    choose: returns the next action or roll, given the positions so far.
    Raises RulesFailedError if a rule raises, and after MAX_ROLLS rolls in a row.
    """
    game = PlayedGame([], [start])
    try:
        random_game.play_on(game, choose)
    except (Exception, SystemExit) as error:
        raise RulesFailedError(error, game.moves) from error
    return game


def random_move(rng: np.random.Generator, positions: Sequence[Game]) -> int:
    """Return a random legal action, or roll, of the last position."""
    return random_game.random_move(positions[-1], rng)


def shuffling_move(rng: np.random.Generator, positions: Sequence[Game]) -> int:
    """Return a move to and fro, after some random moves.

    It leads to the position whose observation is nearest to one of the last RECENT with the same player to move, and
    ends the game only if every move does. A game of such moves comes to limits that random games do not reach: a
    position that is repeated, many plies without progress, max_plies.
    """
    if is_chance(positions[-1]):
        return random_move(rng, positions)
    legal = [int(each) for each in rng.permutation(evenly_spaced(positions[-1].legal_actions()))]
    chosen, nearest = legal[0], math.inf
    if len(positions) <= MAX_OPENING and rng.random() < 1 / 2:
        return chosen
    last = [each for each in positions[-RECENT:] if not is_chance(each)]
    recent = [(each.to_play, np.asarray(each.observe(), np.float32)) for each in last]
    for action in legal:
        after = positions[-1].play_unchecked(action)
        if after.outcome() is None and not is_chance(after):
            numbers = np.asarray(after.observe(), np.float32)
            changed = [np.count_nonzero(each != numbers) for player, each in recent if player == after.to_play]
            if (distance := float(min(changed, default=numbers.size))) < nearest:
                chosen, nearest = action, distance
        if nearest == 0:
            break
    return chosen


def seeking_move(events: Counter[Hashable], rng: np.random.Generator, positions: Sequence[Game]) -> int:
    """Return the move, of up to MAX_LOOKED_AT, whose result is the rarest so far; `events` counts the results.

    A result is by how much the number of things on each plane changes, or how the game ends, which is avoided unless
    it is the rarest of a win of each player and a draw. So these games have more captures, promotions, passes and
    unusual ends than random ones.
    """
    position = positions[-1]
    if is_chance(position):
        return random_move(rng, positions)
    before = things(position)
    legal = [int(each) for each in rng.permutation(position.legal_actions())[:MAX_LOOKED_AT]]
    results = {action: event(before, position, position.play_unchecked(action)) for action in legal}
    rarest_end = min(events[end] for end in ENDS)

    def rarity(action: int) -> float:
        count = events[results[action]]
        return math.inf if results[action] in ENDS and count > rarest_end else count

    chosen = min(legal, key=rarity)
    events[results[chosen]] += 1
    return chosen


def event(before: NDArray[np.intp], position: Game, after: Game) -> Hashable:
    """Return what has happened between two positions, in a form that can be counted."""
    if (outcome := after.outcome()) is not None:
        return "end", outcome.winner
    if is_chance(after):
        return "chance"
    return after.to_play == position.to_play, tuple((things(after) - before).tolist())


def things(position: Game) -> NDArray[np.intp]:
    """Return the number of squares that are not 0 on each plane of an observation."""
    return np.count_nonzero(np.asarray(position.observe()), axis=(1, 2))


class RulesFailedError(Exception):
    """A rule has raised `error` after `moves`."""

    def __init__(self, error: BaseException, moves: Sequence[int]) -> None:
        super().__init__(error, moves)
        self.error = error
        self.moves = moves


class SamplePosition(NamedTuple):
    """A position and the actions that lead to it from the initial position."""

    moves: tuple[int, ...]
    position: Game


@dataclass
class Sample:
    """Games and positions for the laws that compare positions, and for statistics; made when they are first needed.

    start:   the initial position.
    extent:  how much is played at random.
    divisor: so many times fewer positions next to the start, and children, than of a whole sample.
    """

    start: Game
    extent: Extent
    divisor: int = 1

    @functools.cached_property
    def games(self) -> list[PlayedGame]:
        """The random games. Raises RulesFailedError if a rule raises, as the other properties do."""
        return play_games(self.start, random_move, self.extent, [0])

    @functools.cached_property
    def results(self) -> list[PlayedGame]:
        """The random games and, if long ones are too few for conclusions from their results, some more."""
        if self.extent.games < math.inf or len(self.games) >= ENOUGH_RESULTS:
            return self.games
        more = Extent(MAX_FOR_RESULTS, ENOUGH_RESULTS - len(self.games))
        return self.games + play_games(self.start, random_move, more, [0, RESULTS_SEED])

    @functools.cached_property
    def shuffled(self) -> list[PlayedGame]:
        """Games whose moves go to and fro."""
        part = self.extent.part(RANDOM_PER_SHUFFLING)
        part = part._replace(games=max(part.games, MIN_SHUFFLING))
        return play_games(self.start, shuffling_move, part, [0, SHUFFLING_SEED])

    @functools.cached_property
    def sought(self) -> list[PlayedGame]:
        """Games whose moves look for rare events."""
        choose = functools.partial(seeking_move, Counter())
        return play_games(self.start, choose, self.extent.part(RANDOM_PER_SOUGHT), [0, SOUGHT_SEED])

    @functools.cached_property
    def positions(self) -> list[SamplePosition]:
        """Unfinished positions: those next to the start, of the games, their children, and some alike within a turn."""
        games = [*self.games, *self.shuffled, *self.sought]
        far = [SamplePosition(tuple(game.moves[:ply]), game.positions[ply]) for game in games for ply in game.decisions]
        parents = PARENTS // self.divisor
        return [
            *positions_near(self.start, NEAR_POSITIONS // self.divisor),
            *far,
            *positions_within_turns(games),
            *relatives(games, parents),
        ]

    def part(self, divisor: int) -> Sample:
        """Return a sample with the first games of this one only, and `divisor` times fewer other positions."""
        return Sample(self.start, self.extent.part(divisor), divisor)
