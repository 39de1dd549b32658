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
            "CREATE TABLE t (a INT) WITH (* = ***, **** **** = ** *)",
        ),
        ("CREATE SECRET s hunter2", "CREATE SECRET * *******"),
        ("SET a hunter2", "SET * *******"),
        ("INSERT INTO k WITH (a = hunter2) SELECT b", "INSERT INTO k WITH (* = *******) SELECT *"),
        ("INSERT INTO k SELECT a FROM t WHERE b = c d", "INSERT INTO k SELECT a FROM t WHERE b = c d"),
        ("EXPLAIN CREATE TABLE t (a INT) WITH (k = hunter2)", "EXPLAIN CREATE TABLE t (a INT) WITH (* = *******)"),
        ("hunter2 a", "******* *"),
        ("SELEC a FROM t", "SELEC a FROM t"),
        ("SELECT a, 'hunter2", "SELECT *, ********"),
        ("WITH x AS (SELECT a FROM t) SELECT b FROM x y z", "WITH x AS (SELECT a FROM t) SELECT b FROM x y z"),
        (
            "CREATE VIEW v AS WITH x (a) AS (SELECT b) SELECT c d e",
            "CREATE VIEW v AS WITH x (a) AS (SELECT b) SELECT c d e",
        ),
        ("CREATE TABLE t (a TIMESTAMP WITH TIME ZONE b c)", "CREATE TABLE t (a TIMESTAMP WITH TIME ZONE b c)"),
        ("SELECT a::INT b c FROM t", "SELECT a::INT b c FROM t"),
        (
            "CREATE STREAM s (a INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, b INT INT) WITH (k = 'v')",
            "CREATE STREAM s (a INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, b INT INT) WITH (* = ***)",
        ),
        (
            "INSERT INTO t VALUES (TIMESTAMP '2026-01-01 10:00:00', 'x',)",
            "INSERT INTO t VALUES (TIMESTAMP '2026-01-01 10:00:00', ***,)",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT a FROM s WHERE b = 5 AND c = 'x' GROUP BY TUMBLE(ts, INTERVAL '1 min') EMIT",
            "CREATE MATERIALIZED VIEW v AS SELECT a FROM s WHERE b = 5 AND c = *** GROUP BY TUMBLE(ts, INTERVAL '1 min') EMIT",
        ),
        ("CREATE VIEW v WITH (k = 5) AS SELECT a b c", "CREATE VIEW v WITH (* = *) AS SELECT * * *"),
        ("CREATE VIEW v AS SELECT a b c WITH (k d)", "CREATE VIEW v AS SELECT a b c WITH (* *)"),
        ("ALTER STREAM s FOO INTERVAL 'hunter2' x", "ALTER STREAM s FOO INTERVAL ********* *"),
        ("ALTER STREAM s FOO TIMESTAMP 'hunter2' x", "ALTER STREAM s FOO TIMESTAMP ********* *"),
        ("ALTER STREAM s FOO DATE '2026-01-01hunter2' x", "ALTER STREAM s FOO DATE ******************* *"),
        ("EXPLAIN SELECT a FROM t WHERE b = c d e", "EXPLAIN SELECT a FROM t WHERE b = c d e"),
        ("SELECT a FROM t OPTIONS (k v) WHERE b", "SELECT a FROM t OPTIONS (* *) WHERE *"),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO k SELEC a; END",
            "EXECUTE STATEMENT SET BEGIN INSERT INTO k SELEC a; END",
        ),
    ],
)
def test_of_what_was_not_understood_everything_suspicious_is_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


CANARY = "hunter2canary"

