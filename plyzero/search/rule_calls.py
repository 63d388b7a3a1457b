"""Call a compiled game's rules by address, so that the search is compiled once for all games.

The addresses are passed as `[6]` int64. Numba's own function pointers would work too, but passing four of them from
Python to compiled code takes 90 µs, as much as a batch of searches.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import cast

import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba import types
from numba.core.cgutils import if_unlikely
from numba.core.cpu import CPUContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, overload, register_jitable
from numpy.typing import NDArray

from plyzero.rules.chance import roll_at, roll_random
from plyzero.rules.compiled_game import CHANCES, LEGAL, OBSERVE, OUTCOME, PLAY, SCORE, Rules
from plyzero.rules.game import ONGOING
from plyzero.rules.machine_code import Function, Internal
from plyzero.search.numba_kernel import Implementation, cached_njit, is_plain_python

for _function in (roll_at, roll_random):
    register_jitable(_function)  # plain Python, which compiled code may call


@functools.cache
def addresses(rules: Rules) -> Rules:
    """Return what the functions below take as their first argument: `rules`, or in compiled code their addresses."""
    if is_plain_python():
        return rules
    return cast(Rules, np.array([_address(rule) for rule in rules]))


def play(rules: Rules, state: NDArray[np.uint8], action: int) -> None:
    """Play `action` on `state`, `[S]`, in place."""
    rules[0](state, action)


def outcome(rules: Rules, state: NDArray[np.uint8]) -> int:
    """Return the outcome code: ONGOING, DRAW or the winner."""
    return rules[1](state)


def legal(rules: Rules, state: NDArray[np.uint8], mask: NDArray[np.bool_]) -> None:
    """Mark the legal actions in `mask`, `[A]`, which is all False."""
    rules[2](state, mask)


def observe(rules: Rules, state: NDArray[np.uint8], planes: NDArray[np.float32]) -> None:
    """Write what the network sees into `planes`, `[C, H, W]`, which are zeros."""
    rules[3](state, planes)


def chances(rules: Rules, state: NDArray[np.uint8], weights: NDArray[np.float32]) -> None:
    """Write the probability of each roll into `weights`, `[K]`, which are zeros; none where a player moves."""
    rules[4](state, weights)


def score(rules: Rules, state: NDArray[np.uint8]) -> float:
    """Return the points by which the winner of a finished game leads."""
    return rules[5](state)


@cached_njit
def is_chance(rules: Rules, state: NDArray[np.uint8], weights: NDArray[np.float32]) -> bool:
    """Return whether chance moves in `state`, and write the probability of each roll into `weights`, `[K]`."""
    if len(weights) == 0 or outcome(rules, state) != ONGOING:
        return False
    weights[:] = 0
    chances(rules, state, weights)
    return bool(weights.any())


def _address(rule: Internal) -> int:
    (compiled,) = rule.overloads.values()
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def _at_address(signature: Signature) -> Function:
    """Return a function (address, tuple of arguments) that calls the function at that address, in compiled code."""

    @intrinsic
    def call(_: object, address: types.Type, arguments: types.Type) -> Implementation:
        def generate(context: CPUContext, builder: IRBuilder, found: Signature, values: Sequence[Value]) -> Value:
            convention, wanted = context.call_conv, signature.args
            given = [
                context.cast(builder, builder.extract_value(values[1], i), kind, wanted[i])
                for i, kind in enumerate(found.args[1])
            ]
            kind = convention.get_function_type(signature.return_type, wanted).as_pointer()
            function = builder.inttoptr(values[0], kind)
            status, result = convention.call_function(builder, function, signature.return_type, wanted, given)
            with if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return signature.return_type(address, arguments), generate

    return call


def _call_by_address(function: Function, signature: Signature, number: int) -> None:
    """Let `function`, in compiled code, call the rule whose address is `rules[number]`."""
    call = _at_address(signature)

    @overload(function, strict=False)
    def compiled(rules: types.Type, *arguments: types.Type) -> Function:
        return lambda rules, *arguments: call(rules[number], arguments)


_call_by_address(play, PLAY, 0)
_call_by_address(outcome, OUTCOME, 1)
_call_by_address(legal, LEGAL, 2)
_call_by_address(observe, OBSERVE, 3)
_call_by_address(chances, CHANCES, 4)
_call_by_address(score, SCORE, 5)
