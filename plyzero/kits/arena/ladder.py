"""Ladders: resumable tournaments. Finished pairs of games are lines of a file, from which schedule and ratings follow.

The schedule goes in rounds. What is played in a round depends on the lines of the rounds before it only, and a line
depends on its players and its number only. So a ladder that was killed plays what is missing, in whatever order, and
ends with the same lines as one that was not.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NotRequired, TypedDict

import numpy as np

from plyzero import files
from plyzero.errors import UserError, shown
from plyzero.kits.arena.ratings import Floats, Games, Ratings, bootstrap, next_pairs, rate
from plyzero.rules.catalog import GameSpec
from plyzero.run.events import read_lines
from plyzero.run.metrics import append_line
from plyzero.volume_errors import UnreadableError

if TYPE_CHECKING:
    from plyzero.kits.arena.entrants import Entrant

DEFAULT_ANCHOR: Final = "mcts:200"
"""The player that has 0 Elo, as on the cards of the bundled bots."""

GAMES_PER_PLAYER: Final = 100
"""Games per player of a ladder by default."""

LADDER: Final = "ladder"
"""Name of the directory of a run's own ladder, in the run."""

LINES, TABLE, CSV, LOCK, MODELS = "games.jsonl", "ladder.json", "ratings.csv", "ladder.lock", "models"
"""Names in the directory of a ladder."""

RESULTS: Final = ("win", "draw", "loss")
"""Results of a game for the player that a pair names first."""


class Pair(NamedTuple):
    """A pair of games: the identities of the players, in their alphabetical order, and its number among theirs."""

    a: str
    b: str
    number: int


class PairResult(NamedTuple):
    """A finished pair of games.

    opening:  the names of the opening's moves and rolls, which both games share.
    results:  each of RESULTS for player a, first of the game in which a moves first.
    forfeits: for each game why it was forfeited by its loser, or None.
    seconds:  time that both games took.
    leads:    points by which player a led at the end of each game that ended with a score.
    """

    opening: list[str]
    results: list[str]
    forfeits: list[str | None]
    seconds: float
    leads: Sequence[float] = ()


PlayPairs = Callable[[Sequence[Pair]], Iterable[tuple[Pair, PairResult]]]
"""Plays pairs of games and yields them, in any order, with their results."""


class Line(NamedTuple):
    """A line of the file: a finished pair of games, and the round in which it was played."""

    pair: Pair
    round: int
    result: PairResult


class About(TypedDict):
    """The fields of ladder.json that never change: the format version and what the ladder is of."""

    version: int
    game: str
    seed: int
    opening_plies: int


class RatedPlayer(TypedDict):
    """A player in ladder.json."""

    player: str
    identity: str
    step: int | None
    elo: float
    low: float
    high: float
    bootstrap_error: float | None
    games: int
    score: float | None
    forfeits: int
    reasons: dict[str, int]
    points: NotRequired[float | None]


class Table(About):
    """The ratings, as ladder.json has them. `side` and `draws` have a `value` with its interval, `low` and `high`."""

    anchor: str
    games: int
    players: list[RatedPlayer]
    side: dict[str, float]
    draws: dict[str, float]
    pairs: list[dict[str, Any]]


class Limits(NamedTuple):
    """When a ladder ends.

    games:  number of games in all, at least 2.
    within: end sooner, once all 95 % intervals of differences to the anchor are at most ± this, in Elo.
    """

    games: int
    within: float | None = None


