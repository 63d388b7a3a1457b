"""Recorded games as JSON objects, which any program can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from plyzero.rules.chance import replay_game
from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.rules.notation import action_names
from plyzero.run.records import TRUNCATED, Games

VERSION: Final = 1
"""Format version of the objects; docs/formats.md lists the fields."""

WINNERS: Final = {DRAW: "draw", ONGOING: None, 0: "first", 1: "second"}
"""Outcome code -> the field `winner`."""


def games_to_json(games: Games, start: Game) -> Iterator[dict[str, Any]]:
    """Yield a JSON object per game; `start` is the initial position of the game."""
    for one in games:
        (game,), positions = one.games, one.positions
        moves: list[int] = []
        actions = positions["action"].tolist()
        for action, (_, rolls) in zip([*actions, None], replay_game(start, game, actions), strict=True):
            moves += rolls if action is None else [*rolls, action]
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
