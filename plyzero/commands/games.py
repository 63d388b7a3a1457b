"""new, check: create a game of your own, and test its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plyzero.commands import common
from plyzero.commands.bottleneck import FASTER
from plyzero.commands.machine import default_network
from plyzero.errors import UserError

if TYPE_CHECKING:
    from plyzero.check.compiled_skeleton import Skeleton
    from plyzero.check.survey import Survey
    from plyzero.rules.random_game import PlayedGame

MIN_WIDTH: Final = 80  # columns of a terminal for boards side by side, if it has fewer
PIPED_WIDTH: Final = 100  # columns where the output is no terminal


def _list_laws(wanted: bool) -> None:
    from plyzero.check.violations import ALL_LAWS

    if wanted:
        print("\n".join(f"{law.name:35s} {law.text}" for law in ALL_LAWS))
        raise typer.Exit


def check(
    game: common.GameArgument,
    games: Annotated[
        int | None,
        typer.Option(min=1, help="Number of random games per law; by default as many as have 2,500 positions."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="GAME", help="A second form of the game, to be compared with in everything, move for move."
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAW",
            help="Do not check this law (--laws lists them), because your rules break it on purpose; may be repeated.",
        ),
    ] = None,
    laws: Annotated[  # the callback prints the laws and ends the command
        bool, typer.Option("--laws", is_eager=True, callback=_list_laws, help="List the laws and exit.")
    ] = False,
) -> None:
    """Test whether the rules of GAME are consistent, by playing random games, and print statistics."""
    from plyzero.commands.checking import Checking
    from plyzero.machine import usable_cores
    from plyzero.ops.sizes import describe_sizes
    from plyzero.run.configuration import preset_for, unmet_requirements
    from plyzero.settings import Settings

    spec = common.find_game(game)
    with common.show_progress("compiling or trying the rules") as show, common.data_output() as output:
        checking = Checking(
            spec,
            common.find_game(against) if against else None,
            make=lambda: common.find_game(game).start,
            games=games,
            skip=skip or (),
            show=show,
            output=output,
        )
        checking.test_laws()
        show("measuring")
        found = checking.survey()
        required = unmet_requirements("quick", spec.start)
        quick = Settings.model_validate(preset_for("quick", spec.start))
        sizes = describe_sizes(spec.start, quick, workers=usable_cores())
        network = None if found.compiled or sizes else default_network(spec)
        console = common.make_console(file=output)
        width = max(MIN_WIDTH, console.width) if console.is_terminal else PIPED_WIDTH
        judged = "\n".join(what_to_judge(found, checking.sample.games, width))
    settings = ", ".join(f"{each.section}.{each.key} = {each.minimum}" for each in required)
    notes = [f"note: {law} is not checked: {reason}" for law, reason in spec.start.waived_laws.items()]
    notes += [f"warning: {sentence}" for sentence in found.warnings if sentence not in checking.warned]
    print(*(f"{note}\n" for note in notes), sep="", end="\n" if notes else "")
    print(judged, *sentences(found, settings, sizes), sep="\n")
    if not found.compiled:
        print("\n".join(costs(found.microseconds, network)))
    if not sizes.startswith("warning"):
        print(f"\nNext: plyzero train {quote(game)} --run runs/first --minutes 2")


def what_to_judge(found: Survey, played: Sequence[PlayedGame], width: int) -> Iterator[str]:
    """Yield what shows whether rules without a contradiction are those of the game that is meant: a person knows it."""
    from plyzero.check.ends import ends_of, first_moves, longest_end, shown_ends
    from plyzero.commands.checking import counted_games

    yield "Is this the game you mean?"
    yield from first_moves(played[0].positions[0])
    shortest, mean, longest, max_plies = found.plies
    first, drawn, second = found.results
    wins = f"the first player won {first:.0%}, the second {second:.0%}"
    cut_off = f", and {found.cut_off:.0%} were not over after max_plies" if found.cut_off else ""
    yield f"In {counted_games(found.games)} {wins}; {drawn:.0%} were drawn{cut_off}."
    if found.last_mover is not None:
        yield f"The player who made the last move won {found.last_mover:.0%} of the decided games."
    yield (
        f"A game took {mean:.1f} plies on average, {shortest} to {longest}; max_plies is {max_plies}. "
        f"The longest: {longest_end(played)}."
    )
    yield f"A position had {found.branching[0]:.1f} legal moves on average, at most {found.branching[1]}."
    if found.same_mover:
        yield f"The same player moved again after {found.same_mover:.0%} of the moves."
    else:
        yield "The players moved by turns."
    yield "The games ended as follows, the commonest ends first, each in its shortest game:\n"
    yield from shown_ends(ends_of(played), width)
    yield ""


def sentences(found: Survey, settings: str, sizes: str = "") -> Iterator[str]:
    """Yield what helps to train a game: its symmetries, the settings that are larger for it, sizes, and advice."""
    declared, tested = found.symmetries
    are = "symmetry is" if declared == 1 else "symmetries are"
    tested_share = "tested by playing" if tested == declared else f"{tested} of them tested by playing"
    yield f"{declared} {are} declared, {tested_share}." if declared else f"No {are} declared."
    if settings:
        yield f"Settings that are larger for this game: {settings}."
    elif not sizes:
        yield "The default settings suit this game."
    if sizes:
        yield sizes
    yield from (f"advice: {sentence}" for sentence in found.advice)


def costs(microseconds: dict[str, float], network: tuple[str, float] | None) -> Iterator[str]:
    """Yield a table of the costs of a new position of a search in plain Python, and advice about the largest.

    network: its name and its microseconds for a position; None if they are not known.
    """
    name, cost = network or ("", 0.0)
    total = sum(microseconds.values()) + cost
    yield "\nWhat a worker pays for each new position of a search:\n"
    yield f"  {'':24s} microseconds  share"
    rows = dict(microseconds)
    if network:
        rows[f"network ({name})"] = cost
    for each, spent in rows.items():
        yield f"  {each:24s} {spent:12.1f} {spent / total:6.0%}"
    slowest = max(microseconds, key=lambda rule: microseconds[rule])
    if 2 * cost > total:
        yield "\nThe network takes more time than the rules: they are fast enough."
    else:
        yield f"\nChange first: {slowest}. {FASTER[slowest]}; or compile the rules (docs/compiled-games.md)."


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the game, such as my-game.")],
    original: Annotated[
        str | None, typer.Option("--from", metavar="GAME", help="A game to rewrite, such as azg:my_module:MyGame.")
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Begin the compiled form of the game that --from names, in plain Python.")
    ] = False,
) -> None:
    """Create a project for a game of your own: a folder with rules, tests and, for new rules, a README."""
    from plyzero.check.new_project import make_compiled_project, make_project

    if compiled:
        if not original:
            raise UserError("--compiled needs --from GAME, the game in plain Python whose compiled form is to be begun")
        spec = common.find_game(original)
        with common.show_progress("playing random games"), common.data_output() as output:
            root, skeleton = make_compiled_project(Path(), name, spec)
            print("\n".join(begun(root, skeleton, original)), file=output)
        return
    with common.data_output():
        root = make_project(Path(), name, common.find_game(original) if original else None)
    if original:
        print(f"Created {root}. Next: fill in the methods, and compare them with the original: pytest {root}")
        return
    print((root / "README.md").read_text())
    print(f"Created {root}. Next: cd {root}")


def begun(root: Path, skeleton: Skeleton, original: str) -> Iterator[str]:
    """Yield what a new project for a compiled game has, what its author has to decide, and what comes next."""
    yield f"Created {root}/{root}.py, whose State has {skeleton.state_bytes} bytes."
    yield f"Rules to write: {', '.join(skeleton.rules)}."
    yield from (f"decide: {note}" for note in skeleton.notes)
    game = f"{root}.{root}:{skeleton.class_name}"
    yield f"Next, after each rule: plyzero check {game} --against {quote(original)}"
