"""The wording of what `plyzero check` reports: lists of moves, differences, and advice on games that are too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.chance import move_name
from plyzero.rules.game import Game

KEPT_BY_ADAPTERS: Final = {"answers_in_form", "observation_as_declared", "actions_have_names", "boards_in_form"}
"""The laws of what plyzero makes of a game of another toolkit, whose rules have no part in them."""

MAX_LISTED: Final = 8  # actions in a message
MAX_MOVES: Final = 30  # moves in a message; if there are more, it has the first and the last SHOWN_MOVES
SHOWN_MOVES: Final = 10


def advice_against_long_games(position: Game, law: str, *, repeats: bool) -> str:
    """Return what to do about a game that is longer than max_plies; `repeats`: whether a position has come again."""
    if position.is_adapted:
        return f"such games are cut off, and training leaves them out; to test the other laws, use --skip {law}"
    first = "positions repeat, so no max_plies is enough: " if repeats else "raise max_plies if all games end, or "
    return f"{first}end the game in outcome() and show the counter in observe(), or use --skip {law}"


def whose_fault(position: Game, law: str) -> str:
    """Return, as the end of a sentence, that plyzero and not the game has broken `law`; "" if the rules may have."""
    if not position.is_adapted or law not in KEPT_BY_ADAPTERS:
        return ""
    return "; this law is kept by plyzero, not by the rules of the game: it is a mistake of plyzero, please report it"


def shown_moves(names: Sequence[str], none: str) -> str:
    """Return the names of moves, or the first, the last and their number if they are many; `none` if there are none."""
    number = f" ({len(names)} moves)" if len(names) > MAX_MOVES else ""
    return (shortened(names) or none) + number


def shortened(names: Sequence[str]) -> str:
    """Return the names of moves, or only the first and the last if they are many."""
    if len(names) <= MAX_MOVES:
        return " ".join(names)
    return f"{' '.join(names[:SHOWN_MOVES])} ... {' '.join(names[-SHOWN_MOVES:])}"


def names_of(positions: Sequence[Game], moves: Sequence[int]) -> list[str]:
    """Return the names of `moves`; each is played at the position with the same index."""
    return [name_of(position, move) for position, move in zip(positions, moves, strict=False)]


def name_of(position: Game, action: int) -> str:
    """Return the name of `action`, or its number if action_name() does not answer, since it may be what is broken."""
    try:
        return str(move_name(position, action))
    except Exception:
        return str(action)


def differences(one: Mapping[str, object], other: Mapping[str, object]) -> str:
    """Return the names under which two sets of answers differ, with the values if they are readable; "" if equal."""
    found = []
    for name in one.keys() | other.keys():
        pair = [answers.get(name) for answers in (one, other)]
        if pair[0] != pair[1]:
            is_readable = not name.startswith(("render()", "str()", "observe()", "key()", "final_board()"))
            found.append(f"{name}: {_contrast(*pair)}" if is_readable else f"{name} differs")
    return "; ".join(sorted(found))


def _contrast(one: object, other: object) -> str:
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) + len(other) > 20:
        only = [[each for each in a if each not in b] for a, b in ((one, other), (other, one))]
        return f"only the first has {listed(only[0])}, only the second {listed(only[1])}"
    return f"{one} and {other}"


def listed(actions: Sequence[object]) -> str:
    """Return the first MAX_LISTED of `actions`, and how many more there are."""
    more = f" and {len(actions) - MAX_LISTED} more" if len(actions) > MAX_LISTED else ""
    return f"{actions[:MAX_LISTED]}{more}"


def some_of(names: Sequence[str]) -> str:
    """Return the first MAX_LISTED of `names`, and how many more there are; "none" if there are none."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return " ".join(names[:MAX_LISTED]) + more if names else "none"


def first_difference(one: NDArray[np.float32], other: NDArray[np.float32], have: tuple[str, str]) -> str:
    """Return in how many numbers two arrays, `[planes, rows, columns]`, differ, and where first; "" if they are equal.

    have: the subject and verb for each of them: `("the image has", "the position there has")`.
    """
    wrong = np.argwhere(~np.isclose(one, other, rtol=1e-6, atol=1e-7))
    if not len(wrong):
        return ""
    plane, row, column = place = tuple(wrong[0].tolist())
    return (
        f"differs in {len(wrong)} of {other.size} numbers, first in plane {plane}, row {row}, column {column}: "
        f"{have[0]} {one[place]:g}, {have[1]} {other[place]:g}"
    )
