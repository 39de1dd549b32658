"""Windows of rows that change, and sessions before they close, are answered by the view store (D20, G8, G16)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.relation import Mode
from tests.unit.plan.analysis import last, planned

STREAMS = """
CREATE STREAM c (id BIGINT, k BIGINT, ts TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM l (id BIGINT, k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
"""
SESSION = "SESSION(TABLE l PARTITION BY id, DESCRIPTOR(ts), INTERVAL '10' SECOND)"


@pytest.mark.parametrize(
    "query",
    [
        (
            "SELECT window_start, k, COUNT(*) AS n FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
            "GROUP BY window_start, window_end, k"
        ),
        (
            "SELECT window_end, SUM(id) AS n FROM HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND) "
            "GROUP BY window_start, window_end"
        ),
        (
            "SELECT window_end, SUM(id) AS n FROM CUMULATE(TABLE c, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND) "
            "GROUP BY window_start, window_end"
        ),
        "SELECT k, TUMBLE_END(ts, INTERVAL '10' SECOND) AS e, COUNT(*) AS n FROM c GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)",
        "SELECT k, SESSION_START(ts, INTERVAL '10' SECOND), COUNT(*) AS n FROM c GROUP BY k, SESSION(ts, INTERVAL '10' SECOND)",
        f"SELECT k, window_start, COUNT(*) AS n FROM {SESSION} GROUP BY k, window_start, window_end EMIT CHANGES",
        f"SELECT MAX(n) AS m FROM (SELECT id, COUNT(*) AS n FROM {SESSION} GROUP BY id, window_start, window_end) EMIT CHANGES",
        f"SELECT id, window_start FROM {SESSION} EMIT CHANGES",
        "SELECT k, COUNT(*) AS n FROM c GROUP BY k, SESSION(PROCTIME(), INTERVAL '10' SECOND)",
        (
            "SELECT k, SESSION_START(PROCTIME(), INTERVAL '10' SECOND) AS s, SESSION_END(PROCTIME(), INTERVAL '10' SECOND) AS e, "
            "SUM(id) AS n FROM c GROUP BY k, SESSION(PROCTIME(), INTERVAL '10' SECOND)"
        ),
    ],
)
def test_the_store_answers(query: str) -> None:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.finish is not None
    assert not job.uses_event_time
    assert all(stage.keys for stage in job.finish.stages[:-1])


def test_each_of_the_windows_of_a_row_is_one_reading() -> None:
    query = "SELECT id, window_end FROM HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND)"
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.finish is not None
    assert len(job.finish.rows) == 1
    assert [len(stage.leaves) for stage in job.finish.stages] == [3]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (f"SELECT id, window_start, COUNT(*) AS n FROM {SESSION} GROUP BY id, window_start, window_end EMIT CHANGES", "windows"),
        (f"SELECT k, window_start, COUNT(*) AS n FROM {SESSION} GROUP BY k, window_start, window_end", "append"),
        ("SELECT k, COUNT(*) AS n FROM l GROUP BY k, SESSION(ts, INTERVAL '10' SECOND)", "append"),
    ],
)  # fmt: skip
def test_others_stay_where_they_were(query: str, kind: str) -> None:
    assert plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}")).kind == kind


@pytest.mark.parametrize("view", ["SELECT k, id FROM l", "SELECT k, MAX(id) AS id FROM l GROUP BY k"])
def test_sessions_of_the_clock_stand_over_views(view: str) -> None:
    query = "SELECT k, COUNT(*) AS n FROM below GROUP BY k, SESSION(PROCTIME(), INTERVAL '10' SECOND)"
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW below AS {view}; CREATE MATERIALIZED VIEW v AS {query}")
    assert plan_job(plan).kind in ("finish", "windows")


LATEST = "(SELECT id, MAX(ts) AS ts FROM l GROUP BY id)"


@pytest.mark.parametrize("below", ["c", "latest", f"{LATEST} AS x"])
def test_windows_of_rows_that_change_are_never_final(below: str) -> None:
    """Of a source, of a view and of a query: refused for the same reason, which says what to write instead."""
    view = f"CREATE MATERIALIZED VIEW latest AS {LATEST[1:-1]};"
    query = f"SELECT COUNT(*) AS n FROM {below} GROUP BY TUMBLE(ts, INTERVAL '10' SECOND) EMIT FINAL"
    error = last(f"{STREAMS} {view} CREATE MATERIALIZED VIEW v AS {query}").error
    assert error is not None
    assert error.condition == "UNSUPPORTED_CLAUSE"
    assert "over rows that change never does" in error.message
    assert "EMIT CHANGES" in str(error.hint)
    assert error.span is not None


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM {LATEST} AS x GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)",
        f"WITH x AS {LATEST} SELECT COUNT(*) AS n FROM x GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
        f"SELECT id, COUNT(*) AS n FROM {LATEST} AS x GROUP BY id, SESSION(ts, INTERVAL '10' SECOND)",
        (
            "SELECT x.id, window_end FROM TUMBLE(TABLE (SELECT k AS id, MIN(ts) AS at FROM l GROUP BY k), DESCRIPTOR(at), "
            "INTERVAL '10' SECOND) AS x"
        ),
    ],
)
def test_windows_over_groups_of_a_query_show_each_change(query: str, emit: str) -> None:
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}{emit}")
    assert plan.mode is not Mode.APPEND
    assert plan_job(plan).kind == "finish"


def test_a_time_that_is_no_time_stays_refused() -> None:
    query = "SELECT COUNT(*) AS n FROM (SELECT id, MAX(k) AS at FROM l GROUP BY id) AS x GROUP BY TUMBLE(at, INTERVAL '1' SECOND)"
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}").error
    assert error is not None
    assert error.condition == "MISSING_EVENT_TIME"


def test_every_version_is_kept_where_an_earlier_one_is_asked_for() -> None:
    rates = """CREATE STREAM rates (cur STRING, rate BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND,
        PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
        CREATE STREAM o (id BIGINT, cur STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"""
    join = "FROM o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur"
    job = plan_job(planned(f"{rates} CREATE MATERIALIZED VIEW v AS SELECT o.id, r.rate {join}"))
    assert job.finish is not None
    assert [rows.changed_by for rows in job.finish.rows] == [(), ("cur", "ts")]
    both = f"SELECT o.id, r.rate, x.rate AS last {join} JOIN rates AS x ON x.cur = o.cur"
    assert last(f"{rates} CREATE MATERIALIZED VIEW v AS {both}").error is not None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT l.id, RAND() AS t FROM l LEFT JOIN c ON l.id = c.id", "RAND differs"),
        (
            "SELECT l.id, x FROM l LEFT JOIN c ON c.id = l.id LATERAL VIEW variant_explode(PARSE_JSON(CAST(l.k AS STRING))) y AS p, k, x",
            "write UNNEST",
        ),
    ],
)
def test_what_stands_in_the_way_is_told(query: str, words: str) -> None:
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}").error
    assert error is not None
    assert words in f"{error.message}; {error.hint}"
