"""The newest games of a run as JSON, for its dashboard."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from typing import Final

from plyzero.errors import UserError, plain
from plyzero.files import modified_at
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.user_errors import with_location
from plyzero.run.directory import Run, RunDirectory
from plyzero.run.json_games import games_to_json
from plyzero.run.segments import SegmentError, SegmentName, list_segments, read_segment
from plyzero.volume_errors import explain

Shown = dict[str, object]
"""The fields of a game of `plyzero replay export` that charts need, and the `step` of the last model."""

SHOWN_FIELDS: Final = ("id", "moves", "winner", "end", "opening_plies", "players", "values")


CANDIDATES: Final = 500
"""Number of segments among which those with the newest games are found by their times."""


class NewestGames:
    """Reads the newest sealed segments of a run, every segment once. Safe for several threads.

    The rules are imported at the first call, which may take seconds.
    """

    def __init__(self, run: RunDirectory, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns the time of day; the times of files are compared with it."""
        self._run, self._clock = run, clock
        self._game: GameSpec | None = run.game if isinstance(run, Run) else None
        self._lock = threading.Lock()
        self._sealed: dict[SegmentName, float] = {}
        self._games: dict[SegmentName, list[Shown]] = {}
        self._found = self._answer([], "The newest games are being read.")

    def newest(self, count: int) -> dict[str, object]:
        """Return the newest `count` games as a JSON object; while another call reads, the last answer.

        games:          newest first.
        newest_seconds: how long ago the newest of them were stored.
        note:           a sentence about games that cannot be shown, or None.
        """
        if not self._lock.acquire(blocking=False):
            return self._found
        try:
            self._found = self._read(count)
        except UserError as error:  # the rules cannot be imported, or differ from the run's
            self._found = self._answer([], str(error))
        except OSError as error:
            self._found = self._answer([], f"the games cannot be read: {explain(error)}")
        finally:
            self._lock.release()
        return self._found

    def _read(self, count: int) -> dict[str, object]:
        # The time of a file is a call of the volume: it is asked for of a few segments, those of the newest models.
        names = heapq.nlargest(CANDIDATES, list_segments(self._run.segments), key=_newness)
        if not names:
            return self._answer([], "No game is sealed yet.")
        game = self._load_game()
        self._sealed = {name: self._sealed.get(name) or modified_at(self._run.segments / str(name)) for name in names}
        games: list[Shown] = []
        used: dict[SegmentName, list[Shown]] = {}
        note = None
        # Each segment has a game, so `count` segments are enough.
        for name in heapq.nlargest(count, names, key=lambda name: (self._sealed[name], name)):
            if name not in self._games:
                try:
                    self._games[name] = self._read_segment(name, game)
                except FileNotFoundError:  # removed by the trainer since the listing
                    continue
                except SegmentError as error:
                    note = str(error)
                    continue
                except (Exception, SystemExit) as error:  # a person's own rules, or records that do not follow them
                    note = f"{name} cannot be shown: {with_location(error)}"
                    continue
            used[name] = self._games[name]
            games += used[name]
            if len(games) >= count:
                break
        self._games = used
        sealed = max((self._sealed[name] for name in used), default=None)
        return self._answer(games[:count], note, sealed)

    def _load_game(self) -> GameSpec:
        if self._game is None:
            loaded = load_game(self._run.game_name)
            if loaded.identity != self._run.identity:
                raise UserError(f"the games are of {self._run.identity}, the rules are now {loaded.identity}")
            self._game = loaded
        return self._game

    def _read_segment(self, name: SegmentName, game: GameSpec) -> list[Shown]:
        """Return the games of a segment, newest first."""
        segment = read_segment(self._run.segments / str(name), game, run_id=self._run.id)
        games: list[Shown] = []
        for each in games_to_json(segment, game.start):
            shown = {key: each.get(key) for key in SHOWN_FIELDS}
            games.append({**shown, "step": max(each["models"], default=0)})
        return games[::-1]

    def _answer(self, games: list[Shown], note: str | None, sealed: float | None = None) -> dict[str, object]:
        """Return the JSON object that docs/formats.md describes. `sealed`: when the newest games were stored."""
        age = None if sealed is None else max(0.0, round(self._clock() - sealed, 1))
        return {"version": 1, "games": games, "newest_seconds": age, "note": note and plain(note, 400)}


def _newness(name: SegmentName) -> tuple[int, int, SegmentName]:
    """Return a key that grows with the time at which a segment was sealed, as far as its name shows it."""
    return name.last_step, name.sequence, name
