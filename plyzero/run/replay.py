"""Recorded games: as arrays for analysis in Python, and compared with what the rules of the game say now."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from plyzero.errors import UserError
from plyzero.rules.chance import roll_as_recorded
from plyzero.rules.game import Game, outcome_code
from plyzero.run.directory import open_run, to_path
from plyzero.run.records import TRUNCATED, Games
from plyzero.run.segments import SegmentError, list_segments, read_segment

log = logging.getLogger(__name__)


def read_games(path: Path | str) -> Games:
    """Return all sealed games of a run directory, or of one of its segments, as the arrays of `plyzero.run.records`.

    The games of a worker are in the order in which they ended; those of an older model come before those of a newer
    one. A segment of a run that cannot be read is left out, with a warning.

    Raises UserError if `path` is neither, if it is a segment that cannot be read, or if there are no games.
    """
    path = to_path(str(path))
    is_run = path.is_dir()
    run = open_run(path if is_run else path.absolute().parent.parent)
    if not is_run:
        try:
            return read_segment(path, run.game)
        except (SegmentError, OSError) as error:
            raise UserError(f"cannot read the games in {path}: {error}") from error
    parts = []
    for name in sorted(list_segments(run.segments), key=lambda each: (each.last_step, each)):
        try:
            parts.append(read_segment(run.segments / str(name), run.game))
        except FileNotFoundError:
            continue  # removed by the trainer since the listing
        except SegmentError as error:
            log.warning("left out: %s", error)
    if not parts:
        raise UserError(f"{path} has no sealed games yet")
    return Games.concatenate(parts)


def find_disagreement(games: Games, start: Game) -> str | None:
    """Return where the rules differ from what `games` record, in one sentence, or None if they agree everywhere.

    start: the initial position. Players, legal actions, observations and winners are compared, in the order played.
    """
    row, move = 0, 0
    for game in games.games:
        name = f"game {game['id']:016x}"
        try:
            position = roll_as_recorded(start, game, 0)[0]
            for ply in range(1, int(game["positions"]) + 1):
                record, observation = games.positions[row], games.observations[row]
                legal = games.moves["action"][move : move + record["num_legal"]].tolist()
                compared = {
                    "the player to move": (int(record["to_play"]), position.to_play),
                    "the legal actions": (legal, [int(each) for each in position.legal_actions()]),
                }
                for what, (recorded, now) in compared.items():
                    if recorded != now:
                        return f"{name}, move {ply}: {what}: recorded {recorded}, by the rules {now}"
                if not np.allclose(observation, np.asarray(position.observe()), rtol=1e-3, atol=1e-5):
                    return f"{name}, move {ply}: the observation is not the one recorded"
                position = roll_as_recorded(position.play_unchecked(int(record["action"])), game, ply)[0]
                row, move = row + 1, move + int(record["num_legal"])
            outcome = position.outcome()
        except Exception as error:  # rules raise errors of any type
            return f"{name}: the rules raise {type(error).__name__}: {error}"
        code = outcome_code(outcome)
        if code != game["winner"] or (outcome is None) != (game["end"] == TRUNCATED):
            return f"{name}: the winner: recorded {int(game['winner'])}, by the rules {code}"
    return None
