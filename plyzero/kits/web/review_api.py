"""The review of a game for the page: progress while it is made, then the result with the places of its moves."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from plyzero.kits.review.measuring import scale_of
from plyzero.kits.review.reviewing import cost, review
from plyzero.kits.review.scale import Scale
from plyzero.kits.review.tables import ReviewedGame
from plyzero.kits.review.values import Valuer
from plyzero.kits.web.searches import Event, Report
from plyzero.play.session import SIDES
from plyzero.play.spots import line_of, written_names

if TYPE_CHECKING:
    from plyzero.kits.engines.game_record import GameRecord
    from plyzero.play.judge import Judge

WAIT_SECONDS = 0.2
"""Time between two reports while another visitor's review measures the scale."""


class Reviews:
    """The reviews of a server. It remembers the scale of the game for each judge, and writes nothing."""

    def __init__(self) -> None:
        self._scales: dict[str, Scale] = {}  # identity of the judge -> scale
        self._measuring = threading.Lock()

    def measure(self, judge: Judge, report: Report) -> None:
        """Find the scale of the game, once for each judge, and report `measuring`: [made, all] games."""
        while not self._measuring.acquire(timeout=WAIT_SECONDS):
            report({})  # ends the search when the visitor has left
        try:
            if judge.bot.identity not in self._scales:
                valuer = Valuer(judge.bot, on_search=lambda made: report({}))
                self._scales[judge.bot.identity] = scale_of(
                    judge,
                    valuer,
                    judge.network,
                    lambda made, games: report({"measuring": [made, games]}),
                    may_write=False,
                )
        finally:
            self._measuring.release()

    def review(self, judge: Judge, record: GameRecord, report: Report) -> Event:
        """Return the review of a game as JSON, as plyzero.kits.review.description has it, with lines as by `line_of`.

        Each turn also has its `moves` and the `best` ones as people write them, in `written`.

        The scale must have been measured. Before, `done_of` is reported: the number of simulations made, and about that
        of the first search of all turns; what is made beyond it is searched on where a loss is not clear.
        """
        made, valuer, simulations = 0, Valuer(judge.bot), judge.bot.simulations
        expected = cost(valuer, record, simulations)

        def show(number: int) -> None:
            nonlocal made
            made += number
            report({"done_of": [made, expected]})

        valuer.on_search = show
        found = review(valuer, self._scales[judge.bot.identity], record, simulations)
        described = ReviewedGame(1, SIDES, record, found).describe(judge.sentence)
        for turn in cast(list[dict[str, Any]], described["turns"]):
            before, after = record.positions[turn["ply"]], record.positions[turn["ply"] + turn["plies"]]
            turn["written"] = {key: written_names(before, turn[key]) for key in ("moves", "best")}
            turn["line"] = line_of(before, turn["line"])
            turn["answer"] = line_of(after, turn["answer"])
        return described