class Ladder:
    """The lines of a ladder that are between its players, and what follows from them: schedule, ratings, table.

    anchor: the number of the player with 0 Elo.
    lines:  by pair of games.
    """

    def __init__(
        self,
        directory: Path,
        game: GameSpec,
        entrants: Sequence[Entrant],
        *,
        anchor: int,
        seed: int,
        opening_plies: int,
    ) -> None:
        self.directory, self.game, self.entrants, self.anchor = directory, game, entrants, anchor
        self.about: About = {"version": 1, "game": game.identity, "seed": seed, "opening_plies": opening_plies}
        self.lines: dict[Pair, Line] = {}
        self._number = {entrant.identity: number for number, entrant in enumerate(entrants)}

    def play(
        self, play_pairs: PlayPairs, limits: Limits, *, on_progress: Callable[[str], None] = lambda text: None
    ) -> None:
        """Play until the limits are reached. Every finished pair of games is written down at once."""
        while self.play_round(play_pairs, limits, on_progress=on_progress):
            pass

    def play_round(
        self, play_pairs: PlayPairs, limits: Limits, *, on_progress: Callable[[str], None] = lambda text: None
    ) -> bool:
        """Play what is missing of a round, as `play` does; return False if the limits are reached."""
        last = max((line.round for line in self.lines.values()), default=0)
        for current in (last, last + 1):
            missing = [pair for pair in self.plan(current, limits) if pair not in self.lines]
            missing = missing[: limits.games // 2 - len(self.lines)]  # a round may have begun with other players
            if missing:
                break
        else:
            return False
        widest = self.rate(before=current).error.max()
        for pair, result in play_pairs(missing):
            self._write_down(Line(pair, current, result))
            on_progress(
                f"{2 * len(self.lines)} of at most {limits.games} games, "
                f"widest interval at the start of round {current + 1}: ±{widest:.0f} Elo"
            )
        self.write_table()
        return True

    def plan(self, current: int, limits: Limits) -> list[Pair]:
        """Return the pairs of games of a round, given the lines of earlier rounds; none if a limit is reached."""
        earlier = [line.pair for line in self.lines.values() if line.round < current]
        # 32 pairs a round: many for the cores to be busy, few for the ratings to steer
        number = min(32, limits.games // 2 - len(earlier))
        if number <= 0:
            return []
        if limits.within is not None and earlier and self.rate(before=current).error.max() <= limits.within:
            return []
        taken, planned = set(earlier), []
        for first, second in next_pairs(self._counts(before=current), self.anchor, number):
            a, b = sorted((self.entrants[first].identity, self.entrants[second].identity))
            pair = Pair(a, b, 0)
            while pair in taken:
                pair = pair._replace(number=pair.number + 1)
            taken.add(pair)
            planned.append(pair)
        return planned

    def rate(self, *, before: int | None = None) -> Ratings:
        """Return the ratings by all lines, or by those of the rounds before one."""
        return rate(self._counts(before=before), self.anchor)

    def table(self, *, check: bool = False) -> Table:
        """Return the ratings as a JSON object; with `check` also the intervals by the bootstrap."""
        ratings, forfeits, errors = self.rate(), self._forfeits(), None
        pairs = ratings.pairs
        if check and self.lines:
            errors = bootstrap(self._games(), len(self.entrants), self.anchor, rng=np.random.default_rng(0))
        points, games = pairs.points.sum(1), pairs.games.sum(1)
        scores = [round(float(points[i] / games[i]), 4) if games[i] else None for i in range(len(games))]
        table: Table = {
            **self.about,
            "anchor": self.entrants[self.anchor].name,
            "games": 2 * len(self.lines),
            "players": [
                {
                    "player": entrant.name,
                    "identity": entrant.identity,
                    "step": entrant.step,
                    "elo": round(float(ratings.elo[i]), 1),
                    "low": round(float(ratings.elo[i] - ratings.error[i]), 1),
                    "high": round(float(ratings.elo[i] + ratings.error[i]), 1),
                    "bootstrap_error": None if errors is None else round(float(errors[i]), 1),
                    "games": int(games[i]),
                    "score": scores[i],
                    "forfeits": sum(forfeits[i].values()),
                    "reasons": dict(forfeits[i].most_common(5)),
                }
                for i, entrant in enumerate(self.entrants)
            ],
            "side": {key: round(number, 1) for key, number in ratings.side._asdict().items()},
            "draws": {key: round(number, 4) for key, number in ratings.draws._asdict().items()},
            "pairs": [
                {
                    "a": self.entrants[i].name,
                    "b": self.entrants[j].name,
                    "games": int(pairs.games[i, j]),
                    "points": float(pairs.points[i, j]),
                    "expected": round(float(pairs.expected[i, j]), 2),
                    "z": round(float(pairs.z[i, j]), 2),
                    "misfit": bool(pairs.misfits[i, j]),
                }
                for i, j in np.argwhere(np.triu(pairs.games)).tolist()
            ],
        }
        if self.game.start.max_score:
            for player, lead in zip(table["players"], self._points(), strict=True):
                player["points"] = lead
        return table

    def write_table(self, *, check: bool = False) -> Table:
        """Write the table as ladder.json and its players as ratings.csv, and return it; for `check` see `table`."""
        table = self.table(check=check)
        rows = io.StringIO()
        columns = ["player", "identity", "elo", "low", "high", "games", "score", "forfeits"]
        columns += ["points"] if self.game.start.max_score else []
        writer = csv.DictWriter(rows, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table["players"])
        files.write_file(self.directory / CSV, rows.getvalue().encode(), replace=True)
        files.write_file(self.directory / TABLE, (json.dumps(table, indent=1) + "\n").encode(), replace=True)
        return table

    def read_lines(self) -> None:
        """Read the finished pairs of games between the players; other lines are skipped."""
        for fields in read_lines(self.directory / LINES):
            line = _parse_line(fields)
            if line is not None and line.pair.a in self._number and line.pair.b in self._number:
                self.lines.setdefault(line.pair, line)

    def _write_down(self, line: Line) -> None:
        fields = {"round": line.round, **line.pair._asdict(), **line.result._asdict()}
        if not self.game.start.max_score:
            del fields["leads"]
        append_line(self.directory / LINES, fields)
        self.lines[line.pair] = line

    def _games(self, *, before: int | None = None) -> Games:
        """Return the games of the lines; an opening is the same if the players and all moves and rolls are."""
        openings: dict[tuple[str, ...], int] = {}
        rows = []
        for pair in sorted(self.lines):  # nothing depends on the order in which games were finished
            line = self.lines[pair]
            if before is None or line.round < before:
                opening = openings.setdefault((pair.a, pair.b, *line.result.opening), len(openings))
                a, b = self._number[pair.a], self._number[pair.b]
                with_a_first, with_b_first = (RESULTS.index(result) for result in line.result.results)
                rows += [(a, b, with_a_first, opening), (b, a, 2 - with_b_first, opening)]
        first, second, outcome, opening_number = np.array(rows, np.int64).reshape(-1, 4).T
        return Games(first, second, outcome, opening_number)

    def _counts(self, *, before: int | None = None) -> Floats:
        games, players = self._games(before=before), len(self.entrants)
        counts = np.zeros((players, players, 3))
        np.add.at(counts, (games.first, games.second, games.outcome), 1)
        return counts

    def _points(self) -> list[float | None]:
        """Return each player's mean lead in points, None where no game has a score."""
        leads: list[list[float]] = [[] for _ in self.entrants]
        for pair, line in self.lines.items():
            leads[self._number[pair.a]] += line.result.leads
            leads[self._number[pair.b]] += [-lead for lead in line.result.leads]
        return [round(math.fsum(each) / len(each), 3) if each else None for each in leads]

    def _forfeits(self) -> list[Counter[str]]:
        """Return why each player forfeited games, and how many."""
        reasons: list[Counter[str]] = [Counter() for _ in self.entrants]
        for pair in sorted(self.lines):
            result = self.lines[pair].result
            for outcome, reason in zip(result.results, result.forfeits, strict=True):
                if reason is not None:
                    reasons[self._number[pair.a if outcome == "loss" else pair.b]][reason] += 1
        return reasons


@contextmanager
def open_ladder(
    directory: Path,
    game: GameSpec,
    entrants: Sequence[Entrant],
    *,
    anchor: str | None = None,
    seed: int = 0,
    opening_plies: int | None = None,
) -> Iterator[Ladder]:
    """Create or continue the ladder in `directory`, which no other process may use meanwhile.

    anchor:        name of the player with 0 Elo; None = DEFAULT_ANCHOR if it is a player, otherwise the first one.
    opening_plies: number of random moves in an opening; None = a fifth of max_plies, at most 4.

    Raises UserError if the directory holds anything else, or a ladder of another game, seed or opening_plies, and if
    another process uses it.
    """
    plies = min(4, game.start.max_plies // 5) if opening_plies is None else opening_plies
    if not 0 <= plies < game.start.max_plies:
        raise UserError(f"expected --opening-plies from 0 to {game.start.max_plies - 1}, got {plies}")
    number = _find_anchor(anchor, entrants)
    ladder = Ladder(directory, game, entrants, anchor=number, seed=seed, opening_plies=plies)
    _check_directory(directory, ladder.about)
    refusal = f"another process plays the ladder in {directory}; wait for it, or stop it first"
    with files.holding(directory / LOCK, refusal):
        for entrant in entrants:
            entrant.write_network(directory / MODELS)
        _end_last_line(directory / LINES)
        ladder.read_lines()
        ladder.write_table()
        yield ladder


def read_table(directory: Path) -> Table | None:
    """Return the table of the ladder in `directory`, None if there is none. Raises UserError if it is no table."""
    try:
        found: Table = json.loads(files.read_file(directory / TABLE, max_bytes=1 << 26))
        if any(type(player.get("step")) not in (int, NoneType) for player in found["players"]):
            raise TypeError("step")
    except FileNotFoundError:
        return None
    except (UnreadableError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{directory / TABLE} is not the table of a ladder; give --out another directory") from error
    return found


def _find_anchor(name: str | None, entrants: Sequence[Entrant]) -> int:
    names = [entrant.name for entrant in entrants]
    if name is None:
        return names.index(DEFAULT_ANCHOR) if DEFAULT_ANCHOR in names else 0
    if name not in names:
        raise UserError(f"expected --anchor to be one of the players {', '.join(names)}, got {shown(name)}")
    return names.index(name)


def _check_directory(directory: Path, about: About) -> None:
    """Raise UserError if `directory` holds anything else than the ladder `about`, or if it is not empty without one."""
    found = read_table(directory)
    if found is None:
        ours = {LOCK, MODELS, CSV}  # what a ladder leaves that was killed while it was created
        names = os.listdir(directory) if directory.exists() else []
        if any(name not in ours and not name.startswith(files.TEMPORARY) for name in names):
            raise UserError(f"{directory} is not a ladder: it has no {TABLE}; give --out another directory")
    elif wrong := next(((key, value) for key, value in about.items() if found.get(key) != value), None):
        expected = f"{wrong[0]} {shown(found.get(wrong[0]))}, not {shown(wrong[1])}"
        raise UserError(f"{directory} is a ladder of {expected}; give --out another directory")


def _end_last_line(path: Path) -> None:
    """End a line that was cut when its writer was killed, so that the next one is a line of its own."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size and files.read_part(path, size - 1, max_bytes=1) != b"\n":
        files.append(path, b"\n")


def _parse_line(fields: dict[str, Any]) -> Line | None:
    """Return a line of the file, None if it does not hold a finished pair of games."""
    try:
        pair = Pair(fields["a"], fields["b"], fields["number"])
        result = PairResult(**{key: fields[key] for key in PairResult._fields[:-1]}, leads=fields.get("leads", ()))
        valid = (
            isinstance(pair.number, int)
            and isinstance(fields["round"], int)
            and fields["round"] >= 0
            and len(result.results) == len(result.forfeits) == 2
            and all(each in RESULTS for each in result.results)
            and all(reason is None or isinstance(reason, str) for reason in result.forfeits)
            and all(isinstance(name, str) for name in (pair.a, pair.b, *result.opening))
            and all(isinstance(lead, int | float) and math.isfinite(lead) for lead in result.leads)
        )
    except (KeyError, TypeError):
        return None
    return Line(pair, fields["round"], result) if valid else None
