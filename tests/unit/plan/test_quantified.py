"""Comparisons with all rows of a subquery, GROUP BY ALL, UNNEST of several arrays (G12, G14)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.spark_text import spark_sql
from tests.unit.plan.analysis import last, planned

STREAMS = """
CREATE STREAM a (id BIGINT, cat BIGINT, price BIGINT, tags ARRAY<STRING>, ns ARRAY<BIGINT>,
  rs ARRAY<STRUCT<x BIGINT, y STRING>>, m MAP<STRING, BIGINT>, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '4' SECOND);
CREATE STREAM b (aid BIGINT, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND);
"""


def refused(sql: str) -> str:
    """The whole error of the last statement."""
    return str(last(sql).error)


def text(query: str) -> str:
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}")
    return " ".join(spark_sql(plan.spark, pretty=False).split())


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        (
            "(a.cat, a.price) IN (SELECT aid, price FROM b)",
            (
                "WHERE EXISTS((SELECT 1 AS `one` FROM ({0}) AS `__each` "
                "WHERE `a`.`cat` = `__each`.`aid` AND `a`.`price` = `__each`.`price`))"
            ),
        ),
        (
            "(a.cat, a.price) NOT IN (SELECT aid, price FROM b)",
            (
                "WHERE NOT EXISTS((SELECT 1 AS `one` FROM ({0}) AS `__each` "
                "WHERE coalesce(`a`.`cat` = `__each`.`aid` AND `a`.`price` = `__each`.`price`, TRUE)))"
            ),
        ),
        (
            "a.price > ALL (SELECT aid, price FROM b)",
            None,
        ),
    ],
)
def test_rows_of_values(condition: str, written: str | None) -> None:
    query = f"SELECT a.id FROM a WHERE {condition}"
    if written is None:
        error = refused(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}")
        assert "1 values are compared with the 2 columns of a subquery" in error
        return
    inner = "SELECT `b`.`aid` AS `aid`, `b`.`price` AS `price` FROM `b` AS `b`"
    assert written.format(inner) in text(query)


@pytest.mark.parametrize(
    ("condition", "looked_for"),
    [
        ("a.price > ALL", "NOT EXISTS(… WHERE NOT coalesce(`a`.`price` > `__each`.`price`, FALSE)…)"),
        ("NOT a.price > ALL", "NOT NOT EXISTS(… WHERE NOT coalesce(`a`.`price` > `__each`.`price`, TRUE)…)"),
        ("a.price > ANY", "EXISTS(… WHERE `a`.`price` > `__each`.`price`…)"),
        ("NOT a.price > SOME", "NOT EXISTS(… WHERE coalesce(`a`.`price` > `__each`.`price`, TRUE)…)"),
    ],
)
def test_unknown_is_not_no(condition: str, looked_for: str) -> None:
    found = text(f"SELECT a.id FROM a WHERE {condition} (SELECT price FROM b)")
    begin, end = looked_for.split("(…", maxsplit=1)[0], looked_for.split("…")[1]
    assert f"WHERE {begin}((SELECT 1" in found
    assert end in found


def test_one_equality_is_a_plain_in() -> None:
    assert "`a`.`price` IN (SELECT" in text("SELECT a.id FROM a WHERE a.price = ANY (SELECT price FROM b)")
    assert "NOT `a`.`price` IN (SELECT" in text("SELECT a.id FROM a WHERE a.price <> ALL (SELECT price FROM b)")


@pytest.mark.parametrize(
    ("value", "decides", "decided"),
    [
        ("a.price > ALL (SELECT price FROM b)", "NOT (`a`.`price` > `__each`.`price`)", "FALSE"),
        ("a.price > ANY (SELECT price FROM b)", "`a`.`price` > `__each`.`price`", "TRUE"),
        (
            "(a.cat, a.price) IN (SELECT aid, price FROM b)",
            "`a`.`cat` = `__each`.`aid` AND `a`.`price` = `__each`.`price`",
            "TRUE",
        ),
        (
            "(a.cat, a.price) <= ALL (SELECT aid, price FROM b)",
            ("NOT (`a`.`cat` < `__each`.`aid` OR (`a`.`cat` = `__each`.`aid` AND (`a`.`price` <= `__each`.`price`)))"),
            "FALSE",
        ),
    ],
)
@pytest.mark.parametrize("query", ["SELECT {0} AS x FROM a", "SELECT id FROM a WHERE cat = 1 OR {0}"])
def test_as_a_value_it_may_be_unknown(query: str, value: str, decides: str, decided: str) -> None:
    found = text(query.format(value))
    assert f"WHERE {decides})) THEN {decided} WHEN EXISTS(" in found
    assert ") IS NULL)) THEN NULL ELSE" in found


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        ("price = ANY (ns)", "exists(`a`.`ns`, `__x` -> `a`.`price` = `__x`)"),
        ("price > ALL (ARRAY[1, 2])", "forall(ARRAY(1, 2), `__x` -> `a`.`price` > `__x`)"),
        ("'x' = SOME (tags)", "exists(`a`.`tags`, `__x` -> 'x' = `__x`)"),
    ],
)
def test_elements_of_an_array(condition: str, written: str) -> None:
    assert f"WHERE {written}" in text(f"SELECT id FROM a WHERE {condition}")


def test_elements_are_compared_with_their_like() -> None:
    assert "TIMESTAMP and BIGINT cannot be compared" in refused(f"{STREAMS} SELECT id FROM a WHERE ts > ANY (ns)")
    assert "ANY needs an array or a subquery, not BIGINT" in refused(f"{STREAMS} SELECT id FROM a WHERE id > ANY (cat)")


def test_group_by_all() -> None:
    found = text("SELECT cat, price % 2 AS odd, COUNT(*) + MAX(id) AS n, 'x' AS x FROM a GROUP BY ALL")
    assert found.endswith("GROUP BY `a`.`cat`, `a`.`price` % 2")
    windows = text(
        "SELECT window_start, cat, SUM(price) AS s FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY ALL"
    )
    assert "GROUP BY `a`.`__window`, `a`.`cat`" in windows
    assert "GROUP BY" not in text("SELECT COUNT(*) AS n FROM a GROUP BY ALL")
    ranked = text("SELECT cat, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY cat) AS r FROM a GROUP BY ALL")
    assert ranked.endswith("GROUP BY `a`.`cat`")
    every = text("SELECT *, COUNT(*) AS n FROM a GROUP BY ALL")
    assert every.endswith("`a`.`m`, `a`.`ts`")
    error = refused(f"{STREAMS} SELECT a.*, COUNT(*) AS n FROM a GROUP BY ALL")
    assert "write the columns out" in error


@pytest.mark.parametrize(
    ("unnest", "columns"),
    [
        ("UNNEST(tags) AS t", ["t"]),
        ("UNNEST(tags)", ["value"]),
        ("UNNEST(tags, ns) AS t(x, y)", ["x", "y"]),
        ("UNNEST(tags, ns) AS t", ["value1", "value2"]),
        ("UNNEST(rs) AS t", ["x", "y"]),
        ("UNNEST(rs) WITH ORDINALITY AS t(p, q, o)", ["p", "q", "o"]),
        ("UNNEST(m) AS t", ["key", "value"]),
    ],
)
def test_names_of_unnested_columns(unnest: str, columns: list[str]) -> None:
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS SELECT a.id, {', '.join(columns)} FROM a, {unnest}")
    assert [field.name for field in plan.columns] == ["id", *columns]
    assert plan_job(plan).kind == "append"


def test_a_name_for_each_array() -> None:
    error = refused(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS SELECT x FROM a, UNNEST(tags, ns) AS t(x)")
    assert "UNNEST of 2 arrays has 2 columns, and 1 names are given" in error


def test_what_only_spark_knows_is_named() -> None:
    error = refused(f"""{STREAMS} CREATE MATERIALIZED VIEW mv AS
        SELECT a.cat, REGR_SLOPE(b.price, a.cat) AS x FROM a LEFT JOIN b ON a.cat = b.aid GROUP BY a.cat""")
    assert "only Spark knows regr_slope(b.price, a.cat): compute it from the columns of one stream" in error


def test_one_value_is_one_column() -> None:
    error = refused(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS SELECT id FROM a WHERE id IN (SELECT aid, price FROM b)")
    assert "one value is looked for among the 2 columns of a subquery" in error


def test_a_bound_of_a_window_that_is_not_grouped() -> None:
    error = refused(f"""{STREAMS} CREATE MATERIALIZED VIEW mv AS SELECT window_start, COUNT(*) AS n
        FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY cat""")
    assert "hint: add it: GROUP BY window_start, window_end" in error


def test_slices_between_computed_places() -> None:
    found = text("SELECT tags[cat:] AS x FROM a")
    begin = "if(`a`.`cat` < 1, 1, `a`.`cat`)"
    length = f"(size(`a`.`tags`)) - {begin} + 1"
    assert f"slice(`a`.`tags`, CAST({begin} AS INT), CAST(if({length} < 0, 0, {length}) AS INT))" in found
