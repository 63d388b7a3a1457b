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

    processor: its name.
    per_second: evaluations per second on one core, of the bundled network of Connect Four in 32 bits, 64 in a batch.
    cores:     number that the training used.
    """

    processor: str
    per_second: float
    cores: int


README: Final = Reference(processor="AMD EPYC", per_second=10_053, cores=2)
"""The machine of README's tables. Made by `make bench` on 2026-11-24, the day of these trainings: the row of 4 blocks x
64 channels, Connect Four, network alone; docs/performance.md quotes it."""


def first_change(game: GameSpec, shares: Mapping[str, float], rules: Mapping[str, float]) -> str:
    """Return what takes most of a worker's time, and how many times as many positions its removal would give.

    shares: part -> share of the time, as `measure` returns them.
    rules:  rule in plain Python -> share of the time, the largest first; nothing for compiled rules.
    """
    parts = {name: shares[name] for name in ("network", "rules", "search") if shares[name]}
    first = max(parts, key=lambda name: parts[name])
    if first == "rules":
        sentence = _of_rules(game, shares["rules"], rules)
    elif first == "network":
        sentence = (
            f"The network takes {shares['network']:.0%} of the time, so the rules are fast enough: if all else cost "
            f"nothing, there would be {_times(1 - shares['network'])} as many positions. More come from more cores, a "
            "GPU or a smaller network, such as -o network.channels=16."
        )
    else:
        search = "search" if rules else "search, with the compiled rules in it,"
        sentence = (
            f"The {search} takes {shares['search']:.0%} of the time: if it cost nothing, there would be "
            f"{_times(shares['search'])} as many positions. With fewer simulations, such as -o "
            "selfplay.simulations=32, there are more, with worse policies."
        )
    if parts[first] >= MOST:
        return sentence
    by_share = sorted(parts.items(), key=lambda each: each[1], reverse=True)
    return f"No part takes half of the time: {', '.join(f'{name} {share:.0%}' for name, share in by_share)}. {sentence}"


def _of_rules(game: GameSpec, share: float, rules: Mapping[str, float]) -> str:
    slowest, its_share = next(iter(rules.items()), ("", 0.0))
    found = f"The rules take {share:.0%} of the time, {slowest} alone {its_share:.0%}. "
    if game.start.is_adapted:
        return f"{found}Rules written for plyzero and compiled would give up to {_times(share)} as many positions."
    return (
        f"{found}Change it first: {FASTER[slowest]}. If it cost nothing, there would be {_times(its_share)} as many "
        f"positions; compiled rules would give up to {_times(share)} as many: "
        f"plyzero new NAME --from {quote(game.name)} --compiled."
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
    slower = "" if has_8_bit else "; its processor has no VNNI, so workers evaluate in 32 bits, about half as fast"
    return (
        f"With the bundled network of Connect Four one core of this machine makes {per_second:,.0f} evaluations/s, "
        f"{ratio:.2f} times as many as that of README's tables ({README.processor}, {README.per_second:,.0f}); they "
        f"were made with {README.cores} cores, here are {cores}{slower}."
    )
