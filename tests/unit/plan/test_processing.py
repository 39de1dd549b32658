"""Windows over processing time: which run, what is stamped on rows, when the clock moves (D1, G5, G13)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import NotYetError
from penstock.plan.explain import plan_text
from penstock.plan.fingerprint import describe_difference
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.pane_plan import PANE, PanePlan
from penstock.plan.processing_plan import ProcessingPlan
from penstock.plan.windows_plan import WindowsPlan
from penstock.runtime.processing_time import stamped
from tests.unit.plan.analysis import planned

SECOND = 1_000_000
READ = "CREATE STREAM visits (who STRING, n INT, seen AS PROCTIME());"
TUMBLE = "TUMBLE(seen, INTERVAL '10' SECOND)"


def job(query: str, state: str | None = None) -> JobPlan:
    return plan_job(planned(f"{READ} CREATE MATERIALIZED VIEW v AS {query};"), state=state)


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT who, TUMBLE_END(seen, INTERVAL '10' SECOND) AS e, COUNT(*) AS n FROM visits GROUP BY who, {TUMBLE}",
        "SELECT who, window_end AS e, COUNT(*) AS n FROM visits GROUP BY who, TUMBLE(PROCTIME(), INTERVAL '10' SECOND)",
        (
            "SELECT who, window_end AS e, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(seen), INTERVAL '10' SECOND)) "
            "GROUP BY who, window_start, window_end"
        ),
        (
            "SELECT who, window_end AS e, COUNT(*) AS n FROM TUMBLE(TABLE (SELECT *, PROCTIME() AS p FROM visits), "
            "DESCRIPTOR(p), INTERVAL '10' SECOND) GROUP BY who, window_start, window_end"
        ),
    ],
)
def test_spellings(query: str) -> None:
    """D1: Spark is not asked for the window; whatever the spelling, the store is told it with each batch."""
    made = job(query)
    assert made.kind == "panes"
    assert made.panes == PanePlan(10 * SECOND, 10 * SECOND, 0, (("count", "__p0"),))
    assert made.processing == ProcessingPlan(PANE, 10 * SECOND, 10 * SECOND)
    assert "window(" not in flat(made.core)
    assert flat(made.batch).endswith("FROM `__batch` GROUP BY `__k0`")
    assert (made.uses_event_time, made.follows_time, made.late, made.spread_us) == (False, True, None, 10 * SECOND)
    assert all(scan.event_time is None for scan in made.scans)
    assert made.rests
    changing = job(f"{query} EMIT CHANGES")
    assert changing.kind == "windows"
    assert changing.windows == WindowsPlan("__end", 0, (("count", "__p0"),))
    assert flat(changing.batch) == flat(made.batch)


def test_hops_and_sessions() -> None:
    hop = job("SELECT COUNT(*) AS n FROM visits GROUP BY HOP(seen, INTERVAL '4' SECOND, INTERVAL '10' SECOND)")
    assert hop.panes == PanePlan(10 * SECOND, 4 * SECOND, 0, (("count", "__p0"),))
    assert hop.processing == ProcessingPlan(PANE, 10 * SECOND, 2 * SECOND)
    assert flat(hop.batch).endswith("FROM `__batch` HAVING count(*) > 0")
    session = job("SELECT who, MAX(n) AS n FROM visits GROUP BY who, SESSION(seen, INTERVAL '3' SECOND) EMIT CHANGES")
    assert session.windows == WindowsPlan("__row_time", 3 * SECOND, (("max", "__p0"),))
    assert session.processing == ProcessingPlan("__row_time", gap_us=3 * SECOND)
    once = job("SELECT who, MAX(n) AS n FROM visits GROUP BY who, SESSION(seen, INTERVAL '3' SECOND)")
    assert once.windows == WindowsPlan("__row_time", 3 * SECOND, (("max", "__p0"),), final=True)
    assert (once.kind, once.processing) == ("windows", session.processing)


def test_cumulating_windows() -> None:
    """D1: a row is in the steps of its window that end after it; shown once they are kept as panes, of one step each."""
    query = (
        "SELECT window_start, window_end, COUNT(*) AS n FROM CUMULATE(TABLE visits, DESCRIPTOR(seen), "
        "INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY window_start, window_end"
    )
    made = job(query)
    assert made.panes == PanePlan(10 * SECOND, 2 * SECOND, 0, (("count", "__p0"),), cumulates=True)
    assert made.processing == ProcessingPlan(PANE, 10 * SECOND, 2 * SECOND, cumulates=True)
    assert made.processing.stamps(17 * SECOND) == (16 * SECOND,)
    changing = job(f"{query} EMIT CHANGES")
    assert changing.windows == WindowsPlan("__end", 0, (("count", "__p0"),))
    assert changing.processing is not None
    assert changing.processing.stamps(15 * SECOND) == (16 * SECOND, 18 * SECOND, 20 * SECOND)
    assert changing.processing.due(16 * SECOND, 15 * SECOND) == 18 * SECOND
    assert changing.processing.due(20 * SECOND, 15 * SECOND) is None


def test_a_stream_with_event_time_may_be_read_by_the_clock() -> None:
    """A row without an event time is a row there, and no watermark is looked at."""
    made = plan_job(
        planned(
            "CREATE MATERIALIZED VIEW v AS SELECT symbol, COUNT(*) AS n FROM trades "
            "GROUP BY symbol, TUMBLE(PROCTIME(), INTERVAL '10' SECOND);"
        )
    )
    assert made.processing is not None
    assert (made.scans[0].event_time, made.uses_event_time) == (None, False)


@pytest.mark.parametrize(
    ("query", "state", "word"),
    [
        (f"SELECT who, COUNT(*) AS n FROM visits GROUP BY who, {TUMBLE}", "spark", "no view holds"),
    ],
)  # fmt: skip
def test_what_is_not_there(query: str, state: str | None, word: str) -> None:
    """G13"""
    with pytest.raises(NotYetError) as raised:
        job(query, state)
    assert raised.value.condition == "PROCESSING_TIME_WINDOW"
    assert word in raised.value.message


COUNTED = f"SELECT who, TUMBLE_START(seen, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM visits GROUP BY who, {TUMBLE}"


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        (f"SELECT who, n FROM ({COUNTED}) AS w ORDER BY n DESC, who LIMIT 3", ()),
        (f"SELECT who, LAG(n) OVER (PARTITION BY who ORDER BY s) AS place FROM ({COUNTED})", ("who",)),
        (f"SELECT s, MAX(n) AS m FROM ({COUNTED}) GROUP BY s", ("s",)),
        (f"SELECT who, MAX_BY(who, n) AS n FROM visits GROUP BY who, {TUMBLE} EMIT CHANGES", None),
        ("SELECT who, window_start FROM TUMBLE(TABLE visits, DESCRIPTOR(seen), INTERVAL '2' SECOND)", None),
        ("SELECT who, window_start, n FROM HOP(TABLE visits, DESCRIPTOR(seen), INTERVAL '1' SECOND, INTERVAL '2' SECOND)", None),
        ("SELECT who, MAX_BY(who, n) AS n FROM visits GROUP BY who, TUMBLE(PROCTIME(), INTERVAL '2' SECOND)", None),
    ],
)  # fmt: skip
def test_the_store_keeps_rows_with_the_time_they_came(query: str, keys: tuple[str, ...] | None) -> None:
    """G13: what is not one GROUP BY of aggregates that merge is an answer that changes, and says so."""
    plan = planned(f"{READ} CREATE MATERIALIZED VIEW v AS {query}")
    finish = plan_job(plan).finish
    assert finish is not None
    assert keys is None or finish.keys == keys
    assert any("shown as they fill" in text for text in plan.warnings)


def test_windows_of_the_clock_are_shown_once_where_it_is_asked_for() -> None:
    """G5: of each row the store keeps when its window ends, and shows it from then on."""
    for query in (
        f"SELECT s, MAX(n) AS m FROM ({COUNTED}) GROUP BY s EMIT FINAL",
        f"SELECT who, s, RANK() OVER (PARTITION BY s ORDER BY n DESC) AS place FROM ({COUNTED}) EMIT FINAL",
        f"SELECT who, MAX_BY(who, n) AS n FROM visits GROUP BY who, {TUMBLE} EMIT FINAL",
    ):
        made = job(query)
        assert made.kind == "finish"
        assert made.finish is not None
        assert [bool(rows.shown_while) for rows in made.finish.rows] == [True], query
    plan = planned(f"{READ} CREATE MATERIALIZED VIEW v AS {query};")
    assert any("shown when they have ended" in text for text in plan.warnings)


def test_explain_and_fingerprint() -> None:
    query = f"SELECT who, COUNT(*) AS n FROM visits GROUP BY who, {TUMBLE}"
    text = plan_text(planned(f"{READ} CREATE MATERIALIZED VIEW v AS {query};"))
    assert "closes them by the clock" in text
    assert "dropped when the clock passes the end of the window" in text
    assert "TUMBLE(size 10 seconds, of processing time)" in text
    longer = job(query.replace("'10'", "'20'"))
    assert "the keys were" in describe_difference(job(query).state, longer.state)
    other = job(query.replace("COUNT(*)", "SUM(n)"))
    assert "the aggregates were" in describe_difference(job(query).state, other.state)


@given(
    slide=st.integers(1, 12), more=st.integers(0, 30), offset=st.integers(0, 20),
    time=st.integers(0, 200), reached=st.integers(0, 60),
)  # fmt: skip
def test_stamps_and_due_moments(slide: int, more: int, offset: int, time: int, reached: int) -> None:
    """D1, D19: the ends that are stamped are those of the windows a time lies in, and the clock stops at each of them."""
    plan = ProcessingPlan("__end", slide + more, slide, offset % slide)
    wanted = [
        start + slide + more
        for start in range(time - 60, time + 1)
        if (start - offset) % slide == 0 and start <= time < start + slide + more
    ]
    assert list(plan.stamps(time)) == wanted
    pending = [end for end in wanted if end > time + reached]
    due = plan.due(time + reached, time)
    assert (due is None) == (not pending)
    assert due is None or due == pending[0]
    session = ProcessingPlan("__row_time", gap_us=slide)
    assert session.stamps(time) == (time,)
    assert session.due(time + reached, time) == (time + slide if reached < slide else None)


def test_rows_are_stamped_once_for_each_window() -> None:
    rows = pa.table({"__k0": ["a", "b"], "__p0": [1, 2]})
    made = stamped(rows, ProcessingPlan("__end", 10, 5), 12)
    assert made.column("__end").cast(pa.int64()).to_pylist() == [15, 15, 20, 20]
    assert made.column("__k0").to_pylist() == ["a", "b", "a", "b"]
    assert stamped(rows.slice(0, 0), ProcessingPlan(PANE, 10, 5), 12).column_names == ["__k0", "__p0", PANE]


@pytest.mark.parametrize(
    ("query", "kind", "closed"),
    [
        (f"SELECT who, COUNT(*) AS n FROM visits GROUP BY who, {TUMBLE}", "panes", True),
        ("SELECT who, COUNT(*) AS n FROM visits GROUP BY who, SESSION(seen, INTERVAL '10' SECOND)", "windows", True),
        (f"SELECT who, COUNT(*) AS n FROM visits GROUP BY who, {TUMBLE} EMIT CHANGES", "windows", False),
    ],
)  # fmt: skip
def test_windows_of_the_clock_for_sinks(query: str, kind: str, closed: bool) -> None:
    """What a sink is given once is given as rows that are only added."""
    options = "connector = 'topic', format = 'json'" + ("" if closed else ", changes = 'retract'")
    made = plan_job(planned(f"{READ} CREATE SINK out WITH ({options}) AS {query};"))
    assert (made.kind, made.shows_closed) == (kind, closed)
