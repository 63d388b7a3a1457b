"""Recorded games as JSON objects, which any program can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from plyzero.rules.chance import roll_as_recorded
from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.rules.notation import action_names
from plyzero.run.records import TRUNCATED, Games

VERSION: Final = 1
"""Format version of the objects; docs/formats.md lists the fields."""

WINNERS: Final = {DRAW: "draw", ONGOING: None, 0: "first", 1: "second"}
"""Outcome code -> the field `winner`."""


def games_to_json(games: Games, start: Game) -> Iterator[dict[str, Any]]:
    """Yield a JSON object per game; `start` is the initial position of the game."""
    first = 0
    for game in games.games:
        positions = games.positions[first : first + game["positions"]]
        first += int(game["positions"])
        position, moves = roll_as_recorded(start, game, 0)
        for ply, action in enumerate(positions["action"].tolist(), 1):
            position, rolls = roll_as_recorded(position.play_unchecked(action), game, ply)
            moves += [action, *rolls]
        yield {
            "version": VERSION,
            "id": f"{game['id']:016x}",
            "moves": action_names(start, tuple(moves)),
            "winner": WINNERS[int(game["winner"])],
            "end": "truncated" if game["end"] == TRUNCATED else "rule",
            "opening_plies": int(game["opening_plies"]),
            "players": positions["to_play"].tolist(),
            "values": [round(float(value), 4) for value in positions["root_value"]],
            "full": positions["full"].tolist(),
            "models": positions["model_step"].tolist(),
        }
