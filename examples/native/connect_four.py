"""Connect Four with its rules in C: connect_four.c says how to compile them."""

import numpy as np

from plyzero import Board, NativeGame, Symmetry, grid, mirror_columns


class ConnectFour(NativeGame, version=1):
    """Four in a row wins; discs fall."""

    library = "libconnect_four.so"
    State = np.dtype([("board", "i1", (6, 7)), ("plies", "i1"), ("result", "i1"), ("to_play", "i1")])
    num_actions = 7
    action_names = "1234567"
    observation_shape = (2, 6, 7)
    observation_dtype = bool
    max_plies = 42

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the left-right reflection."""
        return (mirror_columns(self.observation_shape, range(6, -1, -1)),)

    def render(self) -> Board:
        """Return the board as cells that fill from below."""
        return grid(self.record["board"], rows_up=True, files="1234567", by_column=True, style="holes")
