"""The learning guard: which measurements of a run mean that it does not learn, with the likely cause and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from plyzero.trainer.diagnosis.consistency import Agreement, Consistency
from plyzero.trainer.diagnosis.perspective import PointOfView

NEWEST_GAMES: Final = 500  # number of games in the statistics; no warning about them is based on fewer
MIN_CONSTANT_GAMES: Final = 20  # games that must share one observation before there is a warning
MIN_OPENINGS: Final = 10  # smallest number of different openings in the newest games
MAX_STALE_SECONDS: Final = 300.0  # longest time that a worker may play with an outdated model
MIN_VALUE: Final = 0.02  # skill below which a network may not have learned
MIN_POLICY: Final = 0.25  # the same for the policy, a part of which the legal actions alone predict
MIN_KNOWN_VALUE: Final = 0.1  # skill above which the observation shows enough to predict the mover's result
DIVERGED: Final = -0.5  # skill of the policy, on the games it is trained on, below which a network has diverged
CONFIRMATIONS: Final = 3  # models in a row for which a warning about what the network has learned must be true
MAX_DIFFERENT: Final = 0.05  # share of the compared positions; some games rarely end by a rule that is not shown
MIN_DIFFERENT: Final = 3  # positions that must contradict each other


class Learned(NamedTuple):
    """Skill scores of a network on some positions: 1 = the targets, 0 = a guess, below 0 = worse.

    The score is 1 - KL(target || network) / KL(target || guess). The guess for the policy is the uniform distribution
    over the legal actions; for the value, the mean target of all positions. None means that there is nothing to learn:
    there are no positions, or the guess is almost perfect.
    """

    policy: float | None = None
    value: float | None = None


class GameStatistics(NamedTuple):
    """Statistics of the newest games.

    games:     number of games.
    openings:  number of different openings.
    drawn:     share of drawn games.
    truncated: share of games that were truncated at max_plies.
    won:       shares of games that player 0 and player 1 won.
    moved:     shares of the plies that player 0 and player 1 made.
    foresight: mean over the games, of the mean product of the value that the network gave a position and the result
               for the player to move; and its standard error. Below 0, the values predict the opposite.
    """

    games: int
    openings: int
    drawn: float
    truncated: float
    won: tuple[float, float]
    moved: tuple[float, float]
    foresight: tuple[float, float]


class Staleness(NamedTuple):
    """The worker that plays with the most outdated model.

    worker:  its name.
    seconds: time since a newer model was published; 0 if all workers are up to date.
    """

    worker: str = ""
    seconds: float = 0.0


class Measurements(NamedTuple):
    """The measurements when a model is published.

    statistics:  of the newest games.
    consistency: of the newest positions.
    view:        of the observation; None before there are enough games, and once the network has learned the values.
    held_out:    what the network has learned about positions that it was never trained on.
    trained:     what it has learned about positions in the window.
    stale:       the worker with the most outdated model.
    mature:      whether the network has been trained for long enough to have learned something.
    """

    statistics: GameStatistics
    consistency: Consistency
    view: PointOfView | None
    held_out: Learned
    trained: Learned = Learned()
    stale: Staleness = Staleness()
    mature: bool = False


def diagnose(game: str, measured: Sequence[Measurements]) -> str | None:
    """Return a warning with its most likely cause and what to do, None if nothing is wrong.

    measured: the measurements of the newest models, oldest first, CONFIRMATIONS of them if there are as many.
    """
    newest = measured[-1]
    return (
        contradiction(game, newest)
        or unusual_games(game, newest)
        or outdated_worker(newest.stale)
        or not_learning(game, measured)
    )


def contradiction(game: str, newest: Measurements) -> str | None:
    """Return a warning if recorded positions contradict each other."""
    check, found = f"plyzero check {game}", newest.consistency
    if found.positions == 1 and newest.statistics.games >= MIN_CONSTANT_GAMES:
        return f"observe() shows the same for every position, so that the network cannot learn anything: {check}"
    if differs(found.repeats):
        return (
            "the rules are not a function of the moves: after the same moves, observe() or the legal actions differ "
            f"({found.repeats}); remove all randomness and global state from the rules: {check}"
        )
    if differs(found.legal):
        return (
            f"positions with the same observation have different legal actions ({found.legal}): observe() leaves "
            f"out what decides which are legal, or shows another position or the other player's side: {check}"
        )
    if differs(found.effects):
        return (
            f"the same move at the same observation leads to different positions or results ({found.effects}): "
            f"observe() leaves out what decides the game, or shows another position: {check}"
        )
    if differs(found.values):
        return (
            f"positions with the same observation have different proven values ({found.values}): observe() leaves "
            f"out what decides the game, such as whose side it shows, a counter or a limit: {check}"
        )
    if shows_the_first_player(newest.view) and is_below(newest.held_out.value, MIN_KNOWN_VALUE):
        return (
            "observe() shows the board from the side of player 0, but the network predicts the result for the player "
            "to move and cannot see who that is; show the pieces of the player to move first, or add a plane that "
            f"tells who is to move: {check}"
        )
    if differs(found.images):
        return (
            f"symmetries() is wrong: images of positions have other legal actions or lead elsewhere "
            f"({found.images}), so that the network learns from positions that do not exist: {check}"
        )
    return None


def unusual_games(game: str, newest: Measurements) -> str | None:
    """Return a warning if the newest games are not what a game with two players is like."""
    check, statistics = f"plyzero check {game}", newest.statistics
    if statistics.games < NEWEST_GAMES:
        return None
    if statistics.truncated > 0.5:
        return (
            f"{statistics.truncated:.0%} of the newest games were cut off at max_plies without a winner; raise "
            f"max_plies, or correct the rule that lets games continue forever: {check}"
        )
    if min(statistics.moved) == 0:
        return (
            f"player {statistics.moved.index(0)} never moves in the newest {statistics.games} games; most often play() "
            f"does not change to_play: {check}"
        )
    if statistics.drawn == 1:
        return (
            f"there is nothing to learn: all of the newest {statistics.games} games were drawn; to see whether a "
            f"player can win at all: {check}"
        )
    if min(statistics.won) == 0 and not newest.mature:  # later one side may win every game of a right run
        return (
            f"player {statistics.won.index(0)} won none of the newest {statistics.games} games; most often outcome() "
            f"names the wrong player: {check}"
        )
    if statistics.openings < MIN_OPENINGS:
        return (
            f"games all look alike: the newest {statistics.games} games have {statistics.openings} different openings; "
            "continue with -o selfplay.opening_plies=4 -o selfplay.temperature=1"
        )
    return None


def outdated_worker(stale: Staleness) -> str | None:
    """Return a warning if a worker does not load newer models."""
    if stale.seconds <= MAX_STALE_SECONDS:
        return None
    return (
        f"worker {stale.worker} plays with a model that has been outdated for {stale.seconds / 60:.0f} minutes; "
        "its log says why it does not load a newer one"
    )


def not_learning(game: str, measured: Sequence[Measurements]) -> str | None:
    """Return a warning if the network has not learned what it could have, according to each of `measured`."""
    check, newest = f"plyzero check {game}", measured[-1]
    if len(measured) < CONFIRMATIONS:
        return None
    if all(each.trained.policy is not None and each.trained.policy < DIVERGED for each in measured):
        return (
            "diverged: the network predicts the moves of the games it is trained on much worse than a guess; most "
            "often the learning rate is too high: start a new run with a lower trainer.learning_rate"
        )
    if not all(each.mature and each.statistics.games >= NEWEST_GAMES for each in measured):
        return None
    if all(contradicts_results(each.statistics) for each in measured):
        return (
            "the value head predicts the opposite of the results: the value targets are from the point of view of the "
            "other player"
        )
    if all(is_below(each.held_out.value, 0.0) and not is_below(each.trained.value, 0.2) for each in measured):
        return (
            f"overfitting: the value head has learned {newest.trained.value:.0%} of the values of the games it is "
            "trained on, but predicts the results of other games worse than a guess; generate more games with more "
            "workers, or train less with -o trainer.replay_ratio=2"
        )
    if all(is_below(each.trained.policy, MIN_POLICY) and is_below(each.trained.value, MIN_VALUE) for each in measured):
        return (
            "not learning: the network predicts even the games it is trained on no better than a guess; most often "
            "observe() does not show what decides the game, or trainer.learning_rate is far too low or too high: "
            f"{check}"
        )
    if all(
        is_below(each.held_out.policy, MIN_POLICY) and is_below(each.held_out.value, MIN_VALUE) for each in measured
    ):
        return (
            "not learning: on games that it was not trained on, the value head predicts results no better than a "
            "guess; most often observe() does not show what decides the game, or not from the point of view of the "
            f"player to move: {check}"
        )
    return None


def contradicts_results(statistics: GameStatistics) -> bool:
    """Return whether the values of the network predict the opposite of the results."""
    mean, error = statistics.foresight
    return statistics.games == NEWEST_GAMES and mean < -0.1 and mean < -5 * error


def differs(agreement: Agreement) -> bool:
    """Return whether records contradict each other more often than a rare rule that is not shown explains."""
    return agreement.different >= max(MIN_DIFFERENT, MAX_DIFFERENT * agreement.compared)


def shows_the_first_player(view: PointOfView | None) -> bool:
    """Return whether the observation predicts the winner, but not whether that is the player to move."""
    return view is not None and view.turn < 0.5 and view.first > max(0.0, view.mover) + 0.06 and view.surplus > 5


def is_below(score: float | None, limit: float) -> bool:
    """Return whether a skill score is below `limit`, or there is none."""
    return score is None or score < limit
