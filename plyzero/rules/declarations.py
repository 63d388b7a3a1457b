"""Checks of a game when it is loaded: what its class declares agrees with itself, and the first position is playable.

Otherwise a worker or the trainer would fail later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plyzero.errors import UserError, shown
from plyzero.rules.chance import MAX_SETUPS, first_decision
from plyzero.rules.game import Game
from plyzero.rules.symmetry import Symmetry
from plyzero.rules.user_errors import with_location


def check_declarations(target: str, start: Game) -> None:
    """Raise UserError if the declarations of a game contradict each other.

    target: the name of its class, which begins each message.
    start:  its initial position.
    """
    for name in ("num_actions", "observation_shape", "max_plies", "to_play"):
        if not hasattr(start, name):
            raise UserError(f"{target} does not define {name}")
    _check_numbers(target, start)
    _check_chances(target, start)
    _check_setups(target, start)
    _check_observation(target, start)
    _check_symmetries(target, start)


def _check_numbers(target: str, start: Game) -> None:
    for name, least in (("num_actions", 1), ("max_plies", 1), ("num_chances", 0)):
        number = getattr(start, name)
        if not isinstance(number, int | np.integer) or not least <= number < 1 << 31:
            raise UserError(f"{target}.{name}: expected a number from {least} on, got {shown(number)}")
    if start.to_play not in (0, 1):
        raise UserError(f"{target}.to_play: expected 0 or 1, got {shown(start.to_play)}")


def _check_chances(target: str, start: Game) -> None:
    is_compiled = hasattr(start, "State")  # it checks its dice itself
    depends_on_parameter = "num_chances" in vars(start)  # and may be 0 for this one
    if start.num_chances or is_compiled or depends_on_parameter:
        return
    if type(start).chances is not Game.chances:
        raise UserError(f"{target} defines chances(), but num_chances is 0: give the number of different rolls")


def _check_setups(target: str, start: Game) -> None:
    setups = start.setups
    if isinstance(setups, bool) or not isinstance(setups, int | np.integer) or not 0 <= setups <= MAX_SETUPS:
        raise UserError(f"{target}.setups: expected a number from 0 to 2**32, got {shown(setups)}")
    has_rule = type(start).set_up is not Game.set_up
    if setups and not has_rule:
        raise UserError(f"{target} has setups = {setups}, but no set_up(): define it, or leave out setups")
    depends_on_parameter = "setups" in vars(start)  # and may be 0 for this one
    if has_rule and not setups and not depends_on_parameter:
        raise UserError(f"{target} defines set_up(), but setups is 0: give the number of different set-ups")


def _check_observation(target: str, start: Game) -> None:
    shape = start.observation_shape
    is_shape = isinstance(shape, Sequence) and len(shape) == 3
    if not is_shape or not all(isinstance(size, int) and size > 0 for size in shape):
        raise UserError(f"{target}.observation_shape: expected (planes, rows, columns), got {shown(shape)}")
    most = start.num_actions // (shape[1] * shape[2])
    if not isinstance(start.policy_planes, int) or not 0 <= start.policy_planes <= most:
        raise UserError(f"{target}.policy_planes: expected a number from 0 to {most}, got {shown(start.policy_planes)}")
    try:
        np.dtype(start.observation_dtype)
    except TypeError as error:
        raise UserError(
            f"{target}.observation_dtype is {start.observation_dtype!r}, which is not a NumPy type"
        ) from error
    if not hasattr(start, "State"):  # the planes of a compiled game always have the declared shape
        _observe_first_decision(target, start)


def _observe_first_decision(target: str, start: Game) -> None:
    """Raise UserError if the first position at which a player moves has no observation of the declared shape."""
    try:
        decision = first_decision(start)
    except (Exception, SystemExit) as error:
        if start.awaits_setup and not start.num_chances:
            raise UserError(f"cannot set up the first position of {target}: {with_location(error)}") from error
        raise UserError(
            f"cannot roll the dice at the start of {target}: {with_location(error)}; chances() has to return () "
            "where a player moves"
        ) from error
    observation = decision.observe()
    if observation is None:
        raise UserError(f"{target}.observe() returns None; is a return missing?")
    observed, declared = np.shape(observation), tuple(start.observation_shape)
    if observed != declared:
        raise UserError(f"{target}.observe() returns shape {observed}, but observation_shape is {declared}")


def _check_symmetries(target: str, start: Game) -> None:
    symmetries = start.symmetries()
    if isinstance(symmetries, Symmetry):
        raise UserError(f"{target}.symmetries() returns one Symmetry, expected a list of them: put it in [ ]")
    expected = math.prod(start.observation_shape), start.num_actions
    for planes, actions in symmetries:
        found = np.size(planes), np.size(actions)
        if found != expected:
            raise UserError(
                f"{target}.symmetries() permutes {found[0]} numbers of the observation and {found[1]} actions, but the "
                f"game has {expected[0]} and {expected[1]}: symmetries(), observation_shape or num_actions is wrong. "
                "symmetries() is optional"
            )


def failed_rules(position: Game, why: str) -> str:
    """Return the sentence that reports a failure of the rules of `position`, with the command that tests them."""
    name = f"{type(position).__module__}:{type(position).__qualname__}"
    return f"{name} cannot be played: {why}; plyzero check {name} tests the rules"


def check_not_over(position: Game) -> None:
    """Raise UserError if the game is over in `position`, where no player has moved, or if the rules fail there."""
    try:
        over = position.outcome() is not None
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(failed_rules(position, with_location(error))) from error
    if over:
        raise UserError(failed_rules(position, "the game is over before any player has moved"))
