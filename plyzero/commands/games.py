"""new, check: create a game of your own, and test its rules."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plyzero.commands import common
from plyzero.commands.bottleneck import FASTER
from plyzero.commands.machine import default_network
from plyzero.errors import FailedError, UserError

if TYPE_CHECKING:
    from plyzero.check.compiled_skeleton import Skeleton
    from plyzero.check.rule_by_rule import Comparison
    from plyzero.check.survey import Survey
    from plyzero.check.violations import Violation
    from plyzero.rules.catalog import GameSpec
    from plyzero.rules.game import Game
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
    from plyzero.check.agreement import agreement_with, encoding_agreement_with
    from plyzero.check.rule_by_rule import RIGHT, UNWRITTEN
    from plyzero.check.sampling import POSITIONS, Sample, extent_of
    from plyzero.check.survey import survey, warnings_of_results
    from plyzero.check.violations import RULES_ANSWER, find_violation, laws_of
    from plyzero.check.wording import whose_fault
    from plyzero.machine import usable_cores
    from plyzero.ops.sizes import describe_sizes
    from plyzero.rules.compiled_game import CompiledGame, ForeignGame, unwritten_rules
    from plyzero.run.configuration import preset_for, unmet_requirements
    from plyzero.settings import Settings

    spec = common.find_game(game)
    other = common.find_game(against) if against else None
    extra_laws = [agreement_with(lambda: other.start), encoding_agreement_with(lambda: other.start)] if other else []
    all_laws = [*laws_of(spec.start), *extra_laws]
    names = [law.name for law in all_laws]
    # The first of these was a law of version 0.2 and is now a warning.
    skipped = [name for name in skip or () if name not in ("last_mover_wins_some", *spec.start.waived_laws)]
    for name in skipped:
        if name == RULES_ANSWER.name:
            raise UserError(f"{name} cannot be skipped: rules that raise an error cannot be checked")
        if name not in names:
            raise UserError(f"unknown law {name!r}; the laws are {', '.join(names)}")
    sample = Sample(spec.start, extent_of(games))
    with common.show_progress("compiling or trying the rules") as show, common.data_output() as output:

        def on_progress(doing: str, number: int) -> None:
            show(f"checking {len(names) - len(skipped)} laws: {doing}, game {number}")

        first: list[Violation] = []

        def show_first(found: Violation) -> None:
            first.append(found)
            print(found, file=output, flush=True)

        shown: list[str] = []

        def show_results(sample: Sample) -> None:
            shown.extend(warnings_of_results(sample.games))
            print(*(f"warning: {sentence}\n" for sentence in shown), sep="", end="", file=output, flush=True)

        find = functools.partial(
            find_violation, lambda: common.find_game(game).start, games=games, skip=skipped, extra_laws=extra_laws
        )

        def is_clean(checked: Game) -> bool:
            guarded = Sample(checked, extent_of(games))
            return not find(sample=guarded) and bool(survey(checked, sample=guarded))

        def show_rules() -> list[str]:
            """Print the comparison rule by rule, if there is one; return the rules that are wrong."""
            compared = _rule_by_rule(spec.start, other, games) if other else None
            if compared is None:
                return []
            print(compared, file=output, flush=True)
            return [rule for rule, state in compared.rules.items() if state not in (RIGHT, UNWRITTEN)]

        if other and isinstance(spec.start, CompiledGame) and (missing := unwritten_rules(spec.start.rule_functions)):
            show("comparing the rules")
            wrong = show_rules()
            first_wrong = f"wrong: {', '.join(wrong)}; " if wrong else ""
            raise FailedError(f"{spec.name} does not pass: {first_wrong}not written yet: {', '.join(missing)}")
        broken = None
        try:
            if not isinstance(spec.start, ForeignGame) or not spec.start.tried(is_clean):
                broken = find(sample=sample, on_progress=on_progress, on_violation=show_first, on_games=show_results)
        except UserError:  # a rule cannot be compiled
            show_rules()
            raise
        if broken:
            if first and broken not in first:
                print("\na shorter example:", file=output)
            if broken not in first:
                print(broken, file=output)
            show_rules()
            fault = whose_fault(spec.start, broken.law.name)
            raise FailedError(f"{spec.name} does not pass; the shortest example found is above{fault}")
        without = f", skipped: {', '.join(skipped)}" if skipped else ""
        extent = f"{POSITIONS:,} positions of random games" if games is None else _random_games(games)
        agrees = f", and it agrees with {other.name}" if other else ""
        held = f"{len(names) - len(skipped)} laws hold on {extent}{without}{agrees}"
        apart = _not_compared(spec.start, other) if other else ""
        print(f"{spec.identity}: {held}\n{apart}", file=output, flush=True)
        show("measuring")
        found = survey(spec.start, sample=sample)
        required = unmet_requirements("quick", spec.start)
        quick = Settings.model_validate(preset_for("quick", spec.start))
        sizes = describe_sizes(spec.start, quick, workers=usable_cores())
        network = None if found.compiled or sizes else default_network(spec)
        console = common.make_console(file=output)
        width = max(MIN_WIDTH, console.width) if console.is_terminal else PIPED_WIDTH
        judged = "\n".join(what_to_judge(found, sample.games, width))
    settings = ", ".join(f"{each.section}.{each.key} = {each.minimum}" for each in required)
    notes = [f"note: {law} is not checked: {reason}" for law, reason in spec.start.waived_laws.items()]
    notes += [f"warning: {sentence}" for sentence in found.warnings if sentence not in shown]
    print(*(f"{note}\n" for note in notes), sep="", end="\n" if notes else "")
    print(judged, *sentences(found, settings, sizes), sep="\n")
    if not found.compiled:
        print("\n".join(costs(found.microseconds, network)))
    if not sizes.startswith("warning"):
        print(f"\nNext: plyzero train {quote(game)} --run runs/first --minutes 2")


def _rule_by_rule(start: Game, other: GameSpec, games: int | None) -> Comparison | None:
    """Return how the rules of a compiled game compare with those of the other one; None if the forms differ."""
    from plyzero.check.rule_by_rule import compare_rules, is_comparable
    from plyzero.check.sampling import RulesFailedError
    from plyzero.rules.user_errors import with_location

    if not is_comparable(start, other.start):
        return None
    try:
        return compare_rules(start, other.start, games=games)
    except RulesFailedError as failed:
        raise FailedError(f"{other.name} cannot be played: {with_location(failed.error)}") from failed


def _not_compared(start: Game, other: GameSpec) -> str:
    """Return a line with the parts of two games that cannot be compared, and the reasons; "" if there are none."""
    from plyzero.check.agreement import not_compared

    parts = [f"{part} ({reason})" for part, reason in not_compared(start, other.start).items()]
    return f"not compared with {other.name}: {'; '.join(parts)}\n" if parts else ""


def _random_games(number: int) -> str:
    return "1 random game" if number == 1 else f"{number} random games"


def what_to_judge(found: Survey, played: Sequence[PlayedGame], width: int) -> Iterator[str]:
    """Yield what shows whether rules without a contradiction are those of the game that is meant: a person knows it."""
    from plyzero.check.ends import ends_of, first_moves, longest_end, shown_ends

    yield "Is this the game you mean?"
    yield from first_moves(played[0].positions[0])
    shortest, mean, longest, max_plies = found.plies
    first, drawn, second = found.results
    wins = f"the first player won {first:.0%}, the second {second:.0%}"
    cut_off = f", and {found.cut_off:.0%} were not over after max_plies" if found.cut_off else ""
    yield f"In {_random_games(found.games)} {wins}; {drawn:.0%} were drawn{cut_off}."
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
