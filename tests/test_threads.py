"""Threads: none ends without a report, in the log, in the heartbeat and in `status`."""

import errno
import logging

import pytest

from plyzero.run.directory import Run
from plyzero.run.metrics import Heartbeat
from plyzero.threads import Thread, start_thread
from tests.helpers.beats import fields_of
from tests.helpers.cli import shown
from tests.helpers.hostile import failing


def test_a_thread_that_an_error_ends_is_reported(run: Run, caplog: pytest.LogCaptureFixture):
    heartbeat, fields = Heartbeat(run.workers / "w0.00000001.json"), {"role": "selfplay", "state": "playing"}
    start_thread(lambda: None, name="sound").join()
    heartbeat.beat(fields, force=True)
    assert "thread_error" not in fields_of(run.workers / "w0.00000001.json")
    thread = start_thread(failing(errno.EMFILE), name="models")
    thread.join()
    heartbeat.beat(fields, force=True)
    sentence = "its thread models has ended with OSError: [Errno 24] Too many open files; restart the process"
    assert f"w0.00000001: {sentence}" in " ".join(shown("status", "--run", str(run.root)).split())
    (record,) = caplog.records
    says = "the thread models of this process has ended: [Errno 24] Too many open files"
    assert (record.levelno, record.message, record.exc_info) == (logging.ERROR, says, None)
    with pytest.raises(OSError, match="Too many open files"):
        thread.check()


def test_the_log_has_the_traceback_of_a_mistake_that_ends_a_thread(caplog: pytest.LogCaptureFixture):
    thread = start_thread(lambda: [][0], name="models")
    thread.join()
    (record,) = caplog.records
    assert (record.message, (record.exc_info or ())[1]) == (
        "the thread models of this process has ended",
        thread.error,
    )


def test_a_thread_does_its_work_and_keeps_no_process_alive():
    done: list[object] = []
    thread = Thread(done.append, 3, name="work")
    thread.start()
    thread.join()
    thread.check()
    assert (done, thread.name, thread.daemon) == ([3], "work", True)
