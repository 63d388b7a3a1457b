"""serve: what is wrong is one sentence, and the server begins and ends as a person expects."""

import os
import re
import signal
import subprocess
import sys
import urllib.request

from plyzero.web.server import listen
from tests.helpers.cli import plyzero


def test_a_port_in_use_is_one_sentence(tmp_path):
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        done = plyzero("serve", "tic-tac-toe", "--port", port, cwd=tmp_path)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use; choose another --port" in done.stderr


def test_the_server_says_where_it_is_and_ends_with_ctrl_c(tmp_path):
    run = tmp_path / "not yet"
    command = [sys.executable, "-m", "plyzero", "serve", "tic-tac-toe", "--run", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            said = server.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+/", said)[0]
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"<title>plyzero</title>" in answer.read()
            assert f"; Watch {run} on {address}run ; " in said
            with urllib.request.urlopen(f"{address}run", timeout=60) as answer:
                assert b"<title>Run" in answer.read()
            os.kill(server.pid, signal.SIGINT)
            assert server.wait(60) in (0, 130)
            assert "Traceback" not in server.stderr.read()
        finally:
            server.kill()
