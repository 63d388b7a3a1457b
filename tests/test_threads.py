"""Threads: none ends without a report, in the log, in the heartbeat and in `status`."""

import errno
import logging
from pathlib import Path

import pytest

from plyzero.run.metrics import Heartbeat, read_heartbeat
from plyzero.threads import Thread, start_thread
from tests.helpers.cli import shown
from tests.helpers.hostile import failing
from tests.helpers.runs import small_run


def test_a_thread_that_an_error_ends_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run = small_run(tmp_path / "r")
    heartbeat = Heartbeat(run.workers / "w0.00000001.json")
    start_thread(lambda: None, name="sound").join()
    heartbeat.beat({"role": "selfplay", "state": "playing"}, force=True)
    assert "thread_error" not in (read_heartbeat(run.workers / "w0.00000001.json") or {})
    thread = start_thread(failing(errno.EMFILE), name="models")
    thread.join()
    heartbeat.beat({"role": "selfplay", "state": "playing"}, force=True)
    sentence = "its thread models has ended with OSError: [Errno 24] Too many open files; restart the process"
    assert f"w0.00000001: {sentence}" in " ".join(shown("status", "--run", str(run.root)).split())
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.ERROR, "the thread models of this process has ended")
    assert (record.exc_info or ())[1] is thread.error
    with pytest.raises(OSError, match="Too many open files"):
        thread.check()


def test_a_thread_does_its_work_and_keeps_no_process_alive():
    done: list[object] = []
    thread = Thread(done.append, 3, name="work")
    thread.start()
    thread.join()
    thread.check()
    assert (done, thread.name, thread.daemon) == ([3], "work", True)
