"""Teachers: players whose games are imitated, and their games as lines of JSON."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from plyzero.rules.game import Game, outcome_code
from plyzero.rules.notation import action_names
from plyzero.run.json_games import WINNERS
from tests.helpers.toys import move_values

CENTRE_CORNERS_EDGES = (4, 0, 2, 6, 8, 1, 3, 5, 7)

_values: dict[Any, int] = {}


def perfect(position: Game) -> int:
    """A move of tic-tac-toe that keeps the value of the position; among equals the centre, then a corner."""
    values = move_values(position, _values)
    return max(CENTRE_CORNERS_EDGES, key=lambda square: values.get(square, -2))


def game_lines(start: Game, choose: Callable[[Game], int], count: int, *, opening: int, seed: int = 0) -> list[str]:
    """Games in which `choose` plays both sides after 0 to `opening` random moves, all numbers equally often."""
    rng = np.random.default_rng(seed)
    lines: list[str] = []
    while len(lines) < count:
        plies = len(lines) % (opening + 1)
        position = start
        moves: list[int] = []
        while position.outcome() is None:
            is_opening = len(moves) < plies
            moves.append(int(rng.choice(position.legal_actions())) if is_opening else choose(position))
            position = position.play(moves[-1])
        if len(moves) > plies:
            game = {"moves": action_names(start, tuple(moves)), "winner": WINNERS[outcome_code(position.outcome())]}
            lines.append(json.dumps({**game, "opening_plies": plies}))
    return lines


def encoded(lines: list[str]) -> list[bytes]:
    return [line.encode() for line in lines]
