"""The bottleneck of a worker: what to change first and what that would give, and how this machine compares."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from plyzero.rules.catalog import GameSpec

FASTER: Final = {
    "play": "Copy less: a board of bytes or a tuple instead of an array",
    "outcome": "Let play find out whether the move has won, and keep that",
    "legal_actions": "Test all squares at once, or let play keep what is legal",
    "observe": "Make the planes from the whole board, not square by square",
    "chances": "Make the tuple of probabilities once, not in each position",
}
"""Rule -> advice that makes it faster in plain Python."""

MOST: Final = 0.5
"""Share of the time from which on one part is called the bottleneck."""


class Reference(NamedTuple):
    """A machine with which others are compared.

    processor:  its name.
    per_second: evaluations per second on one core, of a network of 4 x 64 for Connect Four in 32 bits, 64 in a batch.
    cores:      number that the training used.
    """

    processor: str
    per_second: float
    cores: int


README: Final = Reference(processor="AMD EPYC", per_second=10_053, cores=2)
"""The machine of README's tables. Made by `make bench` on 2026-11-24, the day of these trainings: the row of 4 x 64,
Connect Four, network alone; docs/performance.md quotes it."""


def first_change(
    game: GameSpec, shares: Mapping[str, float], rules: Mapping[str, float], *, evaluator: bool = False
) -> str:
    """Return what takes most of a worker's time, and how many times as many positions its removal would give.

    shares:    part -> share of the time, as `measure` returns them.
    rules:     rule in plain Python -> share of the time, the largest first; nothing for compiled rules.
    evaluator: whether another process evaluates.
    """
    parts = {name: shares[name] for name in ("network", "rules", "search") if shares[name]}
    by_share = sorted(parts, key=lambda name: parts[name], reverse=True)
    first = by_share[0]
    if first == "rules":
        sentence = _of_rules(game, shares["rules"], rules)
    elif first == "network":
        sentence = _of_network(shares["network"], evaluator=evaluator)
    else:
        sentence = _of_search(game, shares["search"])
    if parts[first] >= MOST:
        return sentence
    return f"No part takes half of the time: {', '.join(f'{name} {parts[name]:.0%}' for name in by_share)}. {sentence}"


def _of_rules(game: GameSpec, share: float, rules: Mapping[str, float]) -> str:
    takes = f"The rules take {share:.0%} of the time"
    compiled = f"Compiled rules would give up to {_times(share)} as many positions"
    if game.start.is_adapted or not rules:
        return f"{takes}. {compiled}."
    slowest, its_share = next(iter(rules.items()))
    return (
        f"{takes}, {slowest} alone {its_share:.0%}. Change it first. {FASTER[slowest]}: without the cost of {slowest} "
        f"there would be {_times(its_share)} as many positions. "
        f"{compiled}: plyzero new NAME --from {quote(game.name)} --compiled."
    )


def _of_network(share: float, *, evaluator: bool) -> str:
    name, more = "network", "more cores, a GPU or a smaller network, such as -o network.channels=16"
    if evaluator:
        name, more = "evaluator", "more workers beside this one"
    return (
        f"The {name} takes {share:.0%} of the time, so the rules are fast enough: if all else cost nothing, there "
        f"would be {_times(1 - share)} as many positions. More come from {more}."
    )


def _of_search(game: GameSpec, share: float) -> str:
    search = "search, with the compiled rules in it," if game.start.is_compiled else "search"
    return (
        f"The {search} takes {share:.0%} of the time: if it cost nothing, there would be {_times(share)} as many "
        "positions. With fewer simulations, such as -o selfplay.simulations=32, there are more, with worse policies."
    )


def _times(saved: float) -> str:
    """Return how many times as much is done in the same time without a part that takes the share `saved` of it."""
    return f"{1 / (1 - min(saved, 0.99)):.1f} times"


def compare(per_second: float, *, cores: int, has_8_bit: bool) -> str:
    """Return how this machine compares with README's.

    per_second: as in Reference, here.
    cores:      number that this machine has.
    has_8_bit:  whether workers here evaluate in 8 bits by default.
    """
    ratio = per_second / README.per_second
    no_8_bit = " This processor has no VNNI, so workers evaluate in 32 bits, about half as fast as in 8 bits."
    return (
        f"With a network of 4 x 64 for Connect Four one core of this machine makes {per_second:,.0f} evaluations/s, "
        f"that of README's tables {README.per_second:,.0f} ({README.processor}): {ratio:.2f} times as many. "
        f"README's runs had {README.cores} cores, this machine has {cores}.{'' if has_8_bit else no_8_bit}"
    )
