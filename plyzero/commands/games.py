"""new, check: start a game of one's own, and test its rules."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from plyzero.commands.common import FailedError, GameArgument, find_game, quoted
from plyzero.errors import UserError

if TYPE_CHECKING:
    from plyzero.check.survey import Survey


def check(
    game: GameArgument,
    games: Annotated[int, typer.Option(min=1, help="Random games to try each law on; the same ones each time.")] = 100,
    against: Annotated[
        str | None, typer.Option(metavar="GAME", help="Another form of the same game, to agree with move for move.")
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="LAW", help="Leave out a law that does not hold by the rules; may be repeated."),
    ] = None,
) -> None:
    """Test the rules of GAME against the laws that search and training rely on, and say what the game looks like."""
    from plyzero.check.laws import agreement_with
    from plyzero.check.survey import survey
    from plyzero.check.violations import find_violation, laws_of
    from plyzero.run.presets import enlarged

    spec = find_game(game)
    other = find_game(against) if against else None
    more = [agreement_with(lambda: other.start)] if other else []
    laws = [law.name for law in (*laws_of(spec.start), *more)]
    for name in skip or ():
        if name not in laws:
            raise UserError(f"no law is called {name!r}; the laws are {', '.join(laws)}")
    console = Console(highlight=False, soft_wrap=True)
    with console.status(f"trying {len(laws)} laws") as status:
        played = itertools.count(1)
        broken = find_violation(
            lambda: find_game(game).start,
            games=games,
            skip=skip or (),
            more=more,
            doing=lambda: status.update(f"trying {len(laws)} laws, random game {next(played)}"),
        )
    if broken:
        console.print(str(broken), markup=False)
        raise FailedError(f"{spec.name} breaks a law; above are the shortest moves found that show it")
    skipped = f", skipped: {', '.join(skip)}" if skip else ""
    console.print(f"{spec.identity}: {len(laws) - len(skip or ())} laws hold on {games} random games{skipped}\n")
    with console.status("measuring"):
        found = survey(spec.start, games=games)
    settings = ", ".join(f"{section}.{key} = {value}" for section, key, value in enlarged("quick", spec.start))
    console.print(_report(found, settings), markup=False)
    console.print(f"\nNext: plyzero train {quoted(game)} --run runs/first --minutes 2", markup=False)


def _report(found: Survey, settings: str) -> str:
    shortest, mean, longest, allowed = found.plies
    first, drawn, second = found.shares
    costs = ", ".join(f"{rule} {cost:.1f}" for rule, cost in found.microseconds.items())
    turns = f"the same player moves again after {found.again:.0%} of the moves" if found.again else "always pass"
    lines = [
        *(f"LOOK TWICE     {sentence}" for sentence in found.suspicions),
        f"legal moves    {found.branching[0]:.1f} on average, at most {found.branching[1]}",
        f"game length    {mean:.1f} plies on average, {shortest} to {longest}; max_plies is {allowed}",
        f"random games   first player wins {first:.0%}, drawn {drawn:.0%}, second player wins {second:.0%}",
        f"turns          {turns}",
        f"symmetries     {found.symmetries[0]} declared, {found.symmetries[1]} of them tried by playing",
        f"µs per call    {costs}",
        f"settings       {(settings and f'larger for this game: {settings}') or 'the defaults'}",
        *(f"advice         {sentence}" for sentence in found.advice),
    ]
    return "\n".join(lines)


def new(name: Annotated[str, typer.Argument(metavar="NAME", help="Of the game: my-game.")]) -> None:
    """Start a game of your own: a folder with rules, tests and a README."""
    from plyzero.check.new_project import make_project

    root = make_project(Path(), name)
    print((root / "README.md").read_text())
