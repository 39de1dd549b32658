"""What the view store asks of Spark, what it computes by itself, and what stays refused."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from penstock.plan.finish_plan import Asked, FinishPlan
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.types import BIGINT, STRING, SqlType
from tests.unit.plan.analysis import last, planned

STREAMS = """
CREATE STREAM a (id BIGINT, name STRING, d DECIMAL(10, 2), tags ARRAY<STRING>, ts TIMESTAMP);
CREATE STREAM b (id BIGINT, name STRING, e DECIMAL(12, 3), ts TIMESTAMP);
CREATE STREAM c (id BIGINT, x INT);
"""
JOINED = "FROM a LEFT JOIN b ON a.id = b.id"


def job(query: str, before: str = "") -> JobPlan:
    return plan_job(planned(f"{STREAMS} {before} CREATE MATERIALIZED VIEW mv AS {query};"))


def finish(query: str, before: str = "") -> FinishPlan:
    found = job(query, before).finish
    assert found is not None
    return found


def asked(query: str) -> list[str]:
    return [each.text for each in finish(query).asked]


def test_the_smallest_expression_is_asked() -> None:
    """What the store knows around it stays the store's."""
    found = finish(f"SELECT a.id, LENGTH(UPPER(a.name || b.name)) + 1 AS n {JOINED}")
    (each,) = found.asked
    assert each == Asked(each.name, "upper(`a0` || `a1`)", (STRING, STRING), STRING, "upper(a.name || b.name)")
    assert f'CAST(length("{each.name}"("a"."name", "b"."name")) AS INTEGER)' in found.view.text
    assert found.keys == ("id",)


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        (f"SELECT LOWER(REGEXP_REPLACE(a.name || b.name, 'x', 'y')) AS x {JOINED}",
         ["lower(regexp_replace(`a0` || `a1`, 'x', 'y'))"]),
        (f"SELECT CONCAT(a.name, a.name, UPPER(b.name || a.name), UPPER(b.name || a.name)) AS x {JOINED}",
         ["upper(`a0` || `a1`)"]),
        # computed of one stream alone: Spark does it before the rows are kept
        (f"SELECT UPPER(a.name) AS x, a.name || b.name AS y {JOINED}", []),
        # what a value stands for when there is no row
        (f"SELECT COALESCE(HEX(b.id), 'none') AS x {JOINED}", []),
        ("SELECT INITCAP(name) AS x, COUNT(DISTINCT id) AS n FROM a GROUP BY name", ["initcap(`a0`)"]),
        ("SELECT name, SQRT(COUNT(DISTINCT id)) AS n FROM a GROUP BY name", ["sqrt(`a0`)"]),
        ("SELECT UPPER((SELECT MAX(name) FROM b WHERE b.id = a.id)) AS x FROM a", ["upper(`a0`)"]),
        ("SELECT id, SOUNDEX(LAG(name) OVER (PARTITION BY id ORDER BY ts)) AS x FROM a", ["soundex(`a0`)"]),
        (f"SELECT CAST(TRANSFORM(a.tags, x -> UPPER(x || b.name)) AS ARRAY<STRING>) AS x {JOINED}",
         ["transform(`a0`, `x` -> upper(x || `a1`))"]),
        (f"SELECT STRUCT(a.id, b.name AS n, SOUNDEX(a.name || b.name)) AS x {JOINED}", ["soundex(`a0` || `a1`)"]),
        (f"SELECT NAMED_STRUCT('u', a.id, 'v', b.name).v AS x {JOINED}", ["named_struct('u', `a0`, 'v', `a1`)"]),
        (f"SELECT FROM_JSON(a.name || b.name, 'p INT').p AS x {JOINED}", ["from_json(`a0` || `a1`, 'p INT')"]),
        (f"SELECT a.id {JOINED} WHERE LOWER(a.name || b.name) RLIKE 'x'", ["lower(`a0` || `a1`) RLIKE 'x'"]),
        (f"SELECT a.id, b.id AS other {JOINED} AND LEVENSHTEIN(a.name, b.name) < 2", ["levenshtein(`a0`, `a1`)"]),
        ("SELECT name, JSON_AGG(STRUCT(id, d)) AS j, COUNT(DISTINCT id) AS n FROM a GROUP BY name", ["to_json(`a0`)"]),
        ("SELECT name, JSON_OBJECT_AGG(name, STRUCT(d)) AS j, COUNT(DISTINCT id) AS n FROM a GROUP BY name", ["to_json(`a0`)"]),
        ("SELECT name, JSON_AGG(id) AS j, COUNT(DISTINCT id) AS n FROM a GROUP BY name", []),
        (f"SELECT a.id, DATE_FORMAT(TIMESTAMP '2026-01-02 03:04:05', 'EEE') AS x {JOINED}",
         ["date_format(CAST('2026-01-02 03:04:05' AS TIMESTAMP), 'EEE')"]),
    ],
)  # fmt: skip
def test_what_is_asked(query: str, texts: list[str]) -> None:
    assert asked(query) == texts


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("STRUCT(a.id, b.name AS n)", "STRUCT<id BIGINT, n STRING>"),
        ("NAMED_STRUCT('u', a.id, 'v', b.e)", "STRUCT<u BIGINT, v DECIMAL(12, 3)>"),
        ("MAP(a.name, b.id, b.name, 1)", "MAP<STRING, BIGINT>"),
        ("MAP[a.name, b.id]", "MAP<STRING, BIGINT>"),
        ("MAP_ENTRIES(MAP(a.name, b.id))", "ARRAY<STRUCT<key STRING, value BIGINT>>"),
        ("MAP_FROM_ENTRIES(ARRAY(STRUCT(a.id, b.name)))", "MAP<BIGINT, STRING>"),
        ("ARRAY(STRUCT(a.id AS i), STRUCT(b.id AS i))", "ARRAY<STRUCT<i BIGINT>>"),
        ("TRANSFORM(a.tags, x -> x || b.name)", "ARRAY<STRING>"),
        ("TRANSFORM(a.tags, (x, i) -> STRUCT(x AS t, i + b.id AS n))", "ARRAY<STRUCT<t STRING, n BIGINT>>"),
        ("TRANSFORM_VALUES(MAP(a.name, b.id), (k, v) -> k)", "MAP<STRING, STRING>"),
        ("TRANSFORM_KEYS(MAP(a.name, b.id), (k, v) -> v)", "MAP<BIGINT, BIGINT>"),
        ("ZIP_WITH(a.tags, ARRAY(b.id), (x, y) -> y)", "ARRAY<BIGINT>"),
        ("AGGREGATE(a.tags, b.id, (total, x) -> total + LENGTH(x))", "BIGINT"),
        ("AGGREGATE(a.tags, b.id, (total, x) -> total + 1, total -> CAST(total AS STRING))", "STRING"),
        ("FROM_JSON(a.name || b.name, 'p INT, q ARRAY<STRING>')", "STRUCT<p INT, q ARRAY<STRING>>"),
        ("FROM_JSON(a.name || b.name, 'MAP<STRING, DECIMAL>')", "MAP<STRING, DECIMAL(10, 0)>"),
        ("SEQUENCE(a.id, b.id)", "ARRAY<BIGINT>"),
        ("ZEROIFNULL(b.id + a.id)", "BIGINT"),
        ("TRY_ADD(a.id, b.id)", "BIGINT"),
        ("DECODE(b.id, 1, a.name, 2, b.name, 'none')", "STRING"),
    ],
)
def test_the_types_of_what_is_made_of_several_values(item: str, kind: str) -> None:
    """They are found before the query runs, so that the store has a column for it."""
    assert [str(column.type) for column in job(f"SELECT {item} AS x {JOINED}").columns] == [kind]


