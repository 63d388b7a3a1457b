"""Usual mistakes of chess programs, planted into the source of the rules of chess.

python -m benchmarks.mistakes --games chess      which of them `plyzero check` finds

tests/games/test_chess.py names the test that finds each.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import types
from collections.abc import Iterator
from typing import cast

from benchmarks.mistakes.planted import Make, Mistake
from plyzero.games import chess
from plyzero.rules.compiled_game import CompiledGame

Edit = tuple[str, str]
"""A part of the source, which occurs once, and what replaces it."""

SAFE = """
    return not is_attacked(board, find_king(board))
"""
SAFE_OR_CASTLING = """
    is_castling = s["board"][TARGETS[action // 64, action % 64]] > 0
    return is_castling or not is_attacked(board, find_king(board))
"""
SAFE_BEFORE_THE_MOVE = """
    target = int(TARGETS[action // 64, action % 64])
    if s["board"][action % 64] == KING and s["board"][target] <= 0:
        return not is_attacked(s["board"][:], target)
    return not is_attacked(board, find_king(board))
"""
BLOCKED = """
        if is_ahead and board[target] != EMPTY:
            continue
"""
JUMPING = """
        if is_ahead and board[target] != EMPTY:
            if source < 16 and board[target + 8] == EMPTY:
                found[count] = (plane + 1) * 64 + source
                count += 1
            continue
"""
ON_BOARD = """
            if row in range(8) and column in range(8):
                targets[plane, square] = 8 * row + column
"""
ROUND_THE_EDGE = """
            if row in range(8) and (column in range(8) or FIRST_JUMP <= plane < FIRST_PROMOTION):
                targets[plane, square] = 8 * row + column % 8
"""

PLANTED: dict[str, tuple[Edit, ...]] = {
    "en passant may leave the king attacked along the rank": (('is_suspect |= s["en_passant"] >= 0', "pass"),),
    "en passant is possible on later moves": (
        ('        turn(s)\n        s["en_passant"] = -1\n', "        turn(s)\n"),
    ),
    "en passant leaves the captured pawn": (("board[target - 8] = EMPTY", "board[target] = EMPTY"),),
    "en passant is noted where it is illegal": ((" and is_safe(s, 7 * direction * 64 + source):", ":"),),
    "castling through check": (
        ("for square in range(min(king, king_to), max(king, king_to) + 1):", "for square in (king, king_to):"),
    ),
    "castling out of check": (("attacked |= is_attacked(", "attacked |= square != king and is_attacked("),),
    "castling into check": (
        ("attacked |= is_attacked(", "attacked |= square != king_to and is_attacked("),
        (SAFE, SAFE_OR_CASTLING),
    ),
    "castling although the rook covered the king": (
        ("attacked |= is_attacked(free, square)", "attacked |= is_attacked(board, square)"),
        (SAFE, SAFE_OR_CASTLING),
    ),
    "no castling if the rook passes an attacked square": (
        ("range(min(king, king_to), max(king, king_to) + 1)", "range(min(king, rook), max(king, rook) + 1)"),
    ),
    "castling over a piece beside the rook": (
        (
            "range(min(king, rook, king_to, rook_to), max(king, rook, king_to, rook_to) + 1)",
            "range(min(king, king_to), max(king, king_to) + 1)",
        ),
    ),
    "rights stay after the rook is captured": (
        ("if rights[OTHER, wing] >= 0 and target ==", "if rights[OTHER, wing] >= 64 and target =="),
    ),
    "rights stay after the rook moves": (
        ('(s["board"][source] == KING or source == rights[OWN, wing])', 's["board"][source] == KING'),
    ),
    "rights stay after the king moves": (
        ('(s["board"][source] == KING or source == rights[OWN, wing])', "source == rights[OWN, wing]"),
    ),
    "a position is repeated with other rights": (("ends_run |= lose_rights(", "lose_rights("),),
    "a position is repeated with another en passant": (
        ('ends_run = is_pawn or board[target] < 0 or s["en_passant"] >= 0', "ends_run = is_pawn or board[target] < 0"),
    ),
    "a position is repeated with the other player to move": (
        ("if (number - before) % 2 == 0 and is_same(", "if is_same("),
    ),
    "the second occurrence is a draw": (('np.int64(s["run"])) >= 2', 'np.int64(s["run"])) >= 1'),),
    "a move of a pawn does not reset the clock": (
        ('s["clock"] = 0 if is_pawn or board[target] < 0 else', 's["clock"] = 0 if board[target] < 0 else'),
    ),
    "a capture does not reset the clock": (
        ('s["clock"] = 0 if is_pawn or board[target] < 0 else', 's["clock"] = 0 if is_pawn else'),
    ),
    "mate with the hundredth ply is a draw": (
        ("        if not has_move(s):\n", '        if s["clock"] < MAX_CLOCK and not has_move(s):\n'),
    ),
    "stalemate is a loss": (
        (
            "            if is_attacked(board, find_king(board)):\n                return 1",
            "            if board[0] < 99:\n                return 1",
        ),
    ),
    "mate is won by the player who is mated": (('return 1 - s["to_play"]\n', 'return s["to_play"]\n'),),
    "two knights, or two bishops, are a draw": (
        ("return knights + light + dark <= 1 or", "return knights + light + dark <= 2 or"),
    ),
    "promotion to a queen only": (("        if target >= 56:\n", "        if target >= 64:\n"),),
    "captures that promote to less go the other way": (
        ("(FIRST_PROMOTION + 3 * kind + side) * 64", "(FIRST_PROMOTION + 3 * kind + 2 - side) * 64"),
    ),
    "a pinned piece leaves its line": (("suspects |= 1 << shield", "suspects |= 0"),),
    "a pinned piece cannot move along its line": (
        (
            "    if not is_suspect:\n",
            "    if is_suspect and piece != KING and suspects > 0:\n        return 0\n    if not is_suspect:\n",
        ),
    ),
    "a check may be ignored": (("    if is_attacked(board, king):\n        return -1\n", ""),),
    "the king steps back on the line of its attacker": ((SAFE, SAFE_BEFORE_THE_MOVE),),
    "a pawn jumps over a piece": ((BLOCKED, JUMPING),),
    "a pawn moves two squares onto a piece": (
        ("if is_ahead and source < 16 and board[target + 8] == EMPTY:", "if is_ahead and source < 16:"),
    ),
    "a pawn moves two squares from the third rank": (
        ("if is_ahead and source < 16 and", "if is_ahead and source < 24 and"),
    ),
    "a pawn captures straight ahead": (
        ("if is_ahead and board[target] != EMPTY:", "if is_ahead and board[target] > 0:"),
    ),
    "knights jump round the edge": ((ON_BOARD, ROUND_THE_EDGE),),
    "Black's board is rotated": (
        ("    return square ^ 56\n", "    return square ^ 63\n"),
        ("return -board.reshape(8, 8)[::-1].ravel()", "return -board[::-1]"),
        ("(8, 8))[::-1].ravel().tolist()", "(8, 8))[::-1, ::-1].ravel().tolist()"),
    ),
}
"""The name of each mistake, and what it changes in the source."""


_numbers = itertools.count()


def chess_mistakes() -> Iterator[Mistake]:
    """Yield the mistakes; each makes another game that is right in itself, or one whose parts contradict it."""
    for name in PLANTED:
        yield Mistake("a rule of chess", name, False, made_with(name))


def made_with(name: str) -> Make:
    """Return a function that makes the initial position of chess with a mistake."""
    return changed_module(*PLANTED[name]).Chess


def changed_module(*edits: Edit) -> types.ModuleType:
    """Return the module of chess with changes. Raises ValueError if a part does not occur once in its source."""
    source = inspect.getsource(chess)
    for part, other in edits:
        if source.count(part) != 1:
            raise ValueError(
                f"expected this part once in the source of chess, got it {source.count(part)} times: {part}"
            )
        source = source.replace(part, other)
    module = types.ModuleType(f"chess_with_a_mistake_{next(_numbers)}")
    sys.modules[module.__name__] = module  # where Numba looks for what it compiles
    exec(compile(source, inspect.getfile(chess), "exec"), vars(module))
    return module


def as_plain_python(module: types.ModuleType, **options: bool) -> CompiledGame:
    """Return the initial position of a module of chess, whose rules are not compiled."""
    return cast(CompiledGame, module.Chess(**options)).as_plain_python()
