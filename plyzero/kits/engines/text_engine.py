"""A player as lines of text: `plyzero text`, the other side of players named text:COMMAND.

```
new     a new game begins
MOVE    this move, or roll, was played
go      print your move; it counts as played
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from plyzero.errors import UserError
from plyzero.kits.engines.programs.protocols import GO, NEW
from plyzero.play.player import Player
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, parse_move


def play_by_lines(game: GameSpec, player: Player, lines: Iterable[str], write: Callable[[str], None]) -> None:
    """Read moves and print moves of `player`, to the end of the input. Raises UserError for a line that is no move."""
    position, moves = game.start, list[int]()
    for number, line in enumerate(lines, 1):
        word = line.strip()
        if word == NEW:
            position, moves = game.start, []
            player.begin_game()
        elif word == GO:
            if position.outcome() is not None or is_chance(position):
                why = "the game is over" if position.outcome() is not None else "a roll is due"
                raise UserError(f"line {number}: {why}, so no player is to move")
            moves.append(player.choose_in_game(position, moves))
            write(position.action_name(moves[-1]))
            position = position.play_unchecked(moves[-1])
        elif word:
            try:
                moves.append(parse_move(position, word))
            except ValueError as error:
                raise UserError(f"line {number}: {error}; or new, or go") from error
            position = position.play_unchecked(moves[-1])
