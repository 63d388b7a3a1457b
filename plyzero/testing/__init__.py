"""Does a player, an evaluator, a volume or a game of yours keep the promises? Contracts for tests with pytest.

A contract is a class of tests. Subclass it in a test file, with a name that begins with Test, and give it what it
tests; pytest then runs its tests. `test_name = None` leaves one out. The law-by-law tests of a game are `GameLaws`.

decisions           positions for the tests
evaluator_contract  what the search expects of an evaluator, such as a network
player_contract     what a match expects of a player
volume_contract     what a run expects of a directory or a bucket
"""

import pytest

pytest.register_assert_rewrite(
    *(f"plyzero.testing.{each}_contract" for each in ("evaluator", "player", "volume"))
)  # before the imports, so that a failing assertion shows the compared values

from plyzero.check.violations import GameLaws  # noqa: E402
from plyzero.testing.evaluator_contract import EvaluatorContract  # noqa: E402
from plyzero.testing.player_contract import LookaheadContract, PlayerContract  # noqa: E402
from plyzero.testing.volume_contract import VolumeContract  # noqa: E402

__all__ = ["EvaluatorContract", "GameLaws", "LookaheadContract", "PlayerContract", "VolumeContract"]
