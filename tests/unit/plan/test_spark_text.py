"""What reaches Spark is generated, and nothing a user writes can break out of it."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from penstock.errors import PenstockError
from penstock.plan.script import analyze_script
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import column, select
from tests.unit.plan.analysis import spark

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@given(TEXTS)
def test_a_string_means_the_same_to_spark(text: str) -> None:
    """A backslash is an ordinary character in our strings and an escape in Spark's; `$` never begins a substitution."""
    report = analyze_script(f"SELECT {quoted(text)} AS x")[-1]
    assert report.plan is not None, report.error
    generated = spark_sql(report.plan.spark, pretty=False)
    assert "${" not in generated
    read = sqlglot.parse_one(generated, read="spark").find(exp.Literal)
    assert read is not None
    assert read.this == text


@given(TEXTS.filter(bool))
def test_a_name_is_always_quoted(name: str) -> None:
    tree = select([column(name, name)], exp.Table(this=exp.to_identifier("t", quoted=True)))
    if "${" in name:
        with pytest.raises(PenstockError, match="INVALID_DEFINITION"):
            spark_sql(tree, pretty=False)
        return
    generated = spark_sql(tree, pretty=False)
    assert "${" not in generated
    read = sqlglot.parse_one(generated, read="spark").find(exp.Column)
    assert read is not None
    assert (read.name, read.table) == (name, name)


def test_brackets_stay() -> None:
    """L7: conditions that are taken apart and put together again mean the same."""
    streams = """
        CREATE STREAM a (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        CREATE STREAM b (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
    """
    either, within = "(a.v > 1 OR b.v > 2)", "b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE"
    joined = spark(f"{streams} SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND {either} AND {within};")
    assert "`b`.`k` AND (`a`.`v` > 1 OR `b`.`v` > 2) AND `b`.`ts` BETWEEN" in joined
    lonely = spark(f"{streams} SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k AND {within} WHERE a.v = 1 OR a.v = 2;")
    assert "WHERE (`a`.`v` = 1 OR `a`.`v` = 2) AND (`b`.`ts` IS NULL)" in lonely
    windowed = "TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '1' HOUR) AS {0}"
    exists = spark(
        f"{streams} SELECT a.k FROM {windowed.format('a')} WHERE (a.v = 1 OR a.v = 2) AND a.k <> '' AND EXISTS "
        f"(SELECT 1 FROM {windowed.format('b')} WHERE b.k = a.k AND b.window_start = a.window_start "
        "AND b.window_end = a.window_end);"
    )
    assert "WHERE (`a`.`v` = 1 OR `a`.`v` = 2) AND `a`.`k` <> ''" in exists
    lateral = spark(
        "SELECT n.id, t.name FROM names AS n, LATERAL (SELECT m.name FROM names AS m WHERE m.id = n.id "
        "AND (m.name = 'a' OR m.name = 'b') AND m.name <> 'c' ORDER BY m.name LIMIT 1) AS t;"
    )
    assert "(`m`.`name` = 'a' OR `m`.`name` = 'b') AND `m`.`name` <> 'c'" in lateral


def test_the_alias_of_a_lateral_relation_is_quoted() -> None:
    sql = """CREATE STREAM a (xs ARRAY<INT>); SELECT "t) --".x FROM a CROSS JOIN UNNEST(xs) AS "t) --"(x)"""
    assert "LATERAL explode(`a`.`xs`) AS `t) --`(`x`)" in spark(sql)


@pytest.mark.parametrize("text", ["${env:HOME}", "${system:user.name}", "${spark.app.id}", "a$b", "$"])
def test_spark_substitutes_nothing(text: str) -> None:
    """spark.sql replaces ${…} before it parses, also inside strings."""
    assert "$" not in spark(f"SELECT {quoted(text)} AS x")


def test_a_cast_that_may_fail_stays_one_that_gives_null() -> None:
    assert "TRY_CAST(`trades`.`symbol` AS INT)" in spark("SELECT TRY_CAST(symbol AS INT) FROM trades")
    assert "CAST(`trades`.`symbol` AS DECIMAL(38, 18))" in spark("SELECT CAST(symbol AS DECIMAL) FROM trades")


def test_elements_count_from_one() -> None:
    sql = "CREATE STREAM a (xs ARRAY<INT>, m MAP<STRING, INT>); SELECT xs[1] AS first, m['k'] AS k FROM a"
    assert "get(`a`.`xs`, 0)" in spark(sql)  # and not element_at, which fails for place 0
    assert "try_element_at(`a`.`m`, 'k')" in spark(sql)


@pytest.mark.parametrize(
    ("behind", "given"),
    [("", ""), (" FILTER (WHERE volume > 1)", " FILTER(WHERE `trades`.`volume` > 1)")],
)
def test_a_correlation_never_divides_by_zero(behind: str, given: str) -> None:
    x, y = "`trades`.`price`", "`trades`.`volume`"
    found = spark(f"SELECT CORR(price, volume){behind} AS c FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)")
    sxy, sxx, syy = (f"regr_{part}({x}, {y}){given}" for part in ("sxy", "sxx", "syy"))
    assert f"try_divide({sxy}, sqrt({sxx} * {syy})) AS `c`" in found
