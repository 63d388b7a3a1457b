"""Chess with all of its rules, on the squares and with the numbers of actions that AlphaZero used."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from plyzero.errors import shown
from plyzero.rules.board import TEXT_STYLE, Board, Mark, grid, square_names
from plyzero.rules.compiled_game import CompiledGame, Record, kernel
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.notation import play_named

# The player to move sees the board from their own side: row 0 is their first rank, column 0 is the file a for both,
# so Black's board is mirrored, not rotated. A square is 8 * row + column. Own pieces are positive, the others negative.
EMPTY, PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(7)
LETTERS = ".PNBRQK"
PIECE_NAMES = ("", "pawn", "knight", "bishop", "rook", "queen", "king")
FIGURES = ("", *(f"0:{figure}" for figure in "♙♘♗♖♕♔"), *(f"1:{figure}" for figure in "♚♛♜♝♞♟"))
SET = {QUEEN: 1, ROOK: 2, BISHOP: 2, KNIGHT: 2, PAWN: 8}
"""Number of pieces of each kind that a player begins with, the most valuable first."""

OWN, OTHER = 0, 1
FILES = "abcdefgh"
NAMES = (square_names(8, 8), tuple(np.reshape(square_names(8, 8), (8, 8))[::-1].ravel().tolist()))

# An action is plane * 64 + source. Planes 0 to 55 are 7 * direction + distance - 1; straight directions are even,
# diagonal ones odd. Then come the knight's 8 jumps, then promotions to less than a queen: PROMOTED[n], each with a
# capture to the left, a step ahead, and a capture to the right. Castling is the king's move onto its own rook.
DIRECTIONS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
JUMPS = ((2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1))
AHEAD, RIGHT, LEFT = 0, 2, 6
PAWN_DIRECTIONS = (7, 0, 1)
FIRST_JUMP, FIRST_PROMOTION, PLANES = 56, 64, 73
PROMOTED = (KNIGHT, BISHOP, ROOK)
QUEENING = tuple(7 * direction for direction in PAWN_DIRECTIONS)
SIDEWAYS = (*range(7 * RIGHT, 7 * RIGHT + 7), *range(7 * LEFT, 7 * LEFT + 7))
STEPS = (
    *((distance * up, distance * right) for up, right in DIRECTIONS for distance in range(1, 8)),
    *JUMPS,
    *(DIRECTIONS[direction] for _ in PROMOTED for direction in PAWN_DIRECTIONS),
)

MAX_FOUND = 32
"""Room for the moves of one piece; a queen has 27 at most."""

HISTORY = 4
"""Number of positions that are observed: those that a move to and fro of both players comes back to."""

MAX_CLOCK = 100
"""Number of plies without a capture or a move of a pawn after which the game is drawn."""

MAX_PIECES, MAX_PAWNS = 16, 8
"""Largest numbers of pieces and of pawns that a player may have in FEN."""

SETUPS = 960
"""Number of orders of the pieces in Chess960."""

MAX_MOVE_NUMBER = 9999
"""Largest number of a move that FEN may have."""


def _targets() -> Record:
    """Return the square where an action ends, `[plane, source]`, -1 beyond the board."""
    targets = np.full((PLANES, 64), -1, np.int8)
    for plane, (up, right) in enumerate(STEPS):
        for square in range(64):
            row, column = square // 8 + up, square % 8 + right
            if row in range(8) and column in range(8):
                targets[plane, square] = 8 * row + column
    return targets


def _action_names(player: int) -> tuple[str, ...]:
    """Return the names of all actions of a player, apart from promotions to a queen and castling."""
    found = []
    for action in range(PLANES * 64):
        plane, source = divmod(action, 64)
        target = TARGETS[plane, source]
        promoted = LETTERS[PROMOTED[(plane - FIRST_PROMOTION) // 3]].lower() if plane >= FIRST_PROMOTION else ""
        squares = NAMES[player][source] + NAMES[player][target]
        found.append(str(action) if target < 0 else squares + promoted)  # beyond the board
    return tuple(found)


def _attacks() -> Record:
    """Return whether a piece of the opponent attacks the square that lies a plane's way before it, `[piece, plane]`."""
    attacks = np.zeros((KING + 1, FIRST_PROMOTION), np.bool_)
    attacks[KNIGHT, FIRST_JUMP:] = True
    for direction in range(8):
        way = slice(7 * direction, 7 * direction + 7)
        attacks[QUEEN, way] = True
        attacks[ROOK if direction % 2 == 0 else BISHOP, way] = True
        attacks[KING, 7 * direction] = True
        attacks[PAWN, 7 * direction] = direction in (1, 7)  # diagonally ahead, since it comes from there
    return attacks