def test_decimals_have_the_types_of_spark() -> None:
    found = finish(f"SELECT a.d / b.e AS q, ROUND(a.d * b.e, 1) AS r, ROUND(a.d / 3, 2) AS s, a.d % 7 AS t {JOINED}")
    kinds = [str(kind) for _, kind in found.view.columns[:4]]
    assert kinds == ["DECIMAL(26, 15)", "DECIMAL(20, 1)", "DECIMAL(11, 2)", "DECIMAL(3, 2)"]


def test_keys_that_are_computed_of_a_join() -> None:
    """Below the groups they are a column of their own: asked once for each row, and groups are told by it."""
    found = finish(f"SELECT UPPER(a.name || b.name) AS u, COUNT(DISTINCT INITCAP(a.name || b.name)) AS n {JOINED} "
                   "GROUP BY UPPER(a.name || b.name)")  # fmt: skip
    below, view = found.stages
    assert [each.name in below.text for each in found.asked] == [True, True]
    assert not any(each.name in view.text for each in found.asked)
    assert view.keys == ("u",)


def test_over_a_view_only_touched_rows_are_asked_for() -> None:
    """The rows of a view are not kept a second time: reading them must not ask for all of them."""
    flat = "CREATE MATERIALIZED VIEW flat AS SELECT id, name FROM a;"
    found = finish("SELECT id, UPPER(name) AS u FROM flat WHERE SOUNDEX(name) = 'A500'", flat)
    assert [each.text for each in found.asked] == ["upper(`a0`)", "soundex(`a0`)"]
    assert not any("__spark_" in (rows.read or "") for rows in found.rows)
    grouped = finish("SELECT SOUNDEX(name) AS s, COUNT(*) AS n FROM flat GROUP BY SOUNDEX(name)", flat)
    assert [stage.keys for stage in grouped.stages][-1] == ("s",)
    assert not any("__spark_" in (rows.read or "") for rows in grouped.rows)


