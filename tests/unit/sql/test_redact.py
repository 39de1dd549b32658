"""What of a script may be shown."""

from __future__ import annotations

import pytest

from penstock.errors import Span
from penstock.sql.redact import Source, mask
from penstock.sql.script import parse_script


def masked(text: str) -> str:
    return parse_script(text)[0].source.masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 'a' FROM t -- note", "SELECT 'a' FROM t -- ****"),
        ("CREATE TABLE t (a INT) WITH (k = 'v w', n = 5)", "CREATE TABLE t (a INT) WITH (k = ** **, n = *)"),
        ("CREATE TABLE t (a INT) WITH (p = SECRET s)", "CREATE TABLE t (a INT) WITH (p = SECRET s)"),
        ("CREATE SECRET s AS 'x'", "CREATE SECRET s AS ***"),
        ("SET a.b = c", "SET a.b = *"),
        ("INSERT INTO k WITH (a = 'b') SELECT 'c'", "INSERT INTO k WITH (a = ***) SELECT 'c'"),
    ],
)
def test_of_what_was_understood_the_values_are_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a 'b' FROM t WHERE c = d e", "SELECT a *** FROM t WHERE c = d e"),
        (
            "SELECT a FROM t GROUP BY TUMBLE(ts, INTERVAL '5' ) x y",
            "SELECT a FROM t GROUP BY TUMBLE(ts, INTERVAL '5' ) x y",
        ),
        (
            "CREATE TABLE t (a INT) WITH (k = 'v', pass word = x5 7)",
            "CREATE TABLE t (a INT) WITH (k = ***, **** **** = ** *)",
        ),
        ("CREATE SECRET s hunter2", "CREATE SECRET * *******"),
        ("SET a hunter2", "SET a *******"),
        ("INSERT INTO k WITH (a = hunter2) SELECT b", "INSERT INTO k WITH (a = *******) SELECT *"),
        ("INSERT INTO k SELECT a FROM t WHERE b = c d", "INSERT INTO k SELECT a FROM t WHERE b = c d"),
        ("EXPLAIN CREATE TABLE t (a INT) WITH (k = hunter2)", "EXPLAIN CREATE TABLE t (a INT) WITH (k = *******)"),
        ("hunter2 a", "******* *"),
        ("SELEC a FROM t", "SELEC a FROM t"),
        ("SELECT a, 'hunter2", "SELECT *, ********"),
    ],
)
def test_of_what_was_not_understood_everything_suspicious_is_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


def test_a_missing_quote_makes_the_whole_script_suspicious() -> None:
    """What looks like code there may be the inside of a string."""
    found = parse_script("CREATE TABLE t (a INT) WITH (k = abc;hunter2', b = 'x'); SELECT 1")
    assert "hunter2" not in found[0].source.masked
    assert all("hunter2" not in str(parsed.error) for parsed in found)


def test_length_and_line_breaks_stay() -> None:
    text = "CREATE TABLE t (a INT)\r\nWITH (k = 'a\nb\t💧');\nSELECT '\x00'"
    source = parse_script(text)[0].source
    assert len(source.masked) == len(text)
    assert [i for i, c in enumerate(source.masked) if c in "\r\n"] == [i for i, c in enumerate(text) if c in "\r\n"]
    assert source.line(2) == "WITH (k = **"
    assert source.line(99) == ""
    source.masked.encode("utf-8")


def test_one_source_for_the_whole_script() -> None:
    found = parse_script("SET a = 'x'; SELECT 'y'; SELEC 'z'")
    assert len({id(parsed.source) for parsed in found}) == 1
    assert found[0].source.masked == "SET a = ***; SELECT 'y'; SELEC ***"


def test_revealing_what_is_public() -> None:
    text = "CREATE TABLE t (a INT) WITH (topic = 'x', password = 'y')"
    source = parse_script(text)[0].source
    start = text.index("'x'")
    shown = source.revealing([Span(1, start + 1, 3, start)])
    assert shown.masked == "CREATE TABLE t (a INT) WITH (topic = 'x', password = ***)"
    assert source.shows(Span(1, start + 1, 3, start)) is None
    assert shown.shows(Span(1, start + 1, 3, start)) == "'x'"


def test_the_text_is_in_no_repr() -> None:
    assert "hunter2" not in repr(mask("SET a = hunter2", [(8, 15)]))
    assert isinstance(mask("a", []), Source)


def test_stretches_may_overlap() -> None:
    assert mask("abcdef", [(3, 5), (1, 4), (2, 3)]).masked == "a****f"
