"""Canonical text: its layout, and what it hides."""

from __future__ import annotations

from textwrap import dedent

import pytest

from penstock.sql.format import format_name, format_option, format_statement, format_tree
from penstock.sql.script import parse_statement
from penstock.sql.statements import CreateRelation, Name, Option, Select


def shown(_: Option) -> bool:
    return False


def test_layout_of_a_definition() -> None:
    statement = parse_statement(
        "create table Trades (symbol varchar not null comment 'it''s', ts timestamp(3), cents as price*100, "
        "watermark for ts as ts-interval '5 sec', primary key(symbol)) with('connector'='kafka','max-parallelism'='8')"
    )
    assert format_statement(statement, shown) == dedent(
        """\
        CREATE TABLE Trades (
          symbol STRING NOT NULL COMMENT 'it''s',
          ts TIMESTAMP,
          cents AS price * 100,
          WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
          PRIMARY KEY (symbol) NOT ENFORCED
        )
        WITH (
          connector = 'kafka',
          'max-parallelism' = '8'
        )"""
    )


def test_layout_of_a_view() -> None:
    statement = parse_statement(
        "create materialized view v as select tumble_start(ts, interval '1 hour') h, sum(x) from t where a is not null "
        "and b not in (1, 2) group by tumble(ts, interval '60' minute) having count(*)>1 emit on window close"
    )
    assert format_statement(statement) == dedent(
        """\
        CREATE MATERIALIZED VIEW v AS
        SELECT
          TUMBLE_START(ts, INTERVAL '1' HOUR) AS h,
          SUM(x)
        FROM t
        WHERE
          a IS NOT NULL AND b NOT IN (1, 2)
        GROUP BY
          TUMBLE(ts, INTERVAL '1' HOUR)
        HAVING
          COUNT(*) > 1
        EMIT FINAL"""
    )


def test_no_blank_lines() -> None:
    text = "EXPLAIN CREATE SINK k WITH (a = 1) AS WITH x AS (SELECT 1) SELECT * FROM x UNION ALL SELECT 2 ORDER BY 1"
    lines = format_statement(parse_statement(text)).split("\n")
    assert all(line.strip() for line in lines)
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a->'b'->>'c'", "a -> 'b' ->> 'c'"),
        ("cast(a as varchar(5))", "CAST(a AS STRING)"),
        ("a::decimal", "CAST(a AS DECIMAL(38, 18))"),
        ("timestamp '2020-01-01'", "TIMESTAMP '2020-01-01'"),
        ("array[1,2][1]", "ARRAY[1, 2][1]"),
        ("map['a',1]", "MAP['a', 1]"),
        ("row(1,'a')", "STRUCT(1, 'a')"),
        ("window(ts,'1 hour','5 minutes')", "HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)"),
        ("Window.END", "Window.END"),
        ('"end"', '"end"'),
        ("`a b`", '"a b"'),
        ('"Price"', '"Price"'),
        ("coalesce(a,'it''s \\')", "COALESCE(a, 'it''s \\')"),
        ("a==b", "a = b"),
        ("a!=b", "a <> b"),
        ("not a", "NOT a"),
        ("a is not distinct from b", "a IS NOT DISTINCT FROM b"),
        ("filter(xs,x->x>1)", "FILTER(xs, x -> x > 1)"),
        ("count(distinct a)filter(where b)", "COUNT(DISTINCT a) FILTER (WHERE b)"),
        ("current_timestamp()", "CURRENT_TIMESTAMP"),
        ("substring(a from 2)", "SUBSTRING(a FROM 2)"),
        ("extract(hour from ts)", "EXTRACT(HOUR FROM ts)"),
    ],
)
def test_canonical_expressions(text: str, expected: str) -> None:
    statement = parse_statement(f"SELECT {text} FROM t")
    assert isinstance(statement, Select)
    assert format_tree(statement.query.tree.selects[0]) == expected


SECRETIVE = "CREATE TABLE t (a INT) WITH (topic = 'x', password = 'hunter2', n = 5, pw = SECRET p, e = '${env:X}', m = 'a${env:X}')"


def test_values_are_hidden_unless_told_otherwise() -> None:
    statement = parse_statement(SECRETIVE)
    assert isinstance(statement, CreateRelation)
    hidden = format_statement(statement)
    assert "hunter2" not in hidden
    assert [format_option(option) for option in statement.options] == [
        "topic = '********'",
        "password = '********'",
        "n = '********'",
        "pw = SECRET p",
        "e = '${env:X}'",
        "m = '********'",
    ]
    some = format_statement(statement, lambda option: option.key == "password")
    assert "topic = 'x'" in some
    assert "password = '********'" in some
    assert parse_statement(format_statement(statement, shown)) == statement


def test_the_value_of_a_secret_is_never_written() -> None:
    assert format_statement(parse_statement("CREATE SECRET s AS 'hunter2'"), shown) == "CREATE SECRET s AS '********'"
    assert format_statement(parse_statement("CREATE SECRET s AS '${file:/x}'")) == "CREATE SECRET s AS '${file:/x}'"


def test_settings_are_hidden_like_options() -> None:
    statement = parse_statement("SET token = 'hunter2'")
    assert format_statement(statement) == "SET token = '********'"
    assert format_statement(statement, shown) == "SET token = 'hunter2'"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (Name("price"), "price"),
        (Name("Price", quoted=True), '"Price"'),
        (Name("unit price"), '"unit price"'),
        (Name('a"b'), '"a""b"'),
        (Name("select"), '"select"'),
        (Name("größe"), "größe"),
        (Name("penstock.jobs"), "penstock.jobs"),
        (Name("a.b"), '"a.b"'),
    ],
)
def test_names(name: Name, text: str) -> None:
    assert format_name(name) == text


def test_formatting_changes_no_tree() -> None:
    statement = parse_statement("WITH x AS (SELECT 1) SELECT * FROM (VALUES (1)) AS v(a), x")
    before = repr(statement)
    format_statement(statement)
    assert repr(statement) == before
