"""Computed columns as the frame of their source reads them: by bare names, also inside other values."""

from __future__ import annotations

import pytest

from penstock.catalog.model import SourceDefinition
from penstock.plan.computed import bind_computed
from penstock.plan.job_plan import plan_job
from penstock.plan.script import analyze_script
from penstock.plan.spark_text import spark_sql


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("v", "`v`"),
        ("v * 2 + 1", "`v` * 2 + 1"),
        ("UPPER(k)", "upper(`k`)"),
        ("p.a", "`p`.`a`"),
        ("TRANSFORM(l, x -> x + v)", "transform(`l`, `x` -> x + `v`)"),
    ],
)
def test_columns_have_no_qualifier(column: str, expected: str) -> None:
    sql = f"CREATE STREAM c (v BIGINT, k STRING, p STRUCT<a INT>, l ARRAY<BIGINT>, w AS {column})"
    analysis = analyze_script(sql)[0].analysis
    assert analysis is not None
    definition = analysis.definition
    assert isinstance(definition, SourceDefinition)
    computed = definition.columns[-1].computed
    assert computed is not None
    assert spark_sql(bind_computed(definition, computed, analysis.session)[0], pretty=False) == expected


COLUMNS = """
CREATE STREAM t (id BIGINT, q INT, s STRING, ts TIMESTAMP, d DECIMAL(10, 2), st STRUCT<a INT, b TIMESTAMP>,
    c AS q + 1, u AS UPPER(s), {more} PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic');
CREATE STREAM o (id BIGINT, c INT);
"""


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("q + 1", "INT"),
        ("UPPER(s)", "STRING"),
        ("CASE WHEN q = 0 THEN st.b ELSE ts END", "TIMESTAMP"),
        ("COALESCE(q, 0)", "INT"),
        ("st.a", "INT"),
        ("s || 'x'", "STRING"),
        ("HOUR(ts)", "INT"),
        ("JSON_VALUE(s, '$.a')", "STRING"),
        ("d * 2", "DECIMAL(12, 2)"),
        ("q > 1", "BOOLEAN"),
        ("c * 2.0e0", "DOUBLE"),
        ("st", "STRUCT<a INT, b TIMESTAMP>"),
        ("SUBSTRING(s, 1, 2)", "STRING"),
    ],
)
def test_a_column_without_a_declared_type_has_that_of_its_expression(column: str, expected: str) -> None:
    analysis = analyze_script(COLUMNS.format(more=f"x AS {column},"))[0].analysis
    assert analysis is not None
    assert isinstance(analysis.definition, SourceDefinition)
    assert {entry.name: str(entry.type) for entry in analysis.definition.columns}["x"] == expected


def test_a_declared_type_stands() -> None:
    analysis = analyze_script(COLUMNS.format(more="x AS CAST(q AS BIGINT), y AS CAST(q + 1 AS DOUBLE),"))[0].analysis
    assert analysis is not None
    assert isinstance(analysis.definition, SourceDefinition)
    types = {entry.name: str(entry.type) for entry in analysis.definition.columns}
    assert (types["x"], types["y"]) == ("BIGINT", "DOUBLE")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT c FROM t",
        "SELECT u, COUNT(DISTINCT c) AS n FROM t GROUP BY u",
        "SELECT o.id, t.id AS other FROM o LEFT JOIN t ON o.c = t.c",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY u ORDER BY c) AS place FROM t",
        "SELECT id, c, u FROM t ORDER BY id LIMIT 3",
    ],
)
def test_answers_that_change_read_computed_columns(query: str) -> None:
    report = analyze_script(f"{COLUMNS.format(more='')} CREATE MATERIALIZED VIEW v AS {query}")[-1]
    assert report.error is None, report.error
    assert report.plan is not None
    assert plan_job(report.plan).kind == "finish"
