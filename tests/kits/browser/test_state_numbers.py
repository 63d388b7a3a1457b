"""Numbers in texts that are numbers of the state are found, and others stay what they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.kits.browser.byte_tables import Samples
from plyzero.kits.browser.game_texts import find_texts
from plyzero.kits.browser.state_numbers import Number, filled
from tests.helpers.shared_games import Counting, spec

RECORD = np.dtype([("score", "<i2"), ("sign", "i1"), ("other", "<u4")])


def table_of(text_of, rows):
    records = np.array(rows, RECORD)
    samples = Samples(1, RECORD)
    for record in records:
        samples.add(np.frombuffer(record.tobytes(), np.uint8), [text_of(record)], is_real=True)
    return samples.table()


def state_of(*fields):
    return np.frombuffer(np.array(fields, RECORD).tobytes(), np.uint8)


ROWS = [(number * 37 - 300, number % 2, 70_000 * number) for number in range(20)]


@pytest.mark.parametrize(
    ("text_of", "number"),
    [
        (lambda record: f"{record['other']} points", Number(3, 4, False, 1, 0)),
        (lambda record: f"{400 - record['score']} left", Number(0, 2, True, -1, 400)),
    ],
)
def test_a_number_with_many_values_is_one_of_the_state(text_of, number):
    table = table_of(text_of, ROWS)
    numbers = {part for text in table.texts if not isinstance(text, str) for part in text if isinstance(part, Number)}
    assert numbers == {number}
    other = np.array((311, 1, 12_345), RECORD)  # which no sample had
    assert table.text(0, np.frombuffer(other.tobytes(), np.uint8)) == text_of(other)


def test_a_number_that_only_most_samples_have_is_a_text():
    table = table_of(lambda record: f"{max(record['score'], 0)} points", ROWS)
    assert all(isinstance(text, str) for text in table.texts)


def test_few_values_and_leading_zeros_are_texts():
    few = table_of(lambda record: f"{record['sign']} of 3", ROWS)
    padded = table_of(lambda record: f"{record['other'] // 70_000:03}", ROWS)
    assert all(isinstance(text, str) for text in [*few.texts, *padded.texts])
    assert padded.text(0, state_of(*ROWS[7])) == "007"


@given(st.lists(st.tuples(st.integers(-999, 999), st.integers(0, 2), st.integers(0, 99_999)), min_size=1, max_size=40))
def test_a_page_shows_every_sample_as_it_is(rows):
    def text_of(record):
        return f"<b>{abs(int(record['score']))}</b> {'-' if record['sign'] else '+'}{record['other'] + 1}"

    records = np.array(rows, RECORD)
    samples = Samples(1, RECORD)
    for record in records:
        samples.add(np.frombuffer(record.tobytes(), np.uint8), [text_of(record)], is_real=True)
    try:
        table = samples.table()
    except Exception:  # more bytes than decide a text
        return
    fields = table.as_fields()
    for record in records:
        state = np.frombuffer(record.tobytes(), np.uint8)
        assert table.text(0, state) == text_of(record) == read(fields, 0, state)


def read(fields, item, state):
    """Return a text as docs/formats.md says that a page finds it."""
    found = fields["items"][item]
    while found < 0:
        at, *runs = fields["nodes"][-1 - found]
        found = next(runs[i + 2] for i in range(0, len(runs), 3) if runs[i] <= state[at] <= runs[i + 1])
    text = fields["texts"][found]
    if isinstance(text, str):
        return text
    words = [fields["words"][number] for number in text]
    return "".join(word if isinstance(word, str) else filled((Number(*word),), state) for word in words)


def test_the_points_of_a_game_of_ones_own_are_numbers_of_its_state():
    texts = find_texts(spec(Counting))
    assert texts.scoreboard is not None
    state = Counting().state.copy()
    record = state.view(Counting.State)[0]
    record["points"] = 123_456, 9
    position = Counting().with_state(state)
    assert tuple(texts.scoreboard.text(item, state) for item in range(2)) == position.scoreboard()
    assert ">123461</text>" in texts.board.text(10, state)
