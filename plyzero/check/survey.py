"""Statistics of random games: their length and results, the cost of the rules, warnings and advice."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from plyzero.check.laws import evenly_spaced, symmetries_of_start
from plyzero.check.point_of_view import absolute_view, sides_change_wrongly
from plyzero.check.sample_laws import winner
from plyzero.check.sampling import Sample, extent_of
from plyzero.rules.board import glyph
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, Outcome, board_of
from plyzero.rules.random_game import PlayedGame

MIN_DECIDED_GAMES: Final = 20  # games, at least, that must have the same result for a conclusion
MAX_SAME: Final = 0.1  # largest share of the places of a final board that are conspicuous because they are always 0
MIN_FOR_WINNER: Final = 2 / 3  # share of the games, at least, in which the sum of the final board favours the winner
MAX_READ: Final = 100  # positions whose text is read

OWN_LIMIT: Final = (
    ". If real games can be so long, raise max_plies, or count in the rules, end the game in outcome(), and show the "
    "counter in observe()"
)


@dataclass(frozen=True)
class Survey:
    """Statistics of random games.

    games:        number of games.
    branching:    legal actions per position: mean and maximum.
    plies:        length of a game: minimum, mean, maximum, and the max_plies that the game declares.
    results:      shares of the games that the first player won, that were drawn, and that the second player won.
    cut_off:      share of the games that were not over after max_plies.
    last_mover:   share of the games with a winner that the player who moved last has won; None if no game has a winner.
    microseconds: mean time of a call, by the name of the rule, measured in this process.
    same_mover:   share of the moves after which the same player moves again.
    symmetries:   how many are declared, and how many of them playing can test: those that keep the initial position.
    compiled:     whether the rules are compiled.
    warnings:     sentences about what no law forbids but what is unusual.
    advice:       sentences about possible improvements.
    """

    games: int
    branching: tuple[float, int]
    plies: tuple[int, float, int, int]
    results: tuple[float, float, float]
    cut_off: float
    last_mover: float | None
    microseconds: dict[str, float]
    same_mover: float
    symmetries: tuple[int, int]
    compiled: bool
    warnings: tuple[str, ...]
    advice: tuple[str, ...]


def survey(start: Game, *, games: int | None = None, sample: Sample | None = None) -> Survey:
    """Return the statistics of random games from `start`: of `games` of them, or those of `sample`."""
    sample = sample or Sample(start, extent_of(games))
    played, games = sample.games, len(sample.games)
    unfinished = [game.positions[i] for game in played for i in game.decisions]
    legal = [len(position.legal_actions()) for position in unfinished]
    plies = [game.plies for game in played]
    unended = sum(game.positions[-1].outcome() is None for game in played)
    winners = Counter(winner(game.positions[-1]) for game in played)
    microseconds = microseconds_per_call(played)
    same_mover = [
        game.positions[one].to_play == game.positions[other].to_play
        for game in played
        for one, other in itertools.pairwise(game.decisions)
    ]
    declared = start.symmetries()
    symmetries = (len(declared), len(symmetries_of_start(start, declared)))
    won_by_last = last_moves_that_won(played)
    return Survey(
        games=games,
        branching=(float(np.mean(legal or 0)), max(legal, default=0)),
        plies=(min(plies), float(np.mean(plies)), max(plies), start.max_plies),
        results=(winners[0] / games, (winners[None] - unended) / games, winners[1] / games),
        cut_off=unended / games,
        last_mover=float(np.mean(won_by_last)) if won_by_last else None,
        microseconds=microseconds,
        same_mover=float(np.mean(same_mover)) if same_mover else 0.0,
        symmetries=symmetries,
        compiled=isinstance(start, CompiledGame),
        warnings=tuple(warnings(sample)),
        advice=tuple(advice(start, unfinished, symmetries)),
    )


def last_moves_that_won(played: Sequence[PlayedGame]) -> list[bool]:
    """Return whether the player who moved last has won, for each game with a winner."""
    return [
        winner(game.positions[-1]) == game.positions[game.decisions[-1]].to_play
        for game in played
        if game.plies and winner(game.positions[-1]) is not None
    ]


def warnings_of_results(played: Sequence[PlayedGame]) -> Iterator[str]:
    """Yield a sentence for each unusual property of the results of games."""
    winners = [winner(game.positions[-1]) for game in played]
    decided = [each for each in winners if each is not None]
    if len(set(decided)) == 1 and len(decided) >= MIN_DECIDED_GAMES:
        which = f"{len(played)}" if len(decided) == len(played) else f"{len(decided)} decided"
        yield f"all {which} random games were won by player {decided[0]}: is outcome() right?"
    elif not decided and len(played) >= MIN_DECIDED_GAMES:
        yield f"all {len(played)} random games were drawn: is outcome() right?"
    won_by_last = last_moves_that_won(played)
    if is_below_half(won_by_last):
        yield (
            f"in {np.mean(won_by_last):.0%} of the decided games the player who made the last move won; if that player "
            "should win, as with three in a row or a capture of the king, outcome() names the wrong player or play() "
            "passes the turn or the board to the wrong one. It is right if the last move loses, as in misère games"
        )


def warnings_of_final_boards(played: Sequence[PlayedGame]) -> Iterator[str]:
    """Yield a sentence if final_board() is empty, against the winner, leaves out few squares, or does not decide."""
    ends = [game.positions[-1] for game in played if winner(game.positions[-1]) is not None]
    if len(ends) < MIN_DECIDED_GAMES or not ends[0].final_planes:
        return
    boards = np.array([np.asarray(end.final_board(), np.float32) for end in ends])
    if not boards.any():
        yield f"final_board() is 0 everywhere at the end of all {len(ends)} decided random games"
        return
    outcomes = [end.outcome() or Outcome(None) for end in ends]
    sums = [float(board.sum()) * of.value(end.to_play) for board, of, end in zip(boards, outcomes, ends, strict=True)]
    of_winner = [each > 0 for each in sums if each]
    if of_winner and np.mean(of_winner) < MIN_FOR_WINNER:
        yield (
            f"in only {np.mean(of_winner):.0%} of the decided games the sum of final_board() favours the winner: is +1 "
            "for the player to_play and -1 for the other one, and is the winner in outcome() right?"
        )
    same = ~boards.any(axis=0)
    if 0 < same.sum() <= MAX_SAME * same.size:
        plane, row, column = (int(each) for each in np.argwhere(same)[0])
        yield (
            f"final_board() is always 0 at {same.sum()} of {same.size} places, such as plane {plane}, row {row}, "
            f"column {column}, and not at the others: does it leave out a square?"
        )
    results = defaultdict(set)
    for board, outcome, end in zip(boards, outcomes, ends, strict=True):
        seen_by_0 = -board if end.to_play else board
        results[(seen_by_0 + 0.0).tobytes()].add(outcome)
    if different := next((found for found in results.values() if len(found) > 1), None):
        one, other = sorted(different, key=repr)[:2]
        yield (
            f"the same final_board() stands at the end of games with different results, {one} and {other}: it leaves "
            "out something that decides, or outcome() is wrong"
        )


def warnings(sample: Sample) -> Iterator[str]:
    """Yield a sentence for each unusual property of the games of a sample."""
    start, played = sample.start, sample.games
    yield from warnings_of_results(sample.results)
    endless = any(game.positions[-1].outcome() is None for game in sample.shuffled)
    if endless and not start.waived_laws.keys() & {"games_end", "games_with_dice_end"}:
        found = (
            f"a game in which both players move to and fro is not over after max_plies = {start.max_plies} plies. "
            "Self-play stops such games and does not learn from their result"
        )
        yield found if start.is_adapted else found + OWN_LIMIT
    if view := absolute_view(played) or ("" if start.is_adapted else sides_change_wrongly(played)):
        yield view
    yield from warnings_of_final_boards(sample.results)
    seen = [position for game in played for position in game.positions]
    if alike := alike_in_text(evenly_spaced(seen, max_count=MAX_READ)):
        yield (
            f"the printed board shows {alike!r} for both players, or for a piece and an empty cell; print different "
            'texts, which in render() follow the colon, such as pieces=("", "0:♞", "1:♘")'
        )


def alike_in_text(positions: Sequence[Game]) -> str:
    """Return what stands in the text of `positions` for pieces of both players, or for a piece and an empty cell.

    It is "" if nothing does, or if the game writes its own text.
    """
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for position in positions:
        board = position.render() if type(position).__str__ is Game.__str__ else None
        for cell in board.cells if board else ():
            owner = cell.piece.partition(":")[0]
            if cell.shape != "dot" and not cell.shape.startswith("bar"):
                owners[glyph(cell, board.style if board else "")].add(owner if owner in ("0", "1") else "")
    return next((text for text, found in owners.items() if len(found) > 1), "")


def name_without_cells(positions: Sequence[Game]) -> str:
    """Return the name of an action that does not begin with a cell of the board, if most do not; otherwise ""."""
    boards = {
        name: board
        for position in evenly_spaced(positions, max_count=MAX_READ)
        for board in [board_of(position)]
        for name in position.legal_names().split()
    }
    without = [name for name, board in boards.items() if board is not None and not board.path(name)]
    return without[0] if 2 * len(without) > len(boards) else ""


def is_below_half(won: Sequence[bool]) -> bool:
    """Return whether fewer than half are true, by more than three standard deviations of a fair coin."""
    return bool(won) and float(np.mean(won)) < 0.5 - 1.5 / len(won) ** 0.5


def microseconds_per_call(played: Sequence[PlayedGame]) -> dict[str, float]:
    """Return the mean time of a call from Python, in microseconds, by the name of the rule."""
    steps = [(game.positions[i], game.moves[i]) for game in played for i in game.decisions[: game.plies]][:2000]
    found = {}
    rules: dict[str, Callable[[Game, int], object]] = {
        "play": lambda position, move: position.play_unchecked(move),
        "outcome": lambda position, move: position.outcome(),
        "legal_actions": lambda position, move: position.legal_actions(),
        "observe": lambda position, move: position.observe(),
    }
    for name, rule in rules.items():
        began = time.perf_counter()
        for position, move in steps:
            rule(position, move)
        found[name] = 1e6 * (time.perf_counter() - began) / max(1, len(steps))
    return found


def planes_of_actions(start: Game) -> int:
    """Return the policy_planes that a game could declare by what its symmetries do; 0 if none, or if it declares them.

    They could be so if all actions but two at most, such as a pass, are as many for each square, and if every symmetry
    moves them as it moves the squares of the observation.
    """
    squares, symmetries = math.prod(start.observation_shape[1:]), start.symmetries()
    planes, others = divmod(start.num_actions, squares)
    if start.policy_planes or squares == 1 or not planes or others > 2 or not symmetries:
        return 0
    for symmetry in symmetries:
        images = np.tile(np.argsort(symmetry.planes[:squares]), planes)
        if not np.array_equal(symmetry.actions[: planes * squares] % squares, images):
            return 0
    return planes


def advice(start: Game, positions: Sequence[Game], symmetries: tuple[int, int]) -> list[str]:
    """Return a sentence for each possible improvement of a game.

    positions:  unfinished positions of random games.
    symmetries: as in Survey.
    """
    if start.is_adapted:  # plyzero declares what there is to declare
        return []
    found = []
    binary = all(np.isin(position.observe(), (0, 1)).all() for position in positions[:500])
    if binary and np.dtype(start.observation_dtype) != np.bool_:
        found.append("observations have only 0 and 1: observation_dtype = bool stores them in 1/32 of the space")
    if board_of(start) is None:
        found.append("define render: without it people see text and a list of moves, and no board to click on")
    elif example := name_without_cells(positions):
        found.append(
            f"the names of actions such as {example} do not begin with the name of a cell of the board: if they are "
            "played on the board, let render name the cells as the actions do"
        )
    unnamed = not start.roll_names if isinstance(start, CompiledGame) else type(start).roll_name is Game.roll_name
    if start.num_chances and unnamed:
        found.append("define roll_name: without it rolls are called by their numbers, from 0 on")
    if not symmetries[0]:
        found.append(
            "no symmetries are declared: if the board can be turned or reflected and the rules stay the same, declare "
            "it, and the network learns from each game several times"
        )
    elif start.num_actions > 200 and (planes := planes_of_actions(start)):
        found.append(
            f"symmetries move actions as if {planes} belonged to each square: if action is plane * rows * columns + "
            f"square, declare policy_planes = {planes}, and the network is smaller and has the same weights everywhere"
        )
    if symmetries[1] < symmetries[0]:
        found.append(
            f"{symmetries[0] - symmetries[1]} of {symmetries[0]} symmetries change the initial position, so playing "
            "could not test them: make sure that they move actions and planes in the same way"
        )
    return found
