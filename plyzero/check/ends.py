"""First moves, and the ends of random games by their kind: what a person can judge of a game that breaks no law.

A rule that is wrong everywhere in the same way makes another game, which is right in itself. A person may see that it
is not the one that was meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import numpy as np

from plyzero.check.sampling import Extent, RulesFailedError, play_games, random_move
from plyzero.check.wording import name_of, shortened
from plyzero.errors import UserError
from plyzero.rules.board import Board
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, possible_moves, roll_dice
from plyzero.rules.game import Game, Outcome, board_of
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import PlayedGame
from plyzero.rules.user_errors import with_location

MAX_OUTCOMES: Final = 6  # outcomes with different points that make kinds of their own
MAX_KINDS: Final = 6  # kinds of ends that are shown, the commonest first
MAX_TALL_KINDS: Final = 3  # the same, if their texts take more lines than MAX_LINES
MAX_LINES: Final = 60
SHOWN_MOVES: Final = 2  # last moves of an example
GAP: Final = 4  # blanks between two texts side by side


class End(NamedTuple):
    """A kind of end of random games.

    how:     the result, and what else is peculiar to this kind, each as a few words.
    example: the shortest game that ended so.
    games:   how many did.
    of:      number of all games.
    """

    how: tuple[str, ...]
    example: PlayedGame
    games: int
    of: int

    @property
    def caption(self) -> list[str]:
        """The kind, the last moves of the example, its length and the number of such games, each as a short line."""
        plies = self.example.plies
        length = "1 ply" if plies == 1 else f"{plies} plies"
        return [*self.how, *last_moves(self.example), f"{length}; {self.games} of {self.of} games"]


def random_games(game: GameSpec, positions: int) -> list[PlayedGame]:
    """Return random games of `game`, always the same ones, which together have so many positions or a few more.

    Raises UserError if a rule raises an error.
    """
    try:
        return play_games(game.start, random_move, Extent(positions), [0])
    except RulesFailedError as failed:
        raise UserError(
            f"{game.name} cannot be played: {with_location(failed.error)}; plyzero check tests its rules"
        ) from failed


def ends_of(played: Sequence[PlayedGame]) -> list[End]:
    """Return the kinds of ends of `played`, the commonest first.

    Points make kinds of their own unless they are too many. Then an end has only those of its example.
    """
    outcomes = {game.positions[-1].outcome() for game in played}
    has_many = len(outcomes) > MAX_OUTCOMES
    kinds: defaultdict[tuple[str, ...], list[PlayedGame]] = defaultdict(list)
    for game in played:
        kinds[how_it_ended(game, with_points=not has_many)].append(game)
    found = []
    for (result, *others), games in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        example = min(games, key=lambda game: game.plies)
        points = points_of(example.positions[-1].outcome()) if has_many else ""
        here = f"{result}, here{points}" if points else result
        found.append(End((here, *others), example, len(games), len(played)))
    return found


def how_it_ended(game: PlayedGame, *, with_points: bool = True) -> tuple[str, ...]:
    """Return the result of a game, and what else a person sees of its end, each as a few words."""
    outcome = game.positions[-1].outcome()
    result = "not over"
    if outcome:
        result = "drawn" if outcome.winner is None else f"player {outcome.winner} won"
    points = points_of(outcome) if with_points else ""
    return result + points, *peculiarities(game, outcome)


def points_of(outcome: Outcome | None) -> str:
    """Return by how many points a player has won, "" without points."""
    return f" by {outcome.score:g}" if outcome and outcome.score else ""


def peculiarities(game: PlayedGame, outcome: Outcome | None) -> Iterator[str]:
    """Yield what a person sees of the end of a game besides its result."""
    movers = [game.positions[ply].to_play for ply in game.decisions[: game.plies]]
    if movers and outcome and outcome.winner == 1 - movers[-1]:
        yield "the last mover lost"
    board, before = (board_of(position) for position in (game.positions[-1], game.positions[-2:][0]))
    if board and all(cell.piece for cell in board.cells if cell.shape != "dot"):
        yield "the board is full"
    elif len(movers) == game.positions[0].max_plies:
        yield "after max_plies"
    for player in sorted(owners(before) - owners(board)):
        yield f"player {player} has lost all pieces"


def owners(board: Board | None) -> set[str]:
    """Return the players who have pieces on a board."""
    return {cell.piece.partition(":")[0] for cell in board.cells} & {"0", "1"} if board else set()


def last_moves(game: PlayedGame) -> list[str]:
    """Return who made each of the last moves and rolls, and its name."""
    steps = list(zip(game.positions, game.moves, strict=False))[-SHOWN_MOVES:]
    found = []
    for position, move in steps:
        who = f"player {position.to_play}"
        if is_chance(position):
            who = "set-up" if position.awaits_setup else "roll"
        found.append(f"{who}: {name_of(position, move)}")
    return found


def longest_end(played: Sequence[PlayedGame]) -> str:
    """Return how the longest game ended, in a few words."""
    return ", ".join(how_it_ended(max(played, key=lambda game: game.plies)))


def first_moves(start: Game) -> Iterator[str]:
    """Yield the number and the names of the first rolls, if chance begins, and those of the first moves."""
    position, rolls = roll_dice(start, np.random.default_rng(0))
    names = action_names(start, tuple(rolls))
    if start.awaits_setup:
        yield f"Set-ups ({start.setups}): numbers 0 to {start.setups - 1}"
        names[0] = f"set-up {rolls[0]}"
    elif rolls:
        yield f"First rolls {_numbered(start)}"
    after = f"after {' '.join(names)} " if rolls else ""
    yield f"First moves {after}{_numbered(position)}"


def _numbered(position: Game) -> str:
    """Return the number and the names of what can be played next."""
    names = [name_of(position, move) for move in possible_moves(position)]
    return f"({len(names)}): {shortened(names) or 'none'}"


def shown_ends(ends: Sequence[End], width: int) -> Iterator[str]:
    """Yield lines of the final position of each end, with its caption below, as many side by side as `width` takes.

    Only the first kinds are shown, and fewer if their lines are too many.
    """
    blocks = [[*str(end.example.positions[-1]).splitlines(), *end.caption] for end in ends[:MAX_KINDS]]
    if len(list(laid_out(blocks, width))) > MAX_LINES:
        blocks = blocks[:MAX_TALL_KINDS]
    yield from laid_out(blocks, width)
    if hidden := len(ends) - len(blocks):
        yield f"\nRarer kinds of ends that are not shown: {hidden}."


def laid_out(blocks: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of texts, as many side by side as `width` takes."""
    row: list[Sequence[str]] = []
    for block in blocks:
        if row and width_of([*row, block]) > width:
            yield from beside(row)
            yield ""
            row = []
        row.append(block)
    yield from beside(row)


def width_of(blocks: Sequence[Sequence[str]]) -> int:
    """Return the number of columns that texts side by side take."""
    return sum(max(map(len, block)) + GAP for block in blocks) - GAP


def beside(blocks: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of texts side by side."""
    widths = [max(map(len, block)) + GAP for block in blocks]
    for lines in zip_longest(*blocks, fillvalue=""):
        padded = (line.ljust(width) for line, width in zip(lines, widths, strict=True))
        yield "".join(padded).rstrip()
