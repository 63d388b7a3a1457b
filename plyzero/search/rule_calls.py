"""Call a compiled game's rules by address, so that the search is compiled once for all games.

The addresses are passed as `[5]` int64. Numba's own function pointers would work too, but passing four of them from
Python to compiled code takes 90 µs, as much as a batch of searches.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from numba.core.cgutils import if_unlikely
from numba.extending import intrinsic, overload, register_jitable
from numpy.typing import NDArray

from plyzero.rules.chance import roll_at, roll_random
from plyzero.rules.compiled_game import CHANCES, LEGAL, OBSERVE, OUTCOME, PLAY, Rules
from plyzero.rules.game import ONGOING
from plyzero.search.numba_kernel import cached_njit

for _function in (roll_at, roll_random):
    register_jitable(_function)  # plain Python, which compiled code may call


@functools.cache
def addresses(rules: Rules) -> Any:
    """Return what the functions below take as their first argument."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return rules
    return np.array([_address(rule) for rule in rules])


def play(rules: Any, state: NDArray[np.uint8], action: int) -> None:
    """Play `action` on `state`, `[S]`, in place."""
    rules[0](state, action)


def outcome(rules: Any, state: NDArray[np.uint8]) -> int:
    """Return the outcome code: ONGOING, DRAW or the winner."""
    code: int = rules[1](state)
    return code


def legal(rules: Any, state: NDArray[np.uint8], mask: NDArray[np.bool_]) -> None:
    """Mark the legal actions in `mask`, `[A]`, which is all False."""
    rules[2](state, mask)


def observe(rules: Any, state: NDArray[np.uint8], planes: NDArray[np.float32]) -> None:
    """Write what the network sees into `planes`, `[C, H, W]`, which are zeros."""
    rules[3](state, planes)


def chances(rules: Any, state: NDArray[np.uint8], weights: NDArray[np.float32]) -> None:
    """Write the probability of each roll into `weights`, `[K]`, which are zeros; none where a player moves."""
    rules[4](state, weights)


@cached_njit
def is_chance(rules: Any, state: NDArray[np.uint8], weights: NDArray[np.float32]) -> bool:
    """Return whether chance moves in `state`, and write the probability of each roll into `weights`, `[K]`."""
    if len(weights) == 0 or outcome(rules, state) != ONGOING:
        return False
    weights[:] = 0
    chances(rules, state, weights)
    return bool(weights.any())


def _address(rule: Any) -> int:
    (compiled,) = rule.overloads.values()
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def _at_address(signature: Any) -> Any:
    """Return a function (address, tuple of arguments) that calls the function at that address, in compiled code."""

    @intrinsic
    def call(_: Any, address: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, found: Any, values: Any) -> Any:
            convention, wanted = context.call_conv, signature.args
            given = [
                context.cast(builder, builder.extract_value(values[1], i), kind, wanted[i])
                for i, kind in enumerate(found.args[1])
            ]
            kind = convention.get_function_type(signature.return_type, wanted).as_pointer()
            function = builder.inttoptr(values[0], kind)
            status, result = convention.call_function(builder, function, signature.return_type, wanted, given)
            with if_unlikely(builder, status.is_error):  # type: ignore[no-untyped-call]
                convention.return_status_propagate(builder, status)
            return result

        return signature.return_type(address, arguments), generate

    return call


def _call_by_address(function: Any, signature: Any, number: int) -> None:
    """Let `function`, in compiled code, call the rule whose address is `rules[number]`."""
    call = _at_address(signature)

    @overload(function, strict=False)
    def compiled(rules: Any, *arguments: Any) -> Any:
        return lambda rules, *arguments: call(rules[number], arguments)


for _number, _rule in enumerate(
    ((play, PLAY), (outcome, OUTCOME), (legal, LEGAL), (observe, OBSERVE), (chances, CHANCES))
):
    _call_by_address(*_rule, _number)
