"""check: the laws of a game are tested, and what is found is told while it is being found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from plyzero.check.agreement import agreement_with, encoding_agreement_with, not_compared
from plyzero.check.rule_by_rule import RIGHT, UNWRITTEN, compare_rules, is_comparable
from plyzero.check.sampling import POSITIONS, RulesFailedError, Sample, extent_of
from plyzero.check.survey import Survey, survey, warnings_of_results
from plyzero.check.violations import RULES_ANSWER, Violation, find_violation, laws_of
from plyzero.check.wording import whose_fault
from plyzero.errors import FailedError, UserError
from plyzero.rules.catalog import GameSpec
from plyzero.rules.compiled_game import CompiledGame, ForeignGame, unwritten_rules
from plyzero.rules.game import Game
from plyzero.rules.user_errors import with_location

FORMER_LAWS = ("last_mover_wins_some",)
"""Laws of version 0.2 that are warnings now; to skip one is no error."""


class Checking:
    """The test of a game.

    sample: the random games and positions, for laws and statistics.
    warned: the warnings that were printed while the laws were tested.
    """

    def __init__(
        self,
        spec: GameSpec,
        other: GameSpec | None,
        *,
        make: Callable[[], Game],
        games: int | None,
        skip: Sequence[str],
        show: Callable[[str], None],
        output: TextIO,
    ) -> None:
        """Raises UserError if `skip` names a law that the game does not have.

        other: the game to compare with; None for none.
        make:  returns a new initial position.
        games: the number of random games for each law; None for enough to have POSITIONS positions.
        skip:  the names of laws that are not tested.
        show:  tells what is being done.
        """
        self.spec, self.other, self.make, self.games = spec, other, make, games
        self.show, self.output = show, output
        self.sample = Sample(spec.start, extent_of(games))
        self.warned: list[str] = []
        self._first: list[Violation] = []
        self._against = (
            [agreement_with(lambda: other.start), encoding_agreement_with(lambda: other.start)] if other else []
        )
        names = [law.name for law in (*laws_of(spec.start), *self._against)]
        self._skipped = [name for name in skip if name not in (*FORMER_LAWS, *spec.start.waived_laws)]
        for name in self._skipped:
            if name == RULES_ANSWER.name:
                raise UserError(f"{name} cannot be skipped: rules that raise an error cannot be checked")
            if name not in names:
                raise UserError(f"unknown law {name!r}; the laws are {', '.join(names)}")
        self._count = len(names) - len(self._skipped)

    def test_laws(self) -> None:
        """Print that the laws hold, or print the mistake and raise FailedError."""
        start = self.spec.start
        if self.other and isinstance(start, CompiledGame) and (missing := unwritten_rules(start.rule_functions)):
            self.show("comparing the rules")
            wrong = self._show_rules()
            first = f"wrong: {', '.join(wrong)}; " if wrong else ""
            raise FailedError(f"{self.spec.name} does not pass: {first}not written yet: {', '.join(missing)}")
        if broken := self._find():
            if broken not in self._first:
                print(*(["\na shorter example:"] if self._first else []), broken, sep="\n", file=self.output)
            self._show_rules()
            fault = whose_fault(start, broken.law.name)
            raise FailedError(f"{self.spec.name} does not pass; the shortest example found is above{fault}")
        print(f"{self.spec.identity}: {self._held()}", file=self.output, flush=True)

    def survey(self) -> Survey:
        """Return the statistics of the games."""
        return survey(self.spec.start, sample=self.sample)

    def _find(self) -> Violation | None:
        start = self.spec.start
        if isinstance(start, ForeignGame) and start.tried(self._is_clean):
            return None
        try:
            return find_violation(
                self.make,
                games=self.games,
                sample=self.sample,
                skip=self._skipped,
                extra_laws=self._against,
                on_progress=self._show_progress,
                on_violation=self._show_first,
                on_games=self._show_results,
            )
        except UserError:  # a rule cannot be compiled
            self._show_rules()
            raise

    def _is_clean(self, checked: Game) -> bool:
        """Return whether the laws hold, for rules that may crash the process that asks."""
        guarded = Sample(checked, extent_of(self.games))
        broken = find_violation(
            self.make, games=self.games, sample=guarded, skip=self._skipped, extra_laws=self._against
        )
        return not broken and bool(survey(checked, sample=guarded))

    def _held(self) -> str:
        """Return what has held, and the lines of what was not compared."""
        extent = f"{POSITIONS:,} positions of random games" if self.games is None else counted_games(self.games)
        without = f", skipped: {', '.join(self._skipped)}" if self._skipped else ""
        held = f"{self._count} laws hold on {extent}{without}"
        if self.other is None:
            return f"{held}\n"
        parts = [f"{part} ({reason})" for part, reason in not_compared(self.spec.start, self.other.start).items()]
        apart = f"not compared with {self.other.name}: {'; '.join(parts)}\n" if parts else ""
        return f"{held}, and it agrees with {self.other.name}\n{apart}"

    def _show_progress(self, doing: str, number: int) -> None:
        self.show(f"checking {self._count} laws: {doing}, game {number}")

    def _show_first(self, found: Violation) -> None:
        self._first.append(found)
        print(found, file=self.output, flush=True)

    def _show_results(self, sample: Sample) -> None:
        self.warned.extend(warnings_of_results(sample.results))
        print(*(f"warning: {sentence}\n" for sentence in self.warned), sep="", end="", file=self.output, flush=True)

    def _show_rules(self) -> list[str]:
        """Print how the rules compare one by one, if the forms of both games allow it; return those that are wrong."""
        start, other = self.spec.start, self.other
        if other is None or not is_comparable(start, other.start):
            return []
        try:
            compared = compare_rules(start, other.start, games=self.games)
        except RulesFailedError as failed:
            raise FailedError(f"{other.name} cannot be played: {with_location(failed.error)}") from failed
        print(compared, file=self.output, flush=True)
        return [rule for rule, state in compared.rules.items() if state not in (RIGHT, UNWRITTEN)]


def counted_games(number: int) -> str:
    """Return the number of random games in words."""
    return "1 random game" if number == 1 else f"{number} random games"
