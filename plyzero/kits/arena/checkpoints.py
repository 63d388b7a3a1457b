"""Checkpoints of a run as players of its ladder, which keeps them when the run removes their models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plyzero.errors import ModelRefusedError
from plyzero.kits.arena.entrants import Entrant, model_file
from plyzero.kits.arena.ladder import MODELS, read_table
from plyzero.run.directory import RunDirectory
from plyzero.run.models import list_models, read_model, read_model_file
from plyzero.run.view import watch_run


class Checkpoints:
    """Models of a run, at least `every` steps apart, in the order of their steps.

    entrants: those that are rated, oldest first.
    """

    def __init__(self, run: RunDirectory, ladder: Path, every: int, **limits: Any) -> None:
        """`limits` are those of every Entrant."""
        self._run, self._every, self._limits = run, every, limits
        self.entrants: list[Entrant] = []
        for player in table["players"] if (table := read_table(ladder)) else ():
            if (step := player.get("step")) is not None:
                content = read_model_file(ladder / MODELS / model_file(player["identity"]))
                self._add(step, content)

    def add_new(self) -> bool:
        """Add the models that have been published meanwhile; return whether there were any."""
        before = len(self.entrants)
        for name in reversed(list_models(self._run.models)):
            if self.entrants and name.step < (self.entrants[-1].step or 0) + self._every:
                continue
            try:
                content = read_model(self._run.models, name)
            except (FileNotFoundError, ModelRefusedError):  # the run has removed it, or no worker plays with it either
                continue
            if not any(entrant.identity.startswith(name.digest) for entrant in self.entrants):
                self._add(name.step, content)
        return len(self.entrants) > before

    @property
    def waiting(self) -> str:
        """A clause about the model that is waited for."""
        if not self.entrants:
            return "waiting for the first model of the run"
        return f"waiting for a model of step {(self.entrants[-1].step or 0) + self._every} or later"

    def more_may_come(self) -> bool:
        """Return whether a process of the run is alive, or no trainer has started yet."""
        view = watch_run(self._run)
        return bool(view.alive()) or view.trainer is None

    def _add(self, step: int, content: bytes) -> None:
        self.entrants.append(Entrant.of_network(f"step {step}", content, self._limits, step=step))
