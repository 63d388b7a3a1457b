"""The publisher: saves the trainer's state, then exports its averaged weights, compares them and publishes a model.

The state comes first, so that no model is ahead of the state from which a trainer resumes.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.run.directory import Run
from plyzero.run.lease import Lease
from plyzero.run.models import ModelName, list_models, publish_model
from plyzero.trainer.export import Forms, describe_model, export, is_finite, make_forms
from plyzero.trainer.intake import Intake
from plyzero.trainer.learner import Learner, load_weights
from plyzero.trainer.retention import Retention
from plyzero.trainer.state import State, load_state, save_state
from plyzero.volume_errors import wait_for

EXPORT_POSITIONS: Final = 256
"""Number of positions on which an exported model is compared with torch."""


class Publisher:
    """Saves the states and publishes the models of one run.

    is_first: whether the run has no model yet.
    saved_at: when the state was saved last, by `time.monotonic`; before that, when this object was made.
    """

    def __init__(self, run: Run, learner: Learner, intake: Intake, *, lease: Lease, retention: Retention) -> None:
        self._run = run
        self._learner = learner
        self._intake = intake
        self._lease = lease
        self._retention = retention
        self.is_first = not wait_for(lambda: list_models(run.models), "models/")
        self._published_step = -1
        self.saved_at = time.monotonic()

    def save(self) -> None:
        """Save the state, from which the trainer resumes.

        Raises UserError if another trainer has taken over, or if the network has diverged: the state before is kept.
        """
        self._lease.check()
        self._intake.sampler.pause()
        self._check_finite()
        state: State = {
            **self._learner.state_dict(),
            **self._intake.state_dict(),  # type: ignore[typeddict-item]
        }
        if self._run.id:
            state["run"] = self._run.id.text
        save_state(self._run.trainer, state, fence=self._lease.fence, step=self._learner.step)
        self.saved_at = time.monotonic()
        self._retention.remember_state(self._lease.fence, state)

    def publish(self) -> tuple[ModelName, Forms]:
        """Export the averaged weights, whose state has been saved, compare them, publish and return the model.

        Raises ExportError if the export fails or its outputs differ from torch's, and OSError if it cannot be written.
        """
        learner, diagnostics = self._learner, self._intake.diagnostics
        observations = self._sample_observations()
        metadata = describe_model(
            self._run.settings, step=learner.step, positions=self._intake.ledger.made, run_id=self._run.id
        )
        try:
            content = export(learner.averaged.module, self._run.game, observations, metadata=metadata)
        finally:
            learner.averaged.module.to(learner.device)
        forms = make_forms(self._run, content, observations, diagnostics.held_out_observations(learner.step))
        self._lease.check()  # exporting takes a while
        name = publish_model(
            self._run.models, forms.content, fence=self._lease.fence, step=learner.step, int8=forms.int8
        )
        self.is_first = False
        self._published_step = learner.step
        return name, forms

    def resume(self) -> str | None:
        """Continue from the newest state of the run that is whole; without one, begin.

        Return a sentence about a newer state that is damaged, None if there is none.
        Raises UserError if the state is of another run or of another network.
        """
        damaged: list[str] = []
        state = wait_for(lambda: load_state(self._run.trainer, set_aside=damaged), "trainer/")
        if state is not None:
            load_weights(self._learner, state, self._run)
            self._retention.remember_state(0, state)
            self._intake.load_state_dict(state)
        return damaged[0] if damaged else None

    def has_unpublished_steps(self) -> bool:
        """Return whether the learner has made steps since the newest model of this process."""
        return self._learner.step != self._published_step and len(self._intake.window) > 0

    def _check_finite(self) -> None:
        """Raise UserError if the network or its averaged weights have diverged."""
        observations = self._sample_observations() if len(self._intake.window) else None
        averaged = self._learner.averaged.module
        self._learner.check_finite("network", is_finite(self._learner.network) and is_finite(averaged, observations))

    def _sample_observations(self) -> NDArray[np.float32]:
        """Return positions of the window, the same for the same step."""
        rng = np.random.default_rng(self._learner.step)
        return self._intake.window.sample(EXPORT_POSITIONS, rng).observations
