"""Types of settings that are more than a number: opponents, a budget's condition, names of classes and functions."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

MAX_INTEGER: Final = 2**40
"""Largest value of any integer setting."""

MAX_SIMULATIONS: Final = 10_000_000
"""Largest number of simulations of one search, whose tree then takes several GB."""


def without_nul(value: object) -> object:
    """Return `value`. Raises ValueError if a text in it has the character NUL, as no path and no command can."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError("expected text without the character NUL")
    if isinstance(value, dict):
        without_nul([*value.keys(), *value.values()])
    if isinstance(value, list | tuple):
        for part in value:
            without_nul(part)
    return value


def parse_rollouts(player: str) -> int:
    """Return N of the player `mcts:N`. Raises ValueError if it is not a number from 1 to MAX_SIMULATIONS."""
    number = player.removeprefix("mcts:")
    if not (number.isdecimal() and len(number) < 9 and 0 < int(number) <= MAX_SIMULATIONS):
        raise ValueError(f"expected mcts:N with 1 to {MAX_SIMULATIONS} rollouts per move, such as mcts:1000")
    return int(number)


def _check_opponent(name: str) -> str:
    if name.startswith("mcts:"):
        parse_rollouts(name)
    elif name != "random":
        raise ValueError(f"expected random, or mcts:N with 1 to {MAX_SIMULATIONS} rollouts per move")
    return name


Opponent = Annotated[str, AfterValidator(_check_opponent)]
Opponents = Annotated[
    tuple[Opponent, ...], BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value)
]
"""A list of opponents; in the environment and on the command line it is written with commas."""


def parse_until(condition: str) -> tuple[str, float, str]:
    """Return what is measured, the least value and the opponent of a condition: "score >= 0.9 against mcts:100".

    It is the score or the points: "points >= 2 against mcts:100". Raises ValueError for anything else.
    """
    found = re.fullmatch(r"(score|points) *>= *(\d*\.?\d+) +against +(\S+)", condition.strip())
    if not found or not 0 < float(found[2]) <= (1 if found[1] == "score" else MAX_INTEGER):
        raise ValueError("expected a score above 0 and at most 1, and an opponent: score >= 0.9 against mcts:100")
    return found[1], float(found[2]), _check_opponent(found[3])


def _check_until(condition: str) -> str:
    parse_until(condition)
    return condition


Until = Annotated[str, AfterValidator(_check_until)]


OBJECT_NAME: Final = r"^\w+(\.\w+)*:\w+$"
"""Pattern of the name of a class or function in a module: `my_net:MyNet`."""


MOVED: Final = r"^trainer\.(network|learner|targets|loss):"
"""Pattern of the names of our own functions and classes that runs of version 0.2 have recorded."""


def _named(form: str, example: str) -> AfterValidator:
    """Return a check that a setting is the name of a class or function in a module; its message shows `form`."""

    def check(name: str) -> str:
        name = re.sub(MOVED, r"plyzero.\g<0>", name)
        if not re.fullmatch(OBJECT_NAME, name) or ".py:" in name:
            alike = re.sub(r"(\.py)?[.:](\w+)$", r":\2", name)
            raise ValueError(f"expected {form}, such as {alike if re.fullmatch(OBJECT_NAME, alike) else example}")
        return name

    return AfterValidator(check)


ClassName = Annotated[str, _named("MODULE:CLASS", "my_net:MyNet")]
FunctionName = Annotated[str, _named("MODULE:FUNCTION", "my_targets:final_result")]
