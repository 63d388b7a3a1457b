"""Matches: games between two players, each opening played with both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from plyzero.errors import UserError
from plyzero.play.agents import Forfeit
from plyzero.play.players import Player, begin_game, choices
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
    forfeit:       why the loser forfeited it, or None.
    """

    moves: Sequence[int]
    opening_plies: int
    swapped: bool
    outcome: Outcome | None
    forfeit: str | None

    def as_json(self, game: GameSpec, players: tuple[str, str]) -> dict[str, Any]:
        """Return the game as a JSON object with the fields of an exported game; `players` are those of the match."""
        end = "truncated" if self.outcome is None else "rule" if self.forfeit is None else "forfeit"
        return {
            "version": STARTED if game.text else VERSION,
            "game": game.identity,
            **({"start": game.text} if game.text else {}),
            "first": players[self.swapped],
            "second": players[not self.swapped],
            "moves": action_names(game.start, tuple(self.moves)),
            "winner": WINNERS[outcome_code(self.outcome)],
            **({"score": float(self.outcome.score)} if self.outcome and self.outcome.score is not None else {}),
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
    draw. An agent that fails to move loses the game.

    opening_plies: number of random moves in an opening; None = a fifth of max_plies, at most 4.
    openings:      at least (games + 1) // 2 openings as sequences of actions and rolls, in place of random ones.
    at_once:       number of games in parallel; None = all. With clocks it must be 1.
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
    dice = [np.random.default_rng(seeds[i // 2]) for i in range(games)]
    moves = [list(openings[i // 2]) for i in range(games)]
    positions, plies = map(list, zip(*(_position_after(start, opening) for opening in moves), strict=True))

    def roll(i: int) -> None:
        positions[i], rolls = roll_dice(positions[i], dice[i])
        moves[i] += rolls

    for i in range(games):
        roll(i)
    opening = plies.copy()
    points, forfeits, leads = [0, 0, 0], dict[int, str](), list[float]()
    playing = list(range(games))
    while playing:
        for player, player_side in ((first, 0), (second, 1)):
            # In game i, `first` plays side i % 2.
            to_move = [i for i in playing[:at_once] if positions[i].to_play ^ (i % 2) == player_side]
            if not to_move:
                continue
            for i, choice in zip(to_move, choices(player, [positions[i] for i in to_move]), strict=True):
                if isinstance(choice, Forfeit):
                    forfeits[i] = choice.reason
                    continue
                positions[i] = positions[i].play(choice)
                moves[i].append(choice)
                plies[i] += 1
                roll(i)
            for i in to_move:
                outcome = Outcome(1 - positions[i].to_play) if i in forfeits else positions[i].outcome()
                if outcome is not None or plies[i] >= start.max_plies:
                    points[1 if outcome is None else 1 - outcome.value(i % 2)] += 1
                    leads += [outcome.lead(i % 2)] if outcome is not None and outcome.score is not None else []
                    playing.remove(i)
                    begin_game(first)
                    begin_game(second)
                    on_game(PlayedGame(moves[i], opening[i], i % 2 == 1, outcome, forfeits.get(i)))
            on_progress(games - len(playing), max(plies))
    wins, draws, losses = points
    distinct = len({tuple(actions) for actions in moves})
    return MatchResult(wins, draws, losses, distinct, tuple(forfeits.values()), tuple(leads))


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
        plies += not is_chance(position)
        position = position.play_unchecked(move)
    return position, plies
