"""Games played in parallel, one in each slot of the search: the Python side of self-play."""

from __future__ import annotations

import logging
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.rules.chance import random_setup
from plyzero.rules.counter_rng import random_bits
from plyzero.rules.declarations import check_not_over, failed_rules
from plyzero.rules.game import Game, find_score_fault
from plyzero.rules.notation import read_starts
from plyzero.rules.user_errors import with_location
from plyzero.run.records import BY_RULE, GAME, MOVE, POSITION, RESIGNED, Games, score_of
from plyzero.search.evaluators import MAX_OBSERVATION, Evaluate, Evaluation, is_evaluable
from plyzero.search.known_position import KnownPosition
from plyzero.search.slots import ALGORITHMS, SearchSlots
from plyzero.search.tree import NETWORK, NO_EDGE
from plyzero.selfplay.step import (
    IN_PLAY,
    MOVE_CHOSEN,
    NOBODY,
    NOT_BEGUN,
    OVER,
    PLAYED,
    RECORD_FULL,
    SEARCHING,
    STEP_SETTINGS,
    SUBTREE_KEPT,
    GameRecords,
    begin_game,
    finish_move,
    play_on,
    roll,
)
from plyzero.settings import Settings

log = logging.getLogger(__name__)

PAGE_BYTES: Final = 1 << 16
PAGE_MOVES: Final = 4096
"""Size of a game's tables: bytes of observations, and number of legal actions. Earlier rows are kept compressed."""

MAX_GIVEN_UP: Final = 3
"""Number of games that may be given up because the rules fail; every 100 finished games allow another one."""


GAMES_WITHOUT_MODEL: Final = 16
"""Number of games at once while there is no network, which would need a large batch: the first games end sooner."""


