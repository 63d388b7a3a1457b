"""Texts as functions of a few bytes of the state: the bytes are found, and what they do not decide is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.kits.browser.byte_tables import (
    Samples,
    UndecidedError,
    made_states,
    missing_states,
    places_of,
    values_of_bytes,
)


def samples_of(text_of, states):
    samples = Samples(1)
    for state in states:
        samples.add(state, [text_of(state)], is_real=True)
    return samples


def random_states(count=600, width=12, values=5):
    return np.random.default_rng(0).integers(values, size=(count, width)).astype(np.uint8)


@pytest.mark.parametrize(
    ("text_of", "places"),
    [
        (lambda state: "always", set()),
        (lambda state: f"piece {state[7]}", {7}),
        (lambda state: f"e{state[3]}q" if state[5] == 2 else f"e{state[3]}", {3, 5}),
        (lambda state: f"{state[1]}" if state[0] % 2 else f"{state[11]}", {0, 1, 11}),
    ],
)
def test_the_bytes_that_decide_a_text_are_found_among_others(text_of, places):
    states = random_states()
    table = samples_of(text_of, states).table()
    assert places_of(table.items[0]) == places
    others = np.random.default_rng(1).integers(5, size=(200, 12)).astype(np.uint8)
    assert all(table.text(0, state) == text_of(state) for state in others)


def test_a_byte_with_many_values_does_not_pass_for_one_that_decides():
    """Byte 0 is a counter that no two samples share: it separates all of them, by chance."""
    states = random_states(count=250)
    states[:, 0] = np.arange(250)
    rare = samples_of(lambda state: "castle" if state[4] == state[6] == 1 else "king", states).table()
    assert places_of(rare.items[0]) == {4, 6}


def test_a_text_that_depends_on_all_bytes_is_refused():
    with pytest.raises(UndecidedError):
        samples_of(lambda state: str(state.sum()), random_states()).table()


def test_a_value_between_two_with_the_same_text_has_it_and_another_one_is_unknown():
    states = np.array([[0], [1], [5], [9]], np.uint8)
    table = samples_of(lambda state: "few" if state[0] < 6 else "many", states).table()
    found = [table.text(0, np.array([value], np.uint8)) for value in (0, 3, 5, 7, 9, 10)]
    assert found == ["few", "few", "few", None, "many", None]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60))
def test_a_table_gives_every_sample_its_text_and_its_json_the_same(rows):
    states = np.array(rows, np.uint8)
    table = samples_of(lambda state: f"{state[0]}{state[2] > 1}", states).table()
    fields = table.as_fields()
    for state in states:
        found = fields["items"][0]
        while found < 0:
            at, *runs = fields["nodes"][-1 - found]
            found = next(runs[i + 2] for i in range(0, len(runs), 3) if runs[i] <= state[at] <= runs[i + 1])
        assert table.text(0, state) == fields["texts"][found] == f"{state[0]}{state[2] > 1}"


def test_bytes_of_a_field_share_their_values_and_missing_combinations_are_made():
    record = np.dtype([("to_play", "i1"), ("board", "i1", (3,)), ("plies", "i2")])
    real = np.zeros((3, record.itemsize), np.uint8)
    real[1] = [1, 254, 0, 0, 7, 1]
    real[2] = [0, 0, 0, 1, 9, 0]
    values = values_of_bytes(real, record)
    assert [sorted(each.tolist()) for each in values] == [[0, 1], *[[0, 1, 254, 255]] * 3, [0, 7, 9], [0, 1]]
    rng = np.random.default_rng(0)
    made = made_states(real, values, 50, rng)
    assert all(set(made[:, at]) <= set(values[at].tolist()) for at in range(record.itemsize))
    table = samples_of(lambda state: f"{state[0]}{state[1]}", real).table()
    asked = places_of(table.items[0])
    found = {tuple(state[sorted(asked)]) for state in [*real, *missing_states(table, real, values, 99, rng)]}
    assert len(found) == np.prod([len(values[at]) for at in asked])


def test_squares_that_are_bits_of_large_integers_are_found():
    record = np.dtype([("discs", "u8", (2,)), ("to_play", "i1")])
    rng = np.random.default_rng(0)
    states = rng.integers(256, size=(800, record.itemsize)).astype(np.uint8)
    states[:, 16] %= 2

    def text_of(state):
        own, other = state[3] >> 5 & 1, state[11] >> 5 & 1
        return f"<b>{own}{other if own else '-'}</b>"

    samples = Samples(1, record)
    for state in states:
        samples.add(state, [text_of(state)], is_real=True)
    table = samples.table()
    assert places_of(table.items[0]) == {17 + 8 * 3 + 5, 17 + 8 * 11 + 5}
    others = rng.integers(256, size=(100, record.itemsize)).astype(np.uint8)
    assert all(table.text(0, state) == text_of(state) for state in others)
