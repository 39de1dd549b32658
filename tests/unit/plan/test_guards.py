"""What may fail for a row is computed below the cut only where the query computes it (G13)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import planned

STREAMS = """
CREATE STREAM e (kind INT, id INT, k STRING, v INT, txt STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM b (k STRING, w INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
"""
CAST = "CAST(x.txt AS INT)"
CASE = "CASE WHEN `e`.`kind` = 1 THEN CAST(`e`.`txt` AS INT) END AS"


def job_of(query: str) -> JobPlan:
    return plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}"))


def core_of(query: str) -> str:
    return " ".join(job_of(query).core.split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT x.id, CASE WHEN x.kind = 1 THEN {CAST} WHEN x.kind = 3 THEN b.w END AS q FROM e x LEFT JOIN b ON b.k = x.k",
        f"SELECT x.id, IF(x.kind = 1, {CAST}, b.w) AS q FROM e x LEFT JOIN b ON b.k = x.k",
        f"SELECT k, SUM({CAST}) FILTER (WHERE kind = 1) AS s, COUNT(DISTINCT v) AS n FROM e x GROUP BY k",
        f"SELECT k, MAX({CAST}) FILTER (WHERE kind = 1) OVER (PARTITION BY k) AS s FROM e x",
        f"SELECT k, SUM({CAST}) FILTER (WHERE kind = 1) AS s, SUM(v) AS n FROM e x GROUP BY ROLLUP(k)",
        f"SELECT x.id, {CAST} + y.v AS q FROM e x JOIN e y ON x.k = y.k WHERE x.kind = 1",
        f"SELECT x.id, {CAST} + y.v AS q FROM e x JOIN e y ON x.k = y.k AND x.kind = 1",
        f"SELECT x.id, y.v AS q FROM e x JOIN e y ON x.k = y.k WHERE {CAST} > y.v AND x.kind = 1",
    ],
)
def test_conditions_of_the_same_row_go_along(query: str) -> None:
    assert CASE in core_of(query)


@pytest.mark.parametrize(
    ("value", "computed"),
    [
        (
            f"CASE WHEN x.kind = 2 THEN b.w WHEN x.kind = 3 THEN {CAST} ELSE {CAST} + 1 END",
            (
                "CASE WHEN `e`.`kind` = 2 THEN NULL WHEN `e`.`kind` = 3 THEN CAST(`e`.`txt` AS INT) END AS",
                "CASE WHEN `e`.`kind` = 2 THEN NULL WHEN `e`.`kind` = 3 THEN NULL ELSE CAST(`e`.`txt` AS INT)",
            ),
        ),
        (
            f"CASE x.kind WHEN 2 THEN b.w WHEN 3 THEN {CAST} END",
            ("CASE WHEN (`e`.`kind`) = (2) THEN NULL WHEN (`e`.`kind`) = (3) THEN CAST(`e`.`txt` AS INT) END AS",),
        ),
        (f"x.kind = 2 OR {CAST} > b.w", ("CASE WHEN `e`.`kind` = 2 THEN NULL ELSE CAST(`e`.`txt` AS INT) END AS",)),
        (
            f"x.kind = 1 AND {CAST} > b.w",
            ("CASE WHEN NOT (`e`.`kind` = 1) THEN NULL ELSE CAST(`e`.`txt` AS INT) END AS",),
        ),
        (
            f"CASE WHEN x.kind = 1 THEN COALESCE(x.v, {CAST}) + b.w END",
            ("CASE WHEN `e`.`kind` = 1 THEN coalesce(`e`.`v`, CAST(`e`.`txt` AS INT)) END AS",),
        ),
        ("IF(x.kind = 1, UPPER(x.txt), b.k)", ("upper(`e`.`txt`) AS",)),  # never fails
        (f"IF(x.kind = 1, {CAST}, 0)", ("IF(`e`.`kind` = 1, CAST(`e`.`txt` AS INT), 0) AS",)),
    ],
)
def test_what_is_computed_instead(value: str, computed: tuple[str, ...]) -> None:
    core = core_of(f"SELECT x.id, b.w, {value} AS q FROM e x LEFT JOIN b ON b.k = x.k")
    for each in computed:
        assert each in core, core


@pytest.mark.parametrize(
    "value",
    [
        f"CASE WHEN b.w IS NULL THEN 0 ELSE {CAST} END",
        f"CASE WHEN x.kind = 1 AND b.w IS NOT NULL THEN {CAST} + b.w END",
        f"COALESCE(b.w, {CAST})",
        f"b.w > 3 OR {CAST} > b.w",
    ],
)
def test_conditions_of_other_rows_are_left_to_the_store(value: str) -> None:
    """It asks Spark for what only Spark knows, for the rows that it is computed for."""
    job = job_of(f"SELECT x.id, {value} AS q FROM e x LEFT JOIN b ON b.k = x.k")
    assert "CAST" not in job.core
    assert job.finish is not None
    assert [each.words for each in job.finish.asked] == [CAST]


def test_windows_over_a_stream_that_only_a_subquery_names() -> None:
    for query in (
        "SELECT k FROM b WHERE w > (SELECT COUNT(*) FROM TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECOND))",
        "SELECT k FROM b WHERE w IN (SELECT COUNT(*) FROM e GROUP BY TUMBLE(ts, INTERVAL '10' SECOND))",
        "SELECT k, ARRAY(SELECT COUNT(*) FROM e GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)) AS l FROM b",
    ):
        assert sorted(scan.relation for scan in job_of(query).scans) == ["b", "e"]


@pytest.mark.parametrize(
    ("query", "computed"),
    [
        (f"SELECT b.w, {CAST} + 1 AS q FROM b LEFT JOIN e x ON b.k = x.k", "try_add(TRY_CAST(`e`.`txt` AS INT), 1) AS"),
        (
            f"SELECT b.w, x.id, {CAST} AS q FROM e x LEFT JOIN b ON b.k = x.k WHERE x.v > b.w AND x.kind = 1",
            "TRY_CAST(`e`.`txt` AS INT) AS",
        ),
        (
            "SELECT b.w, TO_TIMESTAMP(x.txt) AS q FROM b LEFT JOIN e x ON b.k = x.k",
            "try_to_timestamp(`e`.`txt`) AS",
        ),
    ],
)
def test_of_rows_that_a_join_may_leave_out_spark_tries(query: str, computed: str) -> None:
    """Where that is NULL, and the query gives the row, it is asked for the value itself."""
    job = job_of(query)
    assert computed in core_of(query)
    assert job.finish is not None
    assert len(job.finish.asked) == 1
    assert f'"{job.finish.asked[0].name}"("x"."txt")' in job.finish.view.text


@pytest.mark.parametrize(
    ("query", "computed"),
    [
        (f"SELECT x.id, {CAST} AS q FROM e x LEFT JOIN b ON b.k = x.k", "CAST(`e`.`txt` AS INT) AS"),
        (f"SELECT x.id, b.w, {CAST} AS q FROM e x FULL JOIN b ON b.k = x.k", "CAST(`e`.`txt` AS INT) AS"),
        ("SELECT b.w, UPPER(x.txt) AS q FROM b LEFT JOIN e x ON b.k = x.k", "upper(`e`.`txt`) AS"),
    ],
)
def test_what_is_there_for_each_row_or_cannot_fail_is_computed_as_it_is(query: str, computed: str) -> None:
    job = job_of(query)
    assert computed in core_of(query)
    assert "TRY_CAST" not in core_of(query)
    assert job.finish is not None
    assert not job.finish.asked
