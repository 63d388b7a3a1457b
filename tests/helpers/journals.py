"""Journals of dead workers, and adoption without waiting."""

import time
from pathlib import Path

from plyzero.run.adoption import Adoption
from plyzero.run.directory import Run
from plyzero.run.journals import Journal, list_journals
from plyzero.run.records import Games, JournalName
from plyzero.run.view import STALLED_SECONDS
from tests.helpers.clock import Clock


def leave(directory: Path, run: Run, *batches: Games, sequence: int = 0, owner: str = "w0.0123abcd") -> Path:
    """Let a worker of `run` die over its journal in `directory`; return the path."""
    worker, incarnation = owner.split(".")
    name = JournalName(worker, incarnation, sequence)
    journal = Journal(directory, run.game, name, run_id=run.id)
    for games in batches:
        journal.append(games)
    journal.abandon()
    return directory / str(name)


def adopt_journals(run: Run) -> int:
    """Let a trainer see a journal, take it and seal it, as in a run where nothing moves; the number of games sealed."""
    clock = Clock()
    adoption, sealed = Adoption(run, clock=clock), 0
    for number in range(10):
        sealed += adoption.adopt()
        clock.now += STALLED_SECONDS
        if not list_journals(run.journals):
            break
        time.sleep(0.05 if number > 3 else 0)  # another trainer is at it
    return sealed
