"""Players by rules alone, for any game: one that looks a move ahead, and alpha-beta search to a depth."""

from __future__ import annotations

from plyzero.play.agents import Agent
from plyzero.rules.chance import chances_of
from plyzero.rules.game import Game


class Greedy(Agent):
    """Wins at once if it can, else prevents a win by the opponent's next move if it can, else plays at random."""

    def choose(self, position: Game) -> int:
        """Return a random one of the best actions."""
        scores = {action: self._score(position, action) for action in map(int, position.legal_actions())}
        best = max(scores.values())
        return int(self.rng.choice([action for action, score in scores.items() if score == best]))

    def _score(self, position: Game, action: int) -> int:
        """Return 1 if the action wins, -1 if it loses or lets the opponent win at once, otherwise 0."""
        player, after = position.to_play, position.play_unchecked(action)
        outcome = after.outcome()
        if outcome is not None:
            return outcome.value(player)
        if len(chances_of(after)) or after.to_play == player:
            return 0
        replies = (after.play_unchecked(reply).outcome() for reply in map(int, after.legal_actions()))
        is_lost = any(reply is not None and reply.value(player) < 0 for reply in replies)
        return -1 if is_lost else 0


class AlphaBeta(Agent):
    """Alpha-beta search to a depth of plies (Knuth and Moore 1975), with the mean over the rolls of dice.

    Of equally good moves one is chosen at random. Override `evaluate` to give it knowledge of a game.
    """

    def __init__(self, depth: int = 2) -> None:
        if not 1 <= depth <= 64:
            raise ValueError(f"expected a depth from 1 to 64, got {depth}")
        self.depth = depth

    def choose(self, position: Game) -> int:
        """Return the best action, by what can happen in the next `depth` plies."""
        actions = self.rng.permutation([int(action) for action in position.legal_actions()]).tolist()
        best, chosen = -2.0, actions[0]
        for action in actions:
            value = self._value(position.play_unchecked(action), position.to_play, self.depth - 1, best, 2.0)
            if value > best:
                best, chosen = value, action
        return int(chosen)

    def evaluate(self, position: Game) -> float:
        """Return what a position that is not searched further is worth to the player to move, in (-1, 1)."""
        return 0.0

    def _value(self, position: Game, player: int, depth: int, low: float, high: float) -> float:
        """Return the value of `position` for `player` if it is between `low` and `high`, otherwise a bound of it."""
        outcome = position.outcome()
        if outcome is not None:
            # the shortest win is played, and the longest defence
            return outcome.value(player) * (1 - 1e-3 * (self.depth - depth))
        chances = chances_of(position)
        if len(chances):  # no bound of one roll is a bound of the mean
            rolls = [(roll, chance) for roll, chance in enumerate(chances.tolist()) if chance]
            return sum(
                chance * self._value(position.play_unchecked(roll), player, depth, -2.0, 2.0) for roll, chance in rolls
            )
        if depth == 0:
            value = self.evaluate(position)
            return value if position.to_play == player else -value
        own = position.to_play == player
        for action in map(int, position.legal_actions()):
            value = self._value(position.play_unchecked(action), player, depth - 1, low, high)
            low, high = (max(low, value), high) if own else (low, min(high, value))
            if low >= high:
                break
        return low if own else high
