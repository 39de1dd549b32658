"""Aggregates that do not merge: what is kept of them, and what the view store makes of that."""

from __future__ import annotations

import math
import random

import duckdb
import pytest

from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import planned

CLOCK = "CREATE STREAM c (k STRING, v INT, at AS PROCTIME(), ts TIMESTAMP, WATERMARK FOR ts AS ts);"
WINDOWS = {
    "panes": "FROM c GROUP BY k, TUMBLE(at, INTERVAL '1' MINUTE)",
    "windows": "FROM c GROUP BY k, SESSION(ts, INTERVAL '1' MINUTE) EMIT CHANGES",
}


def job_of(aggregate: str, kind: str) -> JobPlan:
    return plan_job(planned(f"{CLOCK} CREATE MATERIALIZED VIEW mv AS SELECT k, {aggregate} AS x {WINDOWS[kind]}"))


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize(
    ("aggregate", "how"),
    [
        ("COUNT(DISTINCT v)", "set"),
        ("COUNT(DISTINCT v) FILTER (WHERE v > 2)", "set"),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY v)", "list"),
        ("PERCENTILE(v, 0.25)", "list"),
        ("MEDIAN(v)", "list"),
        ("STDDEV(v)", "list"),
        ("COLLECT_SET(v)", "set"),
        ("SUM(v)", "sum"),
    ],
)
def test_values_are_kept_where_nothing_smaller_will_do(aggregate: str, how: str, kind: str) -> None:
    job = job_of(aggregate, kind)
    assert job.kind == kind
    assert job.merge is not None
    assert [part.how for part in job.merge.partials] == [how]


def test_event_time_windows_leave_it_to_spark() -> None:
    for emit, kind in (("", "append"), (" EMIT CHANGES", "update")):
        query = f"SELECT k, COUNT(DISTINCT v) AS n FROM c GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE){emit}"
        assert plan_job(planned(f"{CLOCK} CREATE MATERIALIZED VIEW mv AS {query}")).kind == kind


def test_what_is_not_made_of_single_values_is_answered_over_all_rows() -> None:
    assert job_of("MAX_BY(k, v)", "panes").kind == "finish"
    assert job_of("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY v DESC)", "panes").kind == "finish"


@pytest.mark.parametrize("share", ["0", "0.1", "0.37", "0.5", "0.9", "1"])
def test_a_percentile_is_weighed_as_spark_does(share: str) -> None:
    job = job_of(f"PERCENTILE(v, {share})", "panes")
    assert job.merge is not None
    text = job.merge.columns[1].expression
    source = random.Random(1)  # noqa: S311
    with duckdb.connect() as database:
        for size in range(8):
            values = [source.randrange(-9, 9) for _ in range(size)]
            found = database.execute(f'SELECT {text} FROM (SELECT CAST(? AS INTEGER[]) AS "__p0")', [values]).fetchall()
            assert found == [(percentile(sorted(values), float(share)),)]


def percentile(values: list[int], share: float) -> float | None:
    """What stands in Spark's own source."""
    if not values:
        return None
    place = share * (len(values) - 1)
    low, high = math.floor(place), math.ceil(place)
    if values[low] == values[high]:
        return float(values[low])
    return (high - place) * values[low] + (place - low) * values[high]
