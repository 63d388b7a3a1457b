"""The accounts of a store: how many games were read, wait to be read or were removed, and which segments are missing.

Everything is computed from the names of files and from what the trainer says; no file of games is opened.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple, TypedDict

from plyzero.files import list_names
from plyzero.run.directory import RunDirectory
from plyzero.run.events import Beat, Reading, figure, read_reading
from plyzero.run.journals import list_journals
from plyzero.run.records import JournalName
from plyzero.run.segments import SegmentName, list_segments, parse_unused


class Accounts(TypedDict):
    """Numbers of sealed games and positions; None where the trainer has not said what it has read.

    full_positions, bootstrap_positions: positions with a full search, and those of them before the first model.
    quarantined, quarantined_games:      files in quarantine, and games in the segments among them.
    read_games:                          games that the trainer has read.
    unread_games:                        games in segments that it has not read yet.
    removed_games:                       games that it has read and whose segments retention has removed since.
    """

    segments: int
    games: int
    positions: int
    full_positions: int
    bootstrap_positions: int
    quarantined: int
    read_games: int
    unread_games: int | None
    removed_games: int | None
    quarantined_games: int
    missing_segments: int


def balance_accounts(run: RunDirectory, trainer: Beat | None) -> tuple[Accounts, str | None]:
    """Return the accounts of `run` by what its trainer says, and a sentence if they do not add up, or None.

    The trainer reads the segments of an incarnation in their order, so those before its cursor are read. They cannot
    hold more games than it has read.
    """
    segments = list(list_segments(run.segments))
    reading = read_reading(run.trainer) or trainer or Reading(cursor={})  # earlier versions: in the heartbeat
    read, cursor = int(reading.games), reading.cursor
    gaps = find_gaps(run)
    accounts: Accounts = {
        "segments": len(segments),
        "games": sum(name.games for name in segments),
        "positions": sum(name.positions for name in segments),
        "full_positions": sum(name.full for name in segments),
        "bootstrap_positions": sum(name.full for name in segments if name.bootstrap),
        "quarantined": len(list(run.quarantine.glob("*"))),
        "read_games": read,
        "unread_games": None,
        "removed_games": None,
        "quarantined_games": sum(name.games for name in _quarantined(run)),
        "missing_segments": sum(gap.last - gap.first + 1 for gap in gaps),
    }
    problem = f"{gaps[0]}; plyzero replay verify lists all that is wrong" if gaps else None
    if cursor is None:
        return accounts, problem
    passed = sum(name.games for name in segments if name.sequence < (figure(cursor, name.incarnation) or 0))
    accounts["unread_games"], accounts["removed_games"] = accounts["games"] - passed, max(0, read - passed)
    if passed > read:
        problem = (
            f"the trainer has passed segments with {passed} games, but has read {read} games: {passed - read} games "
            "are damaged or occur twice; plyzero replay verify names them"
        )
    return accounts, problem


class Gap(NamedTuple):
    """Missing segments of one incarnation: the first and the last sequence number."""

    worker: str
    incarnation: str
    first: int
    last: int

    def __str__(self) -> str:
        which = f"segment {self.first} of" if self.first == self.last else f"segments {self.first} to {self.last} of"
        verb = "is" if self.first == self.last else "are"
        return (
            f"{which} {self.worker}.{self.incarnation} {verb} missing, although {self.first - 1} and {self.last + 1} "
            "are there; retention would have removed older segments first"
        )


def find_gaps(run: RunDirectory) -> list[Gap]:
    """Return the gaps in the sequences of segments that neither journals, quarantine nor retention explain.

    Retention removes what the oldest models played first, so it leaves a gap after a segment only where that is among
    the oldest: a later one may have a game that began earlier, but by no more steps than games last. The segments
    before the first and after the last one of an incarnation are not missed.
    """
    # in the order in which games move on, so that none that moves meanwhile is missed
    journals = list_journals(run.journals)
    segments = list(list_segments(run.segments))
    journals += [journal for path in run.quarantine.glob("*") if (journal := JournalName.parse(path.name))]
    set_aside = [(each.incarnation, each.sequence) for each in _quarantined(run)]
    journals += filter(None, map(parse_unused, list_names(run.segments)))
    set_aside += [(each.incarnation, each.sequence) for each in journals]
    longest = max((name.last_step - name.first_step for name in segments), default=0)
    by_writer: dict[str, dict[int, SegmentName | None]] = {}
    for incarnation, sequence in set_aside:
        by_writer.setdefault(incarnation, {})[sequence] = None
    for name in segments:
        by_writer.setdefault(name.incarnation, {})[name.sequence] = name
    gaps = []
    for incarnation, known in by_writer.items():
        before: SegmentName | None = None
        for sequence, following in itertools.pairwise(sorted(known)):
            before = known[sequence] or before
            if before is not None and following > sequence + 1:
                earliest = (max(0, before.last_step - 2 * longest), sequence + 1)
                if any((name.first_step, name.sequence) < earliest for name in segments):
                    gaps.append(Gap(before.worker, incarnation, sequence + 1, following - 1))
    return gaps


def _quarantined(run: RunDirectory) -> list[SegmentName]:
    names = (SegmentName.parse(path.name) for path in run.quarantine.glob("*"))
    return [name for name in names if name]