LOST = [
    "CREATE TABLE t (a INT) WITH (password CANARY, connector='kafka')",
    "CREATE SOURCE t FORMAT PLAIN ENCODE JSON (password CANARY)",
    "EXPLAIN CREATE TABLE t (a INT) WITH (password CANARY)",
    "EXPLAIN PHYSICAL CREATE TABLE t (a INT) WITH (password CANARY)",
    "EXPLAIN PLAN FOR CREATE SINK t WITH (password CANARY) AS SELECT 1",
    "EXPLAIN PLAN FOR CREATE TABLE t (a INT) WITH (password CANARY)",
    "EXPLAIN PHYSICAL CREATE SINK t WITH (password CANARY)",
    "EXPLAIN CREATE SINK t WITH (password CANARY) AS SELECT a FROM b",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO t WITH (password CANARY) SELECT 1; END",
    "SELECT 1 FROM t OPTIONS (password CANARY)",
    "SELECT 1 FROM t WITH (password CANARY)",
    "CREATE TABLE t (a INT) WITH (password: CANARY, connector = 'kafka')",
    "CREATE TABLE t (a INT) WITH (password CANARY",
    "CREATE TABLE t (a INT) WITH password CANARY",
    'CREATE TABLE t (a INT) OPTIONS (password "CANARY")',
    "CREATE TABLE t (a INT) OPTIONS (password `CANARY`)",
    'SELECT 1 FROM t OPTIONS (password "CANARY")',
    "CREATE TABLE t (a INT) TBLPROPERTIES (password CANARY)",
    "CREATE TABLE t USING kafka OPTIONS (password CANARY)",
    "ALTER TABLE t SET password CANARY",
    "ALTER TABLE t SET OPTIONS (password CANARY)",
    "ALTER TABLE t SET PROPERTIES (password CANARY)",
    "CREATE USER u WITH PASSWORD CANARY",
    "ALTER USER u PASSWORD CANARY",
    "GRANT ALL ON t TO u IDENTIFIED BY CANARY",
    "CREAT SECRET s AS CANARY",
    "SELECTED password = CANARY",
    "SELECTED token = CANARY",
    "SHOW CREATE SECRET x = CANARY",
    "SHOW CREATE TABLE x = CANARY",
    "DESCRIBE t token = CANARY",
    "CREATE TABLE t (a INT) WITH ('properties.sasl.jaas.config' = use;user:CANARY@host)",
    "CREATE TABLE t (a INT) WITH ('properties.sasl.jaas.config' = use;SELECT CANARY)",
    "WITH (password CANARY) SELECT 1",
    "WITH password CANARY",
    "INSERT INTO t WITH (token CANARY) SELECT 1",
    "INSERT INTO t SELECT 1 FROM u WITH (token CANARY)",
    "SELECT 1 CREATE TABLE t (a INT, token = CANARY)",
    "INSERT INTO t OPTIONS (token CANARY) SELECT 1",
    "SHOW REWRITE CREATE STREAM s (a INT) WITH (password CANARY)",
    "SET password CANARY",
    "CREATE VIEW v AS SELECT 1 CREATE STREAM s (a INT) OPTIONS (password CANARY)",
    "CREATE VIEW v AS SELECT 1 CREATE SECRET CANARY",
    "CREATE VIEW v AS SELECT a FROM t WITH (password = CANARY)",
    "CREATE VIEW v AS SELECT INTERVAL 'CANARY' b c",
    "CREATE STREAM s (a INT, b AS INTERVAL '1' SECOND c d) WITH (password CANARY)",
    "CREATE SECRET s AS TIMESTAMP 'CANARY'",
    "CREATE SECRET s AS INTERVAL '1 CANARY'",
    "SET CANARY",
    'SET "CANARY"',
    "BEGIN STATEMENT SET; INSERT INTO t WITH (password CANARY) SELECT 1; END",
    "CREATE TABLE t (a INT, password CANARY)",
    'CREATE TABLE t (a INT, "secret" CANARY)',
    "CREATE TABLE t (a INT, password STRNG DEFAULT CANARY) WITH (password = CANARY)",
    "CREATE TABLE t (a STRNG, b CANARY) WITH (password = CANARY')",
    "CREATE TABLE t (a INT) WITH (k = x;CREATE TABLE t (b CANARY))",
]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("CREATE STREAM s (password STRNG) WITH (password = 'hunter2')", "STRNG"),
        ("CREATE STREAM s (a STRING COMMENT 'hunter2', b STRNG) WITH (password = hunter2)", "STRNG"),
        ("CREATE STREAM s (c AS a = 'hunter2', b moneybag)", "moneybag"),
        ("CREATE STREAM s (a STRUCT<b: STRNG>)", "STRNG"),
        (
            "CREATE MATERIALIZED VIEW v WITH (password = 'hunter2') AS SELECT CAST(a AS BIGNT), 'hunter2' FROM s",
            "BIGNT",
        ),
    ],
)
def test_a_misspelt_type_is_shown_wherever_it_stands(text: str, word: str) -> None:
    (found,) = parse_script(text)
    assert found.error is not None
    assert (found.error.condition, found.error.message) == ("UNKNOWN_TYPE", f'no data type is called "{word}"')
    assert found.error.span is not None
    assert found.source.shows(found.error.span) == word
    assert "hunter2" not in found.source.masked


@pytest.mark.parametrize("text", LOST)
def test_a_value_without_its_equals_sign_or_quotes_shows_nowhere(text: str) -> None:
    found = parse_script(text.replace("CANARY", CANARY))
    assert any(parsed.error is not None for parsed in found)
    for parsed in found:
        error = parsed.error
        assert CANARY not in parsed.source.masked
        assert CANARY not in f"{error} {error!r} {error and error.hint} {error and error.detail}"


def test_behind_a_failure_only_a_known_beginning_is_shown() -> None:
    """A semicolon in a value without quotes cuts it in two; the rest may look like a misspelt statement."""
    assert parse_script("SELEC a; SELEC b; SELECT c d e")[0].source.masked == "SELEC a; ***** *; SELECT c d e"


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