class GamesInPlay:
    """One game per slot, from its random opening to its end. All randomness in a game comes from its seed.

    search:  the slots.
    seconds: time spent so far, by part: `network` (the evaluator), `search` (compiled: search, choice of moves and
             rules), `rules` (in plain Python) and `record` (finished games made into records).
    """

    def __init__(
        self,
        start: Game,
        settings: Settings,
        *,
        seeds: Iterator[int],
        one_by_one: bool = False,
        spread: int = 0,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Begin `settings.selfplay.parallel_games` games from `start`; each takes the next of `seeds`.

        one_by_one: begin with one game, and with one more for each `_length` moves, so that games do not end all at
                    once. While there is no model there are at most GAMES_WITHOUT_MODEL.
        spread:     begin the first games with up to this many random moves, so that they are at different plies.
        clock:      measures `seconds`.
        """
        selfplay, plies = settings.selfplay, start.max_plies
        games = selfplay.parallel_games
        simulations = max(selfplay.simulations, selfplay.fast_simulations)
        self._start, self._seeds, self._clock = start, seeds, clock
        self.search = SearchSlots(
            start,
            settings.search,
            slots=games,
            simulations=2 * simulations if selfplay.reuse_trees else simulations,
            cache_bytes=selfplay.cache_mb << 20,
            clock=clock,
        )
        size = math.prod(start.observation_shape)
        self._packs_bits = np.dtype(start.observation_dtype).kind == "b"
        row_bytes = -(-size // 8) if self._packs_bits else 4 * size
        room = min(plies, max(1, PAGE_BYTES // row_bytes))
        room_for_moves = max(start.num_actions, min(plies * start.num_actions, PAGE_MOVES))
        self._records = GameRecords(
            games=np.zeros(games, IN_PLAY),
            positions=np.zeros((games, room), POSITION),
            moves=np.zeros((games, room_for_moves), MOVE),
            observations=np.zeros((games, room, row_bytes), np.uint8),
            luck=np.zeros((games, room), np.float32),
            settings=_step_settings(settings, plies, packs_bits=self._packs_bits),
            counts=np.zeros(5, np.int64),
            starts=_table_of_starts(settings, start),
        )
        self._records_luck = bool(start.num_chances) and settings.trainer.luck_adjustment
        self._start_share = selfplay.start_share
        self._may_give_up = float(MAX_GIVEN_UP)
        self._pages: list[list[list[bytes]]] = [[] for _ in range(games)]
        self._seconds = {"network": 0.0, "search": 0.0, "rules": 0.0, "record": 0.0}
        self._records.games["phase"] = NOT_BEGUN
        self._length: float = np.inf  # moves of the newest finished game that a search has chosen
        self._begun = 1 if one_by_one else games  # slots with a game, the first ones
        self._begun_at = 0  # `moves` when the last of them began
        usual = self._records.settings["opening_plies"].copy()
        self._records.settings["opening_plies"] = np.maximum(usual, min(spread, plies - 1))
        for slot in range(self._begun):
            self._begin_game(slot)
        self._records.settings["opening_plies"] = usual
        self._play(fence=0, step=0)  # up to the first evaluations, so no game ends

    def run(self, evaluate: Evaluate, *, fence: int = 0, step: int = 0) -> list[Games]:
        """Evaluate the waiting positions, at most one per slot, and play on; return the games that end.

        fence, step: the model of `evaluate`, for the records; 0 = none. The fence is the number of the trainer's start
                     that made the model.
        """
        began = self._clock()
        self.search.ask(evaluate)
        self._seconds["network"] += self._clock() - began
        return self._play(fence, step)

    def answer(
        self, evaluation: Evaluation | None, *, evaluator: object, fence: int = 0, step: int = 0, seconds: float = 0.0
    ) -> list[Games]:
        """Play on with the evaluation of `search.leaves`, None if there were none; return the games that end.

        evaluator:   equal for two evaluations if and only if the same model made them.
        fence, step: the model, as in `run`.
        seconds:     time that was spent waiting for the evaluation.
        """
        self._seconds["network"] += seconds
        if evaluation is not None:
            self.search.answer(evaluation, evaluator)
        return self._play(fence, step)

    def give_up_impossible(self) -> bool:
        """Give up the games whose waiting observation no network can take; return whether there were any.

        The other games go on waiting.
        """
        trees = self.search.trees
        waiting = np.flatnonzero(trees.slots["phase"] == NETWORK).tolist()
        impossible = [slot for slot in waiting if not is_evaluable(trees.observations[slot])]
        for slot in impossible:
            why = f"observe() returns numbers beyond {MAX_OBSERVATION:g}, or NaN"
            self._give_up(slot, UserError(failed_rules(self._start, why)))
        return bool(impossible)

    @property
    def moves(self) -> int:
        """Number of moves chosen by a search so far."""
        return int(self._records.counts[0])

    @property
    def plies(self) -> list[int]:
        """Number of plies of each game under way so far."""
        return [int(plies) for plies in self._records.games["plies"][: self._begun]]

    @property
    def simulations(self) -> int:
        """Number of simulations made to choose these moves."""
        return int(self._records.counts[1])

    @property
    def resignations(self) -> NDArray[np.int64]:
        """Numbers of resigned games, of games played on to test a resignation, and of those of them not lost."""
        return self._records.counts[2:]

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent so far, by part."""
        return {**self._seconds, "rules": self._seconds["rules"] + self.search.rules_seconds}

    def _play(self, fence: int, step: int) -> list[Games]:
        """Search and play on until every slot waits for the network, or has finished one game and begun another.

        Each slot finishes at most one game in a call, and its next game stops where it ends (with plain rules, at its
        next chosen move): with a cache that knows whole games this would go on forever. A game in which the rules fail
        is given up for another one.
        """
        search, phase = self.search, self._records.games["phase"]
        finished: dict[int, Games] = {}
        self._begin_further_games(has_model=fence > 0)
        while True:
            began = self._clock()
            logits, wdl = search.take_answer()
            search.waiting = play_on(search.trees, logits, wdl, self._records, fence, step)
            self._seconds["search"] += self._clock() - began
            if search.waiting == self._begun:
                break
            try:
                supplied = search.supply()
            except (Exception, SystemExit) as error:
                self._give_up(search.failing, error)
                continue
            if supplied:
                continue
            full = np.flatnonzero(phase == RECORD_FULL).tolist()
            for slot in full:
                self._empty_record(slot)
            idle = np.flatnonzero(phase[: self._begun] != SEARCHING).tolist()
            stopped = [slot for slot in idle if slot not in finished]
            for slot in stopped:
                if phase[slot] == MOVE_CHOSEN:
                    try:
                        self._play_chosen_move(slot)
                    except (Exception, SystemExit) as error:
                        self._give_up(slot, error)
                if phase[slot] == OVER:
                    outcome = search.position(slot).outcome() if self._start.max_score else None
                    if fault := outcome and find_score_fault(outcome, self._start.max_score):
                        self._give_up(slot, UserError(failed_rules(self._start, fault)))
                        continue
                    finished[slot] = self._finish(slot, score_of(outcome, self._start))
                    self._begin_game(slot)
            if not stopped and not full:
                break
        return list(finished.values())

    def _begin_further_games(self, *, has_model: bool) -> None:
        """Begin one more game if as many moves were played since the last one as the newest finished game has.

        So the number of games doubles within the length of a game, and they are spread over all of its plies.
        """
        slots = len(self._records.games)
        if not has_model:
            slots = min(slots, GAMES_WITHOUT_MODEL)
        if self._begun < slots and self.moves - self._begun_at >= self._length:
            self._begin_game(self._begun)
            self._begun += 1
            self._begun_at = self.moves

    def _begin_game(self, slot: int) -> None:
        game = self._records.games[slot]
        game["seed"], game["edge"] = next(self._seeds), NO_EDGE
        part = random_bits(game["seed"], 3 << 30) / 2**32  # a counter far from those of rolls and of all else
        others = len(self._records.starts) - 1
        game["start"] = 0
        if others and part < self._start_share:
            game["start"] = 1 + int(part / self._start_share * others)
        try:
            position = self._first_position(slot)
            check_not_over(position.position)
        except (Exception, SystemExit) as error:
            self._give_up(slot, error)
            return
        self.search.place(slot, position)
        begin_game(self.search.trees, self._records, slot)

    def _first_position(self, slot: int) -> KnownPosition:
        """Return the position that the game in a slot begins with, after its set-up and the first rolls, if any."""
        start, rolls = self._start, 0
        if start.awaits_setup:
            start, rolls = start.set_up(random_setup(self._records.games[slot]["seed"], start.setups)), 1
        return self._roll(slot, KnownPosition(start), ply=0, number=rolls)

    def _give_up(self, slot: int, error: BaseException) -> None:
        """Begin another game where the rules have failed with `error`; raise UserError if that happens too often."""
        if isinstance(error, MemoryError):
            raise error
        is_sentence = isinstance(error, UserError)
        sentence = str(error) if is_sentence else failed_rules(self._start, with_location(error))
        self._may_give_up -= 1
        if self._may_give_up < 0:
            raise UserError(sentence) from error
        log.warning("a game was given up: %s", sentence)
        self._pages[slot] = []
        self._begin_game(slot)

    def _play_chosen_move(self, slot: int) -> None:
        """Play, by rules in plain Python, the move that `play_on` has chosen."""
        began = self._clock()
        plies, row = self._records.games[slot][["plies", "rows"]].tolist()
        action = int(self._records.positions[slot, row]["action"])
        following = self._roll(slot, self.search.root(slot).after(action), ply=plies + 1)
        became = finish_move(self.search.trees, self._records, slot, following.outcome)
        if became == SUBTREE_KEPT:
            self.search.place_subtree(slot)
        elif became == PLAYED:
            self.search.place(slot, following)
        self._seconds["rules"] += self._clock() - began

    def _roll(self, slot: int, position: KnownPosition, *, ply: int, number: int = 0) -> KnownPosition:
        """Return `position` after the rolls, if any, before the move number `ply`; `number` were made before."""
        game = self._records.games[slot]
        nodes, edges = self.search.trees.nodes[slot], self.search.trees.edges[slot]
        while len(position.chances):
            position = position.after(roll(game, position.chances, nodes, edges, ply, number))
            number += 1
        return position

    def _recorded(self, slot: int) -> list[NDArray[Any]]:
        """Return the part of a game's record that is in the tables: positions, moves, observations and luck."""
        game, records = self._records.games[slot], self._records
        rows = int(game["rows"])
        parts = [records.positions[slot, :rows], records.moves[slot, : game["moves"]]]
        return [*parts, records.observations[slot, :rows], records.luck[slot, :rows]]

    def _empty_record(self, slot: int) -> None:
        """Compress the part of a game's record that is in the tables, so that there is room for more."""
        began = self._clock()
        self._pages[slot].append([zlib.compress(part.tobytes(), level=1) for part in self._recorded(slot)])
        game = self._records.games[slot]
        game["rows"] = 0
        game["moves"] = 0
        game["phase"] = SEARCHING
        self._seconds["record"] += self._clock() - began

    def _finish(self, slot: int, score: float) -> Games:
        """Return the record of the game in a slot, which is over with this `score` of GAME, and count resignations."""
        began = self._clock()
        self._may_give_up = min(MAX_GIVEN_UP, self._may_give_up + 1 / 100)
        game = self._records.games[slot]
        self._length = float(game["plies"] - game["opening_plies"])
        self._count_resignation(game)
        if self._packs_bits and not game["is_binary"]:
            raise ValueError("observation_dtype is bool, but what observe() returns is not all 0 and 1")
        record = np.zeros(1, GAME)
        record["id"] = game["seed"]
        record["seed"] = game["seed"]
        record["positions"] = game["plies"]
        record["opening_plies"] = game["opening_plies"]
        record["score"] = score
        record["winner"] = game["outcome"]
        record["end"] = game["end"]
        positions, moves, observations, luck = self._whole_record(slot)
        kept = luck.copy() if self._records_luck else None
        games = Games(record, positions.copy(), moves.copy(), self._unpacked(observations), kept)
        self._seconds["record"] += self._clock() - began
        return games

    def _count_resignation(self, game: np.void) -> None:
        """Count a finished game that was resigned, or in which a player would have resigned."""
        counts = self.resignations  # resigned, tested, false ones
        if game["end"] == RESIGNED:
            counts[0] += 1
        if game["end"] == BY_RULE and game["resigner"] != NOBODY:
            counts[1] += 1
            if game["outcome"] != 1 - game["resigner"]:
                counts[2] += 1

    def _whole_record(self, slot: int) -> list[NDArray[Any]]:
        """Return the tables of a game, as `_recorded`, after the pages that were taken from them, which it drops."""
        tables = self._recorded(slot)
        pages = self._pages[slot]
        self._pages[slot] = []
        if not pages:
            return tables
        pages_of_tables = zip(*pages, strict=True)
        return [_joined(before, table) for before, table in zip(pages_of_tables, tables, strict=True)]

    def _unpacked(self, rows: NDArray[np.uint8]) -> NDArray[Any]:
        """Return observations, `[plies, C, H, W]`, from their rows of bytes."""
        shape = self._start.observation_shape
        size = math.prod(shape)
        numbers = np.unpackbits(rows, axis=1, count=size) if self._packs_bits else rows.view(np.float32)
        return numbers.astype(self._start.observation_dtype).reshape(len(rows), *shape)


def _joined(pages: Iterable[bytes], rest: NDArray[Any]) -> NDArray[Any]:
    """Return the compressed pages of a table and the array that follows them as one array."""
    content = b"".join([*map(zlib.decompress, pages), rest.tobytes()])
    return np.frombuffer(content, rest.dtype).reshape(-1, *rest.shape[1:])


def _table_of_starts(settings: Settings, start: Game) -> NDArray[np.int64]:
    """Return the moves of `selfplay.starts` as `GameRecords.starts`."""
    file = settings.selfplay.starts
    given = read_starts(Path(file), start) if file else []
    table = np.full((1 + len(given), max(map(len, given), default=0)), -1, np.int64)
    for row, moves in enumerate(given, 1):
        table[row, : len(moves)] = moves
    return table


def _step_settings(settings: Settings, max_plies: int, *, packs_bits: bool) -> NDArray[np.void]:
    """Return the settings, `[1]` STEP_SETTINGS, for a game of at most `max_plies`."""
    search, selfplay = settings.search, settings.selfplay
    longest_opening = selfplay.opening_plies
    if longest_opening is None:
        longest_opening = min(16, math.ceil(2 * max_plies / 5))
    record = np.zeros(1, STEP_SETTINGS)
    record["max_plies"] = max_plies
    record["opening_plies"] = min(longest_opening, max_plies - 1)
    record["temperature"] = selfplay.temperature
    record["final_temperature"] = selfplay.final_temperature
    # The default is at most 40, because max_plies may be many times the length of a game.
    record["temperature_plies"] = selfplay.temperature_plies or min(max(1.0, max_plies / 5), 40)
    record["c_visit"] = search.c_visit
    record["c_scale"] = search.c_scale
    record["full_search_probability"] = selfplay.full_search_probability
    record["simulations"] = selfplay.simulations
    record["fast_simulations"] = selfplay.fast_simulations
    record["algorithm"] = ALGORITHMS[search.algorithm]
    record["fast_algorithm"] = ALGORITHMS[selfplay.fast_algorithm]
    record["reuse_trees"] = selfplay.reuse_trees
    record["packs_bits"] = packs_bits
    record["resign_below"] = selfplay.resign_below
    return record
