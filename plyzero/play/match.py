"""Matches: games between two players, each opening played with both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from plyzero.errors import UserError
from plyzero.play.player import Forfeit, Player, as_player
from plyzero.play.scores import MatchResult
from plyzero.play.session import STARTED
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, roll_dice
from plyzero.rules.declarations import check_not_over
from plyzero.rules.game import Game, Outcome, outcome_code
from plyzero.rules.notation import action_names
from plyzero.run.json_games import VERSION, WINNERS


class PlayedGame(NamedTuple):
    """A finished game of a match.

    moves:         its actions and rolls, those of the opening included.
    opening_plies: how many of the actions are the opening.
    swapped:       whether the second player of the match was player 0, who moves first unless dice decide.
    outcome:       None if the game was truncated at max_plies.
    forfeit:       how the loser gave it up, or None.
    """

    moves: Sequence[int]
    opening_plies: int
    swapped: bool
    outcome: Outcome | None
    forfeit: Forfeit | None

    def as_json(self, game: GameSpec, players: tuple[str, str]) -> dict[str, Any]:
        """Return the game as a JSON object with the fields of an exported game; `players` are those of the match."""
        first, second = reversed(players) if self.swapped else players
        start = {"start": game.text} if game.text else {}
        score = {"score": float(self.outcome.score)} if self.outcome and self.outcome.score is not None else {}
        end = "rule"
        if self.outcome is None:
            end = "truncated"
        elif self.forfeit is not None:
            end = "resign" if self.forfeit.resigned else "forfeit"
        return {
            "version": STARTED if game.text else VERSION,
            "game": game.identity,
            **start,
            "first": first,
            "second": second,
            "moves": action_names(game.start, tuple(self.moves)),
            "winner": WINNERS[outcome_code(self.outcome)],
            **score,
            "end": end,
            "opening_plies": self.opening_plies,
        }


def play_match(
    first: Player,
    second: Player,
    start: Game,
    *,
    games: int,
    rng: np.random.Generator,
    opening_plies: int | None = None,
    openings: Sequence[Sequence[int]] | None = None,
    at_once: int | None = None,
    on_progress: Callable[[int, int], None] = lambda finished, plies: None,
    on_game: Callable[[PlayedGame], None] = lambda game: None,
) -> MatchResult:
    """Play `games` games between `first` and `second`, in parallel, and return the result for `first`.

    Every opening is played twice, with sides swapped, so that no opening favours a player. The two games share their
    dice: the n-th roll has the same random number in both. A game that reaches the max_plies of the rules counts as a
    draw. An agent or a program that fails to move loses the game.

    opening_plies: number of random moves in an opening; None = a fifth of max_plies, at most 4.
    openings:      at least (games + 1) // 2 openings as sequences of actions and rolls, in place of random ones.
    at_once:       number of games in parallel; None = as many as the players can play. With clocks it must be 1.
    on_progress:   called after every move with the number of finished games and the plies of the longest game.
    on_game:       called with every game when it is finished.
    Raises UserError if there is no game to play, or no move left after the openings.
    """
    if opening_plies is None:
        opening_plies = min(4, start.max_plies // 5)
    if games < 1:
        raise UserError(f"expected at least one game, got {games}")
    if not 0 <= opening_plies < start.max_plies:
        raise UserError(
            f"expected opening_plies from 0 to {start.max_plies - 1}, got {opening_plies}: a game has at most "
            f"{start.max_plies} plies"
        )
    openings = openings or random_openings(start, opening_plies, rng, count=(games + 1) // 2)
    seeds = rng.integers(1 << 63, size=games // 2 + 1).tolist() if start.num_chances else [0] * games
    playing = [
        _GameInPlay(number, start, openings[number // 2], np.random.default_rng(seeds[number // 2]))
        for number in range(games)
    ]
    finished: list[_GameInPlay] = []
    longest = max(game.plies for game in playing)
    players = as_player(first), as_player(second)
    at_once = min((each for each in (at_once, *(player.games_at_once for player in players)) if each), default=None)
    while playing:
        for number, player in enumerate(players):
            to_move = [game for game in playing[:at_once] if game.player_to_move == number]
            if not to_move:
                continue
            choices = player.choices([game.position for game in to_move], [game.moves for game in to_move])
            for game, choice in zip(to_move, choices, strict=True):
                game.play(choice)
                longest = max(longest, game.plies)
            for game in to_move:
                if game.is_over:
                    playing.remove(game)
                    finished.append(game)
                    for each in players:
                        each.begin_game()
                    on_game(game.record())
            on_progress(len(finished), longest)
    return _result(finished)


class _GameInPlay:
    """A game of a match that goes on.

    plies: number of actions so far, those of the opening included.
    """

    def __init__(self, number: int, start: Game, opening: Sequence[int], dice: np.random.Generator) -> None:
        """Begin a game after its opening; in those with odd numbers the sides are swapped."""
        self.number = number
        self.swapped = number % 2 == 1
        self.moves = [*opening]
        self.position, self.plies = _position_after(start, opening)
        self.outcome: Outcome | None = None
        self.forfeit: Forfeit | None = None
        self._dice, self._max_plies = dice, start.max_plies
        self._roll()
        self._opening_plies = self.plies

    @property
    def player_to_move(self) -> int:
        """0 if the first player of the match is to move, 1 if it is the second."""
        return 1 - self.position.to_play if self.swapped else self.position.to_play

    @property
    def is_over(self) -> bool:
        return self.outcome is not None or self.plies >= self._max_plies

    def play(self, choice: int | Forfeit) -> None:
        """Play an action, and the rolls after it; one who forfeits has lost."""
        if isinstance(choice, Forfeit):
            self.forfeit = choice
            self.outcome = Outcome(1 - self.position.to_play)
            return
        self.position = self.position.play(choice)
        self.moves.append(choice)
        self.plies += 1
        self._roll()
        self.outcome = self.position.outcome()

    def _roll(self) -> None:
        self.position, rolls = roll_dice(self.position, self._dice)
        self.moves += rolls

    def record(self) -> PlayedGame:
        """Return the finished game."""
        return PlayedGame(self.moves, self._opening_plies, self.swapped, self.outcome, self.forfeit)


def _result(games: Sequence[_GameInPlay]) -> MatchResult:
    """Return the result for the first player of the match of games in the order of their ends.

    A truncated game is a draw.
    """
    values = [game.outcome.value(int(game.swapped)) if game.outcome else 0 for game in games]
    winners: dict[int, list[int | None]] = {}
    for game in games:
        winners.setdefault(game.number // 2, []).append(game.outcome.winner if game.outcome else None)
    pairs = [pair for pair in winners.values() if len(pair) == 2]
    return MatchResult(
        wins=values.count(1),
        draws=values.count(0),
        losses=values.count(-1),
        distinct=len({tuple(game.moves) for game in games}),
        forfeits=tuple(game.forfeit.reason for game in games if game.forfeit and not game.forfeit.resigned),
        leads=tuple(
            game.outcome.lead(int(game.swapped)) for game in games if game.outcome and game.outcome.score is not None
        ),
        pairs=len(pairs),
        repeated=sum(one == other for one, other in pairs),
    )


def random_openings(start: Game, plies: int, rng: np.random.Generator, *, count: int) -> list[list[int]]:
    """Return `count` random openings, all different unless 20 attempts find no new one."""
    openings: list[list[int]] = []
    for _ in range(count):
        for _ in range(20):
            opening = random_opening(start, plies, rng)
            if opening not in openings:
                break
        openings.append(opening)
    return openings


def random_opening(start: Game, plies: int, rng: np.random.Generator) -> list[int]:
    """Return `plies` uniformly random actions from `start`, fewer if the next one would end the game, and the rolls."""
    position, opening = roll_dice(start, rng)
    check_not_over(position)
    for _ in range(plies):
        action = int(rng.choice(np.asarray(position.legal_actions())))
        after, rolls = roll_dice(position.play_unchecked(action), rng)
        if after.outcome() is not None:
            break
        opening += [action, *rolls]
        position = after
    return opening


def _position_after(position: Game, moves: Sequence[int]) -> tuple[Game, int]:
    """Return the position after actions and rolls, and the number of actions."""
    plies = 0
    for move in moves:
        if not is_chance(position):
            plies += 1
        position = position.play_unchecked(move)
    return position, plies
