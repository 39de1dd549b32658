"""Types that can never fit are refused where they stand; what Spark casts by itself is not."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.script import analyze_script
from tests.unit.plan.analysis import planned

STREAM = """CREATE STREAM s (b BOOLEAN, i INT, l BIGINT, d DOUBLE, m DECIMAL(10, 2), name STRING, y BINARY, day DATE,
ts TIMESTAMP, a ARRAY<INT>, mp MAP<STRING, INT>, st STRUCT<x INT>);"""


@pytest.mark.parametrize(
    ("query", "pointed", "message", "hint"),
    [
        ("SELECT i FROM s WHERE ts > 5", "ts > 5", "TIMESTAMP and INT cannot be compared", "timestamp_millis"),
        ("SELECT i FROM s WHERE 1 = b", "1 = b", "INT and BOOLEAN cannot be compared", "CAST"),
        ("SELECT i FROM s WHERE day BETWEEN 1 AND 2", "day BETWEEN 1 AND 2", "DATE and INT cannot be compared", "TIMESTAMP '"),
        ("SELECT i FROM s WHERE b IN (1, 2)", "b IN (1, 2)", "BOOLEAN and INT cannot be compared", "CAST"),
        ("SELECT CASE ts WHEN 5 THEN 1 END FROM s", "CASE ts WHEN 5 THEN 1 END", "TIMESTAMP and INT cannot be compared", "TIMESTAMP '"),
        ("SELECT mp = mp FROM s", "mp = mp", "MAP<STRING, INT> and MAP<STRING, INT> cannot be compared", "CAST"),
        ("SELECT name + name FROM s", "name + name", "+ does not take STRING and STRING", "|| joins texts"),
        ("SELECT ts + 5 FROM s", "ts + 5", "+ does not take TIMESTAMP and INT", "INTERVAL '5' SECOND"),
        ("SELECT ts * 2 FROM s", "ts * 2", "* does not take TIMESTAMP and INT", "interval"),
        ("SELECT name + DATE '2026-01-01' FROM s", "name + DATE '2026-01-01'", "+ does not take STRING and DATE", "interval"),
        ("SELECT ts + UPPER(name) FROM s", "ts + UPPER(name)", "+ does not take TIMESTAMP and STRING", "INTERVAL '5' SECOND"),
        ("SELECT 1 - day FROM s", "1 - day", "- does not take INT and DATE", "interval"),
        ("SELECT INTERVAL '1' DAY - ts FROM s", "INTERVAL '1' DAY - ts", "- does not take INTERVAL and TIMESTAMP", "interval"),
        ("SELECT (ts - ts) - name FROM s", "(ts - ts) - name", "- does not take INTERVAL and STRING", "CAST"),
        ("SELECT i / INTERVAL '1' DAY FROM s", "i / INTERVAL '1' DAY", "/ does not take INT and INTERVAL", "by a number"),
        ("SELECT i + b FROM s", "i + b", "+ takes numbers, not BOOLEAN", "CAST"),
        ("SELECT -ts FROM s", "-ts", "- takes numbers, not TIMESTAMP", "CAST"),
        ("SELECT i FROM s WHERE i", "i", "WHERE takes a condition, not INT", "TRUE or FALSE"),
        ("SELECT i FROM s WHERE b AND ts", "ts", "AND takes conditions, not TIMESTAMP", "TRUE or FALSE"),
        ("SELECT i FROM s WHERE NOT i", "i", "NOT takes conditions, not INT", "TRUE or FALSE"),
        ("SELECT CASE WHEN name THEN 1 END FROM s", "name", "CASE WHEN takes a condition, not STRING", "TRUE or FALSE"),
        ("SELECT COUNT(*) FILTER (WHERE i) FROM s", "i", "FILTER (WHERE …) takes a condition, not INT", "TRUE or FALSE"),
        ("SELECT p.i FROM s p JOIN s q ON p.i", "p.i", "ON takes a condition, not INT", "TRUE or FALSE"),
        ("SELECT a LIKE 'x' FROM s", "a", "LIKE takes texts, not ARRAY<INT>", "part"),
        ("SELECT SUM(b) FROM s", "b", "function SUM takes numbers, not BOOLEAN", "CAST"),
        ("SELECT AVG(DISTINCT day) FROM s", "day", "function AVG takes numbers, not DATE", "CAST"),
        ("SELECT SQRT(ts) FROM s", "ts", "function SQRT takes numbers, not TIMESTAMP", "CAST"),
        ("SELECT UPPER(a) FROM s", "a", "function UPPER takes texts, not ARRAY<INT>", "CAST"),
        ("SELECT HOUR(i + 1) FROM s", "i + 1", "function HOUR takes times, not INT", "CAST"),
        ("SELECT MAX(mp) OVER (PARTITION BY i) FROM s", "mp", "function MAX takes values with an order", "CAST"),
        ("SELECT UNNEST(name) AS x FROM s", "name", "function UNNEST takes arrays and maps, not STRING", "SPLIT"),
        ("SELECT x FROM s, UNNEST(name) AS t(x)", "name", "UNNEST needs an array or a map, not STRING", "SPLIT"),
        ("SELECT x FROM s, UNNEST(a, name) AS t(x, z)", "name", "UNNEST needs arrays, not STRING", "SPLIT"),
        ("SELECT x FROM s LATERAL VIEW explode(i) t AS x", "i", "function explode takes arrays and maps, not INT", "CAST"),
        ("SELECT MEDIAN(ts) FROM s", "ts", "function MEDIAN takes numbers, not TIMESTAMP", "CAST"),
    ],
)  # fmt: skip
def test_types_that_never_fit(query: str, pointed: str, message: str, hint: str) -> None:
    text = f"{STREAM} {query}"
    error = analyze_script(text)[-1].error
    assert error is not None
    assert error.condition == "TYPE_MISMATCH"
    assert error.message.startswith(message)
    assert error.hint is not None
    assert hint in error.hint
    assert error.span is not None
    assert text[error.span.start : error.span.end] == pointed


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name + 1 AS x, i * name AS y, SUM(name) AS z FROM s GROUP BY name, i",
        "SELECT UPPER(5 = 5) AS x, UPPER(i) AS y, LENGTH(ts) AS z FROM s",
        "SELECT i FROM s WHERE ts > '2026-01-01' AND day = ts AND name = i AND b = 'true' AND y = name",
        "SELECT day + 1 AS x, 1 + day AS y, day - 1 AS z, ts - ts AS w, day - day AS v FROM s",
        "SELECT ts + INTERVAL '1' DAY AS x, INTERVAL '1' DAY * 2 AS y, (ts - ts) / 2 AS z FROM s",
        "SELECT i FROM s WHERE unknown_type(ts) > 5 AND NULL",
        "SELECT AVG(ts - ts) AS x, MAX(ABS(ts - ts)) AS y, MIN(YEAR(name)) AS z FROM s",
        "SELECT i FROM s WHERE a = a AND st = st AND i IN (1, 'x') AND m > d",
        "SELECT SIZE(a) AS x, REVERSE(a) AS y, FILTER(a, e -> e > 1) AS z FROM s",
    ],
)
def test_what_spark_casts_by_itself_and_what_is_not_known_is_let_through(query: str) -> None:
    made = "CREATE FUNCTION unknown_type(x TIMESTAMP) RETURNS INT LANGUAGE python AS $$def unknown_type(x): return x$$;"
    error = analyze_script(f"{STREAM} {made} {query}")[-1].error
    assert error is None, error


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT name + 1 AS x FROM s", "+ reads texts as numbers, and fails at one that is none"),
        ("SELECT name - 1.5 AS x FROM s", "- reads texts as numbers, and fails at one that is none"),
        ("SELECT i * name AS x FROM s", "* reads texts as numbers, and fails at one that is none"),
        ("SELECT SUM(name) AS x FROM s", "SUM reads texts as numbers, and fails at one that is none"),
        ("SELECT AVG(name) AS x FROM s", "AVG reads texts as numbers, and fails at one that is none"),
        ("SELECT i + '1' AS x FROM s", None),
        ("SELECT i + 1 AS x, ts - INTERVAL '1' DAY AS y, SUM(v) AS z FROM (SELECT i, ts, d AS v FROM s) GROUP BY i, ts", None),
        ("SELECT name || 1 AS x FROM s", None),
    ],
)  # fmt: skip
def test_texts_that_are_read_as_numbers_are_told(query: str, told: str | None) -> None:
    report = analyze_script(f"{STREAM} CREATE MATERIALIZED VIEW m AS {query}")[-1]
    assert report.error is None, report.error
    found = [notice for notice in report.notices if "reads texts as numbers" in notice]
    assert [notice.partition(";")[0] for notice in found] == ([told] if told else [])


@pytest.mark.parametrize(
    ("computed", "kind", "text"),
    [
        ("i + name", "BIGINT", "CAST(name AS BIGINT)"),
        ("name % i", "BIGINT", "CAST(name AS BIGINT)"),
        ("i / name", "DOUBLE", "CAST(name AS BIGINT)"),
        ("d * name", "DOUBLE", "CAST(name AS DOUBLE)"),
        ("m - name", "DOUBLE", "CAST(name AS DOUBLE)"),
        ("name + 1.5", "DOUBLE", "CAST(name AS DOUBLE) + 1.5"),
        ("SUM(name)", "DOUBLE", "CAST(name AS DOUBLE)"),
        ("-name", "DOUBLE", "CAST(name AS DOUBLE)"),
    ],
)
def test_texts_that_are_read_as_numbers_are_cast_as_spark_does(computed: str, kind: str, text: str) -> None:
    plan = planned(f"{STREAM} CREATE MATERIALIZED VIEW m AS SELECT {computed} AS x FROM s")
    assert str(plan.columns[0].type) == kind
    assert text in plan_job(plan).core.replace("`", "").replace("s.", "")


def test_texts_that_are_read_as_numbers_over_rows_that_change() -> None:
    changing = "CREATE STREAM c (id BIGINT, k STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');"
    for computed in ("id + k", "SUM(k)", "SUM(id * k)"):
        job = plan_job(planned(f"{changing} CREATE MATERIALIZED VIEW m AS SELECT {computed} AS x FROM c"))
        assert job.kind == "finish"


def test_a_materialized_view_is_not_told_to_become_one() -> None:
    changing = (
        "CREATE STREAM c (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');"
    )
    error = analyze_script(f"{changing} CREATE MATERIALIZED VIEW m AS SELECT id, id + '1' AS x FROM c")[-1].error
    assert error is not None
    assert "CAST" in str(error.hint)
    assert "materialized view" not in str(error.hint)


@pytest.mark.parametrize(
    ("call", "pointed", "message", "hint"),
    [
        ("PERCENTILE_CONT(1.5) WITHIN GROUP (ORDER BY d)", "1.5", "takes a fraction from 0 to 1, not 1.5", "0.5"),
        ("PERCENTILE_DISC(-1) WITHIN GROUP (ORDER BY d)", "-1", "takes a fraction from 0 to 1, not -1", "0.5"),
        ("PERCENTILE(d, ARRAY[0.1, 2])", "ARRAY[0.1, 2]", "takes a fraction from 0 to 1, not 2", "0.5"),
        ("APPROX_PERCENTILE(d, (95))", "(95)", "takes a fraction from 0 to 1, not 95", "0.95"),
        ("PERCENTILE_CONT(d) WITHIN GROUP (ORDER BY d)", "d", "takes a fraction that is the same for all rows", "0.95"),
        ("PERCENTILE_CONT(DISTINCT 0.5) WITHIN GROUP (ORDER BY d)", "PERCENTILE_CONT", "takes no DISTINCT", "PERCENTILE(DISTINCT"),
        ("PERCENTILE_CONT(0.5)", "PERCENTILE_CONT", "is not told which values it is about", "WITHIN GROUP (ORDER BY x)"),
        ("MODE()", "MODE", "is not told which values it is about", "MODE(x)"),
        ("MODE() FILTER (WHERE b)", "MODE", "is not told which values it is about", "MODE(x)"),
        ("MODE(i) WITHIN GROUP (ORDER BY d)", "d", "takes no WITHIN GROUP", "leave it out"),
        ("FROM_JSON(name, 'nope nope nope')", "'nope nope nope'", "cannot read its schema: 'nope' is no type", "a INT"),
        ("FROM_CSV(name, 'a INT b STRING')", "'a INT b STRING'", "schema: ',' is missing before 'b'", "a INT"),
        ("FROM_JSON(name, 'ARRAY<INT')", "'ARRAY<INT'", "cannot read its schema: '>' is missing at its end", "a INT"),
        ("MODE() WITHIN GROUP (ORDER BY i, d)", "d", "takes one term", "leave out"),
    ],
)  # fmt: skip
def test_calls_that_no_row_could_make_right(call: str, pointed: str, message: str, hint: str) -> None:
    text = f"{STREAM} SELECT {call} AS v FROM s"
    error = analyze_script(text)[-1].error
    assert error is not None
    assert error.condition == "INVALID_ARGUMENT"
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.span is not None
    assert text[error.span.start : error.span.end] == pointed


@pytest.mark.parametrize(
    "call",
    [
        "PERCENTILE_CONT(0) WITHIN GROUP (ORDER BY d DESC)",
        "PERCENTILE_CONT('0.5') WITHIN GROUP (ORDER BY d) FILTER (WHERE b)",
        "PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY d)",
        "PERCENTILE(d, 1.0)",
        "APPROX_PERCENTILE(d, ARRAY[0, 0.5, 1], 100)",
        "MODE() WITHIN GROUP (ORDER BY i)",
        "MODE(i)",
        "MODE(i, TRUE)",
        "STRING_AGG(name, ',') WITHIN GROUP (ORDER BY name)",
    ],
)
def test_calls_with_all_they_need(call: str) -> None:
    assert analyze_script(f"{STREAM} SELECT {call} AS v FROM s")[-1].error is None
