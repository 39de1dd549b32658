"""What Spark may compute below an outer join: only what is NULL for the rows that the join makes up (G9)."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.null_rows import made_up
from tests.unit.plan.analysis import planned

STREAMS = "CREATE STREAM a (id BIGINT, name STRING); CREATE STREAM b (aid BIGINT, name STRING, price BIGINT);"


@pytest.mark.parametrize(
    ("joins", "found"),
    [
        ("JOIN b ON TRUE", set()),
        ("LEFT JOIN b ON TRUE", {"b"}),
        ("LEFT JOIN b ON TRUE JOIN c ON TRUE", {"b"}),
        ("JOIN b ON TRUE RIGHT JOIN c ON TRUE", {"a", "b"}),
        ("FULL JOIN b ON TRUE", {"a", "b"}),
        ("LEFT SEMI JOIN b ON TRUE", set()),
    ],
)
def test_relations_with_rows_of_nulls(joins: str, found: set[str]) -> None:
    tree = parse_one(f"SELECT 1 FROM a {joins}", dialect="spark")
    assert isinstance(tree, exp.Select)
    assert made_up(tree) == found


def job_of(query: str) -> JobPlan:
    return plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}"))


def test_what_is_not_null_of_nulls_is_left_to_the_store() -> None:
    job = job_of("SELECT a.id, COALESCE(UPPER(b.name), 'none') AS n FROM a LEFT JOIN b ON a.id = b.aid")
    assert "coalesce" not in job.core
    assert "upper(`b`.`name`)" in job.core
    assert job.finish is not None
    assert "COALESCE(" in job.finish.stages[-1].text


def test_a_key_too() -> None:
    job = job_of("SELECT COALESCE(b.name, 'none') AS n, COUNT(*) AS c FROM a LEFT JOIN b ON a.id = b.aid GROUP BY 1")
    assert "coalesce" not in job.core


def test_an_inner_join_makes_up_nothing() -> None:
    job = job_of("SELECT a.id, COALESCE(UPPER(b.name), 'none') AS n, COUNT(DISTINCT b.price) AS c "
                 "FROM a JOIN b ON a.id = b.aid GROUP BY a.id, COALESCE(UPPER(b.name), 'none')")  # fmt: skip
    assert "coalesce(upper(`b`.`name`), 'none')" in job.core
