"""A client of the Go Text Protocol: starts an engine as a process of its own and sends it commands."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Self

from plyzero.rules.game import Game


class GtpClient:
    """An engine in a process of its own; a context manager that ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, command: str) -> str:
        """Return the text of the response. Raises RuntimeError for a failure, or if the engine has ended."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        lines = [self._process.stdout.readline()]
        while lines[-1].strip():  # a response ends with an empty line
            lines.append(self._process.stdout.readline())
        answer = "".join(lines).rstrip("\n")
        if not answer.startswith("="):
            raise RuntimeError(f"{command}: {answer or 'the engine has ended'}")
        return answer[1:].lstrip(" ")


class GnuGo(GtpClient):
    """GNU Go for one game by Chinese rules, which captures what is dead before it passes."""

    def __init__(self, program: str, level: int, size: int, seed: int) -> None:
        rules = "--chinese-rules", "--positional-superko", "--capture-all-dead"
        super().__init__([program, "--mode", "gtp", "--level", str(level), "--seed", str(seed + 1), *rules])
        for line in (f"boardsize {size}", "clear_board", "komi 7.5"):
            self.ask(line)

    def play(self, position: Game, action: int) -> None:
        """Tell it that `action` was played in `position`."""
        self.ask(f"play {colour(position)} {position.action_name(action)}")

    def choose(self, position: Game) -> int | None:
        """Return the action that it plays in `position`; None if it resigns."""
        name = self.ask(f"genmove {colour(position)}").lower()
        return None if name == "resign" else position.parse_action(name)


def colour(position: Game) -> str:
    """Return who is to move, as GTP says it."""
    return "white" if position.to_play else "black"
