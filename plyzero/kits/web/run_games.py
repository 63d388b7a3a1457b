"""The newest games of a run as JSON, for its dashboard."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable

from plyzero.errors import UserError, plain
from plyzero.files import modified_at
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.user_errors import with_location
from plyzero.run.directory import Run, RunDirectory
from plyzero.run.json_games import games_to_json
from plyzero.run.segments import SegmentError, SegmentName, list_segments, read_segment
from plyzero.volume_errors import explain

Shown = dict[str, object]
"""A game of `plyzero replay export`, without what no chart needs, and the `step` of the last model."""


class NewestGames:
    """Reads the newest sealed segments of a run, every segment once. Safe for several threads.

    The rules are imported at the first call, which may take seconds.
    """

    def __init__(self, run: RunDirectory, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns the time of day, with which the times of files are compared."""
        self._run, self._clock = run, clock
        self._game: GameSpec | None = run.game if isinstance(run, Run) else None
        self._lock = threading.Lock()
        self._sealed: dict[SegmentName, float] = {}
        self._games: dict[SegmentName, list[Shown]] = {}
        self._found = self._answer([], "The newest games are being read.")

    def newest(self, count: int) -> dict[str, object]:
        """Return the newest `count` games, newest first, as a JSON object; the last answer while another call reads.

        games: with `newest_seconds`, how long ago they were stored.
        note:  a sentence about games that are not there, or None.
        """
        if not self._lock.acquire(blocking=False):
            return self._found
        try:
            self._found = self._read(count)
        except UserError as error:  # the rules cannot be imported, or are not those of the run
            self._found = self._answer([], str(error))
        except OSError as error:
            self._found = self._answer([], f"the games cannot be read: {explain(error)}")
        finally:
            self._lock.release()
        return self._found

    def _read(self, count: int) -> dict[str, object]:
        names = list(list_segments(self._run.segments))
        if not names:
            return self._answer([], "No game is sealed yet.")
        game = self._load_game()
        self._sealed = {name: self._sealed.get(name) or modified_at(self._run.segments / str(name)) for name in names}
        games: list[Shown] = []
        used: dict[SegmentName, list[Shown]] = {}
        note = None
        newest_first = heapq.nlargest(count, names, key=lambda name: (self._sealed[name], name))  # each has a game
        for name in newest_first:
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
        found = games_to_json(read_segment(self._run.segments / str(name), game, run_id=self._run.id), game.start)
        fields = "id", "moves", "winner", "end", "opening_plies", "players", "values"
        games = [{**{key: each.get(key) for key in fields}, "step": max(each["models"], default=0)} for each in found]
        return games[::-1]

    def _answer(self, games: list[Shown], note: str | None, sealed: float | None = None) -> dict[str, object]:
        """Return the JSON object, as docs/formats.md lists it; `sealed`: when the newest of the games were stored."""
        age = None if sealed is None else max(0.0, round(self._clock() - sealed, 1))
        return {"version": 1, "games": games, "newest_seconds": age, "note": note and plain(note, 400)}
