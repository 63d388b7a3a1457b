"""Texts of a game as functions of a few bytes of the state, so that a page can show them without Python.

An item is one text: the name of an action, one part of the drawing of the board. For each item the bytes of the state
that decide it are found from samples: the byte that best separates different texts is added until no two samples with
equal bytes have different texts. A small tree over these bytes then leads to the text.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.kits.browser.state_numbers import Number, StateNumbers, Template, filled

MAX_BYTES: Final = 8
"""Largest number of bytes that decide an item."""

MAX_TRIED: Final = 3
"""Largest number of bytes of which every order is tried, for the smallest tree."""

MAX_KEYS: Final = 2000
"""Largest number of combinations of their values for which every order is tried."""

MAX_FREE: Final = 3
"""More bytes than these, such as several dice, are seldom free of each other: real positions have few of all values."""

MAX_LEAVES: Final = 20
"""Largest tree over bytes with which bits are not tried."""

MAX_COMBINATIONS: Final = 30_000
"""Largest number of combinations of the values of deciding bytes that are all tried."""

MAX_NEW: Final = 0.01
"""Largest share of positions that may have values of these bytes which no sample had, as the samples estimate it."""

ENOUGH: Final = 1500
"""Number of samples in which deciding bytes are looked for at first."""

MAX_CELLS: Final = 50_000
"""Number of combinations of values and texts up to which they are counted in an array of all."""

FEW: Final = 4
"""Bytes that decided other items are taken again only if so many samples have the same values of them, on average."""

TAGS: Final = re.compile("<[^>]*>?|[^<]+")
"""The words of a drawing: tags, and what is between them."""

Texts = Sequence[str | None]
"""The text of each item in a position; None = unknown there."""

States = NDArray[np.uint8]
"""The states of samples, `[N, S]`."""

Numbers = NDArray[np.int64]


class Run(NamedTuple):
    """Values of a byte, from `first` to `last`, that lead to one child: a Node, or the number of a text."""

    first: int
    last: int
    child: Node | int


class Node(NamedTuple):
    """A question about one byte of the state, or one bit: its place, and what follows from its values, which ascend.

    Bits follow the S bytes: the place S + 8 b + i is bit i of byte b, where bit 0 is the lowest one.
    """

    at: int
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Table:
    """The texts of several items.

    texts: all different ones; one with numbers of the state is a template.
    items: for each item a Node, the number of its text if it is always the same, or None if no sample has one.
    """

    texts: list[str | Template]
    items: list[Node | int | None]

    def text(self, number: int, state: NDArray[np.uint8]) -> str | None:
        """Return the text of an item in a state, `[S]`; None if no sample had these values."""
        found = self.items[number]
        while isinstance(found, Node):
            value = _value(state, found.at)
            found = next((run.child for run in found.runs if run.first <= value <= run.last), None)
        if found is None:
            return None
        text = self.texts[found]
        return text if isinstance(text, str) else filled(text, state)

    def as_fields(self) -> dict[str, Any]:
        """Return, as JSON, what docs/formats.md describes."""
        numbers: dict[Node, int] = {}
        nodes: list[list[int]] = []

        def reference(found: Node | int) -> int:
            """Return the number of a text, or -1 minus that of a node."""
            if isinstance(found, int):
                return found
            if found not in numbers:
                runs = [(run.first, run.last, reference(run.child)) for run in found.runs]
                numbers[found] = len(nodes)
                nodes.append([found.at, *(number for run in runs for number in run)])
            return -1 - numbers[found]

        items = [None if item is None else reference(item) for item in self.items]
        words: dict[str | Number, int] = {}
        texts = [_in_words(text, words) for text in self.texts]
        return {"words": list(words), "texts": texts, "nodes": nodes, "items": items}


def _value(state: NDArray[np.uint8], at: int) -> int:
    """Return the byte or the bit at a place of a Node."""
    if at < len(state):
        return int(state[at])
    byte, bit = divmod(at - len(state), 8)
    return int(state[byte]) >> bit & 1


def _in_words(text: str | Template, words: dict[str | Number, int]) -> str | list[int]:
    """Return a text without elements of SVG as it is, another one as the numbers of its words, which are added."""
    if isinstance(text, str) and "<" not in text:
        return text
    parts = [text] if isinstance(text, str) else text
    split = [[part] if isinstance(part, Number) else TAGS.findall(part) for part in parts]
    return [words.setdefault(word, len(words)) for each in split for word in each]


class UndecidedError(Exception):
    """No few bytes of the state decide an item.

    item:  its number.
    known: the number of samples that know its text; 0 if they have not been counted.
    """

    def __init__(self, item: int, known: int = 0) -> None:
        super().__init__(f"no few bytes of the state decide item {item}")
        self.item, self.known = item, known


class Samples:
    """States with the texts of all items, from real positions and from states that were made of their bytes."""

    def __init__(self, items: int, record: np.dtype[np.void] | None = None) -> None:
        """Create a collection without samples.

        record: that of the states, if texts may have numbers of them; None = every text stands for itself.
        """
        self._items, self._record = items, record
        self._states: list[NDArray[np.uint8]] = []
        self._texts: list[NDArray[np.int32]] = []
        self._is_real: list[bool] = []
        self._numbers: dict[str, int] = {}

    def add(self, state: NDArray[np.uint8], texts: Texts, *, is_real: bool) -> None:
        """Add a sample. A made state may be ignored where nothing decides it that decides all real ones."""
        numbers = np.full(self._items, -1, np.int32)
        for item, text in enumerate(texts):
            if text is not None:
                numbers[item] = self._numbers.setdefault(text, len(self._numbers))
        self._states.append(state)
        self._texts.append(numbers)
        self._is_real.append(is_real)

    @property
    def states(self) -> States:
        """The states of all samples, `[N, S]`."""
        return np.array(self._states)

    def table(self) -> Table:
        """Return the table of these samples. Raises UndecidedError if nothing decides an item."""
        states, is_real, texts = self.states, np.array(self._is_real), np.array(self._texts)
        finder = _Finder(states)
        bits = _BitFinder(states, self._record) if self._record and bits_of(self._record) else None
        numbers = StateNumbers(states, self._record) if self._record else None
        items: list[Node | int | None] = []
        all_texts = dict[str | Template, int](self._numbers.items())
        given = list(self._numbers)
        for number in range(self._items):
            column = texts[:, number].astype(np.int64)
            known = column >= 0
            if not known.any():
                items.append(None)
                continue
            if numbers:
                column[known] = numbers.replaced(given, column[known], np.flatnonzero(known), all_texts)
            try:
                real = np.flatnonzero(known & is_real)
                items.append(_item(finder, bits, column, np.flatnonzero(known), real, number))
            except UndecidedError as error:
                raise UndecidedError(number, int(known.sum())) from error
        return _with_used_texts(list(all_texts), items)


def _item(
    finder: _Finder, bits: _BitFinder | None, column: Numbers, known: Numbers, real: Numbers, number: int
) -> Node | int:
    """Return the tree of an item. Raises UndecidedError.

    known, real: the rows whose text is known, and those of real positions among them.
    """
    trees = []
    with suppress(UndecidedError):
        tree = finder.item(column, known, number)
        if len(places_of(tree)) <= MAX_FREE:
            trees.append(tree)
    if bits and not (trees and _leaves(trees[0]) <= MAX_LEAVES):
        with suppress(UndecidedError):
            trees.append(bits.item(column, known, number))
    if trees:
        return min(trees, key=_leaves)
    if len(real):
        with suppress(UndecidedError):
            return finder.item(column, real, number, is_complete=False)
    return finder.item(column, known, number, is_complete=False)


class _Finder:
    """Finds the bytes that decide items, and the trees over them, from the same samples."""

    def __init__(self, states: States, places: Sequence[int] | None = None) -> None:
        """Read samples; only bytes at `places` may decide, None = all."""
        self._states = states
        columns = np.flatnonzero((states != states[0]).any(axis=0)).tolist()
        allowed = set(columns if places is None else places)
        self._codes = {at: np.unique(states[:, at], return_inverse=True) for at in columns if at in allowed}
        self._found: dict[bytes, Node | int] = {}  # by which rows have equal texts
        self._usual: Counter[tuple[int, ...]] = Counter()

    def item(self, column: Numbers, rows: Numbers, number: int, *, is_complete: bool = True) -> Node | int:
        """Return the tree to the texts `column`, `[N]`, of these samples. Raises UndecidedError.

        is_complete: whether the samples have all values that are possible.
        """
        different, first, texts = np.unique(column[rows], return_index=True, return_inverse=True)
        order = np.argsort(first)  # texts are numbered in the order in which they come
        texts = np.argsort(order)[texts]
        pattern = hashlib.blake2b(rows.tobytes() + texts.tobytes() + bytes([is_complete])).digest()
        if pattern not in self._found:
            self._found[pattern] = self._tree(texts, rows, number, is_complete=is_complete)
        return _renumbered(self._found[pattern], different[order].tolist())

    def _tree(self, texts: Numbers, rows: Numbers, number: int, *, is_complete: bool) -> Node | int:
        step = max(1, len(rows) // ENOUGH)
        at = self._decide(texts[::step], rows[::step], number)
        if step > 1 and self._conflicts(at, rows, texts):
            at = self._decide(texts, rows, number)
        keys = self._states[rows][:, list(at)]
        different, counts = np.unique(np.column_stack([keys, texts]), axis=0, return_counts=True)
        if not is_complete and (counts == 1).sum() > MAX_NEW * len(rows):  # as Good and Turing estimate
            raise UndecidedError(number)
        return _smallest_tree(different[:, :-1], different[:, -1], at)

    def _decide(self, texts: Numbers, rows: Numbers, number: int) -> tuple[int, ...]:
        """Return the places of bytes that decide these texts, () if there is one text."""
        if (texts == texts[0]).all():
            return ()
        for usual, _ in self._usual.most_common(8):
            is_general = self._groups(usual, rows).max() < len(rows) / FEW
            if is_general and not self._conflicts(usual, rows, texts):
                return self._without_needless(usual, rows, texts)
        at: tuple[int, ...] = ()
        while len(at) < MAX_BYTES:
            groups = self._groups(at, rows)
            impurity = _impurity(groups, texts)
            others = (each for each in self._codes if each not in at)
            best = max(others, key=lambda each: self._gain(each, groups, texts, rows, impurity), default=None)
            if best is None:
                break
            at = (*at, best)
            if not self._conflicts(at, rows, texts):
                at = self._without_needless(at, rows, texts)
                self._usual[at] += 1
                return at
        raise UndecidedError(number)

    def _without_needless(self, at: tuple[int, ...], rows: Numbers, texts: Numbers) -> tuple[int, ...]:
        for each in at:
            fewer = tuple(other for other in at if other != each)
            if not self._conflicts(fewer, rows, texts):
                return self._without_needless(fewer, rows, texts)
        return tuple(sorted(at))

    def _groups(self, at: tuple[int, ...], rows: Numbers) -> Numbers:
        """Return the number of the group of each row; rows of a group have equal bytes at these places."""
        groups = np.zeros(len(rows), np.int64)
        for each in at:
            values, codes = self._codes[each]
            groups = np.unique(groups * len(values) + codes[rows], return_inverse=True)[1]
        return groups

    def _conflicts(self, at: tuple[int, ...], rows: Numbers, texts: Numbers) -> bool:
        """Return whether rows with equal bytes at these places have different texts."""
        groups = self._groups(at, rows)
        return len(np.unique(groups * (texts.max() + 1) + texts)) > groups.max() + 1

    def _gain(self, at: int, groups: Numbers, texts: Numbers, rows: Numbers, impurity: NDArray[np.float64]) -> float:
        """Return how much better a further byte separates the texts of each group than chance would.

        It is the Gini purity, less what a random byte with as many values would add to it, and a constant more.
        """
        values, codes = self._codes[at]
        count = int(texts.max()) + 1
        parts = groups * len(values) + codes[rows]
        group_of_part = np.repeat(np.arange(len(impurity)), len(values))
        if len(group_of_part) * count > MAX_CELLS:
            different, parts = np.unique(parts, return_inverse=True)
            group_of_part = different // len(values)
        sizes = np.bincount(parts * count + texts, minlength=len(group_of_part) * count).reshape(-1, count)
        totals = sizes.sum(axis=1)
        there = totals > 0
        purity = ((sizes[there] ** 2).sum(axis=1) / totals[there]).sum()
        return float(purity - impurity[group_of_part[there]].sum())


class _BitFinder:
    """Finds the bits that decide items, where squares of a board are bits of large integers."""

    def __init__(self, states: States, record: np.dtype[np.void]) -> None:
        self._states, self._record = states, record
        self._finder: _Finder | None = None

    def item(self, column: Numbers, rows: Numbers, number: int) -> Node | int:
        """Return what `_Finder.item` returns, with places of bits. Raises UndecidedError."""
        if self._finder is None:  # most games need none
            self._finder = _Finder(*self._with_bits())
        return self._finder.item(column, rows, number)

    def _with_bits(self) -> tuple[States, list[int]]:
        """Return the states with their bits behind them, and the places that may decide."""
        size = self._states.shape[1]
        of_bits = bits_of(self._record)
        places = [at for at in range(size) if at not in of_bits]
        places += [size + 8 * at + bit for at in of_bits for bit in range(8)]
        bits = np.unpackbits(self._states, axis=1, bitorder="little")
        return np.concatenate([self._states, bits], axis=1), places


def bits_of(record: np.dtype[np.void]) -> list[int]:
    """Return the places of bytes whose bits may have meanings of their own: of unsigned and of large integers."""
    found: list[int] = []
    for field, offset, *_ in (record.fields or {}).values():
        if field.base.kind == "u" or (field.base.kind == "i" and field.base.itemsize == 8):
            found += range(offset, offset + field.itemsize)
    return found


def _shares(groups: Numbers, texts: Numbers) -> NDArray[np.float64]:
    """Return for each row the share of its text in its group."""
    _, cell, cell_sizes = np.unique(groups * (texts.max() + 1) + texts, return_inverse=True, return_counts=True)
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    shares: NDArray[np.float64] = cell_sizes[cell] / sizes[group]
    return shares


def _impurity(groups: Numbers, texts: Numbers) -> NDArray[np.float64]:
    """Return the Gini impurity of each group: 0 if it has one text. A random division adds it to the purity."""
    return 1 - np.bincount(groups, weights=_shares(groups, texts)) / np.bincount(groups)


def _smallest_tree(keys: NDArray[Any], texts: NDArray[Any], at: tuple[int, ...]) -> Node | int:
    """Return a tree with few leaves.

    keys:  the different values of the bytes `at`, `[n, len(at)]`, which decide the `texts`, `[n]`.
    """
    if (texts == texts[0]).all():
        return int(texts[0])
    if len(at) == 1:
        return _node(keys, texts, at, 0)
    is_small = len(at) <= MAX_TRIED and len(keys) <= MAX_KEYS
    tried = range(len(at)) if is_small else [_separating(keys, texts)]
    return min((_node(keys, texts, at, each) for each in tried), key=_leaves)


def _node(keys: NDArray[Any], texts: NDArray[Any], at: tuple[int, ...], asked: int) -> Node:
    """Return a tree that asks for one byte first."""
    runs: list[Run] = []
    others = [each for each in range(len(at)) if each != asked]
    for value in np.unique(keys[:, asked]).tolist():
        rows = keys[:, asked] == value
        child = _smallest_tree(keys[rows][:, others], texts[rows], tuple(at[each] for each in others))
        if runs and runs[-1].child == child:
            runs[-1] = runs[-1]._replace(last=value)
        else:
            runs.append(Run(value, value, child))
    return Node(at[asked], tuple(runs))


def _separating(keys: NDArray[Any], texts: NDArray[Any]) -> int:
    """Return which of the bytes best separates different texts."""

    def pairs(each: int) -> int:
        return len(np.unique(np.column_stack([keys[:, each], texts]), axis=0)) - len(np.unique(keys[:, each]))

    return min((each for each in range(keys.shape[1]) if len(np.unique(keys[:, each])) > 1), key=pairs)


def places_of(tree: Node | int | None) -> set[int]:
    """Return the places of the bytes that a tree asks for."""
    if not isinstance(tree, Node):
        return set()
    return {tree.at}.union(*(places_of(run.child) for run in tree.runs))


def _leaves(tree: Node | int) -> int:
    return 1 if isinstance(tree, int) else sum(_leaves(run.child) for run in tree.runs)


def _renumbered(tree: Node | int, numbers: Sequence[int]) -> Node | int:
    if isinstance(tree, int):
        return numbers[tree]
    return Node(tree.at, tuple(run._replace(child=_renumbered(run.child, numbers)) for run in tree.runs))


def _texts_of(tree: Node | int | None) -> set[int]:
    if isinstance(tree, Node):
        return set().union(*(_texts_of(run.child) for run in tree.runs))
    return set() if tree is None else {tree}


def _with_used_texts(texts: list[str | Template], items: list[Node | int | None]) -> Table:
    used = sorted(set().union(*map(_texts_of, items)))
    new = [-1] * len(texts)
    for place, number in enumerate(used):
        new[number] = place
    kept = [None if item is None else _renumbered(item, new) for item in items]
    return Table([texts[number] for number in used], kept)


def values_of_bytes(real: States, record: np.dtype[np.void]) -> list[NDArray[np.uint8]]:
    """Return for each byte of a state the values that it may have, as real states show, and as many more as are likely.

    A field of single bytes has all values from the smallest to the largest, and so have the lowest bytes of numbers
    below 256. Otherwise these are the values of `seen_in_field`.
    """
    found = seen_in_field(real, record)
    for field, offset, *_ in (record.fields or {}).values():
        content = real[:, offset : offset + field.itemsize]
        if field.base.itemsize == 1 or _is_below_256(content, field.base):
            seen = found[offset]
            is_signed = field.base.kind == "i" and field.base.itemsize == 1
            numbers = seen.view(np.int8).astype(int) if is_signed else seen.astype(int)
            whole = np.arange(numbers.min(), numbers.max() + 1).astype(np.uint8)
            for at in range(offset, offset + field.itemsize, field.base.itemsize):
                found[at] = whole
    return found


def seen_in_field(real: States, record: np.dtype[np.void]) -> list[NDArray[np.uint8]]:
    """Return for each byte of a state the values that real states have in it, or in other numbers of its field.

    Bytes at the same place of numbers of one field, such as the squares of a board, share their values.
    """
    found = seen_in_byte(real)
    for field, offset, *_ in (record.fields or {}).values():
        for first in range(offset, offset + field.base.itemsize):
            places = list(range(first, offset + field.itemsize, field.base.itemsize))
            seen = np.unique(real[:, places])
            for at in places:
                found[at] = seen
    return found


def seen_in_byte(real: States) -> list[NDArray[np.uint8]]:
    """Return for each byte of a state the values that real states have in it."""
    return [np.unique(column) for column in real.T]


def _is_below_256(content: States, kind: np.dtype[Any]) -> bool:
    """Return whether the bytes are integers from 0 to 255, the lowest byte first."""
    is_plain = kind.kind in "iu" and not kind.str.startswith(">")
    return is_plain and not content.reshape(len(content), -1, kind.itemsize)[:, :, 1:].any()


def made_states(real: States, values: Sequence[NDArray[np.uint8]], count: int, rng: np.random.Generator) -> States:
    """Return `count` states, `[count, S]`, of real ones in which about half of the bytes have other values."""
    made = real[rng.integers(len(real), size=count)]
    for at, possible in enumerate(values):
        chosen = possible[rng.integers(len(possible), size=count)]
        made[:, at] = np.where(rng.random(count) < 0.5, chosen, made[:, at])
    return made


def missing_states(
    table: Table,
    known: States,
    values: Sequence[NDArray[np.uint8]],
    count: int,
    rng: np.random.Generator,
) -> Iterator[NDArray[np.uint8]]:
    """Yield at most `count` states, made of `known` ones, with combinations of deciding bytes that none of these has.

    Items with more than MAX_FREE bytes, or with more than MAX_COMBINATIONS of their values, are left out, and so are
    those with bits, of which all values are in a few samples.
    """
    missing: dict[tuple[int, ...], list[bytes]] = {}
    for at in {tuple(sorted(places_of(item))) for item in table.items}:
        is_of_bytes = all(each < known.shape[1] for each in at)
        if is_of_bytes and 0 < len(at) <= MAX_FREE and math.prod(len(values[each]) for each in at) <= MAX_COMBINATIONS:
            seen = {bytes(row) for row in np.unique(known[:, list(at)], axis=0)}
            combinations = map(bytes, product(*(values[each].tolist() for each in at)))
            missing[at] = [each for each in combinations if each not in seen]
    for _ in range(count):
        state, chosen = known[rng.integers(len(known))].copy(), dict[int, int]()
        for at, left in missing.items():
            if left and all(chosen.get(each, value) == value for each, value in zip(at, left[-1], strict=True)):
                chosen.update(zip(at, left.pop(), strict=True))
        if not chosen:
            return
        state[list(chosen)] = list(chosen.values())
        yield state
