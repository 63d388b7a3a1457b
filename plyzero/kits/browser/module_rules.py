"""The rules of a game in WebAssembly, called from Python: what a page does, in a runtime on this machine."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import FailedError
from plyzero.rules.compiled_game import CompiledGame

PAGE: Final = 1 << 16
"""Bytes of a page of memory in WebAssembly."""


class ModuleRules:
    """The rules that a module exports, over the state of one position. Each raises FailedError if the rule raises."""

    def __init__(self, game: CompiledGame, module: bytes) -> None:
        """Load a module that `compile_rules` has made for this game."""
        import wasmtime

        engine = wasmtime.Engine()
        self._store = wasmtime.Store(engine)
        compiled = wasmtime.Module(engine, module)
        imports = [self._refused(wasmtime, each) for each in compiled.imports]
        exports = wasmtime.Instance(self._store, compiled, imports).exports(self._store)
        self._functions: dict[str, Any] = {each.name: exports[each.name] for each in compiled.exports}
        sizes = {
            "state": game.State.itemsize,
            "mask": game.num_actions,
            "planes": 4 * int(np.prod(game.observation_shape)),
            "weights": 4 * game.num_chances,
        }
        self._at: dict[str, int] = {}
        end = int(self._functions["__heap_base"].value(self._store))
        for name, size in sizes.items():
            self._at[name] = -(-end // 16) * 16
            end = self._at[name] + size
        memory = self._functions["memory"]
        missing = -(-end // PAGE) - memory.size(self._store)
        if missing > 0:
            memory.grow(self._store, missing)
        self._bytes = np.ctypeslib.as_array(memory.data_ptr(self._store), (memory.data_len(self._store),))
        self._sizes, self._shape = sizes, game.observation_shape

    def set_state(self, state: NDArray[np.uint8]) -> None:
        """Make `state`, `[S]`, that of the position."""
        self._part("state")[:] = state

    def state(self) -> NDArray[np.uint8]:
        """Return the state, `[S]`."""
        return self._part("state").copy()

    def play(self, action: int) -> None:
        """Play an action or a roll, which changes the state."""
        self._call("play", action)

    def outcome(self) -> int:
        """Return the code of the outcome, as the rule does."""
        return int(self._call("outcome"))

    def score(self) -> float:
        """Return the points by which the winner leads."""
        return float(self._call("score"))

    def legal(self) -> NDArray[np.uint8]:
        """Return a byte for each action, `[A]`: 1 if it is legal, else 0."""
        return self._filled("legal", "mask").copy()

    def observe(self) -> NDArray[np.float32]:
        """Return the planes, `[C, H, W]`."""
        return self._filled("observe", "planes").view(np.float32).reshape(self._shape).copy()

    def chances(self) -> NDArray[np.float32]:
        """Return the probabilities of rolls, `[K]`."""
        return self._filled("chances", "weights").view(np.float32).copy()

    def _filled(self, rule: str, name: str) -> NDArray[np.uint8]:
        part = self._part(name)
        part[:] = 0
        self._call(rule, self._at[name])
        return part

    def _part(self, name: str) -> NDArray[np.uint8]:
        at = self._at[name]
        return self._bytes[at : at + self._sizes[name]]

    def _call(self, rule: str, *arguments: int) -> Any:
        try:
            return self._functions[rule](self._store, self._at["state"], *arguments)
        except FailedError:
            raise
        except Exception as error:  # a trap, such as a division by zero
            raise FailedError(f"the rule {rule} fails in WebAssembly: {str(error).strip().splitlines()[-1]}") from error

    def _refused(self, wasmtime: Any, imported: Any) -> Any:
        """Return a function that raises FailedError, for a function that a module lacks."""
        why = {
            "rule_raises": "a rule raises an exception in WebAssembly",
            "out_of_memory": "a rule creates larger arrays than the page has room for",
        }.get(imported.name, f"the rules call {imported.name}, which is not there in a browser")

        def refuse(*_: object) -> None:
            raise FailedError(why)

        return wasmtime.Func(self._store, imported.type, refuse)
