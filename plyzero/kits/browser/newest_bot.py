"""`plyzero share --watch`: the folder of a shared game keeps the newest model of a run that goes on."""

from __future__ import annotations

import logging
import math
import threading
import time
from pathlib import Path
from typing import Final

from plyzero.errors import ModelRefusedError, UserError
from plyzero.kits.browser.game_folder import SharedBot, bot_of_run, replace_bot
from plyzero.kits.browser.game_texts import Report
from plyzero.network.model_loader import ModelWatch
from plyzero.run.budget import EndOfRun
from plyzero.run.directory import Run
from plyzero.run.models import ModelName
from plyzero.volume_errors import FileErrors

LAST_SECONDS: Final = 5.0
"""Seconds for which a newer model is still waited for after the end of the run."""

CONSEQUENCE: Final = "cannot be written, its bot stays"

log = logging.getLogger(__name__)


def keep_newest(run: Run, directory: Path, bot: SharedBot, *, stop: threading.Event, report: Report) -> str:
    """Replace the bot of a shared game by every newer model of its run until `stop` is set or the run is over.

    bot: the one that the folder has now.
    A model is loaded and tested first. While the folder cannot be written, the bot before stays, and it is tried again.
    Returns why it ended: the part of the budget of the run that is used up, or "stopped".
    """
    file_errors, end, last_look = FileErrors(), EndOfRun(run), math.inf
    wanted = shown = bot
    replace_bot(directory, bot, is_watched=True)
    try:
        with ModelWatch.of(run, threads=1) as watch:
            while not stop.is_set() and time.monotonic() < last_look:
                if end.reached():  # the run publishes its last model before it ends
                    last_look = min(last_look, time.monotonic() + LAST_SECONDS)
                if network := watch.newer():
                    try:
                        wanted = _bot_of(run, network.label)
                    except (ModelRefusedError, UserError, OSError) as error:  # damaged since it was loaded
                        watch.refuse_current(ModelRefusedError(str(error)))
                if wanted != shown and file_errors.is_due(directory):
                    with file_errors.skipping(directory, CONSEQUENCE, writes=True):
                        replace_bot(directory, wanted, is_watched=True)
                        shown = wanted
                        report(f"the page has {shown.name}")
                watch.wait(0.5)
    finally:
        with file_errors.skipping(directory, CONSEQUENCE, writes=True):
            replace_bot(directory, shown, is_watched=False)
    done = end.reached()
    return f"{done} reached" if done else "stopped"


def _bot_of(run: Run, label: str) -> SharedBot:
    name = ModelName.parse(label)
    assert name
    return bot_of_run(run, name)
