"""new, check: create a game of your own, and test its rules."""

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
    games: Annotated[int, typer.Option(min=1, help="Number of random games per law (always the same games).")] = 100,
    against: Annotated[
        str | None,
        typer.Option(metavar="GAME", help="A second implementation of the same rules to compare with, move for move."),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAW", help="Do not check this law, because your rules break it on purpose; may be repeated."
        ),
    ] = None,
) -> None:
    """Test whether the rules of GAME are consistent, by playing random games, and print statistics."""
    from plyzero.check.laws import agreement_with
    from plyzero.check.survey import survey
    from plyzero.check.violations import find_violation, laws_of
    from plyzero.run.presets import unmet_requirements

    spec = find_game(game)
    other = find_game(against) if against else None
    extra_laws = [agreement_with(lambda: other.start)] if other else []
    laws = [law.name for law in (*laws_of(spec.start), *extra_laws)]
    for name in skip or ():
        if name not in laws:
            raise UserError(f"unknown law {name!r}; the laws are {', '.join(laws)}")
    console = Console(highlight=False, soft_wrap=True)
    with console.status(f"checking {len(laws)} laws") as status:
        played = itertools.count(1)
        broken = find_violation(
            lambda: find_game(game).start,
            games=games,
            skip=skip or (),
            extra_laws=extra_laws,
            on_progress=lambda: status.update(f"checking {len(laws)} laws, random game {next(played)}"),
        )
    if broken:
        console.print(str(broken), markup=False)
        raise FailedError(f"{spec.name} does not pass; the shortest example found is above")
    skipped = f", skipped: {', '.join(skip)}" if skip else ""
    console.print(f"{spec.identity}: {len(laws) - len(skip or ())} laws hold on {games} random games{skipped}\n")
    with console.status("measuring"):
        found = survey(spec.start, games=games)
    required = unmet_requirements("quick", spec.start)
    settings = ", ".join(f"{each.section}.{each.key} = {each.minimum}" for each in required)
    console.print(_report(found, settings), markup=False)
    console.print(f"\nNext: plyzero train {quoted(game)} --run runs/first --minutes 2", markup=False)


def _report(found: Survey, settings: str) -> str:
    shortest, mean, longest, max_plies = found.plies
    first, drawn, second = found.results
    costs = ", ".join(f"{rule} {cost:.1f}" for rule, cost in found.microseconds.items())
    turns = (
        f"the same player moves again after {found.same_mover:.0%} of the moves" if found.same_mover else "alternate"
    )
    declared, tested = found.symmetries
    tested_share = "all" if tested == declared else f"{tested} of them"
    lines = [
        *(f"warning        {sentence}" for sentence in found.warnings),
        f"legal moves    {found.branching[0]:.1f} on average, at most {found.branching[1]}",
        f"game length    {mean:.1f} plies on average, {shortest} to {longest}; max_plies is {max_plies}",
        f"random games   first player wins {first:.0%}, drawn {drawn:.0%}, second player wins {second:.0%}",
        f"turns          {turns}",
        f"symmetries     {f'{declared} declared, {tested_share} tested by playing' if declared else 'none declared'}",
        f"time per call  {costs} (microseconds)",
        f"settings       {f'larger for this game: {settings}' if settings else 'defaults for training'}",
        *(f"advice         {sentence}" for sentence in found.advice),
    ]
    return "\n".join(lines)


def new(name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the game, such as my-game.")]) -> None:
    """Create a project for a game of your own: a folder with rules, tests and a README."""
    from plyzero.check.new_project import make_project

    root = make_project(Path(), name)
    print((root / "README.md").read_text())
    print(f"Created {root}. Next: cd {root}")
