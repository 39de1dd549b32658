"""DATE '…' and TIMESTAMP '…': what cannot be read is refused at the literal, whatever Spark takes is taken.

What Spark 4.2 takes was compared with it over 880 texts, days and clocks and zones in every combination.
"""

from __future__ import annotations

import pytest

from penstock.errors import ResolutionError
from penstock.sql.format import format_statement
from penstock.sql.moments import NotAMoment, check_date, check_timestamp
from penstock.sql.script import parse_script, parse_statement

DAYS = ["2026-01-31", "2026-1-3", "2026", "2026-2", "2024-02-29", "2000-02-29", "0000-02-29", "-2026-01-01"]
DAYS += ["+2026-01-01", "02026-01-01", " 2026-01-01\t", "epoch", "today", "NOW", "Yesterday", "tomorrow"]
CLOCKS = ["10", "1:2", "10:30", "10:30:15", "10:30:15.", "10:30:15.123456789", "23:59:59.5Z", "10:30:15 Z"]
CLOCKS += ["10:30:15+2", "10:30:15+02:00", "10:30:15 -0200", "10:30:15+18:00", "10:30:15+02:00:30", "10:30:15+020030"]
CLOCKS += ["10:30:15 Europe/Berlin", "10:30:15 UTC+8", "10:30:15 PST"]


@pytest.mark.parametrize("text", [*DAYS, *(f"2026-01-31 {clock}" for clock in CLOCKS), "1234567-01-01", "2026-01-31Tx"])
def test_dates_that_spark_takes_are_taken(text: str) -> None:
    check_date(text)
    parse_statement(f"SELECT DATE '{text}'")


@pytest.mark.parametrize(
    "text", [*DAYS, *(f"2026-1-31{mark}{clock}" for clock in CLOCKS for mark in " T"), "T10:30", "10:30:15.5Z"]
)
def test_timestamps_that_spark_takes_are_taken(text: str) -> None:
    check_timestamp(text)
    parse_statement(f"SELECT TIMESTAMP '{text}'")


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("DATE", "2026-02-30", "month 2 of 2026 has no day 30"),
        ("DATE", "1900-02-29", "month 2 of 1900 has no day 29"),
        ("DATE", "2026-13-01", "there is no month 13"),
        ("DATE", "2026-00-01", "there is no month 0"),
        ("DATE", "2026-01-00", "month 1 of 2026 has no day 0"),
        *(
            ("DATE", text, "this is no date")
            for text in ("", "soon", "20260101x", "2026/01/01", "31.01.2026", "26-1-1")
        ),
        *(
            ("DATE", text, "this is no date")
            for text in ("2026-01-001", "2026-", "2026-01-01x", "2026 10:00", "nowish")
        ),
        ("TIMESTAMP", "2026-13-01", "there is no month 13"),
        ("TIMESTAMP", "2026-04-31 10:00:00", "month 4 of 2026 has no day 31"),
        ("TIMESTAMP", "2026-01-01 24:00:00", "there is no hour 24"),
        ("TIMESTAMP", "2026-01-01 10:60:00", "there is no minute 60"),
        ("TIMESTAMP", "2026-01-01T10:00:61Z", "there is no second 61"),
        ("TIMESTAMP", "2026-01-01 10:00:00+25:00", "this is no time zone"),
        ("TIMESTAMP", "2026-01-01 10:00:00+18:01", "this is no time zone"),
        ("TIMESTAMP", "2026-01-01 10:00:00+123", "this is no time zone"),
        ("TIMESTAMP", "2026-01-01 10:00:00x", "this is no time zone"),
        *(
            ("TIMESTAMP", text, "this is no point in time")
            for text in ("", "soon", "2026-01-01  10:00", "1234567-01-01")
        ),
        *(("TIMESTAMP", text, "this is no point in time") for text in ("2026-01-01 10:00Z", "2026-01-01 10:", "10")),
        ("TIMESTAMP_LTZ", "2026-13-01", "there is no month 13"),
        ("TIMESTAMP WITH TIME ZONE", "2026-13-01", "there is no month 13"),
        ("TIMESTAMP(3)", "2026-13-01", "there is no month 13"),
    ],
)
def test_a_literal_that_cannot_be_read_is_refused_where_it_stands(kind: str, text: str, message: str) -> None:
    script = f"SELECT a,\n  {kind} '{text}' AS b FROM s"
    (found,) = parse_script(script)
    error = found.error
    assert isinstance(error, ResolutionError)
    assert (error.condition, error.message) == ("INVALID_ARGUMENT", message)
    assert error.hint == ("write DATE '2026-01-31'" if kind == "DATE" else "write TIMESTAMP '2026-01-31 12:00:00'")
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.length) == (2, 4 + len(kind), len(text) + 2)
    check = check_date if kind == "DATE" else check_timestamp
    with pytest.raises(NotAMoment):
        check(text)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (DATE '2026-02-30')",
        "CREATE STREAM s (a INT, b AS DATE '2026-02-30') WITH (connector = 'topic')",
        "CREATE MATERIALIZED VIEW v AS SELECT a FROM s WHERE d > DATE '2026-02-30'",
    ],
)
def test_it_is_refused_in_every_statement_and_shown(text: str) -> None:
    (found,) = parse_script(text)
    assert found.error is not None
    assert found.error.span is not None
    assert found.source.shows(found.error.span) == "'2026-02-30'"


def test_the_text_of_a_literal_that_may_be_secret_is_in_no_message() -> None:
    (found,) = parse_script("SELECT TIMESTAMP 'hunter2canary'")
    assert "hunter2canary" not in f"{found.error} {found.source.masked}"


def test_there_is_no_time_of_day() -> None:
    (found,) = parse_script("SELECT TIME '10:00' FROM s")
    assert found.error is not None
    assert found.error.condition == "UNKNOWN_TYPE"
    assert "TIMESTAMP" in (found.error.hint or "")
    for text in ("SELECT time FROM s", "SELECT TIME(ts) FROM s", "SELECT time AS date FROM s"):
        parse_statement(text)


def test_a_cast_fails_on_the_row_that_meets_it_and_keeps_its_form() -> None:
    """CASE may never come to it, so it is no error of the text; written as a literal it would be one."""
    for text, kept in (
        ("SELECT CAST('2026-02-30' AS DATE)", "SELECT CAST('2026-02-30' AS DATE)"),
        ("SELECT CAST('2026-02-28' AS DATE)", "SELECT DATE '2026-02-28'"),
        ("SELECT TRY_CAST('soon' AS TIMESTAMP)", "SELECT TRY_CAST('soon' AS TIMESTAMP)"),
    ):
        shown = format_statement(parse_statement(text), hide=lambda _: False)
        assert " ".join(shown.split()) == kept
        assert format_statement(parse_statement(shown), hide=lambda _: False) == shown
