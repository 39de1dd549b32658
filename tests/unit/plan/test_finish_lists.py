"""Medians and lists in an order over rows that change are the view store's; over others they stay Spark's (G9, G16)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from tests.unit.plan.analysis import planned, refused, spark

STREAMS = """
CREATE STREAM c (id BIGINT, k BIGINT, v BIGINT, s STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM l (k BIGINT, v BIGINT, s STRING);
"""
AGGREGATES = [
    "MEDIAN(v)",
    "PERCENTILE(v, 0.25)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v DESC)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY v)",
    "ARRAY_AGG(s ORDER BY v)",
    "ARRAY_AGG(s ORDER BY v DESC, s) FILTER (WHERE v > 1)",
    "ARRAY_AGG(DISTINCT s ORDER BY s DESC)",
    "STRING_AGG(s, ',' ORDER BY v DESC)",
    "LISTAGG(s, ',') WITHIN GROUP (ORDER BY v)",
    "MODE(v)",
    "APPROX_PERCENTILE(v, 0.5)",
    "APPROX_COUNT_DISTINCT(s)",
    "ANY_VALUE(s)",
    "BIT_OR(v)",
    "FIRST_VALUE(s ORDER BY v)",
    "CORR(v, id)",
]
OF_DIFFERENT = [
    "MEDIAN(DISTINCT v)",
    "MODE(DISTINCT v)",
    "PERCENTILE(DISTINCT v, 0.25)",
    "PERCENTILE(v, ARRAY(0.1, 0.9))",
    "APPROX_PERCENTILE(v, ARRAY(0.1, 0.9))",
    "STRING_AGG(v, ',')",
    "STRING_AGG(DISTINCT v, ',' ORDER BY v DESC)",
]


@pytest.mark.parametrize("aggregate", AGGREGATES + OF_DIFFERENT)
def test_the_store_answers_over_rows_that_change(aggregate: str) -> None:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS SELECT k, {aggregate} AS a FROM c GROUP BY k"))
    assert job.kind == "finish"
    assert job.finish is not None
    assert job.finish.keys == ("k",)


@pytest.mark.parametrize("aggregate", [each for each in AGGREGATES if "id" not in each])
def test_spark_answers_over_rows_that_do_not(aggregate: str) -> None:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS SELECT k, {aggregate} AS a FROM l GROUP BY k"))
    assert job.kind == "update"


@pytest.mark.parametrize("value", ["CAST(v AS TIMESTAMP)", "s"])
def test_percentiles_are_those_of_numbers(value: str) -> None:
    query = f"SELECT k, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {value}) AS a FROM c GROUP BY k"
    assert refused(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}") == "TYPE_MISMATCH"


def test_several_shares_give_an_array() -> None:
    plan = planned(
        f"{STREAMS} CREATE MATERIALIZED VIEW m AS SELECT k, PERCENTILE(v, ARRAY(0.1, 0.9)) AS a FROM c GROUP BY k"
    )
    assert str(plan.columns[1].type) == "ARRAY<DOUBLE>"


def test_orders_of_two_directions_are_compared_one_by_one() -> None:
    text = spark(f"{STREAMS} SELECT k, ARRAY_AGG(s ORDER BY v DESC NULLS FIRST, s) AS a FROM l GROUP BY k")
    assert "ARRAY_SORT(COLLECT_LIST(IF(`L`.`S` IS NULL, NULL, NAMED_STRUCT('k0df'" in text.upper().replace(
        "K0DF", "k0df"
    )
    assert "l.k0df IS NULL THEN -1" in text
    assert "l.k0df < r.k0df THEN 1" in text


def test_rows_of_a_subquery_are_all_there() -> None:
    """ARRAY_AGG leaves NULLs out, ARRAY(SELECT …) does not."""
    aggregate = "SELECT k, ARRAY_AGG(s ORDER BY v) AS a, MEDIAN(v) AS m FROM c GROUP BY k"
    rows = "SELECT c.k, ARRAY(SELECT l.s FROM l WHERE l.k = c.k ORDER BY l.v) AS a FROM c"
    texts = []
    for query in (aggregate, rows):
        finish = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS {query}")).finish
        assert finish is not None
        texts.append(finish.view.text)
    assert ["x IS NOT NULL" in text for text in texts] == [True, False]


@pytest.mark.parametrize(
    "aggregate",
    ["STRING_AGG(DISTINCT s, '|' ORDER BY s DESC)", "LISTAGG(DISTINCT s, '|') WITHIN GROUP (ORDER BY s DESC, v)"],
)
def test_texts_that_differ_keep_their_delimiter(aggregate: str) -> None:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW m AS SELECT k, {aggregate} AS a FROM c GROUP BY k"))
    assert job.finish is not None
    text = job.finish.view.text
    assert "string_agg(DISTINCT " in text
    assert ", '|' ORDER BY " in text
    assert '"v"' not in text


def test_texts_that_differ_go_by_themselves() -> None:
    query = "CREATE MATERIALIZED VIEW m AS SELECT k, STRING_AGG(DISTINCT s, '|' ORDER BY v) AS a FROM c GROUP BY k"
    assert refused(f"{STREAMS} {query}") == "INVALID_ARGUMENT"


def test_distinct_goes_by_the_value() -> None:
    query = "SELECT k, ARRAY_AGG(DISTINCT s ORDER BY v) AS a FROM l GROUP BY k"
    assert refused(f"{STREAMS} {query}") == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("aggregate", "written"),
    [
        ("FIRST_VALUE(s ORDER BY v)", "min_by(`l`.`s`, `l`.`v`)"),
        ("LAST_VALUE(s ORDER BY v, k)", "max_by(`l`.`s`, struct(`l`.`v`, `l`.`k`))"),
        ("LAST_VALUE(s ORDER BY v DESC)", "min_by(`l`.`s`, `l`.`v`)"),
        ("SUM(v ORDER BY s)", "sum(`l`.`v`)"),
        ("COLLECT_LIST(s ORDER BY v)", "named_struct('k0', `l`.`v`, 'v', `l`.`s`)"),
    ],
)
def test_an_order_inside_an_aggregate(aggregate: str, written: str) -> None:
    """Spark has none: it is written otherwise, or left out where it changes nothing."""
    text = spark(f"{STREAMS} SELECT k, {aggregate} AS a FROM l GROUP BY k")
    assert written in text
    assert "ORDER BY" not in text


def test_an_order_of_two_directions_is_no_place() -> None:
    query = "SELECT k, FIRST_VALUE(s ORDER BY v, k DESC) AS a FROM l GROUP BY k"
    assert refused(f"{STREAMS} {query}") == "INVALID_ARGUMENT"
