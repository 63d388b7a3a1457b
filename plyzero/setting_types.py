"""Types of settings with a form of their own: opponents, a budget's condition, names of classes and functions."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

MAX_INTEGER: Final = 2**40
"""Largest value of any integer setting."""

MAX_SIMULATIONS: Final = 10_000_000
"""Largest number of simulations of one search; its tree takes several GB."""


def without_nul(value: object) -> object:
    """Return `value`. Raises ValueError if a text in it has the character NUL: no path and no command can have it."""
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


FIXED_PLAYER: Final = r"random|greedy|bot|[\w.]+:(?!//)\S.*"
"""Pattern of the name of a player that stays the same, unlike a run or a file."""


def _check_opponent(name: str) -> str:
    if name.startswith("mcts:"):
        parse_rollouts(name)
    elif not re.fullmatch(FIXED_PLAYER, name):
        raise ValueError("expected a player such as random, mcts:100, bot:3, my_agent:MyAgent or gtp:COMMAND")
    return name


def _split_at_commas(value: object) -> object:
    return value.split(",") if isinstance(value, str) else value


Opponent = Annotated[str, AfterValidator(_check_opponent)]
Opponents = Annotated[tuple[Opponent, ...], BeforeValidator(_split_at_commas)]
"""A list of opponents; in the environment and on the command line it is written with commas."""


def parse_until(condition: str) -> tuple[str, float, str]:
    """Return the measure, the least value and the opponent of a condition: "score >= 0.9 against mcts:100".

    The measure is score or points: "points >= 2 against mcts:100". Raises ValueError for anything else.
    """
    found = re.fullmatch(r"(score|points) *>= *(\d*\.?\d+) +against +(\S.*)", condition.strip())
    if found:
        measure, least, opponent = found[1], float(found[2]), found[3]
        largest = 1 if measure == "score" else MAX_INTEGER
        if 0 < least <= largest:
            return measure, least, _check_opponent(opponent)
    raise ValueError("expected a score above 0 and at most 1, and an opponent: score >= 0.9 against mcts:100")


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
            corrected = re.sub(r"(\.py)?[.:](\w+)$", r":\2", name)
            suggestion = corrected if re.fullmatch(OBJECT_NAME, corrected) else example
            raise ValueError(f"expected {form}, such as {suggestion}")
        return name

    return AfterValidator(check)


ClassName = Annotated[str, _named("MODULE:CLASS", "my_net:MyNet")]
FunctionName = Annotated[str, _named("MODULE:FUNCTION", "my_targets:final_result")]
