"""The turns of a game: moves of one player in a row, judged as one decision, and the rolls between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plyzero.rules.chance import is_chance
from plyzero.rules.game import Game


@dataclass(frozen=True)
class Turn:
    """Consecutive moves of a player, without a roll between them.

    ply:       number of moves and rolls before it.
    by:        the player, 0 or 1.
    positions: the positions in which the player chose, one for each of `moves`.
    moves:     the actions.
    after:     the position after the last move: where chance or the opponent moves, or the end.
    """

    ply: int
    by: int
    positions: tuple[Game, ...]
    moves: tuple[int, ...]
    after: Game

    @property
    def end(self) -> int:
        """The number of moves and rolls before `after`."""
        return self.ply + len(self.moves)

    @property
    def has_choice(self) -> bool:
        """Whether another move was legal."""
        return any(len(position.legal_actions()) > 1 for position in self.positions)

    def sign(self) -> int:
        """Return 1 if a large value is good for the player, -1 if it is bad; values are those of player 0."""
        return 1 if self.by == 0 else -1


@dataclass(frozen=True)
class Rolls:
    """Consecutive rolls: the number of moves and rolls before them, their names, and that before what follows."""

    ply: int
    names: tuple[str, ...]

    @property
    def end(self) -> int:
        """The number of moves and rolls before the position that the rolls lead to."""
        return self.ply + len(self.names)


def turns_of(positions: Sequence[Game], moves: Sequence[int]) -> tuple[list[Turn], list[Rolls]]:
    """Return the turns and the rolls of a game. `moves`, rolls among them, are the moves between its `positions`.

    A set-up is no luck, so it is left out of the rolls.
    """
    turns: list[Turn] = []
    rolls: list[Rolls] = []
    ply = 1 if positions[0].awaits_setup else 0
    while ply < len(moves):
        first = ply
        if is_chance(positions[ply]):
            while ply < len(moves) and is_chance(positions[ply]):
                ply += 1
            names = (positions[i].roll_name(moves[i]) for i in range(first, ply))
            rolls.append(Rolls(first, tuple(names)))
        else:
            by = int(positions[ply].to_play)
            while ply < len(moves) and not is_chance(positions[ply]) and positions[ply].to_play == by:
                ply += 1
            turns.append(Turn(first, by, tuple(positions[first:ply]), tuple(moves[first:ply]), positions[ply]))
    return turns, rolls
