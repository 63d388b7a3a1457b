"""Recorded games in a form that any program reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.run.records import TRUNCATED, Games

VERSION = 1


def as_objects(games: Games, start: Game) -> Iterator[dict[str, Any]]:
    """Yield a JSON object per game; docs/formats.md lists its fields. `start` is the initial position."""
    at = 0
    for game in games.games:
        positions = games.positions[at : at + game["positions"]]
        at += int(game["positions"])
        moves, position = [], start
        for record in positions:
            moves.append(position.action_name(int(record["action"])))
            position = position.play_unchecked(int(record["action"]))
        yield {
            "version": VERSION,
            "id": f"{game['id']:016x}",
            "moves": moves,
            "winner": {DRAW: "draw", ONGOING: None, 0: "first", 1: "second"}[int(game["winner"])],
            "end": "truncated" if game["end"] == TRUNCATED else "rule",
            "opening_plies": int(game["opening_plies"]),
            "values": [round(float(value), 4) for value in positions["root_value"]],
            "full": positions["full"].tolist(),
            "models": positions["model_step"].tolist(),
        }
