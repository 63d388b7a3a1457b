"""Programs of tests that play tic-tac-toe, as players (tests/helpers/guest.py)."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.rules.catalog import load_game

GUEST = Path(__file__).with_name("guest.py")
GAME = load_game("tic-tac-toe")


class Guests:
    """Programs of a test, whose processes are known by the log that they write."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def name(self, protocol: str, fault: str = "", settings: str = "") -> str:
        words = shlex.join([sys.executable, "-S", "-E", str(GUEST), protocol, fault, str(self.log)])
        return f"{protocol}:{f'{settings} {words}'.strip()}"

    def player(self, protocol: str, fault: str = "", settings: str = "", **limits: object) -> Player:
        return find_player(self.name(protocol, fault, settings), GAME, np.random.default_rng(0), **limits)

    def sent(self) -> list[str]:
        """Return what the programs have received."""
        return self.log.read_text().splitlines()

    def processes(self) -> list[str]:
        """Return the command lines of those that run."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        return [line for line in found if str(self.log) in line]
