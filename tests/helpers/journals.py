"""Adoption without waiting: every journal whose lock is free is taken and sealed at once."""

from plyzero.run.adoption import Adoption
from plyzero.run.directory import Run
from plyzero.run.liveness import STALLED_SECONDS
from tests.helpers.clock import Clock


def adopt_journals(run: Run) -> int:
    """Let a trainer see a journal, take it and seal it, as in a run where nothing moves; the number of games sealed."""
    clock = Clock()
    adoption, sealed = Adoption(run, clock=clock), 0
    for _ in range(3):
        sealed += adoption.adopt()
        clock.now += STALLED_SECONDS
    return sealed
