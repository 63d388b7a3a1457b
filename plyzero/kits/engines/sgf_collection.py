"""The syntax of SGF: the main line of each game of a collection, in bounded memory.

Smart Game Format, FF[4] and the older FF[3]: https://www.red-bean.com/sgf
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from plyzero.errors import shown
from plyzero.lines import MAX_LINE

KEPT: Final = frozenset({"AB", "AE", "AP", "AW", "B", "GM", "HA", "KM", "PB", "PL", "PW", "RE", "SO", "SZ", "W"})
"""The properties that are read."""

TOKEN: Final = re.compile(r"\s+|[A-Za-z][A-Za-z0-9]*|.", re.DOTALL)
"""Pattern of what stands outside of values."""

IN_VALUE: Final = re.compile(r"\\.|\]", re.DOTALL)
"""Pattern of an escaped character in a value, or of its end."""

ROOT: Final = re.compile(r"\(\s*;\s*(?:CA|FF|GM|SZ)\s*\[")
"""Pattern of the beginning of a game: these properties stand in no other node than the first."""

CHARSET: Final = re.compile(rb"\bCA\s*\[\s*([\w.:-]+)\s*\]")
"""Pattern of the property that names the encoding."""

ENCODINGS: Final = re.compile(
    r"ascii|utf-8|iso8859-\d+|cp125\d|koi8-[ru]|gb2312|gbk|gb18030|big5|big5hkscs|shift_jis|cp932|euc_jp|euc_kr|cp949"
)
"""Pattern of Python's names of the encodings that are known."""


class Node(NamedTuple):
    """A node of the main line: the number of its line, and its properties that are KEPT."""

    line: int
    properties: dict[str, list[str]]


@dataclass
class SgfGame:
    """A game as it is read.

    line:    the number of its first line.
    nodes:   those of the main line: all before the first parenthesis that closes a variation.
    fault:   why it cannot be used, as a clause.
    size:    its characters so far.
    depth:   the number of its parentheses that are open.
    is_main: whether the main line goes on.
    """

    line: int
    nodes: list[Node] = field(default_factory=list)
    fault: str = ""
    size: int = 0
    depth: int = 1
    is_main: bool = True

    def fail(self, fault: str) -> None:
        """Note the first fault, and forget the nodes."""
        self.fault = self.fault or fault
        self.nodes.clear()


def read_collection(lines: Iterable[bytes], first: int = 1) -> Iterator[SgfGame]:
    """Yield the games of a collection, whose first line has the number `first`. One that is damaged has a `fault`."""
    return _Collection().read(lines, first)


class _Collection:
    """A reader of an SGF collection. It keeps the main line of one game at a time, and counts parentheses."""

    def __init__(self) -> None:
        self._game: SgfGame | None = None
        self._encoding = ""
        self._property = ""
        self._value: list[str] | None = None  # the parts of a value that is open; they are empty unless it is kept
        self._value_line = 0
        self._is_kept = False

    def read(self, lines: Iterable[bytes], first: int) -> Iterator[SgfGame]:
        """Yield each game as soon as it is closed, and the last one in any case."""
        for number, line in enumerate(lines, first):
            yield from self._read_line(self._decode(line), number)
            if len(line) > MAX_LINE:  # and the rest of it is missing
                yield from self._abandon(number)
        game = self._game
        if game is not None:
            if self._value is not None:
                game.fail(f"the value that begins with [ in line {self._value_line} is not closed")
            game.fail(f"{game.depth} of its parentheses are not closed at the end of the file")
            yield game

    def _decode(self, line: bytes) -> str:
        """Return a line as text, in the encoding that the game names, otherwise in UTF-8 or Latin-1."""
        if self._game is None:
            self._encoding = ""
        charset = None if self._encoding else CHARSET.search(line)
        if charset:
            self._encoding = _known_encoding(charset[1].decode(errors="replace"))
        for encoding in filter(None, (self._encoding, "utf-8")):
            try:
                return line.decode(encoding)
            except UnicodeDecodeError:
                continue
        return line.decode("latin-1")

    def _read_line(self, line: str, number: int) -> Iterator[SgfGame]:
        at = 0
        while at < len(line):
            begin = at
            game = self._game
            if game is None:
                at = line.find("(", begin) + 1
                if not at:
                    return
                game = self._begin(number)
            elif self._value is not None:
                at = self._read_value(game, line, begin)
            elif line[begin] == "(" and ROOT.match(line, begin):
                game.fail(f"{game.depth} of its parentheses are not closed before line {number}")
                yield game
                game = self._begin(number)
                at = begin + 1
            else:
                at = self._read_token(game, line, begin, number)
            game.size += at - begin
            if game.size > MAX_LINE:
                game.fail(f"longer than {MAX_LINE} bytes")
            if not game.depth:
                self._game = None
                yield game

    def _begin(self, number: int) -> SgfGame:
        self._game = SgfGame(number)
        self._property = ""
        return self._game

    def _abandon(self, number: int) -> Iterator[SgfGame]:
        game = self._game or SgfGame(number)
        game.fault = f"line {number} is longer than {MAX_LINE} bytes"
        game.nodes.clear()
        self._game, self._value = None, None
        yield game

    def _read_token(self, game: SgfGame, line: str, at: int, number: int) -> int:
        """Read what stands outside of a value, and return where it ends."""
        found = TOKEN.match(line, at)
        assert found is not None
        token = found[0]
        if token == "(":
            game.depth += 1
        elif token == ")":
            game.depth -= 1
            game.is_main = False
        elif token == ";":
            if game.is_main and not game.fault:
                game.nodes.append(Node(number, {}))
            self._property = ""
        elif token == "[":
            if not self._property:
                game.fail(f"expected the name of a property before the value in line {number}")
            elif not game.nodes and not game.fault:
                game.nodes.append(Node(number, {}))  # the first semicolon is missing in some files
            self._is_kept = game.is_main and not game.fault and self._property in KEPT
            self._value, self._value_line = [], number
        elif token[0].isalpha() and token.isascii():
            self._property = re.sub("[a-z]", "", token)  # FF[3] has long names such as Black, which is B
        elif not token.isspace():
            game.fail(f"expected a node or a property in line {number}, got {shown(token)}")
        return found.end()

    def _read_value(self, game: SgfGame, line: str, at: int) -> int:
        """Read the rest of a value, as far as it is in this line, and return where it ends."""
        assert self._value is not None
        end = len(line)
        is_closed = False
        for found in IN_VALUE.finditer(line, at):
            if found[0] == "]":
                end = found.start()
                is_closed = True
                break
        if self._is_kept and not game.fault:
            self._value.append(line[at:end])
        if not is_closed:
            return end
        if self._is_kept and game.nodes:
            node = game.nodes[-1]
            node.properties.setdefault(self._property, []).append(_simple_text("".join(self._value)))
        self._value = None
        return end + 1


def _known_encoding(name: str) -> str:
    """Return Python's name of an encoding; "" if it is none of the ENCODINGS."""
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return ""
    return known if ENCODINGS.fullmatch(known) else ""


def _simple_text(value: str) -> str:
    """Return a value without escapes and line breaks."""
    joined = re.sub(r"\\(?:\r\n|\n\r|\n|\r)", "", value)
    return " ".join(re.sub(r"\\(.)", r"\1", joined, flags=re.DOTALL).split())