def test_explain_tells_what_is_asked() -> None:
    text = plan_text(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS SELECT UPPER(a.name || b.name) AS u {JOINED}"))
    assert "; asked of Spark: upper(a.name || b.name)" in text
    assert "note        the view store asks Spark" in text
    plain = plan_text(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS SELECT a.name || b.name AS u {JOINED}"))
    assert "asks Spark" not in plain


def test_another_expression_is_another_state() -> None:
    one, other = (job(f"SELECT {name}(a.name || b.name) AS u {JOINED}") for name in ("UPPER", "LOWER"))
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == job(f"SELECT UPPER(a.name || b.name) AS u {JOINED}").fingerprint


@pytest.mark.parametrize(
    ("item", "word"),
    [
        ("UUID()", "bound both event times"),
        ("RAND() * a.id", "bound both event times"),
        ("ARRAYS_ZIP(a.tags, SPLIT(b.name, ','))", "CAST it to the type that it has"),
    ],
)
def test_what_stays_refused(item: str, word: str) -> None:
    """What differs from time to time, and what has a type that nobody knows before it runs, or that nobody keeps."""
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS SELECT a.id, {item} AS x {JOINED}").error
    assert error is not None
    assert error.condition == "UPDATING_JOIN"
    assert word in str(error.hint)


def test_a_group_key_is_asked_as_a_whole() -> None:
    """Above a GROUP BY there are no columns but its keys."""
    found = finish("SELECT LOWER(k || 'x') AS l, MAX(n) AS n FROM (SELECT name || CAST(id AS STRING) AS k, COUNT(*) AS n "
                   "FROM a GROUP BY name || CAST(id AS STRING)) GROUP BY k")  # fmt: skip
    assert [each.arguments for each in found.asked] == [(STRING,)]
    counted = finish(f"SELECT SQRT(a.id + b.id) AS r, COUNT(DISTINCT b.name) AS n {JOINED} GROUP BY a.id + b.id")
    assert [(each.text, each.arguments) for each in counted.asked] == [("sqrt(`a0`)", (BIGINT,))]
    assert SqlType("DOUBLE") in [each.type for each in counted.asked]
