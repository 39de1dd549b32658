"""One reading of a stream for all the sides that a finish makes of it (G13)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import planned

EVENTS = """
CREATE STREAM events (kind STRING, type INT, code STRING, a STRUCT<id BIGINT, v BIGINT>, b STRUCT<id BIGINT, w BIGINT>,
  ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM latest (id BIGINT, type INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH (changes = 'upsert');
CREATE VIEW orders AS SELECT a.id AS id, a.v AS v FROM events WHERE {one};
CREATE VIEW paid AS SELECT b.id AS id, b.w AS w FROM events WHERE {other};
"""
LEFT_JOIN = "SELECT o.id, o.v, p.w FROM orders AS o LEFT JOIN paid AS p ON o.id = p.id"


def job_of(query: str = LEFT_JOIN, one: str = "type = 1", other: str = "type = 2") -> JobPlan:
    return plan_job(planned(f"{EVENTS.format(one=one, other=other)} CREATE MATERIALIZED VIEW mv AS {query}"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("type = 1", "type = 2"),
        ("type = 1 AND a.v > 0", "2 = type"),
        ("kind = 'order'", "kind = 'paid'"),
        ("type = 1", "type = 2 AND type = 3"),
    ],
)
def test_a_row_of_one_side(one: str, other: str) -> None:
    job = job_of(one=one, other=other)
    assert [scan.relation for scan in job.scans] == ["events"]
    assert "CASE" in job.core
    assert "explode" not in job.core
    assert "UNION" not in job.core
    assert job.how.endswith("; one reading of events for all that is made of it")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("type = 1", "type > 1"),
        ("type = 1", "kind = 'paid'"),
        ("type = 1", "TRUE"),
        ("type = 1.0", "type = 1"),
        ("code = 1", "code = 1.0"),
        ("kind = 'a'", "kind = 'A '"),  # equal under some collations
        ("type = '1'", "type = '01'"),  # equal as numbers
        ("type = 1 OR type = 2", "type = 3"),
    ],
)
def test_a_row_of_several_sides(one: str, other: str) -> None:
    job = job_of(one=one, other=other)
    assert [scan.relation for scan in job.scans] == ["events"]
    assert "explode(array_compact(" in "".join(job.core.split())


@pytest.mark.parametrize(
    "query",
    [
        # rows that replace each other, which the store has to see each by itself
        "SELECT x.id, y.v FROM (SELECT id FROM latest WHERE type = 1) AS x JOIN latest AS y ON x.id = y.id",
        # windows, joins and what is different each time are not rows of their own
        (
            "SELECT o.id, p.n FROM orders AS o LEFT JOIN (SELECT id, COUNT(*) AS n, TUMBLE_START(ts, INTERVAL '1' DAY) AS s "
            "FROM (SELECT b.id AS id, ts FROM events) GROUP BY id, TUMBLE(ts, INTERVAL '1' DAY)) AS p ON o.id = p.id"
        ),
    ],
)
def test_what_is_read_as_before(query: str) -> None:
    assert "one reading" not in job_of(query).how


def test_others_stay_beside() -> None:
    query = f"SELECT x.*, l.v AS more FROM ({LEFT_JOIN}) AS x LEFT JOIN latest AS l ON x.id = l.id"
    job = job_of(query)
    assert sorted(scan.relation for scan in job.scans) == ["events", "latest"]
    assert job.core.count("UNION ALL") == 1


def test_something_computed_once_is_not_computed_for_each_use() -> None:
    twice = "SELECT x.v, x.v + 1 AS n, p.w FROM (SELECT id, v * v AS v FROM orders) AS x JOIN paid AS p ON x.id = p.id"
    job = job_of(f"SELECT y.v, y.n, y.w FROM ({twice}) AS y")
    assert job.core.count(" * ") == 1


JOINED = """
SELECT o.id, o.n, p.n AS paid
FROM (SELECT a.id AS id, window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE {one}, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
  GROUP BY a.id, window_start, window_end) AS o
JOIN (SELECT b.id AS id, window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE {other}, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
  GROUP BY b.id, window_start, window_end) AS p
ON o.id = p.id AND o.window_start = p.window_start AND o.window_end = p.window_end
"""
KINDS = """
CREATE VIEW first AS SELECT a, ts FROM events WHERE type = 1;
CREATE VIEW second AS SELECT b, ts FROM events WHERE type = 2;
CREATE VIEW any AS SELECT b, ts FROM events;
"""


def test_windows_that_are_joined_when_they_close() -> None:
    joined = JOINED.format(one="first", other="second")
    script = f"{EVENTS.format(one='TRUE', other='TRUE')} {KINDS} CREATE MATERIALIZED VIEW mv AS {joined}"
    job = plan_job(planned(script))
    assert [scan.view for scan in job.scans] == ["__scan_0"]
    assert job.scans[0].columns == ("type", "a", "b", "ts")
    assert job.late is not None
    assert "__scan_1" not in job.core + job.late
    assert job.late.count("__scan_0") == 2, "what is late is looked for on both sides"


def test_a_late_row_of_two_sides_is_late_on_both() -> None:
    joined = JOINED.format(one="first", other="any")
    script = f"{EVENTS.format(one='TRUE', other='TRUE')} {KINDS} CREATE MATERIALIZED VIEW mv AS {joined}"
    assert [scan.view for scan in plan_job(planned(script)).scans] == ["__scan_0", "__scan_1"]
