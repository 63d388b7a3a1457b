"""Adoption without waiting: every journal whose lock is free is taken and sealed at once."""

import time

from plyzero.run.adoption import Adoption
from plyzero.run.directory import Run
from plyzero.run.journals import list_journals
from plyzero.run.liveness import STALLED_SECONDS
from tests.helpers.clock import Clock


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
