"""A program that plays tic-tac-toe, and does one thing wrong: guest.py gtp|uci|text [FAULT] [LOG].

It plays the first empty cell. What it receives is appended to the file LOG.
"""

import os
import signal
import subprocess
import sys
import time

CELLS = [f"{column}{row}" for row in "123" for column in "abc"]
PROTOCOL, FAULT, LOG = [*sys.argv[1:], "", ""][:3]
AT_MOVE = 2
"""The move at which the fault happens, from 1 on, if it does not happen at the start."""

FOREVER = 1000


class Guest:
    def __init__(self):
        self.taken = []
        self.moves = 0

    def choose(self):
        self.moves += 1
        if FAULT and self.moves >= AT_MOVE:
            misbehave(self.taken)
        cell = next(cell for cell in CELLS if cell not in self.taken)
        if FAULT == "plays illegal moves" and self.moves >= AT_MOVE:
            cell = self.taken[0]
        if FAULT == "plays an unknown cell" and self.moves >= AT_MOVE:
            cell = "z99"
        return "resign" if FAULT == "resigns" and self.moves >= AT_MOVE else cell


def misbehave(taken):
    if FAULT == "dies":
        sys.exit("no memory left for the tables")
    if FAULT == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "never answers" or FAULT == "ignores the end":
        time.sleep(FOREVER)
    if FAULT == "closes its output":
        os.close(1)
        time.sleep(FOREVER)
    while FAULT == "floods a line":
        os.write(1, b"x" * 65536)
    while FAULT == "floods lines":
        os.write(1, b"thinking about it\n" * 4096)
    if FAULT == "floods its errors":
        os.write(2, b"thinking about it\n" * 50_000)
    if FAULT == "prints bytes":
        os.write(1, bytes(range(128, 256)) * 8 + b"\n")
    if FAULT == "takes memory":
        bytearray(3 << 30)
    if FAULT == "talks":
        say("thinking about it ...")


def say(text):
    print(text, flush=True)


def begin():
    if FAULT == "needs a terminal" and not os.isatty(0):
        sys.exit("standard input is not a terminal")
    if FAULT == "ignores the end":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
    if FAULT == "has children":
        subprocess.Popen([sys.executable, __file__, "sleeps", "", LOG])
    if FAULT == "talks":
        say("A program for tic-tac-toe, version 1\n")
    if FAULT == "never begins":
        time.sleep(FOREVER)
    if FAULT == "speaks nonsense":
        while True:
            say("hello")
            time.sleep(0.01)


def lines():
    for line in sys.stdin:
        if LOG:
            with open(LOG, "a") as log:
                log.write(line)
        yield line.split()


def speak_text():
    guest = Guest()
    for (word,) in lines():
        if word == "new":
            guest.taken = []
        elif word == "go":
            cell = guest.choose()
            guest.taken.append(cell)
            say(cell)
        else:
            guest.taken.append(word)


def speak_gtp():
    guest = Guest()
    for command, *words in lines():
        answer = "="
        if command == "list_commands":
            answer = "= boardsize\nkomi\nplay\ngenmove\nclear_board\ntime_settings\ntime_left\nlist_commands"
        elif command == "boardsize" and FAULT == "has another size":
            answer = "? unacceptable size"
        elif command == "clear_board":
            guest.taken = []
        elif command == "play":
            guest.taken.append(words[1])
            if FAULT == "refuses moves" and len(guest.taken) > 2:
                answer = "? illegal move"
        elif command == "genmove" and FAULT == "fails to move":
            answer = "? out of ideas"
        elif command == "genmove":
            cell = guest.choose()
            guest.taken.append(cell)
            answer = f"= {cell.upper()}"
        say(f"{answer}\n")


def speak_uci():
    guest = Guest()
    for command, *words in lines():
        if command == "uci":
            say("id name guest\noption name Style type string default wild\nuciok")
        elif command == "isready":
            say("readyok")
        elif command == "position":
            guest.taken = words[2:]
        elif command == "go":
            say(f"info depth 1 nodes 1 pv {CELLS[0]}")
            cell = guest.choose()
            say("bestmove (none)" if FAULT == "has no move" else f"bestmove {cell}")
        elif command == "quit":
            return


if PROTOCOL == "sleeps":
    time.sleep(FOREVER)
else:
    begin()
    {"text": speak_text, "gtp": speak_gtp, "uci": speak_uci}[PROTOCOL]()
    if FAULT == "ignores the end":
        time.sleep(FOREVER)
