"""Random games as records, such as a worker makes of the games that it plays."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import Game, outcome_code
from plyzero.rules.random_game import PlayedGame, random_game
from plyzero.run.records import BY_RULE, GAME, MOVE, POSITION, TRUNCATED, Games, score_of
from plyzero.search.tree import GUMBEL, UNPROVEN
from tests.helpers.toys import solve


def random_games(start: Game, count: int) -> list[PlayedGame]:
    return [random_game(start, np.random.default_rng(seed)) for seed in range(count)]


def recorded(played: Sequence[PlayedGame], *, proven: bool = False) -> Games:
    """Return records of games; with `proven`, every position is searched and its value proven."""
    games: list[tuple] = []
    positions: list[NDArray] = []
    moves: list[tuple] = []
    observations: list[NDArray] = []
    for game in played:
        outcome = game.positions[-1].outcome()
        end = TRUNCATED if outcome is None else BY_RULE
        score = score_of(outcome, game.positions[0])
        games.append((0, len(game.moves), outcome_code(outcome), end, 0, 0, score))
        for position, action in zip(game.positions, game.moves, strict=False):
            legal = sorted(position.legal_actions())
            record = np.zeros((), POSITION)
            record["action"] = action
            record["to_play"] = position.to_play
            record["num_legal"] = len(legal)
            record["search"] = GUMBEL
            record["proven"] = solve(position) if proven else UNPROVEN
            positions.append(record)
            moves.extend((each, 0, 0, np.nan) for each in legal)
            observations.append(np.asarray(position.observe(), position.observation_dtype))
    return Games(np.array(games, GAME), np.array(positions), np.array(moves, MOVE), np.array(observations))
