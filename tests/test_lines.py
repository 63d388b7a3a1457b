"""Lines and JSON from outside: the same bounds for every reader, and no line takes its neighbours with it."""

import io
import json
import re

import pytest

from plyzero.lines import MAX_DEPTH, MAX_DIGITS, ArrivingLines, bounded_lines, parse_object


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\xff", "expected a JSON object: it is no text in UTF-8"),
        (b"[" * 200_000, "expected a JSON object, got more than 32 brackets inside one another"),
        (b'{"a": %s1%s}' % (b"[" * MAX_DEPTH, b"]" * MAX_DEPTH), "expected a JSON object, got more than 32 brackets"),
        (b'{"a": %s}' % (b"1" * (MAX_DIGITS + 1)), "expected a JSON object: a number has 65 characters, more than 64"),
        (b'{"a": -1e999}', "expected a JSON object: the number -1e999 is too large"),
        (b'{"a": NaN}', "expected a JSON object: NaN is not JSON"),
        (b"[1]", "expected a JSON object, got [1]"),
        (b"{}" + b" " * (1 << 22), "expected a JSON object: longer than 4194304 bytes"),
        (b"(;GM[1]SZ[9];B[ee])", "this is an SGF file; expected a JSON object, such as "),
        (b"\n( ;GM[1]SZ[9];B[ee])", "this is an SGF file; expected a JSON object, such as "),
        (b'[Event "?"]', "this is a PGN file; "),
        (b"PK\x03\x04\xff", "this is a zip file, as the segments of a run are; "),
    ],
    ids=range(12),
)
def test_what_few_readers_survive_is_refused(text: bytes, reason: str):
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}"):
        parse_object(text)


def test_what_is_within_the_bounds_is_read():
    found = {"a": json.loads("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)), "b": 10 ** (MAX_DIGITS - 1), "c": 1e308}
    text = json.dumps(found)
    for given in (text, "\ufeff" + text, text.encode(), ("\ufeff" + text).encode()):
        assert parse_object(given) == found


@pytest.mark.parametrize("source", [io.BytesIO, lambda content: io.StringIO(content.decode())])
def test_only_the_beginning_of_a_line_that_is_too_long_is_kept(monkeypatch: pytest.MonkeyPatch, source):
    monkeypatch.setattr("plyzero.lines.MAX_LINE", 8)
    found = [*bounded_lines(source(b"\xef\xbb\xbfabc\n" + b"abcdefghi\n" + b"abcdefgh" * 3 + b"\n\nab"))]
    assert found == [b"abc\n", b"abcdefgh...\n", b"abcdefgh...\n", b"\n", b"ab"]


def test_an_error_of_the_source_is_raised_where_its_next_line_is_asked_for():
    def broken():
        yield "a"
        raise OSError("gone")

    lines = ArrivingLines(broken())
    assert next(lines) == "a"
    assert lines.wait(100)
    assert not lines.wait_for_line(0)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            next(lines)
