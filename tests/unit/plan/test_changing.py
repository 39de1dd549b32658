"""Windows that show each change: who keeps them, what Spark hands over, what is refused (D7, G5, G6, G7, G18)."""

from __future__ import annotations

import pytest

from penstock.errors import NotYetError
from penstock.plan.explain import plan_text
from penstock.plan.fingerprint import describe_difference
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.relation import Mode
from penstock.plan.windows_plan import WindowsPlan
from tests.unit.plan.analysis import planned

SECOND = 1_000_000
TUMBLE = "TUMBLE(ts, INTERVAL '10' SECOND)"
CUMULATE = "CUMULATE(TABLE trades, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
SESSION = "SESSION(ts, INTERVAL '5' SECOND)"


def job(query: str, state: str | None = None) -> JobPlan:
    return plan_job(planned(f"CREATE MATERIALIZED VIEW v AS {query} EMIT CHANGES;"), state=state)


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


def test_the_store_merges_windows() -> None:
    """Spark hands over partial results by the end of the window and the keys; late rows are told as for EMIT FINAL."""
    query = f"""
        SELECT symbol, TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n, AVG(volume) AS mean
        FROM trades WHERE volume > 0 GROUP BY symbol, {TUMBLE} HAVING MAX(price) > 5
    """
    made = job(query)
    assert made.kind == "windows"
    assert made.windows == WindowsPlan("__end", 0, (("count", "__p0"), ("max", "__p3"), ("sum", "__p1")))
    core = flat(made.core)
    assert "window(`trades`.`ts`, '10 seconds').`end` AS `__end`" in core
    assert "WHERE `trades`.`volume` > 0" in core
    assert flat(made.batch).endswith("FROM `__batch` GROUP BY `__end`, `__k0`")
    assert made.merge is not None
    assert [column.expression for column in made.merge.columns][:3] == ['"__k0"', '"__start"', '"__p0"']
    assert made.merge.derived[0] == ("__start", 'make_timestamp(epoch_us("__end") - 10000000)')
    assert (made.uses_event_time, made.spread_us, made.kept, made.rests) == (True, 10 * SECOND, (), True)
    final = plan_job(planned(f"CREATE MATERIALIZED VIEW v AS {query};"))
    assert final.kind == "panes"
    assert made.late == final.late


def test_cumulating_windows_are_told_apart_by_their_end() -> None:
    plan = planned(
        f"CREATE MATERIALIZED VIEW v AS SELECT window_start, window_end, COUNT(*) AS n FROM {CUMULATE} "
        "GROUP BY window_start, window_end EMIT CHANGES;"
    )
    assert (plan.mode, plan.root.key) == (Mode.UPSERT, ("window_end",))
    made = plan_job(plan)
    assert made.kind == "windows"
    assert made.merge is not None
    assert [column.expression for column in made.merge.columns] == ['"__start"', '"__end"', '"__p0"']


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT symbol, SESSION_START(ts, INTERVAL '5' SECOND) AS s, COUNT(*) AS n FROM trades GROUP BY symbol, {SESSION}",
        (
            "SELECT symbol, window_start, COUNT(*) AS n FROM SESSION(TABLE trades PARTITION BY symbol, DESCRIPTOR(ts), "
            "INTERVAL '5' SECOND) GROUP BY symbol, window_start, window_end"
        ),
    ],
)
def test_sessions_come_as_times(query: str) -> None:
    """D7: the rows of a batch are reduced by their time; the store finds the sessions, whose bounds change."""
    made = job(query)
    assert made.windows == WindowsPlan("__row_time", 5 * SECOND, (("count", "__p0"),))
    assert "session_window" not in flat(made.core)
    assert flat(made.batch).endswith("FROM `__batch` GROUP BY `__row_time`, `__k0`")
    assert "session_window" in flat(made.late)
    assert planned(f"CREATE MATERIALIZED VIEW v AS {query} EMIT CHANGES;").mode is Mode.RETRACT
    whole = job(f"SELECT COUNT(*) AS n FROM trades GROUP BY {SESSION}")
    assert flat(whole.batch).endswith("FROM `__batch` GROUP BY `__row_time`")


@pytest.mark.parametrize(
    ("query", "state", "why"),
    [
        (f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {TUMBLE}", "spark", "state = 'spark'"),
        (f"SELECT symbol, COUNT(DISTINCT volume) AS n FROM trades GROUP BY symbol, {TUMBLE}", None, "does not merge"),
        (f"SELECT symbol, STDDEV(volume) AS n FROM trades GROUP BY symbol, {TUMBLE}", None, "STDDEV(volume)"),
        (f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY {TUMBLE}, ROLLUP (symbol)", None, "grouping sets"),
    ],
)
def test_spark_keeps_other_windows(query: str, state: str | None, why: str) -> None:
    """G5, G15: in its update mode, by keys and the end of the window; of grouping sets also by which set it is."""
    made = job(query, state)
    assert made.kind == "update"
    assert why in made.how
    assert made.uses_event_time
    assert made.late is not None
    assert "`end` AS `__k" in flat(made.core)
    assert ("grouping_id()" in flat(made.core)) == ("ROLLUP" in query)
    if "ROLLUP" in query:
        assert planned(f"CREATE MATERIALIZED VIEW v AS {query} EMIT CHANGES;").mode is Mode.RETRACT


def test_sessions_that_show_each_change_are_not_kept_by_spark() -> None:
    """G13"""
    with pytest.raises(NotYetError, match="sessions with EMIT CHANGES") as raised:
        job(f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {SESSION}", "spark")
    assert "state = 'spark'" in raised.value.message
    assert raised.value.hint


def test_what_does_not_merge_in_a_session_is_answered_of_its_rows() -> None:
    """G13"""
    made = job(f"SELECT symbol, MAX_BY(volume, price) AS n FROM trades GROUP BY symbol, {SESSION}", None)
    assert made.kind == "finish"


def test_a_bound_is_told() -> None:
    """G6: EXPLAIN says who keeps the windows, and until when."""
    text = plan_text(
        planned(f"CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM trades GROUP BY {TUMBLE} EMIT CHANGES;")
    )
    assert "the view store merges by TUMBLE(ts, INTERVAL '10' SECOND), and forgets" in text
    assert "dropped when the watermark passes the end of the window" in text
    assert "grows for ever" not in text


def test_fingerprints() -> None:
    """Windows of another length, or kept elsewhere, are other state; a condition above them is not."""
    one = f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {TUMBLE}"
    assert job(one).fingerprint == job(f"{one} HAVING COUNT(*) > 1").fingerprint
    longer = job(one.replace("'10'", "'20'"))
    assert "the keys were" in describe_difference(job(one).state, longer.state)
    assert "kept by" in describe_difference(job(one).state, job(one, "spark").state)
