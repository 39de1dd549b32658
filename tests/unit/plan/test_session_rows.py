"""Sessions whose rows are not grouped by the keys of PARTITION BY alone: given when a session has closed (D7)."""

from __future__ import annotations

import pytest

from penstock.errors import NotYetError
from penstock.plan.explain import plan_text
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.relation import Mode
from tests.unit.plan.analysis import labels, planned

SESSIONS = "SESSION(TABLE trades PARTITION BY symbol, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
SUMS = f"SELECT symbol, window_start, window_end, SUM(volume) AS n FROM {SESSIONS} GROUP BY symbol, window_start, window_end"


def view(query: str) -> str:
    return f"CREATE MATERIALIZED VIEW mv AS {query}"


def job_of(query: str) -> JobPlan:
    return plan_job(planned(view(query)))


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * FROM {SESSIONS}",
        f"SELECT volume, window_start, COUNT(*) AS n FROM {SESSIONS} GROUP BY volume, window_start, window_end",
        f"SELECT symbol, volume, COUNT(*) AS n FROM {SESSIONS} GROUP BY symbol, volume, window_start",
        f"SELECT symbol, COUNT(*) AS n FROM {SESSIONS} GROUP BY ROLLUP (symbol), window_start, window_end",
        f"SELECT symbol, COUNT(*) AS n FROM {SESSIONS} WHERE volume > 3 GROUP BY symbol, window_start, window_end",
        f"SELECT price, RANK() OVER (PARTITION BY symbol, window_start ORDER BY price) AS place FROM {SESSIONS}",
        f"SELECT DISTINCT volume, window_start, window_end FROM {SESSIONS}",
    ],
)
def test_rows_come_when_their_session_closes(query: str) -> None:
    job = job_of(query)
    assert job.kind == "append"
    assert job.spread_us == 60_000_000
    assert job.late is not None
    plan = planned(view(query))
    assert plan.mode is Mode.APPEND
    assert labels(plan).count("SessionRows") == 1
    assert "SessionRows: the rows of each open session; dropped when the watermark passes" in plan_text(plan)


def test_of_the_rows_only_what_is_read_is_kept() -> None:
    """Below another GROUP BY the sessions are a step of their own: Spark would find others by their column."""
    grouped = "SELECT {} window_start, COUNT(*) AS n FROM {} GROUP BY {} window_start, window_end"
    for keys, kept in (("volume,", "named_struct('volume', `__assigned`.`volume`)"), ("", "named_struct('__row', 1)")):
        job = job_of(grouped.format(keys, SESSIONS, keys))
        assert [step.sessions for step in job.steps] == ["__window"]
        assert kept in job.steps[0].sql
        assert "price" not in job.steps[0].sql
        assert "session_window" not in job.core
    assert job_of(SUMS).steps == ()
    assert job_of(f"SELECT * FROM {SESSIONS}").steps == ()


def test_sessions_that_are_grouped_by_their_keys_are_as_before() -> None:
    for query in (
        SUMS,
        f"SELECT symbol, COUNT(*) AS n FROM {SESSIONS} WHERE symbol > 'B' GROUP BY symbol, window_start",
    ):
        assert "SessionRows" not in labels(planned(view(query)))
        assert "collect_list" not in job_of(query).core


def test_one_bound_does_not_tell_sessions_of_several_keys_apart() -> None:
    """Their groups have no end that is known: they change as sessions close."""
    for query in (
        f"SELECT volume, window_start, COUNT(*) AS n FROM {SESSIONS} GROUP BY volume, window_start",
        f"SELECT window_start, SUM(n) AS n FROM ({SUMS}) GROUP BY window_start",
    ):
        job = job_of(query)
        assert job.kind == "merge"
        assert job.uses_event_time
    ranked = f"SELECT price, RANK() OVER (PARTITION BY window_start ORDER BY price) AS place FROM {SESSIONS}"
    assert job_of(ranked).kind == "finish"
    assert job_of(f"SELECT window_start, SUM(n) AS n FROM ({SUMS}) GROUP BY window_start, window_end").kind == "append"


def test_what_is_not_there_yet_says_what_to_write() -> None:
    clock = "CREATE STREAM c (k STRING, v INT, at AS PROCTIME());"
    sessions = "SESSION(TABLE c PARTITION BY k, DESCRIPTOR(at), INTERVAL '1' MINUTE)"
    filtered = f"SELECT k, COUNT(*) AS n FROM {sessions} WHERE v > 1 GROUP BY k, window_start"
    for query in (
        f"SELECT * FROM {sessions}",
        filtered,
        f"SELECT * FROM {sessions} EMIT FINAL",
        f"{filtered} EMIT FINAL",
    ):
        assert plan_job(planned(clock + view(query))).kind == "finish"
    with pytest.raises(NotYetError, match="grouping sets over session windows"):
        job_of("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY SESSION(ts, INTERVAL '1' MINUTE), ROLLUP (symbol)")