SAN = re.compile(
    r"(?P<piece>[KQRBN])?(?P<file>[a-h])?(?P<rank>[1-8])?[-x:]?(?P<to>[a-h][1-8])[=(]?(?P<promoted>[QRBN])?\)?[+#!?]*"
    r"|(?P<castling>[O0]-[O0](?:-[O0])?)[+#!?]*"
)
"""Pattern of a move in the notation of people."""

NULL_MOVES = ("--", "Z0", "0000", "@@@@")
"""Names by which programs pass in their notes; no player may."""

FEN = re.compile(
    r"(?P<board>[1-8PNBRQKpnbrqk/]{15,}) (?P<to_play>[wb]) (?P<rights>[KQA-Hkqa-h]+|-) (?P<en_passant>[a-h][36]|-)"
    r"(?: (?P<clock>\d{1,4}) (?P<number>\d{1,5}))?\s*$"
)
"""Pattern of the last line of a text with FEN."""

TARGETS = _targets()
ATTACKS = _attacks()
ACTION_NAMES = (_action_names(0), _action_names(1))


class Chess(CompiledGame, version=1):
    """Mate the king. All rules of chess; with 960 set-ups: `chess(chess960=True)`.

    A game is drawn at the third occurrence of a position and after 50 moves without a capture or a move of a pawn.
    """

    rules_text = """Mate wins: the king is attacked, and no move saves it. A player who cannot move but is not in check
    draws. Pawns that reach the last rank become a queen, a rook, a bishop or a knight. Castling: move the king two
    squares towards the rook (in Chess960, onto the rook), if neither has moved, nothing stands between them, and no
    square on the king's way is attacked. A pawn that has just moved two squares may be captured as if it had moved one.
    The game is drawn when a position occurs for the third time, after 50 moves of each player without a capture or a
    move of a pawn, and when too few pieces are left for a mate."""

    waived_laws: ClassVar[Mapping[str, str]] = {
        "games_end": "50 moves without progress end every game, but it may take thousands of plies; self-play stops at "
        "512 and does not train on the result"
    }

    State = np.dtype(
        [
            ("board", "i1", (64,)),
            # For OWN and OTHER: the columns of the rooks on the sides of files a and h with which the king may castle.
            ("rights", "i1", (2, 2)),
            ("en_passant", "i1"),  # the empty square on which a pawn may be captured, if this is legal; or -1
            ("clock", "i1"),  # plies since the last capture or move of a pawn
            # The moves that can be taken back without a trace: since then no piece or right was lost. Only positions
            # among them can be repeated. A move is (source, target), as the player who made it saw them.
            ("run", "i1"),
            ("moves", "i1", (MAX_CLOCK, 2)),
            ("plies", "i2"),
            ("to_play", "i1"),
        ]
    )
    observation_dtype = bool
    observation_shape = (13 * HISTORY + 16, 8, 8)
    policy_planes = PLANES
    num_actions = PLANES * 64
    max_plies = 512

    def __init__(self, chess960: bool = False) -> None:
        if not isinstance(chess960, bool):
            raise ValueError(f"expected chess960=True or chess960=False, got {chess960!r}")
        self.chess960 = chess960
        self.setups = SETUPS if chess960 else 0
        self.uci_variant = "chess960" if chess960 else "chess"
        super().__init__()

    def start(s: Record) -> None:
        set_up_pieces(s, [ROOK, KNIGHT, BISHOP, QUEEN, KING, BISHOP, KNIGHT, ROOK])

    def set_up(s: Record, number: int) -> None:
        set_up_pieces(s, pieces_of_setup(number))

    # Each kernel is compiled once for each type of its arguments, so they are alike everywhere: s["board"][:] has the
    # type of a copy of the board, a number is an int64, and none is a constant.

    def legal(s: Record, mask: Record) -> None:
        king = find_king(s["board"][:])
        suspects = suspect_pieces(s["board"][:], king)
        found = np.empty(MAX_FOUND, np.int64)
        for source in range(64):
            for number in range(find_moves(s, source, king, suspects, found)):
                mask[found[number]] = True

    def play(s: Record, action: int) -> None:
        board = s["board"][:]
        source, target = action % 64, int(TARGETS[action // 64, action % 64])
        is_pawn = board[source] == PAWN
        ends_run = is_pawn or board[target] < 0 or s["en_passant"] >= 0
        s["clock"] = 0 if is_pawn or board[target] < 0 else s["clock"] + 1
        ends_run |= lose_rights(s, source, target)
        carry_out(board, s["en_passant"], action)
        if ends_run:
            s["moves"][: s["run"]] = 0
            s["run"] = 0
        else:
            s["moves"][s["run"], 0] = source
            s["moves"][s["run"], 1] = target
            s["run"] += 1
        s["plies"] += 1
        turn(s)
        s["en_passant"] = -1
        if is_pawn and target - source == 16:
            allow_en_passant(s, turned(target) + 8)

    def outcome(s: Record) -> int:
        if not has_move(s):
            board = s["board"][:]
            if is_attacked(board, find_king(board)):
                return 1 - s["to_play"]
            return DRAW
        if s["clock"] >= MAX_CLOCK or is_dead(s["board"][:]) or occurrences(s, s["board"][:], np.int64(s["run"])) >= 2:
            return DRAW
        return ONGOING

    def observe(s: Record, planes: Record) -> None:
        board = s["board"].copy()
        for age in range(min(HISTORY, s["run"] + 1)):
            number = int(s["run"]) - age
            if age:
                take_back(s, board, number)
            first = 13 * age
            for square in range(64):
                piece = board[square]
                if piece > 0:
                    planes[first + piece - 1, square // 8, square % 8] = 1
                elif piece < 0:
                    planes[first + 5 - piece, square // 8, square % 8] = 1
            fill(planes, first + 12, occurrences(s, board, number) > 0)
        first = 13 * HISTORY
        for side in range(2):
            for wing in range(2):
                if s["rights"][side, wing] >= 0:
                    planes[first + side, 7 * side, s["rights"][side, wing]] = 1
        if s["en_passant"] >= 0:
            planes[first + 2, s["en_passant"] // 8, s["en_passant"] % 8] = 1
        for tens in range(1, 10):
            fill(planes, first + 2 + tens, s["clock"] >= 10 * tens)
        for bit in range(4):
            fill(planes, first + 12 + bit, (s["clock"] % 10 >> bit) % 2 == 1)

    def action_name(self, action: int) -> str:
        """Return the name of an action for UCI programs; in Chess960 castling is named by the rook's square."""
        name, source = ACTION_NAMES[self.to_play][action], action % 64
        if source // 8 == 6 and action // 64 in QUEENING and self.record["board"][source] == PAWN:
            return name + "q"
        if not self.chess960 and self._is_castling(action):
            return name[:2] + ("g" if name[2] == "h" else "c") + name[3]
        return name

    def san(self, action: int) -> str:
        """Return the name of a legal action in the short algebraic notation of people, such as Nf3, exd5 or O-O."""
        source, target = action % 64, int(TARGETS[action // 64, action % 64])
        board = self.record["board"]
        piece, name = int(board[source]), NAMES[self.to_play][source]
        to = NAMES[self.to_play][target]
        captures = "x" if board[target] < 0 or (piece == PAWN and target == self.record["en_passant"]) else ""
        if self._is_castling(action):
            text = "O-O" if target > source else "O-O-O"
        elif piece == PAWN:
            promoted = self.action_name(action)[4:].upper()
            text = (name[0] + captures if captures else "") + to + ("=" + promoted if promoted else "")
        else:
            text = LETTERS[piece] + self._distinction(action) + captures + to
        after = self.play_unchecked(action)
        outcome = CompiledGame.outcome(after)
        is_mate = outcome is not None and outcome.winner is not None
        return text + ("#" if is_mate else "+" if after.is_check() else "")

    def _distinction(self, action: int) -> str:
        """Return what distinguishes a move of a piece from those of its like to the same square, in their names."""
        board, names = self.record["board"], NAMES[self.to_play]
        source, target = action % 64, TARGETS[action // 64, action % 64]
        rivals = [
            names[other % 64]
            for other in self.legal_actions()
            if other % 64 != source
            and TARGETS[other // 64, other % 64] == target
            and board[other % 64] == board[source]
        ]
        own = names[source]
        if not rivals:
            return ""
        if all(rival[0] != own[0] for rival in rivals):
            return own[0]
        return own[1] if all(rival[1] != own[1] for rival in rivals) else own

    def parse_action(self, text: str) -> int:
        """Return the legal action that `text` names: e2e4 as UCI programs write it, or Nf3 as people do."""
        word = text.strip()
        if word in NULL_MOVES:
            raise ValueError(f"expected a move, got {shown(word)}, by which a player passes: chess has no such move")
        legal = self.legal_actions()
        for action in legal:
            if self.action_name(action) == word:
                return action
        found = SAN.fullmatch(word)
        meant = [action for action in legal if self._fits(action, found)] if found else []
        if len(meant) > 1:
            raise ValueError(f"expected one of {' '.join(map(self.san, meant))}, got {shown(word)}")
        return meant[0] if meant else super().parse_action(word)

    def _fits(self, action: int, found: re.Match[str]) -> bool:
        """Return whether a legal action is meant by a match of SAN."""
        source, target = action % 64, TARGETS[action // 64, action % 64]
        if self._is_castling(action) or found["castling"]:
            wings = found["castling"] and len(found["castling"])
            return self._is_castling(action) and wings == (3 if target > source else 5)
        names = NAMES[self.to_play]
        return (
            LETTERS[self.record["board"][source]] == (found["piece"] or "P")
            and (found["file"] or "") + (found["rank"] or "") in (names[source], *names[source], "")
            and names[target] == found["to"]
            and self.action_name(action)[4:].upper() == (found["promoted"] or "")
        )

    def _is_castling(self, action: int) -> bool:
        """Return whether an action is the king's move onto a rook with which it might castle."""
        source = action % 64
        if source >= 8 or action // 64 not in SIDEWAYS or (source != 4 and not self.chess960):
            return False
        board, target = self.record["board"], int(TARGETS[action // 64, source])
        is_corner = target in (0, 7) or self.chess960
        return bool(target >= 0 and is_corner and board[source] == KING and board[target] == ROOK)

    def is_check(self) -> bool:
        """Return whether the player to move is in check."""
        board = self.record["board"]
        return bool(plain(is_attacked)(board, board.tolist().index(KING)))

    def fen(self) -> str:
        if self.awaits_setup:
            return ""
        record = self.record
        ranks = ["".join(letter_of(piece) for piece in rank) for rank in white_view(record)[::-1].tolist()]
        board = re.sub(r"\.+", lambda empty: str(len(empty[0])), "/".join(ranks))
        rights = "".join(self._rights_of(player) for player in (0, 1)) or "-"
        target = int(record["en_passant"])
        en_passant = NAMES[self.to_play][target] if target >= 0 else "-"
        return f"{board} {'wb'[self.to_play]} {rights} {en_passant} {record['clock']} {record['plies'] // 2 + 1}"

    def _rights_of(self, player: int) -> str:
        """Return the rights of a player to castle in FEN. A rook that is not the outermost is named by its file."""
        side = OWN if player == self.to_play else OTHER
        board = white_view(self.record)
        first_rank = board[0] if player == 0 else -board[7]
        letters = ""
        for wing in (1, 0):
            rook = int(self.record["rights"][side, wing])
            if rook >= 0:
                outside = first_rank[rook + 1 :] if wing else first_rank[:rook]
                letters += FILES[rook].upper() if (outside == ROOK).any() else "QK"[wing]
        return letters if player == 0 else letters.lower()

    def __str__(self) -> str:
        """Return the board and FEN of the position after which no piece or right was lost, with the moves since."""
        if self.awaits_setup:
            return str(self.render())
        position = self.with_state(self.state)
        record = position.record
        names: list[str] = []
        for source, target in record["moves"][: int(record["run"])].tolist()[::-1]:
            record["board"] = turned_board(record["board"])
            record["rights"] = record["rights"][::-1].copy()
            record["to_play"] = 1 - record["to_play"]
            record["board"][source], record["board"][target] = record["board"][target], EMPTY
            names.insert(0, NAMES[position.to_play][source] + NAMES[position.to_play][target])
        record["clock"] -= len(names)
        record["plies"] -= len(names)
        return "\n".join([str(self.render()), " ".join([position.fen(), *(["moves", *names] if names else [])])])

    def from_text(self, text: str) -> Self:
        """Return the position of names of moves, or of FEN, after which "moves" and their names may follow."""
        before, _, moves = " ".join(text.split()).partition(" moves ")
        position: Any = self  # mypy takes the rules of a compiled game for methods
        if "/" in before:
            found = FEN.search(before)
            if not found:
                expected = "expected FEN such as 4k3/8/8/8/8/8/4P3/4K3 w - - 0 1, with the letters PNBRQK and pnbrqk"
                raise ValueError(f"{expected}, got {shown(before)}")
            position = self._from_fen(found)
        else:
            moves = text
        return play_named(position, re.sub(r"\b\d+\.+", " ", moves).split())[0][-1]

    def _from_fen(self, found: re.Match[str]) -> Self:
        """Return the position of a match of FEN. Raises ValueError with a sentence if it is none of chess."""
        board = read_board(found["board"])
        to_play = "wb".index(found["to_play"])
        position = self.with_state(np.zeros_like(self.state))
        record = position.record
        record["to_play"] = to_play
        record["board"] = board if to_play == 0 else turned_board(board)
        other = turned_board(record["board"])
        if plain(is_attacked)(other, other.tolist().index(KING)):
            mover, other_player = ("White", "Black") if to_play == 0 else ("Black", "White")
            raise ValueError(
                f"expected a king of {other_player} that is not attacked when {mover} is to move, got one in check: is "
                f"{other_player} to move?"
            )
        record["rights"] = read_rights(found["rights"], board, self.chess960)[:: 1 - 2 * to_play]
        record["clock"] = min(int(found["clock"] or 0), MAX_CLOCK)
        number = min(max(int(found["number"] or 1), 1), MAX_MOVE_NUMBER)
        record["plies"] = 2 * (number - 1) + to_play
        record["en_passant"] = -1
        if found["en_passant"] != "-":
            position._allow_en_passant(found["en_passant"])
        return position

    def _allow_en_passant(self, name: str) -> None:
        """Note the en passant square of FEN if a capture on it is legal. Raises ValueError if it cannot be one."""
        board, target = self.record["board"], NAMES[self.to_play].index(name)
        if target // 8 != 5 or (board[target - 8], board[target], board[target + 8]) != (-PAWN, EMPTY, EMPTY):
            raise ValueError(
                f"expected an en passant square behind a pawn that has moved two squares, or - for none, got {name}"
            )
        self.record["en_passant"] = target
        ends = [action % 64 for action in self.legal_actions() if TARGETS[action // 64, action % 64] == target]
        if not any(board[source] == PAWN and source % 8 != target % 8 for source in ends):
            self.record["en_passant"] = -1

    def scoreboard(self) -> tuple[str, str]:
        """Return the figures that each player has taken, and who is in check."""
        texts = [self._taken_by(player) for player in (0, 1)]
        if self.is_check():
            taken = texts[self.to_play]
            texts[self.to_play] = f"{taken}, in check" if taken else "in check"
        return texts[0], texts[1]

    def _taken_by(self, player: int) -> str:
        """Return the figures that are missing of the other player's, the most valuable first.

        A piece beyond those of the beginning was a pawn.
        """
        board = white_view(self.record)
        sign = 1 if player else -1
        missing = {piece: number - int((board == sign * piece).sum()) for piece, number in SET.items()}
        promoted = sum(max(0, -number) for number in missing.values())
        missing[PAWN] -= promoted
        return "".join(max(0, number) * _figure(sign * piece) for piece, number in missing.items())

    def why_illegal(self, action: int) -> str:
        source, target = action % 64, int(TARGETS[action // 64, action % 64])
        board, names = self.record["board"], NAMES[self.to_play]
        piece = board[source]
        if target < 0:
            return ""
        if piece <= 0:
            return f"No piece of yours is on {names[source]}."
        if piece == KING and source // 8 == target // 8 and abs(target - source) > 1:
            return self._why_not_castle(source < target)
        if board[target] > 0:
            return f"A piece of your own is on {names[target]}."
        found = np.zeros(MAX_FOUND, np.int64)
        if piece == PAWN:
            count = plain(pawn_moves)(board, source, int(self.record["en_passant"]), found)
        else:
            count = plain(knight_moves if piece == KNIGHT else line_moves)(board, source, found)
        if action in found[:count]:
            return "The king is in check, and stays so." if self.is_check() else "The king would be in check."
        return f"{names[source]} to {names[target]} is no move of a {PIECE_NAMES[piece]}."

    def _why_not_castle(self, to_the_right: bool) -> str:
        if self.record["rights"][OWN, int(to_the_right)] < 0:
            return "The king or this rook has moved, so they cannot castle."
        if self.is_check():
            return "The king is in check, so it cannot castle."
        return "The king cannot castle: a piece is in the way, or a square on its way is attacked."

    def render(self) -> Board:
        board = white_view(self.record)
        squares = grid(board % len(FIGURES), pieces=FIGURES, rows_up=True, style="checks")
        marks: tuple[Mark, ...] = ()
        if self.is_check():
            king = int(np.argmax(board == (-KING if self.to_play else KING)))
            marks = (Mark(NAMES[0][king], "in check"),)
        return replace(squares, marks=marks, turns=True)


# --- kernels ---


@kernel
def turned(square: int) -> int:
    """Return the number of a square as the other player sees it."""
    return square ^ 56


@kernel
def find_king(board: Record) -> int:
    """Return the square of the own king."""
    square = 0
    while board[square] != KING:
        square += 1
    return square


@kernel
def is_attacked(board: Record, square: int) -> bool:
    """Return whether the opponent attacks a square."""
    for direction in range(8):
        for plane in range(7 * direction, 7 * direction + 7):
            at = TARGETS[plane, square]
            if at < 0 or board[at] > 0:
                break
            if board[at] < 0:
                if ATTACKS[-board[at], plane]:
                    return True
                break
    for plane in range(FIRST_JUMP, FIRST_PROMOTION):
        at = TARGETS[plane, square]
        if at >= 0 and board[at] == -KNIGHT:
            return True
    return False


@kernel
def suspect_pieces(board: Record, king: int) -> int:
    """Return the set of own pieces, a bit for each square, whose moves may leave the king attacked.

    These are the king, the pieces that are pinned, and all in check; en passant is judged by itself.
    """
    if is_attacked(board, king):
        return -1
    suspects = 1 << king
    for direction in range(8):
        shield = -1
        for plane in range(7 * direction, 7 * direction + 7):
            at = int(TARGETS[plane, king])
            if at < 0 or (board[at] > 0 and shield >= 0):
                break
            if board[at] > 0:
                shield = at
            elif board[at] < 0:
                if shield >= 0 and ATTACKS[-board[at], plane]:
                    suspects |= 1 << shield
                break
    return suspects


@kernel
def is_safe(s: Record, action: int) -> bool:
    """Return whether the own king is not attacked after a move."""
    board = s["board"].copy()
    carry_out(board, s["en_passant"], action)
    return not is_attacked(board, find_king(board))


@kernel
def find_moves(s: Record, source: int, king: int, suspects: int, found: Record) -> int:
    """Write the legal moves from a square into `found`, and return their number."""
    board = s["board"][:]
    piece = board[source]
    is_suspect = suspects >> source & 1 != 0
    if piece <= 0:
        return 0
    if piece == PAWN:
        count = pawn_moves(board, source, s["en_passant"], found)
        is_suspect |= s["en_passant"] >= 0
    elif piece == KNIGHT:
        count = knight_moves(board, source, found)
    else:
        count = line_moves(board, source, found)
    if piece == KING:
        count = add_castling(s, king, found, count)
    if not is_suspect:
        return count
    safe = 0
    for number in range(count):
        if is_safe(s, found[number]):
            found[safe] = found[number]
            safe += 1
    return safe


@kernel
def pawn_moves(board: Record, source: int, en_passant: int, found: Record) -> int:
    """Write the moves of a pawn into `found`, whether they leave the king attacked or not; return their number."""
    count = 0
    for side in range(3):
        plane = 7 * PAWN_DIRECTIONS[side]
        target = TARGETS[plane, source]
        if target < 0:
            continue
        is_ahead = PAWN_DIRECTIONS[side] == AHEAD
        if is_ahead and board[target] != EMPTY:
            continue
        if not is_ahead and board[target] >= 0 and target != en_passant:
            continue
        found[count] = plane * 64 + source
        count += 1
        if is_ahead and source < 16 and board[target + 8] == EMPTY:
            found[count] = (plane + 1) * 64 + source
            count += 1
        if target >= 56:
            for kind in range(3):
                found[count] = (FIRST_PROMOTION + 3 * kind + side) * 64 + source
                count += 1
    return count


@kernel
def knight_moves(board: Record, source: int, found: Record) -> int:
    """Write the moves of a knight into `found`, as `pawn_moves` does."""
    count = 0
    for plane in range(FIRST_JUMP, FIRST_PROMOTION):
        target = TARGETS[plane, source]
        if target >= 0 and board[target] <= 0:
            found[count] = plane * 64 + source
            count += 1
    return count


@kernel
def line_moves(board: Record, source: int, found: Record) -> int:
    """Write the moves of a bishop, a rook, a queen or the king into `found`, as `pawn_moves` does."""
    count = 0
    piece = board[source]
    first = 1 if piece == BISHOP else 0
    every = 2 if piece in (BISHOP, ROOK) else 1
    distance = 1 if piece == KING else 7
    for direction in range(first, 8, every):
        for plane in range(7 * direction, 7 * direction + distance):
            target = TARGETS[plane, source]
            if target < 0 or board[target] > 0:
                break
            found[count] = plane * 64 + source
            count += 1
            if board[target] < 0:
                break
    return count


@kernel
def add_castling(s: Record, king: int, found: Record, count: int) -> int:
    """Append the castlings to the `count` actions in `found`, and return their number."""
    for wing in range(2):
        rook = int(s["rights"][OWN, wing])
        if rook >= 0 and can_castle(s["board"][:], king, rook, wing):
            distance = 7 * RIGHT + rook - king if rook > king else 7 * LEFT + king - rook
            found[count] = (distance - 1) * 64 + king
            count += 1
    return count


@kernel
def can_castle(board: Record, king: int, rook: int, wing: int) -> bool:
    """Return whether no piece is in the way, and no square from the king's to its new one is attacked."""
    king_to, rook_to = (2, 3) if wing == 0 else (6, 5)
    free = board.copy()
    free[king] = free[rook] = EMPTY
    for square in range(min(king, rook, king_to, rook_to), max(king, rook, king_to, rook_to) + 1):
        if free[square] != EMPTY:
            return False
    attacked = False
    for square in range(min(king, king_to), max(king, king_to) + 1):
        attacked |= is_attacked(free, square)
    return not attacked


@kernel
def carry_out(board: Record, en_passant: int, action: int) -> None:
    """Make a move on the board."""
    plane, source = action // 64, action % 64
    target = TARGETS[plane, source]
    piece = board[source]
    board[source] = EMPTY
    if board[target] > 0:  # castling
        board[target] = EMPTY
        is_left = target < source
        board[2 if is_left else 6] = KING
        board[3 if is_left else 5] = ROOK
    elif piece != PAWN:
        board[target] = piece
    else:
        if target == en_passant:
            board[target - 8] = EMPTY
        if target < 56:
            board[target] = PAWN
        else:
            board[target] = PROMOTED[(plane - FIRST_PROMOTION) // 3] if plane >= FIRST_PROMOTION else QUEEN


@kernel
def lose_rights(s: Record, source: int, target: int) -> bool:
    """Take the rights to castle that end with a move, and return whether there are any."""
    rights = s["rights"]
    lost = False
    for wing in range(2):
        if rights[OWN, wing] >= 0 and (s["board"][source] == KING or source == rights[OWN, wing]):
            rights[OWN, wing] = -1
            lost = True
        if rights[OTHER, wing] >= 0 and target == turned(rights[OTHER, wing]):
            rights[OTHER, wing] = -1
            lost = True
    return lost


@kernel
def turn(s: Record) -> None:
    """Show the board to the other player, who is to move."""
    board, rights = s["board"], s["rights"]
    for square in range(32):
        there = turned(square)
        board[square], board[there] = -board[there], -board[square]
    for wing in range(2):
        rights[OWN, wing], rights[OTHER, wing] = rights[OTHER, wing], rights[OWN, wing]
    s["to_play"] = 1 - s["to_play"]


@kernel
def allow_en_passant(s: Record, target: int) -> None:
    """Note that a pawn may be captured on `target`, if there is a pawn whose capture is legal."""
    s["en_passant"] = target
    for direction in range(1, 8, 6):  # of the capture, to the right or to the left
        source = int(TARGETS[7 * ((direction + 4) % 8), target])
        if source >= 0 and s["board"][source] == PAWN and is_safe(s, 7 * direction * 64 + source):
            return
    s["en_passant"] = -1


@kernel
def has_move(s: Record) -> bool:
    """Return whether the player to move has a legal move."""
    king = find_king(s["board"][:])
    suspects = suspect_pieces(s["board"][:], king)
    found = np.empty(MAX_FOUND, np.int64)
    count = 0
    for source in range(64):
        count = find_moves(s, source, king, suspects, found)
        if count > 0:
            break
    return count > 0


@kernel
def is_dead(board: Record) -> bool:
    """Return whether nobody can mate: the kings are alone with one knight, or with bishops on squares of one colour."""
    knights, light, dark = 0, 0, 0
    for square in range(64):
        piece = abs(board[square])
        if piece in (PAWN, ROOK, QUEEN):
            return False
        if piece == KNIGHT:
            knights += 1
        elif piece == BISHOP:
            if (square // 8 + square) % 2:
                light += 1
            else:
                dark += 1
    return knights + light + dark <= 1 or (knights == 0 and (light == 0 or dark == 0))


@kernel
def occurrences(s: Record, board: Record, number: int) -> int:
    """Return how often the board after `number` moves of the run has occurred in it before.

    Rights are the same in the whole run. Only every other position has the same player to move.
    """
    if number < 4:
        return 0
    found = 0
    earlier = board.copy()
    for before in range(number - 1, -1, -1):
        take_back(s, earlier, before)
        if (number - before) % 2 == 0 and is_same(earlier, board):
            found += 1
    return found


@kernel
def take_back(s: Record, board: Record, number: int) -> None:
    """Take back a move of the run on the board, as the player to move sees it."""
    source, target = s["moves"][number, 0], s["moves"][number, 1]
    if (s["run"] - number) % 2:
        source, target = turned(source), turned(target)
    board[source] = board[target]
    board[target] = EMPTY


@kernel
def is_same(board: Record, other: Record) -> bool:
    """Return whether two boards have the same pieces."""
    same = True
    for square in range(64):
        same &= board[square] == other[square]
    return same


@kernel
def fill(planes: Record, number: int, is_set: bool) -> None:
    """Set all squares of a plane."""
    if is_set:
        for square in range(64):
            planes[number, square // 8, square % 8] = 1


# --- what runs as plain Python: set-ups and texts ---


def pieces_of_setup(number: int) -> list[int]:
    """Return the pieces on the first rank of a set-up of Chess960, by the usual numbers: 518 is that of chess."""
    number, light = divmod(number, 4)
    number, dark = divmod(number, 4)
    knights, queen = divmod(number, 6)
    pieces = [EMPTY] * 8
    pieces[2 * light + 1] = pieces[2 * dark] = BISHOP
    pieces[_empty(pieces)[queen]] = QUEEN
    free = _empty(pieces)
    for place in [*combinations(free, 2)][knights]:
        pieces[place] = KNIGHT
    for place, piece in zip(_empty(pieces), (ROOK, KING, ROOK), strict=True):
        pieces[place] = piece
    return pieces


def _empty(pieces: list[int]) -> list[int]:
    return [place for place, piece in enumerate(pieces) if piece == EMPTY]


def set_up_pieces(s: Record, pieces: list[int]) -> None:
    """Set up a new game with `pieces` on the first rank."""
    board = s["board"].reshape(8, 8)
    board[...] = EMPTY
    board[0], board[1] = pieces, PAWN
    board[7], board[6] = [-piece for piece in pieces], -PAWN
    s["rights"][...] = [column for column in range(8) if pieces[column] == ROOK]
    s["en_passant"] = -1


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that calls no other one as plain Python, so that nothing is compiled for a text."""
    return getattr(function, "py_func", function)


def turned_board(board: Record) -> Record:
    """Return a board, `[64]`, as the other player sees it."""
    return -board.reshape(8, 8)[::-1].ravel()


def white_view(record: Record) -> Record:
    """Return the board of a position as White sees it, `[8, 8]`."""
    return (record["board"] if record["to_play"] == 0 else turned_board(record["board"])).reshape(8, 8)


def _figure(piece: int) -> str:
    """Return the figure of a piece in a line of text. Without the sign, some systems show a pawn as an emoji."""
    figure = FIGURES[piece].partition(":")[2]
    return figure + TEXT_STYLE if figure == "♟" else figure


def letter_of(piece: int) -> str:
    """Return the letter of a piece in FEN, a capital for White, or a dot."""
    return LETTERS[piece] if piece >= 0 else LETTERS[-piece].lower()


def read_board(text: str) -> Record:
    """Return the board of FEN as White sees it, `[64]`. Raises ValueError with a sentence if it cannot be one."""
    ranks = [re.sub(r"\d", lambda empty: "." * int(empty[0]), rank) for rank in text.split("/")]
    if [len(rank) for rank in ranks] != [8] * 8:
        raise ValueError(f"expected FEN of 8 ranks with 8 squares, got {shown(text)}")
    for letters, player in ((LETTERS[1:], "White"), (LETTERS[1:].lower(), "Black")):
        counts = [text.count(letter) for letter in letters]
        if counts[KING - 1] != 1:
            raise ValueError(f"expected one king of {player}, got {counts[KING - 1]}")
        if sum(counts) > MAX_PIECES or counts[PAWN - 1] > MAX_PAWNS:
            expected = f"expected at most {MAX_PIECES} pieces of {player}, {MAX_PAWNS} of them pawns"
            raise ValueError(f"{expected}, got {sum(counts)} pieces, {counts[PAWN - 1]} of them pawns")
    if "p" in (ranks[0] + ranks[7]).lower():
        raise ValueError(f"expected no pawn on the first and the last rank, got {shown(text)}")
    pieces = [LETTERS.index(letter.upper()) * (-1 if letter.islower() else 1) for letter in "".join(ranks[::-1])]
    return np.array(pieces, np.int8)


def read_rights(text: str, board: Record, chess960: bool) -> Record:
    """Return the rights to castle that FEN names, `[white or black, wing]`: columns of rooks, or -1.

    Raises ValueError with a sentence if the king or a rook does not stand where it may castle.
    """
    rights = np.full((2, 2), -1, np.int8)
    for letter in text.replace("-", ""):
        player = int(letter.islower())
        first_rank = (board if player == 0 else turned_board(board))[:8].tolist()
        rooks = [column for column in range(8) if first_rank[column] == ROOK]
        king = first_rank.index(KING) if KING in first_rank else -1
        named = FILES.find(letter.lower())
        if named < 0:
            sides = [column for column in rooks if (column > king) == (letter in "Kk")]
            named = (sides or [-1])[-1 if letter in "Kk" else 0]
        wing = int(named > king)
        is_usual = king == 4 and named == (0, 7)[wing]
        if king < 0 or named not in rooks or not (chess960 or is_usual):
            raise ValueError(
                "expected rights to castle for a king and rooks on their first squares, or - for none, got "
                f"{shown(letter)}"
            )
        rights[player, wing] = named
    return rights
