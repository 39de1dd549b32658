"""What the user has written wrong is told as such, at its place, and not as something that is missing (G16, H2)."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from tests.unit.plan.analysis import TRADES, last, planned

STREAMS = """
CREATE STREAM c (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM b (id BIGINT, k STRING, w BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
"""


@pytest.mark.parametrize(
    ("query", "condition", "place"),
    [
        ("SELECT id FROM b EXCEPT SELECT k FROM c", "TYPE_MISMATCH", "SELECT k FROM c"),
        ("SELECT id FROM b INTERSECT SELECT k FROM b", "TYPE_MISMATCH", "SELECT k FROM b"),
        ("SELECT id FROM b UNION SELECT k FROM b", "TYPE_MISMATCH", "SELECT k FROM b"),
        (
            "SELECT id, (SELECT w, k FROM b WHERE b.id = c.id) AS x FROM c",
            "INVALID_ARGUMENT",
            "SELECT w, k FROM b WHERE b.id = c.id",
        ),
        ("SELECT c.id FROM c ASOF JOIN b ON c.id = b.id", "INVALID_ARGUMENT", "c.id = b.id"),
        (
            "SELECT c.id FROM c ASOF JOIN b ON c.ts >= b.ts AND c.v > b.w",
            "INVALID_ARGUMENT",
            "c.ts >= b.ts AND c.v > b.w",
        ),
        ("SELECT k, ROW_NUMBER() AS r FROM b", "INVALID_ARGUMENT", "ROW_NUMBER"),
        ("SELECT v, MEDIAN(k) AS m FROM c GROUP BY v", "TYPE_MISMATCH", "k"),
        ("SELECT v, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY k) AS m FROM c GROUP BY v", "TYPE_MISMATCH", "k"),
        (
            "SELECT k, COUNT(*) AS n FROM c GROUP BY k EMIT FINAL",
            "UNSUPPORTED_CLAUSE",
            "EMIT FINAL",
        ),
        (
            "SELECT b.id, c.v FROM b JOIN c FOR SYSTEM_TIME AS OF b.ts ON b.id = c.id",
            "MISSING_EVENT_TIME",
            "c FOR SYSTEM_TIME AS OF b.ts",
        ),
    ],
)
def test_mistakes_are_told_at_their_place(query: str, condition: str, place: str) -> None:
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}").error
    assert error is not None
    assert (error.condition, error.span and error.span.length) == (condition, len(place))
    assert error.hint
    assert "__" not in f"{error.message} {error.hint}"


def test_columns_around_an_aggregate_are_for_views() -> None:
    """Spark has them in HAVING alone; a query that the view store answers takes them everywhere."""
    inner = "SELECT COUNT(*) + x.v FROM b WHERE b.k = x.k"
    for relation in ("c", "(SELECT id, k, w AS v FROM b)"):
        assert planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS SELECT id, ({inner}) AS n FROM {relation} AS x").kept
    table = "CREATE TABLE d (k STRING, v BIGINT) WITH (connector = 'file', format = 'csv', path = 'd.csv');"
    error = last(f"{table} SELECT k, ({inner.replace('FROM b', 'FROM d AS b')}) AS n FROM d AS x").error
    assert error is not None
    assert (error.condition, error.span and error.span.length) == ("UNSUPPORTED_CLAUSE", len("x.v"))


def test_a_subquery_without_an_alias_has_no_name_to_write() -> None:
    """Names of ours are told to nobody."""
    query = (
        "SELECT k, NOW() AS t FROM (SELECT DISTINCT k, id FROM b) JOIN (SELECT DISTINCT k, id AS i FROM c) ON id = i"
    )
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}").error
    assert error is not None
    assert error.condition == "AMBIGUOUS_COLUMN"
    assert error.hint == "give a subquery an alias, and write alias.k to say which"


def test_a_source_without_event_time_is_named() -> None:
    query = "SELECT b.id, c.v FROM b JOIN c FOR SYSTEM_TIME AS OF b.ts ON b.id = c.id"
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}").error
    assert error is not None
    assert error.message.startswith('"c" has no event time')
    assert "WATERMARK FOR ts" in (error.hint or "")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c.id, b.w FROM c JOIN b ON c.id = b.id",
        "SELECT c.id, b.w FROM c ASOF JOIN b ON c.id = b.id AND c.ts >= b.ts",
        "SELECT c.id, t.w FROM c LEFT JOIN LATERAL (SELECT w FROM b WHERE b.id = c.id ORDER BY w LIMIT 2) AS t ON TRUE",
        "SELECT c.id, s.n FROM c CROSS JOIN (SELECT COUNT(*) AS n FROM b) AS s",
    ],
)
def test_what_the_store_joins_is_no_broadcast(query: str) -> None:
    text = plan_text(planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}"))
    assert "strategy view store" in text
    assert "broadcast" not in text
    assert "DimensionJoin" not in text


def test_an_offset_is_told() -> None:
    text = plan_text(planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS SELECT id FROM b ORDER BY id LIMIT 7 OFFSET 3"))
    assert "Limit  rows 7, offset 3" in text


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY w) AS rn FROM b WHERE rn <= 3", "QUALIFY rn <= 3"),
        ("SELECT id, w * 2 AS twice FROM b WHERE twice > 3", "write w * 2 again"),
        (
            (
                "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE b, DESCRIPTOR(PROCTIME()), INTERVAL '3' SECOND) "
                "GROUP BY window_start, window_end"
            ),
            "seen AS PROCTIME()",
        ),
    ],
)
def test_hints_say_what_to_write(query: str, hint: str) -> None:
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}").error
    assert error is not None
    assert hint in (error.hint or "")


NESTED = """
CREATE STREAM n (id BIGINT, k STRING, tags ARRAY<STRING>, st STRUCT<a: INT>, m MAP<STRING, INT>) WITH (connector = 'topic');
"""


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "SELECT k, m FROM n EXCEPT SELECT k, m FROM n WHERE id > 3",
            "m: nothing says which values of type MAP<STRING, INT>",
        ),
        (
            "SELECT DISTINCT k, m FROM n",
            "n.m: nothing says which values of type MAP<STRING, INT> are equal: compare texts",
        ),
        (
            "SELECT m, COUNT(DISTINCT id) AS d FROM n GROUP BY m",
            "n.m: nothing says which values of type MAP<STRING, INT>",
        ),
        (
            "SELECT k, m FROM n ORDER BY m LIMIT 3",
            "m: values of type MAP<STRING, INT> have no order: order by numbers, times or texts",
        ),
        (
            "SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY m) AS r FROM n",
            "n.m: values of type MAP<STRING, INT> have no order: order by numbers, times or texts",
        ),
        (
            "SELECT k, ARRAY_AGG(DISTINCT m ORDER BY m) AS x, COUNT(DISTINCT id) AS d FROM n GROUP BY k",
            "array_agg(DISTINCT n.m ORDER BY n.m ASC): nothing says which values of type MAP<STRING, INT> are equal",
        ),
    ],
)
def test_what_cannot_be_compared_is_named(query: str, told: str) -> None:
    """Nothing is equal to, or behind, a value of such a type: the column and its type are told, and what to write."""
    error = last(f"{NESTED} CREATE MATERIALIZED VIEW x AS {query}").error
    assert error is not None
    assert error.hint is not None
    assert error.hint.startswith(told)
    assert "__" not in error.hint


@pytest.mark.parametrize(
    ("query", "condition", "place", "told"),
    [
        ("SELECT SUM(v) OVER (ORDER BY SUM(v) OVER ()) AS s FROM c", "MISPLACED_AGGREGATE", "SUM(v)", "in a subquery"),
        ("SELECT LAG(SUM(v) OVER ()) OVER (ORDER BY k) AS s FROM c", "MISPLACED_AGGREGATE", "SUM(v)", "in a subquery"),
        ("SELECT GROUPING(k) AS g FROM c", "INVALID_ARGUMENT", "GROUPING", "GROUP BY ROLLUP (k)"),
        ("SELECT GROUPING(k) AS g, COUNT(*) AS n FROM c", "INVALID_ARGUMENT", "GROUPING", "GROUP BY ROLLUP (k)"),
        ("SELECT GROUPING_ID() AS g FROM c", "INVALID_ARGUMENT", "GROUPING_ID", "GROUP BY ROLLUP"),
        ("SELECT GROUPING(v) AS g FROM c GROUP BY ROLLUP (k)", "NOT_GROUPED", "v", "GROUPING takes keys"),
        ("SELECT k, COUNT(*) AS n FROM c GROUP BY k HAVING GROUPING(v) = 0", "NOT_GROUPED", "v", "GROUPING takes keys"),
        ("SELECT k, COUNT(*) AS n FROM c GROUP BY ROLLUP (k) ORDER BY GROUPING(v) LIMIT 2", "NOT_GROUPED", "v", "keys"),
        ("SELECT k, COUNT(*) AS n FROM c GROUP BY k ORDER BY v LIMIT 2", "NOT_GROUPED", "v", "MAX(v)"),
        ("SELECT ABS(DISTINCT v) AS x FROM c", "INVALID_ARGUMENT", "v", "ABS is none"),
        ("SELECT LAG(DISTINCT v) OVER (ORDER BY id) AS x FROM c", "INVALID_ARGUMENT", "v", "LAG is none"),
        ("SELECT * EXCEPT (kk, v) FROM c", "UNKNOWN_COLUMN", "kk", 'did you mean "k"?'),
        ("SELECT * EXCEPT (nope) FROM c", "UNKNOWN_COLUMN", "nope", "columns in scope: id, k, v, ts"),
        ("SELECT c.* EXCEPT (w), b.w FROM c JOIN b ON c.id = b.id", "UNKNOWN_COLUMN", "w", '"c.w"'),
        ("SELECT * EXCEPT (id, k, v, ts) FROM c", "INVALID_ARGUMENT", "* EXCEPT (id, k, v, ts", "no column"),
        ("SELECT b.k, c.v FROM b JOIN c FOR SYSTEM_TIME AS OF b.w ON b.id = c.id", "TYPE_MISMATCH", "b.w", "BIGINT"),
        ("SELECT b.k, c.v FROM b JOIN c FOR SYSTEM_TIME AS OF b.k ON b.id = c.id", "TYPE_MISMATCH", "b.k", "TIMESTAMP"),
        ("SELECT COUNT(DISTINCT *) AS n FROM c", "INVALID_ARGUMENT", "*", "COUNT(DISTINCT id, k, v, ts)"),
        ("SELECT SUM(DISTINCT *) AS n FROM c", "INVALID_ARGUMENT", "*", "the column it works on"),
    ],
)
def test_what_no_rows_could_make_right_is_told_with_what_to_write(
    query: str, condition: str, place: str, told: str
) -> None:
    script = f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}"
    error = last(script).error
    assert error is not None
    assert error.condition == condition
    assert error.span is not None
    whole = TRADES + script
    assert whole[error.span.start : error.span.end] == place
    assert told in f"{error.message} {error.hint}"
    assert "__" not in f"{error.message} {error.hint}"


def test_columns_are_left_out_of_those_of_one_relation() -> None:
    plan = planned(f"{STREAMS} CREATE VIEW m AS SELECT b.* EXCEPT (k, TS), b.k AS key FROM b")
    assert [entry.name for entry in plan.root.visible] == ["id", "w", "key"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, GROUPING(k) AS g, COUNT(*) AS n FROM c GROUP BY ROLLUP (k) HAVING GROUPING(k) = 0",
        "SELECT SUM(COUNT(*)) OVER (ORDER BY k) AS s FROM c GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM c GROUP BY k ORDER BY MAX(v), k LIMIT 2",
        "SELECT id FROM c ORDER BY (SELECT MAX(w) FROM b) LIMIT 2",
        "SELECT SUM(s) OVER (ORDER BY s) AS t FROM (SELECT SUM(v) OVER () AS s FROM c) AS x",
        "SELECT COUNT(DISTINCT id, k) AS n, SUM(DISTINCT v) AS s FROM c",
    ],
)
def test_what_is_like_a_mistake_and_is_none(query: str) -> None:
    planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}")
