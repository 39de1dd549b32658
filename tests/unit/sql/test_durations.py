"""Intervals: every spelling (D17), one canonical node."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.durations import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    NotADuration,
    duration_us,
    interval_text,
    parse_duration,
)
from penstock.sql.script import parse_script, parse_statement
from penstock.sql.statements import Select


def interval(text: str) -> exp.Expr:
    statement = parse_statement(f"SELECT {text}")
    assert isinstance(statement, Select)
    [node] = statement.query.tree.selects
    return node


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("INTERVAL '1 hour'", HOUR),
        ("INTERVAL '5 min'", 5 * MINUTE),
        ("INTERVAL '1 second'", SECOND),
        ("interval '1 minute'", MINUTE),
        ("interval '5 minute'", 5 * MINUTE),
        ("INTERVAL '5' SECOND", 5 * SECOND),
        ("INTERVAL '1' MINUTE", MINUTE),
        ("INTERVAL '10' MINUTES", 10 * MINUTE),
        ("INTERVAL 5 SECONDS", 5 * SECOND),
        ("INTERVAL 5 second", 5 * SECOND),
        ("INTERVAL '5 SECONDS'", 5 * SECOND),
        ("INTERVAL '3 sec'", 3 * SECOND),
        ("INTERVAL '3 secs'", 3 * SECOND),
        ("INTERVAL '2 hr'", 2 * HOUR),
        ("INTERVAL '2 HRS'", 2 * HOUR),
        ("INTERVAL '250 ms'", 250 * MILLISECOND),
        ("INTERVAL '250' MILLISECOND", 250 * MILLISECOND),
        ("INTERVAL '7 us'", 7),
        ("INTERVAL '7 microseconds'", 7),
        ("INTERVAL '2 weeks'", 14 * DAY),
        ("INTERVAL '1' WEEK", 7 * DAY),
        ("INTERVAL '1.5' HOUR", 90 * MINUTE),
        ("INTERVAL 0.5 SECOND", 500 * MILLISECOND),
        ("INTERVAL '1 hour 30 minutes'", 90 * MINUTE),
        ("INTERVAL '1h30m'", 90 * MINUTE),
        ("INTERVAL '1 day 02:03:04'", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND),
        ("INTERVAL '1 02:03:04' DAY TO SECOND", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND),
        ("INTERVAL '1 02:03:04.5' DAY(3) TO SECOND(6)", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 500 * MILLISECOND),
        ("INTERVAL '10:20' MINUTE TO SECOND", 10 * MINUTE + 20 * SECOND),
        ("INTERVAL '2 10' DAY TO HOUR", 2 * DAY + 10 * HOUR),
        ("INTERVAL '00:05:00'", 5 * MINUTE),
        ("INTERVAL 'PT5M'", 5 * MINUTE),
        ("INTERVAL 'P1DT2H'", DAY + 2 * HOUR),
        ("INTERVAL '-5' MINUTE", -5 * MINUTE),
        ("INTERVAL - '5' MINUTE", -5 * MINUTE),
        ("INTERVAL '0' SECOND", 0),
        ("INTERVAL '5' SECOND(3)", 5 * SECOND),
    ],
)
def test_interval_spellings(text: str, micros: int) -> None:
    """D17, E1"""
    node = interval(text)
    assert isinstance(node, exp.Interval)
    assert duration_us(node) == micros
    assert node == interval(interval_text(micros))


def test_equal_durations_are_equal_trees() -> None:
    assert interval("INTERVAL '60' MINUTE") == interval("INTERVAL '1 hour'") == interval("INTERVAL 3600 SECONDS")
    assert interval("INTERVAL '24' HOUR") == interval("INTERVAL '1' DAY")


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("INTERVAL '3' MONTH", "3", "MONTH"),
        ("INTERVAL '12 months'", "1", "YEAR"),
        ("INTERVAL '1-2' YEAR TO MONTH", "14", "MONTH"),
        ("INTERVAL '2' YEARS", "2", "YEAR"),
        ("INTERVAL '1' QUARTER", "3", "MONTH"),
    ],
)
def test_months_and_years_stay_calendar_units(text: str, amount: str, unit: str) -> None:
    node = interval(text)
    assert (node.this.this, node.args["unit"].name) == (amount, unit)
    with pytest.raises(NotADuration):
        duration_us(node)


@pytest.mark.parametrize(
    "text",
    [
        "INTERVAL '5'",
        "INTERVAL 'five minutes'",
        "INTERVAL '5 fortnights'",
        "INTERVAL '1 month 2 days'",
        "INTERVAL '5 minutes' HOUR",
        "INTERVAL '1:2' DAY TO SECOND",
        "INTERVAL '0.5' MONTH",
        "INTERVAL '0.0000001' SECOND",
        "INTERVAL '99999999999999999' DAY",
        "INTERVAL ''",
        f"INTERVAL '{'9' * 5000}' DAY",
        f"INTERVAL '{'9' * 50}:00:00'",
    ],
)
def test_what_is_no_interval_is_refused_where_it_stands(text: str) -> None:
    [parsed] = parse_script(f"SELECT {text}")
    assert parsed.error is not None
    assert parsed.error.condition == "INVALID_ARGUMENT"
    assert parsed.error.span is not None
    assert parsed.error.span.column == 8


def test_interval_is_a_column_when_nothing_follows() -> None:
    assert isinstance(interval("interval FROM t"), exp.Column)
    assert isinstance(interval("interval + 1 AS x FROM t").this, exp.Add)


@pytest.mark.parametrize(("text", "micros"), [("5 minutes", 5 * MINUTE), ("10 SECONDS", 10 * SECOND), ("PT1H", HOUR)])
def test_plain_texts(text: str, micros: int) -> None:
    assert duration_us(text) == micros
    assert parse_duration(text).micros == micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (5 * SECOND, "INTERVAL '5' SECOND"),
        (90 * SECOND, "INTERVAL '90' SECOND"),
        (DAY, "INTERVAL '1' DAY"),
        (1_500_000, "INTERVAL '1500' MILLISECOND"),
        (1, "INTERVAL '1' MICROSECOND"),
        (0, "INTERVAL '0' SECOND"),
        (-HOUR, "INTERVAL '-1' HOUR"),
    ],
)
def test_canonical_text(micros: int, text: str) -> None:
    assert interval_text(micros) == text
