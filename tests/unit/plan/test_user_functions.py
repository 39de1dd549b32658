"""Calls of the user's functions: arguments of the declared types, aggregates over collected rows, what is refused."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_json, plan_text
from penstock.plan.job_plan import plan_job
from penstock.plan.spark_text import spark_sql
from penstock.plan.store_text import store_sql
from tests.unit.plan.analysis import last, planned

FUNCTIONS = """
CREATE FUNCTION score(p DOUBLE, s STRING) RETURNS DOUBLE AS 'shop.score';
CREATE FUNCTION anything RETURNS STRING AS 'shop.anything';
CREATE AGGREGATE middle(p DOUBLE) RETURNS DOUBLE AS 'shop.middle';
CREATE AGGREGATE centre(p DOUBLE) RETURNS DOUBLE WITH (merge = true) AS 'shop.Mean';
CREATE AGGREGATE when_fine(p DOUBLE) RETURNS DOUBLE WITH (merge = true, on_error = 'null') AS 'shop.Mean';
CREATE AGGREGATE several(p DOUBLE) RETURNS ARRAY<DOUBLE> WITH (merge = true) AS 'shop.Several';
CREATE MATERIALIZED VIEW counts AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;
"""


def text(sql: str) -> str:
    return " ".join(spark_sql(planned(FUNCTIONS + sql).spark, pretty=False).split())


def test_arguments_have_the_declared_types() -> None:
    """Q4: a number of another type is cast, text is not taken for a number."""
    found = text("SELECT score(1, symbol) AS s, anything(1, 'a', price) AS a FROM trades")
    assert "score(CAST(1 AS DOUBLE), `trades`.`symbol`)" in found
    assert "anything(1, 'a', `trades`.`price`)" in found
    assert (
        planned(FUNCTIONS + "SELECT score(1, 'a') AS s").columns[0].type == planned("SELECT 1e0 AS d").columns[0].type
    )


def test_aggregates_are_collected() -> None:
    """Q7: Spark has no Python aggregates on streams; FILTER keeps rows out before they are collected."""
    found = text("SELECT symbol, middle(price) FILTER (WHERE price > 1) AS m FROM trades GROUP BY symbol")
    assert "middle(collect_list(named_struct('a0', `trades`.`price`)) FILTER(WHERE" in found
    job = plan_job(planned(FUNCTIONS + "SELECT symbol, middle(price) AS m FROM trades GROUP BY symbol"))
    assert (job.kind, job.functions) == ("update", ("middle",))  # the view store cannot merge it
    assert "middle" in job.state


def test_aggregates_in_parts_are_merged() -> None:
    """Q7: a batch is reduced to partial results in Spark's workers, and the view store merges and finishes them."""
    query = """
        SELECT symbol, 2 * centre(price) FILTER (WHERE price > 1) AS m, COUNT(*) AS n FROM trades GROUP BY symbol
        HAVING centre(price) < 5
    """
    job = plan_job(planned(FUNCTIONS + query))
    assert (job.kind, job.functions) == ("merge", ("centre",))
    assert job.batch is not None
    assert "__partial_centre(collect_list(`__a0`)) AS `__p0`" in " ".join(job.batch.split())
    assert "IF(`trades`.`price` > 1, named_struct('a0', `trades`.`price`), NULL)" in " ".join(job.core.split()).replace(
        "if(", "IF("
    )
    assert job.merge is not None
    assert [(part.how, part.function) for part in job.merge.partials] == [
        ("function", "centre"), ("count", None), ("function", "centre"),
    ]  # fmt: skip
    assert '"__finish_centre"("__p0")' in job.merge.columns[1].expression
    assert job.merge.keep is not None
    assert '"__finish_centre"("__p2")' in job.merge.keep


@pytest.mark.parametrize(
    "call", ["middle(price)", "when_fine(price)", "several(price)", "centre(price), median(price)"]
)
def test_what_does_not_merge_is_collected(call: str) -> None:
    job = plan_job(planned(FUNCTIONS + f"SELECT symbol, {call} FROM trades GROUP BY symbol"))
    assert job.kind == "update"
    assert "__partial_" not in job.core


def test_windows_collect_values_of_aggregates_in_parts() -> None:
    for window in ("TUMBLE(ts, INTERVAL '1' HOUR)", "HOP(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)"):
        job = plan_job(planned(FUNCTIONS + f"SELECT symbol, centre(price) AS m FROM trades GROUP BY symbol, {window}"))
        assert job.kind == "append"
        assert "centre(collect_list(" in job.core


def test_explain_tells_of_them() -> None:
    found = planned(FUNCTIONS + "SELECT score(price, symbol) AS s FROM trades")
    assert "functions   in Python: score" in plan_text(found)
    assert plan_json(found)["functions"] == ["score"]


def test_the_view_store_does_not_answer_them() -> None:
    assert store_sql(planned(FUNCTIONS + "SELECT n FROM counts"), {}) is not None
    assert store_sql(planned(FUNCTIONS + "SELECT score(n, symbol) AS s FROM counts"), {}) is None


@pytest.mark.parametrize(
    ("sql", "condition", "told"),
    [
        ("SELECT score(price) FROM trades", "INVALID_ARGUMENT", "takes 2 arguments, not 1"),
        ("SELECT score(symbol, symbol) FROM trades", "TYPE_MISMATCH", "argument 1 of function score is DOUBLE"),
        ("SELECT anything() FROM trades", "INVALID_ARGUMENT", "called without arguments"),
        ("SELECT middle(DISTINCT price) FROM trades GROUP BY symbol", "INVALID_ARGUMENT", "called with DISTINCT"),
        ("SELECT anything(*) FROM trades", "INVALID_ARGUMENT", "called with *"),
        ("SELECT symbol FROM trades WHERE middle(price) > 1", "MISPLACED_AGGREGATE", "middle cannot stand here"),
        ("SELECT SUM(middle(price)) FROM trades", "MISPLACED_AGGREGATE", "inside another aggregate"),
        ("SELECT middle(n) OVER () FROM counts", "CLAUSE_NOT_YET", "function middle with OVER"),
        ("SELECT other(price) FROM trades", "UNKNOWN_FUNCTION", "there is no function other"),
    ],
)
def test_refused(sql: str, condition: str, told: str) -> None:
    error = last(FUNCTIONS + sql).error
    assert error is not None
    assert error.condition == condition
    assert told in error.message
    assert error.span is not None


def test_computed_columns_depend_on_their_functions() -> None:
    """Q2: a function that a stream is made with cannot go away under it."""
    stream = "CREATE STREAM tagged (v DOUBLE, w AS score(v, 'x'));"
    error = last(FUNCTIONS + stream + "DROP FUNCTION score").error
    assert error is not None
    assert (error.condition, "stream tagged" in error.message) == ("DEPENDENT_OBJECTS", True)
